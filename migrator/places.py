"""The text of a tree, and where its nodes stand in it: what libcst's `code_for_node` and PositionProvider say, in half
the time.

libcst writes each node inside a context manager made of a generator, and keeps each place as two frozen dataclasses;
before it asks for places it goes through the whole tree once more, for providers of which there are none.
"""

from __future__ import annotations

import re

import libcst as cst
from libcst._nodes.internal import CodegenState

_NEWLINE = re.compile(r"\r\n?|\n")
#: White space and punctuation, which nobody asks the place of. Comments have one.
LAYOUT = frozenset(
    (
        *(cst.SimpleWhitespace, cst.TrailingWhitespace, cst.Newline, cst.Comma, cst.Dot, cst.AssignEqual),
        *(cst.LeftSquareBracket, cst.RightSquareBracket, cst.LeftCurlyBrace),
        cst.RightCurlyBrace,
    )
)


#: Line, from 1, and column, from 0.
Place = tuple[int, int]
#: Where a node begins, and the place behind its end; white space and comments around it are left out.
Range = tuple[Place, Place]


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


_NOTHING = _Nothing()


class _Text(CodegenState):
    def record_syntactic_position(self, node: cst.CSTNode, **_: cst.CSTNode | None) -> _Nothing:  # type: ignore[override]
        return _NOTHING


class _Places(CodegenState):
    def __init__(self, default_indent: str, default_newline: str) -> None:
        super().__init__(default_indent, default_newline)
        self.line = 1
        self.column = 0
        self.found: dict[cst.CSTNode, Range] = {}
        self.starts: list[Place] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        if "\n" in value or "\r" in value:
            parts = _NEWLINE.split(value)
            self.line += len(parts) - 1
            self.column = len(parts[-1])
        else:
            self.column += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        if type(node) not in LAYOUT:
            self.starts.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        if type(node) not in LAYOUT:
            start = self.starts.pop()
            self.found.setdefault(node, (start, (self.line, self.column)))

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Span:
        return _Span(self, node, start_node, end_node)


class _Span:
    """Notes the place of a node, or the one that begins and ends with nodes inside of it."""

    __slots__ = ("end_node", "node", "start", "start_node", "state")

    def __init__(
        self, state: _Places, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.state = state
        self.node = node
        self.start_node = start_node
        self.end_node = end_node

    def __enter__(self) -> None:
        self.start = (self.state.line, self.state.column)

    def __exit__(self, *_: object) -> None:
        found = self.state.found
        start = self.start if self.start_node is None else found[self.start_node][0]
        end = (self.state.line, self.state.column) if self.end_node is None else found[self.end_node][1]
        found[self.node] = start, end


def text_of(module: cst.Module, node: cst.CSTNode) -> str:
    """The text of a node, with the indentation and the newlines of a file."""
    state = _Text(module.default_indent, module.default_newline)
    node._codegen(state)
    return "".join(state.tokens)


def places_of(module: cst.Module) -> dict[cst.CSTNode, Range]:
    """The place of each node of a file but for LAYOUT."""
    state = _Places(module.default_indent, module.default_newline)
    module._codegen(state)
    return state.found


__all__ = ["LAYOUT", "Place", "Range", "places_of", "text_of"]
