"""Makes a known-bad version of the migrated program while it runs: one mistake, by patches on Keras and tf.data.

The mistake is made where a program would make it (an argument of a layer, a step of the input pipeline, a
setting of the optimizer), so that everything behind that place, the recorder included, sees a program that was
written so. A mistake that is "unseen" is made behind the place where settings are read back: only the numbers
can show it. ``mutant.json`` in the task folder says in how many places the program was changed; zero means
that the program has nothing to make this mistake in.
"""

import functools
import importlib
import inspect

import numpy as np
import parts
from keras_optimizers import slot_asked, stock_class, value_of
from keras_variables import assign, read

TWIN = "_tf_migrate_twin"
FULL = "_tf_migrate_full_batch"
BEFORE_REPEAT = "_tf_migrate_before_repeat"
FOR_EVALUATION = "_tf_migrate_for_evaluation"
UNKNOWN = -2  # a cardinality


def _same(one, other):
    """Equal, numbers as float32 sees them."""
    if one is None or other is None:
        return one is other
    return bool(np.float32(one) == np.float32(other))


class Mutation(object):
    """The mistake of this process: its parameters, and in how many places it was made."""

    def __init__(self, tf, mutant, folder):
        self.tf = tf
        self.mutant = mutant
        self.folder = folder
        self.base = tf.keras.Model.__module__.split(".")[0] + ".src."
        self.model = self.module("engine.training").Model
        self.changed = 0
        self.phases = []
        self.seen = []
        self.write()

    @property
    def optimizers(self):
        """The base classes of Keras' optimizers: that of the newer ones, and that of those before 2.11."""
        newer, older = self.module("optimizers.optimizer"), self.module("optimizers.legacy.optimizer_v2")
        return newer._BaseOptimizer, older.OptimizerV2

    def module(self, name):
        return importlib.import_module(self.base + name)

    def write(self):
        self.folder.write_json("mutant.json", {"id": self.mutant.get("id"), "changed": self.changed})

    def change(self, thing=None):
        """Counts a changed place; each thing counts once."""
        if thing is not None:
            if any(thing is other for other in self.seen):
                return
            self.seen.append(thing)
        self.changed += 1
        self.write()

    @property
    def phase(self):
        """ "train" in fit, "evaluate" in evaluate, None elsewhere."""
        return self.phases[-1] if self.phases else None

    def watch_phases(self):
        def watch(phase):
            def around(original, model, *args, **kwargs):
                self.phases.append(phase)
                try:
                    return original(model, *args, **kwargs)
                finally:
                    self.phases.pop()

            return around

        parts.wrap(self.model, "fit", watch("train"))
        parts.wrap(self.model, "evaluate", watch("evaluate"))


# -- optimizers --


def _each_optimizer(mutation, change):
    """Has ``change(optimizer)`` (True: something was changed) called on each optimizer of a compiled model."""
    newer, older = mutation.optimizers
    settled = []

    def settle(optimizer):
        if not any(optimizer is other for other in settled):
            settled.append(optimizer)
            if change(optimizer):
                mutation.change()

    if mutation.mutant.get("unseen"):
        # Built in the first step, after the settings were read back.
        def build(original, optimizer, *args, **kwargs):
            settle(optimizer)
            return original(optimizer, *args, **kwargs)

        parts.wrap(newer, "build", build)
        parts.wrap(older, "_create_all_weights", build)
        return

    def compiled(original, model, *args, **kwargs):
        result = original(model, *args, **kwargs)
        optimizer = getattr(model, "optimizer", None)
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        if isinstance(optimizer, (newer, older)):
            settle(optimizer)
        return result

    parts.wrap(mutation.model, "compile", compiled)


