"""Assignment expressions written as the assignments that they are: `optimizer = Adam(rate := 0.1)` as two lines.

Only where the line before is the same: nothing that is evaluated earlier in the statement may have an effect, or read
what the assignment changes. What cannot be written so stays, and `rebinding.check` says what is not understood of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from migrator.names.bindings import Form, read_bindings
from migrator.pairing import equal_zip
from migrator.program.calls import calls_in
from migrator.program.order import is_harmless, parts
from migrator.program.parsed import ParsedFile, Tracked, names_in
from migrator.program.training import find_places
from migrator.walking import of_kinds

_COMPREHENSIONS = (cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)


def with_plain_assignments(file: ParsedFile) -> ParsedFile:
    """The file with the assignment expressions of its model_fns and drivers as lines of their own."""
    if not any(binding.form is Form.WALRUS for binding in read_bindings(file.module)):
        return file
    calls = {place.call for place in find_places(file)}
    writer = _Writer(calls)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    if not writer.changed:
        return file
    new = replace(file, module=module)
    new.keep_positions(writer.made, file)
    return new


class _Writer(Tracked):
    """Writes the lines of the functions, or of the module, that make what a program consists of."""

    def __init__(self, calls: set[cst.Call]) -> None:
        super().__init__()
        self.calls = calls
        self.changed = False
        self._concerned: list[bool] = []

    def visit_Module(self, node: cst.Module) -> None:
        self._concerned.append(_holds(node, self.calls))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._concerned.append(_holds(node, self.calls))

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self._concerned.pop()
        return updated_node

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node.with_changes(body=self._body(original_node.body, updated_node.body))

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body = self._body(original_node.body, updated_node.body)
        return updated_node.with_changes(body=body)

    def _body(self, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
        if not self._concerned[-1]:
            return list(new)
        return [line for before, statement in equal_zip(old, new) for line in self._lines(before, statement)]

    def _lines(self, old: cst.BaseStatement, statement: cst.BaseStatement) -> Sequence[cst.BaseStatement]:
        """A statement, behind the lines of the assignments that it begins with."""
        lines: list[cst.BaseStatement] = []
        while (place := _expression(statement)) is not None:
            found = _first(place)
            if found is None or not isinstance(found.target, cst.Name):
                break
            target = found.target
            value = found.value
            if not value.lpar and "\n" in cst.Module([]).code_for_node(value):
                value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                self.made[value] = found.value
            assign = cst.Assign([cst.AssignTarget(target)], value)
            line = cst.SimpleStatementLine([assign], leading_lines=getattr(statement, "leading_lines", ()))
            name = cst.Name(target.value)
            for one in (assign, line, assign.targets[0], name):
                self.made[one] = self._origin(found)
            plain = _Replaced(found, name)
            changed = statement.with_changes(leading_lines=()).visit(plain)
            assert isinstance(changed, cst.BaseStatement)
            for made, origin in plain.made.items():
                self.made[made] = self._origin(origin)
            self.made[changed] = old
            lines.append(line)
            statement = changed
            self.changed = True
        return [*lines, statement]

    def _origin(self, node: cst.CSTNode) -> cst.CSTNode:
        """The node of the file that a node was made of."""
        while self.made.get(node, node) is not node:
            node = self.made[node]
        return node


class _Replaced(Tracked):
    def __init__(self, walrus: cst.NamedExpr, name: cst.Name) -> None:
        super().__init__()
        self.walrus = walrus
        self.name = name

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node is not self.walrus

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        return self.name if original_node is self.walrus else super().on_leave(original_node, updated_node)


def _holds(node: cst.CSTNode, calls: set[cst.Call]) -> bool:
    return any(call in calls for call in calls_in(node))


def _expression(statement: cst.BaseStatement) -> cst.CSTNode | None:
    """What a statement evaluates first, and once."""
    if isinstance(statement, cst.If):
        return statement.test
    if isinstance(statement, cst.For):
        return statement.iter
    if isinstance(statement, cst.With):
        return statement.items[0].item
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if isinstance(small, (cst.Assign, cst.Expr, cst.Return)):
        return small.value
    if isinstance(small, cst.Assert):
        return small.test
    return None


def _first(node: cst.CSTNode) -> cst.NamedExpr | None:
    """The assignment expression that is evaluated first in an expression, where nothing before it matters."""
    before: list[cst.CSTNode] = []
    found = _search(node, before)
    if found is None or not isinstance(found.target, cst.Name):
        return None
    read = {name for part in before for name in names_in(part)}
    return None if found.target.value in read else found


def _search(node: cst.CSTNode, before: list[cst.CSTNode]) -> cst.NamedExpr | None:
    """Goes through an expression in the order in which it is evaluated, noting what is harmless; stops at the rest."""
    if isinstance(node, cst.NamedExpr):
        inner = _search(node.value, [])
        return inner if inner is not None else None if _has_walrus(node.value) else node
    if not _has_walrus(node):
        return None
    for part in parts(node):
        if _has_walrus(part):
            return _search(part, before)
        if not is_harmless(part):
            return None
        before.append(part)
    return None


def _has_walrus(node: cst.CSTNode) -> bool:
    return bool(of_kinds(node, cst.NamedExpr))


__all__ = ["with_plain_assignments"]
