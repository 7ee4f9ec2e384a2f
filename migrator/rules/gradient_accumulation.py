"""Gradients of several batches that are added up before an optimizer applies them."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule
from migrator.rules.several_optimizers import RATES_OF_PARTS

RULES = (
    Rule(
        "TFM416",
        "gradients that are added up over several batches",
        Severity.REVIEW,
        """
The model_fn keeps a variable of zeros for each weight, adds the gradients of every batch to it, and by a condition on
the global step applies the sums and clears them:

    with tf.control_dependencies([total.assign_add(g) for total, g in zip(sums, gradients)]):
        update = tf.cond(tf.equal((step + 1) % 3, 0), apply_and_clear, tf.no_op)

The new file gets a small class, `AccumulatingOptimizer`, around the Keras optimizer. It keeps the sums as its slots and
asks the same condition; what gradients or sums were divided by, it divides them by. `optimizer.iterations` counts
batches, as the global step did. The optimizer inside counts how often sums were applied, which is what Adam's
correction goes by in TensorFlow 1, too. `gradient_accumulation_steps` of Keras 3 is another thing: it always takes the
mean, and its Adam counts batches.

Such a program comes out in the mapped form (TFM150) and trains on one device.

Measured (TensorFlow 1.15.5 and 2.15.1 against 2.21, means of 3 batches with Adam, 9 batches): `verify` finds losses,
weights, slots and sums equal within the noise of one rounding. A training that goes on from a checkpoint between two of
the three batches ends with the same weights as one that was not interrupted.
""",
    ),
    Rule(
        "TFM417",
        "an accumulation of gradients that is not carried over",
        Severity.MANUAL,
        """
Gradients are added up over several batches (see TFM416), but not in a way that can be followed. Write it so: the sums
are variables of zeros with `trainable=False`, made by one comprehension over `tf.trainable_variables()`; another one
adds the gradients of a batch to them; under `tf.control_dependencies` on this, one `tf.cond` on the global step calls a
function of the model_fn that applies the sums and, under control dependencies on that, clears them, or `tf.no_op`; the
global step counts every batch, under control dependencies on the `tf.cond`. Without these dependencies TensorFlow 1
runs the parts in any order. Clipping, several optimizers, a rate that changes with the step, strategies with several
replicas, `--style native` and `--keras 3` are not carried over for such programs.
""",
    ),
)

ACCUMULATING = (
    '''\
class {name}(tf.keras.optimizers.Optimizer):
    """Adds up the gradients of several batches; `optimizer` applies the sums where `applies(step)` says so."""

    def __init__(self, optimizer, applies, share=1, divisor=1):
        super().__init__(name="{name}", weight_decay=None)
        self.parts = [optimizer]
        self.applies, self.share, self.divisor = applies, share, divisor

'''
    + RATES_OF_PARTS
    + """\
    def build(self, var_list):
        if getattr(self, "_built", False):
            return
        super().build(var_list)
        self.parts[0].build(var_list)
        self.trained = list(var_list)
        self.sums = [self.add_variable_from_reference(variable, "sum") for variable in var_list]
        self._built = True

    def apply_gradients(self, grads_and_vars, **kwargs):
        applies = self.applies(tf.identity(self.iterations))
        step = super().apply_gradients(grads_and_vars, **kwargs)
        tf.cond(applies, self.apply_sums, lambda: None)
        return step

    def update_step(self, gradient, variable):
        total = self.sums[self._index_dict[self._var_key(variable)]]
        total.assign_add(tf.convert_to_tensor(gradient) / self.share)

    def apply_sums(self):
        totals = [total / self.divisor for total in self.sums]
        self.parts[0].apply_gradients(zip(totals, self.trained), skip_gradients_aggregation=True)
        for total in self.sums:
            total.assign(tf.zeros_like(total))
"""
)
