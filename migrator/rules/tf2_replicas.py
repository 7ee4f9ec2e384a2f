"""What goes wrong in the step of a replica: losses scaled twice or not at all, metrics that never add up."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.calls import calls_in
from migrator.program.modern import Change, ModernFile, keyword
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM716",
        "a replica's loss is averaged over its own batch",
        Severity.MANUAL,
        """
Gradients of replicas are added up. A step that averages its loss over the replica's own batch therefore trains with a
loss as many times too large as there are replicas: 35 instead of 17.5 with two of them (measured, TF 2.15.1 and 2.21).
Compute the loss of every example (`reduction=tf.keras.losses.Reduction.NONE`) and divide its sum by the global batch:
`tf.nn.compute_average_loss(loss, global_batch_size=...)`.
""",
    ),
    Rule(
        "TFM717",
        "a replica's loss is divided by the replicas twice",
        Severity.MANUAL,
        """
`tf.nn.compute_average_loss` divides by the global batch, and `tf.nn.scale_regularization_loss` by the number of
replicas, already. Dividing once more makes the step as many times too small as there are replicas: 8.75 instead of 17.5
with two of them (measured). Leave one of the two out.
""",
    ),
    Rule(
        "TFM718",
        "a loss without reduction may still average the last axis",
        Severity.REVIEW,
        """
`Reduction.NONE` keeps the axis of the examples, but regression losses (mean squared error, Huber and others) always
average the last axis. Where labels and predictions are vectors, that is the axis of the examples, and the result is one
number instead of one per example: give both a last axis of one, `labels[:, tf.newaxis]`. Told where predictions are
squeezed before the loss, or where another call of the same loss adds the axis.
""",
    ),
    Rule(
        "TFM719",
        "a metric is reset in the step of a replica",
        Severity.MANUAL,
        """
A metric that is reset inside the function of `strategy.run` starts again with every batch. Reset it between epochs,
outside of the step.
""",
    ),
)

_LAST_AXIS = frozenset(
    {
        "MeanSquaredError",
        "MeanAbsoluteError",
        "MeanAbsolutePercentageError",
        "MeanSquaredLogarithmicError",
        "Huber",
        "LogCosh",
        "CosineSimilarity",
        "Hinge",
        "SquaredHinge",
        "CategoricalHinge",
        "Poisson",
        "KLDivergence",
    }
)
_SCALED = ("tf.nn.compute_average_loss", "tf.nn.scale_regularization_loss")


def check_replicas(file: ModernFile) -> Iterable[Change]:
    """The functions that run on replicas."""
    for call in file.calls:
        if not file.runs_on_replicas(call):
            continue
        name = file.name(call.func)
        if name in ("tf.reduce_mean", "tf.math.reduce_mean") and call.args and _is_loss(file, call.args[0].value):
            if not _divided(file, call):
                message = (
                    "the mean over the replica's own batch: use tf.nn.compute_average_loss with the global batch size"
                )
                yield Change("TFM716", call, message, severity=Severity.MANUAL)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("reset_state", "reset_states"):
            if (file.made_by(call.func.value) or "").startswith("tf.keras.metrics."):
                message = "this resets the metric in every step of every replica: move it out of the step"
                yield Change("TFM719", call, message, severity=Severity.MANUAL)
        if _without_reduction(file, call) and _of_vectors(file, call):
            message = "vectors of labels and predictions give one number here, not one per example: add a last axis"
            yield Change("TFM718", call, message, severity=Severity.REVIEW)
    for division in file.divisions:
        if file.runs_on_replicas(division) and _by_replicas(division.right):
            scaled = division.left if isinstance(division.left, cst.Call) else file.value_of(division.left)
            if isinstance(scaled, cst.Call) and file.name(scaled.func) in _SCALED:
                message = f"`{file.name(scaled.func)}` has divided by the replicas already: leave this division out"
                yield Change("TFM717", division, message, severity=Severity.MANUAL)


def _is_loss(file: ModernFile, node: cst.BaseExpression) -> bool:
    """Whether an expression is the result of a Keras loss or of a loss function of TensorFlow."""
    value = node if isinstance(node, cst.Call) else file.value_of(node)
    if not isinstance(value, cst.Call):
        return False
    name = file.name(value.func) or file.made_by(value.func) or ""
    return name.startswith("tf.keras.losses.") or "cross_entropy" in name.rpartition(".")[2]


def _divided(file: ModernFile, call: cst.Call) -> bool:
    """Whether a mean is divided by the number of replicas somewhere in the step."""
    for division in file.divisions:
        if not _by_replicas(division.right):
            continue
        left = division.left
        value = file.value_of(left)
        if left is call or value is call or any(inner is call for inner in calls_in(left)):
            return True
    return False


def _by_replicas(node: cst.BaseExpression) -> bool:
    text = cst.Module([]).code_for_node(node)
    return "num_replicas_in_sync" in text or "num_replicas" in text


def _without_reduction(file: ModernFile, call: cst.Call) -> bool:
    """Whether a call applies a loss object that averages the last axis and nothing else."""
    made = file.value_of(call.func)
    if not isinstance(made, cst.Call):
        return False
    name = file.name(made.func) or ""
    if not name.startswith("tf.keras.losses.") or name.rpartition(".")[2] not in _LAST_AXIS:
        return False
    reduction = keyword(made, "reduction")
    if reduction is None:
        return False
    text = (dotted(reduction.value) or cst.Module([]).code_for_node(reduction.value)).strip("\"'")
    return text.rpartition(".")[2].lower() == "none"


def _of_vectors(file: ModernFile, call: cst.Call) -> bool:
    """Whether a loss is given vectors: they were squeezed, or another call of the same loss adds the axis."""
    if any(_mentions(file, arg.value, _NEW_AXIS) for arg in call.args):
        return False
    key = dotted(call.func)
    others = [other for other in file.calls if other is not call and dotted(other.func) == key]
    elsewhere = any(_mentions(file, arg.value, _NEW_AXIS) for other in others for arg in other.args)
    return elsewhere or any(_mentions(file, arg.value, ("squeeze",)) for arg in call.args)


def _mentions(file: ModernFile, node: cst.BaseExpression, words: Iterable[str]) -> bool:
    value = file.value_of(node) if isinstance(node, cst.Name) else node
    text = cst.Module([]).code_for_node(value or node)
    return any(word in text for word in words)


_NEW_AXIS = ("newaxis", "expand_dims", "None]", "[..., None", "reshape")


CHECKS = (check_replicas,)
