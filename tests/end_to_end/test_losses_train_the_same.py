"""Losses that need more than one stock loss of one output, with their proofs: see proving.py."""

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
    features = {{
        "image": random.normal(size=(42, 6)).astype(np.float32),
        "weight": (random.uniform(size=42) * random.randint(0, 2, size=42)).astype(np.float32),
        "mask": random.randint(0, 2, size=(42, 4)).astype(np.float32),
    }}
    labels = {{
        "class": random.randint(0, 4, size=42).astype(np.int64),
        "value": random.normal(size=(42, 1)).astype(np.float32),
        "tags": random.randint(0, 2, size=(42, 4)).astype(np.int64),
    }}
    return features, labels{key}


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).batch(8)


def model_fn(features, labels, mode, params):
    {network}
    predictions = {{"out": logits}}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    {loss}
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {metrics}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"rate": 0.3}})
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""

NET = 'net = tf.layers.dense(features["image"], 5, tf.nn.relu)\n'
FOUR = NET + "logits = tf.layers.dense(net, 4)"
TWO_HEADS = FOUR + "\nvalue = tf.layers.dense(net, 1)"
REGULARIZED = (
    'net = tf.layers.dense(features["image"], 5, kernel_regularizer=tf.keras.regularizers.l2(0.1))\n'
    "logits = tf.layers.dense(net, 4, kernel_regularizer=tf.keras.regularizers.l1(0.02))"
)

METRICS = {
    "": '{"accuracy": tf.metrics.accuracy(labels["class"], tf.argmax(logits, 1)),'
    ' "weighted": tf.metrics.mean(tf.abs(value), weights=features["weight"])}',
    '["tags"]': "{}",
    '["class"]': '{"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}',
}
# construct -> key of the labels, network, loss
CASES: dict[str, tuple[str, str, str]] = {
    "two heads, labels by key, a loop over terms": (
        "",
        TWO_HEADS,
        """\
with tf.name_scope("loss"):
    losses = []
    xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels["class"], logits=logits)
    losses.append(tf.reduce_mean(xent))
    losses.append(params["rate"] * tf.reduce_mean(tf.square(value - labels["value"])))
    loss = 0.0
    for term in losses:
        loss += term""",
    ),
    "an autoencoder: the features are the labels": (
        '["class"]',
        NET + "logits = tf.layers.dense(net, 6)",
        'loss = tf.losses.mean_squared_error(features["image"], logits)',
    ),
    "features in the loss, l2 over trainable variables": (
        '["tags"]',
        FOUR,
        """\
mask = features["mask"]
xent = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.to_float(labels), logits=logits)
loss = tf.reduce_sum(xent * mask) / tf.maximum(tf.reduce_sum(mask), 1.0)
l2 = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "bias" not in v.name])
loss = loss + 0.01 * l2""",
    ),
    "regularization from the collection, a scaled cross entropy": (
        '["class"]',
        REGULARIZED,
        """\
onehot = tf.one_hot(labels, 4)
loss = 0.5 * tf.losses.softmax_cross_entropy(onehot, logits, label_smoothing=0.1)
loss += tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))""",
    ),
    "weights, zeros among them, by example and by element": (
        "",
        TWO_HEADS,
        """\
weight, mask = features["weight"], features["mask"]
tags = labels["tags"]
loss = tf.losses.sparse_softmax_cross_entropy(labels["class"], logits, weights=weight)
loss += tf.losses.sigmoid_cross_entropy(tags, logits, weights=mask)
loss += 0.1 * tf.losses.mean_squared_error(tags, logits, mask)
loss += tf.losses.absolute_difference(labels["value"], value, tf.expand_dims(weight, 1))
loss += tf.losses.huber_loss(labels["value"], value, weights=params["rate"], delta=0.4)
loss += tf.losses.hinge_loss(tags, logits, weights=mask)
loss += tf.losses.softmax_cross_entropy(tf.one_hot(labels["class"], 4), logits, weight, label_smoothing=0.2)
loss += tf.losses.compute_weighted_loss(tf.square(logits), weights=mask)""",
    ),
    "reductions": (
        "",
        TWO_HEADS,
        """\
weight, mask = features["weight"], features["mask"]
tags = labels["tags"]
loss = 0.01 * tf.losses.sparse_softmax_cross_entropy(labels["class"], logits, reduction=tf.losses.Reduction.SUM)
loss += 0.01 * tf.losses.sigmoid_cross_entropy(tags, logits, weights=mask, reduction=tf.losses.Reduction.SUM)
loss += tf.losses.mean_squared_error(tags, logits, mask, reduction=tf.losses.Reduction.MEAN)
loss += tf.losses.mean_squared_error(tags, logits, 2.0, reduction=tf.losses.Reduction.MEAN)
loss += tf.losses.huber_loss(
    labels["value"], value, tf.expand_dims(weight, 1), reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)
loss += tf.reduce_max(tf.losses.softmax_cross_entropy(
    tf.one_hot(labels["class"], 4), logits, weight, reduction=tf.losses.Reduction.NONE))
loss += tf.losses.sparse_softmax_cross_entropy(
    labels["class"], logits, weight, reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)""",
    ),
    "another loss in evaluation: a penalty, weights and smoothing of the training alone": (
        '["class"]',
        REGULARIZED,
        """\
training = mode == tf.estimator.ModeKeys.TRAIN
smoothing = 0.1 if training else 0.0
scale = 1.0
if training:
    scale = 2.0
onehot = tf.one_hot(labels, 4)
loss = scale * tf.losses.softmax_cross_entropy(onehot, logits, label_smoothing=smoothing)
if training:
    size = tf.reduce_mean(tf.square(net))
    loss += 0.01 * size + tf.losses.get_regularization_loss()
else:
    loss = loss + tf.reduce_max(tf.abs(logits))""",
    ),
    "losses without a Keras function": (
        "",
        FOUR + "\nprobability = tf.nn.sigmoid(logits)",
        """\
tags = tf.cast(labels["tags"], tf.float32)
loss = tf.losses.log_loss(tags, probability, weights=features["mask"], epsilon=1e-5)
loss += tf.losses.hinge_loss(labels["tags"], logits)
loss += tf.losses.cosine_distance(tf.nn.l2_normalize(tags, 1), tf.nn.l2_normalize(probability, 1), axis=1)
loss += tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(targets=tags, logits=logits, pos_weight=3.0))
loss += tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tags, logits=logits, dim=-1))
loss += tf.reduce_mean(tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=tags, logits=logits), 1))""",
    ),
    "a cross entropy of classes by hand": (
        '["class"]',
        FOUR,
        """\
xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
loss = tf.reduce_mean(2.0 * xent)""",
    ),
    "total loss of several losses": (
        "",
        TWO_HEADS.replace("5, tf.nn.relu", "5, kernel_regularizer=tf.keras.regularizers.l2(0.1)"),
        """\
tf.losses.sparse_softmax_cross_entropy(labels["class"], logits)
tf.losses.mean_squared_error(labels["value"], value, weights=0.3)
loss = tf.losses.get_total_loss()""",
    ),
}


@pytest.mark.parametrize("construct", CASES)
def test_trains_and_evaluates_the_same(construct: str, servers: Servers, tmp_path: Path) -> None:
    key, network, loss = CASES[construct]
    network, loss = (text.replace("\n", "\n    ") for text in (network, loss))
    metrics = METRICS[key] if construct != "losses without a Keras function" else "{}"
    prove(PROGRAM.format(key=key, network=network, loss=loss, metrics=metrics), servers, tmp_path)
