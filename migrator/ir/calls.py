"""What calls give, and attributes: functions of the program are entered, those of libraries are operations."""

from __future__ import annotations

from functools import lru_cache

import libcst as cst

from migrator.ir.builtin import KNOWN, call_builtin, call_method, lineage
from migrator.ir.expressions import item
from migrator.ir.machine import Arguments, Machine, cell, inside, where_there
from migrator.ir.operators import BUILTINS, CHANGING
from migrator.ir.store import ABSENT, Elements
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Frame,
    Function,
    Method,
    Module,
    Object,
    Operation,
    Parent,
    Partial,
    Record,
    Scope,
    Sequence,
    Site,
    Symbol,
    Table,
    Unknown,
    Value,
)
from migrator.names.bindings import Form, bound_in, read_bindings
from migrator.names.spelling import canonical
from migrator.names.symbols import TEXTS
from migrator.walking import own_of_kinds

_DEEP = 40
#: Built-in functions that do more than return a value.
_EFFECTS = (
    *("exec", "eval", "open", "input", "next", "exit", "quit", "__import__", "delattr", "globals", "locals", "vars"),
)
_AGAIN = 3  # how often a function may be inside of itself
_PLAIN_DECORATORS = ("functools.lru_cache", "functools.cache", "functools.wraps", "abc.abstractmethod", "tf.function")
#: Functions that make one which asks what it is given for something.
_GETTERS = ("operator.itemgetter", "operator.attrgetter", "operator.methodcaller")
_MARKS = ("property", "staticmethod", "classmethod")
#: Functions whose calls may give what they were given, or what that holds. All others that are no functions of the
#: program give something new.
HANDING_ON = frozenset(("getattr", "iter", "next", "typing.cast", "copy.copy", "copy.deepcopy", *_PLAIN_DECORATORS))
#: What keeps its arguments as attributes, and its parameters in their order.
FIELDS: dict[str, tuple[str, ...]] = {
    "tf.estimator.EstimatorSpec": ("mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs"),
    "tf.contrib.tpu.TPUEstimatorSpec": ("mode", "predictions", "loss", "train_op", "eval_metrics", "export_outputs"),
    "tf.estimator.TrainSpec": ("input_fn", "max_steps", "hooks", "saving_listeners"),
    "tf.estimator.EvalSpec": ("input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs"),
    "tf.estimator.RunConfig": ("model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps"),
    "tf.contrib.training.HParams": (),
    "argparse.Namespace": (),
    "types.SimpleNamespace": (),
}
_PARTIALS = ("functools.partial", "tf.contrib.framework.partial")
_RUNS = ("tf.app.run", "absl.app.run", "tf.compat.v1.app.run")
#: Functions of which more is known than their names: what others give is an operation, and so is any part of it.
LOOKED_INTO = frozenset(
    (*HANDING_ON, *KNOWN, *BUILTINS, *_GETTERS, *_MARKS, *_PARTIALS, *_RUNS, "super", "collections.namedtuple", *FIELDS)
)


def call(machine: Machine, callee: Value, given: Arguments, site: Site) -> Value:
    """What a call gives."""
    callee = machine.settled(callee)
    if isinstance(callee, Either):
        return _call_either(machine, callee, given, site)
    if isinstance(callee, Partial):
        kwargs = {**callee.kwargs, **given.kwargs}
        whole = Arguments((*callee.args, *given.args), kwargs, given.rest, given.others)
        return machine.call(callee.function, whole, site)
    if isinstance(callee, Function):
        return invoke(machine, callee, given, site)
    if isinstance(callee, Method):
        return _call_method(machine, callee, given, site)
    if isinstance(callee, Class):
        return _make(machine, callee, given, site)
    if isinstance(callee, Record):
        return _make_record(machine, callee, callee.fields, given, site)
    if isinstance(callee, Symbol):
        return _call_symbol(machine, callee, given, site)
    if isinstance(callee, Object):
        method = attribute(machine, callee, "__call__", site)
        if isinstance(method, Method):
            return machine.call(method, given, site)
    if isinstance(callee, Operation) and callee.symbol == "getattr" and isinstance(callee.args[1], Constant):
        return _operation(machine, f".{callee.args[1].value}", (callee.args[0],), given, site)
    if isinstance(callee, Operation) and callee.symbol in _GETTERS and len(given.args) == 1 and given.known:
        found = _got(machine, callee, given.args[0], site)
        if found is not None:
            return found
    if not isinstance(callee, Operation):
        machine.lose(given.values, "a call of what is not known")
    return _operation(machine, "call", (callee,), given, site)


