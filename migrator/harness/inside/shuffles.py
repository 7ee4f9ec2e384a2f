"""The shuffles of a program's training data: their buffers, whether they have seeds of their own, and which, whether
each pass over the data has another order, whether they mix examples of several passes; and the queues that shuffle, as
that of `numpy_input_fn` does.
"""

import contextlib
import importlib
import inspect

import parts

MARK = "_tf_migrate_shuffle"
# The seed of a whole program is another matter in an Estimator, whose RunConfig gives its graphs one, than in Keras: a
# shuffle with the same seed of its own would be in another order. It is TensorFlow's default in both.
_WHOLE = 87654321
_REPEATS = "_tf_migrate_repeats"
_QUEUES = "tensorflow.python.ops.gen_data_flow_ops"
_BOTH = "tensorflow.python.data.experimental.ops.shuffle_ops"  # a shuffle and a repetition in one
_READERS = "tensorflow.python.data.ops.readers"
#: What feeds the queues of `numpy_input_fn` and `pandas_input_fn`: with TensorFlow 1.15 there are two of it.
_FEEDERS = (
    "tensorflow_estimator.python.estimator.inputs.queues.feeding_functions",
    "tensorflow.python.estimator.inputs.queues.feeding_functions",
)
_SHUFFLE_OF_FIT = 8  # its place among the arguments behind the model


def install(tf, noted=None):
    """Marks what `Dataset.shuffle` makes; `noted` is told of each, too."""
    datasets = importlib.import_module("tensorflow.python.data.ops.dataset_ops").DatasetV2

    def shuffle(original, dataset, buffer_size, seed=None, reshuffle_each_iteration=None, *args, **kwargs):
        made = original(dataset, buffer_size, seed, reshuffle_each_iteration, *args, **kwargs)
        each_time = reshuffle_each_iteration is not False
        found = [_number(tf, buffer_size), seed is not None, each_time, _repeats(dataset), _number(tf, seed)]
        setattr(made, MARK, found)
        if noted is not None:
            noted(found)
        return made

    def repeat(original, dataset, count=None, *args, **kwargs):
        made = original(dataset, count, *args, **kwargs)
        if count is None or _number(tf, count) != 1:
            setattr(made, _REPEATS, True)
        return made

    def queue(original, component_types, *args, **kwargs):
        least = _number(tf, kwargs.get("min_after_dequeue", 0))
        seeded = bool(kwargs.get("seed") or kwargs.get("seed2"))
        noted([_number(tf, kwargs.get("capacity")), seeded, True, True, None, least])
        return original(component_types, *args, **kwargs)

    def both(original, made, dataset, buffer_size, count=None, seed=None):
        original(made, dataset, buffer_size, count, seed)
        found = [_number(tf, buffer_size), seed is not None, True, _repeats(dataset), _number(tf, seed)]
        setattr(made, MARK, found)
        setattr(made, _REPEATS, count is None or _number(tf, count) != 1)
        if noted is not None:
            noted(found)

    parts.wrap(datasets, "shuffle", shuffle)
    parts.wrap(datasets, "repeat", repeat)
    parts.wrap(importlib.import_module(_BOTH)._ShuffleAndRepeatDataset, "__init__", both)
    if noted is not None:
        parts.wrap(importlib.import_module(_QUEUES), "random_shuffle_queue_v2", queue)


def leave_in_place(tf):
    """From now on nothing is shuffled: neither by `Dataset.shuffle`, nor by queues, nor by `fit`.

    The order that a queue makes hangs on how its threads come to run, and no seed fixes it. What two programs read
    besides that order can be compared so, batch by batch.
    """
    datasets = importlib.import_module("tensorflow.python.data.ops.dataset_ops").DatasetV2
    queues = importlib.import_module(_QUEUES)

    def first_in_first_out(original, component_types, shapes=(), capacity=-1, *args, **kwargs):
        names = {name: kwargs[name] for name in ("container", "shared_name", "name") if name in kwargs}
        return queues.fifo_queue_v2(component_types, shapes=shapes, capacity=capacity, **names)

    def from_the_first(original, *args, **kwargs):
        # What feeds a queue begins anywhere in the data where that is to shuffle them.
        if "random_start" in kwargs:
            kwargs["random_start"] = False
        return original(*args, **kwargs)

    def fit(original, model, *args, **kwargs):
        if len(args) <= _SHUFFLE_OF_FIT:
            kwargs["shuffle"] = False
        return original(model, *args, **kwargs)

    in_order(datasets)
    parts.wrap(datasets, "shuffle", lambda original, dataset, *args, **kwargs: dataset)
    parts.wrap(queues, "random_shuffle_queue_v2", first_in_first_out)
    for name in _FEEDERS:
        try:
            feeders = importlib.import_module(name)
        except ImportError:
            continue
        for feeder in ("_ArrayFeedFn", "_OrderedDictNumpyFeedFn", "_PandasFeedFn", "_GeneratorFeedFn"):
            parts.wrap(getattr(feeders, feeder), "__init__", from_the_first)
    parts.wrap(tf.keras.Model, "fit", fit)


