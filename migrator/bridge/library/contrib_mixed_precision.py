"""Losses that are scaled so that small gradients are not lost in half precision: tf.contrib.mixed_precision."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1


class LossScaleManager:
    """Says by how much a loss is scaled; `update_loss_scale` is run after each step."""

    def get_loss_scale(self):
        """The scale, a scalar of single precision."""
        raise NotImplementedError

    def update_loss_scale(self, finite_grads):
        """An operation that changes the scale; `finite_grads` says whether all gradients of the step are finite."""
        raise NotImplementedError


class FixedLossScaleManager(LossScaleManager):
    """A scale that stays.

    Raises:
        ValueError: The scale is less than 1.
    """

    def __init__(self, loss_scale):
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._scale = tf.convert_to_tensor(loss_scale, tf.float32)

    def get_loss_scale(self):
        return self._scale

    def update_loss_scale(self, finite_grads):
        return tf1.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A scale that grows after so many good steps in a row, and shrinks after so many bad ones.

    Args:
        init_loss_scale: the scale of the first step.
        incr_every_n_steps: number of steps with finite gradients, one after another, after which it grows.
        decr_every_n_nan_or_inf: number of steps with other gradients after which it shrinks, to 1 at least.
        incr_ratio: factor by which it grows.
        decr_ratio: factor by which it shrinks.
    """

    def __init__(self, init_loss_scale, incr_every_n_steps, decr_every_n_nan_or_inf=2, incr_ratio=2, decr_ratio=0.8):
        self._good_needed, self._bad_needed = incr_every_n_steps, decr_every_n_nan_or_inf
        self._up, self._down = incr_ratio, decr_ratio
        self._scale = tf1.Variable(float(init_loss_scale), trainable=False, name="loss_scale", dtype=tf.float32)
        self._good = tf1.Variable(0, trainable=False, name="good_steps", dtype=tf.int32)
        self._bad = tf1.Variable(0, trainable=False, name="bad_steps", dtype=tf.int32)

    def get_loss_scale(self):
        return self._scale

    def update_loss_scale(self, finite_grads):
        scale, good, bad = (tf.identity(one) for one in (self._scale, self._good, self._bad))
        larger = tf.where(tf.math.is_finite(scale * self._up), scale * self._up, scale)
        smaller = tf.maximum(1.0, scale * self._down)
        grows = finite_grads & (good + 1 >= self._good_needed)
        shrinks = ~finite_grads & (bad + 1 >= self._bad_needed)
        none = tf.zeros_like(good)
        with tf.control_dependencies([scale, good, bad]):
            return tf.group(
                self._scale.assign(tf.where(grows, larger, tf.where(shrinks, smaller, scale))),
                self._good.assign(tf.where(finite_grads & ~grows, good + 1, none)),
                self._bad.assign(tf.where(grows | shrinks, none, tf.where(finite_grads, bad, bad + 1))),
            )


class LossScaleOptimizer(tf1.train.Optimizer):
    """An optimizer that scales the loss, and the gradients back; steps whose gradients are not finite are left out.

    Args:
        opt: the optimizer that makes the steps.
        loss_scale_manager: a LossScaleManager.
    """

    def __init__(self, opt, loss_scale_manager):
        super().__init__(False, "LossScaleOptimizer")
        self._opt = opt
        self._manager = loss_scale_manager

    def compute_gradients(self, loss, *args, **kwargs):
        loss = loss() if callable(loss) else loss
        scale = tf.convert_to_tensor(self._manager.get_loss_scale())
        pairs = self._opt.compute_gradients(loss * tf.cast(scale, loss.dtype.base_dtype), *args, **kwargs)
        back = tf.math.reciprocal(scale)
        return [(grad if grad is None else grad * tf.cast(back, grad.dtype), variable) for grad, variable in pairs]

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(grad)) for grad, _ in pairs])

        def step():
            with tf.control_dependencies([self._opt.apply_gradients(pairs, global_step, name)]):
                return tf.constant(True)

        made = tf1.cond(finite, step, lambda: tf.constant(False))
        with tf.control_dependencies([made]):
            return tf.group(made, self._manager.update_loss_scale(finite))
