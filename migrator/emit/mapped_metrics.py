"""Metrics of the mapped tier: a `tf.metrics` call becomes what makes the Keras metric, and the tensors it is given."""

from __future__ import annotations

import builtins
from collections.abc import Callable

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import number
from migrator.program.parsed import Blocked, names_in
from migrator.rules.metrics import TRUTHS, Metric, read_metric
from migrator.walking import walk

_COMPARISONS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or")
_TRUTHS = frozenset(
    (*(f"tf.{name}" for name in _COMPARISONS), *(f"tf.math.{name}" for name in _COMPARISONS), "tf.nn.in_top_k")
)
_WHOLE = frozenset(
    f"tf.{name}"
    for name in ("argmax", "argmin", "math.argmax", "math.argmin", "round", "math.round", "to_int32", "to_int64")
)
# Keras averages these over the last axis first, and over batches: a wrapper takes every number for itself.
_DIFFERENCES = {
    "MeanSquaredError": "tf.math.squared_difference",
    "MeanAbsoluteError": "lambda y_true, y_pred: tf.abs(y_true - y_pred)",
}


def metric_tuple(
    original: cst.Call,
    updated: cst.Call,
    imports: ImportMap,
    code: Callable[[cst.CSTNode], str],
    values_of: Callable[[str], list[cst.BaseExpression]],
    classes: dict[str, str],
    indent: str,
) -> tuple[cst.BaseExpression, Metric]:
    """`(what makes the metric, value, ...)`, where the values are what its `update_state` is given.

    `values_of` tells what a name is given, `classes` gets the class of a metric that Keras computes otherwise. Raises
    Blocked (TFM501, TFM502).
    """
    metric = read_metric(original, imports, code)
    new = {id(old.value): arg.value for old, arg in zip(original.args, updated.args, strict=True)}

    def text(node: cst.BaseExpression) -> str:
        return code(new[id(node)])

    values: list[cst.BaseExpression] = []
    if metric.values is not None:
        value = new[id(metric.values)]
        values = [value if metric.update == "{0}" else cst.parse_expression(metric.update.format(code(value)))]
    else:
        assert metric.labels is not None and metric.predictions is not None
        prediction = new[id(metric.predictions)]
        follow = _Follower(imports, values_of)
        if metric.function in TRUTHS and not follow.is_truth(metric.predictions):
            prediction = cst.parse_expression(f"tf.cast({text(metric.predictions)}, tf.bool)")
        elif metric.function == "accuracy" and not follow.is_whole(metric.predictions):
            labels = new[id(metric.labels)]
            owner = code(labels) if isinstance(labels, _PRIMARIES) else f"({code(labels)})"
            prediction = cst.parse_expression(f"tf.cast({text(metric.predictions)}, {owner}.dtype)")
        values = [new[id(metric.labels)], prediction]
    if metric.weights is not None:
        values.append(new[id(metric.weights)])
    keras, arguments = f"tf.keras.metrics.{metric.keras}", list(metric.arguments)
    if metric.keras in _DIFFERENCES:
        keras, arguments = "tf.keras.metrics.MeanMetricWrapper", [_DIFFERENCES[metric.keras]]
    if metric.body:
        keras = _class(metric, original, classes, indent)
    made = f"{keras}({', '.join(arguments)})" if arguments else keras
    if arguments:
        # The metric is made later: what a loop gives other values until then is fixed here.
        fixed = ", ".join(f"{name}={name}" for name in _read(cst.parse_expression(made)) if name not in classes)
        made = f"lambda {fixed}: {made}" if fixed else f"lambda: {made}"
    elements = [cst.Element(cst.parse_expression(made)), *(cst.Element(value) for value in values)]
    return cst.Tuple(elements), metric


def _read(node: cst.CSTNode) -> list[str]:
    """The names that an expression takes from around it, but for `tf` and built-in functions."""
    own = _Parameters()
    walk(node, own)
    return sorted(names_in(node) - own.found - {"tf"} - set(dir(builtins)))


class _Parameters(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Param(self, node: cst.Param) -> None:
        self.found.add(node.name.value)


_PRIMARIES = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def _class(metric: Metric, call: cst.Call, classes: dict[str, str], indent: str) -> str:
    """The class of a metric with its own `result`, whose lines may read no name of the model_fn."""
    for key in ("specificity", "sensitivity"):
        given = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == key]
        given += [call.args[2].value] if len(call.args) > 2 and call.args[2].keyword is None else []
        if f"_at_{key}" in metric.function and any(number(value) is None for value in given):
            raise Blocked("TFM502", call, f"the {key} of this metric is not written out")
    lines = [f"class {metric.title}(tf.keras.metrics.{metric.keras}):", f'{indent}"""{metric.doc}"""', ""]
    lines += [f"{indent}def result(self):", *(f"{indent * 2}{line}" for line in metric.body)]
    body = "\n".join(lines) + "\n"
    name, number_of = metric.title, 2
    while classes.get(name, body) != body:
        name, number_of = f"{metric.title}{number_of}", number_of + 1
        body = body.replace(f"class {metric.title}", f"class {name}", 1)
    classes[name] = body
    return name


class _Follower:
    """What an expression is known to give."""

    def __init__(self, imports: ImportMap, values_of: Callable[[str], list[cst.BaseExpression]]) -> None:
        self.imports = imports
        self.values_of = values_of

    def is_truth(self, node: cst.BaseExpression) -> bool:
        """Whether it gives truth values."""
        return self._all(node, lambda one: isinstance(one, cst.Comparison) or self._called(one) in _TRUTHS)

    def is_whole(self, node: cst.BaseExpression) -> bool:
        """Whether it gives whole numbers, which a cast to the labels' type does not change."""
        return self._all(node, lambda one: self._called(one) in _WHOLE)

    def _all(self, node: cst.BaseExpression, test: Callable[[cst.BaseExpression], bool]) -> bool:
        if not isinstance(node, cst.Name):
            return test(node)
        values = self.values_of(node.value)
        return bool(values) and all(test(value) for value in values)

    def _called(self, node: cst.BaseExpression) -> str | None:
        return self.imports.resolve(node.func) if isinstance(node, cst.Call) else None
