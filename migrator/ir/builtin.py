"""What Python's own functions, and the methods of its containers and texts, do with values."""

from __future__ import annotations

from collections.abc import Callable

from migrator.ir.expressions import item, set_attribute, set_item
from migrator.ir.machine import NOTHING, Arguments, Machine, identity, may_be_absent, present, where_there
from migrator.ir.operators import FOLDED, LIBRARY, folded
from migrator.ir.store import Elements, Entries
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Function,
    Method,
    Object,
    Operation,
    Partial,
    Sequence,
    Site,
    Symbol,
    Table,
    Unknown,
    Value,
)

_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "bytes": bytes,
    "complex": complex,
}


def call_builtin(machine: Machine, name: str, given: Arguments, site: Site) -> Value | None:
    """What a call of a built-in function gives; None where it is not known here."""
    handler = _FUNCTIONS.get(name)
    if handler is not None and given.known:
        found = handler(machine, given, site)
        if found is not None:
            return found
    args = [one.value for one in given.args if isinstance(one, Constant)]
    named = {key: one.value for key, one in given.kwargs.items() if isinstance(one, Constant)}
    function = FOLDED.get(name) or LIBRARY.get(name)
    if function is not None and given.known and len(args) == len(given.args) and len(named) == len(given.kwargs):
        result = folded(function, args, named)
        return Constant(site, result[0]) if result is not None else Unknown(site, f"`{name}` fails")
    return None


def _sequence(kind: str) -> Callable[[Machine, Arguments, Site], Value | None]:
    def make(machine: Machine, given: Arguments, site: Site) -> Value | None:
        if given.kwargs or len(given.args) > 1:
            return None
        if not given.args:
            return machine.sequence(site, kind, ())
        content, items = machine.content_of(given.args[0]), machine.elements(given.args[0])
        if items is not None:
            return machine.sequence(site, kind, items)
        if content is not None:
            return machine.sequence(site, kind, content.items, True)
        return None

    return make


def _dict(machine: Machine, given: Arguments, site: Site) -> Value | None:
    items: list[tuple[Value, Value]] = []
    more = False
    if given.args:
        entries, pairs = machine.entries_of(given.args[0]), machine.elements(given.args[0])
        if entries is not None:
            items, more = list(entries.items.values()), entries.more
        elif pairs is not None:
            for pair in pairs:
                both = machine.elements(pair)
                if both is None or len(both) != 2:
                    return None
                items.append((both[0], both[1]))
        else:
            return None
    items += [(Constant(site, name), value) for name, value in given.kwargs.items()]
    return machine.table(site, items, more)


def _certain(machine: Machine, value: Value) -> list[Value] | None:
    """The elements of a value; None where they are not known, or may not be there."""
    items = machine.elements(value)
    return None if items is None or any(may_be_absent(one) for one in items) else items


def _zip(machine: Machine, given: Arguments, site: Site) -> Value | None:
    columns = [_certain(machine, one) for one in given.args]
    known = [one for one in columns if one is not None]
    if len(known) != len(columns):
        return None
    rows = zip(*known)
    return machine.sequence(site, "list", [machine.sequence(site, "tuple", row) for row in rows])


def _enumerate(machine: Machine, given: Arguments, site: Site) -> Value | None:
    items = _certain(machine, given.args[0]) if given.args else None
    start = given.args[1] if len(given.args) > 1 else given.kwargs.get("start", Constant(site, 0))
    if items is None or not isinstance(start, Constant) or not isinstance(start.value, int):
        return None
    first = start.value
    pairs = [machine.sequence(site, "tuple", (Constant(site, first + i), one)) for i, one in enumerate(items)]
    return machine.sequence(site, "list", pairs)


def _range(machine: Machine, given: Arguments, site: Site) -> Value | None:
    bounds = [one.value for one in given.args if isinstance(one, Constant) and isinstance(one.value, int)]
    if len(bounds) != len(given.args) or not 0 < len(bounds) < 4:
        return None
    result = folded(range, bounds)
    if result is None or len(result[0]) > 128:
        return None
    return machine.sequence(site, "list", [Constant(site, number) for number in result[0]])


