"""A model_fn as plain data: network, loss, regularization, metrics, optimizer and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import bind, is_false, is_none, is_true, string
from migrator.program.modes import EVAL, PREDICT, TRAIN, ModalStatement, Modes, Spec, StraightBody, straighten
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.rules.losses import DataLoss, read_cross_entropy, read_loss
from migrator.rules.metrics import Metric, read_metric
from migrator.rules.optimizers import is_optimizer, refuse_schedule

_SPEC = (
    "mode",
    "predictions",
    "loss",
    "train_op",
    "eval_metric_ops",
    "export_outputs",
    "training_chief_hooks",
    "training_hooks",
    "scaffold",
    "evaluation_hooks",
    "prediction_hooks",
)
_UNSUPPORTED = ("training_chief_hooks", "training_hooks", "scaffold", "evaluation_hooks", "prediction_hooks")
_GLOBAL_STEPS = (
    "tf.train.get_global_step",
    "tf.train.get_or_create_global_step",
    "tf.train.create_global_step",
    "tf.contrib.framework.get_global_step",
    "tf.contrib.framework.get_or_create_global_step",
)
_REGULARIZATION = ("tf.losses.get_regularization_loss",)


@dataclass(frozen=True)
class Parameters:
    """The parameter names of a model_fn; None where it has none of that kind."""

    features: str
    labels: str | None
    mode: str | None
    params: str | None
    config: str | None


@dataclass(frozen=True)
class Definition:
    """A simple assignment `name = value` of the straightened body."""

    index: int
    name: str
    value: cst.BaseExpression
    modes: Modes


@dataclass(frozen=True)
class ModelFunction:
    """Everything that a Keras model of the same training needs, as nodes of the original tree.

    `network` are the statements of the forward code, `optimizer_statement` the one that makes the optimizer when it
    has a name. `output` is the tensor that the loss reads and `output_name` its name where it is a plain name.
    """

    file: ParsedFile
    node: cst.FunctionDef
    parameters: Parameters
    body: StraightBody
    definitions: tuple[Definition, ...]
    statements: tuple[ModalStatement, ...]
    consumed: frozenset[int]
    loss: DataLoss
    output: cst.BaseExpression
    regularized: bool
    metrics: tuple[tuple[cst.BaseExpression, Metric], ...]
    optimizer: cst.BaseExpression
    optimizer_index: int | None
    predictions: cst.BaseExpression | None
    summaries: tuple[cst.CSTNode, ...]
    label_names: frozenset[str]
    unclear: frozenset[str]

    @property
    def predicts_dicts(self) -> bool:
        """Whether one prediction is a dict of values."""
        node = self.predictions
        if isinstance(node, cst.Name):
            node = self.define(node.value)
        return isinstance(node, cst.Dict) or (
            isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict"
        )

    def define(self, name: str) -> cst.BaseExpression | None:
        """The value of a name that is assigned once in the body, by a statement of its own."""
        found = [d for d in self.definitions if d.name == name]
        return found[0].value if len(found) == 1 and name not in self.unclear else None


def read_model_function(file: ParsedFile, node: cst.FunctionDef) -> ModelFunction:
    """Reads a model_fn. Raises Blocked for the first construct that cannot be carried over."""
    return _Reader(file, node).read()


def read_parameters(node: cst.FunctionDef) -> Parameters:
    """The roles of a model_fn's parameters, which Estimator passes by position (features, labels) and by name."""
    if node.params.star_kwarg is not None or isinstance(node.params.star_arg, cst.Param):
        raise Blocked("TFM105", node.params, "the model_fn takes * or ** parameters")
    names = [p.name.value for p in (*node.params.params, *node.params.kwonly_params)]
    if not names:
        raise Blocked("TFM105", node, "the model_fn has no parameters")
    labels = "labels" if "labels" in names else (names[1] if len(names) > 1 and names[1] not in _ROLES else None)
    roles = {role: (role if role in names else None) for role in _ROLES}
    known = {names[0], labels, *roles.values()}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise Blocked(
            "TFM105", node.params, f"the model_fn has a parameter `{unknown[0]}` that Estimator does not pass"
        )
    return Parameters(names[0], labels, roles["mode"], roles["params"], roles["config"])


_ROLES = ("mode", "params", "config")


