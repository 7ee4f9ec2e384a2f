"""Estimators that functions return, beside code with graphs and sessions of its own."""

from __future__ import annotations

import pytest

from tests.rules.programs import run_project

MAIN = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def build(folder):
    return tf.estimator.Estimator(model_fn, folder)


if __name__ == "__main__":
    build("/tmp/model").train(input_fn, steps=3)
"""
TEST = """\
import tensorflow as tf

import main


class Test(tf.test.TestCase):
    def test_input_fn(self):
        features, labels = main.input_fn().make_one_shot_iterator().get_next()
        with tf.Session() as sess:
            features, labels, _ = sess.run((features, labels, tf.constant(1)))
            {inside}

    def test_training(self):
        estimator = main.build(self.get_temp_dir())
        estimator.train(main.input_fn, steps=1)


if __name__ == "__main__":
    tf.test.main()
"""


@pytest.mark.parametrize(
    ("inside", "native"),
    [
        ("self.assertEqual(labels[0][0], 2.0)", True),
        ("estimator = main.build(self.get_temp_dir())", False),
        ("self.test_training()", False),
        ("self.estimator.evaluate(self.data)", False),
    ],
)
def test_sessions_that_come_to_no_estimator_stand_in_nobodys_way(inside: str, native: bool) -> None:
    found = run_project({"main.py": MAIN, "main_test.py": TEST.format(inside=inside)}, style="native")
    assert ("TFM101" in {f.code for f in found["main.py"][1]}) == native
