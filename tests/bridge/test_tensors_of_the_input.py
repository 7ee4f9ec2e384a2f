"""Hooks that name tensors which the input_fn made: TensorFlow 1 has them in the graph of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.telling import told_by_both

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)


def model_fn(mode, labels, features):
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels), name="loss")
    train_op = tf.train.GradientDescentOptimizer(.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Start(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        session.run(self.initializer, {self.x: np.arange(40.0).reshape([20, 2]) / 10})


def inputs(scope, start):
    def input_fn():
        with tf.name_scope(scope):
            start.x = tf.placeholder(tf.float32, [None, 2])
            rows = tf.data.Dataset.from_tensor_slices(start.x).map(lambda x: (x, tf.reduce_sum(x, keepdims=True)))
            iterator = rows.batch(2).make_initializable_iterator()
            start.initializer = iterator.initializer
            x, y = iterator.get_next()
            tf.identity(x[0], "first")
            tf.identity(y, "sum")
        return x, y + 1

    return input_fn


def shown(values):
    return "told " + " ".join("%s %s" % (key, np.round(values[key], 4).tolist()) for key in sorted(values))


class Asks(tf.train.SessionRunHook):
    def before_run(self, context):
        return tf.train.SessionRunArgs({"sum": "train/sum:0", "loss": "loss:0", "step": tf.train.get_global_step()})

    def after_run(self, context, values):
        print(shown(values.results))


def logging(scope):
    tensors = {"loss": "loss", "first": scope + "/first"}
    return tf.train.LoggingTensorHook(tensors, every_n_iter=3, formatter=lambda values: print(shown(values)) or "")


estimator = tf.estimator.Estimator(model_fn)
start = Start()
estimator.train(inputs("train", start), hooks=[start, logging("train"), Asks()], steps=4)
start = Start()
estimator.train(inputs("train", start), hooks=[start, logging("train")])
start = Start()
print("told loss %.5f" % estimator.evaluate(inputs("test", start), hooks=[start, logging("test")])["loss"])
try:
    start = Start()
    estimator.train(inputs("train", start), hooks=[start, logging("valid")], steps=1)
except KeyError as error:
    print("told", "valid/first" in str(error))
"""


def test_hooks_see_the_batch_of_their_step(tmp_path: Path) -> None:
    was, now = told_by_both(PROGRAM, tmp_path)
    assert len(was) == 16 and now == was
