"""Estimators that train_and_evaluate is given in place: `train_and_evaluate(Estimator(...), ...)`."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from migrator.names.free import free
from migrator.program.parsed import ParsedFile, Tracked, names_in
from migrator.program.training import is_estimator

_BOTH = "tf.estimator.train_and_evaluate"


def with_named_estimators(file: ParsedFile) -> ParsedFile:
    """The file with such Estimators on a line of their own before that call, under a name."""
    if "train_and_evaluate" not in file.text:
        return file
    writer = _Writer(file)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    if not writer.changed:
        return file
    new = replace(file, module=module)
    new.keep_positions(writer.made, file)
    return new


class _Writer(Tracked):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.name = free("estimator", names_in(file.module) | set(file.imports.names))
        self.changed = False

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        at, both = self._in_place(original_node), _call(updated_node)
        if at is None or both is None:
            return updated_node
        self.changed = True
        made = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(self.name))], both.args[at].value)])
        named = both.args[at].with_changes(value=cst.Name(self.name))
        call = both.with_changes(args=[*both.args[:at], named, *both.args[at + 1 :]])
        line = updated_node.with_deep_changes(updated_node.body[0], value=call).with_changes(leading_lines=())
        self.made.update({named.value: original_node, call: original_node})
        return cst.FlattenSentinel([made.with_changes(leading_lines=updated_node.leading_lines), line])

    def _in_place(self, node: cst.SimpleStatementLine) -> int | None:
        """Which argument of a train_and_evaluate is an Estimator that is made there; None where none is."""
        call = _call(node)
        if call is None or self.file.imports.resolve(call.func) != _BOTH:
            return None
        for at, arg in enumerate(call.args):
            given = arg.keyword.value if arg.keyword is not None else ("estimator" if at == 0 else "")
            if given == "estimator" and not arg.star and self._makes_one(arg.value):
                return at
        return None

    def _makes_one(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and is_estimator(self.file.imports.resolve(node.func) or "")


def _call(node: cst.SimpleStatementLine) -> cst.Call | None:
    """The call that a line consists of, its result kept or not."""
    small = node.body[0] if len(node.body) == 1 else None
    value = small.value if isinstance(small, cst.Expr | cst.Assign) else None
    return value if isinstance(value, cst.Call) else None


__all__ = ["with_named_estimators"]
