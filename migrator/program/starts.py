"""What an Estimator starts from, and the variables that it is asked for: both go by the names of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import is_none, string
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.scopes import values_of
from migrator.rules.warm_starts import SETTINGS, read_settings

#: Methods that read variables of the newest checkpoint, with their parameters.
VARIABLES: Mapping[str, tuple[str, ...]] = {"get_variable_value": ("name",), "get_variable_names": ()}
_GLOBAL_STEP = "global_step"


@dataclass(frozen=True)
class WarmStart:
    """`warm_start_from`: the expression, and whether it is made by WarmStartSettings (else it is a path).

    `sure` says that it is never None.
    """

    node: cst.BaseExpression
    settings: bool
    sure: bool


def read_warm_start(
    file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression, model_dir: cst.BaseExpression | None
) -> WarmStart | None:
    """What an Estimator starts from; None where it is its own model_dir. Raises Blocked (TFM146)."""
    if model_dir is not None and file.code(node) == file.code(model_dir):
        return None  # its newest checkpoint is loaded anyway
    if isinstance(node, cst.Call):
        if file.imports.tensorflow(node.func) == SETTINGS:
            read_settings(node)
            return WarmStart(node, True, True)
        return WarmStart(node, False, file.imports.resolve(node.func) == "os.path.join")
    if isinstance(node, cst.Name):
        values = values_of(scope, node.value) or values_of(file.module, node.value)
        made = [isinstance(v, cst.Call) and file.imports.tensorflow(v.func) == SETTINGS for v in values]
        if any(made):
            if not all(one or is_none(value) for one, value in zip(made, values, strict=True)):
                raise Blocked("TFM146", node, f"`{node.value}` is WarmStartSettings in one place, a path in another")
            return WarmStart(node, True, all(made))
        return WarmStart(node, False, bool(values) and all(string(value) for value in values))
    if string(node) is not None:
        return WarmStart(node, False, True)
    if dotted(node) is not None or isinstance(node, cst.Subscript | cst.BinaryOperation | cst.FormattedString):
        return WarmStart(node, False, False)
    raise Blocked("TFM146", node, "`warm_start_from` is neither a path nor WarmStartSettings made in this file")


def asks_global_step(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether the name of a variable is that of the global step."""
    return string(node) == _GLOBAL_STEP or (
        node is not None and file.imports.tensorflow(node) == "tf.GraphKeys.GLOBAL_STEP"
    )
