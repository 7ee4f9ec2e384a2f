"""The loss of a model_fn as what `Model.compile` is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from migrator.emit.general import ModelClass, closure, emit_general_loss
from migrator.emit.inlining import Inliner
from migrator.emit.names import free
from migrator.program.loss import GeneralLoss
from migrator.program.model_function import ModelFunction
from migrator.program.modes import EVAL, TRAIN
from migrator.program.outputs import answers_in_columns, is_the_same_of_columns, keeps_examples
from migrator.program.parsed import Blocked, names_in
from migrator.rules import labels as label_rules
from migrator.rules.generation import KERAS_2, Keras
from migrator.rules.losses import DataLoss

_LOSS_FUNCTIONS = {
    "MeanSquaredError": "mean_squared_error",
    "MeanAbsoluteError": "mean_absolute_error",
    "Huber": "huber",
    "CategoricalCrossentropy": "categorical_crossentropy",
    "SparseCategoricalCrossentropy": "sparse_categorical_crossentropy",
    "BinaryCrossentropy": "binary_crossentropy",
}


@dataclass(frozen=True)
class EmittedLoss:
    """What the loss gives to the end of the function.

    `arguments` are for `compile` and `lines` define what they name. In the general form there is no argument, but
    `model` is the class of the model. `reads` are texts whose names the network must give, `moved` the statements that
    are in `lines`, `kept` those in the class.
    """

    arguments: tuple[str, ...]
    lines: tuple[str, ...]
    moved: frozenset[int]
    remarks: tuple[Blocked, ...]
    model: ModelClass | None = None
    reads: tuple[str, ...] = ()
    kept: frozenset[int] = frozenset()


def emit_loss(
    function: ModelFunction,
    labels: str,
    output: str,
    taken: set[str],
    text: Callable[[cst.CSTNode], str],
    replaced: dict[cst.CSTNode, cst.BaseExpression],
    is_static: Callable[[str], bool],
    replicas: bool,
    further: Sequence[str] = (),
    of_examples: bool = False,
    keras: Keras = KERAS_2,
) -> EmittedLoss:
    """Builds the loss of labels (the name `labels`) and the model's output (the name `output`).

    `text` gives the new code of a node of the model_fn, where expressions may be `replaced`. `is_static` tells names
    that depend on neither labels nor features, `replicas` whether several devices may train at a time, and `further`
    are outputs of the model beside those that the loss reads. `of_examples`: the loss is not to be averaged. Raises
    Blocked (TFM301, TFM304).
    """
    if isinstance(function.loss, GeneralLoss):
        loss = function.loss
        outputs = (*loss.outputs, *further)
        model = emit_general_loss(function, text, replaced, taken, outputs, replicas, keras.number == 3)
        around = closure(function, loss.outlined, loss.nodes)
        if loss.evaluated is not None:
            around |= closure(function, loss.evaluated.outlined, loss.evaluated.nodes)
        reads = f"({', '.join(sorted(around))})"
        return EmittedLoss((), (), frozenset(), (), model, (reads,), frozenset(loss.statements))
    emitter = _Emitter(function, labels, output, taken, text, is_static, of_examples, keras)
    lines, argument = emitter.emit()
    return EmittedLoss(
        (f"loss={argument}",), tuple(lines), frozenset(emitter.moved), tuple(emitter.remarks), reads=(argument,)
    )


class _Emitter:
    def __init__(
        self,
        function: ModelFunction,
        labels: str,
        output: str,
        taken: set[str],
        text: Callable[[cst.CSTNode], str],
        is_static: Callable[[str], bool],
        of_examples: bool,
        keras: Keras,
    ) -> None:
        self.of_examples = of_examples
        self.unreduced = '"none"' if keras.number == 3 else "tf.keras.losses.Reduction.NONE"
        self.function = function
        assert isinstance(function.loss, DataLoss)
        self.data = function.loss
        self.file = function.file
        self.indent = function.file.module.default_indent
        self.labels = labels
        self.output_name = output
        self.taken = taken
        self.text = text
        self.is_static = is_static
        self.moved: set[int] = set()
        self.remarks: list[Blocked] = []

    def emit(self) -> tuple[list[str], str]:
        """Statements to put before compile (a loss function, when one is needed), and the loss argument."""
        data = self.data
        if data.keras is not None and data.labels is not None:
            inlined = self._label_inlined(data.labels)
            output = label_rules.Output(
                partial(answers_in_columns, self.function), partial(keeps_examples, self.function)
            )
            keras, label = label_rules.plain(inlined, data.keras, data.arguments, self.file.imports, output)
            plain = isinstance(label, cst.Name) and label.value == self.labels
            if plain and not self._given_again(label) and not self._is_reshaped():
                if keras != data.keras:
                    self.remarks.append(
                        Blocked(
                            "TFM307", data.labels, "the loss of one-hot labels becomes sparse: labels must be in range"
                        )
                    )
                arguments = self._arguments(data)
                if self.of_examples:
                    arguments.append(f"reduction={self.unreduced}")
                return [], f"tf.keras.losses.{keras}({', '.join(arguments)})"
        subject = data.labels if data.labels is not None else data.mean_of
        assert subject is not None
        if data.keras is not None:
            self._only_output(subject)
        name = free("loss_fn", self.taken)
        inlined = self._label_inlined(subject)
        self._check_shapes_behind(inlined)
        column = label_rules.needs_flat_labels(inlined, self.labels, self.file.imports)
        classes = not column and label_rules.reads_classes(inlined, self.labels, self.output_name, self.file.imports)
        apart = data.mean_of is not None and not column and not classes
        if apart and not is_the_same_of_columns(self.function, subject, of_columns=self.of_examples):
            raise Blocked("TFM301", subject, "the loss needs the labels in their original shape")
        if data.mean_of is not None and self.labels in names_in(inlined) and not classes:
            self.remarks.append(
                Blocked("TFM306", data.mean_of, "Keras reshapes scalar labels to a column before this loss")
            )
        lines = [f"def {name}({self.labels}, {self.output_name}):"]
        if column:
            lines.append(
                f"{self.indent}{self.labels} = tf.reshape({self.labels}, [-1])  # Keras gives them as a column"
            )
        if classes:
            lines += [
                f"{self.indent}if {self.labels}.shape.rank == {self.output_name}.shape.rank:",
                f"{self.indent * 2}{self.labels} = tf.squeeze({self.labels}, -1)  # one class per example, as a column",
            ]
        for index in self._label_statements(subject):
            self.moved.add(index)
            text = self.text(self.function.statements[index].node).strip("\n")
            lines += [f"{self.indent}{line}" if line else "" for line in text.splitlines()]
        value = self.text(subject)
        if data.keras is not None:
            arguments = [value, self.output_name, *self._arguments(data)]
            value = f"tf.keras.losses.{_LOSS_FUNCTIONS[data.keras]}({', '.join(arguments)})"
        lines.append(f"{self.indent}return {value}")
        return [*lines, ""], name

    def _arguments(self, data: DataLoss) -> list[str]:
        """The loss' own arguments, rewritten."""
        found = []
        for argument in data.arguments:
            name, _, text = argument.partition("=")
            found.append(f"{name}={self.text(cst.parse_expression(text))}")
        return found

    def _is_reshaped(self) -> bool:
        """Whether the tensor that the loss reads is a reshaped one: then the labels' own reshape counts."""
        node: cst.BaseExpression | None = self.function.output
        if isinstance(node, cst.Name):
            node = self.function.define(node.value)
        return isinstance(node, cst.Call) and self.file.imports.resolve(node.func) == "tf.reshape"

    def _label_inlined(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """An expression with every name that is computed from the labels replaced by its value."""
        keep = {d.name for d in self.function.definitions} - self.function.label_names
        new = node.visit(Inliner(self.function, keep, lambda name: False, self.file.code))
        assert isinstance(new, cst.BaseExpression)
        return new

    def _given_again(self, inlined: cst.BaseExpression) -> list[str]:
        """The names of labels in an expression that get several values, one after the other: they are left as names."""
        names = sorted(names_in(inlined) & {*self.function.label_names, self.labels})
        return [name for name in names if len(self.function.places_given(name)) > 1]

    def _check_shapes_behind(self, inlined: cst.BaseExpression) -> None:
        """Refuses names that get several values, one of them with other axes, which the expression does not show."""
        for name in self._given_again(inlined):
            values = [self._label_inlined(d.value) for d in self.function.definitions if d.name == name]
            if any(label_rules.changes_rank(value, self.file.imports) for value in values):
                raise Blocked("TFM301", inlined, f"`{name}`, which the loss reads, has several values")

    def _label_statements(self, subject: cst.BaseExpression) -> list[int]:
        """The statements that compute `subject` from the labels and the output, in order."""
        needed: set[int] = set()
        names = names_in(subject) & self.function.label_names
        while names:
            name = names.pop()
            found = [d for d in self.function.definitions if d.name == name]
            if name == self.labels and not found:
                continue
            if name in self.function.label_names and not (found and self.function.is_plainly_given(name)):
                raise Blocked(
                    "TFM304", subject, f"`{name}` is computed from the labels in a way that cannot move into the loss"
                )
            for definition in found:
                statement = self.function.statements[definition.index]
                if not {TRAIN, EVAL} <= statement.modes:
                    message = f"`{name}` is computed from the labels in only one of training and evaluation"
                    raise Blocked("TFM304", statement.node, message)
                if definition.index not in needed:
                    needed.add(definition.index)
                    names |= names_in(self.function.statements[definition.index].node) & self.function.label_names
                    self._only_output(definition.value)
        return sorted(needed)

    def _only_output(self, node: cst.BaseExpression) -> None:
        local = {d.name for d in self.function.definitions} | {self.function.parameters.features}
        foreign = (names_in(node) & local) - self.function.label_names - {self.output_name}
        foreign = {name for name in foreign if not self.is_static(name)}
        if foreign:
            raise Blocked(
                "TFM301", node, f"the loss also needs `{sorted(foreign)[0]}`, which is not the model's output"
            )
