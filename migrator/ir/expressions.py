"""What expressions stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import libcst as cst

from migrator.ir.machine import NOTHING, Arguments, Machine, cell, identity, inside, may_be_absent, present
from migrator.ir.operators import BINARY, BUILTINS, COMPARISONS, folded
from migrator.ir.store import ABSENT, Elements, Entries
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Function,
    Method,
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
from migrator.names.bindings import bound_in
from migrator.names.literals import literal_value
from migrator.pairing import equal_zip

_SINGLETONS: dict[str, object] = {"None": None, "True": True, "False": False}
_Comprehension = Union[cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp]
#: What is surely no None, and no other object than itself.
_OBJECTS = (Function, Class, Module, Partial, Record, Object, Items, Table, Method)


def evaluate(machine: Machine, node: cst.BaseExpression, scope: Scope) -> Value:
    """What an expression stands for."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        return Unknown(machine.site(node, scope), f"a {type(node).__name__} is not evaluated")
    found: Value = handler(machine, node, scope)
    return machine.settled(found) if type(found) is Either else found


# -- names -------------------------------------------------------------------------------------------------------------


def look_up(machine: Machine, name: str, scope: Scope) -> Value | None:
    """What a name stands for; None where nothing is known of it."""
    around: Scope | None = scope
    declared = scope.declared.get(name)
    if declared is not None:
        around = _outer(scope, declared)
    while around is not None:
        if around is scope or around.kind != "class":
            found = machine.store.get((around, name))
            if isinstance(found, Value):
                return found
            if name in around.own and around.kind in ("function", "comprehension"):
                return None
        around = around.outer
    if name in _SINGLETONS:
        return Constant(None, _SINGLETONS[name])
    module = _outer(scope, "global")
    star = machine.store.get((module, "*"))
    if isinstance(star, Symbol) and name not in BUILTINS:
        return machine.attribute(star, name, machine.site(cst.Name(name), scope))
    return Symbol(None, name) if name in BUILTINS else None


def _outer(scope: Scope, declared: str) -> Scope:
    around = scope.outer or scope
    while around.outer is not None and (declared == "global" or around.kind == "class"):
        around = around.outer
    return around


def give(machine: Machine, name: str, value: Value, scope: Scope) -> None:
    """Gives a name a value, in the scope that it belongs to."""
    home = scope
    while home.kind == "comprehension" and name not in home.own and home.outer is not None:
        home = home.outer
    declared = home.declared.get(name)
    if declared is not None:
        home = _outer(home, declared)
        while declared == "nonlocal" and name not in home.own and home.outer is not None:
            home = home.outer
    machine.store.set((home, name), value)


def _name(machine: Machine, node: cst.Name, scope: Scope) -> Value:
    if node.value in _SINGLETONS:
        return Constant(machine.site(node, scope), _SINGLETONS[node.value])
    found = look_up(machine, node.value, scope)
    if isinstance(found, Symbol):
        machine.reads(found.name)
        machine.store.get(inside(found.name))
    return found if found is not None else Unknown(machine.site(node, scope), f"`{node.value}` has no known value here")


# -- constants ---------------------------------------------------------------------------------------------------------


def _literal(machine: Machine, node: Any, scope: Scope) -> Value:
    return Constant(machine.site(node, scope), literal_value(node))


def _imaginary(machine: Machine, node: cst.Imaginary, scope: Scope) -> Value:
    return Constant(machine.site(node, scope), complex(node.value))


def _ellipsis(machine: Machine, node: cst.Ellipsis, scope: Scope) -> Value:
    return Constant(machine.site(node, scope), ...)


def _concatenated(machine: Machine, node: cst.ConcatenatedString, scope: Scope) -> Value:
    site = machine.site(node, scope)
    parts = [machine.value(one, scope) for one in (node.left, node.right)]
    return _binary(machine, site, cst.Add, parts[0], parts[1])


def _formatted(machine: Machine, node: cst.FormattedString, scope: Scope) -> Value:
    site = machine.site(node, scope)
    parts: list[Value] = []
    plain = True
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            parts.append(machine.value(part.expression, scope))
            plain = plain and part.format_spec is None and part.conversion is None and part.equal is None
        else:
            parts.append(Constant(site, str(getattr(part, "value", "")).replace("{{", "{").replace("}}", "}")))
    known = [one.value for one in parts if isinstance(one, Constant)]
    if plain and len(known) == len(parts) and "\\" not in "".join(str(one) for one in known):
        return Constant(site, "".join(str(one) for one in known))
    return machine.operation(site, "format", *parts)


