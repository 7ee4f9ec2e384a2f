"""Programs that feed their batches to placeholders in a plain session."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

FED = """\
import numpy as np
import tensorflow as tf


def train(points, targets, epochs, rate):
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.placeholder(tf.float32, shape=(None, 1))
    keep = tf.placeholder(tf.float32)
    hidden = tf.nn.dropout(tf.layers.dense(x, 4), keep_prob=keep)
    output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(y, output)
    error = tf.reduce_mean(tf.abs(y - output))
    train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss)
    init = tf.global_variables_initializer()
    with tf.Session() as session:
        session.run(init)
        count = len(points) // 8
        for epoch in range(epochs):
            order = np.random.permutation(len(points))
            for i in range(count):
                # A part of the order.
                chosen = order[i * 8 : (i + 1) * 8]
                _, shown = session.run([train_op, loss], feed_dict={x: points[chosen], y: targets[chosen], keep: 0.5})
            print("epoch", epoch, shown)
            if epoch % 2 == 0:
                print(session.run(error, feed_dict={x: points, y: targets, keep: 1.0}))
"""


def test_what_is_fed_becomes_a_generator() -> None:
    text, findings = run(FED)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "TFM763" in [f.code for f in findings]
    ast.parse(text)
    assert (
        """\
    def train_batches():
        count = len(points) // 8
        for epoch in range(epochs):
            order = np.random.permutation(len(points))
            for i in range(count):
                # A part of the order.
                chosen = order[i * 8 : (i + 1) * 8]
                yield points[chosen], targets[chosen]
"""
        in text
    )
    assert "tf.data.Dataset.from_generator(" in text and "tf.TensorSpec([None, 3], tf.float32)" in text
    assert "train_data = train_input_fn()\n" in text and "model.fit(train_data" in text  # it draws from numpy
    for gone in ("placeholder", "ession", "keep: ", "print", "initializer()", "error = ", "global_step"):
        assert gone not in text, gone


def test_numbers_that_are_fed_are_those_of_the_network() -> None:
    text, _ = run(FED)
    assert "        keep = 0.5\n        hidden = tf.keras.layers.Dropout(1 - keep)(" in text


REFUSED = {
    "no shape": ("tf.placeholder(tf.float32, [None, 3])", "tf.placeholder(tf.float32)", "TFM732"),
    "a number that changes": ("keep: 0.5}", "keep: epoch / 9}", "TFM732"),
    "an end by the loss": ('print("epoch", epoch, shown)', "if shown < 0.1:\n                break", "TFM732"),
    "a list of losses": ('print("epoch", epoch, shown)', "losses[epoch] = shown", "TFM732"),
    "what a hook would do": ('print("epoch", epoch, shown)', "save(session)", "TFM732"),
    "a batch that depends on the loss": ("order[i * 8 : (i + 1) * 8]", "order[shown:]", "TFM732"),
    "a batch that is looked at": ("{x: points, y: targets, keep: 1.0}", "{x: draw(), y: targets}", "TFM732"),
    "a second training": ("print(session.run(error,", "print(session.run(train_op,", "TFM732"),
    "a dict that is made elsewhere": (
        "feed_dict={x: points[chosen], y: targets[chosen], keep: 0.5}",
        "feed_dict=feed(points)",
        "TFM732",
    ),
    "an operation for its effect": ('print("epoch", epoch, shown)', "session.run(error)", "TFM732"),
    "a session for later": (
        "            if epoch % 2 == 0:\n                print(",
        "        print(session, ",
        "TFM733",
    ),
    "a parameter that changes": (
        "            for i in range(count):",
        "            points = points + 1\n            for i in range(count):",
        "TFM732",
    ),
    "a graph of its own": ("tf.Session()", "tf.Session(graph=points)", "TFM733"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_another_training_is_refused(what: str) -> None:
    before, after, code = REFUSED[what]
    assert before in FED
    program = FED.replace(before, after)
    text, findings = run(program)
    assert text == program
    assert code in [f.code for f in findings if f.severity is Severity.MANUAL], findings


def test_a_count_from_before_the_session_is_refused() -> None:
    program = (
        FED.replace("        count = len(points) // 8\n", "")
        .replace("    init = tf", "    count = 4\n    offset = 0\n    init = tf")
        .replace("order[i * 8 : (i + 1) * 8]", "order[offset : offset + 8]\n                offset = offset + 8")
    )
    text, findings = run(program)
    assert text == program and "TFM732" in [f.code for f in findings], findings


def test_an_assignment_in_a_helper_is_seen() -> None:
    helper = (
        'def keep_one(value):\n    return tf.assign(tf.get_variable("one", ()), tf.reduce_mean(value))\n\n\ndef train('
    )
    program = FED.replace("def train(", helper).replace("error = tf.reduce_mean(", "error = keep_one(")
    text, findings = run(program)
    assert text == program and "TFM760" in [f.code for f in findings], findings
