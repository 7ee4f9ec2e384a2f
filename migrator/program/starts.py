"""The variables that an Estimator is asked for, by the names of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.program.calls import calls_in, string
from migrator.program.parsed import Blocked, ParsedFile

#: Methods that read variables of the newest checkpoint, with their parameters.
VARIABLES: Mapping[str, tuple[str, ...]] = {"get_variable_value": ("name",), "get_variable_names": ()}
_GLOBAL_STEP = "global_step"
_READERS = ("tf.train.load_checkpoint", "tf.train.load_variable", "tf.train.list_variables")


def asks_global_step(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether the name of a variable is that of the global step."""
    return string(node) == _GLOBAL_STEP or (
        node is not None and file.imports.tensorflow(node) == "tf.GraphKeys.GLOBAL_STEP"
    )


def checkpoint_reads(file: ParsedFile) -> list[Blocked]:
    """What reads variables of checkpoints by name, where a native program writes other names (TFM853)."""
    message = "a checkpoint has these names in TensorFlow 1 only: the bridge keeps them"
    if not any(name.rpartition(".")[2] in file.bare for name in _READERS):
        return []
    return [
        Blocked("TFM853", call, message)
        for call in calls_in(file.module)
        if file.imports.tensorflow(call.func) in _READERS
    ]
