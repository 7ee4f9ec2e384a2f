"""tf.contrib.layers on a true TensorFlow 1.15.5 against the Keras form on TensorFlow 2.21.

Needs an interpreter of its own: Python 3.7 with `tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19'`, named by
TF_MIGRATE_TENSORFLOW1_PYTHON.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.harness.cluster import ForkServer
from migrator.harness.environments import migrated_python
from tests.end_to_end.proving import Servers, prove

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]

PROGRAM = """\
import numpy as np
import tensorflow as tf
from tensorflow.contrib import layers

slim = tf.contrib.slim


def input_fn():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6, 6, 1)).astype(np.float32)
    y = x.sum(axis=(1, 2)) / 6
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    {network}
    {loss}
    optimizer = tf.train.MomentumOptimizer(0.02, 0.9)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op,
        eval_metric_ops={{"mse": tf.metrics.mean_squared_error(labels, logits)}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""
MSE = "loss = tf.losses.mean_squared_error(labels, logits)"
TOTAL = "tf.losses.mean_squared_error(labels, logits)\n    loss = tf.losses.get_total_loss()"

# construct -> network, loss, what the new program says
CASES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "weights, poolings and defaults": (
        """
        net = slim.conv2d(features, 4, [3, 3], scope="first/conv")
        net = layers.conv2d(
            net, num_outputs=3, kernel_size=2, stride=2, padding="VALID",
            weights_initializer=layers.xavier_initializer(),
            biases_initializer=None,
            activation_fn=None)
        net = layers.conv2d_transpose(net, 3, 3, 2)
        net = layers.max_pool2d(net, 2)
        net = layers.avg_pool2d(net, [2, 2], stride=1, padding="SAME")
        net = layers.flatten(net)
        net = slim.fully_connected(
            net, 5, activation_fn=tf.nn.tanh,
            weights_initializer=slim.variance_scaling_initializer(),
            weights_regularizer=slim.l2_regularizer(0.1))
        net = layers.dropout(net, 0.5, is_training=False)
        logits = layers.linear(net, 1)
        """,
        TOTAL,
        ('name="first/conv"', "L2(0.05)", "GlorotUniform()", "Dropout(0.5)(net, training=False)"),
    ),
    "batch normalization of vectors and images": (
        """
        normalizer_params = {"is_training": is_training, "decay": 0.9, "updates_collections": None}
        net = layers.conv2d(features, 3, 3, normalizer_fn=layers.batch_norm, normalizer_params=normalizer_params)
        net = layers.batch_norm(
            net, decay=0.8, is_training=is_training, scale=True, updates_collections=None, activation_fn=tf.nn.relu)
        net = slim.fully_connected(
            slim.flatten(net), 6, normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": is_training, "updates_collections": None, "decay": 0.7})
        logits = layers.fully_connected(net, 1, activation_fn=None)
        """,
        MSE,
        ("FusedBatchNormalization(momentum=0.7, scale=False)",),
    ),
    "batch normalization that always trains, and whose updates never run": (
        """
        net = layers.conv2d(features, 3, 3, normalizer_fn=layers.batch_norm)
        net = layers.flatten(net)
        net = layers.batch_norm(net, is_training=is_training, center=False, epsilon=1e-4)
        logits = layers.fully_connected(net, 1, activation_fn=None)
        """,
        MSE,
        ("training=True", "FusedBatchNormalization(momentum=1.0,"),
    ),
    "layer normalization": (
        """
        net = layers.conv2d(features, 3, 3)
        net = layers.layer_norm(net)
        net = layers.fully_connected(layers.flatten(net), 6, normalizer_fn=layers.layer_norm)
        net = layers.layer_norm(inputs=net, begin_norm_axis=-1, begin_params_axis=-1, scope="norm")
        logits = layers.fully_connected(net, 1, None)
        """,
        MSE,
        ("WholeLayerNormalization()(net)", 'LayerNormalization(name="norm", epsilon=1e-12)(net)'),
    ),
}


@pytest.fixture(scope="module")
def true_servers() -> Iterator[Servers]:
    """True TensorFlow 1, and the interpreter of the migrated program."""
    with ForkServer(PYTHON, "original") as original, ForkServer(migrated_python(), "migrated") as migrated:
        yield original, migrated


@pytest.mark.parametrize("construct", CASES)
def test_trains_and_evaluates_the_same(construct: str, true_servers: Servers, tmp_path: Path) -> None:
    network, loss, said = CASES[construct]
    new = prove(text_of(network, loss), true_servers, tmp_path)
    for expected in said:
        assert expected in new


def text_of(network: str, loss: str) -> str:
    """The program with a network and a loss."""
    lines = [line.removeprefix(" " * 8) for line in network.strip("\n").rstrip().split("\n")]
    return PROGRAM.format(network="\n    ".join(lines), loss=loss)


# Before the model_fn, its network, and what the new program says: arguments of functions that scopes give, one inside
# the other, by a function, for normalizers, and for calls in a helper; calls that give some of them themselves.
# (No tanh: TensorFlow 2.21 fails on one behind a batch normalization, "Fusion is not implemented" on a CPU.)
SCOPES = (
    """
def scope_of(weight_decay=0.1, momentum=0.9):
    params = {"decay": momentum, "updates_collections": None}
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        activation_fn=tf.nn.softsign,
        weights_regularizer=slim.l2_regularizer(weight_decay),
    ):
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=params):
            with slim.arg_scope([slim.conv2d, slim.max_pool2d], padding="VALID") as scope:
                return scope


def block(net, trains):
    with slim.arg_scope([slim.max_pool2d], stride=1):
        net = slim.conv2d(net, 3, 2)
        return slim.dropout(slim.max_pool2d(net, 2), 1.0, is_training=trains)


""",
    """
        with slim.arg_scope(scope_of(0.2)), slim.arg_scope([slim.batch_norm], is_training=is_training):
            net = block(features, is_training)
        with slim.arg_scope(scope_of(momentum=0.8)):
            net = slim.conv2d(net, 4, 2, padding="SAME", scope="last")
            with slim.arg_scope([layers.fully_connected], activation_fn=None, biases_initializer=None):
                net = slim.relu(slim.flatten(net), 5)
                logits = slim.fully_connected(net, 1, weights_regularizer=None)
        """,
    (
        "L2(0.1)",
        "class BestF1Score(tf.keras.metrics.AUC):",
        "momentum=0.8, scale=False",
        'padding="valid"',
        "MaxPooling2D(2, strides=1)",
        "activation=tf.nn.relu",
    ),
)


def test_arguments_of_scopes_are_given_to_the_calls(true_servers: Servers, tmp_path: Path) -> None:
    helpers, network, said = SCOPES
    text = text_of(network, TOTAL).replace("def model_fn", f"{helpers.lstrip()}def model_fn")
    f1_score = "tf.contrib.metrics.f1_score(labels > 0.1, tf.sigmoid(logits), labels * labels, num_thresholds=50)"
    text = text.replace('"mse": tf', f'"f1": {f1_score}, "mse": tf')
    new = prove(text, true_servers, tmp_path)
    for expected in said:
        assert expected in new
    assert "arg_scope" not in new and "scope_of" not in new
