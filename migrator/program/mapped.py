"""A model_fn for the mapped tier: what has to be known about it to run it as it is, inside a Keras model.

Little is: which calls are EstimatorSpecs, what makes the optimizer, which metrics there are, and which statements only
served what Keras does now. Everything else stays TensorFlow 1 code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import libcst as cst

from migrator.program import tpu
from migrator.program.body import Parameters, names_given
from migrator.program.calls import bind, is_none, string
from migrator.program.exports import Signatures, signature_names
from migrator.program.modes import (
    EVAL,
    PREDICT,
    SPEC,
    TRAIN,
    ModalStatement,
    ModeNames,
    Modes,
    StraightBody,
    not_run_in,
    straighten,
)
from migrator.program.own_training import check_own_training, counts_by_condition, trains_itself
from migrator.program.parsed import Blocked, ParsedFile, Project, names_in
from migrator.program.region import References, Region, reach
from migrator.program.scopes import path_to, returns_in, values_of
from migrator.program.summaries import called_for_effect, summary_symbol
from migrator.program.train_op import TrainBody, TrainOp, read_train_op
from migrator.program.variable_order import asks_for_variables, check_order, makes_variables_somewhere
from migrator.rules.hooks import NO_SPEC_HOOKS, SpecHooks, read_spec_hooks
from migrator.rules.metrics import is_metric
from migrator.walking import walk

#: The arguments of an EstimatorSpec that the mapped form keeps, and what they are called there.
KEPT = {"predictions": "predictions", "loss": "loss", "eval_metric_ops": "metrics", "eval_metrics": "metrics"}
_OF_TRAINING = ("TFM312", "TFM401", "TFM402", "TFM403", "TFM415", "TFM417")
_SPECS = ("tf.estimator.EstimatorSpec", *tpu.SPECS)


@dataclass(frozen=True)
class MappedFunction:
    """A model_fn and the ends of it that change.

    `specs` are its EstimatorSpec calls. `dead` are the statements that only served dropped arguments of specs (the
    training, what is exported) or summaries, and the names among the targets of others that are not read any more.
    `inlined` is the model_fn with helpers read through and `train` the straight list of its statements, `names` what is
    known of the mode in the model_fn's own; `train_op` and `loss` are what the spec of that mode
    says, `metrics` tells whether there are any. `region` are the functions and classes that it reaches, itself
    included, each with its file. `exported` are the export_outputs of specs, each with the predictions beside them.
    `hooks` are those of the specs.
    `trains_itself` says that its train_op stays what it is. `evaluated` are the `eval_metrics` of TPUEstimatorSpecs,
    `host_calls` their functions that write summaries. A program that only predicts has no `train_op` and no `loss`;
    `elsewhere` are the statements of its model_fn that only the other modes run, which are dead. With
    `counts_by_condition`, not every batch counts as a step of the training. `project` are the given files.
    """

    file: ParsedFile
    node: cst.FunctionDef
    parameters: Parameters
    specs: tuple[cst.Call, ...]
    dead: frozenset[cst.CSTNode]
    summaries: tuple[tuple[ParsedFile, cst.CSTNode], ...]
    inlined: cst.FunctionDef
    train: StraightBody
    names: ModeNames
    train_op: cst.BaseExpression | None
    loss: cst.BaseExpression | None
    metrics: bool
    region: Region
    predictions: tuple[cst.BaseExpression, ...]
    exported: tuple[tuple[cst.BaseExpression, cst.BaseExpression | None], ...] = ()
    hooks: SpecHooks = NO_SPEC_HOOKS
    trains_itself: bool = False
    evaluated: dict[cst.CSTNode, EvalMetrics] = field(default_factory=dict)
    host_calls: tuple[cst.BaseExpression, ...] = ()
    elsewhere: tuple[cst.BaseStatement, ...] = ()
    counts_by_condition: bool = False
    project: Project | None = None

    @property
    def only_predicts(self) -> bool:
        """Whether the program never trains or evaluates."""
        return self.train_op is None

    def signature_names(self) -> Signatures:
        """The names under which the predictions are served. Raises Blocked (TFM142)."""
        found = {signature_names(self.file, outputs, given, self._define) for outputs, given in self.exported}
        if len(found) > 1:
            raise Blocked("TFM142", self.exported[1][0], "two EstimatorSpecs give different `export_outputs`")
        return found.pop() if found else signature_names(self.file, None, None, self._define)

    def _define(self, name: str) -> cst.BaseExpression | None:
        found = values_of(self.node, name)
        return found[0] if len(found) == 1 else None

    @property
    def reads_params(self) -> bool:
        """Whether the model_fn reads its `params`."""
        return self.parameters.params is not None and self.parameters.params in names_in(self.node.body)

    @property
    def predicts_dicts(self) -> bool:
        """Whether one prediction is a dict of values."""
        return any(self._is_dict(node) for node in self.predictions)

    def _is_dict(self, node: cst.BaseExpression, function: cst.FunctionDef | None = None, depth: int = 0) -> bool:
        if isinstance(node, cst.Name):
            values = values_of(function or self.node, node.value)
            return any(not isinstance(value, cst.Name) and self._is_dict(value, function, depth) for value in values)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name | cst.Attribute) and depth < 4:
            name = node.func.value if isinstance(node.func, cst.Name) else node.func.attr.value
            if name == "dict" and isinstance(node.func, cst.Name):
                return True
            called = [f for f in self.region if isinstance(f, cst.FunctionDef) and f.name.value == name]
            returned = [r.value for f in called[:1] for r in returns_in(f.body) if r.value is not None]
            return len(called) == 1 and any(self._is_dict(value, called[0], depth + 1) for value in returned)
        return isinstance(node, cst.Dict)


def read_mapped_function(
    project: Project,
    file: ParsedFile,
    node: cst.FunctionDef,
    parameters: Parameters,
    inlined: cst.FunctionDef | None = None,
    only_predicts: bool = False,
) -> MappedFunction:
    """Reads a model_fn for the mapped form. Raises Blocked for what cannot stay and cannot be rewritten.

    `inlined` is the model_fn with the helpers read through, where that is possible: it says how the program trains.
    Its train_op stays where only the program itself knows how to train (`MappedFunction.trains_itself`).
    `only_predicts` says that the program does nothing else: how to train and to evaluate is not read then.
    """
    if only_predicts:
        return _read_predictor(project, file, node, parameters)
    region = reach(project, file, node)
    if not trains_itself(region):
        return _read(project, file, node, parameters, region, False, inlined)
    try:
        found = _read(project, file, node, parameters, region, False, inlined)
        read_training(found)
    except Blocked as problem:
        if problem.code not in _OF_TRAINING:
            raise
        check_own_training(region, file, problem.node or node.name)
        return _read(project, file, node, parameters, region, True, inlined)
    return found


def _read(
    project: Project,
    file: ParsedFile,
    node: cst.FunctionDef,
    parameters: Parameters,
    region: Region,
    by_itself: bool,
    inlined: cst.FunctionDef | None,
) -> MappedFunction:
    if not isinstance(node.body, cst.IndentedBlock):
        raise Blocked("TFM105", node, "the model_fn is written on one line")
    specs, bound = _bound_specs(file, node)
    hooks = _hooks(project, file, node, bound.values())
    own_statements = straighten(node.body.body, file.imports, parameters.mode, lenient=True)
    train = own_statements
    if inlined is not None and inlined is not node and isinstance(inlined.body, cst.IndentedBlock) and not by_itself:
        train = straighten(inlined.body.body, file.imports, parameters.mode, lenient=True)
    of_train = [_arguments(file, s.call) for s in train.specs if TRAIN in s.modes]
    training = [arguments for arguments in of_train if not is_none(arguments.get("loss"))]
    train_ops = [arguments["train_op"] for arguments in training if not is_none(arguments.get("train_op"))]
    if not training:
        raise Blocked("TFM105", node.name, "no EstimatorSpec of the TRAIN mode has a loss")
    if not train_ops:
        raise Blocked("TFM403", node.name, "no EstimatorSpec of the TRAIN mode has a train_op")
    if len({file.code(one) for one in train_ops}) > 1:
        raise Blocked("TFM105", train_ops[1], "two EstimatorSpecs of one mode give different `train_op`")
    kept = kept_arguments(by_itself)
    dropped = [value for arguments in bound.values() for key, value in arguments.items() if key not in kept]
    own = _summaries(file, node)
    dead = frozenset(_dead(node, file, dropped, own))
    if asks_for_variables(project, file, [s.node for s in own_statements.statements if s.node not in dead]):
        # A layer that only a summary read has variables, too, which the loss may add up.
        making = {s for s in dead if isinstance(s, cst.BaseStatement) and makes_variables_somewhere(project, file, s)}
        inside = next((s for s in own if s in making), None)
        if inside is not None:
            message = "this summary is left out, but the loss adds up the variables that it makes: make them before it"
            raise Blocked("TFM312", inside, message)
        dead = frozenset(_dead(node, file, dropped, own, making))
    region = reach(project, file, node, dead | set(dropped))
    summaries = [(f, s) for function, f in region.items() for s in _summaries(f, function)]
    for mode in () if by_itself else (TRAIN, EVAL):  # whose collections are filled as a graph's are
        here = [s.node for s in own_statements.statements if mode in s.modes and s.node not in dead]
        check_order(project, file, here)
    return MappedFunction(
        file=file,
        node=node,
        parameters=parameters,
        specs=specs,
        dead=dead,
        summaries=tuple(summaries),
        inlined=inlined or node,
        train=train,
        names=own_statements.names,
        train_op=train_ops[0],
        loss=training[0]["loss"],
        metrics=_check_metrics(node, region, {*dead, *(s for _, s in summaries)}),
        region=region,
        predictions=tuple(a["predictions"] for a in bound.values() if not is_none(a.get("predictions"))),
        exported=tuple(
            (a["export_outputs"], a.get("predictions")) for a in bound.values() if not is_none(a.get("export_outputs"))
        ),
        hooks=hooks,
        trains_itself=by_itself,
        evaluated=_eval_metrics(node, own_statements, bound.values()),
        host_calls=tuple(a["host_call"] for a in bound.values() if not is_none(a.get("host_call"))),
        counts_by_condition=by_itself and counts_by_condition(region),
        project=project,
    )


def _hooks(
    project: Project, file: ParsedFile, node: cst.FunctionDef, specs: Iterable[Mapping[str, cst.BaseExpression]]
) -> SpecHooks:
    """The hooks of the EstimatorSpecs of a model_fn that stays. Raises Blocked."""
    found = read_spec_hooks(project, file, node, specs)
    if found.checkpoint is not None:
        message = "this saver saves objects of the program, which the mapped form makes anew at every call"
        raise Blocked("TFM855", found.checkpoint.node, message)
    if found.averages is not None:
        raise Blocked("TFM413", found.averages.node, "the mapped form does not evaluate with moving averages")
    return found


def _bound_specs(
    file: ParsedFile, node: cst.FunctionDef, without: Collection[cst.CSTNode] = ()
) -> tuple[tuple[cst.Call, ...], dict[cst.Call, dict[str, cst.BaseExpression]]]:
    """The EstimatorSpecs of a model_fn and their arguments, those in the statements `without` left out."""
    specs = _Specs(file, without)
    walk(node.body, specs)
    if not specs.found:
        raise Blocked("TFM105", node.name, "the model_fn makes no EstimatorSpec itself")
    bound = {call: _arguments(file, call) for call in specs.found}
    for arguments in bound.values():
        if not is_none(arguments.get("scaffold_fn")) and not _is_always_none(node, arguments["scaffold_fn"]):
            raise Blocked("TFM110", arguments["scaffold_fn"], "`scaffold_fn` of the EstimatorSpec is not carried over")
    return tuple(specs.found), bound


def _read_predictor(
    project: Project, file: ParsedFile, node: cst.FunctionDef, parameters: Parameters
) -> MappedFunction:
    """Reads the model_fn of a program that only predicts: what other modes run is dead."""
    if not isinstance(node.body, cst.IndentedBlock):
        raise Blocked("TFM105", node, "the model_fn is written on one line")
    straight = straighten(node.body.body, file.imports, parameters.mode, lenient=True)
    elsewhere = _with_inner(not_run_in(PREDICT, node.body.body, file.imports, parameters.mode))
    specs, bound = _bound_specs(file, node, elsewhere)
    if not any(not is_none(arguments.get("predictions")) for arguments in bound.values()):
        raise Blocked("TFM111", node.name, "predict() is called, but no EstimatorSpec has predictions")
    hooks = _hooks(project, file, node, bound.values())
    kept = kept_arguments(False, True)
    dropped = [value for arguments in bound.values() for key, value in arguments.items() if key not in kept]
    dead = frozenset(_dead(node, file, dropped, [*elsewhere, *_summaries(file, node)]))
    region = reach(project, file, node, dead)
    summaries = [(f, s) for function, f in region.items() for s in _summaries(f, function) if not _inside(s, elsewhere)]
    # In the graph of a prediction the variables are all of them, whenever they are asked for.
    check_order(project, file, [s.node for s in straight.statements if PREDICT in s.modes and s.node not in dead])
    _check_metrics(node, region, {*dead, *(s for _, s in summaries)})
    return MappedFunction(
        file=file,
        node=node,
        parameters=parameters,
        specs=specs,
        dead=dead,
        summaries=tuple(summaries),
        inlined=node,
        train=straight,
        names=straight.names,
        train_op=None,
        loss=None,
        metrics=False,
        region=region,
        predictions=tuple(a["predictions"] for a in bound.values() if not is_none(a.get("predictions"))),
        hooks=hooks,
        elsewhere=elsewhere,
    )


def _with_inner(statements: Iterable[cst.BaseStatement]) -> tuple[cst.BaseStatement, ...]:
    """Statements, and those in their blocks."""
    found = _Statements()
    for statement in statements:
        walk(statement, found)
    return tuple(found.found)


class _Statements(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.BaseStatement] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            self.found.append(node)
        return not isinstance(node, cst.BaseExpression)


def _inside(node: cst.CSTNode, places: Iterable[cst.CSTNode]) -> bool:
    return any(path_to(place, node) for place in places)


def kept_arguments(by_itself: bool, only_predicts: bool = False) -> dict[str, str]:
    """The arguments of an EstimatorSpec that are kept, and what they are called then."""
    if only_predicts:
        return {"predictions": "predictions"}
    return {**KEPT, "train_op": "train_op"} if by_itself else KEPT


def read_training(function: MappedFunction) -> TrainOp:
    """The train_op of a model_fn, for a Keras optimizer. Raises Blocked (TFM401, TFM402, TFM403)."""
    assert function.loss is not None
    statements = function.train.statements
    last = {name: index for index, s in enumerate(statements) for name in names_given((s,))}
    from_data = frozenset(_from_data(function))
    body = TrainBody(
        function.file, function.node, statements, from_data, lambda n: last.get(n, -1), project=function.project
    )
    return read_train_op(function.train_op, function.loss, body)


def _from_data(function: MappedFunction) -> set[str]:
    """The features, the labels, and every name that is computed from them."""
    roles = function.parameters
    found = {str(name) for name in (roles.features, roles.labels) if name is not None}
    while True:
        new: set[str] = set()
        for statement in function.train.statements:
            if names_in(statement.node) & found:
                new |= names_given((statement,))
        if new <= found:
            return found
        found |= new


def _arguments(file: ParsedFile, call: cst.Call) -> dict[str, cst.BaseExpression]:
    """The arguments of an EstimatorSpec or a TPUEstimatorSpec."""
    name = file.imports.resolve(call.func)
    return bind(call, tpu.SPEC if name in tpu.SPECS else SPEC, name or "EstimatorSpec", "TFM105")


@dataclass(frozen=True)
class EvalMetrics:
    """`(metric_fn, tensors)` of a TPUEstimatorSpec: how the call takes the tensors, and whether only EVAL makes it."""

    star: Literal["", "*", "**"]
    evaluates: bool


def _eval_metrics(
    node: cst.FunctionDef, train: StraightBody, bound: Iterable[dict[str, cst.BaseExpression]]
) -> dict[cst.CSTNode, EvalMetrics]:
    """The pairs that `eval_metrics` of the specs of a model_fn are, by their nodes. Raises Blocked (TFM501)."""
    found: dict[cst.CSTNode, EvalMetrics] = {}
    for arguments in bound:
        given = arguments.get("eval_metrics")
        if given is None or is_none(given):
            continue
        values = values_of(node, given.value) if isinstance(given, cst.Name) else [given]
        pairs = [value for value in values if not is_none(value)]
        for pair in pairs or [given]:
            if not isinstance(pair, cst.Tuple) or len(pair.elements) != 2:
                raise Blocked("TFM501", given, "`eval_metrics` is not a pair of a function and its tensors")
            tensors = pair.elements[1].value
            found[pair] = EvalMetrics(_star(node, tensors), _modes_of(train, pair) == {EVAL})
    return found


def _star(node: cst.FunctionDef, tensors: cst.BaseExpression) -> Literal["", "*", "**"]:
    """How a function is given tensors: "" for those of a list that is written out in place."""
    if isinstance(tensors, cst.List | cst.Tuple):
        return ""
    forms = values_of(node, tensors.value) if isinstance(tensors, cst.Name) else [tensors]
    if forms and all(isinstance(form, cst.List | cst.Tuple) for form in forms):
        return "*"
    if forms and all(isinstance(form, cst.Dict) for form in forms):
        return "**"
    raise Blocked("TFM501", tensors, "the tensors of `eval_metrics` are not a list or a dict that is written out")


def _modes_of(train: StraightBody, node: cst.CSTNode) -> set[str]:
    """The modes that run the statement that holds a node."""
    found: set[str] = set()
    for statement in train.statements:
        if path_to(statement.node, node):
            found |= statement.modes
    for spec in train.specs:
        if path_to(spec.statement, node):
            found |= spec.modes
    return found


def _is_always_none(function: cst.FunctionDef, node: cst.BaseExpression) -> bool:
    """Whether an expression is a name that only ever is None."""
    values = values_of(function, node.value) if isinstance(node, cst.Name) else []
    return bool(values) and all(is_none(value) for value in values)


def in_train(statements: Iterable[ModalStatement]) -> list[ModalStatement]:
    """The statements that TRAIN mode runs."""
    modes: Modes = frozenset((TRAIN,))
    return [s for s in statements if s.modes & modes]


class _Specs(cst.CSTVisitor):
    """The EstimatorSpec calls of a function, those of functions inside it included, those in `without` left out."""

    def __init__(self, file: ParsedFile, without: Collection[cst.CSTNode] = ()) -> None:
        super().__init__()
        self.file = file
        self.without = without
        self.found: list[cst.Call] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.without and super().on_visit(node)

    def visit_Call(self, node: cst.Call) -> None:
        if self.file.imports.resolve(node.func) in _SPECS:
            self.found.append(node)


# -- summaries ---------------------------------------------------------------------------------------------------------


_IDENTITY = "tf.identity"


def is_summary(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether a statement line only writes a summary, or gives a tensor a name."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return False
    call = called_for_effect(node.body[0])
    name = file.imports.resolve(call.func) if call is not None else None
    return summary_symbol(node.body[0], file.imports) is not None or name == _IDENTITY


def only_names(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether a statement line only gives a tensor a name, for hooks to find."""
    return is_summary(file, node) and _IDENTITY in {file.imports.resolve(n) for n in _attributes(node)}


