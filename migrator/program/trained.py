"""The statements of one mode of a model_fn, run on the evaluator: what each makes, gives names, and changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.ir.evaluate import Left
from migrator.ir.files import Parsed
from migrator.ir.machine import Effect, TooMuch
from migrator.ir.store import ABSENT
from migrator.ir.values import Class, Constant, Method, Module, Object, Operation, Scope, Site, Symbol, Table, Value
from migrator.ir.values import Sequence as Items
from migrator.names.bindings import bound_in, names_read, value_given
from migrator.names.spelling import canonical
from migrator.program.calls import nodes_in
from migrator.program.flow import made_of
from migrator.program.known import loaded
from migrator.program.modes import TRAIN
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.scopes import bindings, path_to
from migrator.program.train_body import TrainBody

_MORE = 60_000  # steps that one model_fn may take beside those of a whole program


@dataclass
class Done:
    """What one statement does: calls of libraries, names with their values, and lists and dicts that it changes."""

    effects: tuple[Operation, ...] = ()
    given: Mapping[str, Value] = field(default_factory=dict)
    changed: tuple[Value, ...] = ()
    attributes: tuple[tuple[Value, str, Value], ...] = ()  # owner, name, value
    filled: tuple[Value, ...] = ()  # dicts


class Trained:
    """The statements that a mode of a model_fn runs, in their order, executed in a `with` statement. Raises Blocked.

    `at` says which statement makes an operation, `done` what a statement of an index does, `cells` what is written into
    lists of unknown length, by the list: the index and the value. `awaited` are the values that control dependencies
    of `tf.control_dependencies` operations name, and the node that does. `parameters` are those of the model_fn. It may
    import other `files`, and `watch` makes what is told of every call of a library.
    """

    def __init__(
        self,
        body: TrainBody,
        files: Sequence[ParsedFile] = (),
        watch: Callable[[Trained], Callable[[Effect], None]] | None = None,
        mode: str = TRAIN,
        code: str = "TFM403",
    ) -> None:
        self.body = body
        self.files = files
        self.watch = watch
        self.mode = mode
        self.code = code
        self.parameters: dict[str, Value] = {}
        self.at: dict[Value, int] = {}
        self.done: dict[int, Done] = {}
        self.cells: dict[Value, list[tuple[Value, Value]]] = {}
        self.awaited: dict[Value, cst.BaseExpression] = {}
        self._waits: dict[cst.BaseExpression, Operation] = {}

    def __enter__(self) -> Trained:
        self.machine = loaded(self.body.file, self.files)
        module = self.machine.load(Parsed(self.body.file.path, self.body.file.module))
        self._left = Left.of(self.machine)
        self._mark = self.machine.store.mark()
        self.machine.work = -_MORE
        self.machine.conditions = []
        try:
            self._enter(module)
        except (TooMuch, RecursionError):
            self.__exit__()
            raise Blocked(self.code, self.body.function.name, "the model_fn takes too many steps to evaluate") from None
        return self

    def __exit__(self, *_: object) -> None:
        self.machine.watch = None
        self.machine.store.undo(self._mark)
        self._left.restore(self.machine)
        self.machine.work = 0

    def _enter(self, module: Module) -> None:
        function, path = self.body.function, self.body.file.path
        around = Scope("around", frozenset(), module.scope, path, "module")
        self.scope = Scope(function.name.value, frozenset(), around, path, "function")
        for name in {one.name for one in bound_in(function)}:
            if name in {p.name.value for p in _params(function.params)}:
                self.parameters[name] = self._set(self.scope, name)
        self._close_over(around)
        self._bind_owner(module)
        for name, origin in self.body.imports.names.items():
            if name.startswith("*"):  # what `from module import *` may give
                continue
            if self.body.imports.tensorflow(cst.Name(name)) is not None:  # it may be so by another file
                self.machine.store.set((around, name), Symbol(None, canonical(origin)))
        if self.watch is not None:
            self.machine.watch = self.watch(self)
        for index, statement in enumerate(self.body.statements):
            if self.mode in statement.modes:
                self._run(index, statement.node, statement.after)
        self.end = len(self.body.statements)

    def _bind_owner(self, module: Module) -> None:
        """Makes the object whose method the model_fn is, of parameters that are not known."""
        file, function = self.body.file.home(self.body.function)
        path = path_to(file.module, function) if function is not None else []
        owner = path[-3] if len(path) > 2 else None
        params = self.body.function.params.params
        if not isinstance(owner, cst.ClassDef) or not params or self.body.function.decorators:
            return
        made_of_class = made_of(self.body.project, self.body.file, owner) if self.body.project else (file, owner)
        if made_of_class is None:
            return
        of = self.machine.store.get((module.scope, made_of_class[1].name.value))
        if not isinstance(of, Class) or of.node is not made_of_class[1]:
            return
        site = Site(self.body.file.path, of.node)
        made = Object(site, of)
        self.machine.store.set((self.scope, params[0].name.value), made)
        start = self.machine.attribute(made, "__init__", site)
        if isinstance(start, Method) and start.function is not None:
            self.machine.enter_function(start.function, made)

    def _set(self, scope: Scope, name: str) -> Value:
        value = self.machine.operation(None, "parameter", Constant(None, scope.name), Constant(None, name))
        self.machine.store.set((scope, name), value)
        return value

    def _close_over(self, scope: Scope) -> None:
        """Gives what functions around the model_fn bind a value: a call where they do so once, or one not known."""
        file, function = self.body.file.home(self.body.function)
        path = path_to(file.module, function) if function is not None else []
        read = names_read(self.body.function)
        for outer in [n for n in path if isinstance(n, (cst.FunctionDef, cst.Lambda)) and n is not function]:
            bound: dict[str, list[cst.CSTNode]] = {}
            for name, by in bindings(outer):
                bound.setdefault(name, []).append(by)
            for name in sorted(bound.keys() & read):
                made = value_given(outer, bound[name][0]) if len(bound[name]) == 1 else None
                if isinstance(made, cst.Call):
                    self.machine.store.set((scope, name), self.machine.value(made, scope))
                else:
                    self._set(scope, name)

    def _run(self, index: int, node: cst.CSTNode, after: tuple[cst.BaseExpression, ...]) -> None:
        machine = self.machine
        effects = len(machine.effects)
        machine.contexts = ()
        machine.contexts = tuple(self._waiting(one, index) for one in after)
        conditions = len(machine.conditions)
        mark = machine.store.mark()
        machine.run(node, self.scope)
        del machine.conditions[conditions:]
        machine.contexts = ()
        given: dict[str, Value] = {}
        changed: list[Value] = []
        filled: list[Value] = []
        attributes: list[tuple[Value, str, Value]] = []
        for key, value in machine.store.since(mark).items():
            owner = key[0]
            if not isinstance(value, Value):
                if len(key) == 1 and isinstance(owner, Items) and value is not ABSENT:
                    changed.append(owner)
                elif len(key) == 1 and isinstance(owner, Table):
                    filled.append(owner)
            elif owner is self.scope:
                given[str(key[1])] = value
            elif len(key) == 3 and key[1] == "item" and isinstance(owner, Value):
                each = value.args[-1] if isinstance(value, Operation) and value.symbol == "loop" else value
                index_of = key[2] if isinstance(key[2], Value) else Constant(None, key[2])
                self.cells.setdefault(owner, []).append((index_of, each))
                changed.append(owner)
            elif len(key) == 2 and isinstance(owner, Value) and isinstance(key[1], str):
                attributes.append((owner, key[1], value))
        made = tuple(effect.operation for effect in machine.effects[effects:])
        for operation in made:
            self.at.setdefault(operation, index)
        self.done[index] = Done(made, given, tuple(changed), tuple(attributes), tuple(filled))

    def _waiting(self, node: cst.BaseExpression, index: int) -> Operation:
        """The control dependency on what a node names, which is looked at where its block begins."""
        if node not in self._waits:
            before = len(self.machine.effects)
            value = self.machine.value(node, self.scope)
            for effect in self.machine.effects[before:]:
                self.at.setdefault(effect.operation, index)
            self._waits[node] = Operation(None, "tf.control_dependencies", (value,))
            self.awaited[self._waits[node]] = node
        return self._waits[node]

    def waiting(self, node: cst.BaseExpression) -> Operation:
        """The control dependency that a node is."""
        return self._waits[node]

    def value(self, node: cst.BaseExpression) -> Value:
        """What an expression stands for behind all statements."""
        before = len(self.machine.effects)
        found = self.machine.value(node, self.scope)
        for effect in self.machine.effects[before:]:
            self.at.setdefault(effect.operation, self.end)
        return found

    def node(self, operation: Operation) -> cst.CSTNode | None:
        """The node of the model_fn itself by which an operation is made."""
        site: Site | None = operation.site
        while site is not None and site.frame is not None:
            site = site.frame.caller
        return site.node if site is not None else None

    def is_written_there(self, operation: Operation) -> bool:
        """Whether the call that makes an operation stands in the statement that does, and not in another function."""
        index = self.at.get(operation)
        if index is None or operation.site is None:
            return False
        if index >= self.end:
            return operation.site.frame is None
        statement = self.body.statements[index]
        return any(operation.site.node is one for node in (statement.node, *statement.after) for one in nodes_in(node))

    def value_of(self, name: str) -> Value | None:
        """What a name of the model_fn stands for behind all statements; None where it has no value."""
        found = self.machine.store.get((self.scope, name))
        return found if isinstance(found, Value) else None

    def names_of(self, value: Value, index: int) -> list[str]:
        """The names that a statement gives a value."""
        return [name for name, one in self.done[index].given.items() if one is value] if index in self.done else []


def others_named(body: TrainBody) -> tuple[ParsedFile, ...]:
    """The other files of the project, where a model_fn names something of one of them."""
    if body.project is None:
        return ()
    named = {name for statement in body.statements for name in names_in(statement.node)}
    for name in sorted(named & body.imports.names.keys()):
        parts = body.imports.names[name].split(".")
        modules = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        if any(body.project.sibling(body.file, module) not in (None, body.file) for module in modules):
            return body.project.files
    return ()


def _params(params: cst.Parameters) -> list[cst.Param]:
    stars = [one for one in (params.star_arg, params.star_kwarg) if isinstance(one, cst.Param)]
    return [*params.posonly_params, *params.params, *params.kwonly_params, *stars]


__all__ = ["Done", "Trained", "others_named"]
