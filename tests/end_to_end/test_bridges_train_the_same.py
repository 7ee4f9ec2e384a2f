"""Unchanged TensorFlow 1 programs train on the bridge, keras_estimator.py, to the numbers of the originals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove_project

pytestmark = pytest.mark.tensorflow

_PROGRAM = """
import numpy as np
import tensorflow as tf
{top}

def data():
    random = np.random.RandomState(3)
    words = random.randint(0, 12, size=(20, 5)).astype(np.int64)
    values = random.normal(size=(20, 5, 3)).astype(np.float32)
    labels = (words[:, :1] % 3 + values[:, 0, :1] > 1.0).astype(np.float32)
    return {{"words": words, "values": values, "weights": np.abs(values[:, 1, :1])}}, labels


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).batch(4)


def model_fn(features, labels, mode):
{network}
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    classes = tf.cast(logits > 0.0, tf.float32)
    metrics = {{}}
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics["error"] = tf.metrics.mean_absolute_error(labels, tf.sigmoid(logits))
{metrics}
    optimizer = {optimizer}
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    hook = tf.train.LoggingTensorHook({{"loss": loss}}, 5)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, training_hooks=[hook])


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
estimator.evaluate(input_fn)
"""


def program(network: str, metrics: str = "", optimizer: str = "tf.train.AdamOptimizer(0.05)", top: str = "") -> str:
    """A program of TensorFlow 1 code with one logit."""

    def indented(text: str, depth: int) -> str:
        return "\n".join(" " * depth + line if line else "" for line in text.splitlines())

    return _PROGRAM.format(
        network=indented(network, 4), metrics=indented(metrics, 8), optimizer=optimizer, top=top
    ).lstrip()


def trained_by_a_helper(text: str) -> str:
    """A program whose train_op a function makes: a rate with a warm-up, clipped gradients."""
    start, end = text.index("    optimizer ="), text.index("    hook =")
    helper = (
        "def train_op_of(loss, base):\n"
        "    step = tf.train.get_or_create_global_step()\n"
        "    rate = base * tf.minimum(1.0, (tf.cast(step, tf.float32) + 1.0) / 3.0)\n"
        "    optimizer = tf.train.MomentumOptimizer(rate, 0.9)\n"
        "    variables = tf.trainable_variables()\n"
        "    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)\n"
        "    return optimizer.apply_gradients(zip(gradients, variables), global_step=step)\n\n\n"
    )
    text = text[:start] + "    train_op = train_op_of(loss, 0.03)\n" + text[end:]
    return text.replace("def model_fn", helper + "def model_fn")


def trained_by_a_condition(text: str) -> str:
    """A program that applies its gradients in every other step."""
    start, end = text.index("    update_ops ="), text.index("    hook =")
    condition = (
        "    step, pairs = tf.train.get_global_step(), optimizer.compute_gradients(loss)\n"
        "    trains = tf.cond(tf.equal(step % 2, 0), lambda: optimizer.apply_gradients(pairs), tf.no_op)\n"
        "    with tf.control_dependencies([trains]):\n"
        "        train_op = tf.assign_add(step, 1)\n"
    )
    return text[:start] + condition + text[end:]


PROGRAMS = {
    "a condition around the update": program(
        "logits = tf.layers.dense(tf.reduce_mean(features['values'], 1), 1)",
        optimizer="tf.train.MomentumOptimizer(0.1, 0.9)",
    ),
    "a bidirectional network and cells of three kinds, trained by a helper": program(
        "cells = [tf.nn.rnn_cell.GRUCell(4), tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(3))]\n"
        "cell = tf.nn.rnn_cell.MultiRNNCell(cells)\n"
        "lengths = tf.cast(features['words'][:, 0] % 5 + 1, tf.int32)\n"
        "_, words = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 0.9), [0, features['values']])\n"
        "with tf.variable_scope('net', initializer=tf.random_uniform_initializer(-0.3, 0.3)):\n"
        "    outputs, _ = tf.nn.dynamic_rnn(cell, words, sequence_length=lengths, dtype=tf.float32)\n"
        "    both, _ = tf.nn.bidirectional_dynamic_rnn(\n"
        "        tf.nn.rnn_cell.BasicLSTMCell(2), tf.nn.rnn_cell.GRUCell(2), outputs, dtype=tf.float32)\n"
        "    logits = tf.layers.dense(tf.concat(both, 2)[:, -1], 1, name='logits')",
    ),
    "variables of every kind, loops and reuse": program(
        "table = tf.Variable(tf.random_uniform([12, 4], -0.5, 0.5), name='table')\n"
        "scale = tf.Variable(1.0)\n"
        "counter = tf.Variable(0, trainable=False, name='counter')\n"
        "shift = tf.Variable(np.linspace(-0.1, 0.1, 4), name='shift', dtype=np.float32)\n"
        "net = tf.reduce_mean(tf.nn.embedding_lookup(table, features['words']), 1) * scale + shift\n"
        "with tf.variable_scope('dense', reuse=tf.AUTO_REUSE):\n"
        "    for _ in range(2):\n"
        "        w = tf.get_variable('w', [4, 4], initializer=tf.glorot_normal_initializer())\n"
        "        net = tf.tanh(tf.matmul(net, w) + tf.Variable(tf.zeros([4]), name='b'))\n"
        "net = tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN, momentum=0.9)\n"
        "logits = tf.layers.dense(net, 1) + tf.cast(counter, tf.float32)",
        metrics="for k in (1, 2):\n"
        "    ranks = tf.concat([logits, -logits, 0.5 * logits + 0.1], 1)\n"
        "    metrics['recall at %d' % k] = tf.metrics.recall_at_k(tf.cast(labels, tf.int64), ranks, k)\n"
        "accuracy, update = tf.metrics.accuracy(labels, classes, weights=features['weights'])\n"
        "metrics['accuracy'] = (accuracy, update)\n"
        "metrics['auc'] = tf.metrics.auc(labels, tf.sigmoid(logits), weights=features['weights'])\n"
        "metrics['precision'] = tf.metrics.precision(labels, classes - 1.0)\n"
        "metrics['whole'] = tf.metrics.accuracy(tf.cast(labels, tf.int32), tf.sigmoid(logits) + 0.5)\n"
        "metrics['rmse'] = tf.metrics.root_mean_squared_error(labels, logits)\n"
        "metrics['mse'] = tf.metrics.mean_squared_error(labels[:, 0], logits[:, 0])\n"
        "chances = tf.sigmoid(logits) * 0.9\n"
        "metrics['chances'] = tf.metrics.mean(tf.keras.backend.binary_crossentropy(labels, chances))\n"
        "metrics['curve'] = tf.metrics.auc(labels, tf.sigmoid(logits), curve='PR')",
        optimizer="tf.train.MomentumOptimizer(0.1, 0.9)",
    ),
    "variables and layers of a scope that is entered twice": program(
        "net = tf.layers.dense(tf.reduce_mean(features['values'], 1), 4)\n"
        "with tf.variable_scope('block'):\n"
        "    net = norm(norm(net))\n"
        "logits = tf.layers.dense(net, 1)",
        top="def norm(x):\n"
        "    with tf.variable_scope('ln', reuse=tf.AUTO_REUSE):\n"
        "        gain = tf.Variable(tf.ones([4]))\n"
        "        x = x * gain + tf.Variable(tf.zeros([4]))\n"
        "        return tf.keras.layers.Dense(4, activation=tf.nn.tanh)(x)\n\n",
        optimizer="tf.train.MomentumOptimizer(0.1, 0.9)",
    ),
    "feature columns, shared embeddings": program(
        # Columns that share a table are made in the graph: TensorFlow 2 makes none outside of one.
        "first = tf.feature_column.categorical_column_with_identity('a', 12)\n"
        "second = tf.feature_column.categorical_column_with_identity('b', 12)\n"
        "weighted = tf.feature_column.weighted_categorical_column(second, 'weights')\n"
        "columns = tf.feature_column.shared_embedding_columns([first, weighted], 3, combiner='sum')\n"
        "columns.append(tf.feature_column.numeric_column('weights'))\n"
        "net = tf.feature_column.input_layer({'a': features['words'][:, :1], 'b': features['words'][:, 1:2],\n"
        "                                     'weights': features['weights']}, columns)\n"
        "linear = tf.feature_column.linear_model({'a': features['words'][:, :1]}, [first])\n"
        "logits = tf.layers.dense(net, 1) + linear",
        optimizer="tf.train.AdagradOptimizer(0.2)",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_the_bridge_trains_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    text = PROGRAMS[name]
    text = trained_by_a_helper(text) if "helper" in name else text
    text = trained_by_a_condition(text) if "condition" in name else text
    new = prove_project({"train.py": text}, "train.py", servers, tmp_path, style="bridge")
    assert "class Estimator" in new["keras_estimator.py"] and "def model_fn" in new["train.py"]
