"""The layer catalogue with its proofs: every layer of tf.layers trains and evaluates the same in Keras."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6, 6, 1)).astype(np.float32)
    y = x.sum(axis=(1, 2)) / 6
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    {network}
    logits = tf.layers.dense(net, 1)
    {loss}
    optimizer = tf.train.MomentumOptimizer(0.02, 0.9)
    {train}
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op,
        eval_metric_ops={{"mse": tf.metrics.mean_squared_error(labels, logits)}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""

MINIMIZE = "train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())"
WITH_UPDATES = f"with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n        {MINIMIZE}"
MSE = "loss = tf.losses.mean_squared_error(labels, logits)"
TOTAL = "tf.losses.mean_squared_error(labels, logits)\n    loss = tf.losses.get_total_loss()"

# construct -> network, loss, train_op, what the new program says
CASES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "convolutions and poolings of one and three dimensions": (
        """
        line = tf.reshape(features, [-1, 36, 1])
        line = tf.layers.conv1d(line, 4, 3, 1, "same", activation=tf.nn.relu)
        line = tf.layers.max_pooling1d(line, 2, 2)
        line = tf.layers.separable_conv1d(line, 3, 3, depth_multiplier=2, use_bias=False)
        line = tf.layers.average_pooling1d(line, 3, 2, padding="same")
        cube = tf.reshape(features, [-1, 4, 3, 3, 1])
        cube = tf.layers.conv3d(cube, 3, (2, 2, 2), padding="SAME")
        cube = tf.layers.average_pooling3d(cube, 2, 1)
        cube = tf.layers.conv3d_transpose(cube, 2, 2, 1, activation=tf.nn.tanh)
        cube = tf.layers.max_pooling3d(inputs=cube, pool_size=2, strides=1)
        net = tf.concat([tf.layers.flatten(line), tf.layers.flatten(cube)], 1)
        """,
        MSE,
        MINIMIZE,
        ("Conv1D(", "SeparableConv1D(", "Conv3D(", "Conv3DTranspose(", "AveragePooling3D(2, 1)"),
    ),
    "convolutions of two dimensions": (
        """
        net = tf.layers.conv2d(features, 3, 2, dilation_rate=(2, 2), kernel_initializer=tf.ones_initializer())
        net = tf.layers.conv2d_transpose(net, 4, 3, 2, "same", activation=tf.nn.relu, name="up")
        net = tf.layers.separable_conv2d(net, 4, [3, 3], depth_multiplier=2, activation=tf.nn.relu)
        net = tf.layers.max_pooling2d(net, [2, 2], [2, 2])
        net = tf.layers.Conv2D(2, 2, bias_initializer=tf.constant_initializer(0.1)).apply(net)
        net = tf.layers.Flatten()(net)
        """,
        MSE,
        MINIMIZE,
        ("Conv2DTranspose(4, 3,", "SeparableConv2D("),
    ),
    "batch normalization whose updates never run": (
        """
        net = tf.layers.conv2d(features, 3, 3)
        net = tf.layers.batch_normalization(net, momentum=0.8, training=is_training)
        net = tf.nn.relu(net)
        net = tf.layers.flatten(net)
        """,
        MSE,
        MINIMIZE,
        ("BatchNormalization(momentum=1.0)(net)",),
    ),
    "batch normalization whose updates are read before there are any": (
        """
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        net = tf.layers.dense(tf.layers.flatten(features), 4)
        net = tf.nn.relu(tf.layers.batch_normalization(net, momentum=0.8, training=is_training))
        """,
        MSE,
        f"with tf.control_dependencies(updates):\n        {MINIMIZE}",
        ("BatchNormalization(momentum=1.0)(net)",),
    ),
    "batch normalization whose updates the loss waits for": (
        """
        net = tf.layers.dense(tf.layers.flatten(features), 4)
        net = tf.nn.relu(tf.layers.batch_normalization(net, momentum=0.8, training=is_training))
        """,
        f"""{MSE}
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        loss = tf.identity(loss)""",
        MINIMIZE,
        ("BatchNormalization(momentum=0.8)(net)",),
    ),
    "batch normalization that does not know of the training": (
        """
        net = tf.layers.dense(tf.layers.flatten(features), 4)
        net = tf.layers.batch_normalization(net, epsilon=1e-5)
        net = tf.nn.relu(net)
        """,
        MSE,
        MINIMIZE,
        ("BatchNormalization(epsilon=1e-5)(net, training=False)",),
    ),
    "batch normalization that always trains": (
        """
        net = tf.layers.dense(tf.layers.flatten(features), 4)
        net = tf.layers.batch_normalization(net, training=True)
        net = tf.nn.relu(net)
        """,
        MSE,
        MINIMIZE,
        ("BatchNormalization(momentum=1.0)(net, training=True)",),
    ),
    "regularized activities and constrained kernels": (
        """
        net = tf.layers.flatten(features)
        net = tf.layers.dense(
            net, 4, tf.nn.relu,
            kernel_constraint=tf.keras.constraints.MaxNorm(0.5),
            bias_regularizer=tf.keras.regularizers.l2(0.3))
        """,
        TOTAL,
        MINIMIZE,
        ("kernel_constraint=tf.keras.constraints.MaxNorm(0.5)",),
    ),
    "dropouts of tf.nn and of the training branch": (
        """
        net = tf.layers.flatten(features)
        keep_prob = 0.6 if is_training else 1.0
        for units in (6, 5):
            net = tf.layers.dense(net, units, tf.nn.relu)
            if is_training:
                net = tf.layers.dropout(net, 0.3, training=True)
        net = tf.nn.dropout(net, keep_prob)
        """,
        MSE,
        MINIMIZE,
        ("Dropout(0.4)(net)", "        net = tf.keras.layers.Dropout(0.3)(net)"),
    ),
    "Keras layers and models": (
        """
        layers = tf.keras.layers
        model = tf.keras.Sequential([layers.Flatten(), layers.Dense(6, activation="relu"), layers.Dropout(0.3)])
        net = model(features, training=is_training)
        net = layers.Dropout(0.4)(net)
        net = layers.Dropout(0.2)(net, training=is_training)
        """,
        MSE,
        MINIMIZE,
        ("model(features)", "Dropout(0.4)(net, training=False)", "Dropout(0.2)(net)"),
    ),
    "batch normalization of images and vectors": (
        """
        net = tf.layers.conv2d(features, 3, 3, use_bias=False)
        net = tf.layers.batch_normalization(net, axis=-1, momentum=0.9, fused=True, training=is_training)
        net = tf.nn.relu(net)
        net = tf.layers.conv2d(net, 3, 3, use_bias=False)
        net = tf.layers.batch_normalization(net, -1, 0.8, 1e-4, scale=False, fused=False, training=is_training)
        net = tf.layers.flatten(net)
        net = tf.layers.dense(net, 4, use_bias=False)
        net = tf.layers.batch_normalization(net, training=is_training, name="last")
        normalization = tf.layers.BatchNormalization(momentum=0.7)
        net = normalization(net, training=is_training)
        net = tf.nn.relu(net)
        """,
        MSE,
        WITH_UPDATES,
        (
            "BatchNormalization(axis=-1, momentum=0.9)(net)",
            "BatchNormalization(axis=-1, momentum=0.8, epsilon=1e-4, scale=False, fused=False)(net)",
            'BatchNormalization(name="last")(net)',
            "net = normalization(net)",
        ),
    ),
}


@pytest.mark.parametrize("construct", CASES)
def test_trains_and_evaluates_the_same(construct: str, servers: Servers, tmp_path: Path) -> None:
    network, loss, train, said = CASES[construct]
    text = PROGRAM.format(network=_fit(network), loss=loss, train=train)
    new = prove(text, servers, tmp_path)
    for expected in said:
        assert expected in new


def _fit(lines: str) -> str:
    return "\n    ".join(line.removeprefix(" " * 8) for line in lines.strip("\n").rstrip().split("\n"))
