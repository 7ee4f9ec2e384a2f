"""Sessions, devices and graphs around what drives an Estimator (program/surroundings.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.parsed import ParsedFile
from migrator.program.surroundings import without_surroundings
from tests.rules.programs import run_project

TOP = "import tensorflow as tf\n\nestimator = tf.estimator.Estimator(model_fn)\n"
GONE = {
    "a session that runs nothing": (
        "with tf.Session() as sess:\n    estimator.train(input_fn, steps=1)\n",
        "estimator.train(input_fn, steps=1)\n",
    ),
    "a session that initializes what is not there": (
        "with tf.Session() as sess:\n    sess.run(tf.global_variables_initializer())\n    estimator.train(input_fn)\n",
        "estimator.train(input_fn)\n",
    ),
    "settings that nothing else reads": (
        "config = tf.ConfigProto()\nconfig.gpu_options.allow_growth = True\n"
        "with tf.Session(config=config):\n    estimator.train(input_fn)\n",
        "estimator.train(input_fn)\n",
    ),
    "a device": ("with tf.device('/gpu:0'):\n    estimator.train(input_fn)\n", "estimator.train(input_fn)\n"),
    "one inside of another": (
        "with tf.Session() as sess:\n    first()\n    sess.run(tf.tables_initializer())\n"
        "    with tf.device('/cpu:0'):\n        estimator.train(input_fn)\n        second()\n"
        "    third()\n    fourth()\n",
        "first()\nestimator.train(input_fn)\nsecond()\nthird()\nfourth()\n",
    ),
    "a session around operations that nothing runs": (
        "with tf.Session():\n    x = tf.constant(1.0)\n    estimator.train(input_fn)\n",
        "x = tf.constant(1.0)\nestimator.train(input_fn)\n",
    ),
    "a graph that has a name": (
        "graph = tf.Graph()\nwith graph.as_default():\n    estimator.evaluate(input_fn)\n",
        "graph = tf.Graph()\nestimator.evaluate(input_fn)\n",
    ),
    "one in a function that is called in another": (
        "def run():\n    with tf.device('/cpu:0'):\n        estimator.train(input_fn)\n\n\n"
        "with tf.Graph().as_default(), tf.Session():\n    run()\n    estimator.evaluate(input_fn)\n",
        "def run():\n    estimator.train(input_fn)\n\n\nrun()\nestimator.evaluate(input_fn)\n",
    ),
}
STAYS = {
    "a session that runs something": "with tf.Session() as sess:\n    estimator.train(f)\n    sess.run(initial)\n",
    "a session that is read behind it": "with tf.Session() as sess:\n    estimator.train(f)\nprint(sess)\n",
    "a tensor that asks for its value": "with tf.Session():\n    estimator.train(f)\n    print(scale.eval())\n",
    "a device of something else": "with tf.device('/cpu:0'):\n    estimator.train(f)\n    x = tf.constant(1.0)\n",
    "a device without an Estimator": "with tf.device('/cpu:0'):\n    table = read()\n",
    "a device that is computed": "with tf.device(tf.train.replica_device_setter(1)):\n    estimator.train(f)\n",
    "a graph that is read": "g = tf.Graph()\nwith g.as_default():\n    estimator.train(f)\nprint(g)\n",
    "a strategy": "with strategy.scope():\n    estimator.train(f)\n",
}


def left(text: str) -> tuple[str, list[str]]:
    file, gone = without_surroundings(ParsedFile.parse(Path("train.py"), TOP + text))
    return file.module.code.removeprefix(TOP), [one.code for one in gone]


@pytest.mark.parametrize("name", GONE)
def test_what_does_nothing_to_an_estimator_is_left_out(name: str) -> None:
    before, after = GONE[name]
    text, codes = left(before)
    assert text == after and codes and set(codes) == {"TFM124"}


@pytest.mark.parametrize("name", STAYS)
def test_what_may_do_something_stays(name: str) -> None:
    assert left(STAYS[name]) == (STAYS[name], [])


def test_settings_that_a_run_config_reads_stay() -> None:
    text = (
        "config = tf.ConfigProto()\nestimator = tf.estimator.Estimator(f, config=tf.estimator.RunConfig("
        "session_config=config))\nwith tf.Session(config=config):\n    estimator.train(g)\n"
    )
    assert left(text)[0].startswith("config = tf.ConfigProto()\n") and "with" not in left(text)[0]


def test_memory_of_gpus_is_told() -> None:
    text = (
        "with tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth={}))):\n    estimator.train(f)\n"
    )
    _, gone = without_surroundings(ParsedFile.parse(Path("train.py"), TOP + text.format("True")))
    assert "set_memory_growth" in gone[0].message
    _, gone = without_surroundings(ParsedFile.parse(Path("train.py"), TOP + GONE["a session that runs nothing"][0]))
    assert "memory" not in gone[0].message


def test_a_canned_estimator_that_is_written_out_may_stand_in_a_session() -> None:
    text = (
        "import tensorflow as tf\n\n\ndef input_fn():\n"
        "    return tf.data.Dataset.from_tensor_slices(({'x': [[1.0]]}, [[2.0]])).batch(1)\n\n\n"
        "x = tf.feature_column.numeric_column('x')\nestimator = tf.estimator.LinearRegressor([x])\n"
        "with tf.Session() as sess:\n    estimator.train(input_fn, steps=1)\n"
    )
    new, findings = run_project({"train.py": text}, style="native")["train.py"]
    assert {"TFM101", "TFM124"} <= {one.code for one in findings}
    assert next(one.line for one in findings if one.code == "TFM124") == 10 and "Session" not in new
