"""A network that each branch of the mode makes for itself, and loops that write summaries, run before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

x = np.random.RandomState(0).uniform(-1.0, 1.0, (40, 3)).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)


class Model:
    def __init__(self, units):
        self.units = units

    def net(self, x, training):
        hidden = tf.layers.dense(x, self.units, use_bias=False)
        hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.8)
        return tf.layers.dense(tf.nn.relu(hidden), 2)

    def model_fn(self, features, labels, mode):
        if mode == tf.estimator.ModeKeys.PREDICT:
            logits = self.net(features, False)
            return tf.estimator.EstimatorSpec(mode, predictions=tf.nn.softmax(logits))
        if mode == tf.estimator.ModeKeys.TRAIN:
            optimizer = tf.train.AdamOptimizer(0.05)
            logits = self.net(features, True)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
            pairs = optimizer.compute_gradients(loss)
            for grad, var in pairs:
                tf.summary.histogram(var.op.name + "_grad", grad)
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
        logits = self.net(features, False)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


class Runner:
    def __init__(self, model):
        self.model = model

    def run(self):
        estimator = tf.estimator.Estimator(self.model.model_fn)
        estimator.train(input_fn, steps=5)
        print(estimator.evaluate(input_fn, steps=2))


Runner(Model(4)).run()
"""


def test_networks_by_mode_of_an_object(servers: Servers, tmp_path: Path) -> None:
    new = prove(PROGRAM, servers, tmp_path)
    assert new.count("logits = ") == 1 and "tf.summary" not in new
