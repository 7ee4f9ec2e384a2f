"""Configurations, specifications and optimizers that code of the file makes: native where their values are known."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

HEAD = """\
import sys

import tensorflow as tf

STEPS = 4
count = 0


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": [[1.0]]}, [[2.0]])).repeat().batch(1)


"""
MODEL = """\
def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["x"], 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


"""
CONFIG = "tf.estimator.RunConfig"
SPECS = "tf.estimator.TrainSpec(input_fn, 8), tf.estimator.EvalSpec(input_fn, 2)"
BOTH = f"tf.estimator.train_and_evaluate(estimator, {SPECS})"


def configured(made: str, helpers: str, driver: str = BOTH) -> str:
    return f"{HEAD}{helpers}\n\n{MODEL}estimator = tf.estimator.Estimator(model_fn, config={made})\n{driver}\n"


CONFIGS = [
    (
        "config('m', 4)",
        f"def config(folder, steps):\n    if steps is None:\n        return {CONFIG}(folder)\n"
        f"    return {CONFIG}(folder, save_checkpoints_steps=steps)",
    ),
    (
        "config('m')",
        "def config(folder):\n    settings = dict(model_dir=folder)\n    settings['save_checkpoints_steps'] = STEPS\n"
        f"    return {CONFIG}(**settings)",
    ),
    ("config('m', 4)", f"config = lambda folder, steps: {CONFIG}(folder, save_checkpoints_steps=steps)"),
    (
        "Run.config('m', STEPS)",
        "class Run(object):\n    @staticmethod\n    def config(folder, steps):\n"
        f"        return {CONFIG}(folder, save_checkpoints_steps=steps)",
    ),
    (
        "Run(4).config('m')",
        "class Run:\n    def __init__(self, steps):\n        self.steps = steps\n\n    def config(self, folder):\n"
        f"        return {CONFIG}(folder, save_checkpoints_steps=self.steps)",
    ),
]


@pytest.mark.parametrize(("made", "helpers"), CONFIGS)
def test_a_configuration_that_code_of_the_file_makes(made: str, helpers: str) -> None:
    new, findings = run(configured(made, helpers))
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "tf.estimator" not in new and 'model_dir = "m"' in new.replace("'", '"')
    assert "config(" not in new.split("def model_fn")[0]
    assert "// 4" in new or "// STEPS" in new


@pytest.mark.parametrize(
    "helpers",
    [
        "def config(folder):\n    print(folder)\n    steps = 4\n"
        f"    return {CONFIG}(folder, save_checkpoints_steps=steps)",
        "def config(folder):\n    global count\n    count += 1\n    steps = 4\n"
        f"    return {CONFIG}(folder, save_checkpoints_steps=steps)",
        "def config(folder):\n    steps = 4\n    if len(sys.argv) > 1:\n        steps = 2\n"
        f"    return {CONFIG}(folder, save_checkpoints_steps=steps)",
        f"def made(folder, steps):\n    return {CONFIG}(folder, save_checkpoints_steps=steps)\n\n\n"
        "def config(folder):\n    global count\n    count += 1\n    return made(folder, 4)",
    ],
)
def test_what_does_more_or_is_not_known_stays(helpers: str) -> None:
    text = configured("config('m')", helpers)
    new, findings = run(text)
    assert new == text and [one for one in findings if one.severity is Severity.MANUAL]


def test_specifications_that_are_unpacked() -> None:
    helpers = (
        "def specs(steps):\n    train = tf.estimator.TrainSpec(input_fn, max_steps=steps)\n"
        "    evaluation = tf.estimator.EvalSpec(input_fn, steps=2)\n    return train, evaluation"
    )
    new, findings = run(configured("None", helpers, "tf.estimator.train_and_evaluate(estimator, *specs(8))"))
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "def specs" not in new and "steps_per_epoch=8" in new and "steps=2)" in new


CANNED = (
    'columns = [tf.feature_column.numeric_column("x")]\n'
    "estimator = tf.estimator.DNNRegressor([2], columns, optimizer={})\nestimator.train(input_fn, steps=3)\n"
)


def test_an_optimizer_of_what_its_function_is_given() -> None:
    helpers = (
        "def make(rate, clip=None):\n    optimizer = tf.train.AdamOptimizer(rate)\n    if clip is None:\n"
        "        return optimizer\n    return tf.contrib.estimator.clip_gradients_by_norm(optimizer, clip)\n\n\n"
    )
    new, findings = run(HEAD + helpers + CANNED.format("make(0.01)"))
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "legacy.Adam(learning_rate=0.01" in new and "def make(" not in new and "clipnorm" not in new
    new, findings = run(HEAD + helpers + CANNED.format("make(0.01, 5.0)"))
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "legacy.Adam(learning_rate=0.01" in new and "clipnorm=5.0" in new
    text = HEAD + helpers.replace("    if clip", "    print(rate)\n    if clip") + CANNED.format("make(0.01)")
    assert run(text)[0] == text


@pytest.mark.parametrize(
    "made",
    [
        'getattr(tf.train, "AdamOptimizer")(0.01)',
        'TABLE["adam"](learning_rate=0.01)',
    ],
)
def test_an_optimizer_whose_class_has_another_name(made: str) -> None:
    table = 'TABLE = {"adam": tf.train.AdamOptimizer, "sgd": tf.train.GradientDescentOptimizer}\n\n\n'
    new, findings = run(HEAD + table * ("TABLE" in made) + CANNED.format(made))
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "legacy.Adam(learning_rate=0.01" in new and "TABLE" not in new and "getattr" not in new.split("def make_")[0]


def test_an_optimizer_of_a_class_that_is_not_known_stays() -> None:
    text = HEAD + CANNED.format("getattr(tf.train, sys.argv[1])(0.01)")
    new, findings = run(text)
    assert new == text and [one for one in findings if one.severity is Severity.MANUAL]