def learning_rate(mutation):
    """``factor``; ``unseen``: the rate reads right and the update uses another."""
    factor = float(mutation.mutant["factor"])
    module = mutation.module("optimizers.optimizer")
    if mutation.mutant.get("unseen"):
        _scaled_updates(mutation, module, factor)
        return
    schedules = mutation.tf.keras.optimizers.schedules

    class Scaled(schedules.LearningRateSchedule):
        def __init__(self, inner):
            super(Scaled, self).__init__()
            self.inner = inner

        def __call__(self, step):
            return self.inner(step) * factor

        def get_config(self):
            return {"inner": self.inner}

    def build(original, optimizer, rate):
        mutation.change()
        if isinstance(rate, schedules.LearningRateSchedule):
            return original(optimizer, Scaled(rate))
        return original(optimizer, rate * factor)

    def set_hyper(original, optimizer, name, value):
        if name == "learning_rate":
            mutation.change()
            value = Scaled(value) if isinstance(value, schedules.LearningRateSchedule) else value * factor
        return original(optimizer, name, value)

    parts.wrap(module.Optimizer, "_build_learning_rate", build)
    parts.wrap(mutation.optimizers[1], "_set_hyper", set_hyper)


def _scaled_updates(mutation, module, factor):
    updating = []
    rate = module._BaseOptimizer.learning_rate

    def scaled(optimizer):
        value = rate.fget(optimizer)
        return value * factor if optimizer in updating else value

    def update(original, optimizer, *args, **kwargs):
        mutation.change(optimizer)
        updating.append(optimizer)
        try:
            return original(optimizer, *args, **kwargs)
        finally:
            updating.remove(optimizer)

    def decayed(original, optimizer, *args, **kwargs):
        value = original(optimizer, *args, **kwargs)
        return value * factor if preparing else value

    preparing = []

    def prepare(original, optimizer, *args, **kwargs):
        mutation.change(optimizer)
        preparing.append(optimizer)
        try:
            return original(optimizer, *args, **kwargs)
        finally:
            preparing.pop()

    module._BaseOptimizer.learning_rate = property(scaled, rate.fset)
    parts.wrap(module.Optimizer, "_distributed_apply_gradients_fn", update)
    parts.wrap(mutation.optimizers[1], "_prepare", prepare)
    parts.wrap(mutation.optimizers[1], "_decayed_lr", decayed)


def optimizer_setting(mutation):
    """``setting`` becomes ``value``, where it is another (and, if given, where it is ``only_from``)."""
    mutant = mutation.mutant

    def change(optimizer):
        current = value_of(optimizer, mutant["setting"])
        if hasattr(current, "numpy"):
            current = current.numpy().item()
        if not isinstance(current, (bool, int, float)) or _same(current, mutant["value"]):
            return False
        if "only_from" in mutant and not _same(current, mutant["only_from"]):
            return False
        setattr(optimizer, mutant["setting"], mutant["value"])
        return True

    _each_optimizer(mutation, change)


def nesterov(mutation):
    """The other of the two momentum rules, where there is momentum."""

    def change(optimizer):
        if not isinstance(getattr(optimizer, "nesterov", None), bool) or not value_of(optimizer, "momentum"):
            return False
        optimizer.nesterov = not optimizer.nesterov
        return True

    _each_optimizer(mutation, change)


def clipping(mutation):
    """Gradients clipped by the global ``norm`` where nothing clips them; None: whatever clips is gone."""
    tf = mutation.tf
    names = ("clipnorm", "clipvalue", "global_clipnorm")
    norm = mutation.mutant["norm"]

    def concerned(optimizer):
        return any(getattr(optimizer, name, None) for name in names) == (norm is None)

    def change(optimizer):
        if not concerned(optimizer):
            return False
        for name in names:
            setattr(optimizer, name, None)
        if norm is not None:
            optimizer.global_clipnorm = float(norm)
        return True

    def clip(original, optimizer, gradients):
        if not concerned(optimizer):
            return original(optimizer, gradients)
        mutation.change(optimizer)
        if norm is None:
            return gradients
        # By hand: calls of TensorFlow's own functions for this are read back.
        there = [gradient for gradient in gradients if gradient is not None]
        values = [getattr(gradient, "values", gradient) for gradient in there]
        total = tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(tf.cast(value, tf.float32))) for value in values]))
        return [_scaled(tf, gradient, norm / tf.maximum(total, norm)) for gradient in gradients]

    def transform(original, optimizer, pairs):
        pairs = list(pairs)
        if not concerned(optimizer):
            return original(optimizer, pairs)
        gradients = clip(None, optimizer, [gradient for gradient, _ in pairs])
        return [(gradient, variable) for gradient, (_, variable) in zip(gradients, pairs)]

    if mutation.mutant.get("unseen"):
        newer, older = mutation.optimizers
        parts.wrap(newer, "_clip_gradients", clip)
        parts.wrap(older, "_transform_gradients", transform)
    else:
        _each_optimizer(mutation, change)


