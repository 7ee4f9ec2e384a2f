"""A model_fn as plain data: network, loss, regularization, metrics, optimizer and predictions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

import libcst as cst

from migrator.names.bindings import asks_for, bound_in, free_reads, names_changed
from migrator.program import tpu
from migrator.program.assignments import assignments
from migrator.program.body import Body, Definition, Parameters, assigned_in_blocks, definitions_in, names_given
from migrator.program.calls import bind, calls_in, is_none, nodes_in, string
from migrator.program.common_lines import with_common_lines
from migrator.program.leftovers import leftovers
from migrator.program.loss import (
    GENERAL_FORM,
    GeneralLoss,
    check_labels_are_a_tensor,
    check_not_changed_later,
    output_of,
    read_general_loss,
    read_model_loss,
    read_output,
    taken_by_key,
)
from migrator.program.metrics import read_metrics
from migrator.program.modes import (
    ALL,
    EVAL,
    PREDICT,
    SPEC,
    TRAIN,
    ModalStatement,
    Modes,
    Spec,
    SpecialisedBody,
    specialise,
)
from migrator.program.outlining import given, of_labels
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.refusals import Refusals
from migrator.program.summaries import only_summarizes, summary_symbol
from migrator.program.telling import leaves_something, of_graph, only_tells
from migrator.program.train_body import TrainBody
from migrator.program.train_op import TrainOp, read_train_op
from migrator.rules import scaffolds
from migrator.rules.hooks import NO_SPEC_HOOKS, SpecHooks, read_spec_hooks
from migrator.rules.losses import DataLoss
from migrator.rules.metrics import Metric
from migrator.walking import of_kinds


@dataclass(frozen=True)
class ModelFunction:
    """Everything that a Keras model of the same training needs, as nodes of the original tree.

    `output` is the tensor that the loss reads, or a dict of those that a GeneralLoss reads. `general` is the same
    function in the general form, where its own loss is a stock one, and `refusal` why there is none.
    `hooks` are those of the EstimatorSpecs, `export_outputs` those of PREDICT mode,
    `inlined` the functions that made its metrics and are read as part of it.
    """

    file: ParsedFile
    node: cst.FunctionDef
    parameters: Parameters
    body: SpecialisedBody
    definitions: tuple[Definition, ...]
    statements: tuple[ModalStatement, ...]
    consumed: frozenset[int]
    loss: DataLoss | GeneralLoss | None
    output: cst.BaseExpression
    regularized: bool
    metrics: tuple[tuple[cst.BaseExpression, Metric], ...]
    metrics_title: str | None
    remarks: tuple[Blocked, ...]
    train: TrainOp
    predictions: cst.BaseExpression | None
    summaries: tuple[cst.CSTNode, ...]
    label_names: frozenset[str]
    unclear: frozenset[str]
    hooks: SpecHooks = NO_SPEC_HOOKS
    export_outputs: cst.BaseExpression | None = None
    inlined: tuple[cst.FunctionDef, ...] = ()
    general: ModelFunction | None = None
    refusal: Blocked | None = None

    @property
    def labels_by_key(self) -> bool:
        """Whether the labels are a dict."""
        return taken_by_key(self.node.body, self.parameters.labels) is not None

    @property
    def reads_labels(self) -> bool:
        """Whether the model_fn asks for labels. Where it does not the data may have none, and Keras passes over the
        metrics of `Model.compile` for such.
        """
        return self.parameters.labels is not None and asks_for(self.node.body, self.parameters.labels)

    def define(self, name: str) -> cst.BaseExpression | None:
        """The value of a name that is assigned once in the body, by a statement of its own."""
        found = [d for d in self.definitions if d.name == name]
        return found[0].value if len(found) == 1 and name not in self.unclear else None

    def places_given(self, name: str) -> list[int]:
        """The statements that give a name or a part of its value something, in whatever way."""
        return [index for index, statement in enumerate(self.statements) if name in names_given((statement,))]

    def is_plainly_given(self, name: str) -> bool:
        """Whether all that a name is given is known: each time one expression, by a statement of its own."""
        return set(self.places_given(name)) <= {d.index for d in self.definitions if d.name == name}


def read_model_function(
    project: Project, file: ParsedFile, node: cst.FunctionDef, parameters: Parameters, refusals: Refusals
) -> ModelFunction | None:
    """Reads a model_fn; None where something cannot be carried over, which is added to `refusals`."""
    reader = refusals.of(lambda: _Reader(project, file, node, parameters), None)
    if reader is None:
        return None
    function = refusals.of(lambda: reader.read(refusals), None)
    return None if refusals else function


def _check_functions(body: SpecialisedBody) -> None:
    """A function inside reads its names when it is called. Raises Blocked (TFM106) where one of them changes till then.

    Which lines a network needs is told by what they say, so what a call of such a function reads is not seen.
    """
    read: dict[str, Modes] = {}
    known: set[str] = set()
    for statement in body.statements:
        changes = given(statement)
        if isinstance(statement.node, (cst.FunctionDef, cst.ClassDef)):
            changes &= known  # functions may be in any order: their lines stay
        known |= given(statement)
        changed = sorted(name for name in changes if statement.modes & read.get(name, frozenset()))
        if changed:
            message = (
                f"a nested function of the model_fn reads `{changed[0]}`, which is reassigned after it: "
                "use another name"
            )
            raise Blocked("TFM106", statement.node, message)
        for node in of_kinds(statement.node, cst.FunctionDef, cst.Assign):
            around: cst.CSTNode | None = None  # what a function hides is seen from around it
            if isinstance(node, cst.FunctionDef):
                around = cst.IndentedBlock([node])
            elif isinstance(node, cst.Assign) and _is_lambda(node.value):
                around = cst.Expr(node.value)
            for one in free_reads(around) if around is not None else ():
                read[one.value] = read.get(one.value, frozenset()) | statement.modes


def _check_counts(file: ParsedFile, model_fn: cst.FunctionDef) -> None:
    """An Estimator calls its model_fn in each mode, a Keras program once. Raises Blocked (TFM106) for what counts that.

    That is a number at the top of the file that the model_fn, or what it calls, adds to and reads, and never sets.
    """
    parts = [model_fn]
    seen: set[str] = set()
    for part in parts:
        names = {call.func.value for call in calls_in(part) if isinstance(call.func, cst.Name)} - seen
        seen |= names
        parts += [file.functions[name] for name in sorted(names & file.functions.keys())]
    nodes = [node for part in parts for node in nodes_in(part)]
    top = file.names_at_top - file.imports.names.keys() - {one.name for part in parts for one in bound_in(part)}
    asked = [node.args[0].value for node in nodes if isinstance(node, cst.Call) and _is_next(node)]
    named = [one for one in asked if isinstance(one, cst.Name) and one.value in top]
    added = [node.target for node in nodes if isinstance(node, cst.AugAssign)]
    anew = {name for node in nodes if isinstance(node, cst.Assign) for name in names_changed([node])}
    counts = {_owner(one) for one in added} & (top - anew)
    inside = {name for one in added for name in name_nodes(one)}
    reads = [node for node in nodes if isinstance(node, cst.Name) and node.value in counts and node not in inside]
    for counted in [*named, *reads]:
        message = f"`{counted.value}` counts calls of the model_fn: an Estimator calls it once per mode, `fit` once"
        raise Blocked("TFM106", counted, message)


def _owner(node: cst.BaseExpression) -> str:
    """The name that a target is, or is a part of."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def _is_next(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Name) and call.func.value == "next" and bool(call.args)