def _reversed(machine: Machine, given: Arguments, site: Site) -> Value | None:
    items = machine.elements(given.args[0]) if given.args else None
    return None if items is None else machine.sequence(site, "list", items[::-1])


def _sorted(machine: Machine, given: Arguments, site: Site) -> Value | None:
    items = _certain(machine, given.args[0]) if len(given.args) == 1 and not given.kwargs else None
    known = [one for one in items or () if isinstance(one, Constant)]
    if items is None or len(known) != len(items):
        return None
    result = folded(lambda *values: sorted(range(len(values)), key=lambda i: values[i]), [one.value for one in known])
    return None if result is None else machine.sequence(site, "list", [known[i] for i in result[0]])


def _length(machine: Machine, given: Arguments, site: Site) -> Value | None:
    content, entries = machine.content_of(given.args[0]), machine.entries_of(given.args[0])
    held = list(content.items) if content is not None else [v for _, v in entries.items.values()] if entries else []
    more = content.more if content is not None else entries.more if entries is not None else True
    return None if more or any(may_be_absent(one) for one in held) else Constant(site, len(held))


def _map(machine: Machine, given: Arguments, site: Site) -> Value | None:
    columns = [_certain(machine, one) for one in given.args[1:]]
    known = [one for one in columns if one is not None]
    if len(known) != len(columns):
        each = [machine.operation(site, "element", one) for one in given.args[1:]]
        machine.repeated += 1
        with machine.under(Unknown(site, "a map goes on"), True):
            made = [machine.call(given.args[0], Arguments(tuple(each)), site)]
        machine.repeated -= 1
        return machine.sequence(site, "list", made, True)
    if not known:
        return None
    made = [machine.call(given.args[0], Arguments(tuple(row)), site) for row in zip(*known)]
    return machine.sequence(site, "list", made)


def _filter(machine: Machine, given: Arguments, site: Site) -> Value | None:
    items = _certain(machine, given.args[1]) if len(given.args) == 2 else None
    if items is None:
        return None
    none = isinstance(given.args[0], Constant)
    tests = [machine.decided(one if none else machine.call(given.args[0], Arguments((one,)), site)) for one in items]
    if None in tests:
        return None
    return machine.sequence(site, "list", [one for one, test in zip(items, tests) if test])


def _quantified(every: bool) -> Callable[[Machine, Arguments, Site], Value | None]:
    def fold(machine: Machine, given: Arguments, site: Site) -> Value | None:
        items = _certain(machine, given.args[0]) if given.args else None
        tests = [machine.decided(one) for one in items] if items is not None else [None]
        if (not every) in tests:
            return Constant(site, not every)
        return None if None in tests else Constant(site, every)

    return fold


def _sum(machine: Machine, given: Arguments, site: Site) -> Value | None:
    items = _certain(machine, given.args[0]) if len(given.args) == 1 else None
    values = [one.value for one in items or () if isinstance(one, Constant)]
    result = folded(lambda *all_of: sum(all_of), values) if items is not None and len(values) == len(items) else None
    return None if result is None else Constant(site, result[0])


def _getattr(machine: Machine, given: Arguments, site: Site) -> Value | None:
    name = given.args[1] if len(given.args) > 1 else None
    if not isinstance(name, Constant) or not isinstance(name.value, str):
        return None
    found = machine.attribute(given.args[0], name.value, site)
    if isinstance(found, Unknown) and len(given.args) == 3:
        return given.args[2]
    return found


def _hasattr(machine: Machine, given: Arguments, site: Site) -> Value | None:
    name = given.args[1] if len(given.args) > 1 else None
    if isinstance(given.args[0], Object) and isinstance(name, Constant) and isinstance(name.value, str):
        found = machine.attribute(given.args[0], name.value, site)
        return Constant(site, not isinstance(found, Unknown)) if not isinstance(found, Operation) else None
    return None


def _setattr(machine: Machine, given: Arguments, site: Site) -> Value | None:
    owner, name, value = given.args[0], given.args[1], given.args[2]
    if isinstance(name, Constant):
        set_attribute(machine, owner, str(name.value), value)
    else:
        machine.lose([owner], "`setattr` with a name that is not known")
    return Constant(site, None)


