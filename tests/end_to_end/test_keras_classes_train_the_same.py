"""A Keras model that is a class of the program, called in the branches of the mode, run before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

random = np.random.RandomState(0)
x = random.uniform(-1, 1, (40, 6)).astype(np.float32)
y = (x[:, 0] > x[:, 1]).astype(np.int64)


class Net(tf.keras.Model):
    def __init__(self, units):
        super(Net, self).__init__()
        self.hidden = tf.keras.layers.Dense(units, activation="relu")
        self.drop = tf.keras.layers.Dropout(0.3)
        self.out = tf.keras.layers.Dense(2)

    def call(self, inputs, training=None):
        return self.out(self.drop(self.hidden(inputs), training=training))


def model_fn(features, labels, mode):
    net = Net(5)
    if mode == tf.estimator.ModeKeys.PREDICT:
        logits = net(features, training=False)
        return tf.estimator.EstimatorSpec(mode, predictions=tf.nn.softmax(logits))
    logits = net(features, training=mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    print("loss", loss)
    train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(estimator.evaluate(input_fn, steps=2))
"""


def test_a_model_of_the_program_in_branches(servers: Servers, tmp_path: Path) -> None:
    new = prove(PROGRAM, servers, tmp_path)
    assert "logits = net(features)\n" in new and 'print("loss"' not in new
