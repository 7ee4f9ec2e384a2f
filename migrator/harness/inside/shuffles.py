"""The shuffles of a program's training data: their buffers, whether they have seeds of their own, whether each pass
over the data has another order.
"""

import importlib

import parts

MARK = "_tf_migrate_shuffle"


def install(tf, noted=None):
    """Marks what `Dataset.shuffle` makes; `noted` is told of each, too."""
    datasets = importlib.import_module("tensorflow.python.data.ops.dataset_ops").DatasetV2

    def shuffle(original, dataset, buffer_size, seed=None, reshuffle_each_iteration=None, *args, **kwargs):
        made = original(dataset, buffer_size, seed, reshuffle_each_iteration, *args, **kwargs)
        found = [_number(tf, buffer_size), seed is not None, reshuffle_each_iteration is not False]
        setattr(made, MARK, found)
        if noted is not None:
            noted(found)
        return made

    parts.wrap(datasets, "shuffle", shuffle)


def give_seed(seed):
    """Gives a seed to each `Dataset.shuffle` that has none: the same data come in the same order then."""
    datasets = importlib.import_module("tensorflow.python.data.ops.dataset_ops").DatasetV2

    def shuffle(original, dataset, buffer_size, own=None, *args, **kwargs):
        given = kwargs.pop("seed", own)
        return original(dataset, buffer_size, seed if given is None else given, *args, **kwargs)

    parts.wrap(datasets, "shuffle", shuffle)


def _number(tf, value):
    if isinstance(value, tf.Tensor):
        value = tf.get_static_value(value)
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def of(tf, data):
    """[[buffer, seeded, another order each time]] of the shuffles behind a dataset; None where it is no dataset."""
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
    return found
