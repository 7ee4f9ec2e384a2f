"""What goes wrong in the step of a replica: losses scaled twice or not at all, metrics that never add up."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.modern import Change, ModernFile
from migrator.program.replica_losses import read_scales, reduction_of, refused_by_keras_2
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

A loss object without a reduction averages over the batch. Keras 2 refuses it there with a ValueError ("Please use
`tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE`"), also with one replica. Keras 3 takes it and
divides by the replicas itself (17.5), so that one more division makes the step too small (8.75) without a word. A file
with such a loss keeps the Keras that it has.
""",
    ),
    Rule(
        "TFM717",
        "a replica's loss is divided by the number of replicas twice",
        Severity.MANUAL,
        """
`tf.nn.compute_average_loss` divides by the global batch, and `tf.nn.scale_regularization_loss` by the number of
replicas, already; so does a sum over the replica's batch that is divided by the global batch. Dividing once more, the
loss or its gradients, makes the step as many times too small as there are replicas: 8.75 instead of 17.5 with two of
them (measured). Leave one of the two out.
""",
    ),
    Rule(
        "TFM734",
        "a replica's regularization losses are not divided by the number of replicas",
        Severity.MANUAL,
        """
Every replica has the same `model.losses`, and the gradients of replicas are added up. A step that adds them as they are
to a loss that is divided by the global batch trains with a regularization as many times too strong as there are
replicas: an L2 penalty of 0.1 shrank a weight of 1 by 0.04 in a step instead of by 0.02 with two of them (measured at a
rate of 0.1 on 2.15.1 and 2.21). Add `tf.nn.scale_regularization_loss(tf.add_n(model.losses))`.
""",
    ),
    Rule(
        "TFM718",
        "a loss without reduction may still average the last axis",
        Severity.REVIEW,
        """
`Reduction.NONE` keeps the axis of the examples, but regression losses (mean squared error, Huber and others) and binary
cross entropies always average the last axis, and so do the functions of the same names
(`tf.keras.losses.mean_squared_error`). Where labels and predictions are vectors, that is the axis of the examples, and
the result is one number instead of one per example: the mean over the replica's batch, which a sum over the global
batch then divides once more, and which `tf.nn.compute_average_loss` refuses. Give both a last axis of one,
`labels[:, tf.newaxis]`. Told where predictions are squeezed before the loss, or where another call of the same loss
adds the axis.
""",
    ),
    Rule(
        "TFM719",
        "a metric is reset in a replica's step",
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
        "BinaryCrossentropy",
        "BinaryFocalCrossentropy",
    }
)
# The functions that compute the same, by all their names.
_LAST_AXIS_FUNCTIONS = frozenset(
    {
        *("mean_squared_error", "mse", "MSE", "mean_absolute_error", "mae", "MAE", "huber", "log_cosh", "logcosh"),
        *("mean_absolute_percentage_error", "mape", "MAPE", "mean_squared_logarithmic_error", "msle", "MSLE"),
        *("cosine_similarity", "hinge", "squared_hinge", "categorical_hinge", "poisson", "kl_divergence", "kld", "KLD"),
        *("kullback_leibler_divergence", "binary_crossentropy", "binary_focal_crossentropy"),
    }
)
_LOSSES = ("tf.keras.losses.", "tf.losses.")


def check_replicas(file: ModernFile) -> Iterable[Change]:
    """The functions that run on replicas."""
    scales = read_scales(file)
    for call in file.calls:
        if not file.runs_on_replicas(call):
            continue
        name = file.name(call.func)
        if name in ("tf.reduce_mean", "tf.math.reduce_mean") and call.args and _is_loss(file, call.args[0].value):
            if call not in scales.means:
                message = (
                    "this averages over the replica's own batch: use tf.nn.compute_average_loss with the "
                    "global batch size"
                )
                yield Change("TFM716", call, message, severity=Severity.MANUAL)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("reset_state", "reset_states"):
            if (file.made_by(call.func.value) or "").startswith("tf.keras.metrics."):
                message = "this resets the metric in every step of every replica: move it out of the step"
                yield Change("TFM719", call, message, severity=Severity.MANUAL)
        if _without_reduction(file, call) and _of_vectors(file, call):
            message = (
                "the loss of rank-1 labels and predictions is a scalar, not one value per example: add a last axis"
            )
            yield Change("TFM718", call, message, severity=Severity.REVIEW)
    for call in refused_by_keras_2(file):
        message = (
            "Keras 2 rejects this loss in a replica step (ValueError), and Keras 3 divides it by "
            "the number of replicas: create it with reduction=tf.keras.losses.Reduction.NONE, and "
            "pass it to tf.nn.compute_average_loss"
        )
        yield Change("TFM716", call, message, severity=Severity.MANUAL)
    for division, by in scales.twice.items():
        message = f"{by} already divides by the number of replicas: remove this one"
        yield Change("TFM717", division, message, severity=Severity.MANUAL)
    for added in scales.penalties:
        message = "every replica adds the full regularization loss: apply tf.nn.scale_regularization_loss first"
        yield Change("TFM734", added, message, severity=Severity.MANUAL)


def _is_loss(file: ModernFile, node: cst.BaseExpression) -> bool:
    """Whether an expression is the result of a Keras loss or of a loss function of TensorFlow."""
    value = node if isinstance(node, cst.Call) else file.value_of(node)
    if not isinstance(value, cst.Call):
        return False
    name = file.name(value.func) or file.made_by(value.func) or ""
    return name.startswith("tf.keras.losses.") or "cross_entropy" in name.rpartition(".")[2]


def _without_reduction(file: ModernFile, call: cst.Call) -> bool:
    """Whether a call applies a loss, an object or a function, that averages the last axis and nothing else."""
    if (file.name(call.func) or "").startswith(_LOSSES):
        return (dotted(call.func) or "").rpartition(".")[2] in _LAST_AXIS_FUNCTIONS
    made = call.func if isinstance(call.func, cst.Call) else file.value_of(call.func)
    if not isinstance(made, cst.Call):
        return False
    name = file.name(made.func) or ""
    return name.startswith(_LOSSES) and name.rpartition(".")[2] in _LAST_AXIS and reduction_of(made) == "none"


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