def _callable(machine: Machine, given: Arguments, site: Site) -> Value | None:
    if isinstance(given.args[0], (Function, Class, Partial, Method)):
        return Constant(site, True)
    return Constant(site, False) if isinstance(given.args[0], (Constant, Sequence, Table)) else None


def _isinstance(machine: Machine, given: Arguments, site: Site) -> Value | None:
    value, kinds = given.args
    if isinstance(value, Either):
        parts = [_isinstance(machine, Arguments((one, kinds)), site) for one in (value.then, value.otherwise)]
        if parts[0] is None or parts[1] is None:
            return None
        return machine.chosen([(value.condition, True)], parts[0], parts[1])
    several = machine.elements(kinds) if isinstance(kinds, Sequence) else [kinds]
    answers = [_is_a(machine, value, kind) for kind in several or ()]
    if True in answers:
        return Constant(site, True)
    return None if None in answers or not answers else Constant(site, False)


def _is_a(machine: Machine, value: Value, kind: Value) -> bool | None:
    name = kind.name if isinstance(kind, Symbol) else ""
    if isinstance(value, Constant):
        known = _TYPES.get(name)
        if known is not None:
            return isinstance(value.value, known)
        return False if name in ("list", "tuple", "dict", "set") or isinstance(kind, Class) else None
    if isinstance(value, Sequence):
        return value.kind == name if name in (*_TYPES, "list", "tuple", "dict", "set") else None
    if isinstance(value, Table):
        return name == "dict" if name in (*_TYPES, "list", "tuple", "dict", "set") else None
    if isinstance(value, Object) and isinstance(value.of, Class) and isinstance(kind, Class):
        return kind in lineage(value.of) or None
    return None


def lineage(owner: Class) -> list[Class]:
    """A class and the classes of the program that it is derived from, in the order in which names are looked up."""
    found = [owner]
    for base in owner.bases:
        if isinstance(base, Class):
            found += [one for one in lineage(base) if one not in found]
    return found


def _iter(machine: Machine, given: Arguments, site: Site) -> Value | None:
    items = machine.elements(given.args[0]) if len(given.args) == 1 else None
    if items is None:
        return given.args[0] if len(given.args) == 1 else None
    return machine.sequence(site, "list", items)


def _next(machine: Machine, given: Arguments, site: Site) -> Value | None:
    """The first element of an iterator, which it has no more then."""
    owner = given.args[0] if given.args else None
    content = machine.content_of(owner) if owner is not None else None
    if owner is None or content is None:
        return None
    if content.more or any(may_be_absent(one) for one in content.items):
        machine.lose([owner], "an element is taken")
        return None
    if not content.items:
        return given.args[1] if len(given.args) == 2 else None
    machine.store.set((owner,), Elements(content.items[1:]))
    return content.items[0]


def _print(machine: Machine, given: Arguments, site: Site) -> Value | None:
    machine.effect(Operation(site, "print", given.args, given.kwargs))
    return Constant(site, None)


_FUNCTIONS: dict[str, Callable[[Machine, Arguments, Site], Value | None]] = {
    "all": _quantified(True),
    "any": _quantified(False),
    "callable": _callable,
    "dict": _dict,
    "collections.OrderedDict": _dict,
    "collections.deque": _sequence("deque"),
    "enumerate": _enumerate,
    "filter": _filter,
    "frozenset": _sequence("set"),
    "getattr": _getattr,
    "hasattr": _hasattr,
    "isinstance": lambda m, g, s: _isinstance(m, g, s) if len(g.args) == 2 else None,
    "iter": _iter,
    "len": lambda m, g, s: _length(m, g, s) if len(g.args) == 1 else None,
    "list": _sequence("list"),
    "map": _map,
    "next": _next,
    "print": _print,
    "range": _range,
    "reversed": _reversed,
    "set": _sequence("set"),
    "setattr": lambda m, g, s: _setattr(m, g, s) if len(g.args) == 3 else None,
    "sorted": _sorted,
    "sum": _sum,
    "tuple": _sequence("tuple"),
    "zip": _zip,
}


