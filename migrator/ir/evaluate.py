"""The evaluator: runs a program on what is known of it, without TensorFlow.

Names, attributes, containers, functions, classes and modules of the program are followed as Python follows them.
Calls of libraries are operations, in the order in which they are made. Where a condition is not known, both ways are
followed and what they leave is an `Either`; a loop of unknown length is followed for any turn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.ir import calls, expressions, statements
from migrator.ir.builtin import lineage
from migrator.ir.machine import Arguments, Condition, Effect, File, Files, Machine, Region, TooMuch
from migrator.ir.store import ABSENT
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Frame,
    Function,
    Method,
    Module,
    Object,
    Partial,
    Scope,
    Site,
    Symbol,
    Unknown,
    Value,
)
from migrator.names.bindings import bound_in, names_read


class Evaluator(Machine):
    """Evaluates the files of a project."""

    def __init__(self, files: Files, main: File | None = None) -> None:
        super().__init__(files)
        self.main = main
        self.main_path = main.path if main is not None else Path("?")
        self.nowhere = Site(self.main_path, cst.Pass())

    def value(self, node: cst.BaseExpression, scope: Scope) -> Value:
        """What an expression stands for."""
        return expressions.evaluate(self, node, scope)

    def run(self, node: cst.CSTNode, scope: Scope) -> bool:
        """Executes a statement or block; whether the code goes on after it."""
        return statements.execute(self, node, scope)

    def call(self, callee: Value, given: Arguments, site: Site) -> Value:
        """What a call gives."""
        return calls.call(self, callee, given, site)

    def attribute(self, owner: Value, name: str, site: Site) -> Value:
        """An attribute of a value."""
        return calls.attribute(self, owner, name, site)

    def elements(self, value: Value) -> list[Value] | None:
        """What going over a value gives, one after the other; None where that is not known."""
        return calls.elements(self, value)

    def load(self, file: File) -> Module:
        """The module of a file of the project, executed when it is loaded first."""
        known = self.store.get(("module", file.path))
        if isinstance(known, Module):
            return known
        name = "__main__" if file is self.main else file.path.stem
        scope = Scope(name, frozenset(b.name for b in bound_in(file.module)), None, file.path, "module")
        module = Module(None, file.path, scope)
        self.store.set(("module", file.path), module)
        self.store.set((scope, "__name__"), Constant(None, name))
        self.store.set((scope, "__file__"), Constant(None, str(file.path)))
        before, self.frame = self.frame, None
        contexts, self.contexts = self.contexts, ()
        region = self.enter("call")
        try:
            self.close(region, self.run(file.module, scope), Constant(None, None))
        finally:
            if region in self.regions:
                del self.regions[self.regions.index(region) :]
            self.frame, self.contexts = before, contexts
        return module

    def apart(self, evaluate: Callable[[], Value]) -> Value:
        """Evaluates something that is not known to happen: what it makes is kept, what it changes is not."""
        mark = self.store.mark()
        found = evaluate()
        written = self.store.undo(mark)
        self.store.write({key: value for key, value in written.items() if self.store.get(key) is ABSENT})
        return found

    def enter_class(self, owner: Class) -> None:
        """Calls those methods of a class that nobody is known to call, of an object that nobody is known to make."""
        site = Site(owner.scope.path, owner.node)
        own = [self.store.get((owner.scope, binding.name)) for binding in bound_in(owner.node)]
        methods = [one for one in own if isinstance(one, Function) and one.node not in self.called]
        if not methods:
            return
        made = Object(site, owner)
        for method in sorted(methods, key=lambda one: one.name != "__init__"):
            if method.node not in self.called:
                self.apart(partial(self.enter_function, method, made))

    def enter_function(self, function: Function, owner: Object | None = None) -> Value:
        """Calls a function that nobody is known to call, with parameters that are not known."""
        site = Site(function.scope.path, function.node, Frame(function.name))
        params = function.node.params
        names = [one.name.value for one in (*params.posonly_params, *params.params) if one.default is None]
        given = [self.operation(site, "parameter", function, Constant(site, name)) for name in names]
        keywords = [one.name.value for one in params.kwonly_params if one.default is None]
        named = {name: self.operation(site, "parameter", function, Constant(site, name)) for name in keywords}
        if owner is None:
            return self.call(function, Arguments(tuple(given), named), site)
        return self.call(Method(site, owner, function.name, function), Arguments(tuple(given[1:]), named), site)


@dataclass(frozen=True)
class Left:
    """Where an evaluator was when it left the program to call a function apart, under the same conditions."""

    effects: list[Effect]
    conditions: list[Condition]
    regions: list[Region]
    calls: list[tuple[Function, Value | None]]
    scopes: list[Scope]
    contexts: tuple[Value, ...]
    frame: Frame | None
    repeated: int

    @staticmethod
    def of(evaluator: Evaluator) -> Left:
        """Leaves the program."""
        left = Left(
            evaluator.effects,
            evaluator.conditions,
            evaluator.regions,
            evaluator.calls,
            evaluator.scopes,
            evaluator.contexts,
            evaluator.frame,
            evaluator.repeated,
        )
        evaluator.effects, evaluator.conditions = [], list(left.conditions)
        evaluator.regions, evaluator.calls, evaluator.scopes = [], [], []
        evaluator.contexts, evaluator.frame, evaluator.repeated = (), None, 0
        return left

    def restore(self, evaluator: Evaluator) -> None:
        """Goes back to the program."""
        evaluator.effects, evaluator.conditions = self.effects, self.conditions
        evaluator.regions, evaluator.calls, evaluator.scopes = self.regions, self.calls, self.scopes
        evaluator.contexts, evaluator.frame, evaluator.repeated = self.contexts, self.frame, self.repeated


def started(evaluator: Evaluator, main: File) -> None:
    """Evaluates a file as the script that is run, and then every function of it that nothing has called.

    Those that other functions mention come last: they may be called by then. What takes too many steps is left out.
    """
    executed(evaluator, main)
    if not evaluator.complete:
        return
    try:
        module = evaluator.load(main)
        functions = _functions(evaluator, module, main.module)
        mentioned = {name for one in functions for name in names_read(one.node) if name != one.name}
        for function in sorted(functions, key=lambda one: one.name in mentioned):
            if function.node not in evaluator.called:
                evaluator.apart(partial(evaluator.enter_function, function))
        for owner in _classes(evaluator, module, main.module):
            evaluator.enter_class(owner)
    except (TooMuch, RecursionError):
        evaluator.complete = False
        evaluator.regions.clear()
        evaluator.conditions.clear()


def executed(evaluator: Evaluator, main: File, escaped: list[tuple[Value, bool]] | None = None) -> None:
    """Evaluates a file as the script that is run, and nothing that it does not call.

    `escaped` is what libraries are given, which may grow meanwhile, each with whether a condition decides it: its
    functions are called, and the methods of objects of their classes.
    """
    try:
        evaluator.load(main)
        seen: set[object] = set()
        for value, conditional in escaped or ():
            with evaluator.under(Unknown(value.site, "a library is given it"), True) if conditional else nullcontext():
                _entered(evaluator, value, seen)
    except (TooMuch, RecursionError):
        evaluator.complete = False
        evaluator.regions.clear()
        evaluator.conditions.clear()


def _entered(evaluator: Evaluator, value: Value, seen: set[object]) -> None:
    """Calls the functions of a value that nothing has called; what was `seen` once is left alone, classes as well."""
    own = value.of if isinstance(value, Object) and isinstance(value.of, Class) else value
    if own in seen:
        return
    seen.add(own)
    content, entries = evaluator.content_of(value), evaluator.entries_of(value)
    if content is not None:
        for one in content.items:
            _entered(evaluator, one, seen)
    elif entries is not None:
        for _, one in entries.items.values():
            _entered(evaluator, one, seen)
    elif isinstance(value, Either):
        _entered(evaluator, value.then, seen)
        _entered(evaluator, value.otherwise, seen)
    elif isinstance(value, Partial):
        _entered(evaluator, value.function, seen)
    elif isinstance(value, Method) and value.function is not None and isinstance(value.owner, Object):
        if value.function.node not in evaluator.called:
            evaluator.apart(partial(evaluator.enter_function, value.function, value.owner))
    elif isinstance(value, Function):
        if value.node not in evaluator.called:
            evaluator.apart(partial(evaluator.enter_function, value))
    elif isinstance(value, Object) and isinstance(value.of, Class):
        family = lineage(value.of)
        if any(isinstance(base, Symbol) and base.name != "object" for one in family for base in one.bases):
            for one in family:
                evaluator.enter_class(one)


def _functions(evaluator: Evaluator, module: Module, node: cst.Module) -> list[Function]:
    """The functions of a module, in their order."""
    found: list[Function] = []
    for binding in bound_in(node):
        value = evaluator.store.get((module.scope, binding.name))
        if isinstance(value, Function) and value.scope is module.scope and value not in found:
            found.append(value)
    return found


def _classes(evaluator: Evaluator, module: Module, node: cst.Module) -> list[Class]:
    """The classes of a module, in their order."""
    found = [evaluator.store.get((module.scope, binding.name)) for binding in bound_in(node)]
    return [one for one in dict.fromkeys(found) if isinstance(one, Class) and one.scope.outer is module.scope]


__all__ = ["Evaluator", "Left", "executed", "started"]
