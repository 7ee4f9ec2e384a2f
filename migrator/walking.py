"""Looking at a tree without making it anew: what libcst's `visit` does for visitors that change nothing, but faster.

`CSTNode.visit` builds every node below again, also for a visitor that only looks, and calls two methods for each
attribute. That was most of the codemod's time (BERT's modeling.py is gone through some hundred times).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, final

import libcst as cst

# What never changes: the attributes of a class of nodes that are visited, in their order, and its other ones; whether a
# class of visitors has methods for attributes; what it calls for a class of nodes, before and after those below.
_ATTRIBUTES: dict[type[cst.CSTNode], _Attributes] = {}
_LOOKS_AT_ATTRIBUTES: dict[type[cst.CSTVisitor], bool] = {}
_METHODS: dict[type[cst.CSTVisitor | cst.CSTTransformer], _Methods] = {}
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


class Kinds(dict[type, bool]):
    """Whether a class is below one of some: as issubclass, which takes its time for nodes, whose classes are abstract.

    `kinds[type(node)]` is `isinstance(node, classes)`.
    """

    def __init__(self, *classes: type) -> None:
        super().__init__()
        self.classes = classes
        self._wanted = self._known = 0

    def __missing__(self, kind: type) -> bool:
        known = self[kind] = issubclass(kind, self.classes)
        return known

    def wanted(self) -> int:
        """The bits of those classes of nodes that have been met and are below one of these."""
        if self._known != len(_BITS):
            for kind, bit in list(_BITS.items())[self._known :]:
                if self[kind]:
                    self._wanted |= bit
            self._known = len(_BITS)
        return self._wanted


_IS_NODE = Kinds(cst.CSTNode)
#: Whether a class is one of statements, which have lines of their own.
OF_LINES = Kinds(cst.SimpleStatementLine, cst.BaseCompoundStatement)


class _Attributes:
    """The attributes of a class of nodes that are visited, and how to read them at once: all, and those that say more
    than punctuation. `others` are never visited, or in some cases only.
    """

    def __init__(self, names: tuple[str, ...], others: tuple[str, ...], every: tuple[str, ...]) -> None:
        self.others = others
        self.every_name = every
        self.every = _reader(every)
        self.all = _reader(names)
        telling = tuple(name for name in names if name not in _PUNCTUATION and not name.startswith("whitespace"))
        self.telling_names = telling
        self.telling = _reader(telling)


class _Methods:
    """What a class of visitors calls for each class of nodes; `punctuation` says whether for that as well.

    `wanted` has the bits of the classes that it calls something for, of the `known` first ones.
    """

    def __init__(self, visitor: cst.CSTVisitor | cst.CSTTransformer) -> None:
        self.of: dict[type[cst.CSTNode], tuple[str | None, str | None]] = {}
        self.wanted = self.known = 0
        self.punctuation = any(
            _own(visitor, f"{when}_{kind.__name__}") for kind in _OF_PUNCTUATION for when in ("visit", "leave")
        )

    def at(self, node: cst.CSTNode, visitor: cst.CSTVisitor | cst.CSTTransformer) -> tuple[str | None, str | None]:
        """What is called for a node."""
        found = self.of.get(type(node))
        if found is None:
            _BITS[type(node)]  # a class that was not met before
            self.learn(visitor)
            found = self.of[type(node)]
        return found

    def learn(self, visitor: cst.CSTVisitor | cst.CSTTransformer) -> None:
        """Looks for the methods for the classes of nodes that have been met since."""
        for kind, bit in list(_BITS.items())[self.known :]:
            found = _own(visitor, f"visit_{kind.__name__}"), _own(visitor, f"leave_{kind.__name__}")
            self.of[kind] = found
            if found != (None, None):
                self.wanted |= bit
        self.known = len(_BITS)


@final
class _Part:
    """A node with what is below it but for punctuation; `kinds` has the bits of the classes of all of these nodes."""

    __slots__ = ("below", "bit", "kind", "kinds", "names", "node")
    kinds: int
    names: tuple[cst.Name, ...] | None  # see names_below; None before anybody asked

    def __init__(self, node: cst.CSTNode, below: tuple[_Part, ...]) -> None:
        self.node = node
        self.kind = type(node)
        self.below = below
        self.names = None
        self.bit = kinds = _BITS[self.kind]
        for part in below:
            kinds |= part.kinds
        self.kinds = kinds


class _Bits(dict[type[cst.CSTNode], int]):
    """A bit for each class of nodes."""

    def __missing__(self, kind: type[cst.CSTNode]) -> int:
        bit = self[kind] = 1 << len(self)
        return bit


_BITS = _Bits()
# Nodes do not change, and each is gone through some ten times: what is below those of late. A node of this table lives
# as long as its entry, so that no other one gets its id.
_PARTS: dict[int, _Part] = {}
_MOST_PARTS = 200_000


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
        if methods.punctuation:
            _walk(node, visitor)
            return
        part = _PARTS.get(id(node)) or _part(node)
        if methods.known != len(_BITS):
            methods.learn(visitor)
        if part.kinds & methods.wanted:
            _walk_parts(part, visitor, methods.of, methods.wanted)
    else:
        _walk(node, visitor)


def names_below(node: cst.CSTNode) -> tuple[cst.Name, ...]:
    """The identifiers read or written in a node; attribute names, keywords and imports left out."""
    return _names(_PARTS.get(id(node)) or _part(node))


def _names(part: _Part) -> tuple[cst.Name, ...]:
    found = part.names
    if found is None:
        kind = part.kind
        if not part.kinds & _BITS[cst.Name] or kind is cst.ImportAlias or kind is cst.ImportFrom:
            found = ()
        elif kind is cst.Name:
            found = (part.node,)  # type: ignore[assignment]
        elif kind is cst.Attribute or kind is cst.Arg:
            found = names_below(part.node.value)  # type: ignore[attr-defined]
        else:
            found = tuple([name for below in part.below for name in _names(below)])
        part.names = found
    return found  # type: ignore[return-value]


def of_kinds(node: cst.CSTNode, *classes: type) -> list[Any]:
    """A node and those below it that are of some classes, outer ones first; these are none of punctuation.

    It goes only where there are such nodes.
    """
    part = _PARTS.get(id(node)) or _part(node)
    found: list[Any] = []
    wanted = _kinds(classes).wanted()
    if part.kinds & wanted:
        _note_kinds(part, wanted, found)
    return found


@cache
def _kinds(classes: tuple[type, ...]) -> Kinds:
    return Kinds(*classes)


def _note_kinds(part: _Part, wanted: int, found: list[Any]) -> None:
    if part.bit & wanted:
        found.append(part.node)
    for below in part.below:
        if below.kinds & wanted:
            _note_kinds(below, wanted, found)


def outside_of(node: cst.CSTNode, *classes: type) -> list[cst.CSTNode]:
    """A node and those below it, outer ones first, that are not of some classes nor inside of one that is."""
    found: list[cst.CSTNode] = []
    _note_outside(_PARTS.get(id(node)) or _part(node), _kinds(classes), found)
    return found


def _note_outside(part: _Part, left_out: Kinds, found: list[cst.CSTNode]) -> None:
    if not left_out[part.kind]:
        found.append(part.node)
        for below in part.below:
            _note_outside(below, left_out, found)


def own_of_kinds(
    scope: cst.CSTNode,
    *classes: type,
    inner: tuple[type, ...] = (cst.FunctionDef, cst.Lambda),
    enter: bool = True,
) -> list[Any]:
    """As of_kinds, for what belongs to a scope itself: functions in it are noted where asked for, and not looked into.

    `inner` are the kinds of nodes that have scopes of their own, and `enter` says whether the scope may be one itself.
    """
    part = _PARTS.get(id(scope)) or _part(scope)
    found: list[Any] = []
    _note_own(part, _kinds(classes).wanted(), _kinds(inner).wanted(), scope if enter else None, found)
    return found


def _note_own(part: _Part, wanted: int, inner: int, scope: cst.CSTNode | None, found: list[Any]) -> None:
    if part.bit & wanted:
        found.append(part.node)
    if part.bit & inner and part.node is not scope:
        return
    for below in part.below:
        if below.kinds & wanted:
            _note_own(below, wanted, inner, scope, found)


def all_in(node: cst.CSTNode) -> list[cst.CSTNode]:
    """A node and every node below it, outer ones first."""
    found = [node]
    for child in _children(node, True):
        found += all_in(child)
    return found


def children_of(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes right below a node, white space and punctuation as well."""
    return _children(node, True)


