"""The weights that a network makes by itself (`tf.get_variable`, `tf.Variable`), as layers of a Keras model.

A layer of a functional model is called with a tensor. Here is found, from the values of the program, with which one,
and what each weight and each layer takes from the variable scopes around it. A weight that two calls share, that a
scope may give again, or that is changed by hand has no plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator.ir.machine import Effect
from migrator.ir.values import Class, Constant, Either, Function, Operation, Symbol, Value, alternatives, is_nothing
from migrator.ir.values import Sequence as Items
from migrator.names.bindings import bound_in, names_changed, value_given
from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in, last_name
from migrator.program.modes import ModalStatement
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.scopes import returns_in
from migrator.program.train_body import TrainBody
from migrator.program.trained import Trained
from migrator.query.variables import (
    CELLS,
    GET,
    LOOKUP,
    PARAMETERS,
    RECURRENT,
    SCOPE,
    Made,
    Unclear,
    Variables,
    name_of,
    only_reuses,
    reuses,
)
from migrator.walking import of_kinds

_OF_WEIGHTS = frozenset(name.rpartition(".")[2] for name in (*PARAMETERS, SCOPE, LOOKUP, *CELLS, *RECURRENT))
# What computes tensors and makes nothing that is found again by its name.
_OPERATIONS = frozenset(
    """relu elu leaky_relu sigmoid tanh softmax bias_add conv1d conv2d conv3d max_pool avg_pool dropout l2_normalize lrn
    local_response_normalization xw_plus_b""".split()  # noqa: SIM905
)
_TENSORS = frozenset("add add_n concat identity matmul multiply reshape sigmoid squeeze tanh".split())  # noqa: SIM905
_LOOPS = (cst.For, cst.While, cst.CompFor, cst.FunctionDef, cst.Lambda)
_INITIALIZERS = ("_initializer", "_initializer_conv2d")


@dataclass(frozen=True)
class OwnWeight:
    """A weight as a layer: the tensor that it is called with, as code (None: callers of its function call it).

    `name` is that of the layer: None leaves it out, and "" keeps what the call says. `value` says that it is given what
    it starts at, and no initializer; `whole` that its shape is one number. `carried` are the arguments that the scopes
    around it give it, as expressions of the program.
    """

    tensor: str | None
    name: str | None
    value: bool
    whole: bool
    carried: Mapping[str, cst.BaseExpression] = field(default_factory=dict)


@dataclass
class OwnWeights:
    """What is known of the weights of a network.

    `weights` are they by the call that makes each, `carried` the arguments that scopes give layers by the call of the
    layer, `scopes` the calls of scopes that share nothing, and `lookups` the weights that `tf.nn.embedding_lookup`
    looks up in, by its call. `applied` are the tensors that layers are called with which functions of the program
    return, by the call of the function. `cells` are recurrent cells, with the type of their weights, by the call that
    makes each, and `recurrent` the calls that run them. `unread` are those of the scopes that have a name which nobody
    reads, but to call an operation by it: `named` are the calls of these operations.
    """

    weights: dict[cst.CSTNode, OwnWeight] = field(default_factory=dict)
    carried: dict[cst.CSTNode, Mapping[str, cst.BaseExpression]] = field(default_factory=dict)
    scopes: set[cst.CSTNode] = field(default_factory=set)
    lookups: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    applied: dict[cst.CSTNode, str] = field(default_factory=dict)
    cells: dict[cst.CSTNode, str] = field(default_factory=dict)
    recurrent: set[cst.CSTNode] = field(default_factory=set)
    unread: set[cst.CSTNode] = field(default_factory=set)
    named: set[cst.CSTNode] = field(default_factory=set)

    def update(self, other: OwnWeights) -> None:
        """Takes in those of another function."""
        for own, more in zip(self._tables(), other._tables()):
            own.update(more)
        for nodes, others in zip(self._sets(), other._sets()):
            nodes |= others

    def follow(self, new: cst.CSTNode, old: cst.CSTNode) -> None:
        """Notes that a node is made of another."""
        for own in self._tables():
            if old in own:
                own[new] = own[old]
        for nodes in self._sets():
            if old in nodes:
                nodes.add(new)

    def _tables(self) -> tuple[dict[cst.CSTNode, Any], ...]:
        return self.weights, self.carried, self.lookups, self.applied, self.cells

    def _sets(self) -> tuple[set[cst.CSTNode], ...]:
        return self.scopes, self.recurrent, self.unread, self.named


def touches_weights(file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether a function itself makes weights or looks up in them, runs cells, or enters variable scopes.

    Of the lines of one that does not `own_weights` says nothing that stands in the way.
    """
    symbols = {file.imports.tensorflow(call.func) or "" for call in calls_in(function)}
    return any(symbol.rpartition(".")[2] in _OF_WEIGHTS for symbol in symbols)