def sparse_rows(mutation):
    """What happens to the rows that a sparse gradient does not name.

    ``rows`` "untouched": variable and slots stay there. "dense": an optimizer that leaves them moves them by their
    momentum, as the newer SGD of Keras does.
    """
    tf = mutation.tf
    newer, older = mutation.optimizers
    slots = {}

    def key_of(variable):
        variable = getattr(variable, "_distributed_container", lambda: variable)()
        return variable._unique_id

    def remember(original, optimizer, *args, **kwargs):
        slot = original(optimizer, *args, **kwargs)
        slots.setdefault((id(optimizer), key_of(slot_asked(*args, **kwargs)[0])), []).append(slot)
        return slot

    def summed(gradient, values, variable):
        return tf.math.unsorted_segment_sum(values, gradient.indices, variable.shape[0])

    def untouched(apply, optimizer, gradient, variable):
        kept = [variable, *slots.get((id(optimizer), key_of(variable)), [])]
        kept = [one for one in kept if one.shape == variable.shape]
        before = [tf.identity(one) for one in kept]
        result = apply()
        count = summed(gradient, tf.ones_like(gradient.indices, tf.float32), variable)
        touched = tf.reshape(count > 0, [-1] + [1] * (len(variable.shape) - 1))
        for one, old in zip(kept, before):
            one.assign(tf.where(touched, tf.identity(one), old))
        return result

    def update(original, optimizer, gradient, variable):
        if not isinstance(gradient, tf.IndexedSlices):
            return original(optimizer, gradient, variable)
        if mutation.mutant["rows"] == "untouched":
            mutation.change(variable)
            return untouched(lambda: original(optimizer, gradient, variable), optimizer, gradient, variable)
        stock = stock_class(optimizer)
        own = stock is None or type(optimizer).update_step is not stock.update_step
        if not own or not getattr(optimizer, "momentum", 0):
            return original(optimizer, gradient, variable)
        mutation.change(variable)
        return original(optimizer, summed(gradient, gradient.values, variable), variable)

    def apply_sparse(original, optimizer, grad, variable, indices, **kwargs):
        gradient = tf.IndexedSlices(grad, indices)

        def apply():
            return original(optimizer, grad, variable, indices, **kwargs)

        if mutation.mutant["rows"] == "untouched":
            mutation.change(variable)
            return untouched(apply, optimizer, gradient, variable)
        if not isinstance(optimizer, stock) or not optimizer._momentum:
            return apply()
        mutation.change(variable)
        return optimizer._resource_apply_dense(summed(gradient, grad, variable), variable, **kwargs)

    parts.wrap(newer, "add_variable_from_reference", remember)
    parts.wrap(older, "add_slot", remember)
    parts.wrap(newer, "_update_step", update)
    stock = mutation.module("optimizers.legacy.gradient_descent").SGD  # has this method of its own
    for kind in (older, stock):
        parts.wrap(kind, "_resource_apply_sparse_duplicate_indices", apply_sparse)


# -- the loss --


