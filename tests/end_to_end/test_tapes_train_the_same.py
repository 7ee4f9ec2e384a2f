"""model_fns of TensorFlow 2 with tapes, optimizers of Keras and no labels, with their proofs: see proving.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

TOP = """\
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def input_fn():
    random = np.random.RandomState(2)
    x = random.normal(size=(40, 6)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices({"x": x, "y": x[:, :3].sum(axis=1, keepdims=True)}).batch(8)


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(5, "tanh")
        self.out = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.out(self.hidden(x))


def model_fn(features, labels, mode):
    net = Net()
"""
END = """\


estimator = tf.estimator.Estimator(model_fn, "m")
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""
PROGRAMS = {
    "a tape and a checkpoint": """\
    opt = tf.keras.optimizers.legacy.Adam(0.1)
    ckpt = tf.train.Checkpoint(step=tf1.train.get_global_step(), optimizer=opt, net=net)
    with tf.GradientTape() as tape:
        output = net(features["x"])
        loss = tf.reduce_mean(tf.abs(output - features["y"]))
    variables = net.trainable_variables
    gradients = tape.gradient(loss, variables)
    train_op = tf.group(opt.apply_gradients(zip(gradients, variables)), ckpt.step.assign_add(1))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, scaffold=tf1.train.Scaffold(saver=ckpt))
""",
    "iterations that are the global step": """\
    output = net(features["x"])
    loss = tf.reduce_mean(tf.square(output - features["y"]))
    opt = tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9)
    opt.iterations = tf1.train.get_or_create_global_step()
    train_op = opt.get_updates(loss, net.trainable_variables)[0]
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_trains_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    prove(TOP + PROGRAMS[name] + END, servers, tmp_path)