def _attributes(node: cst.CSTNode) -> list[cst.BaseExpression]:
    found = References()
    walk(node, found)
    return found.found


def _summaries(file: ParsedFile, function: cst.CSTNode) -> list[cst.CSTNode]:
    lines = _Lines()
    walk(function, lines)
    return [line for line in lines.found if is_summary(file, line)]


class _Lines(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.SimpleStatementLine] = []

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self.found.append(node)


# -- metrics -----------------------------------------------------------------------------------------------------------


def metric_pairs(file: ParsedFile, function: cst.CSTNode) -> dict[str, str]:
    """What `value, update = tf.metrics.X(...)` calls the two parts, anywhere in a function."""
    finder = _MetricNames(file)
    walk(function, finder)
    return finder.pairs


def pair_of(node: cst.CSTNode, pairs: Mapping[str, str]) -> str | None:
    """The first name of `(value, update)`, which put the two parts of a metric together again."""
    if not isinstance(node, cst.Tuple | cst.List) or len(node.elements) != 2:
        return None
    first, second = (element.value for element in node.elements)
    if isinstance(first, cst.Name) and isinstance(second, cst.Name) and pairs.get(first.value) == second.value:
        return first.value
    return None


def _check_metrics(own: cst.FunctionDef, region: Region, gone: Collection[cst.CSTNode]) -> bool:
    """Whether a region makes metrics. Raises Blocked (TFM501) where one's value or update is read.

    In the mapped form a metric is no pair of tensors. `gone` are statements that are left out.
    """
    any_found = False
    for function, file in region.items():
        finder = _MetricNames(file)
        walk(function, finder)
        any_found = any_found or finder.found
        reads = _MetricReads(finder.names, finder.pairs, finder.keys, gone)
        walk(function, reads)
        if reads.read is not None:
            where = reads.read if file is region[own] else own.name
            raise Blocked("TFM501", where, "the value of a metric is read: Keras only reports it")
    return any_found