def loss_reduction(mutation):
    """The mean over the batch becomes a sum."""
    container = mutation.module("engine.compile_utils").LossesContainer

    def get(original, losses, loss):
        result = original(losses, loss)
        if getattr(result, "reduction", None) in ("auto", "sum_over_batch_size"):
            result.reduction = "sum"
            result.call = summed(result, result.call)
        return result

    def summed(result, call):
        @functools.wraps(call)
        def of_examples(*args, **kwargs):
            losses = call(*args, **kwargs)
            # Of outputs of rank one a loss of Keras is one number already, whose sum is its mean.
            if getattr(getattr(losses, "shape", None), "rank", None) != 0:
                mutation.change(result)
            return losses

        return of_examples

    parts.wrap(container, "_get_loss_object", get)

    def average(original, per_example_loss, *args, **kwargs):
        # In a loop of the program's own: what is divided by the size of the batch is not.
        loss = original(per_example_loss, *args, **kwargs)
        size = kwargs.get("global_batch_size", args[1] if len(args) > 1 else None)
        if size is None:
            return loss
        mutation.change()
        return loss * mutation.tf.cast(size, loss.dtype)

    parts.wrap(mutation.tf.nn, "compute_average_loss", average)


def partial_batch(mutation):
    """The mean over a batch that is not full divides by the size of a full one."""
    tf = mutation.tf
    full = []

    def batch(dataset, original, batch_size, *args, **kwargs):
        twin = original(dataset, batch_size, *args, **kwargs)
        number = tf.get_static_value(tf.convert_to_tensor(batch_size))
        if number is None:
            return None
        setattr(twin, FULL, int(number))
        return twin

    def swapped(twin, replicas):
        full.append(getattr(twin, FULL) // replicas)

    _pipelines(mutation, "train", dict.fromkeys(BATCHES, batch), swapped)

    def call(original, loss, y_true, *args, **kwargs):
        value = original(loss, y_true, *args, **kwargs)
        if mutation.phase != "train" or not full or loss.reduction not in ("auto", "sum_over_batch_size"):
            return value
        mutation.change(loss)
        size = tf.shape(tf.nest.flatten(y_true)[0])[0]
        return value * (tf.cast(size, value.dtype) / full[-1])

    parts.wrap(mutation.module("losses").Loss, "__call__", call)


def regularizers(mutation):
    """``change`` "dropped", "doubled", or "first_dropped"."""
    layer = mutation.module("engine.base_layer").Layer
    change = mutation.mutant["change"]
    met = []

    def weight(original, itself, name, variable, regularizer):
        met.append(name)
        if change == "doubled":
            mutation.change()
            return original(itself, name, variable, lambda value: 2.0 * regularizer(value))
        if change == "dropped" or len(met) == 1:
            mutation.change()
            return None
        return original(itself, name, variable, regularizer)

    def activity(original, itself, inputs, outputs):
        if getattr(itself, "_activity_regularizer", None) is None or change == "first_dropped":
            return original(itself, inputs, outputs)
        mutation.change(itself)
        if change == "doubled":
            original(itself, inputs, outputs)
            return original(itself, inputs, outputs)
        return None

    parts.wrap(layer, "_handle_weight_regularization", weight)
    parts.wrap(layer, "_handle_activity_regularization", activity)


# -- input pipelines --

BATCHES = ("batch", "padded_batch", "ragged_batch")


def _pipelines(mutation, side, edits, swapped=None):
    """Every dataset with the mistake in it gets a twin that has it; fit or evaluate is given the twin.

    ``side`` is "train" or "evaluate". ``edits``: name of a Dataset method -> function (dataset, the unpatched
    method, its arguments) that returns the mistaken result, or None where there is nothing to mistake.
    ``swapped(twin, replicas)`` is told of each swap in the place of counting it as a change.
    """
    tf = mutation.tf
    strategy = tf.distribute.Strategy
    creator = tf.keras.utils.experimental.DatasetCreator
    names = [
        name
        for name, method in vars(tf.data.Dataset).items()
        if not name.startswith("_") and inspect.isfunction(method)
    ]

    def follow(name):
        def around(original, dataset, *args, **kwargs):
            result = original(dataset, *args, **kwargs)
            if not isinstance(result, tf.data.Dataset):
                return result
            twin = getattr(dataset, TWIN, None)
            if twin is not None:
                mistaken = original(twin, *args, **kwargs)
                if hasattr(twin, FULL):
                    setattr(mistaken, FULL, getattr(twin, FULL))
            elif name in edits:
                mistaken = edits[name](dataset, original, *args, **kwargs)
            else:
                mistaken = None
            if mistaken is not None and not hasattr(result, TWIN):
                setattr(result, TWIN, mistaken)
            return result

        return around

    for name in names:
        parts.wrap(tf.data.Dataset, name, follow(name))

    def swap(dataset, replicas=1):
        twin = getattr(dataset, TWIN, None)
        if twin is None:
            return dataset
        if swapped is None:
            mutation.change()
        else:
            swapped(twin, replicas)
        return twin

    def from_creator(original, itself, *args, **kwargs):
        result = original(itself, *args, **kwargs)
        evaluates = getattr(itself, FOR_EVALUATION, False) or mutation.phase == "evaluate"
        return swap(result) if evaluates == (side == "evaluate") else result

    def from_function(original, itself, dataset_fn, *args, **kwargs):
        def function(context):
            result = dataset_fn(context)
            return swap(result) if mutation.phase != "evaluate" else result

        own = isinstance(dataset_fn, creator) or side == "evaluate"
        return original(itself, dataset_fn if own else function, *args, **kwargs)

    parts.wrap(creator, "__call__", from_creator)
    parts.wrap(strategy, "distribute_datasets_from_function", from_function)
    arguments = {"fit": inspect.signature(mutation.model.fit), "evaluate": inspect.signature(mutation.model.evaluate)}

    def given(name):
        def around(original, model, *args, **kwargs):
            bound = arguments[name].bind(model, *args, **kwargs)
            replicas = model.distribute_strategy.num_replicas_in_sync
            validation = bound.arguments.get("validation_data")
            if isinstance(validation, creator):
                setattr(validation, FOR_EVALUATION, True)
            key = {("fit", "train"): "x", ("fit", "evaluate"): "validation_data", ("evaluate", "evaluate"): "x"}
            place = key.get((name, side))
            if isinstance(bound.arguments.get(place), tf.data.Dataset):
                bound.arguments[place] = swap(bound.arguments[place], replicas)
            return original(*bound.args, **bound.kwargs)

        return around

    parts.wrap(mutation.model, "fit", given("fit"))
    parts.wrap(mutation.model, "evaluate", given("evaluate"))


def _all_but(tf, dataset, count):
    """The dataset without its last ``count`` elements; None where that would leave nothing, or never ends."""
    size = dataset.cardinality()
    if not tf.executing_eagerly():
        return dataset.take(tf.where(size > count, size - count, tf.constant(-1, tf.int64)))
    size = int(size)
    if size > count:
        return dataset.take(size - count)
    if size != UNKNOWN or count != 1 or not any(True for _ in dataset.skip(1).take(1)):
        return None
    return tf.data.Dataset.zip((dataset, dataset.skip(1))).map(lambda element, following: element)


def dropped_batch(mutation):
    """The last batch of an epoch (``side`` "train") or of an evaluation ("evaluate") is left out."""
    tf = mutation.tf
    repeat = tf.data.Dataset.repeat

    def batch(dataset, original, batch_size, *args, **kwargs):
        repeated = getattr(dataset, BEFORE_REPEAT, None)
        if repeated is None:
            return _all_but(tf, original(dataset, batch_size, *args, **kwargs), 1)
        # Repeated before it is batched: the last batch of an epoch is its last examples.
        earlier, arguments = repeated
        number = tf.get_static_value(tf.convert_to_tensor(batch_size))
        shorter = None if number is None else _all_but(tf, earlier, int(number))
        return None if shorter is None else original(repeat(shorter, *arguments), batch_size, *args, **kwargs)

    def remember(original, dataset, *args, **kwargs):
        result = original(dataset, *args, **kwargs)
        setattr(result, BEFORE_REPEAT, (dataset, tuple(args) + tuple(kwargs.values())))
        return result

    _pipelines(mutation, mutation.mutant["side"], dict.fromkeys(BATCHES, batch))
    parts.wrap(tf.data.Dataset, "repeat", remember)


def batch_size(mutation):
    """``change`` "half" or "minus_one" of the examples in each batch."""
    tf = mutation.tf

    def batch(dataset, original, batch_size, *args, **kwargs):
        number = tf.get_static_value(tf.convert_to_tensor(batch_size))
        if number is None or number < 2:
            return None
        smaller = int(number) // 2 if mutation.mutant["change"] == "half" else int(number) - 1
        return original(dataset, smaller, *args, **kwargs)

    _pipelines(mutation, "train", dict.fromkeys(BATCHES, batch))


def shuffle(mutation):
    """``change`` "seed": another fixed order, where the order is fixed; "none": the order of the source."""
    tf = mutation.tf
    context = importlib.import_module("tensorflow.python.eager.context")

    def edit(dataset, original, buffer_size, seed=None, *args, **kwargs):
        if mutation.mutant["change"] == "none":
            return dataset
        if seed is None and context.global_seed() is None:
            return None
        number = None if seed is None else tf.get_static_value(tf.convert_to_tensor(seed))
        return original(dataset, buffer_size, 87654321 if number is None else int(number) + 1, *args, **kwargs)

    _pipelines(mutation, "train", {"shuffle": edit})


def same_shard(mutation):
    """Every worker reads what the first one reads."""
    tf = mutation.tf

    def edit(dataset, original, num_shards, index):
        first = tf.get_static_value(tf.convert_to_tensor(index))
        return None if first == 0 else original(dataset, num_shards, 0)

    _pipelines(mutation, "train", {"shard": edit})
    signature = inspect.signature(mutation.model.fit)
    off = tf.data.experimental.AutoShardPolicy.OFF

    def fit(original, model, *args, **kwargs):
        bound = signature.bind(model, *args, **kwargs)
        data = bound.arguments.get("x")
        workers = model.distribute_strategy.extended._in_multi_worker_mode()
        if workers and isinstance(data, tf.data.Dataset):
            options = tf.data.Options()
            if data.options().experimental_distribute.auto_shard_policy != off:
                options.experimental_distribute.auto_shard_policy = off
                bound.arguments["x"] = data.with_options(options)
                mutation.change()
        return original(*bound.args, **bound.kwargs)

    parts.wrap(mutation.model, "fit", fit)


# -- batch normalisation and dropout --


def _batch_normalization(mutation):
    return mutation.module("layers.normalization.batch_normalization").BatchNormalizationBase


def batch_norm_setting(mutation):
    """``setting`` (momentum, epsilon) becomes ``value``, where it is another."""
    setting, value = mutation.mutant["setting"], mutation.mutant["value"]

    def build(original, layer, *args, **kwargs):
        if not _same(getattr(layer, setting), value):
            setattr(layer, setting, value)
            mutation.change()
        return original(layer, *args, **kwargs)

    parts.wrap(_batch_normalization(mutation), "build", build)


def batch_norm_updates(mutation):
    """The moving statistics stay as they are."""
    kind = _batch_normalization(mutation)

    def keep(original, layer, variable, *args, **kwargs):
        # Outside of `fit` it is a graph of TensorFlow 1 code, which runs what it is given here, or a loop of one's own.
        alone = mutation.phase is None and not mutation.tf.executing_eagerly()
        if mutation.phase == "train" or alone:
            mutation.change(layer)
        return variable.read_value() if alone else variable

    parts.wrap(kind, "_assign_moving_average", keep)
    parts.wrap(kind, "_assign_new_value", keep)


def batch_norm_mode(mutation):
    """``phase`` "train": normalised by the moving statistics in training, which stay as they are; "evaluate": by
    those of the batch in evaluation.
    """
    kind = _batch_normalization(mutation)
    phase = mutation.mutant["phase"]

    def mode(original, layer, training=None):
        own = original(layer, training)
        if mutation.phase != phase:
            return own
        mutation.change(layer)
        return phase == "evaluate"

    def update(original, layer, variable, *args, **kwargs):
        return variable if mutation.phase == "evaluate" else original(layer, variable, *args, **kwargs)

    parts.wrap(kind, "_get_training_value", mode)
    parts.wrap(kind, "_assign_moving_average", update)
    parts.wrap(kind, "_assign_new_value", update)


def dropout(mutation):
    """``change`` "off" in training, "keep_prob" (the rate is one minus the rate), or "more" (a tenth more)."""
    kind = mutation.module("layers.regularization.dropout").Dropout
    change = mutation.mutant["change"]
    rates = {}

    def call(original, layer, inputs, *args, **kwargs):
        if change == "off":
            if mutation.phase != "train":
                return original(layer, inputs, *args, **kwargs)
            mutation.change(layer)
            return original(layer, inputs, training=False)
        if id(layer) not in rates and isinstance(layer.rate, (int, float)):
            old = rates[id(layer)] = layer.rate
            layer.rate = 1.0 - old if change == "keep_prob" else 1.1 * old
            if not _same(layer.rate, old):
                mutation.change(layer)
        return original(layer, inputs, *args, **kwargs)

    parts.wrap(kind, "call", call)


# -- distribution --


def _scaled(tf, gradient, factor):
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values * tf.cast(factor, gradient.dtype)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)