def in_order(datasets):
    """From now on threads decide no order: what a program allows to come as it is ready comes in its order.

    A shuffle and a repetition in one are one behind the other, with the order that this has.
    """
    both, readers = importlib.import_module(_BOTH), importlib.import_module(_READERS)

    def apart(dataset, buffer_size, count=None, seed=None):
        return dataset.shuffle(buffer_size, seed=seed).repeat(count)

    def never_sloppy(original, made, dataset, map_func, cycle_length, block_length, sloppy, *args, **kwargs):
        original(made, dataset, map_func, cycle_length, block_length, False, *args, **kwargs)

    def with_options(original, dataset, options, *args, **kwargs):
        for name in ("deterministic", "experimental_deterministic"):
            with contextlib.suppress(AttributeError, ValueError):
                if getattr(options, name) is False:
                    setattr(options, name, True)
        return original(dataset, options, *args, **kwargs)

    def by_default(original, dataset, *args, **kwargs):
        bound = inspect.signature(original).bind(dataset, *args, **kwargs)
        if bound.arguments.get("deterministic") is False:
            bound.arguments["deterministic"] = None
        return original(*bound.args, **bound.kwargs)

    both._ShuffleAndRepeatDataset = apart
    parts.wrap(readers.ParallelInterleaveDataset, "__init__", never_sloppy)
    parts.wrap(datasets, "with_options", with_options)
    for name in ("map", "interleave"):
        parts.wrap(datasets, name, by_default)


def of_its_own(tf, pair, seed):
    """The seed of the program and that of an operation of a data set, where it has a ``seed`` of its own."""
    return pair if seed is None else (tf.constant(_WHOLE, tf.int64), pair[1])


def _repeats(data):
    """Whether a dataset holds several passes over what it is made of."""
    waiting = [data]
    while waiting:
        one = waiting.pop()
        one = getattr(one, "_dataset", one)  # TensorFlow 1 puts a dataset around each
        if getattr(one, _REPEATS, False):
            return True
        waiting.extend(one._inputs())
    return False


def give_seed(seed, one_order=False):
    """Gives a seed to each `Dataset.shuffle` that has none: the same data come in the same order then, whatever the
    seed of the whole program is, and however fast its threads are. With `one_order` each pass has that of the first.
    """
    tf = importlib.import_module("tensorflow")
    seeds = importlib.import_module("tensorflow.python.data.util.random_seed")
    datasets = importlib.import_module("tensorflow.python.data.ops.dataset_ops").DatasetV2

    def shuffle(original, dataset, buffer_size, own=None, *args, **kwargs):
        given = kwargs.pop("seed", own)
        if one_order:
            args, kwargs["reshuffle_each_iteration"] = args[1:], False
        return original(dataset, buffer_size, seed if given is None else given, *args, **kwargs)

    in_order(datasets)
    parts.wrap(datasets, "shuffle", shuffle)
    parts.wrap(seeds, "get_seed", lambda original, seed: of_its_own(tf, original(seed), seed))


def _number(tf, value):
    if isinstance(value, tf.Tensor):
        value = tf.get_static_value(value)
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def of(tf, data):
    """[[buffer, seeded, another order each time, several passes, seed]] of the shuffles behind a dataset, the first of
    them first, as they were made; None where it is no dataset.
    """
    data = getattr(data, "_original_dataset", data)
    if not isinstance(data, tf.data.Dataset):
        return None
    found, waiting = [], [data]
    while waiting:
        one = waiting.pop(0)
        mark = getattr(one, MARK, None)
        if mark is not None:
            found.append(mark)
        waiting.extend(one._inputs())
    return found[::-1]
