"""Programs put together by chance do the same once they are in plain words: the same calls, in the same order.

Each is a function of stubs that note how they are called. What fails by itself (a name that is not bound yet) says
nothing, and is left out.
"""

from __future__ import annotations

import contextlib
import functools
import random
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrator.program.parsed import ParsedFile
from migrator.program.reductions import reduced

NAMES = ("a", "b", "c", "d")


class Value:
    """What a stub returns: known by what it was made of. Its attributes and operators make others."""

    def __init__(self, made_of: str, trace: list[str]) -> None:
        self.made_of = made_of
        self.trace = trace

    def __repr__(self) -> str:
        return self.made_of

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return Value(f"{self.made_of}.{name}", self.trace)

    def __call__(self, *args: Any, **keywords: Any) -> Value:
        said = [repr(one) for one in args] + [f"{name}={value!r}" for name, value in keywords.items()]
        self.trace.append(f"{self.made_of}({', '.join(said)})")
        return Value(f"<{len(self.trace)}>", self.trace)

    def __add__(self, other: object) -> Value:
        return Value(f"({self!r} + {other!r})", self.trace)

    def __enter__(self) -> Value:
        return self(1)

    def __exit__(self, *_: object) -> None:
        self.trace.append(f"left {self!r}")


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.functions: list[str] = []

    def name(self) -> str:
        return self.random.choice(NAMES)

    def fresh(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def value(self, depth: int = 0) -> str:
        kinds = (
            ["name"] * 3 + ["call"] * 3 + ["constant", "sum", "attribute", "getattr", "partial", "keywords", "lambda"]
        )
        kind = self.random.choice(kinds if depth < 2 else kinds[:7])
        inner = functools.partial(self.value, depth + 1)
        if kind == "name":
            return self.name()
        if kind == "constant":
            return self.random.choice(["1", "'x'", "None", "True"])
        if kind == "sum":
            return f"add({inner()}, {inner()})"
        if kind == "attribute":
            return f"f.{self.random.choice('xyz')}"
        if kind == "getattr":
            return f"getattr(f, '{self.random.choice('xyz')}')"
        if kind == "partial":
            return f"functools.partial(f, {inner()})({inner()}, k={inner()})"
        if kind == "keywords":
            return f"g({inner()}, **{{'k': {inner()}, 'm': {inner()}}})"
        if kind == "lambda":
            return f"(lambda: {inner()})()"
        return f"{self.random.choice('fgh')}({inner()})"

    def lines(self, depth: int) -> Iterator[str]:
        for _ in range(self.random.randint(2, 4)):
            yield from self.line(depth)

    def block(self, depth: int) -> list[str]:
        return [f"    {line}" for line in self.lines(depth + 1)]

    def line(self, depth: int) -> Iterator[str]:
        simple = (
            ["bind"] * 4 + ["copy"] * 3 + ["chain", "pair", "swap", "walrus", "list", "dict", "options", "part", "use"]
        )
        rest = [
            "if",
            "for",
            "try",
            "with",
            "def",
            "nonlocal",
            "del",
            "add",
            "comprehension",
            "text",
            "class",
            "default",
        ]
        kind = self.random.choice(simple * 2 + (rest if depth < 2 else ["del", "add", "text"]))
        name, other = self.name(), self.name()
        if kind == "bind":
            yield f"{name} = {self.value()}"
        elif kind == "copy":
            new = self.fresh()
            yield from self.random.choice(
                [
                    [f"{name} = {other}"],
                    [f"{new} = {self.value()}", f"{name} = {new}"],
                    [f"{new} = {self.value()}", f"use({other})", f"{name} = {new}", f"use({name})"],
                    [f"{new} = {self.value()}", f"k{new} = {new}", f"use(k{new}, {new})"],
                ]
            )
        elif kind == "chain":
            yield f"{name} = {other} = {self.value()}"
        elif kind == "pair":
            one, two = self.fresh(), self.fresh()
            yield f"({one}, {two}) = ({self.value()}, {self.value()})"
            yield f"use({one}, {two})"
        elif kind == "swap":
            yield f"({name}, {other}) = ({self.value()}, {self.value()})"
        elif kind == "walrus":
            yield f"({name} := {self.value()})"
        elif kind in ("list", "dict"):
            new = self.fresh()
            keys = (0, 1) if kind == "list" else ("'p'", "'q'")
            values = (
                f"[{self.value()}, {self.value()}]"
                if kind == "list"
                else f"{{'p': {self.value()}, 'q': {self.value()}}}"
            )
            yield f"{new} = {values}"
            if self.random.random() < 0.3:
                yield from self.line(2)
            yield f"{name} = {new}[{keys[0]}]"
            if self.random.random() < 0.5:
                yield f"use({new}[{keys[1]}])"
            if self.random.random() < 0.2:
                yield f"use({new})"
        elif kind == "options":
            new = self.fresh()
            said = "dict(k={}, m={})" if self.random.random() < 0.5 else "{{'k': {}, 'm': {}}}"
            yield f"{new} = {said.format(self.value(), self.value())}"
            if self.random.random() < 0.3:
                yield from self.line(2)
            yield f"{name} = g({self.value()}, **{new})"
        elif kind == "part":
            new = self.fresh()
            yield f"{new} = functools.partial(h, {self.value()}, k={self.value()})"
            if self.random.random() < 0.3:
                yield from self.line(2)
            yield f"{name} = {new}({self.value()})"
        elif kind == "use":
            yield f"use({self.value()})"
        elif kind == "if":
            yield f"if chance({name}):"
            yield from self.block(depth)
            if self.random.random() < 0.5:
                yield "else:"
                yield from self.block(depth)
        elif kind == "for":
            yield f"for {self.random.choice([name, '_'])} in (f(1), f(2)):"
            yield from self.block(depth)
        elif kind == "try":
            yield "try:"
            yield from self.block(depth)
            yield "    fail()"
            yield self.random.choice(["finally:", "except Wrong:"])
            yield from self.block(depth)
        elif kind == "with":
            yield f"with f({other}) as {name}:"
            yield from self.block(depth)
        elif kind in ("def", "nonlocal"):
            new = self.fresh()
            yield f"def {new}():"
            if kind == "nonlocal":
                yield f"    nonlocal {name}"
                yield f"    {name} = {self.value()}"
            yield f"    return f({self.name()}, {self.name()})"
            yield from self.line(2)
            yield f"use({new}())"
            self.functions.append(new)
        elif kind == "del":
            yield f"del {name}"
            yield f"{name} = {self.value()}"
        elif kind == "add":
            yield f"{name} = add({name}, 1)"
        elif kind == "comprehension":
            yield f"{name} = [f({other}, {name}) for {name} in (1, 2)]"
        elif kind == "text":
            yield f"use(f'{{{name}}} {{f({other})}}')"
        elif kind == "class":
            new = self.fresh()
            yield f"class {new.upper()}:"
            yield f"    {name} = {self.value()}"
            yield f"    other = {other}"
            yield f"use({new.upper()}.{name})"
        elif kind == "default":
            new = self.fresh()
            yield f"{new} = lambda x={name}: f(x, {other})"
            yield from self.line(2)
            yield f"use({new}())"

    def program(self) -> str:
        body = [f"    {name} = f('{name}')" for name in NAMES if self.random.random() < 0.9]
        body += [f"    {line}" for line in self.lines(0)] + [f"    {line}" for line in self.lines(0)]
        made = "\n".join(body)
        return (
            "import functools\n\n\n@plainly\ndef model_fn(features, mode):\n"
            f"{made}\n    return EstimatorSpec(mode, a, b, c, d)\n\n\nmodel_fn('x', 'train')\n"
        )


def traced(text: str) -> tuple[list[str], str]:
    """The calls of the stubs when a program runs, and the error that ended it."""
    trace: list[str] = []
    asked = iter(range(1000))

    class Wrong(Exception):
        pass

    def fail() -> None:
        trace.append("fail")
        if next(asked) % 3 == 0:
            raise Wrong

    def chance(_: object) -> bool:
        trace.append("chance")
        return next(asked) % 2 == 0

    def add(one: object, two: object) -> Value:
        return Value(f"({one!r} + {two!r})", trace)

    names: dict[str, Any] = {name: Value(name, trace) for name in ("f", "g", "h", "use", "EstimatorSpec")}
    names |= {"fail": fail, "chance": chance, "add": add, "Wrong": Wrong, "plainly": lambda f: f}
    module = types.ModuleType("program")
    module.__dict__.update(names)
    error = ""
    try:
        exec(compile(text, "program", "exec"), module.__dict__)
    except Exception as raised:
        error = type(raised).__name__
    return trace, error


def plain(text: str) -> str:
    return reduced(ParsedFile.parse(Path("train.py"), text), lambda name: False).module.code


@pytest.mark.parametrize("seed", range(5))
def test_same_calls(seed: int) -> None:
    """Forty programs each; most are reduced, and half of them run."""
    ran = changed = 0
    for number in range(40):
        text = Writer(1000 * seed + number).program()
        with contextlib.suppress(SyntaxError):
            compile(text, "program", "exec")
            before = traced(text)
            if before[1] not in ("", "Wrong"):
                continue
            new = plain(text)
            ran += 1
            changed += new != text
            assert traced(new) == before, f"{text}\n# ---\n{new}"
            assert plain(new) == new, f"not in one go:\n{text}\n# ---\n{new}"
    assert ran > 10 and changed > 10
