"""`tf.metrics.*` and `tf.contrib.metrics.streaming_*` of a model_fn to Keras metrics."""

from __future__ import annotations

from collections.abc import Callable
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
Supported from `eval_metric_ops`: all of `tf.metrics` but the average precision at k, and `recall_at_top_k` and
`precision_at_top_k`; of `tf.contrib.metrics` the `streaming_*` forms of them, whose arguments stand in the other order.
Their values are equal to 3e-7 (measured after each of 60 updates). What has no class of its own in Keras is written
with one that it has: the mean of the same numbers (`percentage_below`, `mean_relative_error`, `mean_cosine_distance`),
or a class with its own `result` (TFM510).

Metrics of the labels and the model's output (the tensor that the loss reads) are given to `compile`; one or two that
compute something of that output (classes, probabilities) do so in a small subclass. Where a metric reads more (weights,
features, labels whose number of axes matters, another tensor of the network) or many compute the same, the model is a
small subclass of `tf.keras.Model` that updates them in `compute_metrics`, where features and labels are what the input
function gives. Another tensor of the network becomes an output of the model. Metrics are computed while training too.

Where TensorFlow 1 and Keras read the same arguments differently, the difference is written down:

- `tf.metrics.precision`, `recall`, `true_positives` and the like take every non-zero prediction as positive, Keras
  those above 0.5 (0.44 off, measured): predictions that are not 0 or 1 already are cast to `tf.bool`, or
  `thresholds=0` is written.
- `tf.metrics.accuracy` casts predictions to the labels' type before it compares: so does the new program, unless the
  predictions are whole numbers.
- Keras averages `MeanSquaredError` and `MeanAbsoluteError` of tensors with one axis over batches and not over examples:
  `MeanMetricWrapper` of the squared difference is written unless the output is known to have two axes.

An entry that is computed from others (`(2 * p * r / (p + r), tf.group(p_op, r_op))` of the precision and recall of the
same labels and predictions) is one metric that counts, with that number as its `result`. A metric under a condition
that is known when the model is made (`if params["debug"]:`) is there under the same condition.

The value of a metric is reset at every evaluation, as an Estimator's is.
""",
    ),
    Rule(
        "TFM502",
        "a metric's argument has no counterpart",
        Severity.MANUAL,
        """
Unsupported: update collections, `class_id=` of the metrics at k, thresholds of an auc, and arguments that have to be
known to choose the Keras form (curve, summation method) but are computed.
""",
    ),
    Rule(
        "TFM503",
        "a metric needs more than the labels and the model's output",
        Severity.MANUAL,
        """
The metric reads what cannot be computed outside the network and is no tensor of it either: something that a function of
yours makes of the labels, something that is given another value after the metric, or features that the model_fn
changes. Compute it with TensorFlow operations from features, labels and outputs, under a name of its own.
""",
    ),
    Rule(
        "TFM510",
        "a metric that Keras computes differently",
        Severity.REVIEW,
        """
The new program has a small subclass whose `result` is TensorFlow 1's formula, because the Keras class of that name
computes another number from the same counts (measured over 60 updates):