# -- containers --------------------------------------------------------------------------------------------------------


def elements_of(machine: Machine, nodes: Sequence[cst.BaseElement], scope: Scope) -> tuple[list[Value], bool]:
    """The values of a display, and whether there may be others."""
    found: list[Value] = []
    more = False
    for one in nodes:
        value = machine.value(one.value, scope)
        if type(one) is cst.StarredElement:
            inner = machine.elements(value)
            if inner is None:
                more = True
                found.append(machine.operation(machine.site(one, scope), "element", value))
            else:
                found += inner
        else:
            found.append(value)
    return found, more


def _display(kind: str) -> Callable[[Machine, Any, Scope], Value]:
    def make(machine: Machine, node: Any, scope: Scope) -> Value:
        items, more = elements_of(machine, node.elements, scope)
        return machine.sequence(machine.site(node, scope), kind, items, more)

    return make


def _dict(machine: Machine, node: cst.Dict, scope: Scope) -> Value:
    items: list[tuple[Value, Value]] = []
    more = False
    for one in node.elements:
        if isinstance(one, cst.DictElement):
            items.append((machine.value(one.key, scope), machine.value(one.value, scope)))
            continue
        entries = machine.entries_of(machine.value(one.value, scope))
        items += [] if entries is None else list(entries.items.values())
        more = more or entries is None or entries.more
    return machine.table(machine.site(node, scope), items, more)


def _comprehension(machine: Machine, node: _Comprehension, scope: Scope) -> Value:
    site = machine.site(node, scope)
    own = frozenset(binding.name for binding in bound_in(node))
    inner = Scope("comprehension", own, scope, scope.path, "comprehension")
    is_dict = isinstance(node, cst.DictComp)
    kind = "set" if isinstance(node, cst.SetComp) else "list"
    result = machine.table(site, []) if is_dict else machine.sequence(site, kind, [])

    def add() -> bool:
        if isinstance(node, cst.DictComp):
            set_item(machine, result, machine.value(node.key, inner), machine.value(node.value, inner))
        else:
            value, content = machine.value(node.elt, inner), machine.content_of(result) or Elements()
            machine.store.set((result,), Elements((*content.items, value), content.more))
        return True

    def tested(loop: cst.CompFor, index: int) -> bool:
        if index < len(loop.ifs):
            test = machine.value(loop.ifs[index].test, inner)
            return machine.branch(test, lambda: tested(loop, index + 1), lambda: True)
        return add() if loop.inner_for_in is None else go(loop.inner_for_in, inner)

    def turn(loop: cst.CompFor, one: Value) -> bool:
        if one is NOTHING:
            return True
        if isinstance(one, Either) and may_be_absent(one):
            return machine.branch(one.condition, lambda: turn(loop, one.then), lambda: turn(loop, one.otherwise))
        assign(machine, loop.target, one, inner)
        return tested(loop, 0)

    def go(loop: cst.CompFor, around: Scope) -> bool:
        over = machine.value(loop.iter, around)
        known = machine.elements(over)
        if known is not None:
            return all(turn(loop, one) for one in known)
        place = machine.site(loop.iter, around)
        machine.repeated += 1
        with machine.under(Unknown(place, "a comprehension goes on"), True):
            turn(loop, machine.operation(place, "element", over))
        machine.repeated -= 1
        content, entries = machine.content_of(result), machine.entries_of(result)
        if content is not None:
            machine.store.set((result,), Elements(content.items, True))
        elif entries is not None:
            machine.store.set((result,), Entries(entries.items, True))
        return True

    go(node.for_in, scope)
    return result


# -- operators ---------------------------------------------------------------------------------------------------------


def _binary_operation(machine: Machine, node: cst.BinaryOperation, scope: Scope) -> Value:
    left, right = machine.value(node.left, scope), machine.value(node.right, scope)
    return _binary(machine, machine.site(node, scope), type(node.operator), left, right)