def replica_gradients(mutation):
    """``change`` "averaged": the gradients, already averaged over replicas, are divided by their number; "summed":
    they are multiplied by it; "last_lost": those of the last replica are left out.
    """
    tf = mutation.tf
    change = mutation.mutant["change"]

    def aggregate(original, optimizer, pairs):
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if replicas < 2:
            return original(optimizer, pairs)
        mutation.change(optimizer)
        if change == "last_lost":
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            there = tf.cast(tf.not_equal(number, replicas - 1), tf.float32)
            return original(optimizer, [(_scaled(tf, gradient, there), variable) for gradient, variable in pairs])
        factor = 1.0 / replicas if change == "averaged" else float(replicas)
        return [(_scaled(tf, gradient, factor), variable) for gradient, variable in original(optimizer, pairs)]

    parts.wrap(mutation.module("optimizers.optimizer").Optimizer, "aggregate_gradients", aggregate)
    parts.wrap(mutation.optimizers[1], "_aggregate_gradients", aggregate)


def partitioner(mutation):
    """``change`` "none": no variable is divided over parameter servers; "more": each into one shard more."""

    def prepare(original, strategy, *args, **kwargs):
        original(strategy, *args, **kwargs)
        own = strategy.extended._variable_partitioner
        if own is None:
            return
        mutation.change()

        def more(shape, dtype, **options):
            shards = list(own(shape=shape, dtype=dtype, **options))
            if shards and shards[0] < shape[0]:
                shards[0] += 1
            return shards

        strategy.extended._variable_partitioner = more if mutation.mutant["change"] == "more" else None

    parts.wrap(mutation.tf.distribute.ParameterServerStrategy, "__init__", prepare)


