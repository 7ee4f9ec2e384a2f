"""The general form: a subclass of tf.keras.Model whose `compute_loss` runs the user's own statements.

Where loss or metrics need more than one stock object over labels and one output, the model answers with the tensors
that they read (one tensor, or a dict of them by name), and methods of a small class compute them:

    class Model(tf.keras.Model):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.loss_tracker = tf.keras.metrics.Mean(name="loss")

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            labels, logits = y, y_pred["logits"]
            ...
            self.loss_tracker.update_state(loss)
            return loss

Where evaluation reports another loss than the training minimizes, `evaluation_loss` computes that one, for the class's
own `test_step`.

Keras shows no loss of a model that overrides `compute_loss`, so the class tracks it; a mean over batches is what
Estimator reports (TFM303).

Metrics of such a model: `outline(body, roots, consumed, EVAL)` of program/outlining.py says which statements the values
of a metric need and which tensors of the network they read; the model's `outputs` are those of the loss and these.
`Method.lines(outlined)` writes the statements, `ModelClass.trackers` gets the metric, and `ModelClass.metrics` these
lines and `self.accuracy.update_state(...)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.emit.names import free
from migrator.names.imports import ImportMap
from migrator.program.calls import is_false
from migrator.program.loss import ANOTHER, GeneralLoss, collection_of, output_of
from migrator.program.model_function import ModelFunction
from migrator.program.modes import EVAL, TRAIN, ModeNames
from migrator.program.outlining import Outlined, given
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.rules.generation import Keras
from migrator.walking import transformed, walk

WIDTH = 100
_TEST_STEP = [
    "x, y, sample_weight = tf.keras.utils.unpack_x_y_sample_weight(data)",
    "y_pred = self(x, training=False)",
    "self.loss_tracker.update_state(self.evaluation_loss(x, y, y_pred))",
    "return self.compute_metrics(x, y, y_pred, sample_weight)",
]
_STEP = ("tf.train.get_global_step", "tf.train.get_or_create_global_step", "tf.train.create_global_step")


@dataclass
class ModelClass:
    """The class as it is put together; a model with one output answers with that tensor, another with a dict of them.

    `trackers` are the metrics that it holds (attribute, expression), `outputs` the tensors that it answers with,
    `loss` the lines of its `compute_loss`, if any, `evaluated` those of another loss that evaluations report. With
    `own_metrics` it has a `compute_metrics` too, whose lines `metrics` update the metrics in the dict named `listed`:
    Keras' own, which serves the metrics given to `compile`, wants labels and outputs of one structure. Those metrics
    are no attributes: Keras counts the variables of such among the model's weights. `owner` is what these lines call
    the object whose method the model_fn is.
    """

    name: str
    outputs: tuple[str, ...]
    trackers: list[tuple[str, str]] = field(default_factory=list)
    loss: list[str] = field(default_factory=list)
    evaluated: list[str] = field(default_factory=list)
    own_metrics: bool = False
    metrics: list[str] = field(default_factory=list)
    listed: str | None = None
    owner: str = "owner"

    @property
    def output(self) -> cst.BaseExpression:
        """What the model answers with."""
        return output_of(self.outputs)

    def lines(self, indent: str, keras: Keras) -> list[str]:
        """The lines of the class."""
        init = ["super().__init__(*args, **kwargs)", *(f"self.{name} = {metric}" for name, metric in self.trackers)]
        methods: list[tuple[str, list[str]]] = []
        if self.trackers:
            methods.append(("def __init__(self, *args, **kwargs):", init))
        if self.listed is not None:
            listed = [f"return [*super().metrics, *{self.listed}.values()]"]
            methods.append(("@property\ndef metrics(self):", listed))
        if self.loss:
            more = ", training=True" if keras.loss_has_phase else ""
            head = f"def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None{more}):"
            methods.append((head, self.loss))
        if self.evaluated:
            methods.append(("def evaluation_loss(self, x, y, y_pred):", self.evaluated))
            methods.append(("def test_step(self, data):", _TEST_STEP))
        if self.own_metrics:
            body = [*self.metrics, "return self.get_metrics_result()"]
            methods.append(("def compute_metrics(self, x, y, y_pred, sample_weight):", body))
        reads = any(re.search(rf"\b{self.owner}\b", line) for line in (*self.loss, *self.evaluated, *self.metrics))
        own = [f"{self.owner} = self"] if reads else []
        lines = [*own, "", f"class {self.name}(tf.keras.Model):"]
        for head, body in methods:
            lines += [
                *(indent + line for line in head.split("\n")),
                *(f"{indent * 2}{line}" if line else "" for line in body),
                "",
            ]
        return lines


@dataclass(frozen=True)
class Method:
    """What a method of the model class needs to write the user's statements down.

    `text` gives the new code of a node of the model_fn, with some expressions `replaced`; `outputs` are all tensors
    that the model answers with, `collected` is what the losses hold that were made so far. `mode` is the
    only one that runs the method, if there is one.
    """

    function: ModelFunction
    text: Callable[[cst.CSTNode], str]
    replaced: dict[cst.CSTNode, cst.BaseExpression]
    outputs: Sequence[str]
    collected: Sequence[cst.BaseExpression] = ()
    mode: str | None = None

    def lines(self, outlined: Outlined) -> list[str]:
        """The first line, which gives features, labels and outputs their names, and the statements."""
        lines = self.unpack(outlined)
        for index in outlined.statements:
            statement = self.function.statements[index].node
            lines += self.code(statement).strip("\n").splitlines()
        return lines

    def code(self, node: cst.CSTNode) -> str:
        """The new code of a node of the model_fn, where it stands in a method of the model."""
        if self.mode is not None:
            node = transformed(node, _InMode(self.function.body.names, self.mode))
        left = names_in(node) & self.function.body.names.about
        if left:
            message = f"`{sorted(left)[0]}` is used for more than branching: write the cases as an `if`"
            raise Blocked("TFM106", node, message)
        collected = [self.text(one) for one in self.collected]
        finder = _OfModel(self.function, collected)
        walk(node, finder)
        self.replaced.update(finder.found)
        owner = owner_of(self.function)
        self.replaced.update({name: cst.Name(owner) for name in name_nodes(node) if name.value == "self"})
        return self.text(node)

    def unpack(self, outlined: Outlined) -> list[str]:
        """`features, labels, logits = x, y, y_pred["logits"]`."""
        parameters = self.function.parameters
        pairs: list[tuple[str, str]] = []
        if parameters.features in outlined.reads and parameters.features not in outlined.outputs:
            copied = "dict(x)" if _is_taken_apart(self.function, outlined, parameters.features) else "x"
            pairs.append((parameters.features, copied))
        if parameters.labels is not None and parameters.labels in outlined.reads:
            pairs.append((parameters.labels, "y"))
        for name in outlined.outputs:
            pairs.append((name, "y_pred" if len(self.outputs) == 1 else f'y_pred["{name}"]'))
        pairs = [(name, value) for name, value in pairs if name != value]
        if not pairs:
            return []
        line = f"{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}"
        if len(line) <= WIDTH - 16 or {name for name, _ in pairs} & {"x", "y", "y_pred"}:
            return [line]
        return [f"{name} = {value}" for name, value in pairs]


def closure(function: ModelFunction, outlined: Outlined, roots: Sequence[cst.CSTNode]) -> set[str]:
    """The names that a method finds around itself, in the function that makes the model."""
    statements = [function.statements[index] for index in outlined.statements]
    read = set().union(*(names_in(s.node) for s in statements), *(names_in(node) for node in roots))
    return read - set().union(*(given(s) for s in statements)) - outlined.reads


def _is_taken_apart(function: ModelFunction, outlined: Outlined, features: str) -> bool:
    """Whether the statements of a method change the dict of features (`features.pop("weight")`)."""
    return any(features in given(function.statements[index]) for index in outlined.statements)


def emit_general_loss(
    function: ModelFunction,
    text: Callable[[cst.CSTNode], str],
    replaced: dict[cst.CSTNode, cst.BaseExpression],
    taken: set[str],
    outputs: Sequence[str],
    replicas: bool,
    waits: bool = False,
) -> ModelClass:
    """Builds the class of a model with these outputs, with its loss.

    The mean of losses `waits` for each of them where the metric does not by itself: Keras 3 counts one more where it
    looks for a batch behind the last of data of unknown size (5 batches: 0.7358 for 0.8830 of TensorFlow 1).

    `replicas` says that the model may train on several devices at a time: Keras adds up what they compute, where
    Estimator takes the mean. Raises Blocked (TFM312).
    """
    loss = function.loss
    assert isinstance(loss, GeneralLoss)
    model = ModelClass(class_name(function, taken), tuple(outputs), owner=owner_of(function))
    method = Method(function, text, replaced, outputs, loss.collected, TRAIN if loss.evaluated is not None else None)
    lines = method.lines(loss.outlined)
    name = loss.expression.value if isinstance(loss.expression, cst.Name) else None
    if name is None:
        name = free(
            "loss", set().union(*(names_in(function.statements[i].node) for i in loss.outlined.statements), set())
        )
        lines.append(f"{name} = {method.code(loss.expression)}")
    if loss.evaluated is not None:
        if waits:
            raise Blocked("TFM301", loss.evaluated.expression, f"{ANOTHER}: leave `--keras 3` out")
        evaluates = Method(function, text, replaced, outputs, loss.evaluated.collected, EVAL)
        model.evaluated += evaluates.lines(loss.evaluated.outlined)
        model.evaluated.append(f"return {evaluates.code(loss.evaluated.expression)}")
    model.trackers.append(("loss_tracker", 'tf.keras.metrics.Mean(name="loss")'))
    update = f"self.loss_tracker.update_state({name})"
    indent = function.file.module.default_indent
    lines += [f"with tf.control_dependencies([{name}]):", f"{indent}{update}"] if waits else [update]
    if replicas and loss.summed is None:
        message = "whether TensorFlow 1 averages over replicas depends on the loss created last, which is unknown"
        raise Blocked("TFM312", loss.expression, message)
    mean = replicas and not loss.summed
    trained = name if loss.minimized is None else method.code(loss.minimized)
    if mean and not trained.isidentifier():
        trained = f"({trained})"
    lines.append(f"return {trained} / self.distribute_strategy.num_replicas_in_sync" if mean else f"return {trained}")
    model.loss += lines
    model.own_metrics = len(outputs) > 1 or function.labels_by_key or not function.reads_labels
    return model


def owner_of(function: ModelFunction) -> str:
    """What the `self` of a model_fn that is a method is called in the methods of the model, whose `self` is another."""
    return free("owner", set(function.file.names))


class OfOwner(cst.CSTTransformer):
    """Gives the `self` of a model_fn the name that it has in the methods of the model."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return cst.Name(self.owner) if original_node.value == "self" else updated_node