def _got(machine: Machine, getter: Operation, owner: Value, site: Site) -> Value | None:
    """What `itemgetter(0)(owner)` and its kin give, for one name or key."""
    first, *rest = getter.args
    if getter.symbol == "operator.itemgetter":
        return item(machine, owner, first, site) if not rest else None
    if not isinstance(first, Constant) or not isinstance(first.value, str) or "." in first.value:
        return None
    found = attribute(machine, owner, first.value, site)
    if getter.symbol == "operator.methodcaller":
        return machine.call(found, Arguments(tuple(rest), getter.kwargs), site)
    return found if not rest else None


def _call_either(machine: Machine, callee: Either, given: Arguments, site: Site) -> Value:
    found: dict[bool, Value] = {}

    def of(one: Value, which: bool) -> bool:
        found[which] = machine.call(one, given, site)
        return True

    machine.branch(callee.condition, lambda: of(callee.then, True), lambda: of(callee.otherwise, False))
    if len(found) == 1:
        return next(iter(found.values()))
    return machine.chosen([(callee.condition, True)], found[True], found[False])


def _operation(machine: Machine, symbol: str, first: tuple[Value, ...], given: Arguments, site: Site) -> Operation:
    """A call of a library, which is noted."""
    args, kwargs = (*first, *given.args), dict(given.kwargs)
    if given.rest is not None:
        kwargs["*"] = given.rest
    if given.others is not None:
        kwargs["**"] = given.others
    return machine.effect(Operation(site, symbol, args, kwargs, machine.contexts))


def _call_method(machine: Machine, method: Method, given: Arguments, site: Site) -> Value:
    if method.function is not None:
        whole = Arguments((method.owner, *given.args), given.kwargs, given.rest, given.others)
        return invoke(machine, method.function, whole, site, method.owner)
    owner = method.owner
    if isinstance(owner, Object) and isinstance(owner.of, Record) and method.name == "_replace":
        fields = [given.kwargs.get(name, attribute(machine, owner, name, site)) for name in owner.of.fields]
        return _make_record(machine, owner.of, owner.of.fields, Arguments(tuple(fields)), site)
    found = call_method(machine, owner, method.name, given, site) if given.known else None
    if found is not None:
        return found
    if not isinstance(owner, Constant):
        machine.lose([owner], f"`{method.name}` may change it")
    return _operation(machine, f".{method.name}", (owner,), given, site)


