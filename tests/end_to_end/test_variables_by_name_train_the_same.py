"""Proofs of losses that choose variables by name, or add up all of them: see proving.py."""

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
    x = random.normal(size=(40, 6)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True))).batch(8)


EXCLUDED = ["bias", "dec"]


def decays(v):
    for part in EXCLUDED:
        if part in v.name:
            return False
    return True


def two(net):
    net = tf.layers.dense(net, 4)
    return net, tf.layers.dense(net, 3)


def model_fn(features, labels, mode):
    NETWORK
    logits = tf.layers.dense(net, 1)
    PENALTY
    loss = tf.losses.mean_squared_error(labels, logits) + 0.1 * penalty
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# Keras numbers layers in a process: the next ones are `dense_1`, `dense_2`.
unused = tf.keras.layers.Dense(1)
estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
"""
SCOPED = """\
with tf.variable_scope("enc"):
    net = tf.layers.dense(features, 4, tf.nn.tanh)
with tf.variable_scope("dec"):
    net = tf.layers.dense(net, 3, tf.nn.tanh)"""
CHAIN = "net = tf.layers.dense(tf.layers.dense(features, 4, tf.nn.tanh), 3)"

# what the loss adds up -> network, penalty, form, what the new program says
CASES: dict[str, tuple[str, str, str, str]] = {
    "variables of scopes": (
        SCOPED,
        "penalty = sum(tf.nn.l2_loss(v) for v in tf.trainable_variables() if v.name.startswith('enc/'))\n"
        "for one in tf.trainable_variables():\n"
        "    if one.op.name.endswith('kernel') and 'dec' not in one.op.name:\n"
        "        penalty += tf.reduce_sum(tf.abs(one))\n"
        "penalty += tf.add_n([tf.reduce_sum(v) for v in filter(decays, tf.trainable_variables())])",
        "native",
        'name="enc/dense"',
    ),
    "variables of numbered layers": (
        CHAIN,
        "named = {v.name: v for v in tf.trainable_variables()}\n"
        "kept = [v for v in tf.trainable_variables() if not v.name.startswith('dense_1/')]\n"
        "penalty = tf.nn.l2_loss(named['dense_1/kernel:0']) + 0.5 * tf.add_n([tf.nn.l2_loss(v) for v in kept])",
        "native",
        'name="dense_1"',
    ),
    "layers that the output does not come from": (
        "net, lost = two(features)\nextra = tf.layers.dense(net, 2)\ntf.summary.histogram('extra', extra)",
        "penalty = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])",
        "bridge",
        "keras_estimator",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_loss_over_variables_trains_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    network, penalty, style, says = CASES[name]
    text = PROGRAM.replace("NETWORK", network.replace("\n", "\n    "))
    text = text.replace("PENALTY", penalty.replace("\n", "\n    "))
    new = prove(text, servers, tmp_path, style=style)
    assert says in new
