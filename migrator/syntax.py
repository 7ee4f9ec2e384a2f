"""Python's own tree of a text: made once for all that look at the same text one after the other, who only read it."""

from __future__ import annotations

import ast
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

#: What is raised for a text that is not Python, or that Python gives up on.
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
_HOLDING = ("body", "handlers", "orelse", "finalbody", "cases")  # what statements stand in
_Tree = TypeVar("_Tree")
ROOM = 500_000  # characters of texts whose trees are kept: a project with its new texts, some 50 MB of trees


class Trees(Generic[_Tree]):
    """The trees of the texts that were asked for last, which have `room` characters in all.

    `path` tells files of the same text apart, where their trees must be two.
    """

    def __init__(self, room: int, parse: Callable[[str], _Tree]) -> None:
        self.room = room
        self.parse = parse
        self._kept: OrderedDict[tuple[str, Path | None], _Tree] = OrderedDict()
        self._held = 0

    def of(self, text: str, path: Path | None = None) -> _Tree:
        """The tree of a text, which nobody may change. Raises what parsing it raises."""
        key = text, path
        tree = self._kept.get(key)
        if tree is not None:
            self._kept.move_to_end(key)
            return tree
        tree = self._kept[key] = self.parse(text)
        self._held += len(text)
        while self._held > self.room and len(self._kept) > 1:
            (dropped, _), _ = self._kept.popitem(last=False)
            self._held -= len(dropped)
        return tree


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape is the user's, and not ours to print
        return ast.parse(text)


_TREES = Trees(ROOM, _parsed)


def tree_of(text: str) -> ast.Module:
    """The tree of a text, which nobody may change. Raises one of NOT_PYTHON."""
    return _TREES.of(text)


def children_of(node: ast.AST) -> list[ast.AST]:
    """What `ast.iter_child_nodes` gives, in half the time and without the contexts of names (`ast.Load()`)."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            found.append(value)
    return found


def walked(tree: ast.AST) -> list[ast.AST]:
    """A node and all below it, in the order of `ast.walk`, without the contexts of names."""
    found = [tree]
    for node in found:
        found += children_of(node)
    return found


@lru_cache(maxsize=32)
def parents_in(tree: ast.Module) -> Mapping[ast.AST, ast.AST]:
    """The node around each node of a tree, which nobody may change: found once for the programs that share a file."""
    found: dict[ast.AST, ast.AST] = {}
    queue: list[ast.AST] = [tree]
    while queue:
        node = queue.pop()
        below = children_of(node)
        queue += below
        for child in below:
            found[child] = node
    return found


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


__all__ = ["NOT_PYTHON", "ROOM", "Trees", "children_of", "parents_in", "statements_in", "tree_of", "walked"]
