"""Whose seed an Estimator draws by: that of its RunConfig, or one that its functions set; never that of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.telling import told_by_both

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.logging.set_verbosity(tf.logging.ERROR)
tf.set_random_seed(5)
SEEN = []


class Asks(tf.train.SessionRunHook):
    def before_run(self, context):
        return tf.train.SessionRunArgs("batch:0")

    def after_run(self, context, values):
        SEEN.append(values.results.tolist())


def drawn(config=None, in_model=None, in_input=None):
    def model_fn(features, labels, mode):
        if in_model is not None:
            tf.set_random_seed(in_model)
        w = tf.get_variable("w", [2], initializer=tf.random_uniform_initializer())
        loss = tf.reduce_sum(w * tf.cast(tf.identity(features, "batch")[0], tf.float32))
        train_op = tf.train.GradientDescentOptimizer(0.0).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        if in_input is not None:
            tf.set_random_seed(in_input)
        dataset = tf.data.Dataset.range(100).shuffle(100).batch(50)
        return tf.data.make_one_shot_iterator(dataset).get_next(), None

    found = []
    for _ in range(2):
        del SEEN[:]
        estimator = tf.estimator.Estimator(model_fn, config=config)
        estimator.train(input_fn, hooks=[Asks()])
        found.append((estimator.get_variable_value("w").tolist(), list(SEEN)))
    (weights, order), (others, other_order) = found
    return weights == others, order == other_order


print("told", "none", drawn())
print("told", "config", drawn(tf.estimator.RunConfig(tf_random_seed=1)))
print("told", "none again", drawn())
print("told", "model", drawn(in_model=3)[0])
print("told", "input", drawn(in_input=3))
"""


def test_seeds(tmp_path: Path) -> None:
    was, now = told_by_both(PROGRAM, tmp_path)
    assert was == [
        "told none (False, False)",
        "told config (True, True)",
        "told none again (False, False)",
        "told model True",
        "told input (True, True)",
    ]
    assert now == was
