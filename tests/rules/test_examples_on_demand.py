"""Scripts that serve an Estimator example by example, through a generator: `FastPredict`."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run, run_project

MODEL = """\
import tensorflow as tf


def model_fn(features, labels, mode):
    {dict}outputs = tf.layers.dense(features, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=outputs)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
SERVE = """\
import tensorflow as tf

from model import model_fn


class {name}(object):
    def __init__(self, estimator, input_fn):
        self.estimator = estimator
        self.input_fn = input_fn
        self.results = None

    def generate(self):
        while True:
            yield self.example

    def predict(self, example):
        self.example = example
        if self.results is None:
            self.results = self.estimator.predict(self.input_fn(self.generate))
        return next(self.results)


def input_of(generator):
    def input_fn():
        return tf.data.Dataset.from_generator(generator, tf.float32, [1]).batch(1)

    return input_fn


if __name__ == "__main__":
    served = {name}(tf.estimator.Estimator(model_fn, "model"), input_of)
    print(served.predict([1.0]), served.predict([2.0]))
"""
OPTIONS = """\
        options = tf.data.Options()
        options.experimental_optimization.apply_default_optimizations = False  # these read examples ahead
        for batch in dataset.with_options(options):
"""


def project(**files: str) -> dict[str, str]:
    return {"model.py": MODEL.replace("{dict}", ""), **{f"{name}.py": text for name, text in files.items()}}


def blocked(texts: dict[str, str]) -> list[str]:
    found = run_project(texts)
    return [f.code for _, findings in found.values() for f in findings if f.severity is Severity.MANUAL]


def test_data_that_no_python_code_makes_may_be_read_ahead() -> None:
    predict = "print(list(estimator.predict(input_fn)))"
    new, _ = run(program(spec=", predictions=logits", driver=f"estimator.train(input_fn, steps=3)\n{predict}"))
    assert "for batch in dataset:\n" in new and "options" not in new


def test_no_example_is_made_before_it_is_asked_for() -> None:
    found = run_project(project(fast=SERVE.replace("{name}", "Fast")))
    assert "TFM101" in {finding.code for finding in found["fast.py"][1]}
    assert OPTIONS in found["fast.py"][0]


def test_scripts_that_nobody_imports_do_not_share_their_attributes() -> None:
    fast, served = SERVE.replace("{name}", "Fast"), SERVE.replace("{name}", "Served")
    assert not blocked(project(fast=fast, served=served))


@pytest.mark.parametrize(
    "line",
    [
        "import served",
        "from served import Served",
        "from . import (\n    tools,\n    served,\n)",
        'module = __import__("served")',
        'exec(open("served.py").read())',
    ],
)
def test_scripts_that_another_file_may_run_may_have_its_estimator(line: str) -> None:
    fast, served = SERVE.replace("{name}", "Fast"), SERVE.replace("{name}", "Served")
    assert "TFM602" in blocked(project(fast=f"{line}\n{fast}", served=served))


@pytest.mark.parametrize("asks", [True, False])
def test_features_may_be_a_dict_for_some_and_a_tensor_for_others(asks: bool) -> None:
    reading = 'if isinstance(features, dict):\n        features = features["x"]\n    ' if asks else ""
    reading = reading or 'features = features["x"]\n    '
    export = """\
import tensorflow as tf

from model import model_fn


def serving():
    x = tf.placeholder(tf.float32, [None, 1])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


tf.estimator.Estimator(model_fn, "model").export_saved_model("saved", serving)
"""
    found = run_project({"model.py": MODEL.replace("{dict}", reading), "export.py": export})
    assert not [f for _, findings in found.values() for f in findings if f.severity is Severity.MANUAL]
    assert ("    if not isinstance(features, dict):\n        return features\n" in found["model.py"][0]) == asks
