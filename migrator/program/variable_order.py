"""Whether a model_fn asks for its variables before it has made them all.

A graph knows the variables (and their regularization) that were made so far; a Keras model always knows all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.region import reach, symbols

_ASKING = (
    "tf.trainable_variables",
    "tf.global_variables",
    "tf.GraphKeys.TRAINABLE_VARIABLES",
    "tf.GraphKeys.REGULARIZATION_LOSSES",
    "tf.losses.get_regularization_loss",
    "tf.losses.get_regularization_losses",
    "tf.losses.get_total_loss",
)
_MAKING = (
    "tf.get_variable",
    "tf.Variable",
    "tf.layers.",
    "tf.keras.layers.",
    "tf.contrib.",
    "tf.nn.",
    "tf.feature_column.",
)
_MAKING_NONE = ("flatten", "dropout", "pooling1d", "pooling2d", "pooling3d", "_regularizer", "_initializer")
# What `tf.contrib` has for training, metrics and summaries: variables that are not trained.
_OF_TRAINING = (
    *("tf.contrib.layers.optimize_loss", "tf.contrib.layers.summarize_", "tf.contrib.training.", "tf.contrib.opt."),
    *("tf.contrib.slim.learning.", "tf.contrib.slim.metrics.", "tf.contrib.metrics.", "tf.contrib.summary."),
    *("tf.contrib.estimator.", "tf.contrib.tpu.", "tf.contrib.losses.", "tf.contrib.slim.losses."),
)


def check_order(project: Project, file: ParsedFile, statements: Sequence[cst.CSTNode]) -> None:
    """Raises Blocked (TFM312) where a statement asks for the variables, or their regularization, and a later one makes
    more. `statements` are those of one mode.
    """
    asking: cst.CSTNode | None = None
    for statement in statements:
        names = symbols(reach(project, file, statement))
        names = {one for one in names if not any(other.startswith(one + ".") for other in names)}  # no modules
        if asking is not None and any(_makes_variables(name) for name in names):
            raise Blocked(
                "TFM312", asking, "variables created after this line would count here: move it below the network"
            )
        if asking is None and names & set(_ASKING):
            asking = statement


def _makes_variables(name: str) -> bool:
    if name.startswith("tf.nn."):
        return "rnn" in name
    if name.startswith(_OF_TRAINING):
        return False
    return name.startswith(_MAKING) and not name.endswith(_MAKING_NONE)
