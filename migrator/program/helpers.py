"""Helper functions of a model_fn: which there are, which may stay where they are, and what the mode means in them.

A helper that builds the network stays a function. A parameter that only tells it the mode (`mode`, `is_training`) goes,
since Keras tells its layers whether they train; so does the argument in every call.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

import libcst as cst

from migrator.names.bindings import values_given
from migrator.program import keras_calls
from migrator.program.calls import calls_in, functions_in, is_false, is_none, is_true, number, parameters_of
from migrator.program.flow import inherited, method_of
from migrator.program.keras_classes import own_class
from migrator.program.modes import ALL, TRAIN, ModeNames, Modes
from migrator.program.parsed import Blocked, ParsedFile, Project, names_in
from migrator.program.scopes import bindings, path_to, returns_in
from migrator.walking import walk

_STEPPING = (
    *("tf.train.", "tf.gradients", "tf.contrib.layers.optimize_loss", "tf.contrib.training.", "tf.contrib.opt."),
    "tf.contrib.slim.learning.",
)
_ENTROPY = "cross_entropy"
_TRAINING = (
    "tf.losses.",
    "tf.metrics.",
    "tf.train.",
    "tf.contrib.tpu.",
    "tf.contrib.losses.",
    "tf.contrib.metrics.",
    "tf.contrib.opt.",
    "tf.contrib.training.",
    "tf.contrib.layers.optimize_loss",
    "tf.contrib.layers.summarize",
    "tf.estimator.EstimatorSpec",
    "tf.estimator.tpu.",
    "tf.estimator.export.",
    "tf.gradients",
    "tf.get_collection",
    "tf.add_to_collection",
    "tf.trainable_variables",
    "tf.global_variables",
)
_PHASE = ("training", "is_training")

_DEPTH = 4  # of functions that return what others make

_APPLYING = frozenset(("minimize", "compute_gradients", "apply_gradients"))

Helper = tuple[ParsedFile, cst.FunctionDef]


@dataclass(frozen=True)
class Scope:
    """Where code stands: its file, and the functions and classes around it, outermost first."""

    project: Project
    file: ParsedFile
    around: tuple[cst.CSTNode, ...]

    @staticmethod
    def of(project: Project, file: ParsedFile, function: cst.FunctionDef) -> Scope:
        """The inside of a function."""
        around = [n for n in path_to(file.module, function) if isinstance(n, (cst.FunctionDef, cst.ClassDef))]
        return Scope(project, file, tuple(around))

    def own_class(self, node: cst.BaseExpression) -> cst.ClassDef | None:
        """The class that `self` (or `cls`) means here."""
        for index in range(len(self.around) - 1, 0, -1):
            function, owner = self.around[index], self.around[index - 1]
            if isinstance(function, cst.FunctionDef) and isinstance(owner, cst.ClassDef):
                first = [p.name.value for p in function.params.params[:1]]
                static = any(
                    isinstance(d.decorator, cst.Name) and d.decorator.value == "staticmethod"
                    for d in function.decorators
                )
                if isinstance(node, cst.Name) and first == [node.value] and not static:
                    return owner
        return None

    def of_parent(self, node: cst.BaseExpression) -> cst.Name | None:
        """What `self` is called where an expression is `super()`, or `super(Class, self)` of the class around."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or node.func.value != "super":
            return None
        for index in range(len(self.around) - 1, 0, -1):
            function, owner = self.around[index], self.around[index - 1]
            if isinstance(function, cst.FunctionDef) and isinstance(owner, cst.ClassDef) and function.params.params:
                name = function.params.params[0].name
                given = [arg.value.value if isinstance(arg.value, cst.Name) else None for arg in node.args]
                return name if given in ([], [owner.name.value, name.value]) else None
        return None

    def is_own_method(self, node: cst.Attribute) -> bool:
        """Whether this is a method of the object that the code belongs to."""
        return self.own_class(node.value) is not None


def helper_of(project: Project, scope: Scope, function: cst.BaseExpression) -> Helper | None:
    """The function of the given files that an expression means; None when there is none to be sure of."""
    if isinstance(function, cst.Name):
        for inner in reversed(scope.around):
            if isinstance(inner, cst.FunctionDef):
                bound = [node for name, node in bindings(inner) if name == function.value]
                if bound:
                    only = bound[0]
                    return (scope.file, only) if len(bound) == 1 and isinstance(only, cst.FunctionDef) else None
    if isinstance(function, cst.Attribute):
        owner = scope.own_class(function.value)
        if owner is not None:
            return method_of(project, scope.file, owner, function.attr.value)
        this = scope.of_parent(function.value)
        if this is not None:
            of = scope.own_class(this)
            return inherited(project, scope.file, of, function.attr.value) if of is not None else None
    return project.function(scope.file, function)