class _MetricNames(cst.CSTVisitor):
    """Whether there are tf.metrics calls, the names of what they return, and of its two parts."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found = False
        self.names: set[str] = set()
        self.keys: set[str] = set()
        self.pairs: dict[str, str] = {}

    def visit_DictElement(self, node: cst.DictElement) -> None:
        self._entry(node.key, node.value)

    def _entry(self, key: cst.BaseExpression, value: cst.BaseExpression) -> None:
        name = value.value if isinstance(value, cst.Name) else None
        if is_metric(value, self.file.imports) or name in self.names or pair_of(value, self.pairs) is not None:
            self.keys |= {text for text in (string(key),) if text is not None}

    def visit_Call(self, node: cst.Call) -> None:
        self.found = self.found or is_metric(node, self.file.imports)

    def visit_Assign(self, node: cst.Assign) -> None:
        element = node.targets[0].target
        if isinstance(element, cst.Subscript) and isinstance(element.slice[0].slice, cst.Index):
            self._entry(element.slice[0].slice.value, node.value)
        if is_metric(node.value, self.file.imports):
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.names.add(target.target.value)
                elif isinstance(target.target, cst.Tuple):
                    names = [e.value.value for e in target.target.elements if isinstance(e.value, cst.Name)]
                    self.pairs.update({names[0]: names[1]} if len(names) == 2 else {})


class _MetricReads(cst.CSTVisitor):
    """Where one part of a metric's pair is taken."""

    def __init__(
        self,
        names: Collection[str],
        pairs: Mapping[str, str],
        keys: Collection[str],
        gone: Collection[cst.CSTNode],
    ) -> None:
        super().__init__()
        self.names = names
        self.keys = keys
        self.pairs = pairs
        self.parts = {*pairs.keys(), *pairs.values()}
        self.gone = gone
        self.read: cst.CSTNode | None = None

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.gone or pair_of(node, self.pairs) is not None:
            return False
        return super().on_visit(node)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        return not isinstance(node.target, cst.Tuple)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Subscript(self, node: cst.Subscript) -> None:
        if isinstance(node.value, cst.Name) and node.value.value in self.names:
            self.read = self.read or node
        if isinstance(node.value, cst.Subscript) and isinstance(node.value.slice[0].slice, cst.Index):
            if string(node.value.slice[0].slice.value) in self.keys:
                self.read = self.read or node

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        for side in (node.left, node.right):
            if isinstance(side, cst.Name) and side.value in self.names:
                self.read = self.read or node

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in self.parts:
            self.read = self.read or node


