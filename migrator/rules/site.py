"""A call that a rule looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import bind
from migrator.program.modes import ModeNames
from migrator.program.parsed import Blocked


@dataclass(frozen=True)
class Site:
    """A TensorFlow 1 call: `original` as in the file, `call` with its arguments rewritten already.

    `updates` says whether the program runs UPDATE_OPS (None: one does, another does not). What a rule has to say about
    a call that it carries over, it appends to `remarks`; classes that the file needs for it go to `classes`.
    """

    name: str
    original: cst.Call
    call: cst.Call
    modes: ModeNames | None
    keep_regularizers: bool
    code: Callable[[cst.CSTNode], str]
    updates: bool | None = True
    remarks: list[Blocked] = field(default_factory=list)
    classes: dict[str, str] = field(default_factory=dict)
    imports: ImportMap | None = None
    definition: Callable[[str], cst.BaseExpression | None] = lambda name: None

    def tensorflow(self, node: cst.BaseExpression) -> str | None:
        """The TensorFlow 1 name of an expression."""
        return self.imports.tensorflow(node) if self.imports is not None else None

    def arguments(self, parameters: Sequence[str], code: str) -> dict[str, cst.BaseExpression]:
        """The rewritten arguments by parameter name."""
        return bind(self.call, parameters, self.name, code)

    def originals(self, parameters: Sequence[str], code: str) -> dict[str, cst.BaseExpression]:
        """The arguments as written, by parameter name."""
        return bind(self.original, parameters, self.name, code)


CallRule = Callable[[Site], cst.BaseExpression]


def expression(text: str) -> cst.BaseExpression:
    """Parses new code."""
    return cst.parse_expression(text)


def call_text(function: str, arguments: Sequence[str]) -> str:
    """A call on one line."""
    return f"{function}({', '.join(arguments)})"
