"""`initial_state=cell.zero_state(...)`: where recurrent networks start anyway."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[[1.0], [2.0]]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    cell = tf.nn.rnn_cell.GRUCell(5)
    START
    outputs, state = RUN
    logits = tf.layers.dense(state, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
"""
ZERO = "cell.zero_state(tf.shape(features)[0], tf.float32)"
NAMED = f"start = {ZERO}"
RUN = "tf.nn.dynamic_rnn(cell, features, initial_state={})"


@pytest.mark.parametrize(
    ("start", "call"),
    [
        ("size = 1", RUN.format(ZERO)),
        (NAMED, RUN.format("start")),
        (NAMED, "tf.nn.dynamic_rnn(cell, features, initial_state=start, dtype=tf.float32)"),
        ("start = cell.zero_state(dtype=tf.float32, batch_size=8)", RUN.format("start")),
    ],
)
def test_a_network_that_starts_at_zero_is_not_told_where_it_starts(start: str, call: str) -> None:
    new, findings = run(PROGRAM.replace("START", start).replace("RUN", call))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "zero_state" not in new and "dynamic_rnn(cell, features)" in new


@pytest.mark.parametrize(
    ("start", "call"),
    [
        (f"{NAMED}\n    start = start + 1.0", RUN.format("start")),
        (f"{NAMED}\n    features = features + start[0]", RUN.format("start")),
        ("start = tf.layers.dense(features[:, 0], 5)", RUN.format("start")),
        (NAMED, "tf.nn.dynamic_rnn(cell, features, initial_state=start, dtype=tf.float64)"),
    ],
)
def test_other_states_stay(start: str, call: str) -> None:
    text = PROGRAM.replace("START", start).replace("RUN", call)
    new, findings = run(text)
    assert [f for f in findings if f.severity is Severity.MANUAL]
    assert new == text
