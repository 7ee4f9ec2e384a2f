"""`/` of a file that did not import `division`: of whole numbers Python 2 dropped the rest."""

from __future__ import annotations

import ast
import re

from migrator.python2.edits import Edits
from migrator.python2.kinds import Kind, Kinds

_COMMENT = re.compile(rb"#[^\n]*")


def divide(edits: Edits, kinds: Kinds) -> tuple[list[ast.expr | ast.stmt], list[ast.expr | ast.stmt]]:
    """Writes `//` for `/` where both sides are whole for certain; returns these places, and those where one may be.

    They are certain where the quotient is used as Python 2 used whole numbers alone, too.

    A place where a side is a float for certain computes the same in Python 3.
    """
    changed: list[ast.expr | ast.stmt] = []
    unsure: list[ast.expr | ast.stmt] = []
    for node in ast.walk(kinds.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            sides = (kinds.of(node.left), kinds.of(node.right))
            gap = (edits.end(node.left), edits.start(node.right))
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            sides = (_read(node, kinds), kinds.of(node.value))
            gap = (edits.end(node.target), edits.start(node.value))
        else:
            continue
        if Kind.FLOAT in sides:
            continue
        whole = sides == (Kind.WHOLE, Kind.WHOLE)
        if whole or (isinstance(node, ast.BinOp) and kinds.is_taken_for_whole(node)):
            at = _slash(edits.raw, *gap)
            edits.between(at, at + 1, "//")
            changed.append(node)
        else:
            unsure.append(node)
    return changed, unsure


def _read(node: ast.AugAssign, kinds: Kinds) -> Kind:
    """What the target of `/=` is before."""
    target = node.target
    if isinstance(target, ast.Name):
        read: ast.expr = ast.Name(target.id, ast.Load())
    elif isinstance(target, ast.Attribute):
        read = ast.Attribute(target.value, target.attr, ast.Load())
    else:
        return kinds.items(target.value) if not isinstance(target.slice, ast.Slice) else Kind.UNKNOWN
    kinds.parents[read] = node
    return kinds.of(ast.copy_location(read, target))


def _slash(raw: bytes, start: int, end: int) -> int:
    """Where the sign of a division stands between its sides."""
    return start + _COMMENT.sub(lambda match: b" " * len(match[0]), raw[start:end]).index(b"/")
