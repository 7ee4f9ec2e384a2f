"""Optimizers of tf.contrib.opt."""

import tensorflow.compat.v1 as tf1


def extend_with_decoupled_weight_decay(base_optimizer):
    """A class of optimizers that let weights decay by themselves, and not through the loss, before each step."""

    class OptimizerWithDecay(base_optimizer):
        """An optimizer whose first argument is the rate of the decay, a number or a tensor."""

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