def _is_lambda(node: cst.BaseExpression) -> bool:
    ways = (node.body, node.orelse) if isinstance(node, cst.IfExp) else (node,)
    return any(isinstance(one, cst.Lambda) for one in ways)


class _Reader:
    def __init__(self, project: Project, file: ParsedFile, node: cst.FunctionDef, parameters: Parameters) -> None:
        self.project = project
        self.file = file
        self.node = node
        self.imports = file.imports
        self.parameters = parameters
        if not isinstance(node.body, cst.IndentedBlock):
            raise Blocked("TFM105", node, "the model_fn is on one line: put its body on its own lines")
        known = self.parameters
        body = specialise(node.body.body, self.imports, known.mode, functions=file.functions, labels=known.labels)
        body = with_common_lines(file, body)
        _check_functions(body)
        _check_counts(file, node)
        self.failing = [spec for spec in body.specs if spec.modes == {PREDICT} and self._fails(spec.call)]
        self.body = replace(body, specs=tuple(spec for spec in body.specs if spec not in self.failing))
        self.statements = self.body.statements
        defaults = {i for i, s in enumerate(self.statements) if _is_none_default(s, self.statements)}
        self.definitions = tuple(d for d in definitions_in(self.statements) if d.index not in defaults)
        self.host_calls: list[cst.BaseExpression] = []
        self.telling: set[int] = set()
        self.consumed: set[int] = defaults
        self.judged: frozenset[int] = frozenset()  # statements of metrics, which are not the training's
        self.of_hooks: frozenset[int] = frozenset()  # statements that are left out with hooks
        self.unclear = assigned_in_blocks(self.statements)
        self.inlined: list[cst.FunctionDef] = []
        self.specs = [(spec, self._bound(spec.call)) for spec in self.body.specs]
        self.read_body = Body(
            file,
            node,
            self.parameters,
            self.statements,
            self.definitions,
            frozenset(self.unclear),
            tuple(self.specs),
            self.body.names,
        )
        self._leave_out_what_only_tells()

    def _leave_out_what_only_tells(self) -> None:
        """Leaves out the lines that tell the mode or the graph, and what was computed for these alone."""
        graph = self._of_graph()
        told = [i for i, statement in enumerate(self.statements) if self._tells_the_graph(statement, graph)]
        self.telling = {*told, *(i for i, statement in enumerate(self.statements) if self._tells_the_mode(statement))}
        self.consumed |= self.telling
        gone = [self.statements[index].node for index in told]
        self._consume(leftovers(self.file, self.node, gone, may_go=lambda symbol: not leaves_something(symbol)))

    def _fails(self, call: cst.Call) -> bool:
        """Whether an EstimatorSpec is given what it has no parameter for: TensorFlow 1 raises TypeError."""
        given = [arg.keyword.value for arg in call.args if arg.keyword is not None]
        stars = any(arg.star for arg in call.args)
        return not stars and self.imports.resolve(call.func) not in tpu.SPECS and not set(given) <= set(SPEC)

    def _bound(self, call: cst.Call) -> dict[str, cst.BaseExpression]:
        """The arguments of a spec, those of a TPUEstimatorSpec as an EstimatorSpec has them."""
        name = self.imports.resolve(call.func)
        if name not in tpu.SPECS:
            return bind(call, SPEC, "tf.estimator.EstimatorSpec", "TFM105")
        bound = tpu.bind_spec(call, name)
        if "scaffold_fn" in bound:
            bound["scaffold"] = bound.pop("scaffold_fn")
        host_call = bound.pop("host_call", None)
        if host_call is not None and not is_none(host_call):
            self.host_calls.append(host_call)
        metrics = bound.pop("eval_metrics", None)
        if metrics is not None and not is_none(metrics):
            found, gone, function = tpu.metric_ops(self.file, self.statements, self.definitions, metrics)
            bound["eval_metric_ops"] = found
            self.consumed |= gone
            self.inlined.append(function)
        return bound

    def read(self, refusals: Refusals) -> ModelFunction | None:
        hooks = refusals.of(self._hooks, NO_SPEC_HOOKS)
        refusals.of(self._leave_out_host_calls, None)
        metrics = refusals.of(lambda: read_metrics(self.read_body, self.of_hooks | self.telling), None)
        predictions, outputs = (
            refusals.of(partial(self._piece, key, PREDICT), None) for key in ("predictions", "export_outputs")
        )
        loss_expression = self._piece("loss", TRAIN)
        if loss_expression is None:
            raise Blocked("TFM105", self.node.name, "no EstimatorSpec of TRAIN mode has a loss")
        train = self._train_op(loss_expression)
        if metrics is None or refusals:
            return None  # what stays of these would be taken for a part of the network or the loss
        if hooks.checkpoint is not None:
            scaffolds.check_saved(self.file, self.node, train.saved, hooks.checkpoint.node)
        if hooks.averages is not None and train.averages is None:
            raise Blocked("TFM413", hooks.averages.node, "moving averages that training does not update")
        self.consumed |= metrics.statements
        summaries = self._summaries()
        self.judged = metrics.statements
        function = ModelFunction(
            file=self.file,
            node=self.node,
            parameters=self.parameters,
            body=self.body,
            definitions=self.definitions,
            statements=self.statements,
            consumed=frozenset(self.consumed),
            loss=None,
            output=loss_expression,
            regularized=False,
            metrics=metrics.metrics,
            metrics_title=metrics.title,
            remarks=(*metrics.remarks, *(tpu.without_host_call(node) for node in self.host_calls), *self._left_out()),
            train=train,
            predictions=predictions,
            summaries=tuple(summaries),
            label_names=frozenset(),
            unclear=frozenset(self.unclear),
            hooks=hooks,
            inlined=tuple(self.inlined),
            export_outputs=outputs,
            general=None,
        )
        return self._with_loss(function, loss_expression)

    def _left_out(self) -> list[Blocked]:
        message = "TensorFlow 1 raises TypeError here, so nothing predicts: the branch for predictions is dropped"
        failing = [Blocked("TFM126", spec.call, message) for spec in self.failing]
        message = "this device is dropped: the strategy places the network"
        failing += [Blocked("TFM129", node, message) for node in self.body.placed]
        message = "a line that reports the mode or the graph is dropped: the model is built once, for all modes"
        return failing + [Blocked("TFM127", self.statements[index].node, message) for index in sorted(self.telling)]

    def _tells_the_mode(self, statement: ModalStatement) -> bool:
        """Whether a line tells the mode, or what is there in some of them only."""
        if statement.modes != ALL and only_tells(self.file, statement.node):
            return not self._gives_others(statement)
        about = self.body.names.about
        chosen = {d.name for d in self.definitions if names_in(d.value) & about and not calls_in(d.value)}
        return bool(names_in(statement.node) & (about | chosen)) and only_tells(self.file, statement.node)

    def _tells_the_graph(self, statement: ModalStatement, names: Collection[str]) -> bool:
        """Whether a line tells of labels, the loss or the training, which a Keras model is not built of."""
        node = statement.node
        asks = not names_in(node).isdisjoint(names) or of_graph(self.file, node)
        if not asks or not only_tells(self.file, node):
            return False
        return not self._gives_others(statement)

    def _gives_others(self, statement: ModalStatement) -> bool:
        """Whether other lines say a name that a loop gives."""
        given = names_changed([statement.node])
        return any(given & names_in(other.node) for other in self.statements if other is not statement)

    def _of_graph(self) -> set[str]:
        """Labels, loss, train_op, metrics, what asks for the graph, and all that is computed from these."""
        found = {self.parameters.labels} - {None}
        found |= {d.name for d in self.definitions if of_graph(self.file, d.value)}
        for loop in (s.node for s in self.statements if isinstance(s.node, cst.For)):
            found |= names_changed([loop]) if of_graph(self.file, loop) else set()
        for _, bound in self.specs:
            parts = [bound.get(key) for key in ("loss", "train_op", "eval_metric_ops")]
            found |= {one.value for one in parts if isinstance(one, cst.Name)}
        return self._computed_from({str(name) for name in found})

    # -- loss ------------------------------------------------------------------------------------------------------

    def _with_loss(self, function: ModelFunction, expression: cst.BaseExpression) -> ModelFunction:
        """The function with its stock loss, and the general form beside it for where that does not do."""
        try:
            general = self._general_form(function)
        except Blocked as problem:
            try:
                return replace(self._stock_form(function, expression), refusal=problem)
            except Blocked as other:
                own = problem.code == "TFM311" and other.code == "TFM304"  # a network that reads the labels
                raise (problem if other.code in GENERAL_FORM and not own else other) from None
        try:
            return replace(self._stock_form(function, expression), general=general)
        except Blocked as problem:
            if problem.code not in GENERAL_FORM:
                raise
            return general

    def _stock_form(self, function: ModelFunction, expression: cst.BaseExpression) -> ModelFunction:
        """The function with one stock loss over labels and one tensor of the network."""
        body = self.read_body
        if function.train.minimized is not None:
            raise Blocked("TFM301", function.train.minimized, "training minimizes another loss than it reports")
        loss = read_model_loss(body, expression)
        consumed = function.consumed | loss.statements
        self._training_is_apart(function.train, consumed)
        label_names = self._label_names(consumed)
        output = read_output(body, loss.data, label_names)
        self._check_rebinding(consumed)
        self._check_left(consumed)
        check_not_changed_later(body, loss, output, label_names, consumed)
        check_labels_are_a_tensor(body)
        return replace(
            function,
            consumed=consumed,
            loss=loss.data,
            output=output,
            regularized=loss.regularized,
            label_names=frozenset(label_names),
        )

    def _general_form(self, function: ModelFunction) -> ModelFunction:
        """The function with a loss that a method of the model computes by the user's own statements."""
        self._training_is_apart(function.train, function.consumed)
        loss = read_general_loss(self.read_body, function.consumed, function.train.minimized)
        consumed = function.consumed | loss.moved
        self._check_rebinding(consumed)
        self._check_left(consumed)
        return replace(
            function,
            consumed=consumed,
            loss=loss,
            output=output_of(loss.outputs),
            regularized=loss.regularized,
            label_names=of_labels(self.read_body),
        )

    def _hooks(self) -> SpecHooks:
        """The hooks of the specs, which are left out with the lines that made them."""
        found = read_spec_hooks(self.project, self.file, self.node, [bound for _, bound in self.specs])
        if found.averages is not None:
            self._check_averages(found.averages)
        lines = leftovers(
            self.file,
            self.node,
            found.nodes,
            may_go=lambda s: s.endswith("Hook") or scaffolds.may_go(s),
            own=("variables_to_restore",) if found.averages is not None else (),
        )
        if found.averages is not None:
            # The training may call its own by the same names.
            lines += [s.node for s in self.statements if s.modes == {EVAL} and self._only_restores(s.node)]
        self._consume(lines)
        self.of_hooks = frozenset(i for i, s in enumerate(self.statements) if any(s.node is line for line in lines))
        self.consumed |= {i for i, s in enumerate(self.statements) if self._only_names(s.node)}
        return found

    def _check_averages(self, remark: Blocked) -> None:
        """Moving averages may take the place of the weights in evaluations, and nowhere else."""
        for spec, bound in self.specs:
            if (bound.get("scaffold") is remark.node) != (spec.modes == {EVAL}):
                raise Blocked(
                    "TFM413",
                    remark.node,
                    "moving averages are restored in other modes than EVAL, or only in parts of it",
                )

    def _only_restores(self, node: cst.BaseStatement) -> bool:
        """Whether a statement only makes what a scaffold restores moving averages with."""
        given = assignments(node) if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else []
        functions = [value.func for _, value in given if isinstance(value, cst.Call)]
        return len(functions) == len(given) == 1 and (
            scaffolds.may_go(self.imports.resolve(functions[0]) or "")
            or (isinstance(functions[0], cst.Attribute) and functions[0].attr.value == "variables_to_restore")
        )

    def _leave_out_host_calls(self) -> None:
        """Leaves out the functions that a TPU's host was given, and the lines that only served them."""
        functions: list[cst.FunctionDef] = []
        for node in self.host_calls:
            functions += tpu.host_functions(self.file, self.statements, self.definitions, node)
        self.inlined += functions
        self._consume([*functions, *leftovers(self.file, self.node, [*self.host_calls, *functions])])

    def _consume(self, lines: Iterable[cst.CSTNode]) -> None:
        gone = {id(line) for line in lines}
        self.consumed |= {index for index, statement in enumerate(self.statements) if id(statement.node) in gone}

    def _only_names(self, node: cst.BaseStatement) -> bool:
        """Whether a statement is `tf.identity(x, name="x")` alone, which gave a tensor a name for hooks to find."""
        if (
            not isinstance(node, cst.SimpleStatementLine)
            or len(node.body) != 1
            or not isinstance(node.body[0], cst.Expr)
        ):
            return False
        value = node.body[0].value
        return isinstance(value, cst.Call) and self.imports.resolve(value.func) == "tf.identity"

    # -- EstimatorSpec ---------------------------------------------------------------------------------------------

    def _piece(self, key: str, mode: str) -> cst.BaseExpression | None:
        return self.read_body.piece(key, mode)

    def _definitions_of(self, name: str, mode: str) -> list[Definition]:
        return self.read_body.definitions_of(name, mode)

    def _clear(self, name: cst.Name, code: str) -> None:
        self.read_body.check_clear(name, code)

    # -- training --------------------------------------------------------------------------------------------------

    def _train_op(self, loss: cst.BaseExpression) -> TrainOp:
        trained = [(index, s) for index, s in enumerate(self.statements) if TRAIN in s.modes]
        last = {name: index for index, s in trained for name in names_given((s,))}
        from_data = frozenset(self._from_data())
        body = TrainBody(
            self.file, self.node, self.statements, from_data, lambda n: last.get(n, -1), project=self.project
        )
        train = read_train_op(self._piece("train_op", TRAIN), loss, body)
        self.consumed |= train.consumed | set(train.rate.moved)
        return train

    def _from_data(self) -> set[str]:
        """The features, the labels, and every name that is computed from them."""
        names = {self.parameters.features, self.parameters.labels} - {None}
        return self._computed_from({str(name) for name in names})

    def _computed_from(self, names: Collection[str]) -> set[str]:
        """Some names, and every name that is computed from them."""
        found = set(names)
        while True:
            new = set[str]()
            for statement in self.statements:
                if names_in(statement.node) & found:
                    new |= names_given((statement,))
            if new <= found:
                return found
            found |= new

    def _training_is_apart(self, train: TrainOp, consumed: Collection[int]) -> None:
        """What only the training knows must not be read elsewhere. Raises Blocked (TFM402, TFM403, TFM413).

        Statements that loss and metrics have taken must not read it either.
        """
        for _, bound in self.specs:
            for key in ("loss", "predictions", "eval_metric_ops", "export_outputs"):
                if key in bound:
                    self._reads_no_training(bound[key], train, allowed=train.variables)
        judged = (set(consumed) - self.consumed) | self.judged
        for index, statement in enumerate(self.statements):
            taken = index in consumed and (index not in judged or index in train.consumed)
            if taken or index in train.rate.own or index == train.index:
                continue
            allowed = train.variables if index in judged else frozenset[str]()
            self._reads_no_training(statement.node, train, allowed)
            foreign = [node for node in statement.after if node not in train.harmless]
            if foreign:
                raise Blocked("TFM403", foreign[0], "these control dependencies are unsupported")

    def _reads_no_training(self, node: cst.CSTNode, train: TrainOp, allowed: frozenset[str]) -> None:
        apart = {name.value for name in free_reads(node) if name not in train.rate.steps} - allowed
        read = apart & (train.names | train.rate.names)
        if read:
            code = "TFM402" if read & train.rate.names else "TFM403"
            if read & train.averaging:
                code = "TFM413"
            raise Blocked(code, node, f"`{sorted(read)[0]}` is not used by the training alone")

    # -- evaluation ------------------------------------------------------------------------------------------------

    def _summaries(self) -> list[cst.CSTNode]:
        found: list[cst.CSTNode] = []
        for index, statement in enumerate(self.statements):
            node: cst.CSTNode = statement.node
            if isinstance(node, cst.SimpleStatementLine):
                if len(node.body) != 1 or not isinstance(node.body[0], cst.Expr):
                    continue
                node = node.body[0]
            alone = summary_symbol(node, self.imports) is not None
            if alone or (index not in self.consumed and only_summarizes(self.file, statement.node, self.node)):
                found.append(node)
                self.consumed.add(index)
        return found

    # -- names -----------------------------------------------------------------------------------------------------

    def _label_names(self, consumed: Collection[int]) -> set[str]:
        """The labels parameter and every name computed from it."""
        names: set[str] = {self.parameters.labels} if self.parameters.labels else set()
        for index, statement in enumerate(self.statements):
            if names & names_in(statement.node) and index not in consumed:
                names |= {d.name for d in self.definitions if d.index == index}
        return names

    def _check_rebinding(self, consumed: Collection[int]) -> None:
        """A name with different values in different modes has no single Keras value."""
        for definition in self.definitions:
            for other in self.definitions:
                if (
                    other.name == definition.name
                    and not (other.modes & definition.modes)
                    and {PREDICT} not in (other.modes, definition.modes)  # is looked at where something predicts
                    and definition.index not in consumed
                    and self.file.code(other.value) != self.file.code(definition.value)
                ):
                    place = self.statements[other.index].node
                    raise Blocked(
                        "TFM106",
                        place,
                        f"`{definition.name}` has different values in different modes: use a name for each",
                    )

    def _check_left(self, consumed: Collection[int]) -> None:
        """What is computed of labels for the loss must not be read by a line that stays. Raises Blocked (TFM301)."""
        losses = {one.value for _, bound in self.specs if isinstance(one := bound.get("loss"), cst.Name)}
        of_loss = self._computed_from(losses if self.parameters.labels is None else {*losses, self.parameters.labels})
        gone = {d.name for d in self.definitions if d.index in consumed} & of_loss
        gone -= {d.name for d in self.definitions if d.index not in consumed}
        returned = {spec.call for spec in self.body.specs}
        for index, statement in enumerate(self.statements):
            if index in consumed or not returned.isdisjoint(calls_in(statement.node)):
                continue
            for name in free_reads(statement.node):
                if name.value in gone:
                    message = (
                        f"`{name.value}` is not used by the loss and the training alone: compute it again for "
                        "the other use"
                    )
                    raise Blocked("TFM301", statement.node, message)


