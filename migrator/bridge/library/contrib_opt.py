"""Optimizers of tf.contrib.opt."""

import contextlib
import math

import tensorflow.compat.v1 as tf1


class DecoupledWeightDecayExtension:
    """What lets weights decay by themselves, and not through the loss: a base before that of the optimizer.

    Its first argument is the rate of the decay, a number or a tensor.
    """

    def __init__(self, weight_decay, *args, **kwargs):
        self._decayed = None  # the variables that decay (None: all)
        self._weight_decay = weight_decay
        super().__init__(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None, decay_var_list=None):
        # With an empty list all variables decay, as without one.
        self._decayed = {id(variable) for variable in decay_var_list} if decay_var_list else None
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def minimize(self, *args, decay_var_list=None, **kwargs):
        # TensorFlow 1 forgets `decay_var_list` here, when it applies the gradients: all variables decay.
        return super().minimize(*args, **kwargs)

    def _rate(self, variable):
        return tf1.cast(self._weight_decay, variable.dtype.base_dtype)

    def _decays(self, variable):
        return self._decayed is None or id(variable) in self._decayed

    def _resource_apply_dense(self, grad, var):
        with tf1.control_dependencies([grad]):  # gradients are those of the values before
            decay = [var.assign_sub(self._rate(var) * var)] if self._decays(var) else []
        with tf1.control_dependencies(decay):
            return super()._resource_apply_dense(grad, var)

    def _resource_apply_sparse(self, grad, var, indices):
        decay = []
        if self._decays(var):
            with tf1.control_dependencies([grad]):
                smaller = self._rate(var) * tf1.gather(var, indices)
                decay = [var.scatter_sub(tf1.IndexedSlices(smaller, indices))]
        with tf1.control_dependencies(decay):
            return super()._resource_apply_sparse(grad, var, indices)


def extend_with_decoupled_weight_decay(base_optimizer):
    """A class of optimizers that let weights decay by themselves, and not through the loss, before each step."""

    class OptimizerWithDecay(DecoupledWeightDecayExtension, base_optimizer):
        """An optimizer whose first argument is the rate of the decay, a number or a tensor."""

    return OptimizerWithDecay


class AdamWOptimizer(extend_with_decoupled_weight_decay(tf1.train.AdamOptimizer)):
    """Adam with decoupled weight decay; its slots have its own name, as in tf.contrib.opt."""

    def __init__(
        self,
        weight_decay,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        use_locking=False,
        name="AdamW",
    ):
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


class MomentumWOptimizer(extend_with_decoupled_weight_decay(tf1.train.MomentumOptimizer)):
    """Momentum with decoupled weight decay; its slots have its own name, as in tf.contrib.opt."""

    def __init__(self, weight_decay, learning_rate, momentum, use_locking=False, name="MomentumW", use_nesterov=False):
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


class LazyAdamOptimizer(tf1.train.AdamOptimizer):
    """Adam that leaves the moments of those rows as they are that a sparse gradient has not."""

    def _resource_apply_sparse(self, grad, var, indices):
        rate, beta1, beta2, epsilon = _of_adam(self, var)
        first, second = self.get_slot(var, "m"), self.get_slot(var, "v")
        moment = beta1 * tf1.gather(first, indices) + (1 - beta1) * grad
        square = beta2 * tf1.gather(second, indices) + (1 - beta2) * grad * grad
        return tf1.group(
            first.scatter_update(tf1.IndexedSlices(moment, indices)),
            second.scatter_update(tf1.IndexedSlices(square, indices)),
            var.scatter_sub(tf1.IndexedSlices(rate * moment / (tf1.sqrt(square) + epsilon), indices)),
        )


