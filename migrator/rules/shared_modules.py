"""Modules that a migrated program shares with one that stays, and steps that are counted in any order."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM424",
        "a module that is shared with a TensorFlow 1 program",
        Severity.REVIEW,
        """
Of several programs that share modules all are migrated or none, with one exception: a shared module that changes its
spelling only, into one that TensorFlow 1.15 knows as well (`tf.compat.v1`, say), does for both. Then the programs that
nothing blocks are migrated, and the named one goes on as it was, on TensorFlow 1.15.

The module may be the main file of a migrated program: what the other takes of it, and all that this reads, must stay
the same but for the spelling, and the file must not do more than before when it is imported, nor need what TensorFlow
1.15 lacks.
""",
    ),
    Rule(
        "TFM425",
        "a global step that is updated in any order",
        Severity.REVIEW,
        """
A train_op assigns the next global step, and nothing says that the learning rate reads the step before. A graph of
TensorFlow 1 leaves the order open: with the variables of TensorFlow 1.15.5, many steps of two short sessions of BERT's
`create_optimizer` were trained with the rate of one step later, and not the same ones in both (measured). The new
program runs in the order of its lines: the learning rate is that of the step itself, as written.

This is said of the linear part of a combined canned Estimator with two optimizers of Keras, whose deep part counts the
global step, where its learning rate is computed from that step; a schedule of Keras counts for itself.

So `tf-migrate verify` finds another learning rate in such an original, and may find it not repeatable. To compare the
two, put the counting under `with tf.control_dependencies([train_op]):` first.
""",
    ),
)
