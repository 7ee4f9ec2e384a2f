"""A generator that gives what its caller has set: each prediction is that of its own example."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.telling import told_by_both

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import time

import tensorflow as tf


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features, 1, kernel_initializer=tf.constant_initializer(2.0))
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=outputs)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Served(object):
    def __init__(self, estimator):
        self.estimator = estimator
        self.results = None

    def generate(self):
        while True:
            yield self.example

    def input_fn(self):
        dataset = tf.data.Dataset.from_generator(self.generate, tf.float32, [1]).{batched}
        return {given}

    def predict(self, example):
        self.example = example
        if self.results is None:
            self.results = self.estimator.predict(self.input_fn)
        return next(self.results)


served = Served(tf.estimator.Estimator(model_fn, "model"))
for number in (1.0, 2.0, 3.0):
    print("told", number, float(served.predict([number])[0]))
    time.sleep(0.3)  # long enough to read one ahead
"""


@pytest.mark.parametrize("style", ["native", "bridge"])
@pytest.mark.parametrize("batched", ["batch(1)", "map(lambda x: tf.expand_dims(x, 0))"])
@pytest.mark.parametrize("given", ["dataset", "tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()"])
def test_a_prediction_is_that_of_its_own_example(given: str, batched: str, style: str, tmp_path: Path) -> None:
    was, now = told_by_both(PROGRAM.replace("{given}", given).replace("{batched}", batched), tmp_path, style)
    assert was == now == ["told 1.0 2.0", "told 2.0 4.0", "told 3.0 6.0"]
