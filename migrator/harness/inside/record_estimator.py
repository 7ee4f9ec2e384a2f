"""Records an Estimator program (TensorFlow 1.15, or 2.x through compat.v1) by patches on TensorFlow's own
classes.
"""

import functools
import importlib
import os
import time

import batches
import numpy as np
import parts
from folder import call_boundaries
from redirect import Redirect, patch_argument, patch_checkpoint_functions

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
        },
        {},
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
    "m": "first_moment",
    "v": "second_moment",
    "rms": "second_moment",
    "mg": "first_moment",
}
RATE_ATTRIBUTES = ("_lr", "_learning_rate")
RATE_TENSORS = ("_learning_rate_tensor", "_lr_t")


def component(variable):
    """The variable of this replica, for a variable that a strategy mirrors."""
    values = getattr(variable, "values", None)
    return values[0] if isinstance(values, (tuple, list)) and values else variable


def make_part(variable, trainable):
    """The Part of a graph variable; partitions know their place by ``_save_slice_info``."""
    variable = component(variable)
    shape = variable.shape.as_list()
    dtype = variable.dtype.base_dtype.name
    piece = getattr(variable, "_save_slice_info", None)
    if piece is None:
        return parts.Part(variable.op.name, variable, [0] * len(shape), shape, shape, dtype, trainable)
    return parts.Part(piece.full_name, variable, piece.var_offset, shape, piece.full_shape, dtype, trainable)


def ancestors(tensors):
    """The names of all operations that some tensors or operations depend on."""
    seen = set()
    waiting = [getattr(tensor, "op", tensor) for tensor in tensors]
    while waiting:
        operation = waiting.pop()
        if operation is None or operation.name in seen:
            continue
        seen.add(operation.name)
        waiting.extend(tensor.op for tensor in operation.inputs)
        waiting.extend(operation.control_inputs)
    return seen