def _call_symbol(machine: Machine, callee: Symbol, given: Arguments, site: Site) -> Value:
    name = callee.name
    if name in _PARTIALS and given.args and given.known:
        return Partial(site, given.args[0], given.args[1:], given.kwargs)
    if name == "super":
        return _super(machine, given, site)
    if name in _MARKS and len(given.args) == 1:
        return machine.operation(site, name, given.args[0])
    if name in _PLAIN_DECORATORS and len(given.args) == 1 and isinstance(given.args[0], Function):
        return given.args[0]
    if name == "collections.namedtuple" and len(given.args) > 1:
        fields = _fields(machine, given.args[1])
        if fields is not None and isinstance(given.args[0], Constant):
            return Record(site, str(given.args[0].value), fields)
    if name in ("copy.copy", "copy.deepcopy") and len(given.args) == 1:
        return _copied(machine, given.args[0], name == "copy.deepcopy", site)
    if name in _RUNS:
        return _run_main(machine, given, site)
    if name == "typing.cast" and len(given.args) == 2 and given.known:
        return given.args[1]
    if name in _GETTERS and given.args and given.known:
        return machine.operation(site, name, *given.args, **given.kwargs)
    if name in BUILTINS or name in KNOWN:
        found = call_builtin(machine, name, given, site)
        if found is not None:
            return found
        return (
            machine.operation(site, name, *given.args, **given.kwargs)
            if given.known and name not in _EFFECTS
            else (_operation(machine, name, (), given, site))
        )
    found = _operation(machine, name, (), given, site)
    owner, _, method = name.rpartition(".")
    if method in CHANGING:  # of a container in a file that was not given
        machine.store.set(inside(owner), found)
    return found


def _run_main(machine: Machine, given: Arguments, site: Site) -> Value:
    """`tf.app.run(main)`: main is called with the command line."""
    main = given.args[0] if given.args else given.kwargs.get("main")
    if main is None:
        frame_scope = _module_scope(machine, site)
        found = machine.store.get((frame_scope, "main")) if frame_scope is not None else ABSENT
        main = found if isinstance(found, Value) else None
    if main is None:
        return Unknown(site, "main is not known")
    rest = machine.operation(site, "parameter", Constant(site, "argv"))
    takes = isinstance(main, Function) and not main.node.params.params and main.node.params.star_arg is None
    machine.call(main, Arguments(() if takes else (rest,)), site)
    return Constant(site, None)


def _module_scope(machine: Machine, site: Site) -> Scope | None:
    module = machine.store.get(("module", site.path))
    return module.scope if isinstance(module, Module) else None


def _fields(machine: Machine, value: Value) -> tuple[str, ...] | None:
    if isinstance(value, Constant) and isinstance(value.value, str):
        return tuple(value.value.replace(",", " ").split())
    items = machine.elements(value)
    names = [one.value for one in items or () if isinstance(one, Constant) and isinstance(one.value, str)]
    return tuple(names) if items is not None and len(names) == len(items) else None


def _copied(machine: Machine, value: Value, deep: bool, site: Site) -> Value:
    def inner(one: Value) -> Value:
        return _copied(machine, one, deep, site) if deep else one

    content, entries = machine.content_of(value), machine.entries_of(value)
    if isinstance(value, Sequence) and content is not None:
        return machine.sequence(site, value.kind, [inner(one) for one in content.items], content.more)
    if entries is not None:
        return machine.table(site, [(key, inner(one)) for key, one in entries.items.values()], entries.more)
    if isinstance(value, Object) and not isinstance(value.of, Record):
        return Unknown(site, "a copy of an object is another one")
    return value


def _super(machine: Machine, given: Arguments, site: Site) -> Value:
    for function, owner in reversed(machine.calls):
        if function.owner is not None and owner is not None:
            after = given.args[0] if given.args and isinstance(given.args[0], Class) else function.owner
            return Parent(site, owner, after)
    return machine.operation(site, "super", *given.args)


# -- functions of the program ------------------------------------------------------------------------------------------