def _binary(machine: Machine, site: Site, kind: type[cst.BaseBinaryOp | cst.BaseAugOp], a: Value, b: Value) -> Value:
    symbol, function = BINARY[kind]
    if isinstance(a, Constant) and isinstance(b, Constant):
        result = folded(function, (a.value, b.value))
        if result is not None:
            return Constant(site, result[0])
    if isinstance(a, Constant) and isinstance(a.value, str) and symbol == "mod":
        given = machine.content_of(b)
        known = [one.value for one in given.items if isinstance(one, Constant)] if given is not None else []
        if given is not None and not given.more and len(known) == len(given.items):
            result = folded(function, (a.value, tuple(known)))
            if result is not None:
                return Constant(site, result[0])
    first, second = machine.content_of(a), machine.content_of(b)
    if symbol == "add" and first is not None and second is not None and isinstance(a, Items):
        return machine.sequence(site, a.kind, (*first.items, *second.items), first.more or second.more)
    if symbol == "mul" and first is not None and isinstance(a, Items) and isinstance(b, Constant):
        if isinstance(b.value, int) and len(first.items) * b.value < 1000:
            return machine.sequence(site, a.kind, first.items * b.value, first.more)
    for one, other, turned in ((a, b, False), (b, a, True)):
        if isinstance(one, Either) and isinstance(other, Constant):
            parts = [
                _binary(machine, site, kind, *((other, v) if turned else (v, other))) for v in (one.then, one.otherwise)
            ]
            return machine.chosen([(one.condition, True)], *parts)
    return machine.operation(site, symbol, a, b)


def augmented(machine: Machine, node: cst.AugAssign, scope: Scope) -> None:
    """`x += y`: a list is changed, anything else gets a new value."""
    old, given = machine.value(node.target, scope), machine.value(node.value, scope)
    site = machine.site(node, scope)
    content, more = machine.content_of(old), machine.elements(given)
    if (
        content is not None
        and isinstance(old, Items)
        and old.kind == "list"
        and isinstance(node.operator, cst.AddAssign)
    ):
        items = more if more is not None else [machine.operation(site, "element", given)]
        machine.store.set((old,), Elements((*content.items, *items), content.more or more is None))
        return
    assign(machine, node.target, _binary(machine, site, type(node.operator), old, given), scope)


def _unary(machine: Machine, node: cst.UnaryOperation, scope: Scope) -> Value:
    value, site = machine.value(node.expression, scope), machine.site(node, scope)
    if isinstance(node.operator, cst.Not):
        known = machine.decided(value)
        return Constant(site, not known) if known is not None else machine.operation(site, "not", value)
    names: dict[type[cst.BaseUnaryOp], tuple[str, Callable[[Any], Any]]] = {
        cst.Minus: ("neg", lambda v: -v),
        cst.Plus: ("pos", lambda v: +v),
        cst.BitInvert: ("invert", lambda v: ~v),
    }
    symbol, function = names[type(node.operator)]
    result = folded(function, (value.value,)) if isinstance(value, Constant) else None
    return Constant(site, result[0]) if result is not None else machine.operation(site, symbol, value)


def _boolean(machine: Machine, node: cst.BooleanOperation, scope: Scope) -> Value:
    left, site = machine.value(node.left, scope), machine.site(node, scope)
    ends = isinstance(node.operator, cst.Or)
    known = machine.decided(left)
    if known is not None:
        return left if known is ends else machine.value(node.right, scope)
    found: list[Value] = []

    def right() -> bool:
        found.append(machine.value(node.right, scope))
        return True

    machine.branch(left, *((lambda: True, right) if ends else (right, lambda: True)))
    return machine.operation(site, "or" if ends else "and", left, found[0])


def _conditional(machine: Machine, node: cst.IfExp, scope: Scope) -> Value:
    condition = machine.value(node.test, scope)
    while isinstance(condition, Operation) and condition.symbol == "not":
        condition, node = condition.args[0], node.with_changes(body=node.orelse, orelse=node.body)
    found: dict[bool, Value] = {}

    def of(part: cst.BaseExpression, which: bool) -> bool:
        found[which] = machine.value(part, scope)
        return True

    machine.branch(condition, lambda: of(node.body, True), lambda: of(node.orelse, False))
    if len(found) == 1:
        return next(iter(found.values()))
    return machine.chosen([(condition, True)], found[True], found[False])