# -- evaluation --


def stale_evaluation(mutation):
    """Evaluates the weights that training began with."""
    tf = mutation.tf
    first = {}

    def snapshot(model):
        if id(model) not in first:
            first[id(model)] = [(variable, read(tf, variable)) for variable in model.variables]

    def before(original, model, *args, **kwargs):
        snapshot(model)
        return original(model, *args, **kwargs)

    def evaluate(original, model, *args, **kwargs):
        if id(model) not in first:
            return original(model, *args, **kwargs)
        own = [read(tf, variable) for variable, _ in first[id(model)]]
        for variable, value in first[id(model)]:
            assign(mutation.tf, variable, value)
        try:
            return original(model, *args, **kwargs)
        finally:
            for (variable, _), value in zip(first[id(model)], own):
                assign(mutation.tf, variable, value)
            mutation.change()

    # Made inside fit, after the recorder has put the weights in place that the plan starts from.
    parts.wrap(mutation.model, "make_train_function", before)
    parts.wrap(mutation.model, "load_weights", before)
    parts.wrap(mutation.model, "evaluate", evaluate)


def changed_weights(mutation):
    """After training every weight is multiplied by ``factor``."""

    def fit(original, model, *args, **kwargs):
        result = original(model, *args, **kwargs)
        for variable in model.trainable_variables:
            assign(mutation.tf, variable, read(mutation.tf, variable) * np.float32(mutation.mutant["factor"]))
        mutation.change()
        return result

    parts.wrap(mutation.model, "fit", fit)