class Capture(object):
    """What one call of model_fn for training showed: tensors of this worker's replica."""

    def __init__(self, graph, features, labels):
        self.graph = graph
        self.features = features
        self.labels = labels
        self.loss = None
        self.train_op = None
        self.applied = []  # (optimizer, [(gradient, variable)])

    def optimizer(self):
        return self.applied[0][0] if self.applied else None

    def model_parts(self, tf):
        """Parts of the model's variables in creation order: neither slots nor the global step."""
        excluded = set()
        for optimizer, _ in self.applied:
            excluded.update(component(variable).op.name for variable in optimizer.variables())
        step = tf.train.get_global_step(self.graph)
        if step is not None:
            excluded.add(component(step).op.name)
        trainable = {component(v).op.name for v in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        found = []
        for variable in self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
            name = component(variable).op.name
            if name not in excluded:
                found.append(make_part(variable, name in trainable))
        return found

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
        for kind in type(optimizer).__mro__:
            if kind.__name__ in OPTIMIZERS:
                break
        else:
            return {"name": type(optimizer).__name__, "settings": {}}
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


class EstimatorRecorder(object):
    """State of the recorder in one process."""

    def __init__(self, tf, plan, folder):
        self.tf = tf
        self.plan = plan
        self.folder = folder
        self.redirect = Redirect(plan["model_dir"])
        self.factor = float(plan.get("learning_rate_factor") or 1.0)
        self.capture = None
        self.calling_model = False
        self.steps_done = 0
        self.loaded = False
        self.dropout_rates = []
        self.dropout_inputs = []
        self.state_steps = set(plan.get("state_steps") or [])
        self.replicas = 1
        self.last_evaluated = None
        self.unnamed_models = 0

    # -- capture --
    def call_model_fn(self, original, estimator, features, labels, mode, config):
        if mode != self.tf.estimator.ModeKeys.TRAIN:
            return original(estimator, features, labels, mode, config)
        graph = self.tf.get_default_graph()
        capture = Capture(graph, features, labels)
        if self.capture is None or self.capture.graph is not graph:
            self.capture = capture
        del self.dropout_rates[:]
        del self.dropout_inputs[:]
        self.calling_model = True
        try:
            spec = original(estimator, features, labels, mode, config)
        finally:
            self.calling_model = False
        self.capture.loss = spec.loss if self.capture.loss is None else self.capture.loss
        self.capture.train_op = spec.train_op
        return spec

    def apply_gradients(self, original, optimizer, grads_and_vars, *args, **kwargs):
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        if not self.calling_model:
            return original(optimizer, pairs, *args, **kwargs)
        before = {}
        if self.factor != 1.0:
            for name in RATE_ATTRIBUTES:
                rate = getattr(optimizer, name, None)
                if rate is not None:
                    before[name] = rate
                    scaled = (lambda r=rate: r() * self.factor) if callable(rate) else rate * self.factor
                    setattr(optimizer, name, scaled)
        depth = len(self.capture.applied)
        try:
            result = original(optimizer, pairs, *args, **kwargs)
        finally:
            for name, rate in before.items():
                setattr(optimizer, name, rate)
        # A wrapping optimizer calls an inner one, which is the one that holds rates and slots.
        if len(self.capture.applied) == depth:
            kept = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
            self.capture.applied.append((optimizer, kept))
        return result

    def rate_tensor(self):
        optimizer = self.capture.optimizer()
        for name in RATE_TENSORS:
            tensor = getattr(optimizer, name, None)
            if tensor is not None:
                return tensor
        return None

    def replay_dataset(self, spec):
        """The recorded batches that the coming training call is to see: as many as that call saw then."""
        done = self.steps_done
        later = [steps for steps in call_boundaries(self.folder.replay) if steps > done]
        take = min(later) - done if later else None
        return batches.replay_dataset(self.tf, self.folder.replay, spec, skip=done, take=take)

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
                initializer = part.variable.initializer
                initializers.append(initializer)
                feed[initializer.inputs[1]] = piece
            session.run(initializers, feed)
        parts.write_arrays(self.folder.file("initial.npz"), current())

    # -- evaluation --
    def record_evaluation(self, results):
        numbers = {key: float(np.asarray(value)) for key, value in results.items() if np.asarray(value).ndim == 0}
        self.folder.append_line("evaluations.jsonl", {"time": time.time(), "results": numbers})

    def keep_evaluating(self, model_dir):
        """Whether an evaluator may still see a checkpoint that it has not judged."""
        latest = importlib.import_module("tensorflow.python.training.checkpoint_management").latest_checkpoint(
            model_dir
        )
        over = self.folder.training_over()
        return not over or latest != self.last_evaluated


def make_hook(recorder):
    """The session hook that writes one record per training step of this task."""
    tf = recorder.tf
    folder = recorder.folder

    class StepHook(tf.train.SessionRunHook):
        def begin(self):
            capture = self.capture = recorder.capture
            self.model = capture.model_parts(tf)
            self.slots = capture.slot_parts(self.model)
            by_name = {part.variable.op.name: part for part in self.model}
            self.gradient_parts = []
            gradients = []
            for _, pairs in capture.applied:
                for gradient, variable in pairs:
                    if isinstance(gradient, tf.IndexedSlices):
                        gradient = tf.math.unsorted_segment_sum(
                            gradient.values, gradient.indices, component(variable).shape.as_list()[0]
                        )
                    self.gradient_parts.append(by_name[component(variable).op.name])
                    gradients.append(gradient)
            loss = tf.cast(tf.reshape(capture.loss, []), tf.float32)
            rate = recorder.rate_tensor()
            fields = [("loss", loss)]
            if rate is not None:
                fields.append(("learning_rate", tf.cast(rate, tf.float32)))
            header = {"fields": [name for name, _ in fields]}
            self.every = {"step": batches.pack(tf, header, [tensor for _, tensor in fields])}
            if recorder.plan.get("record_batches", True):
                data = (capture.features, capture.labels)
                self.every["batch"] = batches.pack_batch(tf, data)
            self.some = {"gradients": gradients}
            regular = capture.graph.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
            reached = ancestors([capture.loss])
            self.regular = [tensor for tensor in regular if tensor.op.name in reached]
            trained = ancestors([capture.train_op])
            updates = capture.graph.get_collection(tf.GraphKeys.UPDATE_OPS)
            self.program = {
                "program": "original",
                "tensorflow": tf.__version__,
                "keras": None,
                "variables": parts.describe(self.model),
                "optimizer": capture.settings(),
                "raw_slots": False,
                "regularizers": len(self.regular),
                "regularization": None,
                "update_ops": len({getattr(op, "op", op).name for op in updates} & trained),
                "dropout_rates": list(recorder.dropout_rates),
                "dropout_inputs": list(recorder.dropout_inputs),
                "replicas": recorder.replicas,
                "gradients": "local",
            }
            self.recorded_state = None

        def after_create_session(self, session, coord):
            folder.write_json("program.json", self.program)
            folder.begin_training(recorder.steps_done)
            folder.barrier("start")

        def before_run(self, run_context):
            fetches = dict(self.every)
            if recorder.steps_done + 1 in recorder.state_steps:
                fetches.update(self.some)
            if recorder.steps_done == 0 and self.regular:
                fetches["regular"] = self.regular
            return tf.train.SessionRunArgs(fetches)

        def after_run(self, run_context, run_values):
            results = run_values.results
            recorder.steps_done += 1
            number = recorder.steps_done
            stamp = folder.stamp()
            if "batch" in results:
                parts.atomic_write(folder.file("batches", stamp), results["batch"])
            parts.atomic_write(folder.file("steps", stamp), results["step"])
            if "regular" in results:
                total = np.float32(0)
                for value in results["regular"]:
                    total = np.float32(total + value)
                self.program["regularization"] = float(total)
                folder.write_json("program.json", self.program)
            if "gradients" in results:
                whole = parts.join(self.gradient_parts, results["gradients"])
                folder_file = folder.file("gradients", "%08d.npz" % number)
                parts.write_arrays(folder_file, whole)
            if number in recorder.state_steps:
                self.record_state(run_context.session, number)
            if number == 1:
                # A short asynchronous training could be over before a slow starter took its first step.
                folder.barrier("first-step")

        def record_state(self, session, number):
            if not folder.leads():
                return
            self.recorded_state = number
            slots = {name: values for name, (_, values) in self.slots.items()}
            values, slots = session.run([[part.variable for part in self.model], slots])
            parts.write_arrays(folder.file("states", "%08d.npz" % number), parts.join(self.model, values))
            whole = {}
            for name, (owners, _) in self.slots.items():
                for variable, value in parts.join(owners, slots[name]).items():
                    whole[variable + "|" + name] = value
            parts.write_arrays(folder.file("slots", "%08d.npz" % number), whole)

        def end(self, session):
            folder.arrive("first-step")
            if recorder.steps_done and self.recorded_state != recorder.steps_done:
                self.record_state(session, recorder.steps_done)

    return StepHook()


def install(plan, folder):
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

    parts.wrap(Estimator, "_call_model_fn", recorder.call_model_fn)
    parts.wrap(optimizers.Optimizer, "apply_gradients", recorder.apply_gradients)

    def train_with_spec(original, self, spec, worker_hooks, *args, **kwargs):
        strategy = getattr(self, "_train_distribution", None)
        recorder.replicas = int(strategy.num_replicas_in_sync) if strategy is not None else 1
        worker_hooks.insert(0, make_hook(recorder))
        return original(self, spec, worker_hooks, *args, **kwargs)

    parts.wrap(Estimator, "_train_with_estimator_spec", train_with_spec)

    manager = importlib.import_module("tensorflow.python.training.session_manager").SessionManager

    def prepare_session(original, self, *args, **kwargs):
        session = original(self, *args, **kwargs)
        recorder.start_values(session)
        return session

    parts.wrap(manager, "prepare_session", prepare_session)

    if plan.get("replay"):

        def call_input_fn(original, self, input_fn, mode, *args, **kwargs):
            result = original(self, input_fn, mode, *args, **kwargs)
            if mode != tf.estimator.ModeKeys.TRAIN:
                return result
            with tf.device("/cpu:0"):
                return recorder.replay_dataset(element_spec(tf, result))

        parts.wrap(Estimator, "_call_input_fn", call_input_fn)

    if plan.get("evaluate", True):

        def evaluate_run(original, self, checkpoint_path, *args, **kwargs):
            results = original(self, checkpoint_path, *args, **kwargs)
            recorder.last_evaluated = checkpoint_path
            recorder.record_evaluation(results)
            return results

        parts.wrap(Estimator, "_evaluate_run", evaluate_run)


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
                steps = min(steps, limit - recorder.steps_done)
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


def _patch_dropout(tf, recorder):
    """Both tf.layers.dropout (through the Keras layer) and tf.nn.dropout, where TensorFlow has them."""
    pin = recorder.plan.get("pin_dropout", True)
    inside = []

    def note(rate, inputs):
        if recorder.calling_model and not inside:
            recorder.dropout_inputs.append(parts.features_of(inputs))
            try:
                recorder.dropout_rates.append(parts.float32(float(rate)))
            except (TypeError, ValueError):
                recorder.dropout_rates.append(None)

    def call(original, self, inputs, training=None):
        # tf.layers passes the truth value of the mode comparison.
        if training is None or training is False or not recorder.calling_model:
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
        if not recorder.calling_model or inside:
            return original(x, *args, **kwargs)
        note(rate, x)
        return tf.identity(x) if pin else original(x, *args, **kwargs)

    parts.wrap(tf.nn, "dropout", function)