def class_name(function: ModelFunction, taken: set[str]) -> str:
    """`cnn_model_fn` gives CnnModel; the name is added to `taken`."""
    words = function.node.name.value.strip("_").removesuffix("_fn").split("_")
    name = free("".join(word[:1].upper() + word[1:] for word in words if word) or "Model", taken)
    taken.add(name)
    return name


class _InMode(cst.CSTTransformer):
    """Says what a conditional expression is in the one mode that runs it."""

    def __init__(self, names: ModeNames, mode: str) -> None:
        super().__init__()
        self.names = names
        self.mode = mode

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        when = self.names.when(original_node.test)
        if when is None:
            return updated_node
        return updated_node.body if self.mode in when else updated_node.orelse


class _OfModel(cst.CSTVisitor):
    """Finds what TensorFlow 1 keeps in collections of the graph, and says what the model knows itself instead."""

    def __init__(self, function: ModelFunction, collected: Sequence[str]) -> None:
        super().__init__()
        self.function = function
        self.imports: ImportMap = function.file.imports
        self.collected = collected
        self.found: dict[cst.CSTNode, cst.BaseExpression] = {}

    def visit_Call(self, node: cst.Call) -> None:
        text = self._replacement(self.imports.resolve(node.func) or "", node)
        if text is not None:
            self.found[node] = cst.parse_expression(text)

    def _replacement(self, name: str, call: cst.Call) -> str | None:
        if name == "tf.trainable_variables":
            self._no_scope(call, 0)
            return "self.trainable_variables"
        if name == "tf.losses.get_regularization_losses":
            self._no_scope(call, 0)
            return "self.losses"
        if name == "tf.losses.get_regularization_loss":
            self._no_scope(call, 0)
            return self._regularization()
        if name == "tf.losses.get_losses":
            self._no_scope(call, 0)
            return f"[{', '.join(self.collected)}]"
        if name == "tf.losses.get_total_loss":
            alone = any(is_false(arg.value) for arg in call.args[:1])
            return " + ".join([*self.collected, *(() if alone else (self._regularization(),))])
        if name in _STEP:
            return "self.optimizer.iterations"
        if name == "tf.get_collection":
            self._no_scope(call, 1)
            key = collection_of(call, self.imports)
            if key == "LOSSES":
                return f"[{', '.join(self.collected)}]"
            known = {"REGULARIZATION_LOSSES": "self.losses", "TRAINABLE_VARIABLES": "self.trainable_variables"}
            if key not in known:
                raise Blocked("TFM312", call, "the loss reads a collection that does not exist in Keras")
            return known[key]
        return None

    def _no_scope(self, call: cst.Call, known: int) -> None:
        if len(call.args) > known:
            raise Blocked("TFM312", call, "the loss reads variables by their scope name, which does not exist in Keras")

    def _regularization(self) -> str:
        # The sum of an empty list is 0, as in TensorFlow 1; tf.add_n wants at least one term.
        return "tf.add_n(self.losses)" if "regularizer" in self.function.file.bare else "sum(self.losses)"

    def visit_Attribute(self, node: cst.Attribute) -> None:
        """`variable.op.name`: a variable of Keras has no operation, whose name was its own without `:0`."""
        inner = node.value
        if node.attr.value == "name" and isinstance(inner, cst.Attribute) and inner.attr.value == "op":
            self.found[node] = cst.parse_expression(f'{self.function.file.code(inner.value)}.name.partition(":")[0]')
