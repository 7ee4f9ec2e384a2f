"""A function that builds the same network each time that it is called, as a Keras model that is made once.

`tf.variable_scope("tower", reuse=tf.AUTO_REUSE)` gives the second call of a function the variables of the first. That
is what calling a Keras model twice means, so the calls become `tower_model(a)` and `tower_model(b)`. Which calls share
what is asked of the evaluator: all variables of one must be those of the other, and there must be no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import libcst as cst

from migrator.ir.machine import Effect, same
from migrator.ir.values import Constant, Frame, Function, Method, Operation, Value
from migrator.ir.values import Sequence as Items
from migrator.names.bindings import Form, all_given, bound_in, names_changed, value_given
from migrator.program.calls import (
    calls_in,
    classes_in,
    functions_in,
    last_name,
    nodes_in,
    parameters_of,
    with_arguments,
)
from migrator.program.helpers import Helper, Scope, helper_of, touches_training
from migrator.program.modes import ALL, ModalStatement
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.reductions import Edits, applied, bound_arguments
from migrator.program.train_body import TrainBody
from migrator.program.trained import Trained
from migrator.query.variables import GET, PARAMETERS, SCOPE, Made, Variables, name_of
from migrator.walking import of_kinds

_FEATURES, _LABELS, _MODE = "features", "labels", "mode"  # an Estimator gives them by these names
#: What is done once a call, or makes other variables each time: a Keras model does that once, or not at all.
_EACH_TIME = (
    "tf.keras.",
    "tf.summary.",
    "tf.Print",
    "tf.print",
    "tf.py_func",
    "tf.assert",
    "tf.debugging.",
    "tf.Assert",
)
_PLAIN = (cst.Name, cst.Attribute, cst.Subscript)
#: What changes nothing but a list that the function itself makes.
_FUNCTIONS = frozenset(
    """abs bool dict enumerate float format int isinstance len list max min range reversed round set sorted str sum
    tuple zip""".split()  # noqa: SIM905
)
_METHODS = frozenset("as_list copy format get get_shape items keys lower ndims upper values".split())  # noqa: SIM905
_CHANGES = (cst.Global, cst.Nonlocal, cst.Yield, cst.Await, cst.Del)
_PARTS = (Form.PART, Form.CALLED)
_ON_OWN_LISTS = frozenset(("append", "extend", "insert"))


def with_shared_networks(file: ParsedFile, files: Iterable[ParsedFile]) -> ParsedFile:
    """The file with such functions as Keras models, where a model_fn of it calls them.

    `files` are all of the project.
    """
    others = [one for one in files if one.path != file.path]
    if "EstimatorSpec" not in file.bare or not any("reuse" in one.bare.lower() for one in (file, *others)):
        return file
    shared = False
    while True:
        edits = _first(file, others, shared)
        if edits is None:
            return file
        file, shared = applied(file, edits), len(_model_fns(file)) == 1


def _first(file: ParsedFile, others: Sequence[ParsedFile], shared: bool) -> Edits | None:
    """The edits of the first functions that are found; `shared` says that some were found before."""
    may_share = [] if shared else _shared_by_name(file, others)
    for function in _model_fns(file):
        if shared or _comes_to(file, function, may_share):
            edits = _Network(file, others, function).edits(shared)
            if edits:
                return edits
    return None


def _shared_by_name(file: ParsedFile, others: Sequence[ParsedFile]) -> list[cst.FunctionDef]:
    """The functions of a file in which all calls of a function of the project stand, and these are several.

    That much can be said without evaluating anything, see `_Network._is_called_by`.
    """
    files = (file, *others)
    calls = Counter(last_name(call.func) for where in files for call in calls_in(where.module))
    names = {one.name.value for where in files for one in functions_in(where.module)}
    several = {name: calls[name] for name in names if calls[name] > 1}
    found = []
    for function in functions_in(file.module):
        own = Counter(name for call in calls_in(function.body) if (name := last_name(call.func)) in several)
        if any(count == several[name] for name, count in own.items()):
            found.append(function)
    return found


def _comes_to(file: ParsedFile, function: cst.FunctionDef, targets: Sequence[cst.FunctionDef]) -> bool:
    """Whether a function is one of some of its file, or may come to one, by the names of functions and classes."""
    if not targets:
        return False
    by_name: dict[str, list[cst.FunctionDef]] = {}
    for one in functions_in(file.module):
        by_name.setdefault(one.name.value, []).append(one)
    for made in classes_in(file.module):
        by_name.setdefault(made.name.value, []).extend(functions_in(made))
    found = {function}
    queue = [function]
    while queue:
        one = queue.pop()
        if any(one is target for target in targets):
            return True
        for name in {last_name(call.func) for call in calls_in(one.body)} & by_name.keys():
            queue += [other for other in by_name[name] if other not in found]
            found.update(by_name[name])
    return False


def _model_fns(file: ParsedFile) -> list[cst.FunctionDef]:
    """The functions of a file that take what an Estimator gives its model_fn."""
    every = [one for one in functions_in(file.module) if isinstance(one.body, cst.IndentedBlock)]
    return [one for one in every if {_FEATURES, _MODE} <= {each.name.value for each in parameters_of(one)}]


@dataclass
class _Call:
    """A call of a function of the program, and what it makes: of each variable or layer, how it is found again."""

    frame: Frame
    around: tuple[Frame, ...]
    node: cst.Call
    keys: list[tuple[object, ...]] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    effects: list[Operation] = field(default_factory=list)


@dataclass(frozen=True)
class _Argument:
    """What a parameter is given by each call: tensors, or the same of all."""

    name: str
    values: Sequence[cst.BaseExpression]
    is_tensor: bool
    reuses: bool = False
    asked: Sequence[cst.BaseExpression] = ()  # the same, in words that are known before the first call


class _Network:
    """What a model_fn builds in training."""

    def __init__(self, file: ParsedFile, others: Sequence[ParsedFile], function: cst.FunctionDef) -> None:
        self.file = file
        self.function = function
        self.project = Project.of([file, *others])
        self.variables: Variables
        self.trained: Trained
        self.calls: dict[Frame, _Call] = {}
        self.keys: list[tuple[object, ...]] = []

    def edits(self, shared: bool) -> Edits | None:
        lines = [ModalStatement(one, ALL) for one in self.function.body.body if isinstance(one, cst.BaseStatement)]
        body = TrainBody(self.file, self.function, lines, frozenset(), lambda name: 0, self.project)
        given: dict[str, Value] = {}

        def watch(trained: Trained) -> Callable[[Effect], None]:
            for name in (_FEATURES, _LABELS):
                given[name] = trained.parameters.get(name) or Constant(None, None)
            is_features, is_labels = (lambda one: one is given[_FEATURES]), (lambda one: one is given[_LABELS])
            self.variables = Variables(trained.machine, is_features, is_labels, trained.scope)
            return self.variables.watch

        try:
            with Trained(body, self.project.files, watch) as trained:
                self.trained = trained
                self._read()
                return self._shared() or (self._without_reuse() if shared else None)
        except Blocked:
            return None

    def _read(self) -> None:
        """Notes what each call of a function makes."""
        made = {one.operation: one for one in (*self.variables.made, *self.variables.layers)}
        counts: dict[tuple[object, ...], int] = {}
        for operation in self.variables.effects:
            frames = _frames(operation)
            one = made.get(operation)
            key = self._key(operation, counts) if one is not None else None
            if key is not None:
                self.keys.append(key)
            for depth, frame in enumerate(frames):
                node = frame.caller.node if frame.caller is not None else None
                if not isinstance(node, cst.Call):
                    break
                call = self.calls.setdefault(frame, _Call(frame, frames[:depth], node))
                call.effects.append(operation)
                if one is not None and key is not None:
                    call.keys.append(key)
                    call.made.append(one)

    def _key(self, operation: Operation, counts: dict[tuple[object, ...], int]) -> tuple[object, ...]:
        """The name that a variable or layer is found by: those without one are counted in their scope, entered anew."""
        path = self.variables.path(operation)
        names = path[-1][1] if path else ()
        name: object = name_of(operation)
        if name is None:
            entered = (path[-1][0] if path else None, operation.symbol)
            name = counts[entered] = counts.get(entered, 0) + 1
        return (operation.symbol, names, name)

    # -- calls

    def _shared(self) -> Edits | None:
        by_parent: dict[tuple[Frame, ...], list[_Call]] = {}
        for call in sorted(self.calls.values(), key=lambda one: len(one.around)):
            by_parent.setdefault(call.around, []).append(call)
        for calls in by_parent.values():
            for call in calls:
                group = [one for one in calls if one.keys == call.keys]
                if len(group) > 1 and group[0] is call and call.keys:
                    edits = self._of_group(group)
                    if edits:
                        return edits
        return None

    def _of_group(self, group: Sequence[_Call]) -> Edits | None:
        function = self._around(group[0].node)
        if function is None or any(self._around(one.node) is not function for one in group):
            return None
        parent: Helper = (self.file, function)
        inside = Scope.of(self.project, *parent)
        helpers = [helper_of(self.project, inside, one.node.func) for one in group]
        helper = helpers[0]
        if helper is None or any(one is None or one[1] is not helper[1] for one in helpers):
            return None
        if not self._is_alone(group, helper) or not self._may_be_once(group, helper):
            return None
        place = _place(parent[1], group[0].node)
        lines = [_place(parent[1], one.node) for one in group]
        if place is None or None in lines or not self._is_as_it_was(group, helper, parent[1]):
            return None
        arguments = self._arguments(group, helper[1], parent[1])
        if arguments is None or not any(one.is_tensor for one in arguments):
            return None
        return self._written(group, helper, place, arguments)

    def _around(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function of this file that a node stands in."""
        above = self.file.parents.get(node)
        while above is not None and not isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            above = self.file.parents.get(above)
        return above if isinstance(above, cst.FunctionDef) else None

    def _is_alone(self, group: Sequence[_Call], helper: Helper) -> bool:
        """Whether these are all calls of the function, each is made once, and nothing else has its variables."""
        nodes = {one.node for one in group}
        if len(nodes) < len(group) or sum(one.node in nodes for one in self.calls.values()) != len(group):
            return False
        if not self._is_called_by(helper[1].name.value, len(group)):
            return False
        for frame in group[0].around:  # what calls them is run once
            call = frame.caller.node if frame.caller is not None else None
            if not isinstance(call, cst.Call) or not self._is_called_by(last_name(call.func), 1):
                return False
            scope = Scope.of(self.project, self.file, self._around(call) or self.function)
            if helper_of(self.project, scope, call.func) is None:  # the object of a class, which may change
                return False
        own = set(group[0].keys)
        if len(own) < len(group[0].keys) or sum(key in own for key in self.keys) != len(own) * len(group):
            return False
        return not any(made.repeated or made.conditional for one in group for made in one.made)

    def _is_called_by(self, name: str, calls: int) -> bool:
        """Whether there are so many calls of a name in the project, and nothing else is done with it."""
        files = self.project.files
        called = sum(last_name(call.func) == name for one in files for call in calls_in(one.module))
        mentioned = sum(node.value == name for one in files for node in name_nodes(one.module))
        imported = sum(name in one.imports.names for one in files)
        return called == calls and mentioned <= calls + 1 + imported

    def _may_be_once(self, group: Sequence[_Call], helper: Helper) -> bool:
        """Whether what the function does may be done once, and depends on nothing but what it is given."""
        for one in group:
            for operation in one.effects:
                symbol = operation.symbol
                if symbol.startswith(_EACH_TIME) or "batch_norm" in symbol or symbol in ("print", "call", "generator"):
                    return False
                if symbol in PARAMETERS and symbol != GET:
                    return False
                if "initializer" not in symbol and ("random" in symbol or "truncated_normal" in symbol):
                    return False
        for where, function in self._reached(helper):
            if touches_training(self.project, where, function):
                return False
            if not all(self._is_known(where, function, call) for call in calls_in(function.body)):
                return False
            if any(isinstance(node, _CHANGES) or _is_in_place(node) for node in nodes_in(function.body)):
                return False
        return True

    def _is_as_it_was(self, group: Sequence[_Call], helper: Helper, parent: cst.FunctionDef) -> bool:
        """Whether nothing that is done from the first call to the last may change what the function reads beside its
        arguments: names of modules and of functions around it, entries and attributes of these.
        """
        reached = list(self._reached(helper))
        read = {name.value for _, function in reached for name in name_nodes(function)}
        between = [node for one in group for node in _between(parent, group[0].node, one.node)]
        nodes = [node for one in (*between, *(each.node for each in group)) for node in nodes_in(one)]
        calls = {one.node for one in group}
        for node in nodes:
            if isinstance(node, _CHANGES) or (_is_in_place(node) and not self._is_own(parent, node, read)):
                return False
            if not isinstance(node, cst.Call) or node in calls:
                continue
            if not self._is_known(self.file, parent, node):
                return False
            found = helper_of(self.project, Scope.of(self.project, self.file, parent), node.func)
            for where, function in self._reached(found) if found is not None else ():
                if any(isinstance(one, _CHANGES) or _is_in_place(one) for one in nodes_in(function.body)):
                    return False
                if not all(self._is_known(where, function, call) for call in calls_in(function.body)):
                    return False
        return True

    def _is_own(self, function: cst.FunctionDef, node: cst.CSTNode, read: set[str]) -> bool:
        """Whether a line changes a part of a dict or list that a function makes for itself, and no other one reads."""
        of = getattr(node, "target", None)
        while isinstance(of, (cst.Attribute, cst.Subscript)):
            of = of.value
        if not isinstance(of, cst.Name) or of.value in read:
            return False
        given = [value for target, value in all_given(function.body) if target.deep_equals(of)]
        bound = [one for one in bound_in(function) if one.name == of.value and one.form not in _PARTS]
        return len(bound) == len(given) > 0 and all(isinstance(one, (cst.List, cst.Dict)) for one in given)

    def _is_known(self, where: ParsedFile, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Whether a call changes nothing that lives longer than the call of its function."""
        if where.imports.tensorflow(call.func) is not None:
            return True
        if helper_of(self.project, Scope.of(self.project, where, function), call.func) is not None:
            return True
        if isinstance(call.func, cst.Name):
            own = {one.name for one in bound_in(function)}
            return call.func.value in own or call.func.value in _FUNCTIONS
        symbol = where.imports.resolve(call.func) or ""
        if symbol.startswith(("math.", "numpy.")) and "random" not in symbol:
            return True
        name = last_name(call.func)
        if name not in _ON_OWN_LISTS:
            return name in (*_METHODS, "reuse_variables")
        of = call.func.value if isinstance(call.func, cst.Attribute) else None
        given = [value for target, value in all_given(function.body) if of is not None and target.deep_equals(of)]
        bound = [one for one in bound_in(function) if isinstance(of, cst.Name) and one.name == of.value]
        return len(bound) == len(given) > 0 and all(isinstance(one, cst.List) for one in given)

    def _reached(self, helper: Helper) -> Iterator[Helper]:
        seen: set[cst.FunctionDef] = set()
        queue = [helper]
        while queue:
            where, function = queue.pop()
            if function in seen:
                continue
            seen.add(function)
            yield where, function
            scope = Scope.of(self.project, where, function)
            found = [helper_of(self.project, scope, call.func) for call in calls_in(function.body)]
            queue += [one for one in found if one is not None]

    # -- arguments

    def _arguments(
        self, group: Sequence[_Call], function: cst.FunctionDef, parent: cst.FunctionDef
    ) -> list[_Argument] | None:
        """What the parameters are given in a function; None where calls differ in something that is no tensor."""
        method = isinstance(group[0].node.func, cst.Attribute) and _is_method(self.file, function)
        told = function.with_changes(params=function.params.with_changes(params=function.params.params[1:]))
        given = [bound_arguments(told if method else function, one.node) for one in group]
        first = given[0]
        if first is None:
            return None
        before = [names_changed(_between(parent, group[0].node, one.node)) for one in group]
        if set().union(*before) & names_in(group[0].node.func):
            return None
        found: list[_Argument] = []
        tensors: list[list[Value]] = [[] for _ in group]
        for name in first:
            values = [one[name] for one in given if one is not None]
            if len(values) < len(group):
                return None
            known = [self._value(one) for one in values]
            if all(one is not None and self.variables.is_tensor(one) for one in known):
                if any(one is self.trained.parameters.get(_FEATURES) for one in known):
                    return None
                asked = [self._asked(parent, one) for one in values]
                if not all(self._is_there(one, changed) for one, changed in zip(asked, before)):
                    return None
                for index, one in enumerate(known):
                    tensors[index].append(cast("Value", one))
                found.append(_Argument(name, values, True, asked=asked))
                continue
            if any(isinstance(one, (Function, Method)) for one in known):
                return None
            codes = {self.file.code(one) for one in values}
            alike = len(codes) == 1 and not names_in(values[0]) & set().union(*before)
            first_known = known[0]
            alike = alike or (
                isinstance(first_known, Constant) and all(one is not None and same(one, first_known) for one in known)
            )
            reuses = self._only_says_reuse(function, name)
            if not alike and not reuses:
                return None
            found.append(_Argument(name, values, False, reuses))
        whole = [self._value(one.node) for one in group]
        if not all(one is not None and self._is_result(one) for one in whole):
            return None
        if any(self._reads_more(call, value, known) for call, value, known in zip(group, whole, tensors)):
            return None
        return found

    def _value(self, node: cst.BaseExpression) -> Value | None:
        """What an argument, or what a line gives a name, is; None where that is not noted, or differs."""
        found = list(dict.fromkeys(self.trained.machine.noted.get(node, [])))
        return found[0] if len(found) == 1 else None

    def _is_result(self, value: Value) -> bool:
        if isinstance(value, Items):
            content = self.trained.machine.content_of(value)
            return content is not None and not content.more and all(map(self.variables.is_tensor, content.items))
        return isinstance(value, Operation) and self.variables.is_tensor(value)

    def _reads_more(self, call: _Call, result: Value | None, tensors: Sequence[Value]) -> bool:
        """Whether a call, or what it returns, is computed from tensors that it is not given."""
        given = [one.given for one in call.effects]
        values = [*(value for some in given for value in some), *(() if result is None else (result,))]
        return self.variables.reads_features(values, tensors)

    def _asked(self, parent: cst.FunctionDef, node: cst.BaseExpression) -> cst.BaseExpression:
        """What a name is given by the one line that binds it, where that says which tensor it is."""
        bound = [one for one in bound_in(parent) if isinstance(node, cst.Name) and one.name == node.value]
        target = bound[0].target if len(bound) == 1 else None
        value = value_given(parent.body, target) if target is not None else None
        return value if value is not None and _is_plain(value) else node

    def _is_there(self, node: cst.BaseExpression, changed: set[str]) -> bool:
        """Whether a tensor can be asked for its shape before the first call, and has no variables of its own."""
        if names_in(node) & changed:
            return False
        if _is_plain(node):
            return True
        inner = set(calls_in(node))
        calls = [one.node for one in self.calls.values()]
        made = [one.operation for one in (*self.variables.made, *self.variables.layers)]
        return not inner & {*calls, *(one.site.node for one in made if one.site is not None)}

    def _only_says_reuse(self, function: cst.FunctionDef, name: str) -> bool:
        """Whether a parameter is only what `reuse=` of TensorFlow is given."""
        reads = [one for one in name_nodes(function.body) if one.value == name]
        told = [arg.value for call in calls_in(function.body) for arg in self._reuses(call)]
        names = {id(arg.keyword) for call in calls_in(function.body) for arg in call.args if arg.keyword is not None}
        told += [one.test for one in of_kinds(function.body, cst.If) if _reuses_variables(one)]
        return all(any(one is value for value in told) or id(one) in names for one in reads)

    def _reuses(self, call: cst.Call) -> list[cst.Arg]:
        if not (self.file.imports.tensorflow(call.func) or "").startswith("tf."):
            return []
        return [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "reuse"]

    # -- new code

    def _written(
        self, group: Sequence[_Call], helper: Helper, place: cst.BaseStatement, arguments: Sequence[_Argument]
    ) -> Edits | None:
        prefix = next((name for name in self.file.imports.names if self._is_tensorflow(name)), None)
        if prefix is None:
            return None
        taken = {node.value for node in name_nodes(self.file.module)}
        model = _new_name(f"{helper[1].name.value.strip('_')}_model", taken)
        edits = Edits()
        before: list[str] = []
        inputs: list[str] = []
        spoken: list[list[str]] = [[] for _ in group]
        first: dict[str, str] = {}
        for one in arguments:
            if not one.is_tensor:
                continue
            codes = [self.file.code(value) for value in one.asked]
            told = [self.file.code(value) for value in one.values]
            for index, value in enumerate(one.values):
                if not _is_plain(value):
                    named = _new_name(f"{one.name}_{index + 1}", taken)
                    before.append(f"{named} = {codes[index]}")
                    codes[index] = told[index] = named
            shape = f"{codes[0]}.shape"
            if any(code != codes[0] for code in codes):  # an axis in which they differ has any size
                shape = _new_name(f"{one.name}_shape", taken)
                others = [f".most_specific_compatible_shape({code}.shape)" for code in dict.fromkeys(codes[1:])]
                before.append(f"{shape} = {codes[0]}.shape{''.join(others)}")
            first[one.name] = _new_name(f"{one.name}_input", taken)
            inputs.append(first[one.name])
            before.append(f"{first[one.name]} = {prefix}.keras.Input(batch_shape={shape}, dtype={codes[0]}.dtype)")
            for index, code in enumerate(told):
                spoken[index].append(code)
        call = group[0].node
        new = {id(one.values[0]): cst.Name(first[one.name]) for one in arguments if one.is_tensor}
        new.update({id(one.values[0]): cst.Name("None") for one in arguments if one.reuses})
        args = [arg.with_changes(value=new.get(id(arg.value), arg.value)) for arg in call.args]
        built = self.file.code(with_arguments(call, args))
        whole = inputs[0] if len(inputs) == 1 else f"[{', '.join(inputs)}]"
        before.append(f"{model} = {prefix}.keras.Model({whole}, {built})")
        for each, codes in zip(group, spoken):
            given = codes[0] if len(codes) == 1 else f"[{', '.join(codes)}]"
            edits.expressions[each.node] = cst.parse_expression(f"{model}({given})")
        edits.lines[place] = [*map(cst.parse_statement, before), place]
        return edits

    def _is_tensorflow(self, name: str) -> bool:
        return name.isidentifier() and self.file.imports.resolve(cst.Name(name)) == "tf"

    # -- what is left of scopes

    def _without_reuse(self) -> Edits | None:
        """Without what only said that variables are shared, where none are any more."""
        if len(set(self.keys)) < len(self.keys):
            return None
        made = [one.operation for one in (*self.variables.made, *self.variables.layers)]
        around = {scope.site.node for one in made for scope in one.scopes if scope.site is not None}
        told = [one.site.node for one in made if one.site is not None and self._tells_reuse(one.site.node)]
        inner = [node for node in told if not any(one is not node and one in told for one in calls_in(node))]
        if inner:
            edits = Edits()
            for node in cast("list[cst.Call]", inner):
                reuses = self._reuses(node)
                edits.expressions[node] = with_arguments(node, [arg for arg in node.args if arg not in reuses])
            return edits
        for line in nodes_in(self.file.module):
            if isinstance(line, cst.With) and isinstance(line.body, cst.IndentedBlock):
                call = line.items[0].item if len(line.items) == 1 else None
                scope = isinstance(call, cst.Call) and self.file.imports.tensorflow(call.func) == SCOPE
                if scope and isinstance(call, cst.Call) and self._reuses(call) and call not in around:
                    return Edits({line: [*line.body.body]})
            if isinstance(line, (cst.If, cst.SimpleStatementLine)) and _reuses_variables(line):
                return Edits({line: []})
        return None

    def _tells_reuse(self, node: cst.CSTNode) -> bool:
        """Whether a call of a layer in this file says `reuse=`."""
        return isinstance(node, cst.Call) and node in self.file.parents and bool(self._reuses(node))


def _is_in_place(node: cst.CSTNode) -> bool:
    """Whether a node gives an attribute or an entry of something a value."""
    given = isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor))
    of = [node.target] if given else [node.name] if isinstance(node, cst.AsName) else []  # type: ignore[attr-defined]
    while of:
        one = of.pop()
        if isinstance(one, (cst.Attribute, cst.Subscript)):
            return True
        if isinstance(one, (cst.Tuple, cst.List)):
            of += [each.value for each in one.elements]
    return False


def _reuses_variables(line: cst.BaseStatement) -> bool:
    """Whether all that a line does, or does under a condition, is `scope.reuse_variables()`."""
    if isinstance(line, cst.If):
        inner = line.body.body if isinstance(line.body, cst.IndentedBlock) else ()
        only = inner[0] if len(inner) == 1 and line.orelse is None and isinstance(line.test, cst.Name) else None
        return isinstance(only, cst.SimpleStatementLine) and _reuses_variables(only)
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    value = small.value if isinstance(small, cst.Expr) else None
    return isinstance(value, cst.Call) and last_name(value.func) == "reuse_variables" and not value.args


def _frames(operation: Operation) -> tuple[Frame, ...]:
    found: list[Frame] = []
    site = operation.site
    while site is not None and site.frame is not None:
        found.append(site.frame)
        site = site.frame.caller
    return tuple(found[::-1])


def _is_plain(node: cst.BaseExpression) -> bool:
    return isinstance(node, _PLAIN) and not calls_in(node)


def _is_method(file: ParsedFile, function: cst.FunctionDef) -> bool:
    around = file.parents.get(function)
    return isinstance(around, cst.IndentedBlock) and isinstance(file.parents.get(around), cst.ClassDef)


def _new_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def _place(function: cst.FunctionDef, node: cst.Call) -> cst.BaseStatement | None:
    """The line of a call, which is run whenever the function is."""
    block: cst.CSTNode = function.body
    while isinstance(block, cst.IndentedBlock):
        line = next((one for one in block.body if any(inner is node for inner in nodes_in(one))), None)
        if isinstance(line, cst.SimpleStatementLine):
            return line
        if not isinstance(line, cst.With) or not any(inner is node for inner in nodes_in(line.body)):
            return None
        block = line.body
    return None


def _between(function: cst.FunctionDef, first: cst.Call, last: cst.Call) -> list[cst.CSTNode]:
    """The code of a function from the line of one call to before that of another."""
    lines = of_kinds(function.body, cst.SimpleStatementLine, cst.BaseCompoundStatement)
    simple = [one for one in lines if isinstance(one, cst.SimpleStatementLine)]
    around = [next(one for one in simple if any(inner is node for inner in nodes_in(one))) for node in (first, last)]
    start, end = (next(index for index, one in enumerate(lines) if one is line) for line in around)
    whole = [one for one in lines[start:end] if not any(inner is around[1] for inner in nodes_in(one))]
    opened = [item.asname for one in lines[start:end] if isinstance(one, cst.With) for item in one.items if item.asname]
    return [*whole, *(one.name for one in opened)]
