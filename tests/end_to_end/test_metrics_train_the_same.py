"""The metrics with their proofs: several in one program, on batches of different sizes, see proving.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf


def data(count):
    random = np.random.RandomState(4)
    x = random.normal(size=(count, 6)).astype(np.float32)
    w = random.choice([0.0, 0.5, 2.0], size=count).astype(np.float32)
    {labels}
    return {{"x": x, "w": w}}, y


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data(40)).batch(8)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(data(44)).batch(16)


def model_fn(features, labels, mode):
    net = features["x"]
    {network}
    {metrics}
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, predictions={{"out": logits}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(eval_input_fn).items()))
"""

BINARY = "y = (x.mean(axis=1, keepdims=True) > 0).astype(np.float32)"
FLAT_BINARY = "y = (x.mean(axis=1) > 0).astype(np.int32)"
CLASSES = "y = random.randint(0, 4, size=count).astype(np.int64)"
NUMBERS = "y = 2 + x.sum(axis=1) / 6"
SIGMOID = """\
logits = tf.layers.dense(net, 1)
    probability = tf.sigmoid(logits)
    positive = tf.cast(probability > 0.5, tf.float32)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)"""
FLAT_SIGMOID = """\
logits = tf.layers.dense(net, 1)
    probability = tf.sigmoid(logits)[:, 0]
    positive = tf.greater(probability, 0.5)
    loss = tf.losses.sigmoid_cross_entropy(tf.reshape(labels, [-1, 1]), logits)"""
SOFTMAX = """\
logits = tf.layers.dense(net, 4)
    predictions = {"classes": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)"""
TWO_OUTPUTS = """\
    inner = tf.layers.dense(net, 3)
    logits = tf.layers.dense(net, 4)
    number = tf.squeeze(tf.layers.dense(inner, 1), 1)
    weights = features["w"]
    first = tf.losses.sparse_softmax_cross_entropy(labels=labels["c"], logits=logits, weights=weights)
    loss = first + 0.5 * tf.losses.mean_squared_error(labels["n"], number)"""[4:]
SQUEEZED = """\
hidden = tf.layers.dense(net, 3, activation=tf.nn.relu)
    logits = tf.squeeze(tf.layers.dense(hidden, 1), 1)
    loss = tf.losses.mean_squared_error(labels, logits)"""

SEQUENCES = """\
logits = tf.layers.dense(tf.reshape(net, [-1, 3]), 1)
    steps = tf.reshape(labels, [-1, 1])
    loss = tf.losses.sigmoid_cross_entropy(steps, logits)"""

TABLE = """\
logits = tf.layers.dense(net, 1)
    loss = tf.reduce_mean(tf.square(logits - labels))"""
FIRST_COLUMN = """\
logits = tf.layers.dense(net, 2)
    loss = tf.reduce_mean(tf.square(logits[:, 0] - labels))"""


def display(metrics: dict[str, str]) -> str:
    return "metrics = {" + "".join(f'\n        "{key}": {value},' for key, value in metrics.items()) + "\n    }"


def counts(predictions: str, weights: str = "") -> dict[str, str]:
    """All metrics of truth values."""
    functions = ("precision", "recall", "true_positives", "true_negatives", "false_positives", "false_negatives")
    return {name: f"tf.metrics.{name}(labels, {predictions}{weights})" for name in functions}


def curves(predictions: str, weights: str = "") -> dict[str, str]:
    """All metrics of probabilities."""
    found = {"auc": f"tf.metrics.auc(labels, {predictions}{weights})"}
    methods = ("trapezoidal",) if weights else ("careful_interpolation", "trapezoidal", "minoring", "majoring")
    for method in methods:
        for curve in ("ROC", "PR"):
            found[f"{curve}_{method}"] = (
                f'tf.metrics.auc(labels, {predictions}, num_thresholds=50, curve="{curve}", '
                f'summation_method="{method}"{weights})'
            )
    at = f"at_{{}}(labels, {predictions}, 0.7{weights})"
    found["sensitivity"] = "tf.metrics.sensitivity_" + at.format("specificity")
    found["specificity"] = "tf.metrics.specificity_" + at.format("sensitivity")
    for name in ("precision", "recall", "true_positives", "false_positives"):
        found[f"{name}_at"] = f"tf.metrics.{name}_at_thresholds(labels, {predictions}, [0.3, 0.6]{weights})"
    return found