- the area under the precision-recall curve by the trapezoidal rule (TensorFlow 1's default) or `minoring`:
  `AUC(curve="PR")` is 0.008 and 0.048 off;
- `sensitivity_at_specificity` and `specificity_at_sensitivity`: Keras takes the best threshold that satisfies the
  condition, TensorFlow 1 the one that comes nearest to it, 0.45 and 0.13 off with few examples, equal with many;
- `mean_per_class_accuracy`, which Keras does not have. A class without examples counts as 0;
- `tf.contrib.metrics.f1_score`, the best F1 score of all thresholds, which Keras does not have either.

Predictions of exactly 1.0 count as above every threshold in `specificity_at_sensitivity` of TensorFlow 1 only. Where
the differences do not matter to you, replace the subclass by the class of Keras.
""",
    ),
    Rule(
        "TFM511",
        "top-k metrics with ties",
        Severity.REVIEW,
        """
`tf.metrics.recall_at_k` and `precision_at_k` take exactly k classes, of equal predictions those with the lower index.
The Keras form takes all that are as good as the k-th. The numbers differ only when predictions are equal, as those of a
network that starts at zeros are: 1.0 instead of 0.5 for k = 2 of 4 classes. `tf.nn.in_top_k` does
what Keras does.
""",
    ),
    Rule(
        "TFM512",
        "the tensor name of a metric is dropped",
        Severity.REVIEW,
        """
`tf.identity(accuracy[1], name="train_accuracy")` gives a tensor a name by which hooks and TensorBoard find it. Keras
has no graph to look it up in: metrics are reported by `fit` and `evaluate` under their own names, in training too.
""",
    ),
)

_TAIL = ("metrics_collections", "updates_collections", "name")
_PAIR = ("labels", "predictions", "weights", *_TAIL)
_AT = ("labels", "predictions", "thresholds", "weights", *_TAIL)
_K = ("labels", "predictions", "k", "class_id", "weights", *_TAIL)
_CLASSES = ("labels", "predictions", "num_classes", "weights", *_TAIL)

Bound = dict[str, cst.BaseExpression]
Code = Callable[[cst.CSTNode], str]


@dataclass(frozen=True)
class Metric:
    """A metric as read: the Keras class and its arguments, and what it is computed from.

    `values` is set for metrics of one tensor (`tf.metrics.mean`), `labels` and `predictions` for the others. `keras` is
    a class of tf.keras.metrics and `arguments` what it is made with, as text. `update` is what `update_state` is given,
    with `{0}` for the values and `{0}`, `{1}` for labels and predictions; `body` is the body of the subclass' own
    `result` where Keras computes something else, under the name `title` and with the docstring `doc`. `position` is the
    number of the statements before the call, `only_if` the condition of the program under which there is the metric.
    """

    function: str
    keras: str
    arguments: tuple[str, ...]
    labels: cst.BaseExpression | None
    predictions: cst.BaseExpression | None
    values: cst.BaseExpression | None
    weights: cst.BaseExpression | None
    call: cst.Call
    update: str = "{0}, {1}"
    title: str = ""
    doc: str = ""
    body: tuple[str, ...] = ()
    position: int = 0
    only_if: cst.BaseExpression | None = None
    remarks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Row:
    """One tf.metrics function: its parameters, its Keras class, and how its further arguments are said to it."""

    parameters: tuple[str, ...]
    keras: str
    arguments: Callable[[Bound, Code, cst.Call], tuple[str, ...]] = lambda bound, code, call: ()
    title: str = ""
    doc: str = ""
    body: tuple[str, ...] = ()


def _given(*names: str) -> Callable[[Bound, Code, cst.Call], tuple[str, ...]]:
    """Arguments that Keras calls by the same names."""
    return lambda bound, code, call: tuple(f"{name}={code(_needed(bound, name, call))}" for name in names)


def _needed(bound: Bound, name: str, call: cst.Call) -> cst.BaseExpression:
    if name not in bound:
        raise Blocked("TFM501", call, f"the metric is called without `{name}`")
    return bound[name]


def _thresholds(bound: Bound, code: Code, call: cst.Call) -> tuple[str, ...]:
    return (f"num_thresholds={code(bound['num_thresholds']) if 'num_thresholds' in bound else '200'}",)


def _relative(bound: Bound, code: Code, call: cst.Call) -> tuple[str, ...]:
    if code(_needed(bound, "normalizer", call)) != code(_needed(bound, "labels", call)):
        raise Blocked("TFM502", call, "`normalizer` is not the labels")
    return ("lambda y_true, y_pred: tf.math.divide_no_nan(tf.abs(y_true - y_pred), y_true)",)


def _cosine(bound: Bound, code: Code, call: cst.Call) -> tuple[str, ...]:
    axis = code(_needed(bound, "dim", call))
    return (f"lambda y_true, y_pred: 1.0 - tf.reduce_sum(y_true * y_pred, {axis}, keepdims=True)",)


def _precision_at_k(bound: Bound, code: Code, call: cst.Call) -> tuple[str, ...]:
    k = code(_needed(bound, "k", call))
    return (f"lambda y_true, y_pred: tf.keras.metrics.sparse_top_k_categorical_accuracy(y_true, y_pred, {k}) / {k}",)


_TIES = ("TFM511", "for ties Keras takes more than k")
_DIFFERENT = "TFM510"
_WRAPPER = "MeanMetricWrapper"
_RECALL = "recall = (self.true_positives + 1e-6) / (self.true_positives + self.false_negatives + 1e-6)"
_PRECISION = "precision = (self.true_positives + 1e-6) / (self.true_positives + self.false_positives + 1e-6)"
_PR = {
    "trapezoidal": (
        _RECALL,
        _PRECISION,
        "return tf.reduce_sum((recall[:-1] - recall[1:]) * (precision[:-1] + precision[1:]) / 2.0)",
    ),
    "minoring": (
        _RECALL,
        _PRECISION,
        "return tf.reduce_sum((recall[:-1] - recall[1:]) * tf.minimum(precision[:-1], precision[1:]))",
    ),
}
_RULES = {"trapezoidal": "by the trapezoidal rule", "minoring": "from below"}
_SENSITIVITY = (
    "specificity = self.true_negatives / (self.true_negatives + self.false_positives + 1e-7)",
    "sensitivity = self.true_positives / (self.true_positives + self.false_negatives + 1e-7)",
    "return sensitivity[tf.argmin(tf.abs(specificity - {value}))]",
)
_SPECIFICITY = (
    "specificity = self.true_negatives / (self.true_negatives + self.false_positives + 1e-7)",
    "sensitivity = self.true_positives / (self.true_positives + self.false_negatives + 1e-7)",
    "distance = tf.abs(sensitivity - {value})",
    "return specificity[::-1][tf.argmin(distance[::-1])]  # the last of those that are as near",
)
_PER_CLASS = (
    "correct, examples = tf.linalg.diag_part(self.total_cm), tf.reduce_sum(self.total_cm, 1)",
    "return tf.reduce_mean(tf.math.divide_no_nan(correct, examples))",
)
_BEST_F1 = (
    "precision = self.true_positives / (1e-7 + self.true_positives + self.false_positives)",
    "recall = self.true_positives / (1e-7 + self.true_positives + self.false_negatives)",
    "return tf.reduce_max(2.0 * precision * recall / (precision + recall + 1e-7))",
)
_BASELINE = ("mean = super().result()", "return tf.maximum(mean, 1.0 - mean)")
_METRICS: dict[str, _Row] = {
    "accuracy": _Row(_PAIR, "Accuracy"),
    # No symbol of TensorFlow: what its heads of classifiers report under this name.
    "accuracy_baseline": _Row(
        ("values", "weights", *_TAIL),
        "Mean",
        title="AccuracyBaseline",
        doc="The accuracy of always predicting the more frequent class.",
        body=_BASELINE,
    ),
    "auc": _Row(
        (
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
        "AUC",
    ),
    # tf.contrib.metrics alone has it.
    "f1_score": _Row(
        ("labels", "predictions", "weights", "num_thresholds", *_TAIL),
        "AUC",
        _thresholds,
        title="BestF1Score",
        doc="The best F1 score that any threshold gives.",
        body=_BEST_F1,
    ),
    "false_negatives": _Row(_PAIR, "FalseNegatives"),
    "false_negatives_at_thresholds": _Row(_AT, "FalseNegatives", _given("thresholds")),
    "false_positives": _Row(_PAIR, "FalsePositives"),
    "false_positives_at_thresholds": _Row(_AT, "FalsePositives", _given("thresholds")),
    "mean": _Row(("values", "weights", *_TAIL), "Mean"),
    "mean_absolute_error": _Row(_PAIR, "MeanAbsoluteError"),
    "mean_cosine_distance": _Row(("labels", "predictions", "dim", "weights", *_TAIL), _WRAPPER, _cosine),
    "mean_iou": _Row(_CLASSES, "MeanIoU", _given("num_classes")),
    "mean_per_class_accuracy": _Row(
        _CLASSES,
        "MeanIoU",
        _given("num_classes"),
        title="MeanPerClassAccuracy",
        doc="The mean over classes of the share of examples that are right.",
        body=_PER_CLASS,
    ),
    "mean_relative_error": _Row(("labels", "predictions", "normalizer", "weights", *_TAIL), _WRAPPER, _relative),
    "mean_squared_error": _Row(_PAIR, "MeanSquaredError"),
    "mean_tensor": _Row(("values", "weights", *_TAIL), "MeanTensor"),
    "percentage_below": _Row(("values", "threshold", "weights", *_TAIL), "Mean"),
    "precision": _Row(_PAIR, "Precision"),
    "precision_at_k": _Row(_K, _WRAPPER, _precision_at_k),
    "precision_at_thresholds": _Row(_AT, "Precision", _given("thresholds")),
    "recall": _Row(_PAIR, "Recall"),
    "recall_at_k": _Row(_K, "SparseTopKCategoricalAccuracy", _given("k")),
    "recall_at_thresholds": _Row(_AT, "Recall", _given("thresholds")),
    "root_mean_squared_error": _Row(_PAIR, "RootMeanSquaredError"),
    "sensitivity_at_specificity": _Row(
        ("labels", "predictions", "specificity", "weights", "num_thresholds", *_TAIL),
        "AUC",
        _thresholds,
        title="SensitivityAtSpecificity",
        doc="The sensitivity at the threshold whose specificity comes nearest to the wanted one.",
        body=_SENSITIVITY,
    ),
    "specificity_at_sensitivity": _Row(
        ("labels", "predictions", "sensitivity", "weights", "num_thresholds", *_TAIL),
        "AUC",
        _thresholds,
        title="SpecificityAtSensitivity",
        doc="The specificity at the threshold whose sensitivity comes nearest to the wanted one.",
        body=_SPECIFICITY,
    ),
    "true_negatives": _Row(_PAIR, "TrueNegatives"),
    "true_negatives_at_thresholds": _Row(_AT, "TrueNegatives", _given("thresholds")),
    "true_positives": _Row(_PAIR, "TruePositives"),
    "true_positives_at_thresholds": _Row(_AT, "TruePositives", _given("thresholds")),
}
_METRICS["sparse_precision_at_k"] = _METRICS["precision_at_k"]
#: The functions of tf.metrics that are carried over.
FUNCTIONS = frozenset(_METRICS) - {"accuracy_baseline", "f1_score"}
#: What takes every non-zero prediction as positive.
TRUTHS = frozenset(
    ("precision", "recall", "true_positives", "true_negatives", "false_positives", "false_negatives"),
)
_F1 = "tf.contrib.metrics.f1_score"
# tf.contrib.metrics.streaming_X is tf.metrics.X with predictions first; two have another name
_STREAMING = {"percentage_less": "percentage_below", "sparse_recall_at_k": "recall_at_k"}
_STREAMING_AUC = (
    "predictions",
    "labels",
    "weights",
    "num_thresholds",
    "metrics_collections",
    "updates_collections",
    "curve",
    "name",
)
_SUMMATION = {
    "trapezoidal": "interpolation",
    "careful_interpolation": "interpolation",
    "minoring": "minoring",
    "majoring": "majoring",
}


def is_metric(call: cst.BaseExpression, imports: ImportMap) -> bool:
    """Whether an expression is a call of a `tf.metrics` function or its contrib form."""
    return isinstance(call, cst.Call) and is_metric_symbol(imports.resolve(call.func) or "")


def is_metric_symbol(name: str) -> bool:
    """Whether a symbol is a `tf.metrics` function or its contrib form."""
    return name.startswith(("tf.metrics.", "tf.contrib.metrics.streaming_", _F1))


def read_metric(call: cst.Call, imports: ImportMap, code: Code) -> Metric:
    """Reads a `tf.metrics.X(...)` call. Raises Blocked (TFM501, TFM502)."""
    name = imports.resolve(call.func) or ""
    function = name.removeprefix("tf.metrics.")
    streaming = name.startswith("tf.contrib.metrics.streaming_")
    if streaming:
        function = name.removeprefix("tf.contrib.metrics.streaming_")
        function = _STREAMING.get(function, function)
    if name == _F1:
        function = "f1_score"
    elif (not streaming and not name.startswith("tf.metrics.")) or function not in {*FUNCTIONS, "accuracy_baseline"}:
        raise Blocked("TFM501", call, f"`{name or 'this metric'}` is unsupported")
    if streaming and function == "recall_at_k" and name.endswith("streaming_recall_at_k"):
        raise Blocked("TFM501", call, f"`{name}` is unsupported")
    row = _METRICS[function]
    parameters = row.parameters
    if streaming and "predictions" in parameters:
        parameters = _STREAMING_AUC if function == "auc" else ("predictions", "labels", *parameters[2:])
    bound = bind(call, parameters, name, "TFM502")
    for key in ("metrics_collections", "updates_collections", "class_id"):
        if not is_none(bound.get(key)):
            raise Blocked("TFM502", bound[key], f"`{key}` has no counterpart")
    weights = None if is_none(bound.get("weights")) else bound["weights"]
    if weights is not None and number(weights) == 1.0:
        weights = None
    arguments = row.arguments(bound, code, call)
    if "values" in parameters:
        update = "{0}"
        if function == "percentage_below":
            update = f"tf.cast({{0}} < {code(_needed(bound, 'threshold', call))}, tf.float32)"
        values = _needed(bound, "values", call)
        return Metric(
            function,
            row.keras,
            arguments,
            None,
            None,
            values,
            weights,
            call,
            update,
            title=row.title,
            doc=row.doc,
            body=row.body,
        )
    title, doc, body = row.title, row.doc, row.body
    remarks: tuple[tuple[str, str], ...] = ()
    if function == "auc":
        arguments, method = _auc(bound, call)
        if method:
            title, doc, body = "AUC", f"The area under the precision-recall curve, {_RULES[method]}.", _PR[method]
    for key in ("specificity", "sensitivity"):
        if key in parameters:
            value = code(_needed(bound, key, call))
            body = tuple(line.replace("{value}", value) for line in body)
    if body:
        remarks = ((_DIFFERENT, f"the Keras form of `{name}` gives another number: a subclass keeps this one"),)
    if function in ("recall_at_k", "precision_at_k", "sparse_precision_at_k"):
        remarks = (_TIES,)
    given, predictions = _needed(bound, "labels", call), _needed(bound, "predictions", call)
    return Metric(
        function,
        row.keras,
        arguments,
        given,
        predictions,
        None,
        weights,
        call,
        title=title,
        doc=doc,
        body=body,
        remarks=remarks,
    )


def _auc(bound: Bound, call: cst.Call) -> tuple[tuple[str, ...], str]:
    """The arguments of AUC, and the summation method that Keras has not, if it is that."""
    if not is_none(bound.get("thresholds")):
        raise Blocked("TFM502", bound["thresholds"], "`thresholds` has no counterpart")
    thresholds = number(bound["num_thresholds"]) if "num_thresholds" in bound else 200
    curve = string(bound["curve"]) if "curve" in bound else "ROC"
    method = string(bound["summation_method"]) if "summation_method" in bound else "trapezoidal"
    if thresholds is None or curve not in ("ROC", "PR") or method not in _SUMMATION:
        raise Blocked("TFM502", call, "the arguments of this auc are not literals")
    arguments = (f"num_thresholds={int(thresholds)}", f'curve="{curve}"')
    if curve == "PR" and method in _PR:
        return arguments, method
    return (*arguments, f'summation_method="{_SUMMATION[method]}"'), ""
