"""Putting the statements of one branch in the place of their `if`, or of a handler in that of its `try`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator.program.parsed import Tracked

_IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError", "Exception")


def catches_the_import(kind: cst.BaseExpression | None) -> bool:
    """Whether a handler of that kind runs where a package cannot be imported."""
    if isinstance(kind, cst.Tuple):
        return any(catches_the_import(element.value) for element in kind.elements)
    return kind is None or (isinstance(kind, cst.Name) and kind.value in _IMPORT_ERRORS)


def lines_instead(lines: Sequence[cst.BaseStatement], above: Sequence[cst.EmptyLine]) -> Any:
    """What a visitor returns for a statement that `lines` replace, with what stood `above` it."""
    if not lines:
        return cst.RemoveFromParent()
    first, *rest = lines
    comments = [*above, *first.leading_lines]  # type: ignore[attr-defined]
    return cst.FlattenSentinel([first.with_changes(leading_lines=comments), *rest])


class Folding(Tracked):
    """Replaces `if` statements by one of their branches; which, its subclasses know."""

    def __init__(self) -> None:
        super().__init__()
        self._elifs: set[cst.CSTNode] = set()

    def visit_If(self, node: cst.If) -> None:
        if isinstance(node.orelse, cst.If):
            self._elifs.add(node.orelse)

    def is_elif(self, node: cst.If) -> bool:
        """Whether an `if` is an `elif`, for which its first one stands."""
        return node in self._elifs

    def body_instead(self, original: cst.If, node: cst.If) -> Any:
        """The statements of the first branch."""
        return self._flat(original, node, node.body)

    def orelse_instead(self, original: cst.If, node: cst.If) -> Any:
        """What runs where the condition is false, if anything does."""
        if node.orelse is None:
            return cst.RemoveFromParent()
        if isinstance(node.orelse, cst.If):
            lines = [*node.leading_lines, *node.orelse.leading_lines]
            return node.orelse.with_changes(leading_lines=lines)
        return self._flat(original, node, node.orelse.body)

    def _flat(self, original: cst.If, node: cst.If, body: cst.BaseSuite) -> Any:
        if not isinstance(body, cst.IndentedBlock):
            return node
        first, *rest = body.body
        lines = [*node.leading_lines, *first.leading_lines]  # type: ignore[attr-defined]
        moved = first.with_changes(leading_lines=lines)
        self.made[moved] = self.made.get(first, original)
        return cst.FlattenSentinel([moved, *rest])


__all__ = ["Folding", "catches_the_import", "lines_instead"]