def invoke(machine: Machine, function: Function, given: Arguments, site: Site, owner: Value | None = None) -> Value:
    """What a function of the program gives: its code is entered."""
    inside = sum(1 for one, _ in machine.calls if one.node is function.node)
    if inside >= _AGAIN or len(machine.calls) > _DEEP:
        machine.lose(given.values, "a function is too deep inside of itself")
        return Unknown(site, f"`{function.name}` is too deep inside of itself")
    if _is_generator(function.node):
        machine.lose(given.values, "a generator is given it")
        return machine.effect(Operation(site, "generator", (function, *given.args), given.kwargs, machine.contexts))
    own, declared = _names_of(function.node)
    path = function.scope.path
    scope = Scope(function.name, own, function.scope, path, "function", declared)
    _bind(machine, function, given, scope, site)
    before, machine.frame = machine.frame, Frame(function.name, site)
    machine.calls.append((function, owner))
    machine.scopes.append(scope)
    machine.called.add(function.node)
    region = machine.enter("call")
    try:
        if isinstance(function.node, cst.Lambda):
            result, goes_on = machine.value(function.node.body, scope), True
        else:
            goes_on = machine.run(function.node.body, scope)
            result = Constant(site, None)
        found = machine.close(region, goes_on, result)
    finally:
        if region in machine.regions:
            del machine.regions[machine.regions.index(region) :]
        machine.calls.pop()
        machine.scopes.pop()
        machine.frame = before
    return found if found is not None else Unknown(site, f"`{function.name}` never returns")


@lru_cache(maxsize=4096)
def _names_of(node: cst.FunctionDef | cst.Lambda) -> tuple[frozenset[str], dict[str, str]]:
    """The names of a function, and those that it declares to be others'."""
    own = frozenset(binding.name for binding in bound_in(node))
    scoped = [b for b in read_bindings(node) if b.form is Form.SCOPED and b.scope is node]
    return own, {b.name: "global" if b.is_global else "nonlocal" for b in scoped}


@lru_cache(maxsize=4096)
def _is_generator(node: cst.FunctionDef | cst.Lambda) -> bool:
    return bool(own_of_kinds(node, cst.Yield)) or (isinstance(node, cst.FunctionDef) and node.asynchronous is not None)


def _bind(machine: Machine, function: Function, given: Arguments, scope: Scope, site: Site) -> None:
    params = function.node.params
    plain = [one.name.value for one in (*params.posonly_params, *params.params)]
    keyword_only = [one.name.value for one in params.kwonly_params]
    bound: dict[str, Value] = dict(zip(plain, given.args))
    kwargs = dict(given.kwargs)
    for name in (*plain, *keyword_only):
        if name in kwargs and name not in bound:
            bound[name] = kwargs.pop(name)
        elif name not in bound:
            unsure = given.others if given.rest is None else given.rest
            if unsure is not None:
                bound[name] = machine.operation(site, "argument", unsure, Constant(site, name))
            else:
                bound[name] = function.defaults.get(name, Unknown(site, f"`{name}` is not given"))
    for name, value in bound.items():
        machine.store.set((scope, name), value)
    if isinstance(params.star_arg, cst.Param):
        more = [machine.operation(site, "element", given.rest)] if given.rest is not None else []
        star = machine.sequence(site, "tuple", (*given.args[len(plain) :], *more), given.rest is not None)
        machine.store.set((scope, params.star_arg.name.value), star)
    if params.star_kwarg is not None:
        items = [(Constant(site, name), value) for name, value in kwargs.items()]
        table = machine.table(site, items, given.others is not None)
        machine.store.set((scope, params.star_kwarg.name.value), table)


# -- classes and objects -----------------------------------------------------------------------------------------------


def _make(machine: Machine, owner: Class, given: Arguments, site: Site) -> Value:
    if owner.is_enumeration and len(given.args) == 1 and given.known:
        return _member(machine, owner, given.args[0], site)
    made = Object(site, owner)
    if owner.is_data:
        names = [name for one in reversed(lineage(owner)) for name in _annotated(one.node)]
        return _fill(machine, made, tuple(dict.fromkeys(names)), given, site)
    init = _of_class(machine, owner, "__init__")
    if isinstance(init, Function):
        whole = Arguments((made, *given.args), given.kwargs, given.rest, given.others)
        invoke(machine, init, whole, site, made)
    elif _is_of_library(owner):
        _operation(machine, ".__init__", (made,), given, site)
    records = [base for one in lineage(owner) for base in one.bases if isinstance(base, Record)]
    if records:
        return _fill(machine, made, records[0].fields, given, site)
    return made


