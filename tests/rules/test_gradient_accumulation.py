"""Gradients that are added up over several batches: what the class is told, and what is refused."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf

EVERY = 3


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(0.1)
    variables = tf.trainable_variables()
    sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in variables]
    pairs = optimizer.compute_gradients(loss, variables)
    add = [total.assign_add(g) for total, (g, _) in zip(sums, pairs)]

    def apply_and_clear():
        apply = optimizer.apply_gradients(zip(sums, variables))
        with tf.control_dependencies([apply]):
            return tf.group([total.assign(tf.zeros_like(total)) for total in sums])

    with tf.control_dependencies(add):
        update = tf.cond(tf.equal((step + 1) % EVERY, 0), apply_and_clear, tf.no_op)
    with tf.control_dependencies([update]):
        train_op = tf.assign_add(step, 1)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={"every": 4})
estimator.train(input_fn, steps=3)
"""
TEST = "lambda step: tf.equal((step + 1) % EVERY, 0)"


def changed(*pairs: tuple[str, str]) -> str:
    text = PROGRAM
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


# how it is written -> the program, what the class is told beside the optimizer
WRITTEN = {
    "sums": (PROGRAM, TEST),
    "means": (changed(("zip(sums, variables)", "[(s / EVERY, v) for s, v in zip(sums, variables)]")), "divisor=EVERY"),
    "shares": (changed(("assign_add(g)", "assign_add(g / EVERY)")), "share=EVERY"),
    "shares of the loss": (changed(("gradients(loss,", "gradients(loss / 3.0,")), "share=3.0"),
    "by index": (
        changed(
            (
                "[total.assign_add(g) for total, (g, _) in zip(sums, pairs)]",
                "[sums[i].assign_add(gv[0]) for i, gv in enumerate(pairs)]",
            ),
            ("zip(sums, variables)", "[(sums[i], gv[1]) for i, gv in enumerate(pairs)]"),
        ),
        TEST,
    ),
    "by tf.gradients and functions": (
        changed(
            ("pairs = optimizer.compute_gradients(loss, variables)", "gradients = tf.gradients(loss, variables)"),
            (
                "total.assign_add(g) for total, (g, _) in zip(sums, pairs)",
                "tf.assign_add(total, g) for total, g in zip(sums, gradients)",
            ),
            ("total.assign(tf.zeros_like(total))", "tf.assign(total, tf.zeros_like(total))"),
        ),
        TEST,
    ),
    "a condition with a name, of the params": (
        changed(
            ("    with tf.control_dependencies(add):", "    now = tf.equal(tf.mod(step, params['every']), 0)\n"
             "    with tf.control_dependencies(add):"),
            ("tf.equal((step + 1) % EVERY, 0), apply_and_clear, tf.no_op", "now, apply_and_clear, lambda: tf.no_op()"),
        ),
        "lambda step: tf.equal(tf.math.floormod(step, params['every']), 0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", WRITTEN)
def test_an_optimizer_adds_up(how: str) -> None:
    text, told = WRITTEN[how]
    new, findings = run(text, style="mapped")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert told in new[new.index("    optimizer = AccumulatingOptimizer(") :], new
    assert (
        "    optimizer = tf.keras.optimizers.Adam(learning_rate=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-08)\n" in new
    )
    assert [f.code for f in findings if f.severity is Severity.REVIEW] == ["TFM416", "TFM150"]
    assert "initialized_value" not in new and "def apply_and_clear" not in new


# construct -> the program, part of the line that the finding names
REFUSED = {
    "adding in no order": (
        changed(
            ("control_dependencies(add)", "name_scope('x')"), ("dependencies([update])", "dependencies([update, add])")
        ),
        "tf.cond",
    ),
    "clearing in no order": (changed(("control_dependencies([apply])", "name_scope('x')")), "tf.cond"),
    "counting in no order": (
        changed(
            ("    with tf.control_dependencies([update]):\n        train_op = tf.assign_add(step, 1)",
             "    train_op = tf.group(update, tf.assign_add(step, 1))"),
        ),
        "tf.group",
    ),
    "steps that are updates": (
        changed(("zip(sums, variables))", "zip(sums, variables), step)"), ("train_op = tf.assign_add(step, 1)",
                                                                          "train_op = tf.no_op()")),
        "tf.cond",
    ),
    "a rate that changes": (
        changed(("AdamOptimizer(0.1)", "AdamOptimizer(tf.train.exponential_decay(0.1, step, 10, 0.9))")),
        "tf.cond",
    ),
    "sums that are never cleared": (
        changed(("return tf.group([total.assign(tf.zeros_like(total)) for total in sums])", "return tf.no_op()")),
        "tf.cond",
    ),
}  # fmt: skip


@pytest.mark.parametrize("construct", REFUSED)
def test_refused(construct: str) -> None:
    text, part = REFUSED[construct]
    new, findings = run(text, style="mapped")
    assert new == text
    manual = [f for f in findings if f.code == "TFM417"]
    assert manual, findings
    assert any(part in text.splitlines()[f.line - 1] for f in manual), findings


def test_the_native_form_is_not_used() -> None:
    new, findings = run(PROGRAM.replace("tf.Variable(", "tf.get_variable('a', initializer="), style="native")
    assert "AccumulatingOptimizer" not in new
    assert [f for f in findings if f.severity is Severity.MANUAL]


def test_several_replicas_do_not_add_up() -> None:
    new, findings = run(PROGRAM, strategy="mirrored", style="mapped")
    assert new == PROGRAM
    (manual,) = [f for f in findings if f.severity is Severity.MANUAL]
    assert manual.code == "TFM417" and "one device" in manual.message
