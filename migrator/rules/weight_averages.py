"""Moving averages of the weights, `tf.train.ExponentialMovingAverage`: a subclass of the optimizer keeps them.

All figures: TensorFlow 1.15.5 and 2.15.1 against Keras. Keras' own `use_ema` overwrites the weights with the averages
at the end of `fit`, and on Keras 3 it starts from the weights after the first step, not from those before it.
"""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM412",
        "an optimizer that keeps moving averages of the weights",
        Severity.REVIEW,
        """
`tf.train.ExponentialMovingAverage(decay, num_updates).apply()` moves an average of every trained weight after each
step. The file gets a subclass of the optimizer that does it:

    class AveragedAdam(tf.keras.optimizers.Adam):
        ...
        def update_step(self, gradient, variable):
            average = self.averages[self._index_dict[self._var_key(variable)]]
            start = tf.where(tf.equal(self.iterations, 0), variable, average)
            super().update_step(gradient, variable)
            average.assign(start - (1 - self.ema_momentum) * (start - variable))

Averages start at the weights before the first step, and with `num_updates` the decay of a step is at most
`(1 + n) / (10 + n)`, where `n` counts it. They are in `optimizer.averages`, in the order of the trained weights, and in
checkpoints. They agree with TensorFlow 1.15.5 to 1e-6. Keras' own `use_ema=True` is no such thing: it overwrites the
weights with the averages at the end of `fit`, and on Keras 3 it does not start from the weights before the first step
(20 % of the averages after one step, fading with the decay).

TensorFlow 1 says in which order a step moves the weights and their averages only where control dependencies do:
`with tf.control_dependencies([train_op]): train_op = ema.apply()`. In `tf.group(train_op, ema.apply())` the averages
may be of the weights before the step or after it, of some so and of others so (TensorFlow 1.15.5 took those before it,
2.15.1 some of both). The migrated program takes the weights after the step: the averages of a run may be those of one
step later. `verify` does not compare such averages, nor those that the replicas of a MirroredStrategy keep.

An EstimatorSpec of the EVAL mode with `scaffold=tf.train.Scaffold(saver=tf.train.Saver(ema.variables_to_restore()))`
evaluates the averages. The model gets a class whose `evaluate` puts the averages in the place of the weights, and the
weights back after it: training goes on with the weights, and predictions and exports are of the weights, as before.
""",
    ),
    Rule(
        "TFM413",
        "unsupported moving averages",
        Severity.MANUAL,
        """
Supported are averages of all trained weights that are kept beside them and evaluated (see TFM412). Unsupported are
those of some weights or of tensors, and of batch normalization's means and variances; averages whose decay or
`num_updates` is computed; those that the model_fn reads otherwise (`average`), that predictions restore, or evaluations
of `--loop custom`; and averages of an optimizer that is made in another function, or runs on a mesh.

To evaluate or to predict with averages that the migrated program keeps, assign `optimizer.averages` to the weights
before it, and the weights back after it. For that, take what reads them out of the model_fn.
""",
    ),
)

_CLASS = '''\
class {name}(%s):
    """Keeps moving averages of the weights beside them, as `tf.train.ExponentialMovingAverage` did."""

    def build(self, var_list):
        built = getattr(self, "_built", False)
        super().build(var_list)
        if not built:
            self.averages = [
                self.add_variable_from_reference(variable, "average", initial_value=variable)
                for variable in var_list
            ]

    def update_step(self, gradient, variable):
        average = self.averages[self._index_dict[self._var_key(variable)]]
        start = tf.where(tf.equal(self.iterations, 0), variable, average)
'''
_MOVE = "        average.assign(start - (1 - {decay}) * (start - variable))\n"
_STEP = "        super().update_step(gradient, variable)\n"
_COUNTED = """\
        steps = tf.cast(self.iterations{counted}, variable.dtype)
        decay = tf.minimum(self.ema_momentum, (1 + steps) / (10 + steps))
"""

#: A model that evaluates with the averages that its optimizer keeps.
EVALUATED = '''\
class {name}(tf.keras.Model):
    """Evaluates with the moving averages of the weights in their place, and puts the weights back after it."""

    def evaluate(self, *args, **kwargs):
        variables = self.trainable_variables
        self.optimizer.build(variables)
        weights = [tf.identity(variable) for variable in variables]
        for variable, average in zip(variables, self.optimizer.averages):
            variable.assign(average)
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            for variable, weight in zip(variables, weights):
                variable.assign(weight)
'''


def averaging_class(counted: bool, before: bool) -> str:
    """The text of the class, with `{name}` where its name goes and `%s` for its base.

    The decay is `counted` by the steps, and averages move `before` the weights do, or after them.
    """
    move = _MOVE.replace("{decay}", "decay" if counted else "self.ema_momentum")
    if counted:
        move = _COUNTED.replace("{counted}", "" if before else " + 1") + move
    return _CLASS + (move + _STEP if before else _STEP + move)
