"""Heads of TensorFlow 1: what loss, metrics and predictions they stand for.

The texts here are TensorFlow 1 code as a model_fn would have it; the other rules turn it into Keras. Read from
`tensorflow_estimator` 1.15.1 and 2.15.0: heads of version 1 (`tf.contrib.estimator`, canned Estimators of
`compat.v1`) add up the losses of a batch and take the area under the precision-recall curve by the trapezoidal rule,
those of version 2 (`tf.estimator.BinaryClassHead`, canned Estimators of TensorFlow 2) take the mean over the batch and
Keras' areas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import bind, is_none, number, string
from migrator.program.parsed import Blocked
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM192",
        "a head becomes the loss, metrics and predictions that it stands for",
        Severity.MANUAL,
        """
`head.create_estimator_spec(...)` returns an EstimatorSpec with the loss, the metrics and the predictions of its kind.
They are written out: those of `tf.estimator.BinaryClassHead`, `MultiClassHead` and `RegressionHead`, their forms in
`tf.contrib.estimator` (`binary_classification_head`, `multi_class_head`, `regression_head`) and the private ones of
`canned/head.py`. A loss without weights that is a mean becomes a stock Keras loss; the sum over a batch (the default of
the older heads) and weighted losses become the `compute_loss` of a subclass.

