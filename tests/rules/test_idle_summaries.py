"""Loops, conditions and functions that only write summaries are left out, and no others."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

HEAD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def short(name):
    return name.replace(":", "_")


def report(pairs):
    \"\"\"Writes the gradients.\"\"\"
    for grad, var in pairs:
        mean = tf.reduce_mean(tf.abs(grad))
        tf.summary.scalar(short(var.name), mean)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss)
"""
TAIL = """\
    train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
LEFT_OUT = [
    "for grad, var in pairs:\n    tf.summary.histogram(var.op.name, grad)\n    tf.summary.scalar(var.name[:-2], 1.0)",
    "for grad, var in pairs:\n    if grad is not None:\n        tf.summary.histogram(short(var.name), grad)",
    "for _, var in pairs:\n    with tf.name_scope('w'):\n        tf.summary.scalar('m', tf.reduce_mean(var))",
    "report(pairs)",
    # Two loops, and a list, have a name in common.
    "for grad, var in pairs:\n    tf.summary.histogram(var.name, grad)\n"
    "for var in tf.trainable_variables():\n    tf.summary.histogram(var.name, var)\n"
    "pairs = [(tf.clip_by_norm(grad, 1.0), var) for grad, var in pairs]",
]


def program(lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines.splitlines()) + TAIL


@pytest.mark.parametrize("lines", LEFT_OUT)
def test_what_only_writes_summaries_is_left_out(lines: str) -> None:
    new, findings = run(program(lines))
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert (
        any(f.code == "TFM801" for f in findings)
        and "summary" not in new.replace("def report", "").split("def model")[1]
    )


STAYS = [
    "for grad, var in pairs:\n    tf.summary.histogram(var.name, grad)\n    tf.add_to_collection('g', grad)",
    "made = []\nfor grad, var in pairs:\n    tf.summary.histogram(var.name, grad)\n    made.append((grad * 0.5, var))\n"
    "pairs = made",
    "for grad, var in pairs:\n    tf.summary.histogram(var.name, grad)\nloss = loss + tf.nn.l2_loss(var)",
    "for grad, var in pairs:\n    tf.summary.histogram(var.name, var.assign(var * 0.5))",
]


@pytest.mark.parametrize("lines", STAYS)
def test_what_does_something_else_too_is_not_left_out(lines: str) -> None:
    _, findings = run(program(lines))
    assert [f for f in findings if f.severity is Severity.MANUAL] != []
