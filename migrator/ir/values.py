"""The values of a program, as far as they are known without running it.

A value is compared by identity: the loss that a model_fn reports *is* the one that its optimizer minimizes, under
whatever names. What a container or an object holds may change and is kept by the evaluator, not here. Every value that
an expression gives has the site of that expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, eq=False)
class Frame:
    """A call of one of the program's functions: its name, where it was called from, and the mode of a model_fn."""

    name: str
    caller: Site | None = None
    mode: str = ""


@dataclass(frozen=True, eq=False)
class Site:
    """Where a value comes from: the file, the node there, and the call in which the code ran (None: the module)."""

    path: Path
    node: cst.CSTNode
    frame: Frame | None = None


@dataclass(frozen=True, eq=False)
class Value:
    """Something that an expression of the program stands for."""

    site: Site | None


@dataclass(frozen=True, eq=False)
class Constant(Value):
    """A number, a text, None, True, False, bytes or `...`."""

    value: object


@dataclass(frozen=True, eq=False)
class Sequence(Value):
    """A list, tuple or set that was made here; the evaluator knows its elements."""

    kind: str  # "list", "tuple" or "set"


@dataclass(frozen=True, eq=False)
class Table(Value):
    """A dict that was made here; the evaluator knows its entries."""


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A function or lambda of the program: its node, and the scope that it is defined in.

    `defaults` are the values of its parameters' defaults, by name. `owner` is the class whose method it is.
    """

    name: str
    node: cst.FunctionDef | cst.Lambda
    scope: Scope
    defaults: Mapping[str, Value] = field(default_factory=dict)
    owner: Class | None = None


@dataclass(frozen=True, eq=False)
class Class(Value):
    """A class of the program, with its bases, the innermost scope around it, and that of its own names."""

    name: str
    node: cst.ClassDef
    bases: tuple[Value, ...]
    scope: Scope
    is_data: bool = False  # a dataclass, or a NamedTuple
    is_enumeration: bool = False  # the names that it gives values are its members, and not those values themselves


@dataclass(frozen=True, eq=False)
class Record(Value):
    """A class that `collections.namedtuple` makes."""

    name: str
    fields: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Object(Value):
    """An object of a class of the program; the evaluator knows its attributes."""

    of: Class | Record


@dataclass(frozen=True, eq=False)
class Method(Value):
    """A method of something, not called yet: of an object of the program (`function`), or of any other value."""

    owner: Value
    name: str
    function: Function | None = None


@dataclass(frozen=True, eq=False)
class Parent(Value):
    """What `super()` gives in a method of a class: the object, as its bases see it."""

    owner: Value
    after: Class


@dataclass(frozen=True, eq=False)
class Partial(Value):
    """`functools.partial(function, *args, **kwargs)`."""

    function: Value
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]


@dataclass(frozen=True, eq=False)
class Symbol(Value):
    """Something of a library, by its canonical dotted name: `tf.train.AdamOptimizer`, `functools.partial`, `len`."""

    name: str


@dataclass(frozen=True, eq=False)
class Module(Value):
    """A module of the project."""

    path: Path
    scope: Scope


@dataclass(frozen=True, eq=False)
class Operation(Value):
    """A call of a library, or an expression over its results.

    `symbol` is the canonical name of what is called (`tf.layers.dense`), `.name` for a method of an unknown object
    (its object is then the first of `args`), or for expressions the name of Python's operator: `add`, `getitem`,
    `getattr`, `==`, `not`, `format`. `element` is any element of its one argument, `carried` what a loop of unknown
    length has given a name so far, `loop` what such a loop has given it when it is over, `flag` a flag of the command
    line. `parameter` is what a function is given by somebody who is not known, and `call` a call of what is not known.
    `scopes` are the `with` statements around it.
    """

    symbol: str
    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    scopes: tuple[Value, ...] = ()

    @property
    def given(self) -> tuple[Value, ...]:
        """All that the call is given, by place and by name."""
        return (*self.args, *self.kwargs.values())

    def argument(self, index: int | None, *names: str) -> Value | None:
        """What is given for a parameter, by one of its names or by its place; None where nothing is."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        return self.args[index] if index is not None and index < len(self.args) else None


@dataclass(frozen=True, eq=False)
class Either(Value):
    """One of two values, by a condition that is not known; `weight` is the number of values in it."""

    condition: Value
    then: Value
    otherwise: Value
    weight: int = 2


@dataclass(frozen=True, eq=False)
class Unknown(Value):
    """What is not known, and why."""

    reason: str


@dataclass(frozen=True, eq=False)
class Scope:
    """The names of a module, of one call of a function, or of a class; the evaluator knows what they stand for.

    `own` are the names that belong to it, `outer` the scope around, `file` the file of its code.
    """

    name: str
    own: frozenset[str]
    outer: Scope | None
    path: Path
    kind: str  # "module", "function", "class" or "comprehension"
    declared: Mapping[str, str] = field(default_factory=dict)  # "global" or "nonlocal", by name


def is_nothing(value: Value | None) -> bool:
    """Whether a value is not given, or is Python's None."""
    return value is None or (isinstance(value, Constant) and value.value is None)


def alternatives(value: Value) -> list[Value]:
    """All that a value may be, whatever the conditions are."""
    if isinstance(value, Either):
        found = alternatives(value.then)
        return found + [one for one in alternatives(value.otherwise) if not any(one is other for other in found)]
    return [value]


__all__ = [
    "Class",
    "Constant",
    "Either",
    "Frame",
    "Function",
    "Method",
    "Module",
    "Object",
    "Operation",
    "Parent",
    "Partial",
    "Record",
    "Scope",
    "Sequence",
    "Site",
    "Symbol",
    "Table",
    "Unknown",
    "Value",
    "alternatives",
    "is_nothing",
]