def _member(machine: Machine, owner: Class, value: Value, site: Site) -> Value:
    """The member of an enumeration that has a value."""
    held = machine.store.held(owner.scope).values()
    for one in [one for one in held if isinstance(one, Object) and one.of is owner]:
        own = machine.store.get((one, "value"))
        if not isinstance(own, Constant) or not isinstance(value, Constant):
            break
        if own.value == value.value:
            return one
    return Unknown(site, f"which member of `{owner.name}` is not known")


def _make_record(machine: Machine, record: Record, fields: tuple[str, ...], given: Arguments, site: Site) -> Value:
    return _fill(machine, Object(site, record), fields, given, site)


def _fill(machine: Machine, made: Object, fields: tuple[str, ...], given: Arguments, site: Site) -> Value:
    values = {**dict(zip(fields, given.args)), **given.kwargs}
    for name in fields:
        default = _of_class(machine, made.of, name) if isinstance(made.of, Class) else None
        value = values.get(name) or default or Unknown(site, f"`{name}` is not given")
        machine.store.set((made, name), value if given.known else Unknown(site, "`*` or `**` is not known"))
    return made


def _annotated(node: cst.ClassDef) -> list[str]:
    body = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    lines = [small for line in body if isinstance(line, cst.SimpleStatementLine) for small in line.body]
    found = []
    for small in lines:
        target = small.target if isinstance(small, cst.AnnAssign) else None
        if isinstance(small, cst.Assign) and getattr(small.targets[0], "annotation", None) is not None:
            target = small.targets[0].target
        if isinstance(target, cst.Name):
            found.append(target.value)
    return found


def _of_class(machine: Machine, owner: Class, name: str) -> Value | None:
    """What a class, or one that it is derived from, calls so."""
    for one in lineage(owner):
        found = machine.store.get((one.scope, name))
        if isinstance(found, Value):
            return found
    return None


def _is_of_library(owner: Class) -> bool:
    """Whether a class is derived from one that is not of the program."""
    known = [base for one in lineage(owner) for base in one.bases if not isinstance(base, (Class, Record))]
    return any(not (isinstance(base, Symbol) and base.name == "object") for base in known)


def attribute(machine: Machine, owner: Value, name: str, site: Site) -> Value:
    """An attribute of a value."""
    owner = machine.settled(owner)
    if isinstance(owner, Either):
        parts = [attribute(machine, one, name, site) for one in (owner.then, owner.otherwise)]
        return machine.chosen([(owner.condition, True)], *parts)
    held, lost = machine.store.get(cell(owner, name)), machine.store.get((owner, "?"))
    if isinstance(held, Value) and lost is ABSENT and not isinstance(owner, Class):
        return held
    if isinstance(owner, Symbol):
        machine.store.get(inside(f"{owner.name}.{name}"))
        return _of_symbol(machine, owner.name, name, site)
    if isinstance(owner, (Object, Parent)):
        return _of_object(machine, owner, name, site)
    if isinstance(owner, Class):
        found = _of_class(machine, owner, name)
        if found is not None:
            return _bound(machine, owner, name, found, site)
        return (
            Constant(site, owner.name)
            if name == "__name__"
            else machine.operation(site, "getattr", owner, Constant(site, name))
        )
    if isinstance(owner, Module):
        return _of_module(machine, owner, name, site)
    if isinstance(owner, (Constant, Sequence, Table)):
        return Method(site, owner, name)
    if isinstance(owner, Function) and name == "__name__":
        return Constant(site, owner.name)
    if isinstance(owner, Partial) and name == "func":
        return owner.function
    if isinstance(owner, Operation) and owner.symbol in FIELDS:
        found = bound(owner).get(name)
        if found is not None:
            return found
    return machine.operation(site, "getattr", owner, Constant(site, name))