def own_weights(
    project: Project,
    file: ParsedFile,
    function: cst.FunctionDef,
    statements: Sequence[ModalStatement],
    features: str,
    labels: str | None,
) -> OwnWeights:
    """The weights of a model_fn, and of the functions that it calls."""
    if not any(
        name in one.text for one in project.files for name in ("get_variable", "Variable(", "variable_scope", "_rnn")
    ):
        return OwnWeights()
    body = TrainBody(file, function, statements, frozenset(), lambda name: 0, project)
    found: list[Variables] = []

    def watch(trained: Trained) -> Callable[[Effect], None]:
        parameter = trained.machine.operation
        given = [
            parameter(None, "parameter", Constant(None, function.name.value), Constant(None, name))
            for name in (features, labels or "")
        ]
        found.append(
            Variables(trained.machine, lambda one: one is given[0], lambda one: one is given[1], trained.scope)
        )
        return found[0].watch

    try:
        with Trained(body, project.files, watch) as trained:
            return _Planner(found[0], trained, features).plan()
    except Blocked:
        return OwnWeights()


class _Planner:
    def __init__(self, variables: Variables, trained: Trained, features: str) -> None:
        self.variables = variables
        self.trained = trained
        self.features = features
        self.applied: dict[cst.CSTNode, str] = {}
        self.by_node: dict[cst.CSTNode, list[Made]] = {}
        for one in variables.made:
            if one.operation.site is not None:
                self.by_node.setdefault(one.operation.site.node, []).append(one)

    def plan(self) -> OwnWeights:
        result = OwnWeights()
        every = [*self.variables.made, *self.variables.layers]
        closed = self._shared_scopes()
        scopes = {scope for one in every for scope, _ in self.variables.path(one.operation)}
        closed |= {one for one in scopes if not self._keeps(one)}
        carried: dict[cst.CSTNode, Mapping[str, cst.BaseExpression]] = {}
        for one in every:
            site, given = one.operation.site, self._carried(one)
            if site is None or given is None or carried.setdefault(site.node, given) != given:
                closed |= {scope for scope, _ in self.variables.path(one.operation)}
        nodes = {scope.site.node for scope in closed if scope.site is not None}
        result.scopes = {one.site.node for one in scopes if one.site is not None} - nodes
        names = self._names()
        for node, made in self.by_node.items():
            paths = [self.variables.path(one.operation) for one in made]
            if any(scope in closed for path in paths for scope, _ in path):
                continue
            plan = self._weight(node, made, names, carried[node])
            if plan is not None:
                result.weights[node] = plan
                uses = [use for one in made for use in self.variables.uses(one.operation)]
                found = [use.site.node for use in uses if use.symbol == LOOKUP and use.site is not None]
                result.lookups.update(dict.fromkeys(found, node))
        result.applied = self.applied
        self._recurrent(result, closed)
        functions = {one.function.node for made in every for one in _seen_by(made) if one.function is not None}
        own: list[Sequence[cst.CSTNode]] = [[one.node for one in self.trained.body.statements]]
        for code in (*own, *([function] for function in functions)):
            unread, named = _unread_scopes(code, result.scopes, self.trained.body.file.imports)
            result.unread |= unread
            result.named |= named
        result.carried = {node: given for node, given in carried.items() if given and node not in result.weights}
        return result

    # -- scopes

    def _shared_scopes(self) -> set[Operation]:
        """The scopes in which a variable may be one that another call has made already."""
        shared: set[Operation] = set()
        entered: dict[tuple[object, ...], set[Operation]] = {}
        reusing: set[Operation] = set()
        unclear: set[Operation] = set()
        inside: dict[tuple[object, ...], list[Made]] = {}
        together: dict[tuple[object, ...], list[Made]] = {}
        numbered: set[cst.CSTNode] = set()
        for one in (*self.variables.made, *self.variables.layers):
            path = self.variables.path(one.operation)
            start = next((i for i, (scope, _) in enumerate(path) if reuses(scope)), None)
            if start is None:
                continue
            for scope, names in path[start:]:
                entered.setdefault(names, set()).add(scope)
                reusing.add(scope)
                if any(isinstance(name, Unclear) for name in names):
                    unclear.add(scope)
                if (one.repeated and not self._is_new_each_turn(one, path[start:])) or only_reuses(scope):
                    shared.add(scope)
            together.setdefault(path[-1][1], []).append(one)
            if one.repeated and one.operation.site is not None:
                numbered.add(one.operation.site.node)
            name = name_of(one.operation)
            if name is not None:
                inside.setdefault((*path[-1][1], name), []).append(one)
        for scopes in entered.values():
            if len(scopes) > 1:
                shared |= scopes
        if unclear and len(reusing) > 1:
            shared |= reusing
        for made in together.values():
            # Beside names with a number, only names without one are surely others.
            sites = {one.operation.site.node: one for one in made if one.operation.site is not None}
            others = [one for node, one in sites.items() if node not in numbered]
            apart = all(not any(map(str.isdigit, name_of(one.operation) or "0")) for one in others)
            if numbered & sites.keys() and (len(numbered & sites.keys()) > 1 or not apart):
                shared |= {scope for one in made for scope, _ in self.variables.path(one.operation)}
        for made in inside.values():
            if len(made) > 1:
                shared |= {scope for one in made for scope, _ in self.variables.path(one.operation)}
        return shared

    def _is_new_each_turn(self, one: Made, path: Sequence[tuple[Operation, tuple[object, ...]]]) -> bool:
        """Whether what a loop makes is another one in each turn: it has the number of the turn in its name, or it is a
        layer without a name. The scopes of a `path` are entered once, around that loop.
        """
        site = one.operation.site
        file = next(
            (file for file in (self.trained.body.file, *self.trained.files) if site and file.path == site.path), None
        )
        again = {effect.operation for effect in self.trained.machine.effects if effect.repeated}
        if site is None or file is None or any(scope in again or scope.site is None for scope, _ in path):
            return False
        above = list(file.above(site.node))
        loops = [node for node in above if isinstance(node, _LOOPS)]
        scopes = {scope.site.node for scope, _ in path if scope.site is not None}
        items = [node for node in above if isinstance(node, cst.With) for item in node.items if item.item in scopes]
        if not items or not loops or above.index(loops[0]) > above.index(items[0]):
            return False
        inside = above[: above.index(items[0])]
        if sum(isinstance(node, _LOOPS) for node in inside) != 1 or not isinstance(loops[0], cst.For):
            return False
        name = one.operation.argument(None, "name", "scope")
        if name is None or is_nothing(name):
            return one in self.variables.layers
        return isinstance(site.node, cst.Call) and _is_numbered(site.node, loops[0])

    def _keeps(self, scope: Operation) -> bool:
        """Whether what a scope sets can be given to what is made inside."""
        for name in ("caching_device", "custom_getter", "constraint", "dtype"):
            given = scope.kwargs.get(name)
            if not is_nothing(given):
                return False
        sets = [self._set(scope, key) for key in ("initializer", "regularizer")]
        if len(scope.args) > 3 or None in sets:
            return False
        return not (any(sets) or reuses(scope)) or not any(scope in one.scopes for one in self._unclear_calls())

    def _unclear_calls(self) -> list[Operation]:
        """Calls that may make variables which nobody sees here."""
        return [
            one
            for one in self.variables.effects
            if one.symbol in ("call", "generator") and not _is_layer(one.args[0] if one.args else None)
        ]

    def _set(self, scope: Operation, key: str) -> cst.BaseExpression | bool | None:
        """What a scope sets for variables, as an expression; False for nothing, None for what cannot be copied."""
        given = scope.kwargs.get(key)
        if given is None or is_nothing(given):
            return False
        if isinstance(given, Symbol) and given.name.startswith("tf."):
            return cst.parse_expression(given.name)
        site = given.site
        if not isinstance(given, Operation) or site is None or not isinstance(site.node, cst.Call):
            return None
        return site.node

    def _carried(self, one: Made) -> dict[str, cst.BaseExpression] | None:
        """What the scopes around a variable or a layer set for it; None where that cannot be said at its place."""
        found: dict[str, cst.BaseExpression] = {}
        for scope, _ in self.variables.path(one.operation):
            for key in ("initializer", "regularizer"):
                given = self._set(scope, key)
                if not isinstance(given, cst.BaseExpression):
                    continue
                found[key] = given
                if not self._is_seen(scope, given, one):
                    return None
        if "regularizer" in found and one.operation.symbol.startswith("tf.contrib."):
            return None
        if found and one.operation.symbol in (*CELLS, *RECURRENT):
            return None
        return found

    def _is_seen(self, scope: Operation, given: cst.BaseExpression, one: Made) -> bool:
        """Whether an expression of a scope means the same where a variable or a layer is made."""
        if names_in(given) <= {"tf"}:
            return True
        here, there = one.operation.site, scope.site
        written = there is not None and any(given is arg.value for call in calls_in(there.node) for arg in call.args)
        return written and here is not None and there is not None and here.frame is there.frame

    # -- names

    def _names(self) -> dict[cst.CSTNode, str | None]:
        """The names of the layers of the weights: that which the call gives, where no other layer has it.

        Those of one name get the scopes around them before it, and have none where that is not known.
        """
        taken = Counter(name for one in self.variables.layers if (name := name_of(one.operation)) is not None)
        taken.update(("weight", "variable"))  # what Keras calls those without a name
        result: dict[cst.CSTNode, str | None] = {}
        alone: dict[cst.CSTNode, str] = {}
        for node, [first, *more] in self.by_node.items():
            names = [name_of(one.operation) for one in (first, *more)]
            told = [name for name in names if name is not None]
            if more or first.repeated:
                apart = len(told) == len(names) == len(set(told)) and not first.repeated
                result[node] = "" if apart and not any(name in taken for name in told) else None
                taken.update(told if apart else [])
            elif names[0] is None:
                result[node] = "" if first.operation.symbol == GET else None
            else:
                alone[node] = names[0]
        shared = Counter([*taken.elements(), *alone.values()])
        for node, name in alone.items():
            path = self.variables.path(self.by_node[node][0].operation)
            parts = [*(path[-1][1] if path else ()), name]
            whole = "_".join(str(part) for part in parts).replace("/", "_") if shared[name] > 1 else name
            known = all(isinstance(part, str) for part in parts) and taken[whole] == 0
            result[node] = None if not known else "" if whole == name else whole
            taken[whole] += known
        return result

    # -- weights

    def _weight(
        self,
        node: cst.CSTNode,
        made: Sequence[Made],
        names: Mapping[cst.CSTNode, str | None],
        carried: Mapping[str, cst.BaseExpression],
    ) -> OwnWeight | None:
        if not isinstance(node, cst.Call):
            return None
        keys = [self.variables.path(one.operation) for one in made]
        if made[0].operation.symbol == GET and self._again(made, keys):
            return None
        if any(self.variables.only_read(one.operation) is not None for one in made):
            return None
        kinds = {self._is_value(one.operation) for one in made}
        wholes = {self._is_one_number(one.operation) for one in made}
        tensors = {self._tensor(one) for one in made}
        if len(tensors) > 1:
            tensors = {self._common_tensor(made)}
        if len(kinds) != 1 or len(wholes) != 1 or len(tensors) != 1:
            return None
        value, whole, tensor = kinds.pop(), wholes.pop(), tensors.pop()
        if value is None or (tensor is None and not self._applied(node, made)):
            return None
        return OwnWeight(tensor, names[node], value, whole, carried)

    # -- recurrent networks

    def _recurrent(self, result: OwnWeights, closed: Collection[Operation]) -> None:
        """Finds the calls that run cells over sequences, and these cells."""
        runs: dict[cst.CSTNode, list[Made]] = {}
        for one in self.variables.layers:
            if one.operation.symbol in RECURRENT and one.operation.site is not None:
                runs.setdefault(one.operation.site.node, []).append(one)
        found: dict[Operation, str] = {}
        for node, made in runs.items():
            cells = [self._cells_of(one.operation) for one in made]
            dtypes = {_dtype(one.operation) for one in made}
            inside = any(scope in closed for one in made for scope, _ in self.variables.path(one.operation))
            if inside or None in cells or len(dtypes) != 1 or None in dtypes:
                continue
            result.recurrent.add(node)
            found.update((cell, str(next(iter(dtypes)))) for some in cells for cell in some or ())
        used = {cell for cell in found if self._only_run(cell, found, result.recurrent)}
        for node, made in runs.items():
            if any(cell not in used for one in made for cell in self._cells_of(one.operation) or ()):
                result.recurrent.discard(node)
        result.cells = {
            cell.site.node: dtype for cell, dtype in found.items() if cell in used and cell.site is not None
        }

    def _cells_of(self, operation: Operation) -> list[Operation] | None:
        """The cells that a call runs, those inside of others too; None where they are not known."""
        parameters = RECURRENT[operation.symbol]
        found: list[Operation] = []
        for name in [name for name in parameters if name.startswith("cell")]:
            value = operation.argument(parameters.index(name), name)
            inner = self._cells_in(value)
            if inner is None:
                return None
            found += inner
        return found

    def _cells_in(self, value: Value | None) -> list[Operation] | None:
        if isinstance(value, Either):
            parts = [self._cells_in(one) for one in alternatives(value)]
            return None if None in parts else list(dict.fromkeys(cell for part in parts for cell in part or ()))
        if not isinstance(value, Operation) or value.symbol not in CELLS or value.site is None:
            return None
        if value.symbol.endswith(".DropoutWrapper"):
            wrapped = self._cells_in(value.argument(0, "cell"))
            return [value, *wrapped] if wrapped is not None else None
        if not value.symbol.endswith(".MultiRNNCell"):
            return [value]
        given = value.argument(0, "cells")
        content = self.trained.machine.content_of(given) if given is not None else None
        if content is None or len(set(content.items)) < len(content.items) or not content.items:
            return None
        found = [value]
        for one in content.items:
            inner = self._cells_in(one)
            if inner is None:
                return None
            found += inner
        made = {one.operation: one for one in self.variables.layers}
        return found if not content.more or all(made[one].repeated for one in found[1:]) else None

    def _only_run(self, cell: Operation, cells: Collection[Operation], runs: Collection[cst.CSTNode]) -> bool:
        """Whether nothing is done with a cell but to put it into others and to run it."""
        uses = self.variables.uses(cell)
        return all(
            use in cells or (use.symbol in RECURRENT and use.site is not None and use.site.node in runs)
            for use in uses
            if use.symbol not in (".append", ".extend")
        )

    # -- weights in functions

    def _applied(self, node: cst.Call, made: Sequence[Made]) -> bool:
        """Whether a function does nothing with a variable but return it, to calls that have a tensor for its layer."""
        found: dict[cst.CSTNode, str] = {}
        for one in made:
            frame = one.operation.site.frame if one.operation.site is not None else None
            caller = frame.caller if frame is not None else None
            if one.function is None or one.caller is None or caller is None or not _returns(one.function.node, node):
                return False
            tensor = self._tensor(one.caller)
            if tensor is None or found.setdefault(caller.node, tensor) != tensor:
                return False
        if any(self.applied.get(call, tensor) != tensor for call, tensor in found.items()):
            return False
        self.applied.update(found)
        return True

    def _again(self, made: Sequence[Made], paths: Sequence[list[tuple[Operation, tuple[object, ...]]]]) -> bool:
        """Whether a variable of this name is made twice."""
        own = {id(one) for one in made}
        keys: list[tuple[object, ...]] = []
        for one, path in zip(made, paths):
            name = name_of(one.operation)
            if name is None:
                continue
            keys.append((*(path[-1][1] if path else ()), name))
        for one in self.variables.made:
            if id(one) not in own and one.operation.symbol == GET and name_of(one.operation) is not None:
                path = self.variables.path(one.operation)
                if (*(path[-1][1] if path else ()), name_of(one.operation)) in keys:
                    return True
        return len(set(keys)) < len(keys)

    def _is_value(self, operation: Operation) -> bool | None:
        """Whether a variable is given the value that it starts at, and not a shape; None where that is not known."""
        if operation.symbol != GET:
            first = operation.argument(0, "initial_value")
            return None if first is None or isinstance(first, (Function, Class, Symbol)) else True
        shape = operation.argument(1, "shape")
        initializer = operation.argument(3, "initializer")
        given = not is_nothing(shape)
        if is_nothing(initializer):
            return False if given else None
        makes = initializer.name if isinstance(initializer, Symbol) else ""
        makes = initializer.symbol if isinstance(initializer, Operation) else makes
        if makes.endswith(_INITIALIZERS) or ".initializers." in makes:
            return False if given else None
        if isinstance(initializer, (Symbol, Function, Class)) or makes in ("", "parameter", "call", "getattr"):
            return True if isinstance(initializer, (Constant, Items)) and not given else None
        return None if given else True

    def _is_one_number(self, operation: Operation) -> bool:
        """Whether the shape of a variable is the number of its elements."""
        shape = operation.argument(1, "shape") if operation.symbol == GET else None
        if isinstance(shape, Constant):
            return isinstance(shape.value, int)
        if not isinstance(shape, Operation) or shape.symbol != "getitem":
            return False
        of, index = shape.args[:2]
        about = isinstance(of, Operation) and (of.symbol in (".get_shape", ".as_list") or _is_shape(of))
        return about and isinstance(index, (Constant, Operation)) and not _is_slice(index)

    def _tensor(self, one: Made) -> str | None:
        """The tensor to call the layer with: one that it is used with, where that has a name already."""
        uses = self.variables.uses(one.operation)
        beside = [value for use in uses for value in use.given]
        names = [name for name, value in one.tensors.items() if not self.variables.features(value)]
        for value in beside:
            for name in list(one.tensors)[::-1]:
                if one.tensors[name] is value:
                    return name
        inner = [name for name in names if name in one.scope.own]
        if inner and one.scope is not self.trained.scope:
            return inner[0]
        whole = next((name for name, value in one.tensors.items() if self.variables.features(value)), None)
        if whole is None:
            return names[0] if names else None
        for value in (*beside, *uses):
            key = self.variables.key_behind(value)
            if key is not None:
                return f'{whole}["{key}"]' if '"' not in key and "\\" not in key else None
        return list(one.tensors)[-1]

    def _common_tensor(self, made: Sequence[Made]) -> str | None:
        """A tensor that has a name wherever the call of a layer is run; that of the function itself, if it can be."""
        known = [[name for name, value in one.tensors.items() if not self.variables.features(value)] for one in made]
        common = [name for name in known[0] if all(name in other for other in known[1:])]
        own = [name for name in common if name in made[0].scope.own]
        return next(iter([*own, *common]), None)