# -- statements that nothing needs any more ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Unit:
    """A statement of a function, whatever it is inside of: the names it gives and reads (its body left out)."""

    node: cst.CSTNode
    gives: frozenset[str] | None  # None: it does something besides giving names
    reads: frozenset[str]
    inside: tuple[cst.CSTNode, ...]  # the statements of its blocks

    def is_read_by(self, others: Iterable[_Unit]) -> bool:
        """Whether others read a name that it gives. What a `with` around it reads was there before: no such name waits
        for this statement.
        """
        gives = self.gives or frozenset()
        return any(gives & u.reads for u in others if not (isinstance(u.node, cst.With) and self.node in u.inside))


def _dead(
    node: cst.FunctionDef,
    file: ParsedFile,
    dropped: Sequence[cst.BaseExpression],
    gone: Sequence[cst.CSTNode],
    needed: Collection[cst.CSTNode] = (),
) -> set[cst.CSTNode]:
    """The statements that only serve the expressions `dropped` and the statements `gone`, which are included.

    A statement goes when it only gives names, nothing that stays reads these, and something that goes did. Those that
    are `needed` stay.
    """
    units = _units(node.body, set(map(id, dropped)))
    by_node = {unit.node: unit for unit in units}
    surely = {statement for statement in gone if statement in by_node}
    found: set[cst.CSTNode] = set(surely)
    wanted: set[str] = set().union(*(names_in(value) for value in dropped), *(by_node[s].reads for s in found))
    changed = True
    while changed:  # all that they read
        changed = False
        for unit in units:
            serves = unit.gives is not None and bool(unit.gives & wanted)
            if (
                unit.node not in needed
                and unit.node not in found
                and (all(i in found for i in unit.inside) if unit.inside else serves)
            ):
                found.add(unit.node)
                wanted |= unit.reads
                changed = True
    changed = True
    while changed:  # without what others read, too
        left = [unit for unit in units if unit.node not in found]
        stays = {
            unit.node
            for unit in units
            if unit.node in found - surely
            and (any(i not in found for i in unit.inside) if unit.inside else unit.is_read_by(left))
        }
        found -= stays
        changed = bool(stays)
    wanted = set().union(*(names_in(v) for v in dropped), *(unit.reads for unit in units if unit.node in found))
    read: set[str] = set().union(*(unit.reads for unit in units if unit.node not in found))
    for unit in units:
        if unit.node not in found and unit.gives is not None and isinstance(unit.node, cst.SimpleStatementLine):
            found |= set(_unread(unit.node.body[0], wanted - read))
    return found


