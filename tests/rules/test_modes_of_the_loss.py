"""The loss of evaluation is that of training, whatever names its parts have in each mode, or the program is refused."""

from __future__ import annotations

import pytest

from tests.rules.programs import run_or_blocked

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    out = tf.layers.dense(features, 1)
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    if is_training:
        {trained}
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    {evaluated}
    return tf.estimator.EstimatorSpec(mode, loss=cost, eval_metric_ops={{"size": tf.metrics.mean(part)}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""


def program(trained: str, evaluated: str) -> str:
    return PROGRAM.format(trained=trained.replace("\n", "\n        "), evaluated=evaluated.replace("\n", "\n    "))


OTHERS = {
    "parentheses that are not said": (
        "loss = tf.reduce_mean(tf.abs(labels - out) * 3 - 1)",
        "part = 3 - 1\ncost = tf.reduce_mean(tf.abs(labels - out) * part)",
    ),
    "another number": ("loss = tf.reduce_mean(labels - out)", "part = labels - 2 * out\ncost = tf.reduce_mean(part)"),
    "a name that is given twice": (
        "loss = tf.reduce_mean(labels - out)",
        "part = labels - out\npart = part * 2\ncost = tf.reduce_mean(part)",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_loss_is_refused(name: str) -> None:
    assert "TFM301" in run_or_blocked(program(*OTHERS[name]))[1]


SAME = {
    "a part has a name in evaluation": (
        "loss = tf.reduce_mean(tf.abs(labels - out))",
        "part = tf.abs(labels - out)\ncost = tf.reduce_mean(part)",
    ),
    "parts have other names": (
        "miss = labels - out\nloss = tf.reduce_mean(tf.abs(miss) + 1)",
        "part = tf.abs(labels - (out))\ncost = tf.reduce_mean(part + 1)",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_one_loss_in_other_words(name: str) -> None:
    new, blocked = run_or_blocked(program(*SAME[name]))
    assert not blocked and new.count("def compute_loss") == 1
