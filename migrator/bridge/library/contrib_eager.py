"""What eager programs of TensorFlow 1 took from tf.contrib.eager: an iterator, and metrics that are objects."""

import tensorflow as tf


class EagerIterator:
    """The elements of a dataset, one after the other."""

    def __init__(self, dataset):
        self._elements = iter(dataset)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._elements)

    next = __next__

    def get_next(self, name=None):
        """The next element. Raises tf.errors.OutOfRangeError behind the last."""
        del name
        try:
            return next(self._elements)
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None


class EagerMean(tf.Module):
    """The mean of all values that it was called with, weighted where weights are given."""

    def __init__(self, name=None, dtype=tf.float64, use_global_variables=False):
        del use_global_variables
        super().__init__(name=name or "mean")
        self.dtype = tf.as_dtype(dtype)
        self.numer = tf.Variable(tf.zeros([], self.dtype), name="numer", trainable=False)
        self.denom = tf.Variable(tf.zeros([], self.dtype), name="denom", trainable=False)

    def __call__(self, values, weights=None):
        return self.call(values) if weights is None else self.call(values, weights)

    def call(self, values, weights=None):
        """Adds values; returns its arguments."""
        if weights is None:
            self.denom.assign_add(tf.cast(tf.size(values), self.dtype))
            self.numer.assign_add(tf.cast(tf.reduce_sum(values), self.dtype))
            return values
        weights = tf.cast(weights, self.dtype)
        self.denom.assign_add(tf.reduce_sum(weights))
        self.numer.assign_add(tf.reduce_sum(tf.cast(values, self.dtype) * weights))
        return values, weights

    def result(self, write_summary=True):
        """The mean until now."""
        del write_summary
        return self.numer / self.denom

    def init_variables(self):
        """Begins anew."""
        self.numer.assign(tf.zeros_like(self.numer))
        self.denom.assign(tf.zeros_like(self.denom))


class EagerAccuracy(EagerMean):
    """The share of predictions that are their labels."""

    def __init__(self, name=None, dtype=tf.float64):
        super().__init__(name or "accuracy", dtype)

    def __call__(self, labels, predictions, weights=None):
        return self.call(labels, predictions, weights)

    def call(self, labels, predictions, weights=None):
        """Adds a batch; returns its arguments."""
        hits = tf.cast(tf.equal(labels, predictions), self.dtype)
        super().call(hits, weights)
        return (labels, predictions) if weights is None else (labels, predictions, weights)
