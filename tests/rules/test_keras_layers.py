"""Keras layers and models that a model_fn calls: told to train, not told, and what is refused."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import run

TRAINING = "training=mode == tf.estimator.ModeKeys.TRAIN"
BUILDER = """
def network(width):
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Dense(width, activation=tf.nn.relu), layers.Dropout(0.4), layers.Dense(1)])

"""
FUNCTIONAL = """
def network(width):
    inputs = tf.keras.Input([1])
    net = tf.keras.layers.Dropout(0.4)(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(width)(net))

"""


def text_of(body: str, helpers: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"""\
import tensorflow as tf
{helpers}
def model_fn(features, labels, mode):
{lines}    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
"""


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


@pytest.mark.parametrize(
    ("body", "helpers", "expected"),
    [
        (
            f"net = tf.keras.layers.Dropout(0.4)(features, {TRAINING})\nlogits = tf.keras.layers.Dense(1)(net)",
            "",
            "net = tf.keras.layers.Dropout(0.4)(features)\n",
        ),
        (
            "is_training = (mode == tf.estimator.ModeKeys.TRAIN)\nmodel = network(3)\n"
            "logits = model(features, training=is_training)",
            BUILDER,
            "logits = model(features)\n",
        ),
        (f"logits = network(1)(features, {TRAINING})", FUNCTIONAL, "logits = network(1)(features)\n"),
        (
            "net = network(features, mode == tf.estimator.ModeKeys.TRAIN)\nlogits = tf.keras.layers.Dense(1)(net)",
            "\ndef network(x, train):\n    return tf.keras.layers.Dropout(0.4)(x, training=train)\n\n",
            "def network(x):\n    return tf.keras.layers.Dropout(0.4)(x)\n",
        ),
    ],
    ids=["a layer", "a model of a function", "a functional model", "a layer in a function"],
)
def test_the_test_for_the_training_goes(body: str, helpers: str, expected: str) -> None:
    new, findings = run(text_of(body, helpers))
    assert not manual(findings), findings
    assert expected in new
    assert "TFM404" not in {f.code for f in findings}


@pytest.mark.parametrize(
    ("body", "helpers", "expected"),
    [
        (
            "net = tf.keras.layers.Dropout(0.4)(features)\nlogits = tf.keras.layers.Dense(1)(net)",
            "",
            "net = tf.keras.layers.Dropout(0.4)(features, training=False)\n",
        ),
        ("model = network(3)\nlogits = model(features)", BUILDER, "logits = model(features, training=False)\n"),
        (
            "model = tf.keras.Sequential()\nmodel.add(tf.keras.layers.GaussianNoise(0.1))\n"
            "model.add(tf.keras.layers.Dense(1))\nlogits = model(features)",
            "",
            "logits = model(features, training=False)\n",
        ),
        (
            "net = network(features)\nlogits = tf.keras.layers.Dense(1)(net)",
            "\ndef network(x):\n    return tf.keras.layers.Dropout(0.4)(x)\n\n",
            "return tf.keras.layers.Dropout(0.4)(x, training=False)\n",
        ),
    ],
    ids=["a layer", "a model of a function", "layers that are added", "a layer in a function"],
)
def test_what_nobody_told_to_train_does_not(body: str, helpers: str, expected: str) -> None:
    new, findings = run(text_of(body, helpers))
    assert not manual(findings), findings
    assert expected in new
    assert [f.severity.value for f in findings if f.code == "TFM404"] == ["review"]


def test_what_is_the_same_in_training_stays() -> None:
    body = "dense = tf.keras.layers.Dense(3)\nlogits = tf.keras.layers.Dense(1)(dense(features))"
    new, findings = run(text_of(body))
    assert not manual(findings), findings
    assert "logits = tf.keras.layers.Dense(1)(dense(features))\n" in new


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("logits = tf.keras.layers.Dropout(0.4)(features, True)", "TFM404"),
        ("logits = tf.keras.layers.Dense(1, kernel_regularizer=tf.keras.regularizers.l2(0.1))(features)", "TFM405"),
    ],
)
def test_refused(line: str, code: str) -> None:
    text = text_of(line)
    new, findings = run(text)
    assert new == text
    assert code in manual(findings)


def test_a_local_name_of_a_module_that_means_something_else_elsewhere_is_not_followed() -> None:
    text = text_of("logits = network(3)(features)", "\ndef other(layers):\n    return layers\n" + BUILDER)
    new, findings = run(text)
    assert new == text
    assert "TFM203" in manual(findings)


def test_a_local_name_of_a_class_is_followed() -> None:
    text = text_of("spec = tf.estimator.EstimatorSpec\nlogits = tf.keras.layers.Dense(1)(features)")
    new, findings = run(text.replace("return tf.estimator.EstimatorSpec(", "return spec("))
    assert not manual(findings), findings
    assert "EstimatorSpec" not in new
    assert "spec = " not in new


@pytest.mark.parametrize(
    "helpers",
    [
        "\nclass Shared:\n    flatten = tf.contrib.layers.flatten\n\n    def run(self, x):\n        return x\n",
        "\ndef other(x):\n    if x is None:\n        flatten = tf.contrib.layers.flatten\n    return flatten(x)\n",
    ],
    ids=["of a class", "in a branch"],
)
def test_names_elsewhere_are_not_taken_away(helpers: str) -> None:
    text = text_of("logits = tf.keras.layers.Dense(1)(features)", helpers)
    new, _ = run(text)
    assert "flatten = tf.contrib.layers.flatten" in new
