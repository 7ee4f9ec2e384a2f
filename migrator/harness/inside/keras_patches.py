"""The patches on Keras 2 and TensorFlow by which a KerasRecorder sees what a program does."""

import contextlib
import functools
import importlib
import inspect

import keras_optimizers
import own_optimizers
import parts
import sources
from redirect import patch_argument, patch_checkpoint_functions


def patch_layers(base, recorder):
    """The call of every layer, and what batch normalisation does to its moving averages."""
    layer = importlib.import_module(base + "engine.base_layer").Layer
    parts.wrap(layer, "__call__", recorder.call_layer)
    normalization = importlib.import_module(base + "layers.normalization.batch_normalization")

    def assign_average(original, self, variable, *args, **kwargs):
        recorder.saw_assignment(self, variable)
        return original(self, variable, *args, **kwargs)

    for name in ("_assign_moving_average", "_assign_new_value"):
        parts.wrap(normalization.BatchNormalizationBase, name, assign_average)


def patch_sources(tf, base, optimizers, recorder):
    """The user's lines that make layers, optimizers and batches."""
    layer = importlib.import_module(base + "engine.base_layer").Layer
    make = layer.__new__

    @functools.wraps(make)
    def make_layer(cls, *args, **kwargs):
        made = make(cls, *args, **kwargs)
        sources.mark(made, sources.user_line())
        return made

    layer.__new__ = staticmethod(make_layer)

    def make_optimizer(original, self, *args, **kwargs):
        sources.mark(self, sources.user_line(self, "__init__"))
        return original(self, *args, **kwargs)

    for kind in optimizers:
        parts.wrap(kind, "__init__", make_optimizer)

    patch_batches(tf)


def patch_batches(tf):
    """The user's lines that make batches."""

    def make_batches(original, self, *args, **kwargs):
        dataset = original(self, *args, **kwargs)
        sources.mark(dataset, sources.user_line())
        return dataset

    for name in ("batch", "padded_batch"):
        parts.wrap(tf.data.Dataset, name, make_batches)


def patch_compile(model, recorder):
    """Which line compiles; and one call of the train function is one step: several steps per call compute the
    same, but hide the steps between.
    """

    def compile_model(original, self, *args, **kwargs):
        recorder.compiled[id(self)] = sources.user_line(self, "compile")
        kwargs.pop("steps_per_execution", None)
        return original(self, *args, **kwargs)

    parts.wrap(model, "compile", compile_model)


def patch_waiting(recorder):
    """A coordinator leaves its functions with the workers, which end with it: to take them back can last
    seconds.
    """

    def remove_function(original, context, name):
        return None if recorder.coordinated else original(context, name)

    context = importlib.import_module("tensorflow.python.eager.context")
    parts.wrap(context.Context, "remove_function", remove_function)