def _is_none_default(statement: ModalStatement, statements: tuple[ModalStatement, ...]) -> bool:
    """`loss = None` before a mode branch that fills it in."""
    found = list(definitions_in((statement,)))
    if len(found) != 1 or not _is_nothing(found[0].value):
        return False
    others = [d for d in definitions_in(statements) if d.name == found[0].name]
    if not is_none(found[0].value):  # an empty dict may be filled, too
        name = found[0].name
        behind = statements[statements.index(statement) + 1 :]
        first = [
            next((s for s in behind if mode in s.modes and name in names_in(s.node)), None) for mode in statement.modes
        ]
        if any(one is not None and not _gives_anew(one, name) for one in first):
            return False
    return any(not _is_nothing(d.value) for d in others)


def _gives_anew(statement: ModalStatement, name: str) -> bool:
    """Whether a statement gives a name another value, whatever it was before."""
    found = list(definitions_in((statement,)))
    return len(found) == 1 and found[0].name == name and name not in names_in(found[0].value)


def _is_nothing(node: cst.BaseExpression) -> bool:
    """Whether an expression is None or an empty dict."""
    return is_none(node) or (isinstance(node, cst.Dict) and not node.elements)


def entry(node: cst.BaseExpression, key: cst.BaseExpression) -> cst.BaseExpression | None:
    """The value of a string key in a dict display."""
    wanted = string(key)
    if isinstance(node, cst.Dict) and wanted is not None:
        for element in node.elements:
            if isinstance(element, cst.DictElement) and string(element.key) == wanted:
                return element.value
    return None


__all__ = ["ModelFunction", "Parameters", "Spec", "entry", "names_given", "read_model_function"]
