"""Input functions over data that is in memory: numpy arrays and pandas data frames."""

import random

import numpy as np
import tensorflow as tf


def numpy_input_fn(x, y=None, batch_size=128, num_epochs=1, shuffle=None, queue_capacity=1000, num_threads=1):
    """An input function over the rows of numpy arrays.

    Args:
        x: the features: an array, or a dictionary of arrays. All have the same number of rows.
        y: the labels, likewise; None for features alone.
        batch_size: rows in a batch. A batch may reach from one epoch into the next; only the very last may be smaller.
        num_epochs: how often the rows are read; None for ever.
        shuffle: True or False; must be said.
        queue_capacity: rows in the buffer that is shuffled.
        num_threads: each thread reads `num_epochs` of its own, as in TensorFlow 1: that many times more rows come.

    Returns:
        A function without arguments that returns a dataset of features, or of (features, labels).
    """
    _check_shuffle(shuffle)

    def input_fn():
        features = _named_arrays(x, "x")
        labels = {} if y is None else _named_arrays(y, "y")
        if isinstance(x, dict) and isinstance(y, dict) and features.keys() & labels.keys():
            raise ValueError(f"keys found in both x and y: {sorted(features.keys() & labels.keys())}")
        if len({len(column) for column in [*features.values(), *labels.values()]}) != 1:
            shapes = {name: column.shape for name, column in [*features.items(), *labels.items()]}
            raise ValueError(f"x and y must have the same number of rows; their shapes are {shapes}")

        def structure(columns):
            inputs = {name: columns["x", name] for name in features} if isinstance(x, dict) else columns["x", ""]
            if y is None:
                return inputs
            return inputs, ({name: columns["y", name] for name in labels} if isinstance(y, dict) else columns["y", ""])

        columns = {("x", name): column for name, column in features.items()}
        columns.update({("y", name): column for name, column in labels.items()})
        return _rows_in_batches(columns, structure, batch_size, num_epochs, shuffle, queue_capacity, num_threads)

    return input_fn


def pandas_input_fn(
    x,
    y=None,
    batch_size=128,
    num_epochs=1,
    shuffle=None,
    queue_capacity=1000,
    num_threads=1,
    target_column="target",
):
    """An input function over the rows of a pandas data frame; its features are a dictionary, one tensor a column.

    `y` is a series, a data frame (then the labels are a dictionary) or None, with the same index as `x`; the capacity
    None means a buffer of four times the rows. All else is as in `numpy_input_fn`.
    """
    _check_shuffle(shuffle)
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string")
    if y is not None:
        if target_column in x:
            raise ValueError(f"x has a column with the name of the target: {target_column}")
        if not np.array_equal(x.index, y.index):
            raise ValueError(f"x and y must have the same index: {x.index} and {y.index}")
    columns = {("x", name): x[name].values for name in x}
    labels_by_name = hasattr(y, "columns")
    if labels_by_name:
        columns.update({("y", name): y[name].values for name in y})
    elif y is not None:
        columns["y", target_column] = y.values
    capacity = 4 * len(x) if queue_capacity is None else queue_capacity

    def structure(batch):
        features = {name: batch["x", name] for name in x}
        if y is None:
            return features
        return features, ({name: batch["y", name] for name in y} if labels_by_name else batch["y", target_column])

    return lambda: _rows_in_batches(columns, structure, batch_size, num_epochs, shuffle, capacity, num_threads)


def _check_shuffle(shuffle):
    if not isinstance(shuffle, bool):
        raise ValueError(f"shuffle must be True (recommended for training) or False; got {shuffle}")


def _named_arrays(data, what):
    """`data` as a dictionary of arrays, sorted by name; a lone array has the name ""."""
    if isinstance(data, dict):
        if not data:
            raise ValueError(f"{what} cannot be an empty dictionary")
        return dict(sorted(data.items()))
    if what == "x" and not isinstance(data, np.ndarray):
        raise TypeError(f"x must be a dictionary or an array; got {type(data).__name__}")
    if what == "x" and data.size == 0:
        raise ValueError("x cannot be an empty array")
    return {"": data}


def _rows_in_batches(columns, structure, batch_size, num_epochs, shuffle, capacity, num_threads):
    """A dataset of batches of the rows of `columns`, each put into the form that `structure` gives it."""
    with tf.init_scope():  # held once, not in each graph that reads them
        tensors = {name: tf.constant(_as_tensor_data(column)) for name, column in columns.items()}
    count = len(next(iter(columns.values())))
    rows = tf.data.Dataset.range(count)
    if shuffle:
        start = random.Random().randrange(count)
        rows = rows.map(lambda row: (row + start) % count)
    rows = rows.repeat(None if num_epochs is None else num_epochs * num_threads)
    if shuffle:
        rows = rows.shuffle(capacity)
    rows = rows.batch(batch_size, drop_remainder=num_epochs is None)
    return rows.map(lambda row: structure({name: tf.gather(tensor, row) for name, tensor in tensors.items()}))


def _as_tensor_data(column):
    """An array that TensorFlow takes as it is: objects are strings."""
    column = np.asarray(column)
    return column.astype(str) if column.dtype == object and not isinstance(column.flat[0], bytes) else column