def _seen_by(made: Made) -> Iterator[Made]:
    """A variable, and the same as seen from the calls that led to it."""
    one: Made | None = made
    while one is not None:
        yield one
        one = one.caller


def _is_numbered(call: cst.Call, loop: cst.For) -> bool:
    """Whether the name that a call is given has the number of a loop's turn in it, and else what no turn changes."""
    given = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value in ("name", "scope")]
    counts = last_name(loop.iter.func) if isinstance(loop.iter, cst.Call) else None
    target: cst.BaseExpression = loop.target
    if counts == "enumerate" and isinstance(target, cst.Tuple):
        target = target.elements[0].value
    if len(given) != 1 or counts not in ("range", "enumerate") or not isinstance(target, cst.Name):
        return False
    changed = names_changed([loop]) - {target.value}
    rebound = sum(one.name == target.value for one in bound_in(loop)) > 1
    return not rebound and not names_in(given[0]) & changed and _says_number(given[0], target.value)


def _says_number(text: cst.BaseExpression, count: str) -> bool:
    """Whether a text has a number in it as it is: `"layer_%d" % i`, `name + str(i)`, `f"{name}_{i}"`."""
    if isinstance(text, cst.BinaryOperation) and isinstance(text.operator, cst.Modulo):
        right = text.right
        parts = [one.value for one in right.elements] if isinstance(right, cst.Tuple) else [right]
        return isinstance(text.left, cst.SimpleString) and any(_is_name(one, count) for one in parts)
    if isinstance(text, cst.BinaryOperation) and isinstance(text.operator, cst.Add):
        return _says_number(text.left, count) or _says_number(text.right, count)
    if isinstance(text, cst.FormattedString):
        inner = [one for one in text.parts if isinstance(one, cst.FormattedStringExpression)]
        return any(one.format_spec is None and _is_name(one.expression, count) for one in inner)
    if isinstance(text, cst.Call) and any(_is_name(arg.value, count) for arg in text.args):
        formats = isinstance(text.func, cst.Attribute) and isinstance(text.func.value, cst.SimpleString)
        return (formats and last_name(text.func) == "format") or _is_name(text.func, "str")
    return False


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _unread_scopes(
    nodes: Sequence[cst.CSTNode], scopes: Collection[cst.CSTNode], imports: ImportMap
) -> tuple[set[cst.CSTNode], set[cst.CSTNode]]:
    """The scopes in some code whose names are read behind them for the names of operations at most (`name=s.name`).

    With the calls of these operations: what an operation is called changes nothing.
    """
    names = [one for node in nodes for one in name_nodes(node)]
    given = {
        item.asname.name: item.item
        for node in nodes
        for one in of_kinds(node, cst.With)
        for item in one.items
        if item.asname is not None and item.item in scopes
    }
    calls = [one for node in nodes for one in calls_in(node)] if given else []
    named = {name: call for call in calls if (name := _named_after(call, imports)) is not None}
    found: set[cst.CSTNode] = set()
    after: set[cst.CSTNode] = set()
    for target, scope in given.items():
        if isinstance(target, cst.Name):
            later = names[names.index(target) + 1 :]
            reads = [one for one in later if one.value == target.value and one not in given]
            if all(one in named for one in reads):
                found.add(scope)
                after |= {named[one] for one in reads}
    return found, after


