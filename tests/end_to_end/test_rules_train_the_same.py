"""The first rules with their proofs: a small program per construct, see proving.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf


def data():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6, 6, 1)).astype(np.float32)
    {labels}
    return x, y


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).batch(8)


def model_fn(features, labels, mode):
    net = tf.layers.flatten(features)
    {network}
    {loss}
    metrics = {metrics}
    optimizer = {optimizer}
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, predictions={{"out": logits}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""

BINARY = "y = (x.mean(axis=(1, 2)) > 0).astype(np.float32)"
CLASSES = "y = random.randint(0, 4, size=40).astype(np.int64)"
NUMBERS = "y = x.sum(axis=(1, 2)) / 6"
ONE = "logits = tf.layers.dense(net, 1)"
FOUR = "logits = tf.layers.dense(net, 4)"
MSE = "loss = tf.losses.mean_squared_error(labels, logits)"
SPARSE = "loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)"
SIGMOID = "loss = tf.losses.sigmoid_cross_entropy(labels, logits)"
SGD = "tf.train.GradientDescentOptimizer(0.05)"

# construct -> labels, network, loss, metrics, optimizer
CASES: dict[str, tuple[str, str, str, str, str]] = {
    "absolute difference, mean_absolute_error": (
        NUMBERS,
        ONE,
        "loss = tf.losses.absolute_difference(labels, logits)",
        '{"mae": tf.metrics.mean_absolute_error(labels, logits), "mse": tf.metrics.mean_squared_error(labels, logits)}',
        SGD,
    ),
    "huber, root mean squared error": (
        NUMBERS,
        ONE,
        "loss = tf.losses.huber_loss(labels, logits, delta=0.3)",
        '{"rmse": tf.metrics.root_mean_squared_error(labels, logits)}',
        "tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True)",
    ),
    "sparse softmax, accuracy": (
        CLASSES,
        FOUR,
        SPARSE,
        '{"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}',
        "tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.2)",
    ),
    "softmax with smoothing of one-hot labels": (
        CLASSES,
        FOUR,
        "hot = tf.one_hot(labels, 4)\n    loss = tf.losses.softmax_cross_entropy(hot, logits, label_smoothing=0.1)",
        '{"accuracy": tf.metrics.accuracy(tf.argmax(hot, 1), tf.argmax(logits, 1))}',
        "tf.train.AdamOptimizer(0.01, epsilon=1e-3)",
    ),
    "mean of tf.nn sparse softmax with a cast": (
        CLASSES.replace("int64", "float32"),
        FOUR,
        "losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(labels, tf.int32), logits=logits)\n"
        "    loss = tf.reduce_mean(losses)",
        "{}",
        SGD,
    ),
    "sigmoid, auc, precision, recall, accuracy of a threshold": (
        BINARY,
        ONE + "\n    probability = tf.sigmoid(logits)\n    positive = tf.cast(probability > 0.5, tf.float32)",
        SIGMOID,
        '{"auc": tf.metrics.auc(labels, probability), "precision": tf.metrics.precision(labels, positive),'
        ' "recall": tf.metrics.recall(labels, positive), "accuracy": tf.metrics.accuracy(labels, positive),'
        ' "mean": tf.metrics.mean(probability)}',
        SGD,
    ),
    "hand-written squared error": (
        NUMBERS,
        ONE,
        "loss = tf.reduce_mean(tf.square(labels - logits))",
        "{}",
        SGD,
    ),
    "total loss with two regularizers": (
        NUMBERS,
        "net = tf.layers.dense(net, 5, tf.nn.relu, kernel_regularizer=tf.keras.regularizers.l2(0.1))\n"
        "    logits = tf.layers.dense(net, 1, kernel_regularizer=tf.keras.regularizers.l1(0.02))",
        "tf.losses.mean_squared_error(labels, logits)\n    loss = tf.losses.get_total_loss()",
        "{}",
        SGD,
    ),
    "regularizer that never counted": (
        NUMBERS,
        "logits = tf.layers.dense(net, 1, kernel_regularizer=tf.keras.regularizers.l2(0.5))",
        MSE,
        "{}",
        SGD,
    ),
    "convolution, average pooling, strides by position": (
        NUMBERS,
        'net = tf.layers.conv2d(features, 3, [3, 3], 2, "same", activation=tf.nn.relu)\n'
        "    net = tf.layers.average_pooling2d(net, 2, 1)\n"
        "    logits = tf.layers.dense(tf.layers.flatten(net), 1, use_bias=False)",
        MSE,
        "{}",
        SGD,
    ),
    "layer objects and a dropout that is off": (
        NUMBERS,
        "net = tf.layers.Dense(4, activation=tf.nn.tanh)(net)\n    net = tf.layers.dropout(net, 0.5)\n    " + ONE,
        MSE,
        "{}",
        SGD,
    ),
    "label expanded to a column": (
        NUMBERS.replace("(1, 2))", "(1, 2, 3))"),
        ONE,
        "labels = tf.expand_dims(labels, -1)\n    " + MSE,
        '{"rmse": tf.metrics.root_mean_squared_error(labels, logits)}',
        SGD,
    ),
}


@pytest.mark.parametrize("construct", CASES)
def test_trains_and_evaluates_the_same(construct: str, servers: Servers, tmp_path: Path) -> None:
    labels, network, loss, metrics, optimizer = CASES[construct]
    prove(
        PROGRAM.format(labels=labels, network=network, loss=loss, metrics=metrics, optimizer=optimizer),
        servers,
        tmp_path,
    )
