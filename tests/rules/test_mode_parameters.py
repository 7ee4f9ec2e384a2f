"""Attributes that say the mode are parameters of the methods that read them, where everybody who may is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.mode_parameters import with_mode_parameters
from migrator.program.parsed import ParsedFile
from tests.rules.programs import run_or_blocked, run_project

CLASS = """\
import tensorflow as tf


class Net{base}:
    def __init__(self, units):
        self.units = units
        self.is_training = False

    def network(self, x):
        return tf.layers.dropout(x, 0.5, training=self.is_training)

    def logits(self, x):
        return tf.layers.dense(self.network(x), self.units)

    def model_fn(self, features, labels, mode):
        self.is_training = mode == tf.estimator.ModeKeys.TRAIN
        net = self.logits(features)
        loss = tf.losses.mean_squared_error(labels, net)
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
PROGRAM = CLASS.format(base="")
RUN = """

def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


tf.estimator.Estimator(Net(1).model_fn).train(input_fn, steps=3)
"""


def said(*texts: str) -> list[str]:
    files = [ParsedFile.parse(Path(f"file{index}.py"), text) for index, text in enumerate(texts)]
    return [file.module.code for file in with_mode_parameters(files)]


def other(old: str, new: str) -> str:
    assert old in PROGRAM
    return PROGRAM.replace(old, new)


STAYS = {
    "read by the driver": PROGRAM + "\n\nnet = Net(1)\nprint(net.is_training)\n",
    "asked for by a text": other(
        "return tf.layers.dropout", "hasattr(self, 'is_training')\n        return tf.layers.dropout"
    ),
    "asked for by a text elsewhere": PROGRAM + '\n\nnet = Net(1)\nprint(getattr(net, "is_training", None))\n',
    "a method that the driver calls": PROGRAM + "\n\nNet(1).logits(x)\n",
    "a method that is handed on": other("self.network(x)", "tf.map_fn(self.network, x)"),
    "set by another method": other("def logits(self, x):\n", "def logits(self, x):\n        self.is_training = True\n"),
    "set in a branch": other(
        "        self.is_training = mode ==", "        if features is not None:\n            self.is_training = mode =="
    ),
    "read before it is set": other(
        "        self.is_training = mode", "        features = self.logits(features)\n        self.is_training = mode"
    ),
    "read by name": other("training=self.is_training", "training=getattr(self, 'is_training')"),
    "a method with a decorator": other("    def network", "    @cached\n    def network"),
    "a method that calls it so": other("self.network(x)", "self.network(is_training)").replace(
        "def logits(self, x)", "def logits(self, is_training)"
    ),
    "not of the mode": other("mode == tf.estimator.ModeKeys.TRAIN", "labels is not None"),
    "a class of the same name": PROGRAM + "\n\ndef f():\n    class Net:\n        pass\n",
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    assert said(STAYS[name]) == [STAYS[name]]


def test_methods_are_told() -> None:
    """The parameter goes through all calls, the constructor says nothing any more."""
    [new] = said(PROGRAM)
    assert new == (
        PROGRAM.replace("        self.is_training = False\n", "")
        .replace("def network(self, x)", "def network(self, x, is_training)")
        .replace("training=self.is_training", "training=is_training")
        .replace("def logits(self, x)", "def logits(self, x, is_training)")
        .replace("self.network(x)", "self.network(x, is_training=is_training)")
        .replace("self.is_training = mode", "is_training = mode")
        .replace("self.logits(features)", "self.logits(features, is_training=is_training)")
    )


def test_a_property_is_what_it_asks() -> None:
    text = (
        PROGRAM.replace("self.is_training = False", "self.mode = None")
        .replace("0.5, training", "1 - self.is_training, training")
        .replace("self.is_training = mode == tf.estimator.ModeKeys.TRAIN", "self.mode = mode")
        .replace(
            "    def network",
            "    @property\n    def is_training(self):\n        return self.mode == tf.estimator.ModeKeys.TRAIN\n\n"
            "    def network",
        )
    )
    [new] = said(text)
    assert "@property" not in new and "self.mode" not in new and "self.is_training" not in new
    assert "training=mode == tf.estimator.ModeKeys.TRAIN" in new
    assert "1 - (mode == tf.estimator.ModeKeys.TRAIN)," in new and "self.logits(features, mode=mode)" in new


def test_classes_of_two_files() -> None:
    """The base has the model_fn, the other file the network; what defaults come before the parameter gets one."""
    base = CLASS.format(base="").replace("class Net", "class Base")
    a, b = base.index("    def network"), base.index("    def logits")
    base = base[:a] + "    def network(self, x):\n        raise NotImplementedError\n\n" + base[b:]
    net = (
        "import tensorflow as tf\nfrom file0 import Base\n\n\nclass Net(Base):\n    def network(self, x, rate=0.5):\n"
        "        return tf.layers.dropout(x, rate, training=self.is_training)\n"
    )
    first, second = said(base, net)
    assert "def network(self, x, rate=0.5, is_training=None):" in second and "training=is_training" in second
    assert "def network(self, x):\n        raise" in first
    assert "self.network(x, is_training=is_training)" in first


def test_the_new_model_is_native_and_tells_nobody() -> None:
    new, findings = run_project({"train.py": PROGRAM + RUN})["train.py"]
    assert "tf.keras.layers.Dropout(0.5)(x)" in new and "is_training" not in new
    assert "TFM101" in {one.code for one in findings}


@pytest.mark.parametrize(("value", "dicts"), [("{'a': net}", True), ("dict(a=net)", True), ("tf.exp(net)", False)])
def test_predictions_of_a_method(value: str, dicts: bool) -> None:
    """Whether predictions are dicts is what the method gives, wherever it is written."""
    text = (
        PROGRAM.replace(
            "        loss =",
            "        if mode == tf.estimator.ModeKeys.PREDICT:\n"
            "            return tf.estimator.EstimatorSpec(mode, predictions=self.answer(net))\n        loss =",
        )
        + f"\n    def answer(self, net):\n        return {value}\n"
    )
    run = RUN.replace(
        "tf.estimator.Estimator(Net(1).model_fn).train", "est = tf.estimator.Estimator(Net(1).model_fn)\nest.train"
    )
    new, _ = run_project({"train.py": text + run + "for one in est.predict(input_fn):\n    print(one)\n"})["train.py"]
    assert ("yield dict(zip(predictions, values))" in new) is dicts
    assert ("yield from predictions" in new) is not dicts


def test_a_method_that_a_class_takes_from_elsewhere_is_not_read() -> None:
    """`network = plain` of a class says what the method is, whatever its base has by that name."""
    text = other(
        "return tf.layers.dropout(x, 0.5, training=self.is_training)", "return x * (2.0 if self.is_training else 3.0)"
    )
    child = "\n\ndef plain(self, x):\n    return x\n\n\nclass Child(Net):\n    network = plain\n"
    assert "TFM106" in run_or_blocked(text + child + RUN.replace("Net(1)", "Child(1)"))[1]
    dropout = PROGRAM + child + RUN.replace("Net(1)", "Child(1)")
    assert "TFM106" in run_or_blocked(dropout)[1]


def test_a_file_without_tensorflow_that_reads_the_attribute() -> None:
    texts = {"train.py": PROGRAM + RUN, "report.py": "from train import Net\n\nprint(Net(2).is_training)\n"}
    assert run_project(texts)["train.py"][0] == texts["train.py"]
    beside = {**texts, "report.py": "print('is_training')\n"}
    assert "tf.keras.Model" in run_project(beside)["train.py"][0]
