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


INLINE = """inputs = tf.keras.Input([1])
net = tf.keras.layers.Dropout(0.5)(inputs)
net = tf.keras.layers.Dense(1)(net)
model = tf.keras.Model(inputs, net)
"""
BLOCK = "\ndef block(x):\n    return tf.keras.layers.Dropout(0.5)(x)\n"


@pytest.mark.parametrize(
    ("body", "helpers", "expected"),
    [
        (INLINE + "logits = model(features)", "", "    logits = model(features, training=False)\n"),
        (INLINE + f"logits = model(features, {TRAINING})", "", "    logits = model(features)\n"),
        (
            INLINE.replace("tf.keras.layers.Dropout(0.5)", "block") + "logits = model(features)",
            BLOCK,
            "    logits = model(features, training=False)\n",
        ),
        (
            "inputs = tf.keras.Input([1])\nmodel = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))\n"
            "logits = tf.keras.layers.Dropout(0.5)(model(features))",
            "",
            "    logits = tf.keras.layers.Dropout(0.5)(model(features), training=False)\n",
        ),
        (
            "logits = tf.keras.layers.Dense(1)(wrap(features))",
            "\ndef wrap(x):\n    inputs = tf.keras.Input([1])\n    net = tf.keras.layers.Dropout(0.5)(inputs)\n"
            "    return tf.keras.Model(inputs, net)(x)\n",
            "    return tf.keras.Model(inputs, net)(x, training=False)\n",
        ),
        (
            "model = tf.keras.Sequential([tf.keras.Input([1]), tf.keras.layers.Dropout(0.5)])\n"
            "logits = model(features)",
            "",
            "    logits = model(features, training=False)\n",
        ),
    ],
    ids=["untold", "told", "a layer in a function", "beside a model", "in a function", "in a Sequential"],
)
def test_a_model_of_keras_inputs_is_told_by_its_call(body: str, helpers: str, expected: str) -> None:
    new, findings = run(text_of(body, helpers))
    assert not manual(findings), findings
    assert expected in new
    assert new.count("training=False") == expected.count("training=False")


NET = """
class Net({base}):
    def __init__(self):
        self.drop = tf.keras.layers.Dropout(0.5)

    def {call}(self, x, **told):
        return self.drop(x, **told)

"""
DROP = "tf.keras.layers.Dropout(0.5)"


@pytest.mark.parametrize(
    ("body", "helpers"),
    [
        (f"layer = tf.keras.layers.Dense(3)\nnet = layer(features)\nlayer = {DROP}\nlogits = layer(net)", ""),
        (f"logits = features\nfor layer in [tf.keras.layers.Dense(3), {DROP}]:\n    logits = layer(logits)", ""),
        (f'made = {{"drop": {DROP}}}\nkey = "drop"\nlogits = made[key](features)', ""),
        (f"drop = {DROP} if features is not None else tf.identity\nlogits = drop(features)", ""),
        ("logits = make()[1](features)", f"\ndef make():\n    return tf.identity, {DROP}\n"),
        ("logits = tf.keras.Sequential(make())(features)", f"\ndef make():\n    return [{DROP}]\n"),
        ("logits = tf.keras.Sequential([make()])(features)", f"\ndef make():\n    return {DROP}\n"),
        (f"logits = apply({DROP}, features)", "\ndef apply(block, x):\n    return block(x)\n"),
        (
            f"drop = {DROP}\nnet = drop(features, {TRAINING})\nlogits = apply(drop, net)",
            "\ndef apply(block, x):\n    return block(x)\n",
        ),
        ("model = Net()\nlogits = model(features)", NET.format(base="tf.keras.Model", call="call")),
        ("model = Net()\nlogits = model(features)", NET.format(base="object", call="__call__")),
        (f"model = Net()\nlogits = model(features, {TRAINING})", NET.format(base="object", call="__call__")),
        ("logits = MADE(features)", f"\nMADE = {DROP}\n"),
        (f"model = tf.keras.Sequential([{DROP}])\nlogits = model.layers[0](features)", ""),
        (
            "logits = features\n"
            "for drop in (functools.partial(tf.keras.layers.Dropout, 0.5),) * 2:\n    logits = drop()(logits)",
            "import functools\n",
        ),
        (
            "inputs = tf.keras.Input([1])\n"
            f"model = tf.keras.Model(inputs, {DROP}({DROP}(inputs, {TRAINING})))\nlogits = model(features)",
            "",
        ),
        (INLINE.replace("= tf.keras.layers.Dense(1)", "= block") + "logits = model(block(features))", BLOCK),
    ],
    ids=[
        *("rebound", "list", "dict", "one or the other", "pair of a function", "list of a function"),
        *("layer of a function in a model", "parameter", "called and handed on", "subclass", "attribute"),
        *("attribute that is told", "module", "layer of a model", "partial", "told and untold", "both kinds"),
    ],
)
def test_layers_that_cannot_be_followed_are_refused(body: str, helpers: str) -> None:
    text = text_of(body, helpers)
    new, findings = run(text)
    assert new == text
    assert "TFM404" in manual(findings)


@pytest.mark.parametrize(
    "body",
    [
        "dense = functools.partial(tf.keras.layers.Dense, kernel_regularizer=REG)\nlogits = dense(1)(features)",
        'opts = {"kernel_regularizer": REG}\nlogits = tf.keras.layers.Dense(1, **opts)(features)',
        'logits = tf.keras.layers.Dense(1, None, True, "ones", "zeros", REG)(features)',
        "logits = tf.keras.layers.ActivityRegularization(l2=0.5)(features)",
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.layers[0].kernel_regularizer = REG\n"
        "logits = model(features)",
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.add_loss(tf.constant(0.1))\n"
        "logits = model(features)",
    ],
    ids=["partial", "options", "by place", "of activities", "set later", "add_loss"],
)
def test_terms_that_only_keras_adds_are_refused(body: str) -> None:
    text = text_of(body, "import functools\n\nREG = tf.keras.regularizers.l2(0.1)\n")
    new, findings = run(text)
    assert new == text
    assert "TFM405" in manual(findings)


def test_layers_that_the_model_fn_does_not_reach_are_left_alone() -> None:
    helpers = f"\ndef other():\n    return [{DROP}]\n" + NET.format(base="object", call="__call__")
    _, findings = run(text_of("logits = tf.keras.layers.Dense(1)(features)", helpers))
    assert not manual(findings), findings
