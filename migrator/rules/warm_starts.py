"""Starting from a checkpoint, and asking an Estimator for its variables, by their TensorFlow 1 names."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM146",
        "warm_start_from",
        Severity.MANUAL,
        """
An Estimator with `warm_start_from` starts with the values of another checkpoint, which it finds by the names of
variables. Keras names the weights of a native program, so that nothing tells which is which. The bridge keeps the names
of TensorFlow 1, and starts as the Estimator did: leave `--style native` out. For a native program, remove the argument,
migrate, run `tf-migrate checkpoint`, and load the weights before the training.
""",
    ),
    Rule(
        "TFM851",
        "warm start from the model_dir",
        Severity.REVIEW,
        """
A `warm_start_from` that is the Estimator's own `model_dir` is left out: its newest checkpoint is loaded anyway.
""",
    ),
    Rule(
        "TFM853",
        "variables by name in the native form",
        Severity.MANUAL,
        """
In the native form Keras names the weights, so that `get_variable_value("dense/kernel")` could be another weight. The
bridge keeps the names: leave `--style native` out. So it does where a checkpoint is read by name
(`tf.train.load_checkpoint(estimator.model_dir)`, `tf.train.list_variables`), or looked for as `model.ckpt-100`. The
global step is known in both. Values are those of the newest checkpoint, so that the Estimator is asked after the
training.
""",
    ),
)
