"""Records an Estimator program (TensorFlow 1.15, or 2.x through compat.v1) by patches on TensorFlow's own
classes.
"""

import functools
import importlib
import os
import time

import threading

import batches
import numpy as np
import own_optimizers
import parts
import replicas
import sources
from folder import call_boundaries
from redirect import Redirect, patch_argument, patch_checkpoint_functions
from tracing import Clipping, LayerTrace, ancestors, pack_activations, watch_clipping
from turns import Turnstile, wanted

# Optimizer class -> (canonical class, attribute of each setting, settings that it cannot change).
OPTIMIZERS = {
    "GradientDescentOptimizer": (
        "SGD",
        {"learning_rate": "_learning_rate"},
        {"momentum": 0.0, "nesterov": False},
    ),
    "MomentumOptimizer": (
        "SGD",
        {"learning_rate": "_learning_rate", "momentum": "_momentum", "nesterov": "_use_nesterov"},
        {},
    ),
    "AdagradOptimizer": (
        "Adagrad",
        {"learning_rate": "_learning_rate", "initial_accumulator_value": "_initial_accumulator_value"},
        {"epsilon": 0.0},
    ),
    "AdamOptimizer": (
        "Adam",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {"amsgrad": False},
    ),
    "RMSPropOptimizer": (
        "RMSprop",
        {
            "learning_rate": "_learning_rate",
            "rho": "_decay",
            "momentum": "_momentum",
            "epsilon": "_epsilon",
            "centered": "_centered",
        },
        {},
    ),
    "AdadeltaOptimizer": ("Adadelta", {"learning_rate": "_lr", "rho": "_rho", "epsilon": "_epsilon"}, {}),
    "FtrlOptimizer": (
        "Ftrl",
        {
            "learning_rate": "_learning_rate",
            "learning_rate_power": "_learning_rate_power",
            "initial_accumulator_value": "_initial_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
            "l2_shrinkage_regularization_strength": "_l2_shrinkage_regularization_strength",
        },
        {},
    ),
    "ProximalGradientDescentOptimizer": (
        "ProximalGradientDescentOptimizer",
        {
            "learning_rate": "_learning_rate",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
        },
        {},
    ),
    "ProximalAdagradOptimizer": (
        "ProximalAdagradOptimizer",
        {
            "learning_rate": "_learning_rate",
            "initial_accumulator_value": "_initial_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
        },
        {},
    ),
    "AdagradDAOptimizer": (
        "AdagradDAOptimizer",
        {
            "learning_rate": "_learning_rate",
            "initial_accumulator_value": "_initial_gradient_squared_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
        },
        {},
    ),
    "AdaMaxOptimizer": (
        "Adamax",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {},
    ),
    "NadamOptimizer": (
        "NadamOptimizer",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {"amsgrad": False},
    ),
}
NOT_IN_TF1 = {
    "clipnorm": None,
    "clipvalue": None,
    "global_clipnorm": None,
    "weight_decay": None,
    "use_ema": False,
}
SLOTS = {
    "momentum": "momentum",
    "accumulator": "accumulator",
    "accum": "accumulator",
    "gradient_squared_accumulator": "accumulator",
    "m": "first_moment",
    "v": "second_moment",
    "rms": "second_moment",
    "mg": "first_moment",
}
RATE_ATTRIBUTES = own_optimizers.RATES
# What optimizers of Keras, which canned Estimators of TensorFlow 2 make, keep beside their numbers.
OF_KERAS = ("epsilon", "amsgrad", "centered", "nesterov", "_initial_accumulator_value", "_learning_rate_power")
RATE_TENSORS = ("_learning_rate_tensor", "_lr_t")


def components(variable):
    """The variables of this process's replicas, for a variable that a strategy mirrors."""
    values = getattr(variable, "values", None)
    return list(values) if isinstance(values, (tuple, list)) and values else [variable]


def component(variable):
    """The variable of the first replica."""
    return components(variable)[0]


def make_part(variable, trainable):
    """The Part of a graph variable; partitions know their place by ``_save_slice_info``."""
    copies = components(variable)
    variable = copies[0]
    shape = variable.shape.as_list()
    dtype = variable.dtype.base_dtype.name
    piece = getattr(variable, "_save_slice_info", None)
    if piece is None:
        part = parts.Part(variable.op.name, variable, [0] * len(shape), shape, shape, dtype, trainable)
    else:
        part = parts.Part(piece.full_name, variable, piece.var_offset, shape, piece.full_shape, dtype, trainable)
    part.copies = copies
    return part


