"""Looking at a tree without making it anew: what libcst's `visit` does for visitors that change nothing, but faster.

`CSTNode.visit` builds every node below again, also for a visitor that only looks, and calls two methods for each
attribute. That was most of the codemod's time (BERT's modeling.py is gone through some hundred times).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter

import libcst as cst

# What never changes: the attributes of a class of nodes that are visited, in their order, and its other ones; whether a
# class of visitors has methods for attributes; what it calls for a class of nodes, before and after those below.
_ATTRIBUTES: dict[type[cst.CSTNode], _Attributes] = {}
_LOOKS_AT_ATTRIBUTES: dict[type[cst.CSTVisitor], bool] = {}
_METHODS: dict[type[cst.CSTVisitor], _Methods] = {}
# Attributes with nothing below but white space, comments and punctuation: more than half of the nodes of a file.
_PUNCTUATION = (
    *("comma", "dot", "equal", "semicolon", "lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "newline"),
    *("leading_lines", "lines_after_decorators", "header", "footer", "empty_lines", "trailing_whitespace"),
)
_PLAIN = (str, bool, int, "str", "bool", "int")  # declared so, an attribute never holds a node
_OF_PUNCTUATION = (
    *(cst.SimpleWhitespace, cst.ParenthesizedWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline),
    *(cst.Comment, cst.Comma, cst.Dot, cst.AssignEqual, cst.Semicolon, cst.LeftParen, cst.RightParen),
    *(cst.LeftSquareBracket, cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace),
)


class _IsNode(dict[type, bool]):
    """Whether a class is one of nodes: as issubclass, which takes its time for abstract classes."""

    def __missing__(self, kind: type) -> bool:
        known = self[kind] = issubclass(kind, cst.CSTNode)
        return known


_IS_NODE = _IsNode()


class _Attributes:
    """The attributes of a class of nodes that are visited, and how to read them at once: all, and those that say more
    than punctuation. `others` are never visited, or in some cases only. A leaf has nothing but punctuation below.
    """

    def __init__(self, names: tuple[str, ...], others: tuple[str, ...]) -> None:
        self.others = others
        self.all = _reader(names)
        telling = tuple(name for name in names if name not in _PUNCTUATION and not name.startswith("whitespace"))
        self.telling = _reader(telling)
        self.is_leaf = not telling and not others


class _Methods:
    """What a class of visitors calls for each class of nodes; `punctuation` says whether for that as well.

    `passed` are classes of leaves that it calls nothing for.
    """

    def __init__(self, visitor: cst.CSTVisitor) -> None:
        self.of: dict[type[cst.CSTNode], tuple[str | None, str | None]] = {}
        self.passed: set[type[cst.CSTNode]] = set()
        self.punctuation = any(
            _own(visitor, f"{when}_{kind.__name__}") for kind in _OF_PUNCTUATION for when in ("visit", "leave")
        )


def _reader(names: tuple[str, ...]) -> Callable[[cst.CSTNode], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda node: ()
    one = attrgetter(names[0])
    return lambda node: (one(node),)


def walk(node: cst.CSTNode, visitor: cst.CSTVisitor) -> None:
    """Shows a node and all below it to a visitor: the same calls in the same order as `node.visit(visitor)` makes.

    Visitors with methods for single attributes (`visit_Arg_keyword`) go the way of libcst.
    """
    kind = type(visitor)
    if _looks_at_attributes(kind):
        node.visit(visitor)
    elif kind.on_visit is cst.CSTVisitor.on_visit and kind.on_leave is cst.CSTVisitor.on_leave:
        methods = _METHODS.get(kind)
        if methods is None:
            methods = _METHODS[kind] = _Methods(visitor)
        _walk_by_name(node, visitor, methods)
    else:
        _walk(node, visitor)


def _walk(node: cst.CSTNode, visitor: cst.CSTVisitor) -> None:
    if visitor.on_visit(node):
        for child in _children(node, True):
            _walk(child, visitor)
    visitor.on_leave(node)


def _walk_by_name(node: cst.CSTNode, visitor: cst.CSTVisitor, methods: _Methods) -> None:
    """As `_walk`, for visitors that only have methods for classes of nodes: those that they have are called."""
    kind = type(node)
    known = methods.of.get(kind)
    if known is None:
        known = methods.of[kind] = _own(visitor, f"visit_{kind.__name__}"), _own(visitor, f"leave_{kind.__name__}")
        if known == (None, None) and not methods.punctuation and (_ATTRIBUTES.get(kind) or _attributes(node)).is_leaf:
            methods.passed.add(kind)
    before, after = known
    if before is None or getattr(visitor, before)(node) is not False:
        for child in _children(node, methods.punctuation):
            if type(child) not in methods.passed:
                _walk_by_name(child, visitor, methods)
    if after is not None:
        getattr(visitor, after)(node)


def _own(visitor: cst.CSTVisitor, name: str) -> str | None:
    """The name of a method, if the visitor has one of its own."""
    own = getattr(type(visitor), name, None)
    return None if own is None or own is getattr(cst.CSTVisitor, name, None) else name


def _children(node: cst.CSTNode, punctuation: bool) -> list[cst.CSTNode]:
    """The nodes right below a node, in the order of libcst; without `punctuation`, those that may hold more."""
    known = _ATTRIBUTES.get(type(node)) or _attributes(node)
    for name in known.others:
        if _holds_nodes(getattr(node, name)):
            return list(node.children)  # one that libcst visits in some cases only: an f-string's format, say
    children: list[cst.CSTNode] = []
    for value in known.all(node) if punctuation else known.telling(node):
        kind = type(value)
        if kind is tuple or kind is list:
            if value:
                children += [one for one in value if _IS_NODE[type(one)]]  # type: ignore[attr-defined]
        elif _IS_NODE[kind]:
            children.append(value)  # type: ignore[arg-type]
    return children


def _holds_nodes(value: object) -> bool:
    if type(value) is str:
        return False
    if isinstance(value, (tuple, list)):
        return any(_IS_NODE[type(one)] for one in value)
    return _IS_NODE[type(value)]


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


def _attributes(node: cst.CSTNode) -> _Attributes:
    order = _Order(node)
    node.visit(order)
    names = tuple(dict.fromkeys(order.names))
    others = tuple(field.name for field in fields(node) if field.name not in names and field.type not in _PLAIN)
    known = _ATTRIBUTES[type(node)] = _Attributes(names, others)
    return known


__all__ = ["walk"]