class _Reader:
    def __init__(self, file: ParsedFile, node: cst.FunctionDef) -> None:
        self.file = file
        self.node = node
        self.imports = file.imports
        self.parameters = read_parameters(node)
        if not isinstance(node.body, cst.IndentedBlock):
            raise Blocked("TFM105", node, "the model_fn is written on one line")
        self.body = straighten(node.body.body, self.imports, self.parameters.mode)
        self.statements = self.body.statements
        defaults = {i for i, s in enumerate(self.statements) if _is_none_default(s, self.statements)}
        self.definitions = tuple(d for d in _definitions(self.statements) if d.index not in defaults)
        self.consumed: set[int] = set(defaults)
        self.unclear = _assigned_in_blocks(self.statements)
        self.loss_index = len(self.statements)
        self.specs = [
            (spec, bind(spec.call, _SPEC, "tf.estimator.EstimatorSpec", "TFM105")) for spec in self.body.specs
        ]

    def read(self) -> ModelFunction:
        for _, bound in self.specs:
            for key in _UNSUPPORTED:
                if not is_none(bound.get(key)):
                    raise Blocked("TFM110", bound[key], f"`{key}` of the EstimatorSpec is not carried over yet")
        loss_expression = self._piece("loss", TRAIN)
        if loss_expression is None:
            raise Blocked("TFM105", self.node.name, "no EstimatorSpec of the TRAIN mode has a loss")
        data, regularized = self._loss(loss_expression)
        self._same_loss_in_eval(loss_expression)
        optimizer, optimizer_index = self._train_op(loss_expression)
        metrics = self._metrics()
        summaries = self._summaries()
        label_names = self._label_names()
        output = self._output(data, label_names)
        self._check_rebinding()
        self._not_changed_later(data, output, label_names)
        self._labels_are_a_tensor()
        self._layer_names()
        return ModelFunction(
            file=self.file,
            node=self.node,
            parameters=self.parameters,
            body=self.body,
            definitions=self.definitions,
            statements=self.statements,
            consumed=frozenset(self.consumed),
            loss=data,
            output=output,
            regularized=regularized,
            metrics=metrics,
            optimizer=optimizer,
            optimizer_index=optimizer_index,
            predictions=self._piece("predictions", PREDICT),
            summaries=tuple(summaries),
            label_names=frozenset(label_names),
            unclear=frozenset(self.unclear),
        )

    # -- EstimatorSpec ---------------------------------------------------------------------------------------------

    def _piece(self, key: str, mode: str) -> cst.BaseExpression | None:
        """What the spec of `mode` says for `key`; None when it says nothing (or None)."""
        found = [bound[key] for spec, bound in self.specs if mode in spec.modes and not is_none(bound.get(key))]
        if len({self.file.code(value) for value in found}) > 1:
            raise Blocked("TFM105", found[1], f"two EstimatorSpecs of one mode give different `{key}`")
        return found[0] if found else None

    def _definitions_of(self, name: str, mode: str) -> list[Definition]:
        return [d for d in self.definitions if d.name == name and mode in d.modes]

    def _clear(self, name: cst.Name, code: str) -> None:
        """Refuses a name that a loop, a condition or an unpacking gives a value."""
        if name.value in self.unclear:
            place = next((s.node for s in self.statements if name.value in _assigned_in_blocks((s,))), name)
            raise Blocked(code, place, f"`{name.value}` is given a value inside a block that cannot be resolved")

    def _same_loss_in_eval(self, loss: cst.BaseExpression) -> None:
        evaluated = self._piece("loss", EVAL)
        if evaluated is None:
            return
        different = self.file.code(evaluated) != self.file.code(loss)
        if isinstance(loss, cst.Name):
            train, other = self._definitions_of(loss.value, TRAIN), self._definitions_of(loss.value, EVAL)
            different = different or [d.index for d in train] != [d.index for d in other]
        if different:
            raise Blocked("TFM301", evaluated, "EVAL mode reports another loss than TRAIN mode minimizes")

    def _not_changed_later(self, data: DataLoss, output: cst.BaseExpression, label_names: set[str]) -> None:
        """What the loss read must still be called that at the end of the function, where the model is made."""
        read = names_in(output)
        if data.labels is not None:
            read |= names_in(data.labels) & label_names
        for index in range(self.loss_index + 1, len(self.statements)):
            if index in self.consumed or not self.statements[index].modes & {TRAIN, EVAL}:
                continue
            changed = read & (names_given((self.statements[index],)))
            if changed:
                raise Blocked(
                    "TFM301", self.statements[index].node, f"`{sorted(changed)[0]}` gets another value after the loss"
                )
        predictions = [(s, b["predictions"]) for s, b in self.specs if PREDICT in s.modes and "predictions" in b]
        for spec, node in predictions:
            later = names_given(self.statements[spec.position :]) & names_in(node)
            if later:
                raise Blocked("TFM301", node, f"`{sorted(later)[0]}` gets another value after the predictions")

    def _labels_are_a_tensor(self) -> None:
        finder = _Subscripts(self.parameters.labels)
        self.node.body.visit(finder)
        if finder.found is not None:
            raise Blocked("TFM305", finder.found, "the labels are a dict: give the model one tensor of labels")

    def _layer_names(self) -> None:
        """Keras wants every layer of a model to have a name of its own; TensorFlow 1 had scopes for that."""
        finder = _LayerNames(self.imports)
        self.node.body.visit(finder)
        if finder.twice is not None:
            raise Blocked("TFM202", finder.twice, "two layers get this name: Keras needs a name of its own for each")

    # -- loss ------------------------------------------------------------------------------------------------------

    def _loss(self, expression: cst.BaseExpression) -> tuple[DataLoss, bool]:
        terms = list(self._terms(expression, len(self.statements)))
        data: list[DataLoss] = []
        regularized = False
        for term in terms:
            name = self.imports.resolve(term.func) if isinstance(term, cst.Call) else None
            if name in _REGULARIZATION:
                regularized = True
            elif name == "tf.losses.get_total_loss":
                assert isinstance(term, cst.Call)
                added = bind(term, ("add_regularization_losses", "name"), name, "TFM301").get(
                    "add_regularization_losses"
                )
                if added is not None and not (is_true(added) or is_false(added)):
                    raise Blocked("TFM301", added, "whether the regularization counts is computed")
                regularized = regularized or not is_false(added)
                data.extend(self._collected_losses())
            else:
                found = read_loss(term, self.imports, self.file.code) if isinstance(term, cst.Call) else None
                if found is None:
                    raise Blocked("TFM301", term, "this loss is not one that can be carried over yet")
                if found.mean_of is not None:
                    found = self._through_names(found)
                data.append(found)
        if len(data) != 1:
            raise Blocked("TFM301", expression, f"the loss has {len(data)} data terms: one can be carried over")
        return data[0], regularized

    def _through_names(self, found: DataLoss) -> DataLoss:
        """`reduce_mean(x)` where x is a name for a cross entropy."""
        inner = found.mean_of
        if isinstance(inner, cst.Name):
            self._clear(inner, "TFM301")
            definitions = self._definitions_of(inner.value, TRAIN)
            if len(definitions) == 1:
                self.consumed.add(definitions[0].index)
                self.loss_index = min(self.loss_index, definitions[0].index)
                value = definitions[0].value
                if isinstance(value, cst.Call):
                    known = read_cross_entropy(value, self.imports)
                    if known is not None:
                        return known
                return DataLoss(None, None, None, (), mean_of=value)
        return found

    def _terms(self, node: cst.BaseExpression, before: int) -> Iterator[cst.BaseExpression]:
        """The terms of a sum, names followed to what they stand for just before statement `before`."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            yield from self._terms(node.left, before)
            yield from self._terms(node.right, before)
            return
        if isinstance(node, cst.Name):
            self._clear(node, "TFM301")
            earlier = [d for d in self._definitions_of(node.value, TRAIN) if d.index < before]
            if earlier:
                last = earlier[-1]
                self.consumed.add(last.index)
                yield from self._terms(last.value, last.index)
                return
        if isinstance(node, cst.Call):
            name = self.imports.resolve(node.func)
            if name == "tf.add_n" and node.args and isinstance(node.args[0].value, cst.List | cst.Tuple):
                for element in node.args[0].value.elements:
                    yield from self._terms(element.value, before)
                return
            if name in ("tf.identity", "tf.check_numerics") and node.args:
                yield from self._terms(node.args[0].value, before)
                return
        self.loss_index = min(self.loss_index, before)
        yield node

    def _collected_losses(self) -> list[DataLoss]:
        """The tf.losses calls of the body, which get_total_loss adds up."""
        found = []
        for index, statement in enumerate(self.statements):
            for call in _calls(statement.node):
                name = self.imports.resolve(call.func) or ""
                if name.startswith("tf.losses.") and not name.startswith("tf.losses.get_"):
                    loss = read_loss(call, self.imports, self.file.code)
                    if loss is None:
                        raise Blocked("TFM301", call, f"`{name}` is not carried over yet")
                    found.append(loss)
                    self.consumed.add(index)
                    self.loss_index = min(self.loss_index, index)
        return found

    def _output(self, data: DataLoss, label_names: set[str]) -> cst.BaseExpression:
        """The tensor that the model answers with: what the loss compares with the labels."""
        if data.prediction is not None:
            if names_in(data.prediction) & label_names:
                raise Blocked("TFM304", self._reads_labels(data.prediction), "the network reads the labels")
            return data.prediction
        assert data.mean_of is not None
        local = {d.name for d in self.definitions} | {self.parameters.features}
        tensors = sorted((self._behind(data.mean_of, label_names) & local) - label_names)
        if len(tensors) != 1 or tensors[0] == self.parameters.features:
            raise Blocked("TFM301", data.mean_of, "the loss does not read exactly one tensor of the network")
        return cst.Name(tensors[0])

    def _behind(self, node: cst.CSTNode, through: set[str]) -> set[str]:
        """The names in an expression and in the values of those names that are in `through`."""
        names, queue = names_in(node), list(names_in(node) & through)
        while queue:
            name = queue.pop()
            for definition in self.definitions:
                if definition.name == name:
                    new = names_in(definition.value) - names
                    names |= new
                    queue += new & through
        return names

    def _reads_labels(self, node: cst.BaseExpression) -> cst.CSTNode:
        """The first statement behind an expression that reads the labels themselves."""
        behind = self._behind(node, {d.name for d in self.definitions})
        for definition in self.definitions:
            if definition.name in behind and self.parameters.labels in names_in(definition.value):
                return definition.value
        return node

    # -- training --------------------------------------------------------------------------------------------------

    def _train_op(self, loss: cst.BaseExpression) -> tuple[cst.BaseExpression, int | None]:
        node = self._piece("train_op", TRAIN)
        if node is None:
            raise Blocked("TFM403", self.node.name, "no EstimatorSpec of the TRAIN mode has a train_op")
        made_at = len(self.statements)
        if isinstance(node, cst.Name):
            self._clear(node, "TFM403")
            definitions = self._definitions_of(node.value, TRAIN)
            if len(definitions) != 1:
                raise Blocked("TFM403", node, "the train_op is not assigned exactly once")
            made_at = definitions[0].index
            self.consumed.add(made_at)
            node = definitions[0].value
        if (
            not isinstance(node, cst.Call)
            or not isinstance(node.func, cst.Attribute)
            or node.func.attr.value != "minimize"
        ):
            raise Blocked("TFM403", node, "the train_op is not `optimizer.minimize(...)`")
        bound = bind(node, ("loss", "global_step", "var_list", "gate_gradients"), "minimize", "TFM403")
        if "loss" not in bound or self.file.code(bound["loss"]) != self.file.code(loss):
            raise Blocked("TFM403", node, "what is minimized is not the loss of the EstimatorSpec")
        if isinstance(loss, cst.Name) and any(d.index > made_at for d in self._definitions_of(loss.value, TRAIN)):
            raise Blocked("TFM403", node, "the loss changes after it is minimized: EstimatorSpec reports another one")
        for key in ("var_list", "gate_gradients"):
            if not is_none(bound.get(key)):
                raise Blocked("TFM403", bound[key], f"`{key}` of minimize is not carried over yet")
        self._global_step(bound.get("global_step"), node)
        return self._optimizer(node.func.value)

    def _global_step(self, node: cst.BaseExpression | None, call: cst.Call) -> None:
        if isinstance(node, cst.Name):
            definitions = self._definitions_of(node.value, TRAIN)
            if len(definitions) == 1:
                self.consumed.add(definitions[0].index)
                node = definitions[0].value
        if not isinstance(node, cst.Call) or self.imports.resolve(node.func) not in _GLOBAL_STEPS:
            raise Blocked(
                "TFM403", node or call, "minimize is not given the global step: TensorFlow 1 would not count steps"
            )

    def _optimizer(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, int | None]:
        index = None
        if isinstance(node, cst.Name):
            definitions = self._definitions_of(node.value, TRAIN)
            if len(definitions) != 1:
                raise Blocked("TFM401", node, "the optimizer is not assigned exactly once")
            index = definitions[0].index
            value = definitions[0].value
        else:
            value = node
        if not isinstance(value, cst.Call) or not is_optimizer(self.imports.resolve(value.func)):
            raise Blocked("TFM401", value, "the optimizer is not a tf.train optimizer that is made in the model_fn")
        for arg in value.args:
            self._refuse_schedule(arg.value)
        return node, index

    def _refuse_schedule(self, node: cst.BaseExpression) -> None:
        refuse_schedule(node, self.imports)
        for name in names_in(node):
            for definition in self._definitions_of(name, TRAIN):
                refuse_schedule(definition.value, self.imports)

    # -- evaluation ------------------------------------------------------------------------------------------------

    def _metrics(self) -> tuple[tuple[cst.BaseExpression, Metric], ...]:
        node = self._piece("eval_metric_ops", EVAL)
        if node is None:
            return ()
        added: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
        if isinstance(node, cst.Name):
            added = self._entries_added(node.value)
            definitions = self._definitions_of(node.value, EVAL)
            if len(definitions) != 1:
                raise Blocked("TFM501", node, "eval_metric_ops is not assigned exactly once")
            self.consumed.add(definitions[0].index)
            node = definitions[0].value
        found = []
        for key, value in [*_items(node), *added]:
            if isinstance(value, cst.Name):
                definitions = self._definitions_of(value.value, EVAL)
                if len(definitions) != 1:
                    raise Blocked("TFM501", value, "this metric is not assigned exactly once")
                self.consumed.add(definitions[0].index)
                value = definitions[0].value
            if not isinstance(value, cst.Call):
                raise Blocked("TFM501", value, "this metric is not a call of tf.metrics")
            found.append((key, read_metric(value, self.imports)))
        return tuple(found)

    def _entries_added(self, name: str) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
        """`name["key"] = value` statements."""
        found = []
        for index, statement in enumerate(self.statements):
            if not isinstance(statement.node, cst.SimpleStatementLine) or EVAL not in statement.modes:
                continue
            small = statement.node.body[0]
            target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
            if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) and target.value.value == name:
                element = target.slice[0].slice
                if len(target.slice) != 1 or not isinstance(element, cst.Index):
                    raise Blocked("TFM501", target, "this is not a key of eval_metric_ops")
                assert isinstance(small, cst.Assign)
                found.append((element.value, small.value))
                self.consumed.add(index)
        return found

    def _summaries(self) -> list[cst.CSTNode]:
        found: list[cst.CSTNode] = []
        for index, statement in enumerate(self.statements):
            if not isinstance(statement.node, cst.SimpleStatementLine) or len(statement.node.body) != 1:
                continue
            small = statement.node.body[0]
            if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
                name = self.imports.resolve(small.value.func) or ""
                if name.startswith("tf.summary."):
                    found.append(small)
                    self.consumed.add(index)
        return found

    # -- names -----------------------------------------------------------------------------------------------------

    def _label_names(self) -> set[str]:
        """The labels parameter and every name computed from it."""
        names: set[str] = {self.parameters.labels} if self.parameters.labels else set()
        for index, statement in enumerate(self.statements):
            if names & names_in(statement.node) and index not in self.consumed:
                names |= {d.name for d in self.definitions if d.index == index}
        return names

    def _check_rebinding(self) -> None:
        """A name with different values in different modes has no single Keras value."""
        for definition in self.definitions:
            for other in self.definitions:
                if (
                    other.name == definition.name
                    and not (other.modes & definition.modes)
                    and definition.index not in self.consumed
                    and self.file.code(other.value) != self.file.code(definition.value)
                ):
                    place = self.statements[other.index].node
                    raise Blocked("TFM106", place, f"`{definition.name}` has different values in different modes")


def _is_none_default(statement: ModalStatement, statements: tuple[ModalStatement, ...]) -> bool:
    """`loss = None` before a mode branch that fills it in."""
    found = list(_definitions((statement,)))
    if len(found) != 1 or not is_none(found[0].value):
        return False
    return any(d.name == found[0].name and not is_none(d.value) for d in _definitions(statements))


def _definitions(statements: tuple[ModalStatement, ...]) -> Iterator[Definition]:
    for index, statement in enumerate(statements):
        if not isinstance(statement.node, cst.SimpleStatementLine):
            continue
        for small in statement.node.body:
            if (
                isinstance(small, cst.Assign)
                and len(small.targets) == 1
                and isinstance(small.targets[0].target, cst.Name)
            ):
                yield Definition(index, small.targets[0].target.value, small.value, statement.modes)
            elif isinstance(small, cst.AnnAssign) and small.value is not None and isinstance(small.target, cst.Name):
                yield Definition(index, small.target.value, small.value, statement.modes)
            elif isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign):
                if isinstance(small.target, cst.Name):
                    value = cst.BinaryOperation(small.target, cst.Add(), small.value)
                    yield Definition(index, small.target.value, value, statement.modes)


def _assigned_in_blocks(statements: tuple[ModalStatement, ...]) -> set[str]:
    """Names that a loop, a condition or an unpacking gives a value: no single expression stands for them."""
    collector = _Targets()
    for statement in statements:
        node = statement.node
        simple = isinstance(node, cst.SimpleStatementLine)
        if not simple or not list(_definitions((statement,))):
            node.visit(collector)
    return collector.found


def names_given(statements: Sequence[ModalStatement]) -> set[str]:
    """Every name that statements give a value to, wherever in them."""
    collector = _Targets()
    for statement in statements:
        statement.node.visit(collector)
    return collector.found


class _Subscripts(cst.CSTVisitor):
    def __init__(self, name: str | None) -> None:
        super().__init__()
        self.name = name
        self.found: cst.Subscript | None = None

    def visit_Subscript(self, node: cst.Subscript) -> None:
        element = node.slice[0].slice
        if isinstance(node.value, cst.Name) and node.value.value == self.name and isinstance(element, cst.Index):
            if string(element.value) is not None:
                self.found = self.found or node


class _LayerNames(cst.CSTVisitor):
    """Finds a literal layer name that is given twice, or in a loop."""

    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.seen: set[str] = set()
        self.loops = 0
        self.twice: cst.CSTNode | None = None

    def visit_For(self, node: cst.For) -> None:
        self.loops += 1

    def leave_For(self, original_node: cst.For) -> None:
        self.loops -= 1

    def visit_Call(self, node: cst.Call) -> None:
        if not (self.imports.resolve(node.func) or "").startswith("tf.layers."):
            return
        for arg in node.args:
            name = string(arg.value) if arg.keyword is not None and arg.keyword.value == "name" else None
            if name is not None:
                if self.loops or name in self.seen:
                    self.twice = self.twice or arg
                self.seen.add(name)


class _Targets(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.found |= names_in(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self.found |= names_in(node.target)

    def visit_For(self, node: cst.For) -> None:
        self.found |= names_in(node.target)


def _items(node: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The entries of a dict display or a dict(...) call."""
    if isinstance(node, cst.Dict):
        items = []
        for element in node.elements:
            if not isinstance(element, cst.DictElement):
                raise Blocked("TFM501", element, "eval_metric_ops is built with **")
            items.append((element.key, element.value))
        return items
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        if all(arg.keyword is not None for arg in node.args):
            return [(cst.SimpleString(f'"{arg.keyword.value}"'), arg.value) for arg in node.args if arg.keyword]
    raise Blocked("TFM501", node, "eval_metric_ops is not a dict that is written out")


def entry(node: cst.BaseExpression, key: cst.BaseExpression) -> cst.BaseExpression | None:
    """The value of a string key in a dict display."""
    wanted = string(key)
    if isinstance(node, cst.Dict) and wanted is not None:
        for element in node.elements:
            if isinstance(element, cst.DictElement) and string(element.key) == wanted:
                return element.value
    return None


class _CallCollector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:
        self.found.append(node)


def _calls(node: cst.CSTNode) -> list[cst.Call]:
    collector = _CallCollector()
    node.visit(collector)
    return collector.found


__all__ = ["ModelFunction", "Parameters", "Spec", "entry", "names_given", "read_model_function", "read_parameters"]
