"""The variables that an Estimator is asked for, by the names of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.program.calls import string
from migrator.program.parsed import ParsedFile

#: Methods that read variables of the newest checkpoint, with their parameters.
VARIABLES: Mapping[str, tuple[str, ...]] = {"get_variable_value": ("name",), "get_variable_names": ()}
_GLOBAL_STEP = "global_step"


def asks_global_step(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether the name of a variable is that of the global step."""
    return string(node) == _GLOBAL_STEP or (
        node is not None and file.imports.tensorflow(node) == "tf.GraphKeys.GLOBAL_STEP"
    )