def parents_in(node: cst.CSTNode) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
    """Every node below one that says something, with the node around it, outer ones first."""
    found: list[tuple[cst.CSTNode, cst.CSTNode]] = []
    _note_around(_PARTS.get(id(node)) or _part(node), found)
    return found


def _note_around(part: _Part, found: list[tuple[cst.CSTNode, cst.CSTNode]]) -> None:
    node = part.node
    for below in part.below:
        found.append((below.node, node))
        if below.below:
            _note_around(below, found)


def _walk(node: cst.CSTNode, visitor: cst.CSTVisitor) -> None:
    if visitor.on_visit(node):
        for child in _children(node, True):
            _walk(child, visitor)
    visitor.on_leave(node)


def _walk_parts(
    part: _Part,
    visitor: cst.CSTVisitor,
    methods: dict[type[cst.CSTNode], tuple[str | None, str | None]],
    wanted: int,
) -> None:
    """Calls the methods that there are, and goes only where there are nodes that they are for."""
    before, after = methods[part.kind]
    if before is None or getattr(visitor, before)(part.node) is not False:
        for below in part.below:
            if below.kinds & wanted:
                _walk_parts(below, visitor, methods, wanted)
    if after is not None:
        getattr(visitor, after)(part.node)


def _part(node: cst.CSTNode) -> _Part:
    if len(_PARTS) > _MOST_PARTS:
        _PARTS.clear()
    return _read_part(node)


