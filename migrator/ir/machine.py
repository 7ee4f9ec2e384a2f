"""The state in which a program is evaluated: what is known, under which conditions, and what was done so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import libcst as cst

from migrator.ir.operators import BUILTINS
from migrator.ir.store import ABSENT, Elements, Entries, Key, Store
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Frame,
    Function,
    Module,
    Object,
    Operation,
    Partial,
    Record,
    Scope,
    Site,
    Symbol,
    Table,
    Unknown,
    Value,
)
from migrator.ir.values import Sequence as Items

Condition = tuple[Value, bool]
_TOO_MANY = "too many conditions decide it"
_HEAVIEST = 200  # alternatives of one value
_WORK = 40_000  # expressions and statements that one program may take


class File(Protocol):
    """A file of a project."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def module(self) -> cst.Module:
        """Its tree."""
        ...


class Files(Protocol):
    """The files of a project, and which of them an import means."""

    @property
    def files(self) -> Sequence[File]:
        """All of them."""
        ...

    def imported(self, importer: Path, module: str, level: int) -> File | None:
        """The file that a module is, imported in another with so many leading dots."""
        ...


@dataclass(frozen=True)
class Arguments:
    """What a call gives: by place and by name. `rest` and `others` are `*` and `**` arguments that are not known."""

    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    rest: Value | None = None
    others: Value | None = None

    @property
    def known(self) -> bool:
        """Whether everything that is given is known."""
        return self.rest is None and self.others is None

    @property
    def values(self) -> tuple[Value, ...]:
        """All that is given."""
        more = [one for one in (self.rest, self.others) if one is not None]
        return (*self.args, *self.kwargs.values(), *more)


@dataclass(frozen=True, eq=False)
class Effect:
    """A call of a library: under which conditions it is made, and whether it may be made any number of times."""

    operation: Operation
    conditions: tuple[Condition, ...]
    repeated: bool


@dataclass
class Exit:
    """A way out of a region: under which conditions, with which value, and what was written until then (None: all)."""

    conditions: tuple[Condition, ...]
    value: Value
    writes: dict[Key, object] | None


@dataclass
class Region:
    """A call, a loop, or a turn of a loop, which `return`, `break` and `continue` leave."""

    kind: str  # "call", "loop" or "turn"
    mark: int
    depth: int
    exits: list[Exit] = field(default_factory=list)


class TooMuch(Exception):
    """The program takes more steps than are made here."""