def _comparison(machine: Machine, node: cst.Comparison, scope: Scope) -> Value:
    left, site = machine.value(node.left, scope), machine.site(node, scope)
    results: list[Value] = []
    for target in node.comparisons:
        right = machine.value(target.comparator, scope)
        results.append(_compared(machine, site, target.operator, left, right))
        left = right
    if len(results) == 1:
        return results[0]
    known = [machine.truth(one) for one in results]
    if False in known:
        return Constant(site, False)
    return Constant(site, True) if None not in known else machine.operation(site, "and", *results)


def _compared(machine: Machine, site: Site, kind: cst.BaseCompOp, a: Value, b: Value) -> Value:
    symbol, function = COMPARISONS[type(kind)]
    if isinstance(a, Constant) and isinstance(b, Constant):
        if symbol in ("is", "is not"):
            alike = a.value is b.value or (a.value == b.value and type(a.value) is type(b.value))
            return Constant(site, alike is (symbol == "is"))
        result = folded(function, (a.value, b.value))
        return Constant(site, bool(result[0])) if result is not None else Unknown(site, "the comparison fails")
    if isinstance(a, Either) and not isinstance(b, Either):
        parts = [_compared(machine, site, kind, one, b) for one in (a.then, a.otherwise)]
        return machine.chosen([(a.condition, True)], *parts)
    if isinstance(b, Either) and not isinstance(a, Either):
        parts = [_compared(machine, site, kind, a, one) for one in (b.then, b.otherwise)]
        return machine.chosen([(b.condition, True)], *parts)
    if symbol in ("in", "not in"):
        found = _contains(machine, b, a)
        if found is not None:
            return Constant(site, found is (symbol == "in"))
        return _negated(machine, site, symbol == "not in", machine.operation(site, "in", a, b))
    if symbol in ("is", "is not", "==", "!="):
        alike_or_unknown = _alike(machine, a, b, identity_only=symbol.startswith("is"))
        if alike_or_unknown is not None:
            return Constant(site, alike_or_unknown is (symbol in ("is", "==")))
        negative = symbol in ("is not", "!=")
        return _negated(machine, site, negative, machine.operation(site, "is" if "is" in symbol else "==", a, b))
    return machine.operation(site, symbol, a, b)


def _negated(machine: Machine, site: Site, negative: bool, value: Value) -> Value:
    return machine.operation(site, "not", value) if negative else value


def _alike(machine: Machine, a: Value, b: Value, identity_only: bool) -> bool | None:
    """Whether two values are the same, or equal; None where that is not known."""
    if a is b and not isinstance(a, Unknown):
        return True
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Constant):
            if isinstance(other, _OBJECTS):
                return False
            if one.value is None and isinstance(other, Operation) and _is_made(other):
                return False
            if one.value is None and isinstance(other, Symbol) and machine.truth(other):
                return False
            return None
    if isinstance(a, Symbol) and isinstance(b, Symbol):
        return a.name == b.name or None
    if (identity_only or _are_members(a, b)) and isinstance(a, _OBJECTS) and isinstance(b, _OBJECTS):
        return False
    first, second = machine.content_of(a), machine.content_of(b)
    if first is not None and second is not None and not first.more and not second.more:
        parts = [
            _compared(machine, a.site or b.site, cst.Equal(), x, y)  # type: ignore[arg-type]
            for x, y in zip(first.items, second.items)
        ]
        known = [one.value for one in parts if isinstance(one, Constant)]
        if False in known or len(first.items) != len(second.items):
            return False
        return True if len(known) == len(parts) else None
    return None


def _are_members(a: Value, b: Value) -> bool:
    """Whether both are members of enumerations, which are equal to themselves only."""
    return all(isinstance(one, Object) and isinstance(one.of, Class) and one.of.is_enumeration for one in (a, b))


def _is_made(operation: Operation) -> bool:
    """Whether an operation is a call of TensorFlow that gives an object or a tensor, never None."""
    last = operation.symbol.rpartition(".")[2]
    return operation.symbol.startswith("tf.") and (
        last[:1].isupper() or last not in ("get_collection_ref", "get_default_session")
    )