def _unread(small: cst.BaseSmallStatement, names: set[str]) -> list[cst.CSTNode]:
    """The elements of `a, b = 1, 2` on both sides whose names are unread."""
    target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    value = small.value if isinstance(small, cst.Assign) else None
    if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
        return []
    if len(target.elements) != len(value.elements):
        return []
    pairs = list(zip(target.elements, value.elements, strict=True))
    gone = [p for p in pairs if isinstance(p[0].value, cst.Name) and p[0].value.value in names]
    if len(pairs) - len(gone) < 1 or not all(isinstance(p[1].value, cst.Name | cst.SimpleString) for p in gone):
        return []
    return [element for pair in gone for element in pair]


def _units(suite: cst.BaseSuite, dropped: set[int]) -> list[_Unit]:
    found: list[_Unit] = []
    if not isinstance(suite, cst.IndentedBlock):
        return found
    for statement in suite.body:
        found += _unit(statement, dropped)
    return found


def _unit(statement: cst.BaseStatement, dropped: set[int]) -> list[_Unit]:
    if isinstance(statement, cst.FunctionDef):
        reads = frozenset(names_in(statement)) - {statement.name.value}
        return [_Unit(statement, frozenset((statement.name.value,)), reads, ())]
    if isinstance(statement, cst.If | cst.With | cst.For | cst.While):
        blocks = [statement.body]
        headers: list[cst.CSTNode] = []
        branch: cst.CSTNode | None = statement
        if isinstance(statement, cst.If):
            blocks = []
            while branch is not None:
                assert isinstance(branch, cst.If | cst.Else)
                blocks.append(branch.body)
                headers += [branch.test] if isinstance(branch, cst.If) else []
                branch = branch.orelse if isinstance(branch, cst.If) else None
        elif isinstance(statement, cst.With):
            headers += list(statement.items)
        elif isinstance(statement, cst.For):
            headers += [statement.iter]
            blocks += [statement.orelse.body] if statement.orelse is not None else []
        else:
            headers += [statement.test]
        if all(isinstance(block, cst.IndentedBlock) for block in blocks):
            inner = [unit for block in blocks for unit in _units(block, dropped)]
            inside = tuple(s for block in blocks for s in block.body)
            reads = frozenset(set().union(*(names_in(header) for header in headers)))
            return [*inner, _Unit(statement, None, reads, inside)]
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        gives, reads = _gives(statement.body[0], dropped)
        return [_Unit(statement, gives, reads, ())]
    finder = _Reads(dropped)
    walk(statement, finder)
    return [_Unit(statement, None, frozenset(finder.found), ())]