class Machine(ABC):
    """The state, and what the parts of the evaluator ask of each other."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.store = Store()
        self.effects: list[Effect] = []
        self.conditions: list[Condition] = []
        self.regions: list[Region] = []
        self.contexts: tuple[Value, ...] = ()
        self.frame: Frame | None = None
        self.calls: list[tuple[Function, Value | None]] = []  # and the object of a method
        self.scopes: list[Scope] = []  # of these calls
        self.classes: list[Class] = []
        self.starred: dict[Scope, set[str]] = {}  # what `from module import *` gave
        self.complete = True
        self.watch: Callable[[Effect], None] | None = None  # is told of every call of a library
        self.repeated = 0
        self.work = 0
        self.noted: dict[cst.CSTNode, list[Value]] = {}  # what arguments and assigned values were, each time
        self.called: set[cst.CSTNode] = set()  # the functions that were entered
        self.symbols: dict[str, bool] = {}  # what was read of libraries, and whether that was under no condition once
        self.outer = 0  # conditions under which the function that is called apart is called
        self._shared: dict[tuple[object, ...], Operation] = {}
        self._truths: dict[int, bool | None] | None = None  # found in the question of `decided` under way

    # -- what the parts ask of each other

    @abstractmethod
    def value(self, node: cst.BaseExpression, scope: Scope) -> Value:
        """What an expression stands for."""

    @abstractmethod
    def run(self, node: cst.CSTNode, scope: Scope) -> bool:
        """Executes a statement or block; whether the code goes on after it."""

    @abstractmethod
    def call(self, callee: Value, given: Arguments, site: Site) -> Value:
        """What a call gives."""

    @abstractmethod
    def attribute(self, owner: Value, name: str, site: Site) -> Value:
        """An attribute of a value."""

    @abstractmethod
    def load(self, file: File) -> Module:
        """The module of a file of the project, executed when it is loaded first."""

    @abstractmethod
    def elements(self, value: Value) -> list[Value] | None:
        """What going over a value gives, one after the other; None where that is not known."""

    # -- places and work

    def step(self) -> None:
        """Counts a step. Raises TooMuch."""
        self.work += 1
        if self.work > _WORK:
            raise TooMuch

    def site(self, node: cst.CSTNode, scope: Scope) -> Site:
        """The place of a node, which takes a step. Raises TooMuch."""
        self.step()
        return Site(scope.path, node, self.frame)

    def operation(self, site: Site | None, symbol: str, /, *args: Value, **kwargs: Value) -> Operation:
        """An expression over values: the same object for the same symbol and values."""
        key = (symbol, *(identity(one) for one in args), *((n, identity(one)) for n, one in kwargs.items()))
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = Operation(site, symbol, args, kwargs)
        return known

    def effect(self, operation: Operation) -> Operation:
        """Notes a call of a library."""
        effect = Effect(operation, tuple(self.conditions), self.repeated > 0)
        self.effects.append(effect)
        if self.watch is not None:
            self.watch(effect)
        return operation

    def reads(self, symbol: str) -> None:
        """Notes that a symbol of a library is read."""
        self.symbols[symbol] = self.symbols.get(symbol, False) or len(self.conditions) <= self.outer

    # -- conditions

    def decided(self, condition: Value) -> bool | None:
        """Whether a condition holds here; None where that is not known."""
        for known, holds in reversed(self.conditions):
            if known is condition:
                return holds
        if not isinstance(condition, (Either, Operation)):
            return self.truth(condition)
        # Alternatives share their parts: each is asked once within a question, or a loop of many turns takes for ever.
        if self._truths is None:
            self._truths = {}
            try:
                return self.truth(condition)
            finally:
                self._truths = None
        if id(condition) not in self._truths:
            self._truths[id(condition)] = self.truth(condition)
        return self._truths[id(condition)]

    def truth(self, value: Value) -> bool | None:
        """The truth of a value."""
        if isinstance(value, Constant):
            return bool(value.value)
        if isinstance(value, (Items, Table)):
            content = self.store.get((value,))
            if isinstance(content, (Elements, Entries)) and not content.more:
                held = content.items if isinstance(content, Elements) else [one for _, one in content.items.values()]
                sure = [one for one in held if not may_be_absent(one)]
                return True if sure else None if held else False
            return None
        if isinstance(value, Symbol):
            return True if value.name.startswith("tf.") or value.name in BUILTINS else None
        if isinstance(value, (Function, Class, Module, Partial, Record, Object)):
            return True
        if isinstance(value, Either):
            condition = self.decided(value.condition)
            if condition is not None:
                return self.decided(value.then if condition else value.otherwise)
            # `a and b` is a where a is false, and so is `a or b` where it is true.
            first = True if value.then is value.condition else self.decided(value.then)
            second = False if value.otherwise is value.condition else self.decided(value.otherwise)
            return first if first is second else None
        if isinstance(value, Operation) and value.symbol == "not":
            inner = self.decided(value.args[0])
            return None if inner is None else not inner
        return None

    def settled(self, value: Value) -> Value:
        """A value without the alternatives that the conditions here exclude."""
        while isinstance(value, Either):
            condition = self.decided(value.condition)
            if condition is None:
                return value
            value = value.then if condition else value.otherwise
        return value

    def branch(self, condition: Value, then: Callable[[], bool], otherwise: Callable[[], bool]) -> bool:
        """Runs one of two, or both and what each of them leaves; whether the code goes on after it."""
        while isinstance(condition, Operation) and condition.symbol == "not":
            condition, then, otherwise = condition.args[0], otherwise, then
        known = self.decided(condition)
        if known is not None:
            return then() if known else otherwise()
        mark = self.store.mark()
        with self.under(condition, True):
            first = then()
        written = self.store.undo(mark)
        with self.under(condition, False):
            second = otherwise()
        if first and second:
            other = self.store.undo(mark)
            self.store.write(self.merged([(condition, True)], written, other))
        elif first:
            self.store.undo(mark)
            self.store.write(written)
        if first is not second:
            self.conditions.append((condition, first))  # until the region is left: the other way does not come here
        return first or second

    @contextmanager
    def under(self, condition: Value, holds: bool) -> Iterator[None]:
        """While a condition holds, or does not."""
        depth = len(self.conditions)
        self.conditions.append((condition, holds))
        try:
            yield
        finally:
            del self.conditions[depth:]

    def merged(
        self, conditions: Sequence[Condition], then: Mapping[Key, object], otherwise: Mapping[Key, object]
    ) -> dict[Key, object]:
        """What is held when one of two histories happened, both from this point on."""
        found = {}
        for key in {**then, **otherwise}:
            base = self.store.get(key)
            found[key] = self._joined(conditions, then.get(key, base), otherwise.get(key, base))
        return found

    def _joined(self, conditions: Sequence[Condition], then: object, otherwise: object) -> object:
        if then is otherwise:
            return then
        if isinstance(then, Elements) and isinstance(otherwise, Elements):
            return self._joined_elements(conditions, then, otherwise)
        if isinstance(then, Entries) and isinstance(otherwise, Entries):
            items = {}
            for key, (name, _) in {**then.items, **otherwise.items}.items():
                first, second = then.items.get(key, (name, NOTHING))[1], otherwise.items.get(key, (name, NOTHING))[1]
                items[key] = name, self.chosen(conditions, first, second)
            return Entries(items, then.more or otherwise.more)
        if then is ABSENT or otherwise is ABSENT:
            return otherwise if then is ABSENT else then  # it runs on where the name has a value
        if isinstance(then, Value) and isinstance(otherwise, Value):
            return self.chosen(conditions, then, otherwise)
        return then

    def _joined_elements(self, conditions: Sequence[Condition], then: Elements, otherwise: Elements) -> Elements:
        shared = min(len(then.items), len(otherwise.items))
        items = [self.chosen(conditions, a, b) for a, b in zip(then.items, otherwise.items)]
        items += [self.chosen(conditions, one, NOTHING) for one in then.items[shared:]]
        items += [self.chosen(conditions, NOTHING, one) for one in otherwise.items[shared:]]
        lost = any(isinstance(one, Unknown) and one.reason == _TOO_MANY for one in items)
        return Elements(tuple(items), then.more or otherwise.more or lost)

    def chosen(self, conditions: Sequence[Condition], then: Value, otherwise: Value) -> Value:
        """One of two values: the first where all conditions hold."""
        if same(then, otherwise):
            return then
        found = then
        for condition, holds in reversed(conditions):
            a, b = (found, otherwise) if holds else (otherwise, found)
            known = self.decided(condition)
            if known is not None:
                found = a if known else b
                continue
            weight = sum(one.weight if isinstance(one, Either) else 1 for one in (a, b))
            if weight > _HEAVIEST:
                return Unknown(condition.site, _TOO_MANY)
            found = Either(condition.site, condition, a, b, weight)
        return found

    # -- calls and loops, and the ways out of them

    def enter(self, kind: str) -> Region:
        """Begins a call, a loop or a turn of a loop."""
        region = Region(kind, self.store.mark(), len(self.conditions))
        self.regions.append(region)
        return region

    def leave(self, kinds: Sequence[str], value: Value) -> bool:
        """Leaves the innermost region of some kinds, here; False: the code does not go on."""
        for region in reversed(self.regions):
            if region.kind in kinds:
                conditions = tuple(self.conditions[region.depth :])
                region.exits.append(Exit(conditions, value, self.store.since(region.mark) if conditions else None))
                break
            if region.kind == "call":
                break
        return False

    def close(self, region: Region, goes_on: bool, value: Value) -> Value | None:
        """What a region gives when all that left it is put together; None where nothing does."""
        assert self.regions.pop() is region
        del self.conditions[region.depth :]
        exits = region.exits
        if goes_on:
            exits.append(Exit((), value, None))
        if not exits:
            return None
        last = exits[-1]
        if len(exits) == 1 and last.writes is None:
            return last.value
        state = self.store.since(region.mark) if last.writes is None else last.writes
        self.store.undo(region.mark)
        found = last.value
        for one in reversed(exits[:-1]):
            found = self.chosen(one.conditions, one.value, found)
            state = self.merged(one.conditions, one.writes or {}, state)
        self.store.write(state)
        return found

    # -- contents

    def made(self, value: Value, content: Elements | Entries) -> Value:
        """A new container with its content."""
        self.store.set((value,), content)
        return value

    def sequence(self, site: Site | None, kind: str, items: Sequence[Value], more: bool = False) -> Value:
        """A new list, tuple or set."""
        return self.made(Items(site, kind), Elements(tuple(items), more))

    def table(self, site: Site | None, items: Sequence[tuple[Value, Value]], more: bool = False) -> Value:
        """A new dict."""
        return self.made(Table(site), Entries({identity(key): (key, value) for key, value in items}, more))

    def content_of(self, value: Value) -> Elements | None:
        """The elements of a list, tuple or set; None for anything else."""
        found = self.store.get((value,)) if isinstance(value, Items) else None
        return found if isinstance(found, Elements) else None

    def entries_of(self, value: Value) -> Entries | None:
        """The entries of a dict; None for anything else."""
        found = self.store.get((value,)) if isinstance(value, Table) else None
        return found if isinstance(found, Entries) else None

    def lose(self, values: Sequence[Value], reason: str) -> None:
        """Forgets what containers and objects hold: somebody who is not known may have changed it."""
        for value in values:
            for one in _all_of(value):
                elements, entries = self.content_of(one), self.entries_of(one)
                if elements is not None and isinstance(one, Items) and one.kind != "tuple":
                    self.store.set((one,), Elements(elements.items, True))
                elif entries is not None:
                    self.store.set((one,), Entries(entries.items, True))
                elif isinstance(one, Object):
                    self.store.set((one, "?"), Unknown(one.site, reason))


NOTHING = Symbol(None, "nothing")


def _all_of(value: Value) -> list[Value]:
    return [*_all_of(value.then), *_all_of(value.otherwise)] if isinstance(value, Either) else [value]


def may_be_absent(value: Value) -> bool:
    """Whether an entry of a container is there under some condition only."""
    return any(one is NOTHING for one in _all_of(value))


def present(value: Value) -> Value:
    """An entry where it is there."""
    if isinstance(value, Either):
        if value.then is NOTHING:
            return present(value.otherwise)
        if value.otherwise is NOTHING:
            return present(value.then)
    return value


def where_there(machine: Machine, entry: Value, value: Value) -> Value:
    """A value that is there where an entry is."""
    if entry is NOTHING:
        return NOTHING
    if isinstance(entry, Either) and may_be_absent(entry):
        parts = where_there(machine, entry.then, value), where_there(machine, entry.otherwise, value)
        return machine.chosen([(entry.condition, True)], *parts)
    return value


def identity(value: Value) -> tuple[object, ...] | Value:
    """What makes a value the same as another: a constant's type and value, or the object itself."""
    if isinstance(value, Constant):
        return ("constant", type(value.value), value.value)
    if isinstance(value, Symbol):
        return ("symbol", value.name)
    return value


def cell(owner: Value, name: str) -> Key:
    """Where the store keeps an attribute: those of modules and classes are names of their scopes.

    What is given to a name of a library, or to a flag, is found wherever that is read.
    """
    if isinstance(owner, (Module, Class)):
        return owner.scope, name
    if not isinstance(owner, Symbol):
        return owner, name
    return ("flag", name) if owner.name.endswith(".FLAGS") else ("symbol", f"{owner.name}.{name}")


def inside(symbol: str) -> Key:
    """Where the store keeps that a container of a library's name, of a file that was not given say, was changed."""
    return "inside", symbol


def is_of_library(key: Key) -> bool:
    """Whether a key is of what a library's name has, or a flag."""
    return isinstance(key[0], tuple) or key[0] in ("flag", "symbol", "inside")


def same(first: Value, second: Value) -> bool:
    """Whether two values are surely the same."""
    return first is second or identity(first) == identity(second)


__all__ = [
    "NOTHING",
    "Arguments",
    "Condition",
    "Effect",
    "File",
    "Files",
    "Machine",
    "Region",
    "TooMuch",
    "cell",
    "identity",
    "inside",
    "is_of_library",
    "may_be_absent",
    "present",
    "same",
    "where_there",
]