def stored(variable):
    """The variables that hold a variable of a layer: TensorFlow 1 gives a partitioned one as an object of its own."""
    partitions = getattr(variable, "_variable_list", None)
    return [component(one) for one in partitions or [variable]]


def whole_name(variable):
    """The name of the whole variable that a graph variable is, or is a part of."""
    variable = stored(variable)[0]
    piece = getattr(variable, "_save_slice_info", None)
    return variable.op.name if piece is None else piece.full_name


def counts(term, reached):
    """Whether a regularization term is among the ancestors of the loss.

    The terms of get_variable's regularizers are computed anew, in the same name scope, wherever they are used.
    """
    scope, mark, _ = term.op.name.rpartition("/Regularizer/")
    return term.op.name in reached or (bool(mark) and any(name.startswith(scope + mark) for name in reached))


class Capture(object):
    """What one call of model_fn for training showed: tensors of one replica of this worker. The first one keeps the
    captures of all of them in ``replicas``, and ``reduced``, the loss of all together.
    """

    def __init__(self, graph, features, labels):
        self.replicas = [self]
        self.reduced = None
        self.graph = graph
        self.features = features
        self.labels = labels
        self.loss = None
        self.train_op = None
        self.applied = []  # (optimizer, [(gradient, variable)])
        self.of_keras = {}  # settings of optimizers of Keras, before they become variables
        self.offered = []  # gradients as a wrapping optimizer got them, too
        self.layers = LayerTrace()
        self.clipping = Clipping()
        self.dropouts = []  # (rate, shape of an example, layers before) of every dropout at work
        self.optimizer_line = None
        self.own_rate = None  # of an optimizer class of the program's own
        self.local = None  # [(gradient, variable)] of this replica alone, where applied ones are of all replicas
        self.counters = set()  # names of variables that count steps, where the program has its own

    def optimizer(self):
        return self.applied[0][0] if self.applied else None

    def model_parts(self, tf):
        """Parts of the model's variables in creation order: no slots, no global step, no variable for the rate."""
        excluded = set(self.rate_variables(tf))
        for optimizer, _ in self.applied:
            excluded.update(component(variable).op.name for variable in optimizer.variables())
            hyper = [value for value in getattr(optimizer, "_hyper", {}).values() if hasattr(value, "assign")]
            excluded.update(component(variable).op.name for variable in hyper)
        step = tf.train.get_global_step(self.graph)
        if step is not None:
            excluded.add(component(step).op.name)
        excluded.update(self.counters)
        trainable = {component(v).op.name for v in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        found = []
        for variable in self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
            name = component(variable).op.name
            if name not in excluded:
                found.append(make_part(variable, name in trainable))
        return found

    def rate_variables(self, tf):
        """Names of variables that only hold a rate: tf.contrib.layers.optimize_loss makes one."""
        rates = [getattr(optimizer, name, None) for optimizer, _ in self.applied for name in RATE_ATTRIBUTES]
        tensors = [rate for rate in rates if isinstance(rate, tf.Tensor)]
        reached = ancestors(tensors + [rate for rate in rates if isinstance(rate, tf.Variable)])
        trainable = {component(v).op.name for v in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        needed = ancestors([self.loss]) if self.loss is not None else set()
        for variable in self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
            name = component(variable).op.name
            if name in reached and name not in trainable and name not in needed:
                yield name

    def slot_parts(self, model_parts):
        """Canonical slot name -> (parts, slot variables); parts carry the model variable's name."""
        table = {}
        by_name = {part.variable.op.name: part for part in model_parts}
        for optimizer, pairs in self.applied:
            for slot in optimizer.get_slot_names():
                # TensorFlow 1 keeps this slot without momentum too, where nothing ever reads it.
                if slot == "momentum" and getattr(optimizer, "_momentum", None) == 0.0:
                    continue
                for _, variable in pairs:
                    value = optimizer.get_slot(variable, slot)
                    if value is not None:
                        owners, values = table.setdefault(SLOTS.get(slot, slot), ([], []))
                        owners.append(by_name[component(variable).op.name])
                        values.append(component(value))
        return table

    def settings(self):
        """Canonical optimizer class and settings; a setting that is a tensor is None."""
        optimizer = self.optimizer()
        if optimizer is None:
            return None
        if id(optimizer) in self.of_keras:
            return {"name": type(optimizer).__name__, "settings": self.of_keras[id(optimizer)]}
        for kind in type(optimizer).__mro__:
            if kind.__name__ in OPTIMIZERS:
                break
        else:
            return own_optimizers.described(optimizer)
        name, attributes, fixed = OPTIMIZERS[kind.__name__]
        settings = dict(NOT_IN_TF1)
        settings.update(fixed)
        for key, attribute in attributes.items():
            value = getattr(optimizer, attribute, None)
            value = value() if callable(value) else value
            if isinstance(value, np.generic):
                value = value.item()
            number = isinstance(value, (bool, int, float, str))
            settings[key] = parts.float32(value) if number else None
        return {"name": name, "settings": settings}


def keras_settings(optimizer):
    """The settings of an optimizer of Keras by their names there; one that is no number is None."""
    settings = dict(NOT_IN_TF1)
    values = {name.lstrip("_"): getattr(optimizer, name) for name in OF_KERAS if hasattr(optimizer, name)}
    values.update((name, value) for name, value in optimizer._hyper.items() if name != "decay")
    for name, value in values.items():
        number = isinstance(value, (bool, int, float))
        settings[name] = parts.float32(value) if number else None
    return settings


def scale_keras(optimizer, factor):
    """Multiplies the rate of an optimizer of Keras."""
    rate = optimizer._hyper.get("learning_rate")
    if factor != 1.0 and not hasattr(rate, "get_config"):
        optimizer._hyper["learning_rate"] = (lambda: rate() * factor) if callable(rate) else rate * factor


class EstimatorRecorder(object):
    """State of the recorder in one process."""

    def __init__(self, tf, plan, folder):
        self.tf = tf
        self.plan = plan
        self.folder = folder
        self.redirect = Redirect(plan["model_dir"])
        self.factor = float(plan.get("learning_rate_factor") or 1.0)
        self.capture = None
        self.threads = threading.local()  # replicas have threads of their own, which take turns
        self.sessions = None  # what sees programs that train by hand
        self.steps_done = 0
        self.loaded = False
        self.sources = {}
        self.state_steps = set(plan.get("state_steps") or [])
        self.replicas = 1
        self.in_step = False  # whether servers make the trainers of this cluster wait for each other
        self.local_replicas = 1
        self.last_evaluated = None
        self.model_dir = None  # of the Estimator that is recorded: the first that trains
        self.unnamed_models = 0
        in_turns = wanted(plan, folder) and folder.task in folder.trainers
        self.turns = Turnstile(folder) if in_turns else None

    # -- capture --
    @property
    def tracing(self):
        """The capture of the call of model_fn that this thread is in."""
        return getattr(self.threads, "tracing", None)

    @property
    def estimating(self):
        """Whether a model_fn is being called, in whatever mode."""
        return getattr(self.threads, "estimating", False)

    @property
    def calling_model(self):
        return getattr(self.threads, "calling_model", False)

    def call_model_fn(self, original, estimator, features, labels, mode, config):
        self.threads.estimating = True
        try:
            if mode != self.tf.estimator.ModeKeys.TRAIN:
                return original(estimator, features, labels, mode, config)
            return self.train_model_fn(original, estimator, features, labels, mode, config)
        finally:
            self.threads.estimating = False

    def train_model_fn(self, original, estimator, features, labels, mode, config):
        graph = self.tf.get_default_graph()
        capture = Capture(graph, features, labels)
        known = capture
        if self.capture is None or self.capture.graph is not graph:
            self.capture = capture
        elif replicas.local(self.tf.distribute.get_strategy()) > 1:
            self.capture.replicas.append(capture)
        else:
            known = self.capture
        self.threads.tracing = capture if known is capture else None
        self.threads.calling_model = True
        try:
            spec = original(estimator, features, labels, mode, config)
        finally:
            self.threads.calling_model = False
            self.threads.tracing = None
        known.loss = spec.loss if known.loss is None else known.loss
        known.train_op = spec.train_op
        return spec

    def apply_gradients(self, original, optimizer, grads_and_vars, *args, **kwargs):
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        if not self.calling_model:
            if self.sessions is not None and self.sessions.building is not None:
                scaled = own_optimizers.scaled_rate(optimizer, self.factor)
                return self.sessions.apply_gradients(original, optimizer, pairs, scaled, *args, **kwargs)
            self.folder.note_unrecorded("an optimizer outside of a graph", sources.user_line())
            return original(optimizer, pairs, *args, **kwargs)
        capture = self.tracing or self.capture
        self.saw_gradients(optimizer, pairs)
        if hasattr(optimizer, "_hyper"):
            capture.of_keras[id(optimizer)] = keras_settings(optimizer)
            scale_keras(optimizer, self.factor)
        depth = len(capture.applied)
        with own_optimizers.scaled_rate(optimizer, self.factor):
            result = original(optimizer, pairs, *args, **kwargs)
        # A wrapping optimizer calls an inner one, which is the one that holds rates and slots.
        if len(capture.applied) == depth:
            kept = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
            capture.applied.append((optimizer, kept))
        return result

    def saw_gradients(self, optimizer, pairs):
        """What any optimizer is given, also one that hands it on to another."""
        capture = self.tracing or self.capture
        capture.offered.extend(gradient for gradient, _ in pairs if gradient is not None)
        if capture.optimizer_line is None:
            capture.optimizer_line = sources.marked(sources.outermost(("apply_gradients", "minimize"), optimizer))

    @property
    def traced(self):
        """The capture of the network that is being built for training; None when none is."""
        if self.tracing is not None or self.sessions is None:
            return self.tracing
        by_hand = self.sessions.building
        return None if by_hand is None else by_hand.capture

    @property
    def building(self):
        """Whether a network is being built for training, of whichever replica."""
        return self.calling_model or self.traced is not None

    def call_layer(self, original, layer, *args, **kwargs):
        traced = self.traced
        if traced is None:
            return original(layer, *args, **kwargs)
        return traced.layers.call(self.tf, original, layer, *args, **kwargs)

    def saw_dropout(self, rate, inputs):
        traced = self.traced
        if traced is None:
            return
        try:
            rate = parts.float32(float(rate))
        except (TypeError, ValueError):
            rate = None
        traced.dropouts.append((rate, parts.features_of(inputs), len(traced.layers.calls)))

    def dropout_places(self, model, reached):
        """How many calls of layers with weights came before each dropout; None where the program also has
        weights outside layers, so that the count would not say where the dropout is.
        """
        layers, graph = self.capture.layers, self.capture.graph
        owned = {one.op.name for variable in layers.owned for one in stored(variable)}
        known = all(part.variable.op.name in owned for part in model)
        return [layers.before(place, graph, reached) if known else None for _, _, place in self.capture.dropouts]

    def optimizer_settings(self):
        """The optimizer with the clipping of its gradients, which Keras counts among its settings."""
        capture = self.capture
        described = capture.settings()
        if described is not None:
            described["settings"].update(capture.clipping.settings(capture.offered, capture.loss))
        return described

    def source_lines(self, model):
        """{what: [path, line]} of the user's lines that are known."""
        found = dict(self.sources)
        for part in model:
            found.setdefault("variable:" + part.name, sources.line_of_operation(part.variable.op))
        found["optimizer"] = self.capture.optimizer_line
        found["loss"] = sources.line_of_operation(self.capture.loss.op)
        return {what: line for what, line in found.items() if line is not None}

    def rate_tensor(self):
        optimizer = self.capture.optimizer()
        for name in RATE_TENSORS:
            tensor = getattr(optimizer, name, None)
            if tensor is not None:
                return tensor
        return self.capture.own_rate

    def replay_dataset(self, spec):
        """The recorded batches that the coming training call is to see: as many as that call saw then."""
        done = self.steps_done
        later = [steps for steps in call_boundaries(self.folder.replay) if steps > done]
        take = min(later) - done if later else None
        apart = replicas.local(self.tf.distribute.get_strategy())
        return batches.replay_dataset(self.tf, self.folder.replay, spec, skip=done, take=take, replicas=apart)

    # -- sessions --
    def start_values(self, session):
        """Right after initialisation on the task that initialises, before the first checkpoint is written."""
        if self.loaded or self.capture is None or session.graph is not self.capture.graph:
            return
        self.loaded = True
        model = self.capture.model_parts(self.tf)
        variables = [part.variable for part in model]

        def current():
            return parts.join(model, session.run(variables))

        values = parts.initial_values(self.plan, current)
        if values is not None:
            feed = {}
            initializers = []
            for part, piece in zip(model, parts.cut(model, values)):
                for variable in part.copies:
                    initializers.append(variable.initializer)
                    feed[variable.initializer.inputs[1]] = piece
            session.run(initializers, feed)
        parts.write_arrays(self.folder.file("initial.npz"), current())

    def is_other(self, estimator):
        """Whether another Estimator is recorded: one run compares one training."""
        return self.model_dir is not None and estimator.model_dir != self.model_dir

    # -- evaluation --
    def record_evaluation(self, results, checkpoint_path):
        numbers = parts.numbers(results)
        step = int(numbers.pop("global_step"))
        if checkpoint_path:
            self.record_checkpoint(checkpoint_path, self.folder.file("evaluations", "%08d.npz" % step))
        line = {"time": time.time(), "step": step, "results": numbers}
        self.folder.append_line("evaluations.jsonl", line)

    def record_checkpoint(self, checkpoint_path, path):
        """Every number in a checkpoint, by its name there; once for each checkpoint."""
        if os.path.exists(path):
            return
        try:
            reader = self.tf.train.load_checkpoint(checkpoint_path)
            arrays = {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}
        except self.tf.errors.OpError:
            return  # the trainer keeps only so many checkpoints, and this one is gone by now
        parts.write_arrays(path, {name: value for name, value in arrays.items() if value.dtype.kind in "biufc"})

    def keep_evaluating(self, model_dir):
        """Whether an evaluator may still see a checkpoint that it has not judged."""
        latest = importlib.import_module("tensorflow.python.training.checkpoint_management").latest_checkpoint(
            model_dir
        )
        over = self.folder.training_over()
        return not over or latest != self.last_evaluated


def together(tf, captures):
    """The batch of all local replicas, and how many of its examples each of them has (None: there is one)."""
    data = (captures[0].features, captures[0].labels)
    if len(captures) == 1:
        return data, None
    leaves = list(zip(*[tf.nest.flatten((one.features, one.labels)) for one in captures]))
    whole = [values[0] if values[0] is None else replicas.joined(tf, list(values)) for values in leaves]
    return tf.nest.pack_sequence_as(data, whole), replicas.sizes_of(tf, leaves)


def activations_of(tf, captures):
    """The outputs of the layers with weights, of all local replicas one after the other."""
    found = [one.layers.activations(tf, one.graph, whole_name, ancestors([one.loss])) for one in captures]
    if len(found) == 1:
        return found[0]
    return [(same[0][0], replicas.joined(tf, [tensor for _, tensor in same])) for same in zip(*found)]


def make_hook(recorder, hooks=()):
    """The session hook that writes one record per training step of this task. ``hooks`` is the list of all
    hooks of the call, which may still grow.
    """
    tf = recorder.tf
    folder = recorder.folder

    def dense(gradient, variable):
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        rows = component(variable).shape.as_list()[0]
        return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, rows)

    # Synchronous replicas wait for each other within a step.
    turns = recorder.turns if recorder.replicas == 1 else None

    class StepHook(tf.train.SessionRunHook):
        def begin(self):
            capture = self.capture = recorder.capture
            self.model = capture.model_parts(tf)
            self.slots = capture.slot_parts(self.model)
            by_name = {part.variable.op.name: part for part in self.model}
            self.gradient_parts = []
            gradients = []
            pairings = [one.applied if one.local is None else [(None, one.local)] for one in capture.replicas]
            for place, (_, pairs) in enumerate(pairings[0]):
                for number, (_, variable) in enumerate(pairs):
                    every = [dense(*one[place][1][number]) for one in pairings]
                    self.gradient_parts.append(by_name[component(variable).op.name])
                    gradients.append(every[0] if len(every) == 1 else tf.add_n(every))
            loss = tf.cast(tf.reshape(capture.loss if capture.reduced is None else capture.reduced, []), tf.float32)
            rate = recorder.rate_tensor()
            fields = [("loss", loss)]
            if rate is not None:
                fields.append(("learning_rate", tf.cast(rate, tf.float32)))
            header = {"fields": [name for name, _ in fields]}
            tensors = [tensor for _, tensor in fields]
            self.kept, self.kept_bytes = {}, 0
            if recorder.plan.get("record_batches", True):
                data, sizes = together(tf, capture.replicas)
                header["components"], described = batches.describe(tf, data)
                tensors += described
                self.kept["batch"] = batches.pack_batch(tf, data, sizes)
            self.every = {"step": batches.pack(tf, header, tensors)}
            self.some = {"gradients": gradients}
            self.first = {}
            regular = capture.graph.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
            reached = ancestors([capture.loss])
            activations = activations_of(tf, capture.replicas)
            if activations:
                self.first["activations"] = pack_activations(tf, activations)
            self.regular = [getattr(term, "_master_tensor", term) for term in regular if counts(term, reached)]
            if self.regular:
                self.first["regular"] = self.regular
            trained = ancestors([capture.train_op])
            updates = capture.graph.get_collection(tf.GraphKeys.UPDATE_OPS)
            self.program = {
                "program": "original",
                "tensorflow": tf.__version__,
                "keras": None,
                "variables": parts.describe(self.model),
                "optimizer": recorder.optimizer_settings(),
                "raw_slots": False,
                "regularizers": len(self.regular),
                "regularization": None,
                "update_ops": len({getattr(op, "op", op).name for op in updates} & trained),
                "dropout_rates": [rate for rate, _, _ in capture.dropouts],
                "dropout_inputs": [shape for _, shape, _ in capture.dropouts],
                "dropout_after": recorder.dropout_places(self.model, reached),
                "sources": recorder.source_lines(self.model),
                "replicas": recorder.replicas,
                "in_step": recorder.in_step,
                "replicas_of_batch": recorder.local_replicas,
                "gradients": "local",
            }
            self.recorded_state = None
            self.joined = False
            self.number = recorder.steps_done

        def after_create_session(self, session, coord):
            folder.write_json("program.json", self.program)
            folder.begin_training(recorder.steps_done)
            folder.barrier("start")
            # A session that was lost and made again goes on in the same circle.
            if turns is not None and not self.joined:
                turns.join()
                self.joined = True

        def at_last_step(self, session):
            """Whether all trainers together have taken the steps that were asked for."""
            stops = [hook for hook in hooks if isinstance(hook, tf.train.StopAtStepHook)]
            return any(session.run(hook._global_step_tensor) >= hook._last_step for hook in stops)

        def before_run(self, run_context):
            if turns is None:
                self.number = recorder.steps_done + 1
            else:
                self.number = turns.take()
                # Estimator would look at the global step after one more step only.
                if turns.departed() and self.at_last_step(run_context.session):
                    raise tf.errors.OutOfRangeError(None, None, "another trainer took the last step")
            fetches = dict(self.every)
            if self.kept_bytes < batches.limit(recorder.plan):
                fetches.update(self.kept)
            if self.number in recorder.state_steps:
                fetches.update(self.some)
            if recorder.steps_done == 0:
                fetches.update(self.first)
            return tf.train.SessionRunArgs(fetches)

        def after_run(self, run_context, run_values):
            results = run_values.results
            recorder.steps_done += 1
            number = recorder.steps_done
            stamp = folder.stamp()
            if "batch" in results:
                self.kept_bytes += len(results["batch"])
                parts.write_once(folder.file("batches", stamp), results["batch"])
            parts.write_once(folder.file("steps", stamp), results["step"])
            if "activations" in results:
                parts.atomic_write(folder.file("activations", "%08d" % number), results["activations"])
            if "regular" in results:
                total = np.float32(0)
                for value in results["regular"]:
                    total = np.float32(total + value)
                self.program["regularization"] = float(total)
                folder.write_json("program.json", self.program)
            if "gradients" in results:
                whole = parts.join(self.gradient_parts, results["gradients"])
                folder_file = folder.file("gradients", "%08d.npz" % self.number)
                parts.write_arrays(folder_file, whole)
            if self.number in recorder.state_steps:
                self.record_state(run_context.session, self.number)
            if turns is not None:
                turns.stepped()
            elif number == 1:
                # A short asynchronous training could be over before a slow starter took its first step.
                folder.barrier("first-step")

        def record_state(self, session, number):
            # Whoever takes the turn reads the variables, but one folder holds them all.
            place = folder.file if turns is None else folder.leader_file
            if turns is None and not folder.leads():
                return
            self.recorded_state = number
            slots = {name: values for name, (_, values) in self.slots.items()}
            values, slots = session.run([[part.copies for part in self.model], slots])
            whole = parts.join(self.model, [parts.of_replicas(copies) for copies in values])
            parts.write_arrays(place("states", "%08d.npz" % number), whole)
            whole = {}
            for name, (owners, _) in self.slots.items():
                for variable, value in parts.join(owners, slots[name]).items():
                    whole[variable + "|" + name] = value
            parts.write_arrays(place("slots", "%08d.npz" % number), whole)

        def end(self, session):
            folder.arrive("first-step")
            if turns is not None:
                number = turns.steps()
                known = os.path.exists(folder.leader_file("states", "%08d.npz" % number))
                if number and not known and (turns.alone() or self.at_last_step(session)):
                    self.record_state(session, number)
            elif recorder.steps_done and self.recorded_state != recorder.steps_done:
                self.record_state(session, recorder.steps_done)

    return StepHook()


def install(plan, folder):
    """Records Estimators; the state of the recorder, for what else is to be recorded."""
    tf = importlib.import_module("tensorflow.compat.v1")
    estimator = importlib.import_module("tensorflow_estimator.python.estimator.estimator")
    training = importlib.import_module("tensorflow_estimator.python.estimator.training")
    optimizers = importlib.import_module("tensorflow.python.training.optimizer")
    recorder = EstimatorRecorder(tf, plan, folder)
    Estimator = estimator.Estimator

    _patch_places(tf, Estimator, recorder)
    _patch_waiting(training, plan)
    _patch_limits(training, Estimator, recorder)
    _patch_dropout(tf, recorder)
    _patch_layers(tf, recorder)
    _patch_sources(tf, Estimator, optimizers, recorder)
    watch_clipping(lambda: recorder.traced.clipping if recorder.traced is not None else None)

    parts.wrap(Estimator, "_call_model_fn", recorder.call_model_fn)
    parts.wrap(optimizers.Optimizer, "apply_gradients", recorder.apply_gradients)
    # The optimizers of Keras that an Estimator takes: all there were before 2.11, the legacy ones since.
    keras = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers).Optimizer
    if hasattr(keras, "get_updates"):
        parts.wrap(keras, "apply_gradients", recorder.apply_gradients)

    def apply_by_itself(original, self, grads_and_vars, *args, **kwargs):
        if recorder.traced is not None:
            recorder.traced.own_rate = own_optimizers.rate_of(tf, self)
        return recorder.apply_gradients(original, self, grads_and_vars, *args, **kwargs)

    own_optimizers.watch(optimizers.Optimizer, apply_by_itself)

    def train_with_spec(original, self, spec, worker_hooks, *args, **kwargs):
        if recorder.is_other(self):
            folder.another_training()
            return original(self, spec, worker_hooks, *args, **kwargs)
        recorder.model_dir = self.model_dir
        strategy = getattr(self, "_train_distribution", None)
        recorder.replicas = int(strategy.num_replicas_in_sync) if strategy is not None else 1
        recorder.local_replicas = 1 if strategy is None else replicas.local(strategy)
        if recorder.local_replicas > 1 and recorder.capture is not None:
            recorder.capture.reduced = spec.loss
        worker_hooks.insert(0, make_hook(recorder, worker_hooks))
        try:
            return original(self, spec, worker_hooks, *args, **kwargs)
        finally:
            # Not before the session is closed: the last checkpoint belongs to the last turn.
            if recorder.turns is not None:
                recorder.turns.leave()

    parts.wrap(Estimator, "_train_with_estimator_spec", train_with_spec)

    def close(original, self):
        # TensorFlow 2.15 may wait for ever for the iterator that feeds several local replicas (seen once in ten runs).
        if recorder.local_replicas == 1:
            return original(self)
        closing = threading.Thread(target=original, args=(self,))
        closing.daemon = True
        closing.start()
        closing.join(5.0)
        return None

    parts.wrap(importlib.import_module("tensorflow.python.client.session").BaseSession, "close", close)
    manager = importlib.import_module("tensorflow.python.training.session_manager").SessionManager

    def prepare_session(original, self, *args, **kwargs):
        session = original(self, *args, **kwargs)
        recorder.start_values(session)
        return session

    parts.wrap(manager, "prepare_session", prepare_session)

    if plan.get("replay"):

        def call_input_fn(original, self, input_fn, mode, *args, **kwargs):
            result = original(self, input_fn, mode, *args, **kwargs)
            if mode != tf.estimator.ModeKeys.TRAIN or recorder.is_other(self):
                return result
            with tf.device("/cpu:0"):
                return recorder.replay_dataset(element_spec(tf, result))

        parts.wrap(Estimator, "_call_input_fn", call_input_fn)

    def evaluate_run(original, self, checkpoint_path, *args, **kwargs):
        results = original(self, checkpoint_path, *args, **kwargs)
        recorder.last_evaluated = checkpoint_path
        if plan.get("evaluate", True) and not recorder.is_other(self):
            recorder.record_evaluation(results, checkpoint_path)
        return results

    parts.wrap(Estimator, "_evaluate_run", evaluate_run)
    return recorder


