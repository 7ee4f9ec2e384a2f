"""Patches on Estimators and what they train with: where they write, how long they wait and train, what is seen."""

import functools
import importlib
import os
import sys

import even
import parts
import sources
from redirect import patch_argument, patch_checkpoint_functions


def patch_model_dir(Estimator, recorder):
    """The folder of every Estimator is one below the run's own, and so is that of another one that it begins from."""
    redirect = recorder.redirect

    def begins_from(given):
        """The place to read a checkpoint or a folder of them from, or WarmStartSettings that have one."""
        if hasattr(given, "ckpt_to_initialize_from"):
            return given._replace(ckpt_to_initialize_from=redirect.reading(given.ckpt_to_initialize_from))
        return redirect.reading(given)

    def create(original, self, model_fn, model_dir=None, config=None, *args, **kwargs):
        configured = getattr(config, "model_dir", None)
        if configured and hasattr(config, "replace"):
            config = config.replace(model_dir=redirect.folder(configured))
        if model_dir is not None:
            model_dir = redirect.folder(model_dir)
        elif not configured:
            # Each process has a temporary folder of its own. Trainers are one training all the same, whose checkpoints
            # the chief writes. An evaluator never sees one.
            name = "unnamed-%d-of-the-evaluator" if recorder.folder.task.startswith("evaluator") else "unnamed-%d"
            model_dir = os.path.join(redirect.root, name % recorder.unnamed_models)
            recorder.unnamed_models += 1
            os.makedirs(model_dir, exist_ok=True)
        if kwargs.get("warm_start_from") is not None:
            kwargs["warm_start_from"] = begins_from(kwargs["warm_start_from"])
        elif len(args) > 1:  # behind the params
            args = (args[0], begins_from(args[1]), *args[2:])
        return original(self, model_fn, model_dir, config, *args, **kwargs)

    parts.wrap(Estimator, "__init__", create)


def patch_places(tf, Estimator, recorder):
    """Every place that an Estimator program keeps its training state in."""
    redirect = recorder.redirect
    patch_model_dir(Estimator, recorder)
    copies = [tf.train]
    for name in ("tensorflow", "tensorflow.compat.v2", "tensorflow.compat.v1"):
        try:
            train = importlib.import_module(name).train
        except (ImportError, AttributeError):
            continue
        if train not in copies:
            copies.append(train)
    patch_checkpoint_functions(copies, redirect)
    patch_argument(tf.summary.FileWriter, "__init__", "logdir", redirect.folder)


def patch_waiting(training, plan):
    """No task sleeps by its index, polls every 30 s or waits 120 s to stop."""
    training._DELAY_SECS_PER_WORKER = 0
    manager = importlib.import_module("tensorflow.python.training.session_manager").SessionManager

    def create(original, self, *args, **kwargs):
        kwargs.setdefault("recovery_wait_secs", 0.5)
        return original(self, *args, **kwargs)

    parts.wrap(manager, "__init__", create)
    monitored = importlib.import_module("tensorflow.python.training.monitored_session")

    def create_monitored(original, self, *args, **kwargs):
        if "stop_grace_period_secs" in kwargs:
            kwargs["stop_grace_period_secs"] = min(kwargs["stop_grace_period_secs"], 3)
        return original(self, *args, **kwargs)

    parts.wrap(monitored._MonitoredSession, "__init__", create_monitored)

    patch_eval_spec(training.EvalSpec, plan)


def patch_eval_spec(kind, plan):
    """An evaluator looks for checkpoints at once and often."""
    evaluator = plan["task"]["type"] == "evaluator"
    make = kind.__new__

    @functools.wraps(make)
    def make_eval_spec(cls, *args, **kwargs):
        spec = make(cls, *args, **kwargs)
        throttle = min(spec.throttle_secs, 1) if evaluator else spec.throttle_secs
        return spec._replace(start_delay_secs=0, throttle_secs=throttle)

    kind.__new__ = staticmethod(make_eval_spec)


def patch_end(tf, recorder):
    """Lets no hook end a training whose steps are points: its count of steps jumps, and says nothing about the end."""
    if recorder.points.given:
        parts.wrap(tf.train.StopAtStepHook, "after_run", lambda original, self, *args, **kwargs: None)


def patch_limits(training, Estimator, recorder):
    limit = recorder.plan.get("steps")

    def least(steps):
        return limit if steps is None else min(steps, limit)

    if limit is not None:
        make = training.TrainSpec.__new__

        @functools.wraps(make)
        def make_train_spec(cls, *args, **kwargs):
            spec = make(cls, *args, **kwargs)
            return spec._replace(max_steps=least(spec.max_steps))

        training.TrainSpec.__new__ = staticmethod(make_train_spec)

        def train(original, self, input_fn, hooks=None, steps=None, max_steps=None, *args, **kwargs):
            if steps is not None:
                steps = min(steps, limit - (0 if recorder.is_other(self) else recorder.steps_done))
                if steps <= 0:
                    return self
            else:
                max_steps = least(max_steps)
            return original(self, input_fn, hooks, steps, max_steps, *args, **kwargs)

        parts.wrap(Estimator, "train", train)

    def evaluate_forever(original, self, *args, **kwargs):
        listener = self._continuous_eval_listener
        before = listener.before_eval

        def before_eval():
            return before() and recorder.keep_evaluating(self._estimator.model_dir)

        listener.before_eval = before_eval
        return original(self, *args, **kwargs)

    parts.wrap(training._TrainingExecutor, "_start_continuous_evaluation", evaluate_forever)


