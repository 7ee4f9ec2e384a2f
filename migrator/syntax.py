"""Python's own tree of a text: made once for all that look at the same text one after the other, who only read it."""

from __future__ import annotations

import ast
import warnings
from collections import OrderedDict, deque
from collections.abc import Iterator

#: What is raised for a text that is not Python, or that Python gives up on.
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
_HOLDING = ("body", "handlers", "orelse", "finalbody", "cases")  # what statements stand in
_ROOM = 500_000  # characters of texts whose trees are kept: a project with its new texts, some 50 MB of trees


class _Trees:
    """The trees of the texts that were asked for last."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._kept: OrderedDict[str, ast.Module] = OrderedDict()
        self._held = 0

    def of(self, text: str) -> ast.Module:
        tree = self._kept.get(text)
        if tree is not None:
            self._kept.move_to_end(text)
            return tree
        tree = _parsed(text)
        self._kept[text] = tree
        self._held += len(text)
        while self._held > self.room and len(self._kept) > 1:
            dropped, _ = self._kept.popitem(last=False)
            self._held -= len(dropped)
        return tree


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape is the user's, and not ours to print
        return ast.parse(text)


_TREES = _Trees(_ROOM)


def tree_of(text: str) -> ast.Module:
    """The tree of a text, which nobody may change. Raises one of NOT_PYTHON."""
    return _TREES.of(text)


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    """A statement and every one below it, or below a tree, in the order of `ast.walk`, which takes expressions, too."""
    queue: deque[ast.AST] = deque([node])
    while queue:
        one = queue.popleft()
        if isinstance(one, ast.stmt):
            yield one
        elif isinstance(one, ast.expr):  # a lambda, or a condition, whose parts have these names
            continue
        for name in _HOLDING:
            queue.extend(getattr(one, name, ()))


__all__ = ["NOT_PYTHON", "statements_in", "tree_of"]