def predictions(mutation):
    """What a model predicts is multiplied by ``factor``; its losses and metrics are not."""
    tf = mutation.tf

    def step(original, model, *args, **kwargs):
        mutation.change(model)
        return tf.nest.map_structure(
            lambda one: one * tf.cast(mutation.mutant["factor"], one.dtype) if one.dtype.is_floating else one,
            original(model, *args, **kwargs),
        )

    parts.wrap(mutation.model, "predict_step", step)


def metrics(mutation):
    """``change`` "labels": the metrics count classes from one; "threshold": they see predictions 0.1 higher."""
    tf = mutation.tf
    container = mutation.module("engine.compile_utils").MetricsContainer

    def shifted(label):
        label = tf.convert_to_tensor(label)
        if label.dtype.is_integer:
            return label + 1
        several = label.shape.rank is not None and label.shape.rank > 1 and (label.shape[-1] or 1) > 1
        return tf.roll(label, 1, axis=-1) if several else label

    def update(original, itself, y_true, y_pred, *args, **kwargs):
        if mutation.phase == "evaluate" and itself._user_metrics:
            if mutation.mutant["change"] == "labels":
                changed = tf.nest.map_structure(shifted, y_true)
                if any(a is not b for a, b in zip(tf.nest.flatten(changed), tf.nest.flatten(y_true))):
                    mutation.change(itself)
                    y_true = changed
            else:
                mutation.change(itself)
                y_pred = tf.nest.map_structure(lambda value: value + tf.cast(0.1, value.dtype), y_pred)
        return original(itself, y_true, y_pred, *args, **kwargs)

    parts.wrap(container, "update_state", update)


