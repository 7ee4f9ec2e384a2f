"""Metrics that are computed from others: an F1 score of `tf.metrics.precision` and `tf.metrics.recall`.

An entry `(2 * precision * recall / (precision + recall), tf.group(precision_op, recall_op))` reports a number computed
from the counts of its metrics. Where all of them count the same labels and predictions, one Keras metric counts them,
and its `result` is that number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from migrator.ir.values import Constant, Operation, Value
from migrator.rules.metrics import Metric, is_metric_symbol

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/"}
_CALLS = {"tf.add": "+", "tf.subtract": "-", "tf.multiply": "*", "tf.divide": "/", "tf.truediv": "/"}
_CALLS |= {f"tf.math.{name.removeprefix('tf.')}": sign for name, sign in _CALLS.items()}
#: What stands for the updates of several metrics, or gives what it is given.
_UPDATES = ("tf.group", "tf.identity", "tf.tuple")
#: The result of a metric, from a matrix of counts: rows are labels, columns predictions.
_RESULTS = {
    "precision": "tf.math.divide_no_nan(counts[1, 1], counts[0, 1] + counts[1, 1])",
    "recall": "tf.math.divide_no_nan(counts[1, 1], counts[1, 0] + counts[1, 1])",
    "true_positives": "counts[1, 1]",
    "true_negatives": "counts[0, 0]",
    "false_positives": "counts[0, 1]",
    "false_negatives": "counts[1, 0]",
}


def parts_of(value: Value) -> Iterator[Value]:
    """What a number is computed from, or what updates stand for; nothing where a value is neither."""
    if isinstance(value, Operation) and value.symbol in (*_OPERATORS, *_CALLS, *_UPDATES):
        yield from (one for one in value.given if not isinstance(one, Constant))


def derived_metric(
    value: Value, update: Value, read: Callable[[Operation], Metric], code: Callable[[cst.CSTNode], str]
) -> Metric | None:
    """The metric of a pair that is computed from others; None where it is not known what it counts, or when."""
    metrics: dict[Operation, Metric] = {}
    text = _text(value, metrics, read)
    if text is None or not metrics or set(_updated(update)) != metrics.keys():
        return None
    first = next(iter(metrics.values()))
    if len({_counted(one, code) for one in metrics.values()}) > 1 or first.labels is None or first.predictions is None:
        return None
    names = sorted({one.function for one in metrics.values()})
    body = ["counts = self.total_cm", *(f"{name} = {_RESULTS[name]}" for name in names), f"return {text}"]
    return Metric(
        function="counts",
        keras="MeanIoU",
        arguments=("num_classes=2",),
        labels=_truth(first.labels),
        predictions=_truth(first.predictions),
        values=None,
        weights=first.weights,
        call=first.call,
        title="Counts",
        doc=f"A number computed from {' and '.join(names)}.",
        body=tuple(body),
    )


def _text(
    value: Value, metrics: dict[Operation, Metric], read: Callable[[Operation], Metric], inner: bool = False
) -> str | None:
    """The code of a number, with the results of metrics by the names of their functions."""
    if isinstance(value, Constant):
        number = isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
        return repr(value.value) if number else None
    if not isinstance(value, Operation):
        return None
    if value.symbol == "tf.identity" and value.args:
        return _text(value.args[0], metrics, read, inner)
    if (made := _result(value, 0)) is not None:
        metric = read(made)
        if metric.function not in _RESULTS or metric.arguments:
            return None
        metrics[made] = metric
        return metric.function
    sign = _OPERATORS.get(value.symbol) or _CALLS.get(value.symbol)
    operands = [value.argument(0, "x"), value.argument(1, "y")]
    if sign is None or None in operands or len(value.args) + len(value.kwargs) > 2 + ("name" in value.kwargs):
        return None
    texts = [_text(one, metrics, read, True) for one in operands if one is not None]
    if len(texts) != 2 or None in texts:
        return None
    text = f"{texts[0]} {sign} {texts[1]}"
    return f"({text})" if inner else text


def _result(value: Value, index: int) -> Operation | None:
    """The call of a metric, of whose pair a value is one part."""
    if not isinstance(value, Operation) or value.symbol != "getitem" or len(value.args) != 2:
        return None
    made, which = value.args
    is_it = isinstance(which, Constant) and which.value == index
    return made if is_it and isinstance(made, Operation) and is_metric_symbol(made.symbol) else None


def _updated(value: Value) -> Iterator[Operation]:
    """The metrics that an operation updates."""
    made = _result(value, 1)
    if made is not None:
        yield made
    elif isinstance(value, Operation) and value.symbol == "tf.group":
        for one in value.args:
            yield from _updated(one)


def _counted(metric: Metric, code: Callable[[cst.CSTNode], str]) -> tuple[str, ...]:
    """The texts of what a metric counts."""
    return tuple("" if one is None else code(one) for one in (metric.labels, metric.predictions, metric.weights))


def _truth(node: cst.BaseExpression) -> cst.BaseExpression:
    """What TensorFlow 1 takes for positive: all that is not zero."""
    return cst.Call(cst.parse_expression("tf.cast"), [cst.Arg(node), cst.Arg(cst.parse_expression("tf.bool"))])


__all__ = ["derived_metric", "parts_of"]