class NadamOptimizer(tf1.train.AdamOptimizer):
    """Adam with Nesterov's momentum."""

    def _resource_apply_dense(self, grad, var):
        powers = self._get_beta_accumulators()
        rate, beta1, beta2, epsilon = (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return tf1.raw_ops.ResourceApplyAdam(
            var=var.handle,
            m=self.get_slot(var, "m").handle,
            v=self.get_slot(var, "v").handle,
            beta1_power=tf1.cast(powers[0], grad.dtype),
            beta2_power=tf1.cast(powers[1], grad.dtype),
            lr=tf1.cast(rate, grad.dtype),
            beta1=tf1.cast(beta1, grad.dtype),
            beta2=tf1.cast(beta2, grad.dtype),
            epsilon=tf1.cast(epsilon, grad.dtype),
            grad=grad,
            use_locking=self._use_locking,
            use_nesterov=True,
        )

    def _resource_apply_sparse(self, grad, var, indices):
        rate, beta1, beta2, epsilon = _of_adam(self, var)
        first, second = self.get_slot(var, "m"), self.get_slot(var, "v")
        with tf1.control_dependencies([first.assign(first * beta1)]):
            moved = first.scatter_add(tf1.IndexedSlices((1 - beta1) * grad, indices))
        with tf1.control_dependencies([second.assign(second * beta2)]):
            squared = second.scatter_add(tf1.IndexedSlices((1 - beta2) * grad * grad, indices))
        with tf1.control_dependencies([moved, squared]):
            moment = (1 - beta1) * grad + beta1 * tf1.gather(first, indices)
            step = rate * moment / (tf1.sqrt(tf1.gather(second, indices)) + epsilon)
            return var.scatter_sub(tf1.IndexedSlices(step, indices))


def _of_adam(optimizer, var):
    """The rate of Adam's next step, its betas and epsilon."""
    dtype = var.dtype.base_dtype
    power1, power2 = (tf1.cast(power, dtype) for power in optimizer._get_beta_accumulators())
    settings = (optimizer._lr_t, optimizer._beta1_t, optimizer._beta2_t, optimizer._epsilon_t)
    rate, beta1, beta2, epsilon = (tf1.cast(one, dtype) for one in settings)
    return rate * tf1.sqrt(1 - power2) / (1 - power1), beta1, beta2, epsilon


class AdaMaxOptimizer(tf1.train.AdamOptimizer):
    """Adam by the highest gradients, and not by the mean of their squares."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False, name="AdaMax"):
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self):
        with tf1.init_scope():  # where the variable was made
            graph = None if tf1.executing_eagerly() else tf1.get_default_graph()
        return self._get_non_slot_variable("beta1_power", graph=graph)

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda one: one.name)
        self._create_non_slot_variable(self._beta1, name="beta1_power", colocate_with=first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _settings(self, dtype):
        settings = (self._get_beta_accumulators(), self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return [tf1.cast(one, dtype) for one in settings]

    def _resource_apply_dense(self, grad, var):
        power, rate, beta1, beta2, epsilon = self._settings(grad.dtype.base_dtype)
        return tf1.raw_ops.ResourceApplyAdaMax(
            var=var.handle,
            m=self.get_slot(var, "m").handle,
            v=self.get_slot(var, "v").handle,
            beta1_power=power,
            lr=rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            grad=grad,
            use_locking=self._use_locking,
        )

    def _resource_apply_sparse(self, grad, var, indices):
        power, rate, beta1, beta2, epsilon = self._settings(grad.dtype.base_dtype)
        first, second = self.get_slot(var, "m"), self.get_slot(var, "v")
        moment = beta1 * tf1.gather(first, indices) + (1 - beta1) * grad
        highest = tf1.maximum(beta2 * tf1.gather(second, indices), tf1.abs(grad))
        step = rate / (1 - power) * moment / (highest + epsilon)
        return tf1.group(
            first.scatter_update(tf1.IndexedSlices(moment, indices)),
            second.scatter_update(tf1.IndexedSlices(highest, indices)),
            var.scatter_sub(tf1.IndexedSlices(step, indices)),
        )

    def _finish(self, update_ops, name_scope):
        with tf1.control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            last = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return tf1.group(*update_ops, last, name=name_scope)


class LARSOptimizer(tf1.train.MomentumOptimizer):
    """Momentum whose rate, for each variable, goes by the norms of the variable and of its gradient."""

    def __init__(
        self,
        learning_rate,
        momentum=0.9,
        weight_decay=0.0001,
        eeta=0.001,
        epsilon=0.0,
        name="LARSOptimizer",
        skip_list=None,
        use_nesterov=False,
    ):
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
        self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
        self._skip_list = skip_list

    def _resource_apply_dense(self, grad, var):
        rate = tf1.cast(self._learning_rate_tensor, grad.dtype.base_dtype)
        if self._skip_list is None or not any(part in var.name for part in self._skip_list):
            of_var, of_grad = tf1.norm(var, ord=2), tf1.norm(grad, ord=2)
            scale = self._eeta * of_var / (of_grad + self._weight_decay * of_var + self._epsilon)
            rate *= tf1.where(tf1.logical_and(of_var > 0, of_grad > 0), scale, tf1.ones_like(scale))
            grad += self._weight_decay * var
        return tf1.raw_ops.ResourceApplyMomentum(
            var=var.handle,
            accum=self.get_slot(var, "momentum").handle,
            lr=tf1.ones_like(rate),
            grad=rate * grad,  # momentum is that of the steps, whatever the rates were
            momentum=tf1.cast(self._momentum_tensor, grad.dtype.base_dtype),
            use_locking=self._use_locking,
            use_nesterov=self._use_nesterov,
        )


class _SignOptimizer(tf1.train.Optimizer):
    """A rate that is higher where a gradient and the mean of those before have the same sign."""

    def __init__(self, learning_rate, beta, sign_decay_fn, use_locking, name):
        super().__init__(use_locking, name)
        self._rate, self._beta, self._sign_decay_fn = learning_rate, beta, sign_decay_fn
        self._sign_decay = 1.0

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        if self._sign_decay_fn is not None:
            self._sign_decay = self._sign_decay_fn(global_step)
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _settings(self, var):
        """Rate, decay of the signs, and beta."""
        return [tf1.cast(one, var.dtype.base_dtype) for one in (self._rate, self._sign_decay, self._beta)]

    def _resource_apply_sparse(self, grad, var, indices):
        rate, decay, beta = self._settings(var)
        mean = self.get_slot(var, "m")
        with tf1.control_dependencies([mean.assign(mean * beta)]):
            moved = mean.scatter_add(tf1.IndexedSlices((1 - beta) * grad, indices))
        with tf1.control_dependencies([moved]):
            same = tf1.sign(tf1.gather(mean, indices)) * tf1.sign(grad)
            return var.scatter_sub(tf1.IndexedSlices(rate * self._factor(decay * same) * grad, indices))


class AddSignOptimizer(_SignOptimizer):
    """Steps of the gradient times `alpha` and what the signs add to it."""

    def __init__(
        self,
        learning_rate=0.1,
        alpha=1.0,
        beta=0.9,
        sign_decay_fn=None,
        use_locking=False,
        name="AddSignOptimizer",
    ):
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha

    def _factor(self, signs):
        return tf1.cast(self._alpha, signs.dtype) + signs

    def _resource_apply_dense(self, grad, var):
        rate, decay, beta = self._settings(var)
        return tf1.raw_ops.ResourceApplyAddSign(
            var=var.handle,
            m=self.get_slot(var, "m").handle,
            lr=rate,
            alpha=tf1.cast(self._alpha, var.dtype.base_dtype),
            sign_decay=decay,
            beta=beta,
            grad=grad,
            use_locking=self._use_locking,
        )


class PowerSignOptimizer(_SignOptimizer):
    """Steps of the gradient times a power of `base`."""

    def __init__(
        self,
        learning_rate=0.1,
        base=math.e,
        beta=0.9,
        sign_decay_fn=None,
        use_locking=False,
        name="PowerSignOptimizer",
    ):
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._log_of_base = math.log(base)

    def _factor(self, signs):
        return tf1.exp(self._log_of_base * signs)

    def _resource_apply_dense(self, grad, var):
        rate, decay, beta = self._settings(var)
        return tf1.raw_ops.ResourceApplyPowerSign(
            var=var.handle,
            m=self.get_slot(var, "m").handle,
            lr=rate,
            logbase=tf1.cast(self._log_of_base, var.dtype.base_dtype),
            sign_decay=decay,
            beta=beta,
            grad=grad,
            use_locking=self._use_locking,
        )


class RegAdagradOptimizer(tf1.train.AdagradOptimizer):
    """Adagrad that can take steps which its accumulators do not count."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1, use_locking=False, name="RegAdagrad"):
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._updates_slots = True

    @contextlib.contextmanager
    def avoid_updating_slots(self):
        """Steps that are built inside leave the accumulators as they are."""
        before, self._updates_slots = self._updates_slots, False
        try:
            yield
        finally:
            self._updates_slots = before

    def _of_step(self, grad, var):
        return {
            "var": var.handle,
            "accum": self.get_slot(var, "accumulator").handle,
            "lr": tf1.cast(self._learning_rate_tensor, grad.dtype.base_dtype),
            "grad": grad,
            "use_locking": self._use_locking,
            "update_slots": self._updates_slots,
        }

    def _resource_apply_dense(self, grad, var):
        return tf1.raw_ops.ResourceApplyAdagrad(**self._of_step(grad, var))

    def _resource_apply_sparse(self, grad, var, indices):
        return tf1.raw_ops.ResourceSparseApplyAdagrad(indices=indices, **self._of_step(grad, var))


class VariableClippingOptimizer(tf1.train.Optimizer):
    """Another optimizer, after whose steps some variables are cut to a norm of `max_norm` at most.

    Args:
        opt: the other optimizer.
        vars_to_clip_dims: the dimensions over which norms are taken, by variable.
        max_norm: the highest norm.
    """

    def __init__(
        self,
        opt,
        vars_to_clip_dims,
        max_norm,
        use_locking=False,
        colocate_clip_ops_with_vars=False,
        name="VariableClipping",
    ):
        super().__init__(use_locking, name)
        self._optimizer, self._max_norm = opt, max_norm
        self._axes = {id(var): list(axes) for var, axes in vars_to_clip_dims.items()}

    def compute_gradients(self, *args, **kwargs):
        """Those of the other optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def get_slot(self, *args, **kwargs):
        """That of the other optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """Those of the other optimizer."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """The step of the other optimizer, and the cuts behind it."""
        grads_and_vars = list(grads_and_vars)
        with tf1.name_scope(name, self._name) as name:
            step = self._optimizer.apply_gradients(grads_and_vars, global_step=global_step)
            with tf1.control_dependencies([step]):
                cuts = [self._cut(grad, var) for grad, var in grads_and_vars if grad is not None]
            return tf1.group(step, *(one for one in cuts if one is not None), name=name)

    def _cut(self, grad, var):
        axes = self._axes.get(id(var))
        if axes is None:
            return None
        if isinstance(grad, tf1.IndexedSlices) and 0 not in axes:
            rows = tf1.gather(var, grad.indices)
            more = rows - tf1.clip_by_norm(rows, self._max_norm, axes)
            return var.scatter_sub(tf1.IndexedSlices(more, grad.indices, grad.dense_shape))
        value = var.read_value()
        return var.assign_sub(value - tf1.clip_by_norm(value, self._max_norm, axes), self._use_locking)


class MovingAverageOptimizer(tf1.train.Optimizer):
    """Another optimizer, with moving averages of what it trains: `swapping_saver` saves them as the variables."""

    def __init__(self, opt, average_decay=0.9999, num_updates=None, sequential_update=True):
        super().__init__(False, type(self).__name__)
        self._optimizer = opt
        self._ema = tf1.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential = sequential_update
        self._averages = None  # by the name of the variable, when it has been trained

    def compute_gradients(self, *args, **kwargs):
        """Those of the other optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """The step of the other optimizer, and the averages behind it."""
        grads_and_vars = list(grads_and_vars)
        step = self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)
        trained = [variable for gradient, variable in grads_and_vars if gradient is not None]
        with tf1.control_dependencies([step] if self._sequential else []):
            averaged = self._ema.apply(trained)
        self._averages = {variable.op.name: self._ema.average(variable) for variable in trained}
        return tf1.group(step, averaged, name="train_with_avg")

    def swapping_saver(self, var_list=None, name="swapping_saver", **kwargs):
        """A Saver in whose checkpoints each trained variable and its average have changed places."""
        if self._averages is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        if not isinstance(var_list, dict):
            var_list = {one.op.name: one for one in tf1.global_variables() if var_list is None or one in list(var_list)}
        swapped = dict(var_list)
        for variable, average in self._averages.items():
            if variable in var_list:
                if average.op.name not in var_list:
                    raise ValueError(f"Variable to swap {average.op.name} is not part of variables to save")
                swapped[variable], swapped[average.op.name] = var_list[average.op.name], var_list[variable]
        return tf1.train.Saver(swapped, name=name, **kwargs)


def clip_gradients_by_global_norm(gradients_variables, clip_norm=20.0):
    """Gradients with their variables, all made so much smaller that their norm is `clip_norm` at most; and the norm."""
    gradients, variables = zip(*gradients_variables, strict=True)
    norm = tf1.global_norm(gradients)
    gradients, _ = tf1.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return list(zip(gradients, variables, strict=True)), norm
