"""Logs of the `mlperf_compliance` package that are operations of a TensorFlow 1 graph."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.parsed import Blocked, ParsedFile, Tracked, name_nodes
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM254",
        "values that mlperf_compliance logs in a graph",
        Severity.REVIEW,
        """
`mlperf_compliance.tf_mlperf_log.log_deferred(op=x, ...)` returns `x` and prints it in every n-th step, with `tf.Print`,
a variable of its own and `tf.assign_add`, none of which TensorFlow 2 has. `x` stands in its place: the training is the
same, the line of the log is missing. Print the value in a callback if a submission needs it.
""",
    ),
)

_LOG = "mlperf_compliance.tf_mlperf_log.log_deferred"
_MODULE = "mlperf_compliance.tf_mlperf_log"


def without_deferred_logs(file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file with logged values in the places of their logs, and a remark for each of these."""
    if "log_deferred" not in file.bare:
        return file, []
    remover = _Remover(file)
    module = file.module.visit(remover)
    if not remover.gone:
        return file, []
    assert isinstance(module, cst.Module)
    names = {name for name, origin in file.imports.names.items() if origin in (_MODULE, _LOG)}
    unread = names - {node.value for node in name_nodes(module)}
    module = module.with_changes(body=[new for line in module.body for new in _without(line, unread)])
    new = ParsedFile(file.path, file.text, module)
    new.keep_positions(remover.made, file)
    return new, remover.gone


def _without(line: Any, names: set[str]) -> list[Any]:
    """A line of a module without the `from mlperf_compliance import` of names that nothing reads any more."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
        return [line]
    kept = [a for a in small.names if dotted(a.asname.name if a.asname is not None else a.name) not in names]
    if len(kept) == len(small.names):
        return [line]
    if not kept:
        return []
    kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return [line.with_changes(body=[small.with_changes(names=kept)])]


class _Remover(Tracked):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.gone: list[Blocked] = []

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """`x = x` is nothing."""
        small = updated_node.body[0]
        if updated_node.deep_equals(original_node) or not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return updated_node
        if isinstance(small.value, cst.Name) and small.value.deep_equals(small.targets[0].target):
            return cst.RemoveFromParent()
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if self.file.imports.resolve(original_node.func) != _LOG:
            return updated_node
        for index, arg in enumerate(updated_node.args):
            if (arg.keyword is None and index == 0 and not arg.star) or (
                arg.keyword is not None and arg.keyword.value == "op"
            ):
                message = "the value is no longer logged: mlperf_compliance logs it with graph operations"
                self.gone.append(Blocked("TFM254", original_node, message))
                return arg.value
        return updated_node
