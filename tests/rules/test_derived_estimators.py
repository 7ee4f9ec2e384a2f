"""Classes derived from an Estimator: those that only say how it is made are functions that make one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from migrator.program.derived_estimators import with_functions_for_classes
from migrator.program.parsed import ParsedFile
from tests.rules.programs import run_project

TOP = "import tensorflow as tf\n\n\ndef model_fn(features, labels, mode, params):\n    pass\n\n\n"
MODEL = """\
class Model(tf.estimator.Estimator):
    \"\"\"A network.\"\"\"

    def __init__(self, rate, **kwargs):
        params = {"rate": rate}
        super(Model, self).__init__(model_fn, params=params, **kwargs)
"""
INSTEAD = """\
def Model(rate, **kwargs):
    \"\"\"A network.\"\"\"
    params = {"rate": rate}
    return tf.estimator.Estimator(model_fn, params=params, **kwargs)
"""
DRIVER = "\n\nmodel = Model(0.1)\n"


def plain(*texts: str, unread: str = "") -> list[str]:
    """The texts of `model.py` and others after it; `unread` is one that has not been parsed."""
    files = [ParsedFile.parse(Path("model.py"), texts[0])]
    files += [ParsedFile.parse(Path(f"train{at}.py"), text) for at, text in enumerate(texts[1:])]
    words = {file.path: frozenset(re.findall(r"\w+", file.text)) for file in files}
    words[Path("other.py")] = frozenset(unread.split())
    return [file.module.code for file in with_functions_for_classes(files, words)]


def test_a_class_that_only_says_how_it_is_made() -> None:
    assert plain(TOP + MODEL + DRIVER) == [TOP + INSTEAD + DRIVER]


def test_of_another_file() -> None:
    for caller in ("import model\n\nmodel.Model(0.1)\n", "from model import Model\n\nModel(0.1)\n"):
        assert plain(TOP + MODEL, caller) == [TOP + INSTEAD, caller]


STAYS = {
    "another method": MODEL + "\n    def told(self):\n        return 1\n",
    "an attribute": MODEL + "        self.rate = rate\n",
    "the object handed on": MODEL.replace("model_fn, params", "self.made, params"),
    "only one way makes it": MODEL.replace("        super", "        if rate:\n            super"),
    "a way out before": MODEL.replace("        params =", "        if not rate:\n            return\n        params ="),
    "two bases": MODEL.replace("(tf.estimator.Estimator)", "(tf.estimator.Estimator, object)"),
    "a decorator": "@known\n" + MODEL,
    "a comment that would be lost": MODEL.replace('network."""\n', 'network."""\n\n    # for now\n'),
    "somebody asks what it is": MODEL + "\n\nprint(isinstance(3, Model))\n",
    "somebody derives from it": MODEL + "\n\nclass Other(Model):\n    pass\n",
}


@pytest.mark.parametrize("name", STAYS)
def test_a_class_that_says_more(name: str) -> None:
    text = TOP + STAYS[name] + DRIVER
    assert plain(text) == [text]


def test_somebody_else_knows_it() -> None:
    text = TOP + MODEL + DRIVER
    assert plain(text, "import model\n\n\nclass Other(model.Model):\n    pass\n")[0] == text
    assert plain(text, unread="from model import Model") == [text]


def test_native_over_two_files() -> None:
    """The class stands beside the model_fn, and another file trains it."""
    model = """\
import tensorflow as tf


def model_fn(features, labels, mode, params):
    output = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    train_op = tf.train.AdamOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


"""
    train = """\
import tensorflow as tf
import model


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


estimator = model.Model(rate=0.1, model_dir="made")
estimator.train(input_fn, steps=3)
"""
    derived = MODEL.replace('        params = {"rate": rate}\n', "").replace("params=params", "params=dict(rate=rate)")
    made = run_project({"model.py": model + derived, "train.py": train}, style="auto")
    assert {one.code for _, findings in made.values() for one in findings}.isdisjoint({"TFM155", "TFM181"})
    assert "tf.keras.Model(" in made["model.py"][0] and ".fit(" in made["train.py"][0]
