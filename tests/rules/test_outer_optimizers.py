"""Optimizers that code around the model_fn makes: its strategy has to make their variables (verified on a cluster)."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

BUILDER = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)


def build():
    optimizer = tf.train.GradientDescentOptimizer(0.1)

    def model_fn(features, labels, mode):
        logits = tf.layers.dense(features, 1)
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


"""
CLASS = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)


class Network:
    def __init__(self):
        self.optimizer = tf.train.GradientDescentOptimizer(0.1)

    def model_fn(self, features, labels, mode):
        logits = tf.layers.dense(features, 1)
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = self.optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


"""
HERE = {BUILDER: "estimator = tf.estimator.Estimator(build(), 'm')\n"}
BEFORE = {
    BUILDER: "made = build()\nestimator = tf.estimator.Estimator(made, 'm')\n",
    CLASS: "made = Network()\nestimator = tf.estimator.Estimator(made.model_fn, 'm')\n",
}
TRAINS = "estimator.train(input_fn, steps=3)\n"
ON_CLUSTERS = (
    "tf.estimator.train_and_evaluate(\n"
    "    estimator, tf.estimator.TrainSpec(input_fn, max_steps=3), tf.estimator.EvalSpec(input_fn, steps=1)\n)\n"
)


def codes(text: str) -> list[str]:
    return [f.code for f in run(text)[1] if f.severity is Severity.MANUAL]


def test_an_optimizer_of_the_function_around_the_model_fn() -> None:
    new, findings = run(BUILDER + HERE[BUILDER] + ON_CLUSTERS)
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "    optimizer = tf.keras.optimizers.legacy.SGD(learning_rate=0.1)\n\n    def model_fn(" in new
    assert "compile(optimizer=optimizer" in new and "with strategy.scope():\n    model = build()(" in new


@pytest.mark.parametrize("text", BEFORE, ids=["a function", "an object"])
def test_one_that_is_made_before_the_strategy(text: str) -> None:
    assert codes(text + BEFORE[text] + ON_CLUSTERS) == ["TFM403"]
    assert codes(text + BEFORE[text] + TRAINS) == []


def test_a_name_that_has_two_optimizers_is_not_followed() -> None:
    two = BUILDER.replace("(0.1)\n", "(0.1)\n    optimizer = tf.train.AdamOptimizer(0.1)\n", 1)
    assert codes(two + HERE[BUILDER] + TRAINS) == ["TFM403"]


ADAM, SGD = "tf.train.AdamOptimizer(rate)", "tf.train.GradientDescentOptimizer(rate)"
MADE_BY = {
    "a dict": f"    return {{'adam': {ADAM}, 'sgd': {SGD}}}[name]\n",
    "a name": f"    made = {ADAM} if name else {SGD}\n    return made\n",
    "another function": "    def adam():\n        return tf.train.AdamOptimizer(rate)\n    return adam()\n",
}
MAKES = "def make(name, rate):\n{}\n\n"


@pytest.mark.parametrize("way", MADE_BY)
def test_an_optimizer_that_a_function_makes(way: str) -> None:
    text = BUILDER.replace("    optimizer = tf.train.GradientDescentOptimizer(0.1)\n\n", "").replace(
        "        train_op =", "        optimizer = make('adam', 0.1)\n        train_op ="
    )
    made = text.replace("def build", MAKES.format(MADE_BY[way]) + "def build", 1)
    assert codes(made + HERE[BUILDER] + TRAINS) == []
    other = MAKES.format("    return [tf.train.AdamOptimizer(rate), name][len(name)]\n")
    assert "TFM403" in codes(text.replace("def build", other + "def build", 1) + HERE[BUILDER] + TRAINS)