def _read_part(node: cst.CSTNode) -> _Part:
    part = _PARTS.get(id(node))
    if part is None:
        part = _PARTS[id(node)] = _Part(node, tuple([_read_part(child) for child in _children(node, False)]))
    return part


def _own(visitor: cst.CSTVisitor | cst.CSTTransformer, name: str) -> str | None:
    """The name of a method, if the visitor has one of its own."""
    own = getattr(type(visitor), name, None)
    given = getattr(cst.CSTVisitor, name, None), getattr(cst.CSTTransformer, name, None)
    return None if own is None or own in given else name


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


def transformed(node: cst.CSTNode, transformer: cst.CSTTransformer) -> Any:
    """What `node.visit(transformer)` gives, where white space, comments and punctuation are nothing to a transformer.

    It is not asked about them, nor about attributes. Nodes below which nothing changes stay the same ones.
    """
    return transformer.on_leave(node, _with_children(node, transformer) if transformer.on_visit(node) else node)


def remade(node: cst.CSTNode, transformer: cst.CSTTransformer) -> Any:
    """What `transformed` gives, where every node that says something is a new one: for code that stands twice then."""
    return transformer.on_leave(node, _of_children(node, transformer) if transformer.on_visit(node) else node)


def _with_children(node: cst.CSTNode, transformer: cst.CSTTransformer) -> cst.CSTNode:
    changed = _changed(node, transformer, transformed)
    if changed is None:
        return node._visit_and_replace_children(transformer)
    return node.with_changes(**changed) if changed else node


def _of_children(node: cst.CSTNode, transformer: cst.CSTTransformer) -> cst.CSTNode:
    changed = _changed(node, transformer, remade)
    if changed is None:
        return node._visit_and_replace_children(transformer)
    known = _ATTRIBUTES[type(node)]
    return type(node)(**{**dict(zip(known.every_name, known.every(node))), **changed})


