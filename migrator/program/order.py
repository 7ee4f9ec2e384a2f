"""The order in which Python evaluates the parts of an expression."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.program.scopes import path_to


def parts(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """What is certainly evaluated for an expression, in order; nothing for what may not be, or more than once."""
    if isinstance(node, cst.Call):
        return [node.func, *(arg.value for arg in node.args)]
    if isinstance(node, cst.Attribute):
        return [node.value]
    if isinstance(node, cst.Subscript):
        return [node.value]
    if isinstance(node, cst.UnaryOperation):
        return [node.expression]
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, cst.BooleanOperation):
        return [node.left]
    if isinstance(node, cst.Comparison):
        return [node.left, node.comparisons[0].comparator]
    if isinstance(node, cst.IfExp):
        return [node.test]
    if isinstance(node, (cst.Tuple, cst.List, cst.Set)):
        return [element.value for element in node.elements]
    if isinstance(node, cst.Dict):
        pairs = [(e.key, e.value) if isinstance(e, cst.DictElement) else (e.value,) for e in node.elements]
        return [part for pair in pairs for part in pair]
    return []


def is_harmless(node: cst.CSTNode) -> bool:
    """Whether evaluating an expression has no effect, and depends on nothing but the values of names."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, (cst.Name, cst.SimpleString, cst.ConcatenatedString, cst.BaseNumber, cst.Ellipsis))


def comes_first(node: cst.CSTNode, wanted: cst.CSTNode) -> bool:
    """Whether an expression evaluates one inside of it surely and once, and nothing before it that acts."""
    while node is not wanted:
        for part in parts(node):
            if part is wanted or path_to(part, wanted):
                node = part
                break
            if not is_harmless(part):
                return False
        else:
            return False
    return True
