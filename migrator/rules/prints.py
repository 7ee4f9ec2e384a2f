"""Values that an operation of the graph prints (`tf.Print`)."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import bind, calls_in
from migrator.program.parsed import Blocked, ParsedFile, Remover, removed_by
from migrator.program.telling import leaves_something
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM130",
        "graph printing is dropped",
        Severity.REVIEW,
        """
`tf.Print(x, [y], "message")` returned `x`, and printed the value of `y` to standard error whenever `x` was computed.
`x` stands in its place: the training is the same, and nothing is printed. Print the values in a callback, or call
`tf.print` in the loss or in a layer of your own, where you need them.
""",
    ),
)

_PRINT = "tf.Print"
_PARAMETERS = ("input_", "data", "message", "first_n", "summarize", "name")


def without_prints(file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file with values in the places of the operations that print them, and a remark for each of these."""
    if "Print" not in file.bare:
        return file, []
    return removed_by(_Remover(file), file)


class _Remover(Remover):
    """Puts what is passed through in the place of a call of `tf.Print`; a line that does nothing then goes."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self._calls: dict[cst.CSTNode, cst.BaseExpression] = {}
        self._idle: set[cst.CSTNode] = set()
        self._emptied: set[cst.CSTNode] = set()

    def visit_Call(self, node: cst.Call) -> None:
        if self.file.imports.resolve(node.func) == _PRINT:
            passed = self._passed(node)
            if passed is not None:
                self._calls[node] = passed
                message = "`tf.Print` is dropped: print these values in a callback"
                self.gone.append(Blocked("TFM130", node, message))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        passed = self._calls.get(original_node)
        if passed is None:
            return updated_node
        index = next(i for i, arg in enumerate(original_node.args) if arg.value is passed)
        return updated_node.args[index].value

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: Any) -> Any:
        old, new = original_node.body[0], updated_node.body[0]
        if len(original_node.body) == 1 and isinstance(old, (cst.Expr, cst.Assign)) and old.value in self._calls:
            if isinstance(old, cst.Expr) or self._is_itself(new):
                self._idle.add(updated_node)
        return updated_node

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> Any:
        if self._idle.isdisjoint(updated_node.body):
            return updated_node
        lines: list[Any] = []
        comments: list[cst.EmptyLine] = []
        for line in updated_node.body:
            above = [*comments, *line.leading_lines]  # type: ignore[attr-defined]
            if line in self._idle:
                comments = [one for one in above if one.comment is not None]
            else:
                lines.append(line.with_changes(leading_lines=above) if comments else line)
                comments = []
        if not lines:
            empty = updated_node.with_changes(
                body=[cst.parse_statement("pass")], footer=[*comments, *updated_node.footer]
            )
            self._emptied.add(empty)
            return empty
        return updated_node.with_changes(body=lines, footer=[*comments, *updated_node.footer])

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        if updated_node.body in self._emptied and updated_node.orelse is None and not calls_in(updated_node.test):
            self._idle.add(updated_node)
        return updated_node

    def _is_itself(self, node: Any) -> bool:
        """Whether a line is `x = x`."""
        target = node.targets[0].target if len(node.targets) == 1 else None
        if not isinstance(target, cst.Name) or not isinstance(node.value, cst.Name):
            return False
        return target.value == node.value.value

    def _passed(self, node: cst.Call) -> cst.BaseExpression | None:
        """What a call returns; None where leaving out what it prints may leave out more."""
        try:
            given = bind(node, _PARAMETERS, _PRINT, "TFM203")
        except Blocked:
            return None
        shown = [value for key, value in given.items() if key != "input_"]
        called = [self.file.imports.tensorflow(call.func) for value in shown for call in calls_in(value)]
        if any(name is None or leaves_something(name) for name in called):
            return None
        return given.get("input_")


__all__ = ["without_prints"]
