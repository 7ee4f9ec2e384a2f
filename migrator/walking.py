"""Looking at a tree without making it anew: what libcst's `visit` does for visitors that change nothing, but faster.

`CSTNode.visit` builds every node below again, also for a visitor that only looks, and calls two methods for each
attribute. That was most of the codemod's time (BERT's modeling.py is gone through some hundred times).
"""

from __future__ import annotations

from dataclasses import fields

import libcst as cst

# What never changes: the attributes of a class of nodes that are visited, in their order, and its other ones; whether a
# class of visitors has methods for attributes; what it calls for a class of nodes, before and after those below.
_ATTRIBUTES: dict[type[cst.CSTNode], tuple[tuple[str, ...], tuple[str, ...]]] = {}
_LOOKS_AT_ATTRIBUTES: dict[type[cst.CSTVisitor], bool] = {}
_METHODS: dict[type[cst.CSTVisitor], dict[type[cst.CSTNode], tuple[str | None, str | None]]] = {}


def walk(node: cst.CSTNode, visitor: cst.CSTVisitor) -> None:
    """Shows a node and all below it to a visitor: the same calls in the same order as `node.visit(visitor)` makes.

    Visitors with methods for single attributes (`visit_Arg_keyword`) go the way of libcst.
    """
    kind = type(visitor)
    if _looks_at_attributes(kind):
        node.visit(visitor)
    elif kind.on_visit is cst.CSTVisitor.on_visit and kind.on_leave is cst.CSTVisitor.on_leave:
        _walk_by_name(node, visitor, _METHODS.setdefault(kind, {}))
    else:
        _walk(node, visitor)


def _walk(node: cst.CSTNode, visitor: cst.CSTVisitor) -> None:
    if visitor.on_visit(node):
        for child in _children(node):
            if isinstance(child, cst.CSTNode):
                _walk(child, visitor)
    visitor.on_leave(node)


def _walk_by_name(
    node: cst.CSTNode,
    visitor: cst.CSTVisitor,
    methods: dict[type[cst.CSTNode], tuple[str | None, str | None]],
) -> None:
    """As `_walk`, for visitors that only have methods for classes of nodes: those that they have are called."""
    kind = type(node)
    known = methods.get(kind)
    if known is None:
        known = methods[kind] = _own(visitor, f"visit_{kind.__name__}"), _own(visitor, f"leave_{kind.__name__}")
    before, after = known
    if before is None or getattr(visitor, before)(node) is not False:
        for child in _children(node):
            if isinstance(child, cst.CSTNode):
                _walk_by_name(child, visitor, methods)
    if after is not None:
        getattr(visitor, after)(node)


def _own(visitor: cst.CSTVisitor, name: str) -> str | None:
    """The name of a method, if the visitor has one of its own."""
    own = getattr(type(visitor), name, None)
    return None if own is None or own is getattr(cst.CSTVisitor, name, None) else name


def _children(node: cst.CSTNode) -> list[object]:
    """The values of a node's attributes that are visited, in the order of libcst."""
    known = _ATTRIBUTES.get(type(node))
    visited, others = known if known is not None else _attributes(node)
    children: list[object] = []
    for name in visited:
        value = getattr(node, name)
        if isinstance(value, tuple | list):
            children += value
        else:
            children.append(value)
    if any(_holds_nodes(getattr(node, name)) for name in others):
        return list(node.children)  # there is one that libcst visits in some cases only: an f-string's format, say
    return children


def _holds_nodes(value: object) -> bool:
    if isinstance(value, tuple | list):
        return any(isinstance(one, cst.CSTNode) for one in value)
    return isinstance(value, cst.CSTNode)


def _looks_at_attributes(kind: type[cst.CSTVisitor]) -> bool:
    known = _LOOKS_AT_ATTRIBUTES.get(kind)
    if known is None:
        own = {name for base in kind.__mro__ if base.__module__.partition(".")[0] != "libcst" for name in vars(base)}
        one = any(name.startswith(("visit_", "leave_")) and "_" in name[len("visit_") :] for name in own)
        known = one or bool(own & {"on_visit_attribute", "on_leave_attribute"})
        _LOOKS_AT_ATTRIBUTES[kind] = known
    return known


class _Order(cst.CSTVisitor):
    """The attributes of one node, in the order in which libcst visits them."""

    def __init__(self, node: cst.CSTNode) -> None:
        super().__init__()
        self.node = node
        self.names: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node is self.node

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        if node is self.node:
            self.names.append(attribute)


def _attributes(node: cst.CSTNode) -> tuple[tuple[str, ...], tuple[str, ...]]:
    order = _Order(node)
    node.visit(order)
    names = tuple(dict.fromkeys(order.names))
    others = tuple(field.name for field in fields(node) if field.name not in names)
    _ATTRIBUTES[type(node)] = names, others
    return names, others


__all__ = ["walk"]