def _contains(machine: Machine, container: Value, item: Value) -> bool | None:
    entries, content = machine.entries_of(container), machine.content_of(container)
    if isinstance(container, Constant) and isinstance(item, Constant):
        result = folded(lambda a, b: a in b, (item.value, container.value))
        return None if result is None else bool(result[0])
    if entries is not None:
        known = entries.items.get(identity(item))
        if known is not None:
            return None if may_be_absent(known[1]) or entries.more else True
        constant = isinstance(item, Constant) and all(isinstance(key, Constant) for key, _ in entries.items.values())
        return False if constant and not entries.more else None
    if content is not None and isinstance(item, Constant) and all(isinstance(one, Constant) for one in content.items):
        found = any(isinstance(one, Constant) and one.value == item.value for one in content.items)
        return True if found else None if content.more else False
    if content is not None and not any(may_be_absent(one) for one in content.items):
        answers = [_alike(machine, one, item, identity_only=False) for one in content.items]
        if True in answers:
            return True
        return None if content.more or None in answers else False
    return None


# -- parts -------------------------------------------------------------------------------------------------------------


def _attribute(machine: Machine, node: cst.Attribute, scope: Scope) -> Value:
    return machine.attribute(machine.value(node.value, scope), node.attr.value, machine.site(node, scope))


def _subscript(machine: Machine, node: cst.Subscript, scope: Scope) -> Value:
    owner, site = machine.value(node.value, scope), machine.site(node, scope)
    if len(node.slice) == 1:
        index = node.slice[0].slice
        if isinstance(index, cst.Index):
            return item(machine, owner, machine.value(index.value, scope), site)
        return _slice(machine, owner, index, site, scope)
    keys = [
        machine.value(one.slice.value, scope)
        if isinstance(one.slice, cst.Index)
        else machine.operation(site, "slice", *_bounds(machine, one.slice, scope))
        for one in node.slice
        if isinstance(one.slice, (cst.Index, cst.Slice))
    ]
    return machine.operation(site, "getitem", owner, *keys)


def _bounds(machine: Machine, node: cst.Slice, scope: Scope) -> list[Value]:
    site = machine.site(node, scope)
    parts = (node.lower, node.upper, node.step)
    return [Constant(site, None) if one is None else machine.value(one, scope) for one in parts]


def _slice(machine: Machine, owner: Value, node: cst.BaseSlice, site: Site, scope: Scope) -> Value:
    assert isinstance(node, cst.Slice)
    bounds = _bounds(machine, node, scope)
    known = [one.value for one in bounds if isinstance(one, Constant)]
    content = machine.content_of(owner)
    if len(known) == 3:
        if isinstance(owner, Constant):
            result = folded(lambda value: value[slice(*known)], (owner.value,))
            if result is not None:
                return Constant(site, result[0])
        if content is not None and isinstance(owner, Items) and not content.more:
            if not any(may_be_absent(one) for one in content.items):
                picked = folded(lambda value: value[slice(*known)], (content.items,))
                if picked is not None:
                    return machine.sequence(site, owner.kind, picked[0])
    return machine.operation(site, "getitem", owner, machine.operation(site, "slice", *bounds))


def item(machine: Machine, owner: Value, key: Value, site: Site) -> Value:
    """`owner[key]`."""
    if isinstance(owner, Either):
        parts = [item(machine, one, key, site) for one in (owner.then, owner.otherwise)]
        return machine.chosen([(owner.condition, True)], *parts)
    if isinstance(key, Either):
        parts = [item(machine, owner, one, site) for one in (key.then, key.otherwise)]
        return machine.chosen([(key.condition, True)], *parts)
    content, entries = machine.content_of(owner), machine.entries_of(owner)
    if content is not None and isinstance(key, Constant) and isinstance(key.value, int) and not content.more:
        if not any(may_be_absent(one) for one in content.items):
            try:
                return content.items[key.value]
            except IndexError:
                return Unknown(site, "there is no such element")
    if entries is not None:
        known = entries.items.get(identity(key))
        if known is not None and not entries.more:
            return present(known[1])
        if known is None and not entries.more and isinstance(key, Constant):
            if all(isinstance(name, Constant) for name, _ in entries.items.values()):
                return Unknown(site, f"there is no entry {key.value!r}")
    if isinstance(owner, Constant) and isinstance(key, Constant):
        result = folded(lambda value, index: value[index], (owner.value, key.value))
        if result is not None:
            return Constant(site, result[0])
    if isinstance(owner, Object):
        method = machine.attribute(owner, "__getitem__", site)
        if isinstance(method, Method) and method.function is not None:
            return machine.call(method, Arguments((key,)), site)
        fields = owner.of.fields if isinstance(owner.of, Record) else ()
        if isinstance(key, Constant) and isinstance(key.value, int) and -len(fields) <= key.value < len(fields):
            return machine.attribute(owner, fields[key.value], site)
    held = machine.store.get((identity(owner), "item", identity(key)))
    if isinstance(held, Value):
        return held
    return machine.operation(site, "getitem", owner, key)


