"""A network that each branch of the mode makes for itself: native where one call, told the mode, says the same."""

from __future__ import annotations

import re

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

HEAD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def net(x, training=False, keep=1.0):
    hidden = tf.layers.batch_normalization(tf.layers.dense(x, 4), training=training)
    return tf.layers.dense(tf.nn.dropout(hidden, keep), 1)


def model_fn(features, labels, mode, params):
"""
STEP = """\
{at}loss = tf.losses.mean_squared_error(labels, logits)
{at}with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
{at}    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
{at}return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
TRAINED, TRAINED_INSIDE = STEP.format(at="    "), STEP.format(at="        ")
EVALUATED = """\
        loss = tf.losses.mean_squared_error(labels, logits)
        return tf.estimator.EstimatorSpec(mode, loss=loss)
"""
TAIL = """

estimator = tf.estimator.Estimator(model_fn, params={"keep": 0.7})
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
PREDICT, EVAL, TRAIN = (f"    if mode == tf.estimator.ModeKeys.{key}:\n" for key in ("PREDICT", "EVAL", "TRAIN"))
PREDICTED = "        return tf.estimator.EstimatorSpec(mode, predictions=logits)\n"


def branches(training: str, other: str, before: str = "") -> str:
    """A branch for each mode, with what comes `before` the network of the training."""
    return (
        PREDICT + f"        logits = {other}\n" + PREDICTED + EVAL + f"        logits = {other}\n" + EVALUATED
    ) + f"{before}    logits = {training}\n{TRAINED}"


def behind(training: str, other: str) -> str:
    """The training first, and one network for the other modes."""
    first = TRAIN + f"        logits = {training}\n" + TRAINED_INSIDE
    last = EVALUATED.replace("        ", "    ")
    return first + f"    # without dropout\n    logits = {other}\n" + PREDICT + PREDICTED + last


ONCE = [
    branches("net(features, True)", "net(features, False)"),
    branches("net(features, training=True)", "net(features)"),
    branches("net(features, True)", "net(features)"),
    branches("net(features, True, params['keep'])", "net(features)"),
    branches("net(features, True)", "net(features, training=False)"),
    branches("net(features, True, params['keep'])", "net(features, False, 1.0)"),
    branches("net(features, True, params.get('keep', 0.7))", "net(features, False, 1.0)"),
    (PREDICT + "        hidden = net(features, False)\n        logits = tf.layers.dense(hidden, 1)\n" + PREDICTED)
    + (EVAL + "        hidden = net(features, False)\n        logits = tf.layers.dense(hidden, 1)\n" + EVALUATED)
    + ("    hidden = net(features, True)\n    logits = tf.layers.dense(hidden, 1)\n" + TRAINED),
    branches("tf.layers.dense(features, 1)", "tf.layers.dense(features, 1)"),
    branches("net(features, True)", "net(features, False)", "    optimizer = tf.train.AdamOptimizer(0.1)\n"),
    branches("net(features, True)", "net(features, False)", "    step = tf.train.get_global_step()\n"),
    behind("net(features, training=True)", "net(features, training=False)"),
]


@pytest.mark.parametrize("body", ONCE)
def test_a_network_that_every_mode_makes_is_made_once(body: str) -> None:
    new, findings = run(HEAD + body + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert new.count("logits = ") == 1 and not re.search(r"\bmode\b", new)


def test_comments_stay_and_stand_once() -> None:
    new, _ = run(HEAD + behind("net(features, True)", "net(features, False)") + TAIL)
    assert new.count("# without dropout") == 1


OTHERWISE = [
    branches("net(features)", "net(features, True)"),
    branches("net(features * 0.5, True)", "net(features, False)"),  # another network
    branches("net(features, True)", "net(features, False)", "    features = features * 0.5\n"),  # other features
    branches("net(features, True)", "net(features, False)", "    tf.layers.dense(features, 3)\n"),  # a layer before
    branches("net(tf.layers.flatten(features), True)", "net(tf.layers.flatten(features), False)"),  # calls inside
    branches("net(features, True)", "net(features, False)", "    tf.set_random_seed(3)\n"),
    branches("net(features, True)", "net(features, False)", "    params['units'] = 5\n"),  # which a network may read
    branches("net(features, True)", "net(features, False)", "    net.units = 5\n"),
    "    def inner(x):\n        return net(x, keep=rate)\n\n    rate = 1.0\n"
    + branches("inner(features)", "inner(features)", "    rate = 0.5\n"),
    branches("net(features, False)", "net(features, True)"),  # averages of batches in evaluations
    PREDICT  # the evaluation is told that it trains
    + ("        logits = net(features, False)\n" + PREDICTED)
    + ("    logits = net(features, True)\n" + TRAINED),
]


@pytest.mark.parametrize("body", OTHERWISE)
def test_another_network_stays_one(body: str) -> None:
    _, findings = run(HEAD + body + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] != []
