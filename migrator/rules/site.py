"""A call that a rule looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.program.calls import bind
from migrator.program.modes import ModeNames


@dataclass(frozen=True)
class Site:
    """A TensorFlow 1 call: `original` as in the file, `call` with its arguments rewritten already."""

    name: str
    original: cst.Call
    call: cst.Call
    modes: ModeNames | None
    keep_regularizers: bool
    code: Callable[[cst.CSTNode], str]

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
