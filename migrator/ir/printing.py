"""A program as text: one line for each call of a library, `%` before its number, as a jaxpr has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from migrator.ir.machine import NOTHING, Condition, Effect, File, Machine
from migrator.ir.program import Estimator, Graph, Program, Use
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Function,
    Method,
    Module,
    Object,
    Operation,
    Parent,
    Partial,
    Record,
    Site,
    Symbol,
    Table,
    Unknown,
    Value,
)
from migrator.ir.values import Sequence as Items

_DEEP = 8
_LONG = 6  # elements that are shown
_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    **{name: name for name in ("==", "<", "<=", ">", ">=", "is", "in", "and", "or")},
}


def printed(program: Program) -> str:
    """The text of a program."""
    return "\n".join(_Printer(program).lines()) + "\n"


class _Printer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.machine: Machine = program.evaluator
        self.numbers: dict[Operation, str] = {}
        self.counts: dict[str, int] = {}
        self.shown: dict[str, str] = {}  # the graphs of input functions, and the use that was shown with them
        self.lines_of: dict[Path, Callable[[cst.CSTNode], int]] = {}

    def lines(self) -> Iterator[str]:
        program = self.program
        yield f"program {program.file.path.name}"
        if not program.is_complete:
            yield "  (not evaluated to its end)"
        for number, estimator in enumerate(program.estimators):
            self.numbers[estimator.operation] = f"%estimator{number or ''}"
        for estimator in program.estimators:
            yield ""
            yield from self._estimator(estimator)

    def _estimator(self, estimator: Estimator) -> Iterator[str]:
        self._number([Effect(one.operation, (), False) for one in estimator.uses], "%use")
        made = estimator.operation
        yield f"{self.numbers[made]} = {self._call(made)}{self._line(made)}"
        for use in estimator.uses:
            yield from self._use(use)
        for mode, graph in estimator.graphs.items():
            yield f"  graph {mode}"
            yield from self._graph(graph)

    def _use(self, use: Use) -> Iterator[str]:
        given = ", ".join(f"{name}={self._text(value)}" for name, value in use.arguments.items())
        often = " any number of times" if use.repeated else ""
        yield f"  {self._if(use.conditions)}{use.method}({given}){often}{self._line(use.operation)}"
        for name, graph in use.inputs.items():
            text = "\n".join(f"  {line}" for line in self._graph(graph))
            yield f"    {name}" + (f": that of {self.shown[text]}" if text in self.shown else "")
            if text not in self.shown:
                self.shown[text] = use.method
                yield text

    def _graph(self, graph: Graph) -> Iterator[str]:
        numbers, counts = dict(self.numbers), dict(self.counts)
        self._number(graph.effects, "%")
        last: tuple[Condition, ...] = ()
        for effect in graph.effects:
            if effect.conditions != last:
                last = effect.conditions
                yield f"    {self._if(last) or 'always '}".rstrip() + ":"
            operation = effect.operation
            often = "* " if effect.repeated else ""
            yield f"      {often}{self.numbers[operation]} = {self._call(operation)}{self._line(operation)}"
        for name in graph.changes:
            yield f"      changes {name}"
        yield f"    return {self._text(graph.result)}"
        self.numbers, self.counts = numbers, counts

    def _number(self, effects: Sequence[Effect], prefix: str) -> None:
        for effect in effects:
            if effect.operation not in self.numbers:
                count = self.counts.get(prefix, 0)
                self.numbers[effect.operation] = f"{prefix}{count}"
                self.counts[prefix] = count + 1

    def _if(self, conditions: Sequence[Condition]) -> str:
        tests = [f"{'' if holds else 'not '}{self._text(condition)}" for condition, holds in conditions]
        return f"if {' and '.join(tests)} " if tests else ""

    def _call(self, operation: Operation) -> str:
        args = [self._text(one) for one in operation.args]
        args += [f"{name}={self._text(one)}" for name, one in operation.kwargs.items()]
        scopes = [self._text(one) for one in operation.scopes]
        within = f" in {', '.join(scopes)}" if scopes else ""
        if operation.symbol.startswith(".") or operation.symbol == "call":
            return f"{args[0]}{_method(operation.symbol)}({', '.join(args[1:])}){within}"
        return f"{operation.symbol}({', '.join(args)}){within}"

    def _line(self, operation: Operation) -> str:
        site = operation.site
        if site is None:
            return ""
        return f"  # {self._name(site)}{self._number_of(site)}"

    def _name(self, site: Site) -> str:
        return "" if site.path == self.program.file.path else f"{site.path.name}:"

    def _number_of(self, site: Site) -> int:
        if site.path not in self.lines_of:
            files: Sequence[File] = self.machine.files.files
            file = next(one for one in files if one.path == site.path)
            positions = MetadataWrapper(file.module, unsafe_skip_copy=True).resolve(PositionProvider)
            self.lines_of[site.path] = lambda node: positions[node].start.line if node in positions else 0
        return self.lines_of[site.path](site.node)

    def _text(self, value: Value, deep: int = 0) -> str:
        if deep > _DEEP:
            return "..."
        if isinstance(value, Operation):
            return self.numbers.get(value) or self._expression(value, deep)
        if isinstance(value, Constant):
            return repr(value.value)
        if value is NOTHING:
            return "nothing"
        if isinstance(value, Symbol):
            return value.name
        if isinstance(value, Either):
            then, otherwise = self._text(value.then, deep + 1), self._text(value.otherwise, deep + 1)
            return f"({then} if {self._text(value.condition, deep + 1)} else {otherwise})"
        if isinstance(value, (Items, Table)):
            return self._container(value, deep)
        if isinstance(value, Partial):
            args = [self._text(one, deep + 1) for one in (value.function, *value.args)]
            args += [f"{name}={self._text(one, deep + 1)}" for name, one in value.kwargs.items()]
            return f"partial({', '.join(args)})"
        if isinstance(value, Method):
            return f"{self._text(value.owner, deep + 1)}.{value.name}"
        if isinstance(value, Unknown):
            return f"<{value.reason}>"
        return _plain(value)

    def _container(self, value: Items | Table, deep: int) -> str:
        content, entries = self.machine.content_of(value), self.machine.entries_of(value)
        if entries is not None:
            parts = [f"{self._text(key, deep + 1)}: {self._text(one, deep + 1)}" for key, one in entries.items.values()]
            return "{" + ", ".join([*parts, *(["..."] if entries.more else [])]) + "}"
        if content is None or not isinstance(value, Items):
            return "<a container>"
        parts = [self._text(one, deep + 1) for one in content.items[:_LONG]]
        if len(content.items) > _LONG:
            parts.append(f"... {len(content.items)} in all")
        parts += ["..."] if content.more else []
        if value.kind == "tuple":
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        return f"[{', '.join(parts)}]" if value.kind == "list" else f"{{{', '.join(parts) or '*()'}}}"

    def _expression(self, value: Operation, deep: int) -> str:
        args = [self._text(one, deep + 1) for one in value.args]
        symbol = value.symbol
        if symbol in _INFIX:
            return "(" + f" {_INFIX[symbol]} ".join(args) + ")"
        named = value.args[1].value if len(value.args) > 1 and isinstance(value.args[1], Constant) else None
        if symbol == "getattr":
            return f"{args[0]}.{named}"
        if symbol == "getitem":
            return f"{args[0]}[{', '.join(args[1:])}]"
        if symbol == "parameter":
            return str(named if named is not None else getattr(value.args[0], "value", "?"))
        if symbol == "flag":
            return f"flag {args[0]}"
        if symbol == "not":
            return f"not {args[0]}"
        if symbol == "neg":
            return f"-{args[0]}"
        args += [f"{name}={self._text(one, deep + 1)}" for name, one in value.kwargs.items()]
        return f"{symbol}({', '.join(args)})"


def _method(symbol: str) -> str:
    return "" if symbol == "call" else symbol


def _plain(value: Value) -> str:
    if isinstance(value, Function):
        if isinstance(value.node, cst.Lambda):
            return "lambda"
        return f"{value.owner.name}.{value.name}" if value.owner is not None else value.name
    if isinstance(value, (Class, Record)):
        return value.name
    if isinstance(value, Object):
        return f"<{value.of.name}>"
    if isinstance(value, Module):
        return f"module {value.path.name}"
    return f"<super of {value.after.name}>" if isinstance(value, Parent) else f"<{type(value).__name__}>"


__all__ = ["printed"]