#: Functions that are computed here; others are calls of libraries.
KNOWN = frozenset(_FUNCTIONS) | frozenset(LIBRARY)

# -- methods -----------------------------------------------------------------------------------------------------------


def call_method(machine: Machine, owner: Value, name: str, given: Arguments, site: Site) -> Value | None:
    """What a method of a text, list, set or dict gives; None where it is not known here."""
    if isinstance(owner, Constant):
        args = [one.value for one in given.args if isinstance(one, Constant)]
        named = {key: one.value for key, one in given.kwargs.items() if isinstance(one, Constant)}
        if name == "join" and given.args and isinstance(owner.value, str):
            items = _certain(machine, given.args[0])
            texts = [one.value for one in items or () if isinstance(one, Constant)]
            if items is None or len(texts) != len(items):
                return None
            args = [texts]
        elif len(args) != len(given.args) or len(named) != len(given.kwargs) or not given.known:
            return None
        result = folded(lambda *values, **keys: getattr(owner.value, name)(*values, **keys), args, named)
        return None if result is None else _from_python(machine, site, result[0])
    entries, content = machine.entries_of(owner), machine.content_of(owner)
    if entries is not None:
        handler = _OF_TABLES.get(name)
        return handler(machine, owner, entries, given, site) if handler is not None else None
    if content is not None:
        change = _OF_SEQUENCES.get(name)
        return change(machine, owner, content, given, site) if change is not None else None
    return None


def _from_python(machine: Machine, site: Site, value: object) -> Value:
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return machine.sequence(site, kind, [_from_python(machine, site, one) for one in value])
    return Constant(site, value)


def _get(machine: Machine, owner: Value, entries: Entries, given: Arguments, site: Site) -> Value | None:
    if not given.args:
        return None
    default = given.args[1] if len(given.args) > 1 else given.kwargs.get("default", Constant(site, None))
    key = given.args[0]
    known = entries.items.get(identity(key))
    if known is not None and not entries.more:
        return _or(machine, known[1], default)
    constant = isinstance(key, Constant) and all(isinstance(one, Constant) for one, _ in entries.items.values())
    return default if constant and not entries.more else None


def _or(machine: Machine, value: Value, default: Value) -> Value:
    """An entry, or the default where it may not be there."""
    if value is NOTHING:
        return default
    if isinstance(value, Either):
        parts = _or(machine, value.then, default), _or(machine, value.otherwise, default)
        return machine.chosen([(value.condition, True)], *parts)
    return value


def _pop(machine: Machine, owner: Value, entries: Entries, given: Arguments, site: Site) -> Value | None:
    found = _get(machine, owner, entries, given, site)
    key = given.args[0] if given.args else None
    if found is None or key is None:
        machine.lose([owner], "an entry is taken away")
        return None
    left = {name: entry for name, entry in entries.items.items() if name != identity(key)}
    machine.store.set((owner,), Entries(left, entries.more))
    return found


def _setdefault(machine: Machine, owner: Value, entries: Entries, given: Arguments, site: Site) -> Value | None:
    found = _get(machine, owner, entries, given, site)
    if found is not None:
        set_item(machine, owner, given.args[0], found)
    return found


def _update(machine: Machine, owner: Value, entries: Entries, given: Arguments, site: Site) -> Value | None:
    new = _dict(machine, given, site)
    other = machine.entries_of(new) if new is not None else None
    if other is None or not given.known:
        machine.lose([owner], "it is updated by what is not known")
        more = Entries(
            {**entries.items, **{identity(Constant(site, k)): (Constant(site, k), v) for k, v in given.kwargs.items()}},
            True,
        )
        machine.store.set((owner,), more)
    else:
        machine.store.set((owner,), Entries({**entries.items, **other.items}, entries.more or other.more))
    return Constant(site, None)


def _listing(part: str) -> Callable[[Machine, Value, Entries, Arguments, Site], Value | None]:
    def make(machine: Machine, owner: Value, entries: Entries, given: Arguments, site: Site) -> Value | None:
        found: list[Value] = []
        for key, value in entries.items.values():
            one = {"keys": key, "values": present(value)}.get(part) or machine.sequence(
                site, "tuple", (key, present(value))
            )
            found.append(where_there(machine, value, one))
        return machine.sequence(site, "list", found, entries.more)

    return make