def _changed(
    node: cst.CSTNode,
    transformer: cst.CSTTransformer,
    anew: Callable[[cst.CSTNode, cst.CSTTransformer], Any],
) -> dict[str, object] | None:
    """The attributes of a node that become others; None where libcst has to say which are visited."""
    known = _ATTRIBUTES.get(type(node)) or _attributes(node)
    for name in known.others:
        if _holds_nodes(getattr(node, name)):
            return None
    changed: dict[str, object] = {}
    for name, value in zip(known.telling_names, known.telling(node)):
        kind = type(value)
        if kind is tuple or kind is list:
            elements = _elements(value, transformer, anew)  # type: ignore[arg-type]
            if elements is not None:
                changed[name] = elements
        elif _IS_NODE[kind]:
            new = anew(value, transformer)  # type: ignore[arg-type]
            if new is not value:
                changed[name] = new if _IS_NODE[type(new)] else _instead(node, name, new)
    return changed


def _elements(
    nodes: Sequence[cst.CSTNode],
    transformer: cst.CSTTransformer,
    anew: Callable[[cst.CSTNode, cst.CSTTransformer], Any],
) -> tuple[cst.CSTNode, ...] | None:
    """The new nodes of a sequence; None where all stay. A line goes where all that stood in it does."""
    found: list[cst.CSTNode] = []
    for node in nodes:
        new = anew(node, transformer)
        if new is node:
            found.append(node)
        elif not isinstance(new, cst.RemovalSentinel):
            some = list(new) if isinstance(new, cst.FlattenSentinel) else [new]
            found += [one for one in some if node._is_removable() or not one._is_removable()]
    same = len(found) == len(nodes) and all(new is old for new, old in zip(found, nodes))
    return None if same else tuple(found)


def _instead(node: cst.CSTNode, name: str, new: object) -> object:
    """What an attribute is where its node was removed. Raises TypeError where there has to be one."""
    declared = next(str(field.type) for field in fields(node) if field.name == name)
    if isinstance(new, cst.RemovalSentinel):
        if "MaybeSentinel" in declared:
            return cst.MaybeSentinel.DEFAULT
        if "Optional" in declared:
            return None
    raise TypeError(f"`{name}` of a {type(node).__name__} has to be one node, not {type(new).__name__}")


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


class Transformer(cst.CSTTransformer):
    """A transformer that has no methods for single attributes: libcst asks for them at each attribute of each node.

    It goes only where there are nodes that it has methods for; others stay the same nodes. A class with an `on_visit`
    or `on_leave` of its own is shown all nodes, unless it `looks_by_methods` as well.
    """

    looks_by_methods = True

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Whether there is something below a node to look at."""
        methods = _transforming(type(self), self)
        if not methods.punctuation:
            part = _PARTS.get(id(node)) or _part(node)
            if methods.known != len(_BITS):
                methods.learn(self)
            if not part.kinds & methods.wanted:
                return False
        before = methods.at(node, self)[0]
        return before is None or getattr(self, before)(node) is not False

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """What becomes of a node."""
        after = _transforming(type(self), self).at(original_node, self)[1]
        return updated_node if after is None else getattr(self, after)(original_node, updated_node)

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Nothing."""

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """Nothing."""


def _transforming(kind: type[Transformer], transformer: Transformer) -> _Methods:
    methods = _METHODS.get(kind)
    if methods is None:
        methods = _METHODS[kind] = _Methods(transformer)
        for name in ("on_visit", "on_leave"):
            home = next(base for base in kind.__mro__ if name in vars(base))
            methods.punctuation = methods.punctuation or not vars(home).get("looks_by_methods", False)
    return methods


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
    every = tuple(field.name for field in fields(node))
    known = _ATTRIBUTES[type(node)] = _Attributes(names, others, every)
    return known


#: White space, comments and punctuation.
OF_PUNCTUATION = frozenset(_OF_PUNCTUATION)

__all__ = [
    "OF_LINES",
    "OF_PUNCTUATION",
    "Kinds",
    "Transformer",
    "all_in",
    "children_of",
    "names_below",
    "of_kinds",
    "outside_of",
    "parents_in",
    "remade",
    "transformed",
    "walk",
]
