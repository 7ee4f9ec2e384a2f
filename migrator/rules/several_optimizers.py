"""Optimizers that Keras' `compile` does not take: several, for some variables, over several batches."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM415",
        "an optimizer of some variables",
        Severity.MANUAL,
        """
The train_op names the variables that an optimizer trains: `var_list` of `minimize` or `compute_gradients`, the second
argument of `tf.gradients`, `variables` of `optimize_loss`, `variables_to_train` of `create_train_op`. Often several
optimizers train a model together: Ftrl the wide part, Adagrad the deep one. `compile` of Keras takes one optimizer of
all variables, and the names of TensorFlow 1, by which they are chosen, are not those of Keras layers. The bridge keeps
names and optimizers: leave `--style native` out.
""",
    ),
    Rule(
        "TFM417",
        "gradient accumulation",
        Severity.MANUAL,
        """
The model_fn keeps a variable of zeros for each weight, adds the gradients of every batch to it, and applies the sums
after several batches. `gradient_accumulation_steps` of Keras 3 is another thing: it always takes the mean, and its Adam
counts batches. The bridge keeps the code: leave `--style native` out.
""",
    ),
)
