"""Whole programs as people write them, over one or more files, with their proofs: see proving.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.harness.cluster import ForkServer
from tests.end_to_end.proving import Servers, prove_project

TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")

pytestmark = pytest.mark.tensorflow

DATA = """\
import numpy as np
import tensorflow as tf


def numbers():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6)).astype(np.float32)
    return {"x": x, "extra": x[:, :2] * 2.0}, x.sum(axis=1, keepdims=True) / 6


def input_fn():
    return tf.data.Dataset.from_tensor_slices(numbers()).batch(8)
"""

# A builder, and helpers two deep in a module beside it: network with a flag, loss and training read through.
BUILDER = {
    "data.py": DATA,
    "network.py": """\
import tensorflow as tf

SCALE = 0.5


def block(net, units, training=False):
    net = tf.layers.dense(net, units, activation=tf.nn.relu)
    if training:
        net = tf.nn.dropout(net, keep_prob=0.8)
    return net


def build(features, hidden, is_training):
    net = tf.concat([features["x"], features["extra"]], axis=1)
    for units in hidden:
        net = block(net, units, training=is_training)
    return tf.layers.dense(net, 1)


def compute_loss(labels, logits):
    error = tf.square(labels - logits) * SCALE
    return tf.reduce_mean(error)


def make_train_op(loss, rate=0.1):
    optimizer = tf.train.AdagradOptimizer(rate)
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())
""",
    "train.py": """\
import tensorflow as tf

import network
from data import input_fn


def model_fn_builder(hidden, rate):
    def model_fn(features, labels, mode, params):
        logits = network.build(features, hidden, mode == tf.estimator.ModeKeys.TRAIN)
        predictions = {"out": logits}
        loss, train_op, metrics = None, None, None
        if mode != tf.estimator.ModeKeys.PREDICT:
            loss = network.compute_loss(labels, logits)
            metrics = {"mae": tf.metrics.mean_absolute_error(labels, logits)}
        if mode == tf.estimator.ModeKeys.TRAIN:
            train_op = network.make_train_op(loss, rate)
        return tf.estimator.EstimatorSpec(
            mode=mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops=metrics)

    return model_fn


model_fn = model_fn_builder(hidden=[5, 4], rate=0.2)
estimator = tf.estimator.Estimator(model_fn=model_fn)
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
""",
}

# A class with the model_fn and the network as methods, flags, and a create_model that also makes the loss.
CLASS = {
    "data.py": DATA,
    "train.py": """\
import tensorflow as tf

from data import input_fn

FLAGS = tf.flags.FLAGS
tf.flags.DEFINE_float("rate", 0.05, "The learning rate.")


class Regressor(object):
    def __init__(self, units):
        self.units = units

    def network(self, x, is_training):
        x = tf.layers.dense(x, self.units, activation=tf.nn.tanh)
        return tf.layers.dropout(x, 0.1, training=is_training)

    def create_model(self, features, labels, is_training):
        net = self.network(features["x"], is_training)
        output = tf.layers.dense(net, 1)
        with tf.variable_scope("loss"):
            loss = tf.losses.mean_squared_error(labels, output)
            return (loss, output)

    def model_fn(self, features, labels, mode):
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        (total_loss, logits) = self.create_model(features, labels, is_training)
        if is_training:
            optimizer = tf.train.MomentumOptimizer(FLAGS.rate, 0.9)
            train_op = optimizer.minimize(total_loss, global_step=tf.train.get_global_step())
            output_spec = tf.estimator.EstimatorSpec(mode=mode, loss=total_loss, train_op=train_op)
        else:
            def metric_fn(labels, logits):
                error = tf.metrics.root_mean_squared_error(labels, logits)
                return {"rmse": error}

            output_spec = tf.estimator.EstimatorSpec(
                mode=mode, loss=total_loss, eval_metric_ops=metric_fn(labels, logits))
        return output_spec


def main(_):
    regressor = Regressor(4)
    estimator = tf.estimator.Estimator(regressor.model_fn)
    estimator.train(input_fn, steps=5)
    print(sorted(estimator.evaluate(input_fn).items()))


if __name__ == "__main__":
    tf.app.run()
""",
}

# A partial, a spec in a dict, the results of a helper in a dict, a spec of its own for every mode.
DICTS = {
    "data.py": DATA,
    "train.py": """\
import functools

import tensorflow as tf

from data import input_fn


def build(features, labels, units, training=False):
    net = tf.layers.dense(features["x"], units, activation=tf.nn.relu)
    net = tf.layers.dropout(net, 0.2, training=training)
    outputs = tf.layers.dense(net, 1)
    loss = tf.losses.absolute_difference(labels, outputs)
    return {"outputs": outputs, "loss": loss}


def model_fn(features, labels, mode, params, units):
    results = build(features, labels, units, training=mode == tf.estimator.ModeKeys.TRAIN)
    spec = dict(mode=mode, loss=results["loss"])
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.AdamOptimizer(params.get("rate", 0.02))
        spec["train_op"] = optimizer.minimize(results["loss"], global_step=tf.train.get_global_step())
    if mode == tf.estimator.ModeKeys.EVAL:
        spec["eval_metric_ops"] = {"mse": tf.metrics.mean_squared_error(labels, results["outputs"])}
    return tf.estimator.EstimatorSpec(**spec)


estimator = tf.estimator.Estimator(functools.partial(model_fn, units=5), params={})
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
""",
}

PROGRAMS = {
    "a partial and dicts": DICTS,
    "a builder and a module of helpers": BUILDER,
    "methods of a class, flags, main": CLASS,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_trains_and_evaluates_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    prove_project(PROGRAMS[name], "train.py", servers, tmp_path)


@pytest.fixture(scope="module")
def tensorflow1(servers: Servers) -> Iterator[Servers]:
    """The interpreters of a true TensorFlow 1, which has tf.contrib, and of the migrated program."""
    if not TENSORFLOW1:
        pytest.skip("no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
    with ForkServer(Path(TENSORFLOW1), "original") as original:
        yield original, servers[1]


HPARAMS = """\
params = tf.contrib.training.HParams(units=5, rate=0.05)


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features["x"], params.units, activation=tf.nn.relu)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate=params.rate)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(lambda features, labels, mode: model_fn(features, labels, mode, params))
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""


def test_hparams_train_the_same(tensorflow1: Servers, tmp_path: Path) -> None:
    prove_project({"train.py": f"{DATA}\n\n{HPARAMS}"}, "train.py", tensorflow1, tmp_path)