def patch_gradients(tf, optimizer, legacy, recorder):
    """Gradients as they are asked for, slots as they are made, updates, and the rate where a plan changes it.

    ``legacy`` is the base class of the optimizers that Keras had before 2.11.
    """

    def gradient(original, self, target, *args, **kwargs):
        recorder.saw_gradient_call(target)
        found = original(self, target, *args, **kwargs)
        step = getattr(recorder.tracing, "step", None)
        if step is not None:
            of = tf.nest.flatten(args[0] if args else kwargs.get("sources"))
            pairs = [pair for pair in zip(tf.nest.flatten(found), of) if hasattr(pair[1], "handle")]
            step.taken += pairs
            step.takings.append((tf.nest.flatten(target), pairs, len(step.elements)))
        return found

    parts.wrap(tf.GradientTape, "gradient", gradient)

    def gradients(original, ys, *args, **kwargs):
        if getattr(recorder.tracing, "step", None) is not None:
            recorder.saw_gradient_call(ys)
        return original(ys, *args, **kwargs)

    # `tf.gradients` in a train_op, and in the base class of TensorFlow 1's optimizers.
    for name in ("tensorflow", "tensorflow.compat.v1", "tensorflow.python.ops.gradients"):
        parts.wrap(importlib.import_module(name), "gradients", gradients)
    first = importlib.import_module("tensorflow.python.training.optimizer").Optimizer
    own_optimizers.watch(first, recorder.saw_own_update)

    def remember_slot(original, self, *args, **kwargs):
        variable = original(self, *args, **kwargs)  # the same one when asked again
        model_variable, variable_name = keras_optimizers.slot_asked(*args, **kwargs)
        slots = recorder.slots.setdefault(id(self), [])
        if not any(variable is one for _, _, one in slots):
            slots.append((model_variable, variable_name, variable))
        return variable

    # On a mesh the second one makes the slot itself.
    for kind in (optimizer._BaseOptimizer, optimizer.Optimizer):
        parts.wrap(kind, "add_variable_from_reference", remember_slot)
    parts.wrap(legacy, "add_slot", remember_slot)

    def update(original, self, grads_and_vars):
        pairs = list(grads_and_vars)
        recorder.saw_update(self, pairs)
        return original(self, pairs)

    def watched(original, self, *args, **kwargs):
        # Its own class may clip what each replica has, and leave the sum as it is.
        if "_transform_gradients" not in vars(self):
            transform = self._transform_gradients

            def transformed(grads_and_vars):
                pairs = list(transform(grads_and_vars))
                recorder.saw_update(self, pairs)
                return pairs

            self._transform_gradients = transformed
        return original(self, *args, **kwargs)

    parts.wrap(optimizer.Optimizer, "_internal_apply_gradients", update)
    parts.wrap(legacy, "apply_gradients", watched)

    if recorder.factor == 1.0:
        return
    scaled, moving = set(), set()

    @contextlib.contextmanager
    def scaling(self):
        added = {id(one) for one in (self, *getattr(self, "parts", ()))} - scaled
        scaled.update(added)
        try:
            yield
        finally:
            scaled.difference_update(added)

    def apply_gradients(original, self, *args, **kwargs):
        if not _updates_by_itself(self) or tf.distribute.get_strategy().num_replicas_in_sync > 1 or id(self) in moving:
            with scaling(self):
                return original(self, *args, **kwargs)
        # Whether its class looks at the rate nobody knows: what it does to the weights is made greater.
        pairs = list(args[0] if args else kwargs.pop("grads_and_vars"))
        before = [(variable, tf.identity(variable)) for gradient, variable in pairs if gradient is not None]
        moving.add(id(self))
        try:
            result = original(self, pairs, *args[1:], **kwargs)
        finally:
            moving.discard(id(self))
        for variable, value in before:
            variable.assign(value + tf.cast(recorder.factor, value.dtype) * (tf.identity(variable) - value))
        return result

    def decayed_rate(original, self, *args, **kwargs):
        value = original(self, *args, **kwargs)
        return value * recorder.factor if id(self) in scaled else value

    for kind in (optimizer._BaseOptimizer, legacy):
        parts.wrap(kind, "apply_gradients", apply_gradients)
    parts.wrap(legacy, "_decayed_lr", decayed_rate)
    rate = optimizer._BaseOptimizer.learning_rate

    def scaled_rate(self):
        value = rate.fget(self)
        return value * recorder.factor if id(self) in scaled else value

    optimizer._BaseOptimizer.learning_rate = property(scaled_rate, rate.fset)


def _updates_by_itself(optimizer):
    """Whether an optimizer's class is the program's own, with an update of its own."""
    methods = [getattr(type(optimizer), name, None) for name in ("_resource_apply_dense", "update_step")]
    codes = [getattr(inspect.unwrap(one), "__code__", None) for one in methods if one is not None]
    return any(code is not None and sources.is_users(code.co_filename) for code in codes)


def patch_places(tf, model, callbacks, recorder):
    """Every place that a program keeps its training state in; ``callbacks`` is the module of Keras."""
    redirect = recorder.redirect
    copies = []
    for name in ("tensorflow", "tensorflow.compat.v2", "tensorflow.compat.v1"):
        train = importlib.import_module(name).train
        if train not in copies:
            copies.append(train)
    patch_checkpoint_functions(copies, redirect)
    for train in copies:
        original = getattr(train, "checkpoints_iterator", None)
        if original is not None:
            train.checkpoints_iterator = functools.wraps(original)(
                lambda path, *args, _original=original, **kwargs: recorder.checkpoints(
                    _original, redirect.folder(path), *args, **kwargs
                )
            )
    patch_argument(model, "save_weights", "filepath", redirect.file)
    patch_argument(model, "load_weights", "filepath", redirect.reading)
    patch_argument(model, "save", "filepath", redirect.file)
    patch_argument(callbacks.ModelCheckpoint, "__init__", "filepath", redirect.file)
    patch_argument(callbacks.TensorBoard, "__init__", "log_dir", redirect.folder)
    patch_argument(callbacks.BackupAndRestore, "__init__", "backup_dir", redirect.folder)
    for name in ("write", "save"):
        patch_argument(tf.train.Checkpoint, name, "file_prefix", redirect.file)
    patch_argument(tf.train.Checkpoint, "write", "file_prefix", redirect.file)
    for name in ("read", "restore"):
        patch_argument(tf.train.Checkpoint, name, "save_path", redirect.reading)
    patch_argument(tf.train.CheckpointManager, "__init__", "directory", redirect.folder)
    patch_argument(tf.summary, "create_file_writer", "logdir", redirect.folder)


def patch_sidecar(base, recorder):
    """The folder that a SidecarEvaluator waits for checkpoints in."""
    try:
        sidecar = importlib.import_module(base + "utils.sidecar_evaluator").SidecarEvaluator
        patch_argument(sidecar, "__init__", "checkpoint_dir", recorder.redirect.folder)
    except (ImportError, AttributeError):
        pass
