"""The metrics of a model_fn as the metrics that `Model.compile` is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from migrator.emit.inlining import Inliner
from migrator.emit.layout import call
from migrator.emit.names import free
from migrator.names.imports import ImportMap
from migrator.program.calls import number
from migrator.program.model_function import ModelFunction
from migrator.program.parsed import Blocked, names_in
from migrator.rules import labels as label_rules
from migrator.rules.metrics import Metric
from migrator.rules.rewriter import Rewriter


@dataclass(frozen=True)
class EmittedMetrics:
    """The metrics as text, the classes that they need (lines to stand before them), and what stood in the way."""

    metrics: tuple[str, ...]
    classes: tuple[str, ...]
    problems: tuple[Blocked, ...]


def emit_metrics(
    function: ModelFunction, labels: str, output: str, taken: set[str], is_static: Callable[[str], bool]
) -> EmittedMetrics:
    """Builds the metrics of labels (the name `labels`) and the model's output (the name `output`).

    `is_static` tells names that depend on neither. New names are added to `taken`. Raises Blocked (TFM305, TFM503).
    """
    emitter = _Emitter(function, labels, output, taken, is_static)
    metrics = tuple(emitter.metric(key, metric) for key, metric in function.metrics)
    return EmittedMetrics(metrics, tuple(emitter.classes), tuple(emitter.problems))


class _Emitter:
    def __init__(
        self, function: ModelFunction, labels: str, output: str, taken: set[str], is_static: Callable[[str], bool]
    ) -> None:
        self.function = function
        self.labels = labels
        self.output_name = output
        self.taken = taken
        self.is_static = is_static
        self.imports: ImportMap = function.file.imports
        self.code = function.file.code
        self.indent = function.file.module.default_indent
        self.classes: list[str] = []
        self.problems: list[Blocked] = []

    def metric(self, key: cst.BaseExpression, metric: Metric) -> str:
        name = f"name={self.code(key)}"
        signature = f"{self.labels}, {self.output_name}"
        if metric.values is not None:
            inlined = self._inline(metric.values, metric)
            if self.labels in names_in(inlined):
                raise Blocked(
                    "TFM503", metric.call, "the mean of something computed from the labels is not carried over yet"
                )
            return self._mean(f"lambda {signature}: {self._finish(inlined, metric)}", name)
        assert metric.labels is not None and metric.predictions is not None
        given, predictions = self._inline(metric.labels, metric), self._inline(metric.predictions, metric)
        stripped = label_rules.plain(given, metric.keras, (), self.imports)[1]
        if metric.function == "accuracy" and self._is_argmax(predictions, self.output_name):
            stripped = label_rules.plain(given, "SparseCategoricalCrossentropy", (), self.imports)[1]
        plain = isinstance(stripped, cst.Name) and stripped.value == self.labels
        if metric.function == "accuracy" and self._is_argmax(predictions, self.output_name):
            if plain:
                return f"tf.keras.metrics.SparseCategoricalAccuracy({name})"
            if self._is_argmax(given, self.labels):
                return f"tf.keras.metrics.CategoricalAccuracy({name})"
        if metric.function == "auc" and plain and self._is_sigmoid(predictions):
            return f"tf.keras.metrics.AUC({', '.join([*metric.arguments, 'from_logits=True', name])})"
        if plain and self._is_output(predictions):
            return f"tf.keras.metrics.{metric.keras}({', '.join([*metric.arguments, name])})"
        return self._derived(metric, name, stripped, predictions, signature)

    def _derived(
        self, metric: Metric, name: str, given: cst.BaseExpression, predictions: cst.BaseExpression, signature: str
    ) -> str:
        """A metric of something computed from labels and output: a subclass that computes it."""
        if label_rules.changes_rank(given, self.imports):
            raise Blocked(
                "TFM305", metric.call, "the metric changes the shape of the labels in a way that Keras would not see"
            )
        left, right = self._finish(given, metric), self._finish(predictions, metric)
        title = free("".join(part.capitalize() for part in metric.function.split("_")), self.taken)
        self.taken.add(title)
        self.classes += [
            f"class {title}(tf.keras.metrics.{metric.keras}):",
            f"{self.indent}def update_state(self, {signature}, sample_weight=None):",
            f"{self.indent * 2}return super().update_state({left}, {right}, sample_weight)",
            "",
        ]
        return f"{title}({', '.join([*metric.arguments, name])})"

    def _mean(self, function: str, name: str) -> str:
        return call("tf.keras.metrics.MeanMetricWrapper", [function, name], self.indent, 3)

    def _finish(self, node: cst.BaseExpression, metric: Metric) -> str:
        """Rewrites an inlined expression; its problems are reported at the metric."""
        rewriter = Rewriter(self.imports, self.code, self.function.body.names)
        new = node.visit(rewriter)
        self.problems += [Blocked(p.code, metric.call, p.message) for p in rewriter.problems]
        assert isinstance(new, cst.BaseExpression)
        return self.code(new)

    def _inline(self, node: cst.BaseExpression, metric: Metric) -> cst.BaseExpression:
        """Replaces local names by their values until only labels, the output and static names are left."""
        inliner = Inliner(self.function, {self.output_name}, self.is_static, self.code)
        if not isinstance(self.function.output, cst.Name):
            inliner.output = (self.code(self.function.output), self.output_name)
        new = node.visit(inliner)
        assert isinstance(new, cst.BaseExpression)
        local = {d.name for d in self.function.definitions} | {self.function.parameters.features}
        left = {n for n in names_in(new) & local if not self.is_static(n)} - {self.output_name, self.labels}
        if left:
            raise Blocked(
                "TFM503", metric.call, f"the metric needs `{sorted(left)[0]}`, which is not the model's output"
            )
        return new

    def _is_output(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.output_name

    def _is_argmax(self, node: cst.BaseExpression, of: str) -> bool:
        if not isinstance(node, cst.Call) or self.imports.resolve(node.func) not in (
            "tf.argmax",
            "tf.math.argmax",
        ):
            return False
        values = [arg.value for arg in node.args if arg.keyword is None or arg.keyword.value in ("input", "axis")]
        return (
            len(values) == 2
            and isinstance(values[0], cst.Name)
            and values[0].value == of
            and number(values[1]) in (1.0, -1.0)
        )

    def _is_sigmoid(self, node: cst.BaseExpression) -> bool:
        return (
            isinstance(node, cst.Call)
            and self.imports.resolve(node.func) in ("tf.sigmoid", "tf.nn.sigmoid", "tf.math.sigmoid")
            and len(node.args) == 1
            and self._is_output(node.args[0].value)
        )