def element_spec(tf, result):
    """The element structure of what an input_fn returned: a dataset, or (features, labels) tensors."""
    if hasattr(result, "element_spec"):
        return result.element_spec
    if isinstance(result, tf.data.Dataset):
        return tf.data.experimental.get_structure(result)

    def spec(value):
        kind = getattr(value, "_type_spec", None)
        return kind if kind is not None else tf.TensorSpec(value.shape, value.dtype)

    return tf.nest.map_structure(spec, result)


def _patch_places(tf, Estimator, recorder):
    redirect = recorder.redirect

    def create(original, self, model_fn, model_dir=None, config=None, *args, **kwargs):
        configured = getattr(config, "model_dir", None)
        if configured and hasattr(config, "replace"):
            config = config.replace(model_dir=redirect.folder(configured))
        if model_dir is not None:
            model_dir = redirect.folder(model_dir)
        elif not configured:
            # A temporary folder of each process's own would part the tasks of a cluster.
            model_dir = os.path.join(redirect.root, "unnamed-%d" % recorder.unnamed_models)
            recorder.unnamed_models += 1
            os.makedirs(model_dir, exist_ok=True)
        return original(self, model_fn, model_dir, config, *args, **kwargs)

    parts.wrap(Estimator, "__init__", create)
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


def _patch_waiting(training, plan):
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

    evaluator = plan["task"]["type"] == "evaluator"
    make = training.EvalSpec.__new__

    @functools.wraps(make)
    def make_eval_spec(cls, *args, **kwargs):
        spec = make(cls, *args, **kwargs)
        throttle = min(spec.throttle_secs, 1) if evaluator else spec.throttle_secs
        return spec._replace(start_delay_secs=0, throttle_secs=throttle)

    training.EvalSpec.__new__ = staticmethod(make_eval_spec)


