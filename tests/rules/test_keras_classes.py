"""Keras layers and models that are classes of the program, called by a model_fn."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

CLASS = """\
class Net(tf.keras.{base}):
    def __init__(self, units):
        super(Net, self).__init__()
        self.dense = tf.keras.layers.Dense(units, activation="relu")
        self.drop = tf.keras.layers.Dropout(0.5)

    def call(self, inputs, training={default}):
        x = self.dense(inputs)
        x = self.drop(x, training=training)
        return x


"""
CALL = "net = Net(4)(net, training=mode == tf.estimator.ModeKeys.TRAIN)"


def outcome(text: str, network: str = CALL) -> tuple[str, list[str]]:
    whole = program(network=network).replace("def input_fn", f"{text}def input_fn", 1)
    new, findings = run(whole)
    blocked = [f.code for f in findings if f.severity is Severity.MANUAL]
    assert (new == whole) is bool(blocked)
    return new, blocked


@pytest.mark.parametrize("base", ["Model", "layers.Layer", "models.Model"])
@pytest.mark.parametrize("default", ["None", "False"])
def test_the_test_of_the_mode_goes(base: str, default: str) -> None:
    text = CLASS.format(base=base, default=default)
    new, blocked = outcome(text)
    assert blocked == [] and "net = Net(4)(net)\n" in new and text in new


def test_one_that_nobody_tells_does_not_train() -> None:
    new, blocked = outcome(CLASS.format(base="Model", default="None"), "net = Net(4)(net)")
    assert blocked == [] and "net = Net(4)(net, training=False)\n" in new


def test_without_layers_that_train_otherwise() -> None:
    text = CLASS.format(base="Model", default="None").replace("Dropout(0.5)", "Flatten()")
    new, blocked = outcome(text.replace(", training=training", ""))
    assert blocked == [] and "net = Net(4)(net)\n" in new


def test_one_call_for_each_branch() -> None:
    branches = (
        "model = Net(4)\nif mode == tf.estimator.ModeKeys.PREDICT:\n    net = model(features, training=False)\n"
        "    return tf.estimator.EstimatorSpec(mode, predictions=net)\n"
        "net = model(features, training=mode == tf.estimator.ModeKeys.TRAIN)"
    )
    new, blocked = outcome(CLASS.format(base="Model", default="None"), branches)
    assert blocked == [] and "net = model(features)\n" in new


PLAIN = CLASS.format(base="Model", default="None")
BELOW = PLAIN.replace("class Net(tf.keras.Model)", "Base = tf.keras.Model\n\n\nclass Net(Base)")
MADE = PLAIN + "def build(units):\n    return Net(units)\n\n\n"
NAMED = PLAIN + "def build():\n    made = Net(4)\n    return made\n\n\n"
WORDS = {
    "told by place": (PLAIN.replace("training=training)", "training)"), CALL),
    "another name of the base": (BELOW, CALL),
    "a function that makes it": (MADE, CALL.replace("Net(4)", "build(4)")),
    "a name in it": (NAMED, CALL.replace("Net(4)", "build()")),
}


@pytest.mark.parametrize("words", WORDS)
def test_in_other_words(words: str) -> None:
    text, network = WORDS[words]
    new, blocked = outcome(text, network)
    assert blocked == [] and network.replace(", training=mode == tf.estimator.ModeKeys.TRAIN", "") in new
    assert outcome(text.replace("return x\n", "return self.drop(x)\n"), network)[1]
    assert outcome(text.replace("training=None", "training=True"), network)[1]


REFUSED = {
    "it trains where nobody says that it does not": PLAIN.replace("training=None", "training=True"),
    "a layer is not told": PLAIN.replace("self.drop(x, training=training)", "self.drop(x)"),
    "a layer is told something else": PLAIN.replace("training=training", "training=not training"),
    "a layer has another name as well": PLAIN.replace("    def call", "        self.again = self.drop\n\n    def call"),
    "layers in a list": PLAIN.replace(
        "self.drop = tf.keras.layers.Dropout(0.5)", "self.drop = [tf.keras.layers.Dropout(0.5)][0]"
    ),
    "what is told is changed": PLAIN.replace(
        "        x = self.dense", "        training = True\n        x = self.dense"
    ),
    "another method": PLAIN.replace(
        "    def call", "    def other(self, x):\n        return self.drop(x)\n\n    def call"
    ),
    "a class below another": PLAIN + PLAIN.replace("class Net(tf.keras.Model)", "class Other(Net)"),
    "averages that no step moves": PLAIN.replace("Dropout(0.5)", "BatchNormalization()"),
    "a regularizer": PLAIN.replace('activation="relu"', "kernel_regularizer=tf.keras.regularizers.l2(0.1)"),
    "a term of its own": PLAIN.replace(
        "        return x\n", "        self.add_loss(tf.reduce_sum(x))\n        return x\n"
    ),
    "another class of the name": PLAIN + "if len('x'):\n    Net = print\n\n\n",
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    network = CALL.replace("Net(", "Other(") if "class Other" in REFUSED[what] else CALL
    _, blocked = outcome(REFUSED[what], network)
    assert blocked


def test_told_by_place() -> None:
    _, blocked = outcome(PLAIN, CALL.replace("training=", ""))
    assert blocked