# -- targets -----------------------------------------------------------------------------------------------------------


def assign(machine: Machine, target: cst.BaseExpression, value: Value, scope: Scope) -> None:
    """Gives a target a value."""
    if isinstance(target, cst.Name):
        give(machine, target.value, value, scope)
    elif isinstance(target, (cst.Tuple, cst.List)):
        _unpack(machine, target, value, scope)
    elif isinstance(target, cst.Attribute):
        set_attribute(machine, machine.value(target.value, scope), target.attr.value, value)
    elif isinstance(target, cst.Subscript):
        _set_item(machine, target, value, scope)


def set_attribute(machine: Machine, owner: Value, name: str, value: Value) -> None:
    """`owner.name = value`."""
    if isinstance(owner, Either):
        machine.lose([owner], "one of several objects gets an attribute")
    machine.store.set(cell(owner, name), value)


def _set_item(machine: Machine, target: cst.Subscript, value: Value, scope: Scope) -> None:
    owner = machine.value(target.value, scope)
    index = target.slice[0].slice
    key = machine.value(index.value, scope) if isinstance(index, cst.Index) and len(target.slice) == 1 else None
    set_item(machine, owner, key, value)


def set_item(machine: Machine, owner: Value, key: Value | None, value: Value) -> None:
    """`owner[key] = value`; None: the key is a slice."""
    entries, content = machine.entries_of(owner), machine.content_of(owner)
    if entries is not None and key is not None:
        known = isinstance(key, Constant)
        machine.store.set((owner,), Entries({**entries.items, identity(key): (key, value)}, entries.more or not known))
    elif content is not None:
        if (
            isinstance(key, Constant)
            and isinstance(key.value, int)
            and -len(content.items) <= key.value < len(content.items)
        ):
            items = list(content.items)
            items[key.value] = value
            machine.store.set((owner,), Elements(tuple(items), content.more))
        else:
            machine.store.set((owner,), Elements((*content.items, value), True))
    elif isinstance(owner, Either):
        for one in (owner.then, owner.otherwise):
            machine.lose([one], "one of several containers gets an entry")
    elif key is not None:
        machine.store.set((identity(owner), "item", identity(key)), value)


def _unpack(machine: Machine, target: cst.Tuple | cst.List, value: Value, scope: Scope) -> None:
    if isinstance(value, Either) and machine.elements(value) is None:
        first, second = (machine.elements(one) for one in (value.then, value.otherwise))
        if first is not None and second is not None and len(first) == len(second):
            both = [machine.chosen([(value.condition, True)], a, b) for a, b in equal_zip(first, second)]
            value = machine.sequence(value.site, "tuple", both)
    items = machine.elements(value)
    stars = [i for i, one in enumerate(target.elements) if isinstance(one, cst.StarredElement)]
    count = len(target.elements)
    site = machine.site(target, scope)
    if items is None or any(may_be_absent(one) for one in items) or len(items) < count - len(stars):
        for index, one in enumerate(target.elements):
            part: Value = item(machine, value, Constant(site, index), site)
            if isinstance(one, cst.StarredElement):
                part = machine.sequence(site, "list", [machine.operation(site, "element", value)], True)
            assign(machine, one.value, part, scope)
        return
    if stars:
        after = count - stars[0] - 1
        middle = machine.sequence(site, "list", items[stars[0] : len(items) - after])
        items = [*items[: stars[0]], middle, *items[len(items) - after :]]
    for one, each in zip(target.elements, items):
        assign(machine, one.value, each, scope)