def _patch_limits(training, Estimator, recorder):
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


def _patch_layers(tf, recorder):
    """The call of every layer, of tf.layers and of tf.keras.layers."""
    for kind in tf.layers.Dense.__mro__:
        if kind.__name__ == "Layer" and "__call__" in vars(kind):
            parts.wrap(kind, "__call__", recorder.call_layer)


def _patch_sources(tf, Estimator, optimizers, recorder):
    """The lines of the user's program that train, read data and make the optimizer."""

    def make_optimizer(original, self, *args, **kwargs):
        line = sources.user_line(self, "__init__")
        original(self, *args, **kwargs)
        sources.mark(self, line)

    parts.wrap(optimizers.Optimizer, "__init__", make_optimizer)

    def train(original, self, *args, **kwargs):
        recorder.sources.setdefault("train", sources.user_line(self, "train"))
        return original(self, *args, **kwargs)

    parts.wrap(Estimator, "train", train)

    def call_input_fn(original, self, input_fn, mode, *args, **kwargs):
        if mode == tf.estimator.ModeKeys.TRAIN:
            recorder.sources.setdefault("input", sources.line_of_function(input_fn))
        return original(self, input_fn, mode, *args, **kwargs)

    parts.wrap(Estimator, "_call_input_fn", call_input_fn)

    def apply_gradients(original, self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        if recorder.calling_model:
            recorder.saw_gradients(self, pairs)
        return original(self, pairs, *args, **kwargs)

    # It gathers gradients before the optimizer that it wraps sees them.
    synchronous = importlib.import_module("tensorflow.python.training.sync_replicas_optimizer")
    parts.wrap(synchronous.SyncReplicasOptimizer, "apply_gradients", apply_gradients)


def _patch_dropout(tf, recorder):
    """Both tf.layers.dropout (through the Keras layer) and tf.nn.dropout, where TensorFlow has them."""
    pin = recorder.plan.get("pin_dropout", True)
    inside = []

    def note(rate, inputs):
        if not inside:
            recorder.saw_dropout(rate, inputs)

    def call(original, self, inputs, training=None):
        # tf.layers passes the truth value of the mode comparison.
        if training is None or training is False or not recorder.building:
            return original(self, inputs, training=training)
        note(self.rate, inputs)
        if pin:
            return tf.identity(inputs)
        inside.append(True)
        try:
            return original(self, inputs, training=training)
        finally:
            inside.pop()

    kinds = [kind for kind in tf.layers.Dropout.__mro__ if kind.__name__ == "Dropout" and "call" in vars(kind)]
    parts.wrap(kinds[-1], "call", call)

    def function(original, x, *args, **kwargs):
        rate = kwargs.get("rate")
        if rate is None:
            keep = kwargs.get("keep_prob", args[0] if args else None)
            rate = None if keep is None else 1.0 - keep
        if not recorder.building or inside:
            return original(x, *args, **kwargs)
        note(rate, x)
        return tf.identity(x) if pin else original(x, *args, **kwargs)

    # In TensorFlow 1 the module that programs import is another one than its compat.v1.
    modules = [tf.nn]
    if tf.__version__.startswith("1."):
        modules.append(importlib.import_module("tensorflow").nn)
    for module in modules:
        parts.wrap(module, "dropout", function)
