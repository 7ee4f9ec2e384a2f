"""`tf.metrics.*` of eval_metric_ops to Keras metrics."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import bind, is_none, number, string
from migrator.program.parsed import Blocked
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM501",
        "tf.metrics become Keras metrics",
        Severity.MANUAL,
        """
Carried over from `eval_metric_ops`: accuracy, auc (ROC), precision, recall, mean, mean_squared_error,
mean_absolute_error and root_mean_squared_error, without weights. Their values are equal to 2e-7 (measured).

Keras metrics see labels and the model's output, which is the tensor that the loss reads. A metric of something that is
computed from that output (classes, probabilities) computes it itself, in a small subclass. `tf.metrics.precision` and
`recall` take every non-zero prediction as positive, so `thresholds=0` is written.

The value of a metric is reset at every evaluation, as an Estimator's is.
""",
    ),
    Rule(
        "TFM502",
        "a metric's argument has no counterpart",
        Severity.MANUAL,
        """
`weights=` on a metric, an auc over the precision-recall curve with the trapezoidal rule (0.8 to 4.8 % off in Keras,
measured) and update collections are not carried over.
""",
    ),
    Rule(
        "TFM503",
        "a metric needs more than labels and the model's output",
        Severity.MANUAL,
        """
The metric reads a tensor of the network that cannot be computed from the model's output (the tensor that the loss
reads). Make that tensor a second output by hand.
""",
    ),
)

_TAIL = ("metrics_collections", "updates_collections", "name")
_PAIR = ("labels", "predictions", "weights", *_TAIL)
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "accuracy": _PAIR,
    "auc": (
        "labels",
        "predictions",
        "weights",
        "num_thresholds",
        "metrics_collections",
        "updates_collections",
        "curve",
        "name",
        "summation_method",
        "thresholds",
    ),
    "precision": _PAIR,
    "recall": _PAIR,
    "mean": ("values", "weights", *_TAIL),
    "mean_squared_error": _PAIR,
    "mean_absolute_error": _PAIR,
    "root_mean_squared_error": _PAIR,
}
_KERAS = {
    "accuracy": "Accuracy",
    "auc": "AUC",
    "precision": "Precision",
    "recall": "Recall",
    "mean_squared_error": "MeanSquaredError",
    "mean_absolute_error": "MeanAbsoluteError",
    "root_mean_squared_error": "RootMeanSquaredError",
}
_SUMMATION = {
    "trapezoidal": "interpolation",
    "careful_interpolation": "interpolation",
    "minoring": "minoring",
    "majoring": "majoring",
}


@dataclass(frozen=True)
class Metric:
    """A metric as read: the Keras class and its arguments, and what it is computed from.

    `values` is set for `tf.metrics.mean`, `labels` and `predictions` for the others.
    """

    function: str
    keras: str
    arguments: tuple[str, ...]
    labels: cst.BaseExpression | None
    predictions: cst.BaseExpression | None
    values: cst.BaseExpression | None
    call: cst.Call


def read_metric(call: cst.Call, imports: ImportMap) -> Metric:
    """Reads a `tf.metrics.X(...)` call. Raises Blocked (TFM501, TFM502)."""
    name = imports.resolve(call.func) or ""
    function = name.removeprefix("tf.metrics.")
    if not name.startswith("tf.metrics.") or function not in _PARAMETERS:
        raise Blocked("TFM501", call, f"`{name or 'this metric'}` is not carried over yet")
    bound = bind(call, _PARAMETERS[function], name, "TFM502")
    if not is_none(bound.get("weights")):
        raise Blocked("TFM502", bound["weights"], "a weighted metric is not carried over yet")
    for key in ("metrics_collections", "updates_collections", "thresholds"):
        if not is_none(bound.get(key)):
            raise Blocked("TFM502", bound[key], f"`{key}` has no counterpart")
    if function == "mean":
        return Metric(function, "MeanMetricWrapper", (), None, None, bound.get("values"), call)
    if "labels" not in bound or "predictions" not in bound:
        raise Blocked("TFM501", call, f"`{name}` is called without labels or predictions")
    arguments: tuple[str, ...] = ()
    if function in ("precision", "recall"):
        arguments = ("thresholds=0",)
    if function == "auc":
        arguments = _auc(bound, call)
    return Metric(function, _KERAS[function], arguments, bound["labels"], bound["predictions"], None, call)


def _auc(bound: dict[str, cst.BaseExpression], call: cst.Call) -> tuple[str, ...]:
    thresholds = number(bound["num_thresholds"]) if "num_thresholds" in bound else 200
    curve = string(bound["curve"]) if "curve" in bound else "ROC"
    method = string(bound["summation_method"]) if "summation_method" in bound else "trapezoidal"
    if thresholds is None or curve not in ("ROC", "PR") or method not in _SUMMATION:
        raise Blocked("TFM502", call, "the arguments of this auc are not literals that tf-migrate knows")
    if curve == "PR" and method in ("trapezoidal", "minoring"):
        raise Blocked("TFM502", call, f"Keras has no {method} summation for the precision-recall curve")
    return (f"num_thresholds={int(thresholds)}", f'curve="{curve}"', f'summation_method="{_SUMMATION[method]}"')
