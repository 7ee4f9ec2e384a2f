"""Input functions that draw, count or take the next: as many calls as an Estimator makes, and the same data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

np.random.seed(42)
X = np.random.RandomState(0).uniform(-1.0, 1.0, (24, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True).astype(np.float32)


def drawn():
    rows = np.random.permutation(24)
    return tf.data.Dataset.from_tensor_slices((X[rows], Y[rows])).batch(8)


def plain():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)


class Parts(object):
    def __init__(self):
        self.seen = 0

    def __call__(self):
        self.seen += 1
        return tf.data.Dataset.from_tensor_slices((X * self.seen, Y)).batch(8)


def model_fn(features, labels, mode):
    predictions = tf.layers.dense(features, 1, kernel_initializer=tf.ones_initializer())
    loss = tf.losses.mean_squared_error(labels + 3.0, predictions)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
"""
DRIVERS = {
    "a loop": "for _ in range(2):\n    estimator.train(drawn)\n    estimator.evaluate(plain)\n",
    "one after the other": "estimator.train(drawn)\nestimator.train(drawn)\n",
    "an object": "parts = Parts()\nestimator.train(parts)\nestimator.train(parts)\n",
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_they_train_on_the_same_data(driver: str, servers: Servers, tmp_path: Path) -> None:
    prove(PROGRAM + DRIVERS[driver], servers, tmp_path, steps=6)