_OF_TABLES: dict[str, Callable[[Machine, Value, Entries, Arguments, Site], Value | None]] = {
    "get": _get,
    "pop": _pop,
    "setdefault": _setdefault,
    "update": _update,
    "keys": _listing("keys"),
    "values": _listing("values"),
    "items": _listing("items"),
    "copy": lambda m, o, e, g, s: m.made(Table(s), e),
    "clear": lambda m, o, e, g, s: _put(m, o, Entries({}), s),
    "__getitem__": lambda m, o, e, g, s: item(m, o, g.args[0], s) if g.args else None,
}


def _put(machine: Machine, owner: Value, content: Elements | Entries, site: Site) -> Value:
    machine.store.set((owner,), content)
    return Constant(site, None)


def _append(machine: Machine, owner: Value, content: Elements, given: Arguments, site: Site) -> Value | None:
    return _put(machine, owner, Elements((*content.items, *given.args[:1]), content.more), site)


def _extend(machine: Machine, owner: Value, content: Elements, given: Arguments, site: Site) -> Value | None:
    other, items = machine.content_of(given.args[0]), machine.elements(given.args[0])
    added = items if items is not None else list(other.items) if other is not None else []
    if items is None and other is None:
        added = [machine.operation(site, "element", given.args[0])]
    return _put(machine, owner, Elements((*content.items, *added), content.more or items is None), site)


def _insert(machine: Machine, owner: Value, content: Elements, given: Arguments, site: Site) -> Value | None:
    at, value = given.args[0], given.args[1]
    items = list(content.items)
    if not isinstance(at, Constant) or not isinstance(at.value, int):
        return _put(machine, owner, Elements((*items, value), True), site)
    items.insert(at.value, value)
    return _put(machine, owner, Elements(tuple(items), content.more), site)


def _take(machine: Machine, owner: Value, content: Elements, given: Arguments, site: Site) -> Value | None:
    at = given.args[0] if given.args else Constant(site, -1)
    sure = not content.more and not any(may_be_absent(one) for one in content.items)
    if (
        sure
        and isinstance(at, Constant)
        and isinstance(at.value, int)
        and -len(content.items) <= at.value < len(content.items)
    ):
        items = list(content.items)
        found = items.pop(at.value)
        _put(machine, owner, Elements(tuple(items)), site)
        return found
    machine.lose([owner], "an element is taken away")
    return None


def _turned(machine: Machine, owner: Value, content: Elements, given: Arguments, site: Site) -> Value | None:
    return _put(machine, owner, Elements(content.items[::-1], content.more), site)


def _lost(machine: Machine, owner: Value, content: Elements, given: Arguments, site: Site) -> Value | None:
    machine.lose([owner], "its elements are changed")
    return Constant(site, None)


_OF_SEQUENCES: dict[str, Callable[[Machine, Value, Elements, Arguments, Site], Value | None]] = {
    "append": _append,
    "add": _append,
    "extend": lambda m, o, c, g, s: _extend(m, o, c, g, s) if g.args else None,
    "update": lambda m, o, c, g, s: _extend(m, o, c, g, s) if g.args else None,
    "insert": lambda m, o, c, g, s: _insert(m, o, c, g, s) if len(g.args) == 2 else None,
    "pop": _take,
    "popleft": lambda m, o, c, g, s: _take(m, o, c, Arguments((Constant(s, 0),)), s),
    "appendleft": lambda m, o, c, g, s: _insert(m, o, c, Arguments((Constant(s, 0), *g.args)), s),
    "reverse": _turned,
    "sort": _lost,
    "remove": _lost,
    "discard": _lost,
    "copy": lambda m, o, c, g, s: m.made(Sequence(s, o.kind), c) if isinstance(o, Sequence) else None,
    "clear": lambda m, o, c, g, s: _put(m, o, Elements(), s),
}

__all__ = ["KNOWN", "call_builtin", "call_method", "lineage"]