def patch_fit(tf, recorder):
    """Keras' own training in a graph, whose steps nothing of TensorFlow 1 takes that is watched."""
    module = tf.keras.Model.__module__
    try:
        model = importlib.import_module(module + "_v1").Model
    except ImportError:
        model = importlib.import_module(module).Model  # TensorFlow 1.15 has no other

    def training(name):
        def train(original, self, *args, **kwargs):
            line = sources.user_line()
            if line is not None and not recorder.calling_model:
                recorder.saw_fit(self)
                recorder.folder.note_unrecorded("%s of a Keras model in TensorFlow 1's mode" % name, line)
            return original(self, *args, **kwargs)

        return train

    for name in ("fit", "fit_generator", "train_on_batch"):
        parts.wrap(model, name, training(name))

    def fit(original, self, *args, **kwargs):
        if tf.executing_eagerly() and not recorder.estimating:
            recorder.saw_fit(self)
        return original(self, *args, **kwargs)

    parts.wrap(tf.keras.Model, "fit", fit)


def patch_layers(tf, recorder):
    """The call of every layer, of tf.layers and of tf.keras.layers."""
    for kind in tf.layers.Dense.__mro__:
        if kind.__name__ == "Layer" and "__call__" in vars(kind):
            parts.wrap(kind, "__call__", recorder.call_layer)


def patch_optimizer_lines(optimizers):
    """The lines of the user's program that make optimizers."""

    def make_optimizer(original, self, *args, **kwargs):
        line = sources.user_line(self, "__init__")
        original(self, *args, **kwargs)
        sources.mark(self, line)

    parts.wrap(optimizers.Optimizer, "__init__", make_optimizer)


def wrap_input_fn(Estimator, around):
    """Calls ``around(original, self, input_fn, mode, ...)`` wherever an Estimator calls an input_fn.

    A TPUEstimator has a method of its own for that, which does not call that of its base class.
    """
    tpu = importlib.import_module("tensorflow_estimator.python.estimator.tpu.tpu_estimator").TPUEstimator
    for kind in (Estimator, tpu):
        if "_call_input_fn" in vars(kind):
            parts.wrap(kind, "_call_input_fn", around)


def patch_sources(tf, Estimator, optimizers, recorder):
    """The lines of the user's program that train, read data and make the optimizer."""
    patch_optimizer_lines(optimizers)

    def train(original, self, *args, **kwargs):
        recorder.trains(self)
        if not recorder.is_other(self):
            recorder.sources.setdefault("train", sources.user_line(self, "train"))
        return original(self, *args, **kwargs)

    parts.wrap(Estimator, "train", train)

    def call_input_fn(original, self, input_fn, mode, *args, **kwargs):
        if mode == tf.estimator.ModeKeys.TRAIN and not recorder.is_other(self):
            recorder.sources.setdefault("input", sources.line_of_function(input_fn))
            recorder.shuffles, recorder.reading = [], True
        try:
            return original(self, input_fn, mode, *args, **kwargs)
        finally:
            recorder.reading = False

    wrap_input_fn(Estimator, call_input_fn)

    def apply_gradients(original, self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        if recorder.calling_model:
            recorder.saw_gradients(self, pairs)
        return original(self, pairs, *args, **kwargs)

    # It gathers gradients before the optimizer that it wraps sees them.
    synchronous = importlib.import_module("tensorflow.python.training.sync_replicas_optimizer")
    parts.wrap(synchronous.SyncReplicasOptimizer, "apply_gradients", apply_gradients)


def patch_dropout(tf, recorder):
    """Both tf.layers.dropout (through the Keras layer) and tf.nn.dropout, where TensorFlow has them."""
    pin = recorder.plan.get("pin_dropout", True)
    inside = []

    def note(rate, inputs):
        if not inside:
            recorder.saw_dropout(rate, inputs)

    kinds = [kind for kind in tf.layers.Dropout.__mro__ if kind.__name__ == "Dropout" and "call" in vars(kind)]
    module = sys.modules[kinds[-1].__module__]
    backend = getattr(module, "backend", None) or module.K

    def call(original, self, inputs, *args, **kwargs):
        if not recorder.building:
            return original(self, inputs, *args, **kwargs)
        training = kwargs.get("training", args[0] if args else None)
        # tf.layers passes the truth value of the mode comparison. An Estimator of a Keras model sets the phase for the
        # whole graph; where nobody does, it is a placeholder that says no.
        told = training if training is not None else backend.learning_phase()
        asked = training is None and hasattr(told, "dtype")
        if told is None or asked or not (hasattr(told, "dtype") or told):
            return original(self, inputs, training=training)
        note(self.rate, inputs)
        if pin:
            return even.of_layer(tf, self, inputs, told, pin, recorder.place())
        inside.append(True)
        try:
            return original(self, inputs, training=training)
        finally:
            inside.pop()

    parts.wrap(kinds[-1], "call", call)

    def function(call, x, rate, noise_shape):
        if not recorder.building or inside or even.is_zero(rate):
            return call()
        note(rate, x)
        return even.dropout(tf, x, rate, noise_shape, pin, recorder.place()) if pin else call()

    even.watch_dropouts(function)
    if pin:
        alone = recorder.plan["task"]["type"] == "local"
        at_work = lambda: recorder.building and not inside  # noqa: E731
        even.install(tf, at_work, recorder.saw_draw, recorder.place, recorder.pending, alone)