def _named_after(call: cst.Call, imports: ImportMap) -> cst.Name | None:
    """The scope in `tf.nn.relu(x, name=scope.name)`, where the name is only that of an operation."""
    symbol = imports.tensorflow(call.func) or ""
    given = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "name"]
    value = given[0] if len(given) == 1 else None
    module, _, operation = symbol.rpartition(".")
    plain = {"tf.nn": operation in _OPERATIONS, "tf": operation in _TENSORS, "tf.math": True}.get(module, False)
    if not plain or not isinstance(value, cst.Attribute) or value.attr.value != "name":
        return None
    return value.value if isinstance(value.value, cst.Name) else None


def _returns(function: cst.FunctionDef | cst.Lambda, made: cst.Call) -> bool:
    """Whether all that a function does with what a call makes is to return it, always."""
    if isinstance(function, cst.Lambda):
        return function.body is made
    returned = returns_in(function.body)
    if len(returned) != 1:
        return False
    value = returned[0].value
    if not isinstance(value, cst.Name):
        return value is made
    names = [one for one in name_nodes(function) if one.value == value.value]
    return len(names) == 2 and value_given(function, names[0]) is made


def _dtype(operation: Operation) -> str | None:
    """The type of what a call runs over sequences computes."""
    given = operation.argument(RECURRENT[operation.symbol].index("dtype"), "dtype")
    if is_nothing(given):
        return "float32"
    name = given.name if isinstance(given, Symbol) else ""
    return name.removeprefix("tf.") if name in ("tf.float32", "tf.float64") else None


def _is_layer(value: Value | None) -> bool:
    return isinstance(value, Operation) and value.symbol.startswith("tf.")


def _is_shape(value: Operation) -> bool:
    return value.symbol == "getattr" and isinstance(value.args[1], Constant) and value.args[1].value == "shape"


def _is_slice(value: Value) -> bool:
    return isinstance(value, Operation) and value.symbol == "slice"


__all__ = ["OwnWeight", "OwnWeights", "own_weights", "touches_weights"]
