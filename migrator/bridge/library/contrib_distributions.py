"""Distributions of tf.contrib that TensorFlow 2 has not: those of `tf.compat.v1.distributions` are as they were."""

from __future__ import annotations

import math

import tensorflow as tf
import tensorflow.compat.v1 as tf1


def _with_kl_divergence(kind):
    """Lets `tf.distributions.kl_divergence` compare two distributions of a kind."""
    tf1.distributions.RegisterKL(kind, kind)(lambda one, other, name=None: one.divergence_from(other))
    return kind


@_with_kl_divergence
class MultivariateNormalDiag(tf1.distributions.Distribution):
    """Normal variables along the last axis that do not depend on each other, as one variable.

    Args:
        loc: the means, of shape [..., k]; None: 0.
        scale_diag: the standard deviations, of shape [..., k]; None: 1, if no multiplier is given.
        scale_identity_multiplier: a number that is added to all of them, of shape [...].
    """

    def __init__(
        self,
        loc=None,
        scale_diag=None,
        scale_identity_multiplier=None,
        validate_args=False,
        allow_nan_stats=True,
        name="MultivariateNormalDiag",
    ):
        parameters = dict(locals())
        with tf.name_scope(name):
            given = [one for one in (loc, scale_diag, scale_identity_multiplier) if one is not None]
            if loc is None and scale_diag is None:
                raise ValueError("Give `loc` or `scale_diag`, which tell the number of variables.")
            dtype = tf.convert_to_tensor(given[0]).dtype.base_dtype
            loc, scale_diag, extra = (
                None if one is None else tf.convert_to_tensor(one, dtype)
                for one in (loc, scale_diag, scale_identity_multiplier)
            )
            if scale_diag is None:
                row = tf.zeros(tf.shape(loc)[-1:], dtype)
                row.set_shape(loc.shape[-1:])
                scale_diag = row if extra is not None else row + 1
            if extra is not None:
                scale_diag += extra[..., tf.newaxis]
            self._scale_diag = scale_diag
            self._loc = tf.zeros_like(scale_diag) if loc is None else loc
        super().__init__(
            dtype=dtype,
            reparameterization_type=tf1.distributions.FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._loc, self._scale_diag],
            name=name,
        )

    @property
    def loc(self):
        """The means."""
        return self._loc

    @property
    def scale(self):
        """The standard deviations, as a matrix."""
        return tf.linalg.LinearOperatorDiag(self._scale_diag)

    def _whole(self, tensor):
        return tf.broadcast_to(tensor, tf.broadcast_dynamic_shape(tf.shape(self._loc), tf.shape(self._scale_diag)))

    def _shape(self):
        return tf.broadcast_static_shape(self._loc.shape, self._scale_diag.shape)

    def _batch_shape_tensor(self):
        return tf.broadcast_dynamic_shape(tf.shape(self._loc), tf.shape(self._scale_diag))[:-1]

    def _batch_shape(self):
        return self._shape()[:-1]

    def _event_shape_tensor(self):
        return tf.broadcast_dynamic_shape(tf.shape(self._loc), tf.shape(self._scale_diag))[-1:]

    def _event_shape(self):
        return self._shape()[-1:]

    def _sample_n(self, n, seed=None):
        shape = tf.concat([[n], self._batch_shape_tensor(), self._event_shape_tensor()], 0)
        return self._loc + self._scale_diag * tf1.random_normal(shape, dtype=self.dtype, seed=seed)

    def _log_prob(self, x):
        parts = -0.5 * tf.square((x - self._loc) / self._scale_diag) - 0.5 * math.log(2.0 * math.pi)
        return tf.reduce_sum(parts - tf.math.log(tf.abs(self._scale_diag)), -1)

    def _prob(self, x):
        return tf.exp(self._log_prob(x))

    def _entropy(self):
        return tf.reduce_sum(
            self._whole(0.5 + 0.5 * math.log(2.0 * math.pi) + tf.math.log(tf.abs(self._scale_diag))), -1
        )

    def _mean(self):
        return self._whole(self._loc)

    def _mode(self):
        return self._whole(self._loc)

    def _variance(self):
        return tf.square(self._scale_diag)

    def _stddev(self):
        return tf.abs(self._scale_diag)

    def _covariance(self):
        return tf.linalg.diag(self._variance())

    def divergence_from(self, other):
        """The Kullback-Leibler divergence of this distribution from another of its kind."""
        ratio = tf.square(self._scale_diag / other.scale.diag_part())
        distance = tf.square((self._loc - other.loc) / other.scale.diag_part())
        return 0.5 * tf.reduce_sum(ratio + distance - 1.0 - tf.math.log(ratio), -1)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """A MultivariateNormalDiag whose standard deviations are the softplus of what it is given."""

    def __init__(
        self, loc, scale_diag, validate_args=False, allow_nan_stats=True, name="MultivariateNormalDiagWithSoftplusScale"
    ):
        super().__init__(loc, tf.nn.softplus(scale_diag), None, validate_args, allow_nan_stats, name)