def bound(operation: Operation) -> dict[str, Value]:
    """The arguments of an operation by the names of its parameters, where they are known."""
    return {**dict(zip(FIELDS.get(operation.symbol, ()), operation.args)), **operation.kwargs}


def _of_symbol(machine: Machine, owner: str, name: str, site: Site) -> Value:
    whole = canonical(f"{owner}.{name}")
    if whole in TEXTS:
        return Constant(site, TEXTS[whole])
    if owner.endswith(".FLAGS"):
        return machine.operation(site, "flag", Constant(site, name))
    machine.reads(whole)
    return Symbol(site, whole)


def _of_module(machine: Machine, owner: Module, name: str, site: Site) -> Value:
    found = machine.store.get((owner.scope, name))
    if isinstance(found, Value):
        return found
    if name == "__name__":
        return Constant(site, owner.scope.name)
    return Unknown(site, f"`{owner.scope.name}` has no `{name}`")


def _of_object(machine: Machine, owner: Object | Parent, name: str, site: Site) -> Value:
    of = owner.after if isinstance(owner, Parent) else owner.of
    if isinstance(of, Record):
        return Method(site, owner, name)
    if name == "__class__" and isinstance(owner, Object):
        return of
    this = owner.owner if isinstance(owner, Parent) else owner
    for one in lineage(of)[1 if isinstance(owner, Parent) else 0 :]:
        found = machine.store.get((one.scope, name))
        if isinstance(found, Value):
            return _bound(machine, this, name, found, site)
    if _is_of_library(of) or machine.store.get((owner, "?")) is not ABSENT:
        return machine.operation(site, "getattr", owner, Constant(site, name))
    other = _of_class(machine, of, "__getattr__")
    if isinstance(other, Function):
        return invoke(machine, other, Arguments((this, Constant(site, name))), site, this)
    return Unknown(site, f"`{of.name}` has no attribute `{name}` here")


def _bound(machine: Machine, owner: Value, name: str, found: Value, site: Site) -> Value:
    """What a class has, as an attribute of its object, or of itself."""
    if isinstance(found, Operation) and found.symbol in _MARKS and found.args:
        inner = found.args[0]
        if found.symbol == "property" and isinstance(owner, Object):
            return machine.call(inner, Arguments((owner,)), site)
        if found.symbol == "classmethod" and isinstance(inner, Function):
            of = owner.of if isinstance(owner, Object) else owner
            return Method(site, of, name, inner)
        return inner
    if isinstance(found, Function) and isinstance(owner, Object):
        return Method(site, owner, name, found)
    return found


def _tuple_fields(value: Value) -> tuple[str, ...] | None:
    """The names of the elements of a named tuple."""
    if not isinstance(value, Object):
        return None
    if isinstance(value.of, Record):
        return value.of.fields
    every = lineage(value.of)
    is_tuple = any(isinstance(base, Symbol) and base.name == "typing.NamedTuple" for one in every for base in one.bases)
    return tuple(name for one in reversed(every) for name in _annotated(one.node)) if is_tuple else None


def elements(machine: Machine, value: Value) -> list[Value] | None:
    """What going over a value gives; None where it is not known."""
    content, entries = machine.content_of(value), machine.entries_of(value)
    if content is not None:
        return None if content.more else list(content.items)
    if entries is not None:
        return None if entries.more else [where_there(machine, one, key) for key, one in entries.items.values()]
    if isinstance(value, Constant) and isinstance(value.value, (str, bytes)):
        return [Constant(value.site, one) for one in value.value]
    fields = _tuple_fields(value)
    if fields is not None:
        found = [machine.store.get((value, name)) for name in fields]
        return [one for one in found if isinstance(one, Value)]
    return None


__all__ = ["FIELDS", "HANDING_ON", "LOOKED_INTO", "Elements", "attribute", "bound", "call", "elements", "invoke"]