def evaluation_loss(mutation):
    """The loss of an evaluation is without the regularisation."""
    container = mutation.module("engine.compile_utils").LossesContainer

    def call(original, itself, y_true, y_pred, sample_weight=None, regularization_losses=None):
        if mutation.phase == "evaluate" and regularization_losses:
            mutation.change(itself)
            regularization_losses = None
        return original(itself, y_true, y_pred, sample_weight, regularization_losses)

    parts.wrap(container, "__call__", call)


KINDS = {
    "learning_rate": learning_rate,
    "optimizer_setting": optimizer_setting,
    "nesterov": nesterov,
    "clipping": clipping,
    "sparse_rows": sparse_rows,
    "loss_reduction": loss_reduction,
    "partial_batch": partial_batch,
    "regularizers": regularizers,
    "dropped_batch": dropped_batch,
    "batch_size": batch_size,
    "shuffle": shuffle,
    "same_shard": same_shard,
    "batch_norm_setting": batch_norm_setting,
    "batch_norm_updates": batch_norm_updates,
    "batch_norm_mode": batch_norm_mode,
    "dropout": dropout,
    "replica_gradients": replica_gradients,
    "partitioner": partitioner,
    "stale_evaluation": stale_evaluation,
    "changed_weights": changed_weights,
    "metrics": metrics,
    "predictions": predictions,
    "evaluation_loss": evaluation_loss,
}


def install(tf, plan, folder):
    """Has the process make the mistake ``plan["mutant"]``: {"id", "kind", and what the kind takes}.

    Comes after the recorder's own patches. RuntimeError for a kind that is not known.
    """
    mutant = plan["mutant"]
    if mutant.get("kind") not in KINDS:
        raise RuntimeError("no such mutant: %r" % (mutant,))
    mutation = Mutation(tf, mutant, folder)
    KINDS[mutant["kind"]](mutation)
    # Outermost, so that the phase is known to all that the kind has patched.
    mutation.watch_phases()
