"""The variables that an Estimator is asked for, by the names of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.program.calls import calls_in, nodes_in, string
from migrator.program.parsed import Blocked, ParsedFile

#: Methods that read variables of the newest checkpoint, with their parameters.
VARIABLES: Mapping[str, tuple[str, ...]] = {"get_variable_value": ("name",), "get_variable_names": ()}
_GLOBAL_STEP = "global_step"
_FILES = "model.ckpt"
_READERS = ("tf.train.load_checkpoint", "tf.train.load_variable", "tf.train.list_variables")


def asks_global_step(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether the name of a variable is that of the global step."""
    return string(node) == _GLOBAL_STEP or (
        node is not None and file.imports.tensorflow(node) == "tf.GraphKeys.GLOBAL_STEP"
    )


def checkpoint_reads(file: ParsedFile) -> list[Blocked]:
    """What looks for checkpoints, or for variables in them, by names that a native program does not write (TFM853)."""
    if not any(word in file.text for word in (_FILES, *(name.rpartition(".")[2] for name in _READERS))):
        return []
    message = "a checkpoint has these names in TensorFlow 1 only: the bridge keeps them"
    calls = [call for call in calls_in(file.module) if file.imports.tensorflow(call.func) in _READERS]
    strings = [node for node in nodes_in(file.module) if isinstance(node, cst.SimpleString) and _FILES in node.value]
    paths = [one for one in strings if len(str(string(one)).split()) == 1]  # no help text, no docstring
    return [Blocked("TFM853", node, message) for node in (*calls, *paths)]
