"""Losses of tf.keras as TensorFlow 1 had them, where those of TensorFlow 2 answer otherwise.

TensorFlow 1 compares what it is given: labels of [batch] and outputs of [batch, 1] as a table of [batch, batch].
TensorFlow 2 makes columns of both first. Its cosine similarity has the other sign.
"""

import tensorflow as tf


class _AsGiven:
    """A loss object that leaves the shapes of labels and outputs as they are."""

    def call(self, y_true, y_pred):
        return self.fn(y_true, y_pred, **self._fn_kwargs)


class MeanSquaredErrorLoss(_AsGiven, tf.keras.losses.MeanSquaredError):
    """The mean of the squared differences."""


class MeanAbsoluteErrorLoss(_AsGiven, tf.keras.losses.MeanAbsoluteError):
    """The mean of the absolute differences."""


class MeanAbsolutePercentageErrorLoss(_AsGiven, tf.keras.losses.MeanAbsolutePercentageError):
    """The mean of the absolute differences, in percent of the labels."""


class MeanSquaredLogarithmicErrorLoss(_AsGiven, tf.keras.losses.MeanSquaredLogarithmicError):
    """The mean of the squared differences of logarithms."""


class BinaryCrossentropyLoss(_AsGiven, tf.keras.losses.BinaryCrossentropy):
    """The mean cross entropy of labels that are 0 or 1."""


class HingeLoss(_AsGiven, tf.keras.losses.Hinge):
    """The mean of `maximum(1 - labels * outputs, 0)`."""


class SquaredHingeLoss(_AsGiven, tf.keras.losses.SquaredHinge):
    """The mean of `maximum(1 - labels * outputs, 0)`, squared."""


class HuberLoss(tf.keras.losses.Huber):
    """The mean of squared differences that are linear behind `delta`; a sum adds those of all outputs up."""

    def call(self, y_true, y_pred):
        delta = self._fn_kwargs["delta"]
        y_true, y_pred = (tf.cast(one, tf.keras.backend.floatx()) for one in (y_true, y_pred))
        difference = tf.abs(y_pred - y_true)
        squared = tf.minimum(difference, delta)
        return 0.5 * squared * squared + delta * (difference - squared)


class LogCoshLoss(_AsGiven, tf.keras.losses.LogCosh):
    """The mean of the logarithms of the differences' hyperbolic cosines."""


class PoissonLoss(_AsGiven, tf.keras.losses.Poisson):
    """The mean of `outputs - labels * log(outputs)`."""


class KLDivergenceLoss(_AsGiven, tf.keras.losses.KLDivergence):
    """The sum of `labels * log(labels / outputs)` along the last axis."""


def cosine_similarity_loss(y_true, y_pred, axis=-1):
    """The cosine similarity, which is 1 where both point the same way."""
    return -tf.keras.losses.cosine_similarity(y_true, y_pred, axis=axis)


class CosineSimilarityLoss(_AsGiven, tf.keras.losses.CosineSimilarity):
    """The mean cosine similarity, which is 1 where both point the same way."""

    def call(self, y_true, y_pred):
        return cosine_similarity_loss(y_true, y_pred, **self._fn_kwargs)
