"""libcst's nodes, made, compared and written faster: the same trees and texts in about half the time.

Most of the codemod's time is libcst's own: a node is a frozen dataclass of an abstract class, so that making one calls
`object.__setattr__` for each field and three methods to validate it, `isinstance` asks the abstract class in Python, a
node's hash is a Python function, and parentheses are written inside a context manager made of a generator. None of
that is needed by a tree that a parser made. What is put in its place here does the same. Each part leaves alone what
is not as it was in the libcst that it was written for (1.5 to 1.9): then it is only slower.

Nodes still must not be changed: mypy says so, where a `FrozenInstanceError` said it before.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any

import libcst as cst
from libcst._nodes import expression
from libcst._nodes.internal import CodegenState
from libcst._parser import entrypoints

# The classes whose nodes are many; making a constructor takes time, too.
_MANY: tuple[type[cst.CSTNode], ...] = (
    *(cst.Name, cst.Attribute, cst.Call, cst.Arg, cst.SimpleString, cst.Integer, cst.Float, cst.Subscript),
    *(cst.SubscriptElement, cst.Index, cst.Tuple, cst.List, cst.Dict, cst.DictElement, cst.Element, cst.Comparison),
    *(cst.ComparisonTarget, cst.BinaryOperation, cst.Add, cst.Multiply, cst.Equal, cst.Param, cst.Parameters),
    *(cst.SimpleWhitespace, cst.ParenthesizedWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline),
    *(cst.Comment, cst.Comma, cst.Dot, cst.AssignEqual, cst.LeftParen, cst.RightParen, cst.LeftSquareBracket),
    *(cst.RightSquareBracket, cst.SimpleStatementLine, cst.Assign, cst.AssignTarget, cst.Expr, cst.Return),
    *(cst.IndentedBlock, cst.FunctionDef, cst.If, cst.ImportAlias, cst.ImportFrom),
)


class _Kind(ABCMeta):
    """The class of classes of nodes: none has virtual subclasses, so that Python's own `isinstance` is right."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class _Checking:
    """Whether nodes are validated when they are made; those of a parser need not be."""

    on = True


def _parse(*words: Any, **named: Any) -> Any:
    """As libcst's: the nodes that its parser makes of a text are good."""
    before, _Checking.on = _Checking.on, False
    try:
        return _PARSE(*words, **named)
    finally:
        _Checking.on = before


def _all_kinds(kind: type[cst.CSTNode]) -> Iterator[type[cst.CSTNode]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _all_kinds(below)


def _constructor(kind: type[cst.CSTNode]) -> Any:
    """As the dataclass's, with plain assignments; None where it has one of another kind."""
    words, lines, names = [], [], {"checking": _Checking, "MISSING": MISSING}
    for field in fields(kind):
        if not field.init or getattr(field, "kw_only", False):
            return None
        name = field.name
        if field.default is not MISSING:
            names[f"default_{name}"] = field.default
            words.append(f"{name}=default_{name}")
        elif field.default_factory is not MISSING:
            names[f"make_{name}"] = field.default_factory
            words.append(f"{name}=MISSING")
            lines.append(f"    if {name} is MISSING: {name} = make_{name}()")
        else:
            words.append(name)
        lines.append(f"    self.{name} = {name}")
    if kind._validate is not cst.CSTNode._validate:
        lines.append("    if checking.on: self._validate()")
    exec(f"def __init__(self, {', '.join(words)}):\n" + "\n".join(lines or ["    pass"]), names)
    return names["__init__"]


def _parenthesize(self: Any, state: CodegenState) -> Any:
    if self.lpar or self.rpar:
        return _WITH_PARENTHESES(self, state)
    return state.record_syntactic_position(self)


def _visit(self: Any, visitor: Any) -> Any:
    """`CSTNode.visit`, which asks two abstract classes at each node."""
    new = self._visit_and_replace_children(visitor) if visitor.on_visit(self) else self
    if _ONLY_LOOKS[type(visitor)]:
        visitor.on_leave(self)
        return self
    left = visitor.on_leave(self, new)
    if isinstance(left, _LEFT):
        return left
    raise cst.CSTValidationError(f"Expected a node of type CSTNode or a RemovalSentinel, not {type(left).__name__}")


def _codegen(self: Any, state: Any, **named: Any) -> None:
    """`CSTNode._codegen`, which tells also those of each node who do not listen."""
    if type(self) in SILENT.get(type(state), ()):
        self._codegen_impl(state, **named)
    else:
        state.before_codegen(self)
        self._codegen_impl(state, **named)
        state.after_codegen(self)


def _no_position(self: CodegenState, node: cst.CSTNode, **_: cst.CSTNode | None) -> _Nothing:
    return NOTHING


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


class _OnlyLooks(dict[type, bool]):
    """Whether a class is one of visitors, not of transformers."""

    def __missing__(self, kind: type) -> bool:
        known = self[kind] = issubclass(kind, cst.CSTVisitor)
        return known


#: A context that is none.
NOTHING = _Nothing()
#: The classes of nodes that a class of states is not told about. libcst's own state only gathers text.
SILENT: dict[type, frozenset[type]] = {CodegenState: frozenset(_all_kinds(cst.CSTNode))}  # type: ignore[type-abstract]
_ONLY_LOOKS = _OnlyLooks()
_LEFT = (cst.CSTNode, cst.RemovalSentinel, cst.FlattenSentinel)
_PARSE: Any = entrypoints._parse
_WITH_PARENTHESES: Any = expression._BaseParenthesizedNode._parenthesize


def _quicken() -> None:
    for kind in dict.fromkeys(_all_kinds(cst.CSTNode)):  # type: ignore[type-abstract]
        if type(kind) is ABCMeta:
            kind.__class__ = _Kind  # type: ignore[assignment]
        own = vars(kind)
        if own.get("__hash__") is cst.CSTNode.__hash__ and kind is not cst.CSTNode:
            kind.__hash__ = object.__hash__  # type: ignore[method-assign]
        if own.get("__eq__") is cst.CSTNode.__eq__ and kind is not cst.CSTNode:
            kind.__eq__ = object.__eq__  # type: ignore[method-assign]
    for kind in _MANY:
        own = vars(kind)
        if "__setattr__" in own and kind.__post_init__ is cst.CSTNode.__post_init__:
            made = _constructor(kind)
            if made is not None:
                for base in kind.__mro__:
                    if issubclass(base, cst.CSTNode) and "__setattr__" in vars(base):
                        del base.__setattr__, base.__delattr__
                kind.__init__ = made  # type: ignore[method-assign]
    expression._BaseParenthesizedNode._parenthesize = _parenthesize  # type: ignore[method-assign]
    CodegenState.record_syntactic_position = _no_position  # type: ignore[assignment, method-assign]
    cst.CSTNode.visit = _visit  # type: ignore[method-assign]
    cst.CSTNode._codegen = _codegen  # type: ignore[method-assign]
    entrypoints._parse = _parse
    # What literals mean: each asks Python's parser anew.
    expression.literal_eval = lru_cache(maxsize=10_000)(expression.literal_eval)  # type: ignore[attr-defined]


_quicken()

__all__ = ["NOTHING", "SILENT"]