# construct -> labels, network and loss, metrics, a text that the new program must hold
CASES: dict[str, tuple[str, str, str, str]] = {
    "a table of labels and outputs": (
        NUMBERS,
        TABLE,
        display({"error": "tf.metrics.mean(tf.abs(labels - logits))"}),
        "def compute_loss",
    ),
    "a part of the output": (
        NUMBERS,
        FIRST_COLUMN,
        display(
            {
                "error": "tf.metrics.mean_absolute_error(labels, logits[:, 0])",
                "below": "tf.metrics.accuracy(labels > 2.0, logits[:, 0] > 0.5)",
                "own": "tf.metrics.mean(tf.abs(labels - logits[:, 0]))",
            }
        ),
        "def compute_loss",
    ),
    "sequences, each step a row": (
        "y = (x.reshape(count, 2, 3).sum(axis=2) > 0).astype(np.float32)",
        SEQUENCES,
        display(
            {
                "accuracy": "tf.metrics.accuracy(steps, tf.cast(logits > 0, tf.float32))",
                "recall": "tf.metrics.recall(steps, logits > 0)",
                "error": "tf.metrics.mean_absolute_error(steps, tf.sigmoid(logits))",
            }
        ),
        "steps = tf.reshape(labels, [-1, 1])",
    ),
    "truth values and curves": (
        BINARY,
        SIGMOID,
        display(
            {
                **counts("positive"),
                **curves("probability"),
                "raw_precision": "tf.metrics.precision(labels, probability)",
                "logit_recall": "tf.metrics.recall(labels, logits)",
                "accuracy": "tf.metrics.accuracy(labels, positive)",
                "mean": "tf.metrics.mean(probability)",
                "below": "tf.metrics.percentage_below(probability, 0.4)",
            }
        ),
        "model.compile(",
    ),
    "truth values and curves with weights": (
        FLAT_BINARY,
        FLAT_SIGMOID,
        'weights = tf.reshape(features["w"], [-1])\n    '
        + display(
            {
                **counts("positive", ", weights=weights"),
                **curves("probability", ', weights=features["w"]'),
                "accuracy": 'tf.metrics.accuracy(labels, probability, features["w"])',
                "flat": "tf.metrics.accuracy(labels, tf.round(probability), tf.expand_dims(weights, 1))",
                "mean": "tf.metrics.mean(tf.reshape(labels, [-1, 1]), weights=weights)",
                "below": "tf.metrics.percentage_below(probability, 0.4, weights)",
            }
        ),
        "def compute_metrics(",
    ),
    "classes": (
        CLASSES,
        SOFTMAX,
        display(
            {
                "accuracy": 'tf.metrics.accuracy(labels, predictions["classes"])',
                "precision": 'tf.metrics.precision(labels, predictions["classes"])',
                "iou": "tf.metrics.mean_iou(labels, tf.argmax(logits, 1), 4)",
                "per_class": 'tf.metrics.mean_per_class_accuracy(labels, predictions["classes"], num_classes=4)',
                "recall_at_2": "tf.metrics.recall_at_k(labels, logits, 2)",
                "precision_at_2": "tf.metrics.precision_at_k(labels, logits, 2)",
            }
        ),
        "SparseTopKCategoricalAccuracy(k=2",
    ),
    "classes with weights, pairs and means of what the labels give": (
        CLASSES,
        SOFTMAX,
        'classes = predictions["classes"]\n'
        "    accuracy, accuracy_update = tf.metrics.accuracy(labels, classes, weights=features['w'])\n"
        "    right = tf.metrics.mean(tf.cast(tf.equal(labels, classes), tf.float32))\n"
        '    tf.summary.scalar("right", right[1])\n'
        '    tf.identity(right[1], name="right")\n'
        "    right_one = tf.one_hot(labels, 4) * predictions['probabilities']\n"
        "    each = -tf.log(tf.reduce_sum(right_one, 1))\n    "
        + display(
            {
                "accuracy": "(accuracy, accuracy_update)",
                "right": "(right[0], right[1])",
                "cross/entropy": 'tf.metrics.mean(each, weights=features["w"])',
                "in_top_k": "tf.metrics.mean(tf.nn.in_top_k(predictions=logits, targets=labels, k=2))",
                "iou": 'tf.metrics.mean_iou(labels, classes, 4, weights=features["w"])',
                "per_class": 'tf.metrics.mean_per_class_accuracy(labels, classes, 4, features["w"])',
                "recall": 'tf.metrics.recall_at_k(labels, logits, 2, weights=features["w"])',
                "hot": "tf.metrics.mean_squared_error(tf.one_hot(labels, 4), predictions['probabilities'])",
            }
        ),
        "update_state(labels, classes, features['w'])",
    ),
    "errors of an output with one axis": (
        NUMBERS,
        SQUEEZED,
        display(
            {
                "mse": "tf.metrics.mean_squared_error(labels, logits)",
                "mae": "tf.metrics.mean_absolute_error(labels, logits)",
                "rmse": "tf.metrics.root_mean_squared_error(labels, logits)",
                "relative": "tf.metrics.mean_relative_error(labels, logits, labels)",
            }
        ),
        "model.compile(",
    ),
    "errors with weights, and a tensor inside the network": (
        NUMBERS,
        SQUEEZED,
        'w = features["w"]\n    '
        + display(
            {
                "mse": "tf.metrics.mean_squared_error(labels, logits, weights=w)",
                "mae": "tf.metrics.mean_absolute_error(labels, logits, w)",
                "rmse": "tf.metrics.root_mean_squared_error(labels, logits, w)",
                "relative": "tf.metrics.mean_relative_error(labels, logits, labels, w)",
                "active": "tf.metrics.mean(hidden > 0)",
                "means": "tf.metrics.mean_tensor(tf.reduce_mean(hidden, 0))",
                "cosine": "tf.metrics.mean_cosine_distance("
                "tf.nn.l2_normalize(hidden, 1), tf.nn.l2_normalize(net[:, :3], 1), 1)",
            }
        ),
        '{"logits": logits, "hidden": hidden}',
    ),
}
CASES["a loss of two outputs, labels by key, the mean of a loss"] = (
    'y = {"c": random.randint(0, 4, size=count).astype(np.int64), "n": x.sum(axis=1)}',
    TWO_OUTPUTS,
    display(
        {
            "accuracy": 'tf.metrics.accuracy(labels["c"], tf.argmax(logits, 1), weights)',
            "rmse": 'tf.metrics.root_mean_squared_error(labels["n"], number)',
            "first": "tf.metrics.mean(first)",
            "inner": "tf.metrics.mean(inner)",
        }
    ),
    '{"logits": logits, "number": number, "inner": inner}',
)


@pytest.mark.parametrize("construct", CASES)
def test_evaluates_the_same(construct: str, servers: Servers, tmp_path: Path) -> None:
    labels, network, metrics, expected = CASES[construct]
    new = prove(PROGRAM.format(labels=labels, network=network, metrics=metrics), servers, tmp_path)
    assert expected in new


UNLABELLED = PROGRAM.format(
    labels="",
    network="""del labels
    code = tf.layers.dense(net, 3, activation=tf.nn.tanh)
    logits = tf.layers.dense(code, 6)
    error = tf.reduce_sum(tf.square(logits - net), axis=1)
    loss = tf.reduce_mean(error)""",
    metrics=display(
        {
            "error": "tf.metrics.mean(error)",
            "code": "tf.metrics.mean_squared_error(net[:, :3], code)",
            "batches": "tf.metrics.mean(loss)",
        }
    ),
).replace('"w": w}, y', '"w": w}')


def test_data_without_labels(servers: Servers, tmp_path: Path) -> None:
    """Keras passes over the metrics of `Model.compile` for such: they stayed zero."""
    assert "def compute_metrics" in prove(UNLABELLED, servers, tmp_path)
