"""Proofs of moving averages of the weights: TensorFlow 1 and the Keras form keep the same weights and averages."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from migrator.harness import session
from migrator.harness.protocol import l1_variables, name_map
from migrator.harness.protocol.results import Status
from migrator.harness.recording import read
from tests.end_to_end.proving import prove, record_both

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, 4, activation=tf.nn.tanh)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
EVALUATION
    step = tf.train.get_global_step()
TRAINING
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={"decay": 0.8})
estimator.train(input_fn, steps=5)
print(estimator.evaluate(input_fn))
estimator.train(input_fn, steps=2)
"""
RAW = """
return tf.estimator.EstimatorSpec(mode, loss=loss)
"""
AVERAGED = """
ema = tf.train.ExponentialMovingAverage(params["decay"])
saver = tf.train.Saver(ema.variables_to_restore())
return tf.estimator.EstimatorSpec(mode, loss=loss, scaffold=tf.train.Scaffold(saver=saver))
"""

# what keeps the averages -> how it trains
CASES = {
    "Momentum with a rate that changes, counted": """
        ema = tf.train.ExponentialMovingAverage(params["decay"], num_updates=step)
        optimizer = tf.train.MomentumOptimizer(tf.train.exponential_decay(0.1, step, 2, 0.9), 0.9)
        train_op = optimizer.minimize(loss, global_step=step)
        with tf.control_dependencies([train_op]):
            train_op = tf.group(ema.apply(tf.trainable_variables()))
        """,
    "Adam, clipped, before the step": """
        optimizer = tf.train.AdamOptimizer(0.05)
        variables = tf.trainable_variables()
        average_op = tf.train.ExponentialMovingAverage(0.8).apply(variables)
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
        with tf.control_dependencies([average_op]):
            train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
        """,
}

PLAIN = """
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
ema = tf.train.ExponentialMovingAverage(0.8)
with tf.control_dependencies([train_op]):
    train_op = ema.apply()
"""


def program(training: str, evaluation: str) -> str:
    text = PROGRAM.replace("TRAINING", textwrap.indent(textwrap.dedent(training).strip("\n"), "    "))
    return text.replace("EVALUATION", textwrap.indent(evaluation.strip("\n"), "        "))


def kept(folder: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The averages of the original and of the migrated program after step 5, weight by weight."""
    original, migrated = (read(folder / f"{kind}-run" / "record") for kind in ("original", "migrated"))
    pairs = name_map.build(original.variables, migrated.variables)
    assert l1_variables.judge(original, migrated, pairs).status is Status.EQUIVALENT
    ours = [original.slots[5][name, "average"] for name, _ in pairs.pairs]
    return ours, [migrated.slots[5][name, "average"] for _, name in pairs.pairs]


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_averages_of_the_weights(
    case: str, keras: int, session_for: Callable[[int], session.Session], tmp_path: Path
) -> None:
    """They are evaluated, and the training goes on with the weights."""
    opened = session_for(keras)
    servers = (opened.original, opened.migrated)
    new = prove(program(CASES[case], AVERAGED), servers, tmp_path, keras=str(keras), steps=7)
    for ours, theirs in zip(*kept(tmp_path), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)
    if case.startswith("Momentum") or keras == 3:
        return
    start = "tf.where(tf.equal(self.iterations, 0), variable, average)"
    assert start in new
    (tmp_path / "wrong.py").write_text(new.replace(start, "tf.where(tf.equal(self.iterations, 0), 0.0, average)"))
    (tmp_path / "wrong").mkdir()
    wrong = record_both(servers, tmp_path / "original" / "train.py", tmp_path / "wrong.py", tmp_path / "wrong")
    ours, theirs = kept(tmp_path / "wrong")
    assert max(np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True)) > 0.1
    losses = [recording.evaluations[-1].results["loss"] for recording in wrong[:2]]
    assert losses[1] != pytest.approx(losses[0], rel=0.01)


def test_averages_on_the_bridge(session_for: Callable[[int], session.Session], tmp_path: Path) -> None:
    opened = session_for(2)
    prove(program(PLAIN, RAW), (opened.original, opened.migrated), tmp_path, style="bridge", steps=7)
    for ours, theirs in zip(*kept(tmp_path), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)