def makes_function(project: Project, file: ParsedFile, helper: cst.FunctionDef, depth: int = 0) -> bool:
    """Whether all that a function returns are functions of its own, or what another one returns that makes such."""
    inner = {one.name.value for one in functions_in(helper.body)}
    scope = Scope.of(project, file, helper)

    def is_function(value: cst.BaseExpression | None) -> bool:
        if isinstance(value, cst.Name):
            return value.value in inner
        made = helper_of(project, scope, value.func) if isinstance(value, cst.Call) and depth < _DEPTH else None
        return made is not None and made[1] is not helper and makes_function(project, *made, depth + 1)

    returned = [one.value for one in returns_in(helper.body)]
    return bool(returned) and all(is_function(value) for value in returned)


class _References(cst.CSTVisitor):
    """TensorFlow symbols and called functions."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.symbols: list[str] = []
        self.functions: list[cst.BaseExpression] = []

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = self.file.imports.tensorflow(node)
        if name is not None:
            self.symbols.append(name)
        return name is None

    def visit_Name(self, node: cst.Name) -> None:
        name = self.file.imports.tensorflow(node)
        if name is not None:
            self.symbols.append(name)

    def visit_Call(self, node: cst.Call) -> None:
        self.functions.append(node.func)


def trains(project: Project, file: ParsedFile, helper: cst.FunctionDef) -> bool:
    """Whether a function, or one that it calls, applies gradients or reads the global step."""
    return touches_training(project, file, helper, _STEPPING)


def touches_training(
    project: Project, file: ParsedFile, helper: cst.FunctionDef, prefixes: tuple[str, ...] = ()
) -> bool:
    """Whether a function, or one that it calls, makes losses, metrics, summaries, training or EstimatorSpecs.

    With `prefixes`: whether one has symbols that start so, or applies gradients.
    """
    seen: set[cst.FunctionDef] = set()
    queue = [(file, helper)]
    while queue:
        where, function = queue.pop()
        if function in seen:
            continue
        seen.add(function)
        finder = _References(where)
        walk(function.body, finder)
        told = [n for n in finder.symbols if n.startswith(prefixes or _TRAINING) or (not prefixes and _ENTROPY in n)]
        applied = {f.attr.value for f in finder.functions if isinstance(f, cst.Attribute)} & _APPLYING
        if applied or any(not name.endswith("Optimizer") for name in told):
            return True  # a function that only makes an optimizer may stay
        scope = Scope.of(project, where, function)
        queue += [found for f in finder.functions if (found := helper_of(project, scope, f)) is not None]
    return False


# -- the mode in a helper ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stays:
    """A helper that stays, with the parameter that is the mode and those that are flags of it, which go."""

    file: ParsedFile
    node: cst.FunctionDef
    mode: str | None
    flags: Mapping[str, Modes]

    @property
    def gone(self) -> frozenset[str]:
        return frozenset((*self.flags, *((self.mode,) if self.mode is not None else ())))

    def names(self) -> ModeNames:
        """What the mode is called at the start of the helper."""
        return ModeNames(self.file.imports, self.mode, dict(self.flags), functions=self.file.functions)


@dataclass
class HelperPlan:
    """The helpers that stay and lose parameters, and in every call of them the arguments that go, by index.

    `untold` are calls of Keras layers that are in no training, since nobody told them; `settled` are all calls of which
    that is known, `symbolic` those on the inputs of a Keras model (whose call tells them), `flagged` those of them that
    were told by themselves, and `models` are calls of what may be such a model. `units` is all code that was looked at,
    and `callers` are the calls of each helper.
    """

    helpers: dict[cst.FunctionDef, Stays] = field(default_factory=dict)
    calls: dict[cst.CSTNode, frozenset[int]] = field(default_factory=dict)
    visited: dict[cst.FunctionDef, Stays] = field(default_factory=dict)
    untold: set[cst.CSTNode] = field(default_factory=set)
    settled: set[cst.CSTNode] = field(default_factory=set)
    symbolic: list[cst.Call] = field(default_factory=list)
    flagged: list[cst.Call] = field(default_factory=list)
    models: list[tuple[Made, cst.Call, bool]] = field(default_factory=list)
    own_classes: set[cst.CSTNode] = field(default_factory=set)
    units: list[Unit] = field(default_factory=list)
    callers: dict[cst.FunctionDef, list[tuple[Unit, cst.Call]]] = field(default_factory=dict)
    given: dict[cst.FunctionDef, Kinds] = field(default_factory=dict)

    def add(
        self,
        project: Project,
        scope: Scope,
        names: ModeNames,
        nodes: Sequence[cst.CSTNode],
        functional: bool,
        given: Kinds | None = None,
    ) -> None:
        """Plans the calls of helpers, and of Keras layers, in some code. Raises Blocked (TFM122, TFM404, TFM405).

        `functional` says that there are inputs of Keras models; `given` are the parameters, and whether they are such.
        """
        unit = Unit(project, scope, tuple(nodes), functional, given or {})
        self.units.append(unit)
        for call in (call for node in nodes for call in calls_in(node)):
            keras_calls.check_regularizers(scope.file, call)
            found = helper_of(project, scope, call.func)
            if found is None:
                for made in keras_objects(project, scope, nodes, call.func):
                    self._add_keras(unit, names, call, made)
                continue
            told = _told(scope, names, call, found)
            if told is None:
                raise Blocked("TFM122", call, "cannot resolve the mode that is passed to this function")
            stays, indices = told
            if indices:
                self.calls[call] = frozenset(indices)
            self.callers.setdefault(stays.node, []).append((unit, call))
            kinds = unit.kinds_of_arguments(call, stays.node)
            known = self.visited.get(stays.node)
            self.visited[stays.node] = stays
            if known is not None:
                if (known.mode, known.flags) != (stays.mode, stays.flags):
                    name = stays.node.name.value
                    message = f"`{name}` is called with different modes: its layers need one"
                    raise Blocked("TFM122", call, message)
                if kinds != self.given[stays.node] and any(
                    keras_calls.has_phase(one.scope.file, one.nodes) for one in self.units
                ):
                    raise Blocked("TFM404", call, _WHETHER_SYMBOLIC)
                continue
            self.given[stays.node] = kinds
            if stays.gone:
                self.helpers[stays.node] = stays
            inner = Scope.of(project, stays.file, stays.node)
            self.add(project, inner, _local_flags(stays), [stays.node.body], functional, kinds)

    def _add_keras(self, unit: Unit, names: ModeNames, call: cst.Call, made: Made) -> None:
        """Plans the call of a Keras layer or model. Raises Blocked (TFM404)."""
        index = keras_calls.training_of(call)
        file, code = made
        if isinstance(code, cst.ClassDef):
            self.own_classes.add(code)
        symbolic = unit.kind(call.args[0].value) if call.args else None
        flagged = index is not None and names.when(call.args[index].value) == frozenset((TRAIN,))
        if index is not None:
            self.settled.add(call)
            if flagged:
                self.calls[call] = frozenset((index,))
                if symbolic is not False:
                    self.flagged.append(call)
        added = unit.nodes if file is unit.scope.file and keras_calls.makes_sequential(file, code) else ()
        phased = keras_calls.has_phase(file, [code, *added])
        if symbolic is False:
            self.models.append((made, call, flagged))
        if index is None and phased:
            if symbolic is None:
                raise Blocked("TFM404", call, _WHETHER_SYMBOLIC)
            self.settled.add(call)
            if symbolic:
                self.symbolic.append(call)
            else:
                self.untold.add(call)


_WHETHER_SYMBOLIC = "cannot tell whether this layer is called on a Keras input: pass `training=`"
Kinds = Mapping[str, Optional[bool]]


@dataclass(frozen=True)
class Unit:
    """Code in which names mean the same, whether Keras inputs may be in it, and which parameters are such."""

    project: Project
    scope: Scope
    nodes: tuple[cst.CSTNode, ...]
    functional: bool
    given: Kinds

    def kind(self, node: cst.BaseExpression, held: Kinds | None = None) -> bool | None:
        """Whether an expression is computed from inputs of a Keras model (None: that is not known)."""
        if not self.functional:
            return False
        if isinstance(node, cst.Name):
            return self._kind_of_name(node.value, held)
        if isinstance(node, cst.Call):
            if self.scope.file.imports.tensorflow(node.func) in keras_calls.INPUTS:
                return True
            helper = helper_of(self.project, self.scope, node.func)
            if helper is not None and keras_calls.mentions(helper[0], helper[1], keras_calls.INPUTS):
                return None
            return _any_kind([self.kind(arg.value, held) for arg in node.args])
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            return self.kind(node.value, held)
        if isinstance(node, cst.BinaryOperation):
            return _any_kind([self.kind(node.left, held), self.kind(node.right, held)])
        if isinstance(node, (cst.List, cst.Tuple)):
            return _any_kind([self.kind(element.value, held) for element in node.elements])
        others = [self._kind_of_name(name, held) for name in names_in(node)]
        return False if all(kind is False for kind in others) else None

    def _kind_of_name(self, name: str, held: Kinds | None) -> bool | None:
        if held is not None and name in held:
            return held[name]
        values = [value for node in self.nodes for value in values_given(node, name)]
        bound = [n for node in self.nodes for one, n in bindings(node) if one == name and isinstance(n, cst.Name)]
        params = [p.name.value for f in self.scope.around if isinstance(f, cst.FunctionDef) for p in parameters_of(f)]
        if len(bound) != len(values):
            return None
        first = {self.kind(value, {**(held or {}), name: None}) for value in values if name not in names_in(value)}
        if name in params:
            first.add(self.given.get(name, False))
        elif not values:
            file = self.scope.file
            return False if name in (file.imports.names.keys() | file.names_at_top | set(dir(builtins))) else None
        found = first.pop() if len(first) == 1 else None
        again = [self.kind(v, {**(held or {}), name: found}) for v in values if name in names_in(v)]
        return found if all(kind is found for kind in again) else None

    def kinds_of_arguments(self, call: cst.Call, helper: cst.FunctionDef) -> Kinds:
        """Which parameters of a helper that is called here come of Keras inputs."""
        names = [p.name.value for p in (*helper.params.posonly_params, *helper.params.params)]
        if names[:1] == ["self"] and isinstance(call.func, cst.Attribute):
            names = names[1:]
        kinds = {name: None if any(arg.star for arg in call.args) else False for name in names}
        for index, arg in enumerate(call.args):
            if not arg.star and (arg.keyword is not None or index < len(names)):
                kinds[arg.keyword.value if arg.keyword is not None else names[index]] = self.kind(arg.value)
        return kinds


def _any_kind(kinds: Sequence[bool | None]) -> bool | None:
    if True in kinds:
        return True
    return None if None in kinds else False


Made = tuple[ParsedFile, cst.CSTNode]


def keras_object(
    project: Project, scope: Scope, nodes: Sequence[cst.CSTNode], called: cst.BaseExpression
) -> Made | None:
    """The code that makes the Keras layer or model which is called, and its file; None where something else is.

    That is the call of a class of Keras, a class of the program that tells its layers about the training, or a function
    that returns what a call of one of these makes.
    """
    return _keras_object(project, scope, keras_calls.one_value(nodes, called))


def keras_objects(
    project: Project, scope: Scope, nodes: Sequence[cst.CSTNode], called: cst.BaseExpression
) -> list[Made]:
    """The same where a condition chooses which of several a name stands for; empty where one is something else."""
    values = [one for node in nodes for one in values_given(node, called.value)] if isinstance(called, cst.Name) else []
    bound = [
        one for node in nodes for name, one in bindings(node) if isinstance(called, cst.Name) and name == called.value
    ]
    if len(values) < 2 or len(bound) != len(values):
        made = keras_object(project, scope, nodes, called)
        return [] if made is None else [made]
    found = [_keras_object(project, scope, value) for value in values]
    return [one for one in found if one is not None] if None not in found else []


def _keras_object(project: Project, scope: Scope, value: cst.BaseExpression | None) -> Made | None:
    if not isinstance(value, cst.Call):
        return None
    if keras_calls.makes_object(scope.file, value):
        return scope.file, value
    own = own_class(project, scope.file, value.func)
    if own is not None:
        return own
    helper = helper_of(project, scope, value.func)
    if helper is None or keras_calls.returns_object(*helper):
        return helper
    file, function = helper
    answers = [keras_calls.one_value((function.body,), one.value) for one in returns_in(function.body)]
    only = answers[0] if len(answers) == 1 else None
    return own_class(project, file, only.func) if isinstance(only, cst.Call) else None


def _told(scope: Scope, names: ModeNames, call: cst.Call, helper: Helper) -> tuple[Stays, list[int]] | None:
    """What a call tells a helper about the mode, and by which arguments; None when that cannot be said."""
    file, node = helper
    positional = [p.name.value for p in (*node.params.posonly_params, *node.params.params)]
    static = any(isinstance(d.decorator, cst.Name) and d.decorator.value == "staticmethod" for d in node.decorators)
    if isinstance(call.func, cst.Attribute) and scope.is_own_method(call.func) and not static:
        positional = positional[1:]
    about = names.about
    mode: str | None = None
    flags: dict[str, Modes] = {}
    indices: list[int] = []
    given: set[str] = set()
    for index, arg in enumerate(call.args):
        if arg.star:
            if names_in(arg.value) & about:
                return None
            continue
        if arg.keyword is None and index >= len(positional):
            return None if names_in(arg.value) & about else (Stays(file, node, None, {}), [])
        name = positional[index] if arg.keyword is None else arg.keyword.value
        given.add(name)
        if isinstance(arg.value, cst.Name) and arg.value.value == names.mode:
            if mode is not None:
                return None
            mode = name
            indices.append(index)
            continue
        literal = is_true(arg.value) or is_false(arg.value)
        when = names.when(arg.value)
        if when is not None and (not literal or _feeds_layers(node, name)):
            flags[name] = when
            indices.append(index)
        elif names_in(arg.value) & about:
            return None
    for param in (*node.params.params, *node.params.kwonly_params):
        name = param.name.value
        constant = is_true(param.default) or is_false(param.default)
        if name not in given and constant and _feeds_layers(node, name):
            flags[name] = ALL if is_true(param.default) else frozenset()
    return Stays(file, node, mode, flags), indices


def _feeds_layers(helper: cst.FunctionDef, name: str) -> bool:
    """Whether a parameter of a helper is given to something as `training=`."""
    return any(
        arg.keyword is not None and arg.keyword.value in _PHASE and name in names_in(arg.value)
        for call in calls_in(helper.body)
        for arg in call.args
    )


def _local_flags(stays: Stays) -> ModeNames:
    """The mode and its flags at the end of a helper."""
    names = stays.names()
    assert isinstance(stays.node.body, cst.IndentedBlock)
    for statement in stays.node.body.body:
        if names.flag(statement) is not None:
            names = names.after(statement)
    return names


def can_stay(
    project: Project,
    scope: Scope,
    names: ModeNames,
    call: cst.Call,
    file: ParsedFile,
    helper: cst.FunctionDef,
    seen: frozenset[cst.FunctionDef] = frozenset(),
) -> bool:
    """Whether a helper of the network can stay a function: what it is told about the mode only goes to layers."""
    told = _told(scope, names, call, (file, helper))
    if told is None or not isinstance(helper.body, cst.IndentedBlock):
        return False
    stays = told[0]
    if not stays.gone or helper in seen:
        return True
    if path_to(scope.around[-1], helper):
        return False  # a function inside the model_fn, which is rewritten with it
    symbols = _References(file)
    walk(helper.body, symbols)
    if any(name.startswith("tf.summary.") for name in symbols.symbols):
        return False  # it is rewritten by itself, and summaries are left out of what is rewritten with its file
    flags = _local_flags(stays)
    about = flags.about
    rebound = [name for name, node in bindings(helper) if name in about and isinstance(node, cst.Name)]
    if len(rebound) != len(set(rebound)):
        return False
    inner = Scope.of(project, file, helper)

    def passes_on(inner_call: cst.Call) -> bool:
        found = helper_of(project, inner, inner_call.func)
        return found is not None and can_stay(project, inner, flags, inner_call, *found, seen | {helper})

    def is_keras(inner_call: cst.Call) -> bool:
        return keras_object(project, inner, [helper.body], inner_call.func) is not None

    uses = _Uses(file, flags, passes_on, is_keras)
    walk(helper.body, uses)
    return not uses.others


class _Uses(cst.CSTVisitor):
    """Uses of the mode in a helper that are more than telling layers, or other helpers, whether they train."""

    def __init__(
        self,
        file: ParsedFile,
        names: ModeNames,
        passes_on: Callable[[cst.Call], bool],
        is_keras: Callable[[cst.Call], bool],
    ) -> None:
        super().__init__()
        self.is_keras = is_keras
        self.file = file
        self.names = names
        self.passes_on = passes_on
        self.about = names.about
        self.others: list[cst.CSTNode] = []

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return self.names.flag(node) is None

    def visit_If(self, node: cst.If) -> bool:
        return training_branch(node, self.file, self.names) is None

    def visit_Call(self, node: cst.Call) -> bool:
        walk(node.func, self)
        passed_on = bool(names_in(node) & self.about) and self.passes_on(node)
        for arg in node.args:
            phase = arg.keyword is not None and arg.keyword.value in _PHASE
            if passed_on and self.names.when(arg.value) is not None:
                continue
            if passed_on and isinstance(arg.value, cst.Name) and arg.value.value == self.names.mode:
                continue
            if phase and self.names.when(arg.value) is not None and self._is_layer(node):
                continue
            walk(arg.value, self)
        return False

    def _is_layer(self, node: cst.Call) -> bool:
        name = self.file.imports.tensorflow(node.func) or ""
        return name.startswith(("tf.layers.", "tf.contrib.layers.")) or self.is_keras(node)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in self.about:
            self.others.append(node)


# -- dropout in a branch of the training -------------------------------------------------------------------------------


def training_branch(node: cst.If, file: ParsedFile, names: ModeNames) -> cst.SimpleStatementLine | None:
    """The dropout that `if is_training: net = tf.nn.dropout(net, 0.5)` is, told by `training=` instead; else None."""
    if names.when(node.test) != frozenset((TRAIN,)) or node.orelse is not None:
        return None
    if not isinstance(node.body, cst.IndentedBlock) or len(node.body.body) != 1:
        return None
    inner = node.body.body[0]
    if not isinstance(inner, cst.SimpleStatementLine):
        return None
    return training_dropout(inner, file, node.test)


def training_dropout(
    line: cst.SimpleStatementLine, file: ParsedFile, training: cst.BaseExpression
) -> cst.SimpleStatementLine | None:
    """`net = dropout(net, ...)` that only training runs, as a layer that is told so; None for anything else."""
    small = line.body[0] if len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Call):
        return None
    target, call = small.targets[0].target, small.value
    name = file.imports.resolve(call.func)
    inputs = call.args[0].value if call.args else None
    if not isinstance(target, cst.Name) or not isinstance(inputs, cst.Name) or inputs.value != target.value:
        return None
    arguments = list(call.args)
    if name == "tf.layers.dropout":
        given = [a for a in arguments if a.keyword is not None and a.keyword.value == "training"]
        if len(given) != 1 or not is_true(given[0].value):
            return None
        new = call.deep_replace(given[0].value, training)
        assert isinstance(new, cst.Call)
    elif name == "tf.nn.dropout":
        rate = _rate(arguments[1:])
        if rate is None:
            return None
        function = cst.parse_expression(f"{_prefix(file)}.layers.dropout")
        new = cst.Call(function, [cst.Arg(inputs), _keyword("rate", rate), _keyword("training", training)])
    else:
        return None
    file.origins[new] = call
    made = line.with_changes(body=[small.with_changes(value=new)])
    file.origins[made] = line
    return made


def _rate(arguments: Sequence[cst.Arg]) -> cst.BaseExpression | None:
    """The rate of tf.nn.dropout(x, keep_prob, noise_shape, seed, name, rate)."""
    rate: cst.BaseExpression | None = None
    for index, arg in enumerate(arguments):
        name = arg.keyword.value if arg.keyword is not None else ("keep_prob" if index == 0 else None)
        if name == "keep_prob" and not is_none(arg.value):
            value = arg.value
            if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Subtract):
                if number(value.left) == 1.0:  # keep_prob=1 - rate
                    rate = value.right
                    continue
            if isinstance(value, (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.IfExp)):
                value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            rate = cst.BinaryOperation(cst.Float("1.0"), cst.Subtract(), value)
        elif name == "rate":
            rate = arg.value
        elif name != "keep_prob" and name != "name":
            return None
    return rate


def _prefix(file: ParsedFile) -> str:
    return next(name for name, origin in file.imports.names.items() if file.imports.resolve(cst.Name(name)) == "tf")


def _keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(name), equal=equal)
