"""What statements do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from migrator.ir.builtin import lineage
from migrator.ir.expressions import assign, augmented, defaults_of, delete, give
from migrator.ir.machine import Arguments, File, Machine, identity, may_be_absent, present
from migrator.ir.store import ABSENT, Elements, Entries, Key
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Function,
    Module,
    Object,
    Operation,
    Scope,
    Site,
    Symbol,
    Unknown,
    Value,
)
from migrator.names.bindings import bound_by, bound_in, dotted
from migrator.names.spelling import canonical
from migrator.names.symbols import TEXTS

_LONGEST = 128  # turns of a loop that are followed one by one
# And after so many places where a loop may have ended, as one that stops early has in each turn, the rest of it is any
# number of turns: what each of them leaves would be told apart by all the conditions before it.
_MAY_END = 12
_OF_STATEMENTS = frozenset((cst.Module, cst.IndentedBlock, cst.SimpleStatementLine, cst.SimpleStatementSuite))
_ENDS = ("sys.exit", "exit", "quit", "os._exit", "os.abort")


def execute(machine: Machine, node: cst.CSTNode, scope: Scope) -> bool:
    """Executes a statement or a block; whether the code goes on after it."""
    if type(node) in _OF_STATEMENTS:
        return all(machine.run(one, scope) for one in node.body)  # type: ignore[attr-defined]
    handler = _HANDLERS.get(type(node))
    if handler is None:
        return True
    machine.step()
    return handler(machine, node, scope)


# -- simple statements -------------------------------------------------------------------------------------------------


def _expression(machine: Machine, node: cst.Expr, scope: Scope) -> bool:
    value = machine.value(node.value, scope)
    return not (isinstance(value, Operation) and value.symbol in _ENDS)


def _assignment(machine: Machine, node: cst.Assign, scope: Scope) -> bool:
    value = machine.value(node.value, scope)
    machine.noted.setdefault(node.value, []).append(value)
    for target in node.targets:
        assign(machine, target.target, value, scope)
    return True


def _annotated(machine: Machine, node: cst.AnnAssign, scope: Scope) -> bool:
    if node.value is not None:
        assign(machine, node.target, machine.value(node.value, scope), scope)
    return True


def _augmented(machine: Machine, node: cst.AugAssign, scope: Scope) -> bool:
    augmented(machine, node, scope)
    return True


def _return(machine: Machine, node: cst.Return, scope: Scope) -> bool:
    site = machine.site(node, scope)
    value = machine.value(node.value, scope) if node.value is not None else Constant(site, None)
    return machine.leave(("call",), value)


def _break(machine: Machine, node: cst.Break, scope: Scope) -> bool:
    return machine.leave(("loop",), Constant(machine.site(node, scope), None))


def _continue(machine: Machine, node: cst.Continue, scope: Scope) -> bool:
    return machine.leave(("turn",), Constant(machine.site(node, scope), None))


def _raise(machine: Machine, node: cst.Raise, scope: Scope) -> bool:
    if node.exc is not None:
        machine.value(node.exc, scope)
    return False


def _delete(machine: Machine, node: cst.Del, scope: Scope) -> bool:
    delete(machine, node.target, scope)
    return True


def _assert(machine: Machine, node: cst.Assert, scope: Scope) -> bool:
    return machine.decided(machine.value(node.test, scope)) is not False


# -- imports -----------------------------------------------------------------------------------------------------------


def _import(machine: Machine, node: cst.Import, scope: Scope) -> bool:
    for alias in node.names:
        name = dotted(alias.name) or ""
        site = machine.site(alias, scope)
        if scope.kind == "function":
            machine.reads(canonical(name.partition(".")[0]))
            machine.reads(canonical(name))
        if alias.asname is not None:
            assign(machine, alias.asname.name, _module(machine, name, 0, site), scope)
            continue
        head = name.partition(".")[0]
        whole = _module(machine, head, 0, site)
        if isinstance(whole, Symbol) and machine.files.imported(scope.path, name, 0) is not None:
            whole = Module(site, scope.path, Scope(head, frozenset(), None, scope.path, "module"))  # a folder
        parts = name.split(".")
        outer = whole
        for count in range(2, len(parts) + 1):
            inner = _module(machine, ".".join(parts[:count]), 0, site)
            if isinstance(outer, Module):
                machine.store.set((outer.scope, parts[count - 1]), inner)
            outer = inner
        give(machine, head, whole, scope)
    return True


def _module(machine: Machine, name: str, level: int, site: Site) -> Value:
    """A module of the project, or of a library."""
    file = machine.files.imported(site.path, name, level)
    return machine.load(file) if file is not None else Symbol(site, canonical(name))


def _import_from(machine: Machine, node: cst.ImportFrom, scope: Scope) -> bool:
    name, level, site = dotted(node.module) or "", len(node.relative), machine.site(node, scope)
    file = machine.files.imported(scope.path, name, level)
    if scope.kind == "function" and file is None and not level:
        machine.reads(canonical(name.partition(".")[0]))
    if isinstance(node.names, cst.ImportStar):
        if file is not None:
            _import_all(machine, machine.load(file), file, scope)
        else:
            machine.store.set((scope, "*"), Symbol(site, canonical(name)))
        return True
    for alias in node.names:
        if not isinstance(alias.name, cst.Name):
            continue
        local = alias.asname.name if alias.asname is not None else alias.name
        found = _member(machine, file, name, alias.name.value, level, site)
        if scope.kind == "function" and isinstance(found, Symbol):
            machine.reads(found.name)
        assign(machine, local, found, scope)
    return True


def _member(machine: Machine, file: File | None, module: str, name: str, level: int, site: Site) -> Value:
    if file is not None:
        loaded = machine.load(file)
        found = machine.store.get((loaded.scope, name))
        if isinstance(found, Value):
            return found
    inner = machine.files.imported(site.path, f"{module}.{name}" if module else name, level)
    if inner is not None:
        return machine.load(inner)
    if file is not None:
        return Unknown(site, f"`{module}` has no `{name}`")
    if level:
        return Unknown(site, f"`{name}` is of a file that was not given")
    whole = canonical(f"{module}.{name}")
    return Constant(site, TEXTS[whole]) if whole in TEXTS else Symbol(site, whole)


def _import_all(machine: Machine, module: Module, file: File, scope: Scope) -> None:
    star = machine.store.get((module.scope, "*"))
    if isinstance(star, Value):
        machine.store.set((scope, "*"), star)
    names = {binding.name for binding in bound_in(file.module)}
    names |= {str(key) for key in machine.starred.get(module.scope, ())}
    for name in sorted(names):
        found = machine.store.get((module.scope, name))
        if isinstance(found, Value) and not name.startswith("_"):
            machine.store.set((scope, name), found)
            machine.starred.setdefault(scope, set()).add(name)


# -- definitions -------------------------------------------------------------------------------------------------------


def _function(machine: Machine, node: cst.FunctionDef, scope: Scope) -> bool:
    site = machine.site(node, scope)
    owner = machine.classes[-1] if scope.kind == "class" and machine.classes else None
    around = scope
    made: Value = Function(site, node.name.value, node, around, defaults_of(machine, node.params, scope), owner)
    for decorator in reversed(node.decorators):
        made = _decorated(machine, machine.value(decorator.decorator, scope), made, machine.site(decorator, scope))
    give(machine, node.name.value, made, scope)
    return True


def _decorated(machine: Machine, decorator: Value, value: Value, site: Site) -> Value:
    if isinstance(decorator, Operation) and decorator.symbol == "functools.wraps":
        return value
    if isinstance(decorator, Operation) and decorator.symbol == "getattr":
        return value  # `@name.setter` of a property
    return machine.call(decorator, Arguments((value,)), site)


def _called(value: Value) -> str:
    return value.name if isinstance(value, Symbol) else value.symbol if isinstance(value, Operation) else ""


def _class(machine: Machine, node: cst.ClassDef, scope: Scope) -> bool:
    site = machine.site(node, scope)
    bases = tuple(machine.value(base.value, scope) for base in node.bases)
    own = frozenset(binding.name for binding in bound_in(node))
    inner = Scope(node.name.value, own, scope, scope.path, "class")
    decorators = [machine.value(one.decorator, scope) for one in node.decorators]
    names = [
        one.name if isinstance(one, Symbol) else one.symbol if isinstance(one, Operation) else "" for one in decorators
    ]
    is_data = "dataclasses.dataclass" in names
    is_data = is_data or any(isinstance(base, Symbol) and base.name == "typing.NamedTuple" for base in bases)
    made: Value = Class(site, node.name.value, node, bases, inner, is_data)
    assert isinstance(made, Class)
    is_data = is_data or any(one.is_data for one in lineage(made))
    others = [base for one in lineage(made) for base in one.bases if not isinstance(base, Class)]
    is_enumeration = bool(others) and all(isinstance(one, Symbol) and one.name == "enum.Enum" for one in others)
    made = Class(site, node.name.value, node, bases, inner, is_data, is_enumeration)
    machine.classes.append(made)
    goes_on = machine.run(node.body, inner)
    machine.classes.pop()
    if is_enumeration:
        _make_members(machine, made)
    for decorator, name in zip(reversed(decorators), reversed(names)):
        if name != "dataclasses.dataclass":
            made = machine.call(decorator, Arguments((made,)), site)
    give(machine, node.name.value, made, scope)
    return goes_on


def _make_members(machine: Machine, owner: Class) -> None:
    """The members of an enumeration, by the values that its body gives names; two names of one value are one member."""
    members: dict[object, Object] = {}
    for name, value in machine.store.held(owner.scope).items():
        if (
            name.startswith("_")
            or isinstance(value, (Function, Class))
            or (isinstance(value, Operation) and value.args)
        ):
            continue
        member = members.get(identity(value))
        if member is None:
            member = members[identity(value)] = Object(owner.site, owner)
            machine.store.set((member, "value"), value)
            machine.store.set((member, "name"), Constant(owner.site, name))
        machine.store.set((owner.scope, name), member)


# -- branches ----------------------------------------------------------------------------------------------------------


def _if(machine: Machine, node: cst.If, scope: Scope) -> bool:
    condition = machine.value(node.test, scope)

    def otherwise() -> bool:
        return True if node.orelse is None else machine.run(node.orelse, scope)

    return machine.branch(condition, lambda: machine.run(node.body, scope), otherwise)


def _else(machine: Machine, node: cst.Else | cst.Finally, scope: Scope) -> bool:
    return machine.run(node.body, scope)


def _try(machine: Machine, node: cst.Try | cst.TryStar, scope: Scope) -> bool:
    def body() -> bool:
        return machine.run(node.body, scope) and (node.orelse is None or machine.run(node.orelse, scope))

    def handle(index: int) -> bool:
        if index == len(node.handlers):
            return body()
        handler = node.handlers[index]
        site = machine.site(handler, scope)

        def caught() -> bool:
            if handler.name is not None:
                assign(machine, handler.name.name, Unknown(site, "an exception"), scope)
            return machine.run(handler.body, scope)

        return machine.branch(Unknown(site, "an exception is raised"), caught, lambda: handle(index + 1))

    before = [len(region.exits) for region in machine.regions]
    goes_on = handle(0)
    if node.finalbody is not None:
        mark = machine.store.mark()
        goes_on = machine.run(node.finalbody, scope) and goes_on
        _run_on_the_way_out(machine, before, mark)
    return goes_on


def _run_on_the_way_out(machine: Machine, before: list[int], mark: int) -> None:
    """A `finally` clause runs for every way out of its `try`, too: what it changes is not known there."""
    lost: dict[Key, object] = {}
    for key, value in machine.store.since(mark).items():
        if isinstance(value, Elements):
            lost[key] = Elements(value.items, True)
        elif isinstance(value, Entries):
            lost[key] = Entries(value.items, True)
        else:
            lost[key] = Unknown(None, "a `finally` clause changes it")
    for region, count in zip(machine.regions, before):
        for one in region.exits[count:]:
            if one.writes is not None:
                one.writes.update(lost)


def _with(machine: Machine, node: cst.With, scope: Scope) -> bool:
    before = machine.contexts
    objects: list[tuple[Object, Site]] = []
    for item in node.items:
        value = machine.value(item.item, scope)
        site = machine.site(item, scope)
        entered = value
        if isinstance(value, Object):
            entered = machine.call(machine.attribute(value, "__enter__", site), Arguments(), site)
            objects.append((value, site))
        elif isinstance(value, (Operation, Either)):
            machine.contexts = (*machine.contexts, value)
        if item.asname is not None:
            assign(machine, item.asname.name, entered, scope)
    goes_on = machine.run(node.body, scope)
    machine.contexts = before
    for value, site in reversed(objects) if goes_on else ():
        none = Constant(site, None)
        machine.call(machine.attribute(value, "__exit__", site), Arguments((none, none, none)), site)
    return goes_on


def _match(machine: Machine, node: cst.Match, scope: Scope) -> bool:
    subject = machine.value(node.subject, scope)

    def case(index: int) -> bool:
        if index == len(node.cases):
            return True
        one = node.cases[index]
        site = machine.site(one, scope)
        matches = _matches(machine, one.pattern, subject, scope, site)
        if one.guard is not None and matches is not False:
            guard = machine.decided(machine.value(one.guard, scope))
            matches = guard if matches or guard is False else None
        condition = Constant(site, matches) if matches is not None else Unknown(site, "a case of a match statement")
        return machine.branch(condition, lambda: machine.run(one.body, scope), lambda: case(index + 1))

    return case(0)


def _matches(machine: Machine, pattern: cst.MatchPattern, subject: Value, scope: Scope, site: Site) -> bool | None:
    """Whether a pattern matches; it gives its names values."""
    if isinstance(pattern, cst.MatchAs):
        inner = True if pattern.pattern is None else _matches(machine, pattern.pattern, subject, scope, site)
        if pattern.name is not None:
            give(machine, pattern.name.value, subject, scope)
        return inner
    if isinstance(pattern, (cst.MatchValue, cst.MatchSingleton)):
        value = machine.value(pattern.value, scope)
        if isinstance(value, Constant) and isinstance(subject, Constant):
            return bool(value.value == subject.value)
        return None
    if isinstance(pattern, cst.MatchOr):
        found = [_matches(machine, one.pattern, subject, scope, site) for one in pattern.patterns]
        return True if True in found else None if None in found else False
    for binding in bound_by(pattern):
        give(machine, binding.name, Unknown(site, "a part of what is matched"), scope)
    return None


# -- loops -------------------------------------------------------------------------------------------------------------


def _for(machine: Machine, node: cst.For, scope: Scope) -> bool:
    over = machine.value(node.iter, scope)
    items = machine.elements(over)
    site = machine.site(node, scope)

    def turn(one: Value) -> bool:
        assign(machine, node.target, present(one), scope)
        return machine.run(node.body, scope)

    if items is None or len(items) > _LONGEST:
        goes_on = _any_number(machine, site, lambda: turn(machine.operation(site, "element", over)))
    else:
        loop = machine.enter("loop")
        goes_on = True
        for one in items:
            if goes_on and len(loop.exits) > _MAY_END:
                goes_on = _any_number(machine, site, lambda: turn(machine.operation(site, "element", over)))
                break
            goes_on = goes_on and _turn(machine, site, one, turn)
        if goes_on and node.orelse is not None:
            goes_on = machine.run(node.orelse, scope)
        return machine.close(loop, goes_on, Constant(site, None)) is not None
    return goes_on and (node.orelse is None or machine.run(node.orelse, scope))


def _turn(machine: Machine, site: Site, one: Value, body: Callable[[Value], bool]) -> bool:
    if may_be_absent(one) and isinstance(one, Either):
        absent_then = may_be_absent(one.then)
        return machine.branch(
            one.condition,
            lambda: _turn(machine, site, one.then, body) if not absent_then or isinstance(one.then, Either) else True,
            lambda: True if may_be_absent(one.otherwise) else _turn(machine, site, one.otherwise, body),
        )
    region = machine.enter("turn")
    goes_on = body(one)
    return machine.close(region, goes_on, Constant(site, None)) is not None


def _while(machine: Machine, node: cst.While, scope: Scope) -> bool:
    site = machine.site(node, scope)
    loop = machine.enter("loop")
    goes_on = True
    for _ in range(_LONGEST):
        test = machine.decided(machine.value(node.test, scope)) if goes_on else False
        if test is False:
            break
        always = isinstance(node.test, cst.Name) and node.test.value == "True"
        if test is None or always or len(loop.exits) > _MAY_END:
            goes_on = _any_number(machine, site, lambda: machine.run(node.body, scope))
            break
        goes_on = _turn(machine, site, Constant(site, None), lambda one: machine.run(node.body, scope))
    else:
        goes_on = _any_number(machine, site, lambda: machine.run(node.body, scope))
    if goes_on and node.orelse is not None:
        goes_on = machine.run(node.orelse, scope)
    return machine.close(loop, goes_on, Constant(site, None)) is not None


def _any_number(machine: Machine, site: Site, body: Callable[[], bool]) -> bool:
    """A loop of any number of turns: what it changes is what any turn may have made of it."""
    mark, effects = machine.store.mark(), len(machine.effects)
    exits = [len(region.exits) for region in machine.regions]
    again = Unknown(site, "a loop goes on")
    machine.repeated += 1
    with machine.under(again, True):
        _loop_once(machine, site, body)
    written = machine.store.undo(mark)
    del machine.effects[effects:]
    for region, count in zip(machine.regions, exits):
        del region.exits[count:]
    before = {key: machine.store.get(key) for key in written}
    # What a turn leaves as it found it, a list that is filled and emptied again, stays known if every turn does so.
    kept = {key for key, new in written.items() if isinstance(new, Elements) and new == before[key]}
    for key, new in written.items():
        old = before[key]
        if key in kept:
            continue
        if isinstance(old, Elements) and isinstance(new, Elements):
            machine.store.set(key, Elements(old.items, True))
        elif isinstance(old, Entries):
            machine.store.set(key, Entries(old.items, True))
        elif isinstance(old, Value) and old is not new:
            machine.store.set(key, Operation(site, "carried", (old,)))
    mark, effects = machine.store.mark(), len(machine.effects)
    with machine.under(again, True):
        goes_on = _loop_once(machine, site, body)
    changed = {key for key in kept if machine.store.get(key) != before[key]}
    if changed:
        machine.store.undo(mark)
        del machine.effects[effects:]
        for region, count in zip(machine.regions, exits):
            del region.exits[count:]
        for key in changed:
            old = before[key]
            machine.store.set(key, Elements(old.items if isinstance(old, Elements) else (), True))
        mark = machine.store.mark()
        with machine.under(again, True):
            goes_on = _loop_once(machine, site, body)
    machine.repeated -= 1
    if not goes_on:
        machine.store.undo(mark)
        return True
    for key, new in machine.store.since(mark).items():
        old = before.get(key, ABSENT)
        if old is ABSENT and isinstance(new, (Elements, Entries)):
            continue  # a container of its own for every turn
        if key in kept and new == old:
            continue
        if isinstance(new, Elements):
            machine.store.set(key, Elements(new.items, True))
        elif isinstance(new, Entries):
            machine.store.set(key, Entries(new.items, True))
        elif isinstance(new, Value) and old is not new:
            args = (new,) if not isinstance(old, Value) else (old, new)
            machine.store.set(key, Operation(site, "loop", args))
    return True


def _loop_once(machine: Machine, site: Site, body: Callable[[], bool]) -> bool:
    loop, turn = machine.enter("loop"), machine.enter("turn")
    none = Constant(site, None)
    goes_on = machine.close(turn, body(), none) is not None
    return machine.close(loop, goes_on, none) is not None


_HANDLERS: dict[type[cst.CSTNode], Callable[[Machine, Any, Scope], bool]] = {
    cst.Expr: _expression,
    cst.Assign: _assignment,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augmented,
    cst.Return: _return,
    cst.Break: _break,
    cst.Continue: _continue,
    cst.Raise: _raise,
    cst.Del: _delete,
    cst.Assert: _assert,
    cst.Import: _import,
    cst.ImportFrom: _import_from,
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
    cst.If: _if,
    cst.Else: _else,
    cst.Finally: _else,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.With: _with,
    cst.Match: _match,
    cst.For: _for,
    cst.While: _while,
}

__all__ = ["execute"]