def delete(machine: Machine, target: cst.BaseExpression, scope: Scope) -> None:
    """`del target`."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            delete(machine, element.value, scope)
    elif isinstance(target, cst.Name):
        machine.store.set((scope, target.value), ABSENT)
    elif isinstance(target, cst.Subscript):
        owner = machine.value(target.value, scope)
        index = target.slice[0].slice
        key = machine.value(index.value, scope) if isinstance(index, cst.Index) else None
        entries = machine.entries_of(owner)
        if entries is not None and isinstance(key, Constant):
            left = {name: entry for name, entry in entries.items.items() if name != identity(key)}
            machine.store.set((owner,), Entries(left, entries.more))
        else:
            machine.lose([owner], "an entry is deleted")


# -- the rest ----------------------------------------------------------------------------------------------------------


def _lambda(machine: Machine, node: cst.Lambda, scope: Scope) -> Value:
    return Function(machine.site(node, scope), "lambda", node, scope, defaults_of(machine, node.params, scope))


def defaults_of(machine: Machine, params: cst.Parameters, scope: Scope) -> dict[str, Value]:
    """The values of the parameters' defaults, by name."""
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    return {one.name.value: machine.value(one.default, scope) for one in every if one.default is not None}


def _named(machine: Machine, node: cst.NamedExpr, scope: Scope) -> Value:
    value = machine.value(node.value, scope)
    assign(machine, node.target, value, scope)
    return value


def _call(machine: Machine, node: cst.Call, scope: Scope) -> Value:
    callee = machine.value(node.func, scope)
    return machine.call(callee, arguments(machine, node.args, scope), machine.site(node, scope))


def arguments(machine: Machine, nodes: Sequence[cst.Arg], scope: Scope) -> Arguments:
    """What a call gives."""
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    rest: Value | None = None
    others: Value | None = None
    for one in nodes:
        value = machine.value(one.value, scope)
        machine.noted.setdefault(one.value, []).append(value)
        if one.star == "*":
            items = machine.elements(value)
            if items is None or any(may_be_absent(each) for each in items):
                rest = value
            else:
                args += items
        elif one.star == "**":
            entries = machine.entries_of(value)
            if entries is None or entries.more:
                others = value
            for key, each in entries.items.values() if entries is not None else ():
                if isinstance(key, Constant) and isinstance(key.value, str) and not may_be_absent(each):
                    kwargs[key.value] = each
                else:
                    others = value
        elif one.keyword is not None:
            kwargs[one.keyword.value] = value
        elif rest is None:
            args.append(value)
    return Arguments(tuple(args), kwargs, rest, others)


def _await(machine: Machine, node: cst.Await | cst.Yield, scope: Scope) -> Value:
    return Unknown(machine.site(node, scope), "a coroutine or generator is not followed")


_HANDLERS: dict[type[cst.BaseExpression], Callable[[Machine, Any, Scope], Value]] = {
    cst.Name: _name,
    cst.Attribute: _attribute,
    cst.Call: _call,
    cst.Subscript: _subscript,
    cst.Integer: _literal,
    cst.Float: _literal,
    cst.SimpleString: _literal,
    cst.Imaginary: _imaginary,
    cst.Ellipsis: _ellipsis,
    cst.ConcatenatedString: _concatenated,
    cst.FormattedString: _formatted,
    cst.Tuple: _display("tuple"),
    cst.List: _display("list"),
    cst.Set: _display("set"),
    cst.Dict: _dict,
    cst.ListComp: _comprehension,
    cst.SetComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.DictComp: _comprehension,
    cst.BinaryOperation: _binary_operation,
    cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean,
    cst.IfExp: _conditional,
    cst.Comparison: _comparison,
    cst.Lambda: _lambda,
    cst.NamedExpr: _named,
    cst.Await: _await,
    cst.Yield: _await,
}

__all__ = [
    "arguments",
    "assign",
    "augmented",
    "defaults_of",
    "delete",
    "elements_of",
    "evaluate",
    "give",
    "item",
    "look_up",
    "set_attribute",
    "set_item",
]
