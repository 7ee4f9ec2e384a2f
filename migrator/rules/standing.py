"""Names and arguments of TensorFlow 1 that are left in a file, and that TensorFlow 2.21 does not have."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM270",
        "a name that TensorFlow 2.21 lacks",
        Severity.MANUAL,
        """
A file that says it fails on TensorFlow 2.21. This is looked up, for every name of TensorFlow in every file that was
given, in a table made of the real TensorFlow 2.21 with tf_keras; comments and texts have no say, and neither has what a
program guards by asking for the version of TensorFlow or by catching the error. The message says where TensorFlow 2.21
has the same thing. What it has as `tf.compat.v1.X` alone may need TensorFlow 1's ways as well: a graph
(`tf.compat.v1.disable_v2_behavior()`), and Keras 2 (`TF_USE_LEGACY_KERAS=1`) for `tf.compat.v1.layers`.
""",
    ),
    Rule(
        "TFM271",
        "an argument that TensorFlow 2.21 lacks",
        Severity.MANUAL,
        """
The function is there under its name, but has lost the argument (`dtype` of an initializer, `filter` of a layer): the
call fails. The same function of TensorFlow 1 is in `tf.compat.v1`; where the argument only has another name now, that
is the better way. Functions that compute from their arguments alone (`tf.reduce_sum(x, keep_dims=True)`) are spelled
`tf.compat.v1.X` by themselves (TFM272).
""",
    ),
    Rule(
        "TFM273",
        "a session without a graph",
        Severity.MANUAL,
        """
A program of `tf.compat.v1` (what `tf_upgrade_v2` writes, say) that makes a graph and runs it in a session fails on
TensorFlow 2, where operations run at once: `tf.placeholder() is not compatible with eager execution`, or `The Session
graph is empty`. `tf.compat.v1.disable_v2_behavior()`, called once after the import of TensorFlow, gives it the default
graph back. Nothing is reported where a file of the project calls that, or makes a graph the default one.
""",
    ),
)