def _gives(small: cst.BaseSmallStatement, dropped: set[int]) -> tuple[frozenset[str] | None, frozenset[str]]:
    """The names that a statement gives a value to or changes (None: it does more), and those that it reads."""
    finder = _Reads(dropped)
    if isinstance(small, cst.Assign):
        targets = [_target(target.target) for target in small.targets]
        walk(small.value, finder)
        if all(target is not None for target in targets):
            return frozenset().union(*(t for t in targets if t)), frozenset(finder.found)
    elif isinstance(small, cst.AugAssign) and _target(small.target) is not None:
        walk(small.value, finder)
        return _target(small.target), frozenset(finder.found)
    elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        function = small.value.func
        if isinstance(function, cst.Attribute) and isinstance(function.value, cst.Name):
            if function.attr.value in ("append", "extend", "update", "add"):
                for arg in small.value.args:
                    walk(arg, finder)
                return frozenset((function.value.value,)), frozenset(finder.found)
    finder = _Reads(dropped)
    walk(small, finder)
    return None, frozenset(finder.found)


def _target(node: cst.BaseExpression) -> frozenset[str] | None:
    if isinstance(node, cst.Name):
        return frozenset((node.value,))
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name):
        return frozenset((node.value.value,))
    if isinstance(node, cst.Tuple | cst.List):
        inner = [_target(element.value) for element in node.elements]
        return None if any(one is None for one in inner) else frozenset().union(*(one for one in inner if one))
    return None


class _Reads(cst.CSTVisitor):
    """Names that are read, those in some expressions left out."""

    def __init__(self, dropped: set[int]) -> None:
        super().__init__()
        self.dropped = dropped
        self.found: set[str] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        return id(node) not in self.dropped and super().on_visit(node)

    def visit_CompFor(self, node: cst.CompFor) -> bool:
        for part in (node.iter, *node.ifs, *([node.inner_for_in] if node.inner_for_in is not None else [])):
            walk(part, self)  # what a comprehension names is no read
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)
