"""Tables of functions are said as conditions where a model is made, and nowhere else: those that stay first."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.called_tables import with_called_tables
from migrator.program.parsed import ParsedFile
from tests.rules.programs import run_project

TOP = "import tensorflow as tf\n\n"
OPTIMIZERS = "OPTIMIZERS = {'sgd': tf.train.GradientDescentOptimizer, 'adam': tf.train.AdamOptimizer}\n\n"
MODEL = "def model_fn(features, labels, mode, params):\n{}    return tf.estimator.EstimatorSpec(mode, loss=loss)\n"
CHOICE = "optimizer = OPTIMIZERS[params['kind']](0.1)"


def model(*lines: str) -> str:
    return MODEL.format("".join(f"    {line}\n" for line in lines))


def said(text: str, *elsewhere: str) -> str:
    file = ParsedFile.parse(Path("train.py"), text)
    return with_called_tables(file, [file], elsewhere.__contains__).module.code


STAYS = {
    "a table that a line changes": TOP + OPTIMIZERS + "OPTIMIZERS['own'] = make\n\n" + model(CHOICE),
    "a table with two entries for one key": (
        TOP + "OPTIMIZERS = {'a': tf.train.AdamOptimizer, \"a\": tf.train.FtrlOptimizer}\n\n" + model(CHOICE)
    ),
    "a table with two names": TOP + OPTIMIZERS.replace(" =", " = OWN =") + model(CHOICE),
    "a table that is handed on": TOP + OPTIMIZERS + "register(OPTIMIZERS)\n\n" + model(CHOICE),
    "a table that is made twice": TOP + OPTIMIZERS * 2 + model(CHOICE),
    "a table that a method changes": TOP + OPTIMIZERS + "OPTIMIZERS.update(more)\n\n" + model(CHOICE),
    "a table with a key that is computed": (TOP + "OPTIMIZERS = {make(): tf.train.AdamOptimizer}\n\n" + model(CHOICE)),
    "a name of the function hides the table": TOP + OPTIMIZERS + model("OPTIMIZERS = params", CHOICE),
    "a name of the function hides what a lambda reads": (
        TOP + "RATE = 1\nOPTIMIZERS = {'a': lambda rate: make(RATE, rate)}\n\n" + model("RATE = 2", CHOICE)
    ),
    "a lambda that reads twice what is computed": (
        TOP + "LOSSES = {'a': lambda x: x * x}\n\n" + model("loss = LOSSES[params['kind']](f(labels))")
    ),
    "something is called before": TOP + OPTIMIZERS + model("loss = f(g(), OPTIMIZERS[params['kind']](0.1))"),
    "a call that may never be made": TOP + OPTIMIZERS + model("loss = f() or OPTIMIZERS[params['kind']](0.1)"),
    "a table of functions that make no model": (
        TOP + "def train():\n    pass\n\n\nCOMMANDS = {'train': train}\n\n\n" + model() + "\n\n"
        "def main(name):\n    COMMANDS[name]()\n"
    ),
    "no model here": TOP + "TABLE = {'a': tf.train.AdamOptimizer}\n\n\ndef f(key):\n    return TABLE[key](0.1)\n",
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    assert said(STAYS[name]) == STAYS[name]


SAID = {
    "a table of the file": (
        TOP + OPTIMIZERS + model(CHOICE),
        TOP
        + model(
            "if params['kind'] == 'sgd':",
            "    optimizer = tf.train.GradientDescentOptimizer(0.1)",
            "elif params['kind'] == 'adam':",
            "    optimizer = tf.train.AdamOptimizer(0.1)",
            "else:",
            "    raise KeyError(params['kind'])",
        ),
    ),
    "a table with an annotation": (
        TOP + OPTIMIZERS.replace(" =", ": dict =") + model("optimizer = OPTIMIZERS['adam'](0.1)"),
        TOP + model("optimizer = tf.train.AdamOptimizer(0.1)"),
    ),
    "a table with a default, asked by what is computed": (
        TOP + OPTIMIZERS + model("loss = OPTIMIZERS.get(kind(), tf.train.AdagradOptimizer)(0.1).minimize(loss)"),
        TOP
        + model(
            "key = kind()",
            "if key == 'sgd':",
            "    loss = tf.train.GradientDescentOptimizer(0.1).minimize(loss)",
            "elif key == 'adam':",
            "    loss = tf.train.AdamOptimizer(0.1).minimize(loss)",
            "else:",
            "    loss = tf.train.AdagradOptimizer(0.1).minimize(loss)",
        ),
    ),
    "a key that is known": (
        TOP + OPTIMIZERS + model("optimizer = OPTIMIZERS['adam'](0.1)"),
        TOP + model("optimizer = tf.train.AdamOptimizer(0.1)"),
    ),
    "lambdas, by what they give": (
        TOP + "LOSSES = dict(l1=lambda y, p: tf.abs(y - p))\n\n" + model("loss = LOSSES[params.loss](labels, f(x))"),
        TOP
        + model(
            'if params.loss == "l1":', "    loss = tf.abs(labels - f(x))", "else:", "    raise KeyError(params.loss)"
        ),
    ),
    "a function that gets a name first": (
        TOP + OPTIMIZERS + model("made = OPTIMIZERS['sgd']", "optimizer = made(0.1)"),
        TOP + model("optimizer = tf.train.GradientDescentOptimizer(0.1)"),
    ),
    "a table of the function's own, by mode": (
        TOP
        + model(
            "def train():",
            "    return f()",
            "made = {tf.estimator.ModeKeys.TRAIN: train, 'eval': g}",
            "loss = made[mode]()",
        ).replace("'eval': g", "tf.estimator.ModeKeys.EVAL: tf.zeros_like"),
        TOP
        + model(
            "def train():",
            "    return f()",
            "if mode == tf.estimator.ModeKeys.TRAIN:",
            "    loss = train()",
            "elif mode == tf.estimator.ModeKeys.EVAL:",
            "    loss = tf.zeros_like()",
            "else:",
            "    raise KeyError(mode)",
        ),
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_as_a_condition(name: str) -> None:
    before, after = SAID[name]
    assert said(before) == after


def test_a_table_in_the_file_of_a_helper() -> None:
    """The helper keeps the choice, and its file gets the optimizers of Keras."""
    helper = TOP + OPTIMIZERS + "\ndef optimizer_of(kind, rate):\n    return OPTIMIZERS[kind](rate)\n"
    train = (
        TOP
        + "from optimizers import optimizer_of\n\n"
        + "def model_fn(features, labels, mode, params):\n"
        + "    net = tf.layers.dense(features, 1)\n"
        + "    loss = tf.losses.mean_squared_error(labels, net)\n"
        + "    step = optimizer_of(params['kind'], 0.1).minimize(loss, tf.train.get_global_step())\n"
        + "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)\n\n"
        + "tf.estimator.Estimator(model_fn, params={'kind': 'adam'}).train(read, steps=3)\n"
    )
    read = "def read():\n    return tf.data.Dataset.from_tensor_slices((XS, YS)).batch(4)\n\n"
    train = train.replace("tf.estimator.Estimator(", read + "tf.estimator.Estimator(")
    new = run_project({"train.py": train, "optimizers.py": helper})
    assert (
        "    if kind == 'sgd':\n        return tf.keras.optimizers.legacy.SGD(learning_rate=rate)"
        in new["optimizers.py"][0]
    )
    assert "optimizer=optimizer_of(params['kind'], 0.1)" in new["train.py"][0]


def test_a_table_that_another_file_reads_stays_in_its_place() -> None:
    before, after = SAID["a key that is known"]
    assert said(before, "OPTIMIZERS") == after.replace(TOP, TOP + OPTIMIZERS)


OTHERS = {
    "a line changes it": "from train import OPTIMIZERS\n\nOPTIMIZERS['adam'] = make\n",
    "a method changes it": "import train\n\ntrain.OPTIMIZERS.update(adam=make)\n",
    "it has another name": "from train import OPTIMIZERS as TABLE\n\nTABLE['adam'] = make\n",
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("is_read", [True, False])
def test_a_table_that_another_file_changes_stays(name: str, is_read: bool) -> None:
    text, _ = SAID["a table of the file"]
    file = ParsedFile.parse(Path("train.py"), text)
    other = ParsedFile.parse(Path("other.py"), OTHERS[name])
    files = [file, other] if is_read else [file]
    assert with_called_tables(file, files, lambda name: True, lambda name: not is_read).module.code == text


def test_a_table_that_another_file_only_asks() -> None:
    text, after = SAID["a table of the file"]
    file = ParsedFile.parse(Path("train.py"), text)
    other = ParsedFile.parse(Path("other.py"), "import train\n\nprint(sorted(train.OPTIMIZERS))\n")
    new = with_called_tables(file, [file, other], lambda name: True, lambda name: False).module.code
    assert new == after.replace(TOP, TOP + OPTIMIZERS)
