"""Optimizers that a method of the model's class makes: which method that is, its objects' class says.

Programs like these were run beside TensorFlow 1.15.5: evaluation losses after 12 steps agree to 6 digits.
"""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import run

TEXT = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)


class Base(object):
    def __init__(self, rate):
        self.rate = rate

    def optimizer(self):
        return tf.train.AdamOptimizer(self.rate)

    def model_fn(self, features, labels, mode):
        logits = tf.layers.dense(features, 1)
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = self.optimizer().minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def fit(self):
        estimator = tf.estimator.Estimator(self.model_fn)
        estimator.train(input_fn, steps=2)


class Linear(Base):
    pass


Linear(0.1).fit()
"""
OTHER = "class Linear(Base):\n    def optimizer(self):\n        return tf.train.FtrlOptimizer(self.rate)\n"
PLAIN = "class Linear(Base):\n    pass\n"


def migrated(*changes: tuple[str, str]) -> tuple[str, list[Finding]]:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    new, findings = run(text)
    return new, [one for one in findings if one.severity is Severity.MANUAL]


def test_the_optimizer_of_the_only_method() -> None:
    new, manual = migrated()
    assert not manual
    assert "optimizer=self.optimizer()" in new
    assert "return tf.keras.optimizers.legacy.Adam(learning_rate=self.rate" in new


@pytest.mark.parametrize(
    "changes",
    [
        ((PLAIN, OTHER),),
        ((PLAIN, OTHER), ("return tf.train.AdamOptimizer(self.rate)", "raise NotImplementedError")),
    ],
    ids=["overridden", "abstract"],
)
def test_the_class_that_objects_are_made_of_says_which_method(changes: tuple[tuple[str, str], ...]) -> None:
    new, manual = migrated(*changes)
    assert not manual
    assert "optimizer=self.optimizer()" in new and "tf.keras.optimizers.legacy.Ftrl(" in new


def test_the_optimizers_of_two_classes_with_objects_are_refused() -> None:
    new, manual = migrated((PLAIN, OTHER), ("Linear(0.1).fit()", "for made in (Base, Linear):\n    made(0.1).fit()"))
    assert "TFM403" in {one.code for one in manual} and "tf.keras" not in new


@pytest.mark.parametrize(("rate", "code"), [("rate", None), ("2 * rate", "TFM402")])
def test_a_schedule_that_a_method_is_given(rate: str, code: str | None) -> None:
    step = "tf.train.get_global_step()"
    new, manual = migrated(
        ("    def optimizer(self):", "    def optimizer(self, rate):"),
        ("AdamOptimizer(self.rate)", f"GradientDescentOptimizer({rate})"),
        ("self.optimizer()", f"self.optimizer(tf.train.exponential_decay(self.rate, {step}, 3, 0.5))"),
    )
    if code is None:
        assert not manual
        assert "self.optimizer(tf.keras.optimizers.schedules.ExponentialDecay(self.rate, 3, 0.5))" in new
    else:
        assert code in {one.code for one in manual}


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("    def optimizer(self, rate):", "make(RATE)"),
        ("    @staticmethod\n    def optimizer(rate):", "self.optimizer(RATE)"),
    ],
    ids=["another name", "a static method"],
)
@pytest.mark.parametrize(("rate", "code"), [("rate", None), ("2 * rate", "TFM402")])
def test_what_a_call_gives_goes_by_what_is_called(head: str, call: str, rate: str, code: str | None) -> None:
    """A bound method has its object already, by whatever name it is called; a static method takes no object."""
    new, manual = migrated(
        ("    def optimizer(self):", head),
        ("AdamOptimizer(self.rate)", f"GradientDescentOptimizer({rate})"),
        (
            "        train_op = self",
            "        make = self.optimizer\n        train_op = self" if "make" in call else "        train_op = self",
        ),
        (
            "self.optimizer().minimize",
            f"{call}.minimize".replace("RATE", "tf.train.exponential_decay(0.1, STEP, 3, 0.5)"),
        ),
        ("STEP", "tf.train.get_global_step()"),
    )
    if code is None:
        assert not manual
        assert "(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 3, 0.5))" in new
    else:
        assert code in {one.code for one in manual}


def test_a_name_of_the_training_that_a_comprehension_has_as_its_own() -> None:
    """`_` is what clipping leaves over, and a comprehension's own in the network."""
    new, manual = migrated(
        (
            "        train_op = self.optimizer().minimize(loss, tf.train.get_global_step())\n",
            "        variables = tf.trainable_variables()\n"
            "        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)\n"
            "        optimizer = tf.train.AdamOptimizer(self.rate)\n"
            "        pairs = zip(gradients, variables)\n"
            "        train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())\n",
        ),
        ("tf.layers.dense(features, 1)", "sum([tf.layers.dense(features, 1) for _ in range(2)])"),
    )
    assert not manual
    assert "for _ in range(2)" in new and "global_clipnorm=0.5" in new