Refused are label vocabularies, loss functions of your own, names of heads (which change the metrics' names), heads that
reach the model_fn as an argument, and `train_op_fn`s of more than one expression. Write the EstimatorSpec out then.
""",
    ),
    Rule(
        "TFM195",
        "the weights are a feature of the Keras model",
        Severity.REVIEW,
        """
The column of weights is one of the inputs of the new model, as it is one of the features that it is trained on. An
Estimator did not look at it when it predicted; a Keras model refuses features that are not there. Give the datasets
that are predicted from such a column as well; its values do not matter.
""",
    ),
    Rule(
        "TFM193",
        "dropped predictions of a head",
        Severity.REVIEW,
        """
Canned classifiers also predict `all_class_ids` and `all_classes`, which are the same for every example: 0, 1, ... up to
the number of classes. They are left out, but where the program exports models: their signatures serve them.
""",
    ),
)

_CLASSIFIER = ("weight_column", "thresholds", "label_vocabulary", "loss_reduction", "loss_fn", "name")
_CLASSES = ("n_classes", "weight_column", "label_vocabulary", "loss_reduction", "loss_fn", "name")
_REGRESSION = ("weight_column", "label_dimension", "loss_reduction", "loss_fn", "inverse_link_fn", "name")
_PRIVATE = "tf.python.estimator.canned.head."
_BINARY, _MULTI, _NUMBERS = "binary", "classes", "numbers"


@dataclass(frozen=True)
class _Kind:
    """A function or class that makes a head: what it is, its parameters, its reduction, and its version."""

    kind: str
    parameters: tuple[str, ...]
    reduction: str
    version: int


_MEAN, _SUM = "SUM_OVER_BATCH_SIZE", "SUM"
_HEADS: dict[str, _Kind] = {
    "tf.estimator.BinaryClassHead": _Kind(_BINARY, _CLASSIFIER, _MEAN, 2),
    "tf.estimator.MultiClassHead": _Kind(_MULTI, _CLASSES, _MEAN, 2),
    "tf.estimator.RegressionHead": _Kind(_NUMBERS, ("label_dimension", "weight_column", *_REGRESSION[2:]), _MEAN, 2),
    "tf.contrib.estimator.binary_classification_head": _Kind(_BINARY, _CLASSIFIER, _MEAN, 1),
    "tf.contrib.estimator.multi_class_head": _Kind(_MULTI, _CLASSES, _MEAN, 1),
    "tf.contrib.estimator.regression_head": _Kind(_NUMBERS, _REGRESSION, _MEAN, 1),
    "_binary_logistic_head_with_sigmoid_cross_entropy_loss": _Kind(_BINARY, _CLASSIFIER, _SUM, 1),
    "_multi_class_head_with_softmax_cross_entropy_loss": _Kind(_MULTI, _CLASSES, _SUM, 1),
    "_regression_head": _Kind(_NUMBERS, _REGRESSION, _SUM, 1),
    "_regression_head_with_mean_squared_error_loss": _Kind(_NUMBERS, _REGRESSION, _SUM, 1),
    "_binary_logistic_or_multi_class_head": _Kind(_MULTI, _CLASSES[:4], _SUM, 1),
}
_REDUCTIONS = (_SUM, _MEAN, "MEAN", "SUM_BY_NONZERO_WEIGHTS", "SUM_OVER_NONZERO_WEIGHTS")


@dataclass(frozen=True)
class Head:
    """A head as read. `size` is the number of logits as text, `weights` the key of the weights among the features.

    `count` is the number of logits where it is known.
    """

    kind: str
    size: str
    reduction: str
    version: int
    weights: str | None = None
    thresholds: tuple[str, ...] = ()
    count: int | None = None

    @property
    def is_binary(self) -> bool:
        return self.kind == _BINARY


def head_name(name: str | None) -> str | None:
    """The key of a symbol that makes a head, else None."""
    name = name.removeprefix(_PRIVATE) if name is not None else None
    return name if name in _HEADS else None


def read_head(
    call: cst.Call,
    name: str,
    code: Callable[[cst.CSTNode], str],
    count_of: Callable[[cst.BaseExpression], float | None],
) -> Head:
    """Reads the call that makes a head. Raises Blocked (TFM192)."""
    known = _HEADS[name]
    return head_of(known.kind, bind(call, known.parameters, name, "TFM192"), known, call, code, count_of)


def head_of_task(
    task: str,
    bound: Mapping[str, cst.BaseExpression],
    version: int,
    call: cst.Call,
    code: Callable[[cst.CSTNode], str],
    count_of: Callable[[cst.BaseExpression], float | None],
) -> Head:
    """The head of a canned Estimator (`task` is Classifier or Regressor) with some arguments. Raises Blocked."""
    kind = _MULTI if task == "Classifier" else _NUMBERS
    reduction = _SUM if version == 1 else _MEAN  # of tf.contrib.learn (version 0) the mean, too
    return head_of(kind, bound, _Kind(kind, (), reduction, version), call, code, count_of)


def head_of(
    kind: str,
    bound: Mapping[str, cst.BaseExpression],
    known: _Kind,
    call: cst.Call,
    code: Callable[[cst.CSTNode], str],
    count_of: Callable[[cst.BaseExpression], float | None],
) -> Head:
    """A head with some arguments. Raises Blocked (TFM192)."""
    for key in ("label_vocabulary", "loss_fn", "inverse_link_fn", "name"):
        if not is_none(bound.get(key)):
            raise Blocked("TFM192", bound[key], f"`{key}` of a head is unsupported: write its EstimatorSpec out")
    size, count = "1", None
    key = "n_classes" if kind == _MULTI else "label_dimension"
    if kind == _MULTI and key not in bound:
        kind = _BINARY
    elif key in bound:
        size, count = code(bound[key]), count_of(bound[key])
        if kind == _MULTI:
            if count is None and "MultiClass" not in code(call.func) and "multi_class_head" not in code(call.func):
                message = "`n_classes` must be a literal number: with 2 classes the network has one logit"
                raise Blocked("TFM192", bound[key], message)
            if count == 2.0:
                kind, size = _BINARY, "1"
    reduction = known.reduction
    given = bound.get("loss_reduction")
    if given is not None:
        reduction = (string(given) or code(given).rpartition(".")[2]).upper()
        if reduction not in _REDUCTIONS:
            raise Blocked("TFM192", given, "this loss reduction of the head is unsupported")
    thresholds: tuple[str, ...] = ()
    if not is_none(bound.get("thresholds")):
        node = bound["thresholds"]
        values = [number(e.value) for e in node.elements] if isinstance(node, (cst.List, cst.Tuple)) else [None]
        if any(value is None for value in values):
            raise Blocked("TFM192", node, "the thresholds of a head must be literal numbers")
        thresholds = tuple(f"{value:g}" for value in values if value is not None)
    weights = _weights(bound.get("weight_column"), code)
    logits = None if count is None or kind == _BINARY else int(count)
    return Head(kind, size, reduction, known.version, weights, thresholds, logits)


def _weights(node: cst.BaseExpression | None, code: Callable[[cst.CSTNode], str]) -> str | None:
    if node is None or is_none(node):
        return None
    if isinstance(node, cst.Call) and code(node.func).endswith("numeric_column") and len(node.args) == 1:
        node = node.args[0].value
    if string(node) is None:
        raise Blocked("TFM192", node, "the weight column of a head must be a feature name")
    return code(node)


@dataclass(frozen=True)
class Names:
    """The names of a model_fn that a head's lines use; `fresh` gives new ones."""

    tf: str
    features: str
    labels: str
    mode: str
    logits: str
    fresh: Callable[[str], str]


@dataclass(frozen=True)
class Added:
    """Metrics beside a head's own: their call, told the features, labels and predictions, and their keys."""

    called: Callable[[str, str, str], str]
    keys: frozenset[str]


def spec_lines(
    head: Head,
    names: Names,
    training: Callable[[str], list[str]],
    updates: bool,
    exported: bool,
    added: Added | None = None,
) -> list[str]:
    """The lines of a model_fn from its logits on; `training` gives those that make the train_op of a loss.

    `updates` says that the model_fn has operations to run with every step (moving averages of batch normalization),
    `exported` that the signatures of a head are wanted, and what these need of the predictions. Metrics that are
    `added` compare the labels as they are given. Raises Blocked where they have the names of the head's own.
    """
    tf, fresh = names.tf, names.fresh
    predictions = fresh("predictions")
    lines = []
    if head.version == 0:
        made, compared = _predictions_of_learn(head, names, predictions)
        lines += made
    elif head.kind == _NUMBERS:
        lines.append(f'{predictions} = {{"predictions": {names.logits}}}')
        compared = names.logits
    else:
        probabilities, class_ids = fresh("probabilities"), fresh("class_ids")
        if head.is_binary:
            compared = fresh("logistic")
            lines.append(f"{compared} = {tf}.sigmoid({names.logits})")
            two = f"{tf}.concat([{tf}.zeros_like({names.logits}), {names.logits}], axis=-1)"
            lines.append(f"{probabilities} = {tf}.nn.softmax({two})")
            lines.append(f"{class_ids} = {tf}.cast({names.logits} > 0, {tf}.int64)")
        else:
            compared = class_ids
            lines.append(f"{probabilities} = {tf}.nn.softmax({names.logits})")
            lines.append(f"{class_ids} = {tf}.expand_dims({tf}.argmax({names.logits}, axis=-1), axis=-1)")
        lines += [f"{predictions} = {{", f'    "logits": {names.logits},']
        lines += [f'    "logistic": {compared},'] if head.is_binary else []
        lines += [
            f'    "probabilities": {probabilities},',
            f'    "class_ids": {class_ids},',
            f'    "classes": {tf}.as_string({class_ids}),',
        ]
        if exported:
            every = fresh("all_class_ids")
            ids = "[0, 1]" if head.is_binary else f"{tf}.range({head.size})"
            lines.insert(0, f"{every} = {tf}.tile([{ids}], [{tf}.shape({names.logits})[0], 1])")
            lines += [f'    "all_class_ids": {every},', f'    "all_classes": {tf}.as_string({every}),']
        lines.append("}")
    spec = f"{tf}.estimator.EstimatorSpec"
    lines += [
        f"if {names.mode} == {tf}.estimator.ModeKeys.PREDICT:",
        *(f"    {line}" for line in _answer(head, names, predictions, exported)),
    ]
    loss, metrics = fresh("loss"), fresh("eval_metric_ops")
    more, target = fresh("metrics"), names.labels
    if added is not None:
        target = fresh("targets")  # they compare the labels as they were given
        lines.append(f"{more} = {added.called(names.features, names.labels, predictions)}")
    made, losses, labels, weights = _loss(head, names, loss, target)
    lines += made
    entries = _metrics(head, names, labels, losses, compared, weights)
    if added is not None:
        if not added.keys.isdisjoint(entry.split('"')[1] for entry in entries):
            raise Blocked("TFM103", None, "`add_metrics` overrides a metric of the Estimator")
        entries = [*entries, f"**{more},"]
    lines += [f"{metrics} = {{", *(f"    {line}" for line in entries), "}"] if entries else []
    train_op = fresh("train_op")
    train = training(loss)
    lines += [*train[:-1], f"{train_op} = {train[-1]}"]
    if updates:
        lines.append(f"{train_op} = {tf}.group({train_op}, {tf}.get_collection({tf}.GraphKeys.UPDATE_OPS))")
    given = f", eval_metric_ops={metrics}" if entries else ""
    lines.append(f"return {spec}({names.mode}, loss={loss}, train_op={train_op}{given})")
    return lines


def _predictions_of_learn(head: Head, names: Names, predictions: str) -> tuple[list[str], str]:
    """The lines that make the predictions of an Estimator of tf.contrib.learn, and what metrics compare with labels."""
    tf, logits = names.tf, names.logits
    if head.kind == _NUMBERS:
        scores = f"{tf}.squeeze({logits}, [1])" if head.size == "1" else logits
        return [f'{predictions} = {{"scores": {scores}}}'], logits
    classes, lines, entries = names.fresh("classes"), [], [f'"logits": {logits},']
    compared, both = classes, logits
    if head.is_binary:
        compared, both = names.fresh("logistic"), names.fresh("both")
        lines.append(f"{compared} = {tf}.sigmoid({logits})")
        lines.append(f"{both} = {tf}.concat([{tf}.zeros_like({logits}), {logits}], axis=1)")
        entries.append(f'"logistic": {compared},')
    lines.append(f"{classes} = {tf}.argmax({both}, axis=1)")
    entries += [f'"probabilities": {tf}.nn.softmax({both}),', f'"classes": {classes},']
    return [*lines, f"{predictions} = {{", *(f"    {entry}" for entry in entries), "}"], compared


def _answer(head: Head, names: Names, predictions: str, exported: bool) -> list[str]:
    """The lines that return the predictions; with the signatures of the head where they are exported."""
    text = f"return {names.tf}.estimator.EstimatorSpec({names.mode}, predictions={predictions}"
    if not exported:
        return [f"{text})"]
    export = f"{names.tf}.estimator.export"
    key = "predictions" if head.kind == _NUMBERS else "logistic"
    regression = f'{export}.RegressionOutput({predictions}["{key}"])'
    given = f'scores={predictions}["probabilities"], classes={predictions}["all_classes"]'
    default = regression if head.kind == _NUMBERS else f"{export}.ClassificationOutput({given})"
    served = {"serving_default": default}
    served |= {} if head.kind == _NUMBERS else {"classification": default}
    served |= {} if head.kind == _MULTI else {"regression": regression}
    served["predict"] = f"{export}.PredictOutput({predictions})"
    return [f"{text}, export_outputs={{", *(f'    "{key}": {value},' for key, value in served.items()), "})"]


def _loss(head: Head, names: Names, loss: str, labels: str) -> tuple[list[str], str, str, str | None]:
    """The lines that compute the loss; the names of the losses of examples, of the labels and of the weights.

    The labels as the loss takes them are called `labels`.
    """
    tf, logits = names.tf, names.logits
    given, losses = names.labels, names.fresh("losses")
    lines = []
    weights = None
    if head.kind == _MULTI:
        lines.append(f"{labels} = {tf}.reshape({given}, [-1])")
        single = f"{tf}.nn.sparse_softmax_cross_entropy_with_logits(labels={labels}, logits={logits})"
        stock = f"{tf}.losses.sparse_softmax_cross_entropy({labels}, {logits})"
    elif head.is_binary:
        lines.append(f"{labels} = {tf}.cast({tf}.reshape({given}, [-1, 1]), {tf}.float32)")
        single = f"{tf}.nn.sigmoid_cross_entropy_with_logits(labels={labels}, logits={logits})"
        stock = f"{tf}.losses.sigmoid_cross_entropy({labels}, {logits})"
    else:
        size = "-1, 1" if head.size == "1" else f"-1, {head.size}"
        lines.append(f"{labels} = {tf}.cast({tf}.reshape({given}, [{size}]), {tf}.float32)")
        single = f"{tf}.squared_difference({logits}, {labels})"
        stock = f"{tf}.losses.mean_squared_error({labels}, {logits})"
    if head.weights is not None:
        weights = names.fresh("weights")
        shape = "[-1]" if head.kind == _MULTI else "[-1, 1]"
        lines.append(f"{weights} = {tf}.reshape({names.features}[{head.weights}], {shape})")
    if head.reduction != _SUM and weights is None:
        told = [f"{losses} = {single}"] if head.version else []  # an average that tf.contrib.learn did not measure
        return [*lines, f"{loss} = {stock}", *told], losses, labels, None
    lines.append(f"{losses} = {single}")
    weighted = f"{losses}, {weights}" if weights is not None else losses
    reduction = f"{tf}.losses.Reduction.{head.reduction}"
    lines.append(f"{loss} = {tf}.losses.compute_weighted_loss({weighted}, reduction={reduction})")
    return lines, losses, labels, weights


def _metrics(head: Head, names: Names, labels: str, losses: str, compared: str, weights: str | None) -> list[str]:
    """The entries of eval_metric_ops; `compared` are probabilities, classes or numbers."""
    m = f"{names.tf}.metrics"
    if head.version == 0:
        return _metrics_of_learn(head, names, labels, compared)
    extra = f", weights={weights}" if weights is not None else ""
    average = f'"average_loss": {m}.mean({losses}{extra}),'
    if head.kind == _MULTI:
        classes = f"{names.tf}.reshape({compared}, [-1])"
        return [f'"accuracy": {m}.accuracy({labels}, {classes}{extra}),', average]
    means = [
        f'"label/mean": {m}.mean({labels}{extra}),',
        f'"prediction/mean": {m}.mean({compared}{extra}),',
    ]
    if head.kind == _NUMBERS:
        return [average, *means]
    positive = f"{names.logits} > 0"
    curve = 'curve="PR"' if head.version == 1 else 'curve="PR", summation_method="careful_interpolation"'
    lines = [
        f'"accuracy": {m}.accuracy({labels}, {names.tf}.cast({positive}, {names.tf}.float32){extra}),',
        f'"accuracy_baseline": {m}.accuracy_baseline({labels}{extra}),',
        f'"precision": {m}.precision({labels}, {positive}{extra}),',
        f'"recall": {m}.recall({labels}, {positive}{extra}),',
        f'"auc": {m}.auc({labels}, {compared}{extra}),',
        f'"auc_precision_recall": {m}.auc({labels}, {compared}{extra}, {curve}),',
        average,
        *means,
    ]
    for threshold in head.thresholds:
        above = f"{compared} > {threshold}"
        key = f"positive_threshold_{threshold}"
        lines += [
            f'"accuracy/{key}": {m}.accuracy({labels}, {names.tf}.cast({above}, {names.tf}.float32){extra}),',
            f'"precision/{key}": {m}.precision({labels}, {above}{extra}),',
            f'"recall/{key}": {m}.recall({labels}, {above}{extra}),',
        ]
    return lines


def _metrics_of_learn(head: Head, names: Names, labels: str, compared: str) -> list[str]:
    """The same for an Estimator of tf.contrib.learn, which measures nothing of numbers but their loss."""
    m = f"{names.tf}.metrics"
    if head.kind == _NUMBERS:
        return []
    if head.kind == _MULTI:
        return [f'"accuracy": {m}.accuracy({labels}, {compared}),']
    positive = f"{names.logits} > 0"
    accuracy = f"{m}.accuracy({labels}, {names.tf}.cast({positive}, {names.tf}.float32))"
    return [
        f'"accuracy": {accuracy},',
        f'"labels/prediction_mean": {m}.mean({compared}),',
        f'"labels/actual_label_mean": {m}.mean({labels}),',
        f'"accuracy/baseline_label_mean": {m}.mean({labels}),',
        f'"auc": {m}.auc({labels}, {compared}),',
        f'"auc_precision_recall": {m}.auc({labels}, {compared}, curve="PR"),',
        f'"accuracy/threshold_0.500000_mean": {accuracy},',
        f'"precision/positive_threshold_0.500000_mean": {m}.precision({labels}, {positive}),',
        f'"recall/positive_threshold_0.500000_mean": {m}.recall({labels}, {positive}),',
    ]
