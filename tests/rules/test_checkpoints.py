"""Checkpoints of a model_dir: an Estimator's are left alone, and the finding says what to do."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[1.0]])).batch(1)


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn{given})
estimator.train(input_fn, steps=5)
"""


def test_checkpoints_of_an_estimator_are_not_loaded() -> None:
    new, findings = run(PROGRAM.format(given=", 'trained'"))
    assert [finding.code for finding in findings if finding.code == "TFM850"] == ["TFM850"]
    start = new.index("checkpoint = tf.train")
    assert new[start:].splitlines()[:3] == [
        "checkpoint = tf.train.latest_checkpoint(model_dir)",
        'if checkpoint and not os.path.basename(checkpoint).startswith("model.ckpt"):  # an Estimator\'s',
        "    load_checkpoint(model, checkpoint)",
    ]


def test_without_a_model_dir_there_is_nothing_to_say() -> None:
    _, findings = run(PROGRAM.format(given=""))
    assert "TFM850" not in [finding.code for finding in findings]


def test_a_checkpoint_does_not_bring_its_learning_rate() -> None:
    new, _ = run(PROGRAM.format(given=", 'trained'"))
    assert new.count("load_checkpoint(") == 2 and new.count("load_weights(") == 1
    loop, _ = run(PROGRAM.format(given=", 'trained'"), loop="custom")
    restores = loop.index("self.checkpoints.restore_or_initialize()")
    assert loop.index("given = [(setting,") < restores < loop.index("setting.assign(value)")


def test_what_only_evaluates_loads_all() -> None:
    text = PROGRAM.format(given=", 'trained'").replace("train(input_fn, steps=5)", "evaluate(input_fn)")
    new, _ = run(text)
    assert "    model.load_weights(checkpoint)\n" in new and "load_checkpoint(" not in new


def test_momentum_at_a_rate_that_may_be_another_next_time() -> None:
    """Keras keeps the momentum times the rate: the slots of a checkpoint would be of the old one."""
    momentum = PROGRAM.replace("mode):", "mode, params):").replace(
        "GradientDescentOptimizer(0.1)", 'MomentumOptimizer(params["rate"], 0.9)'
    )
    kept, _ = run(momentum.format(given=", 'trained', params={'rate': 0.1}"))
    alone, _ = run(momentum.format(given=", params={'rate': 0.1}"))
    assert "class MomentumOptimizer(tf.keras.optimizers.legacy.SGD):" in kept
    assert "tf.keras.optimizers.legacy.SGD(learning_rate=params" in alone


EMPTY = {
    "a flag": ("flags = tf.app.flags\nflags.DEFINE_string('where', None, '')\n", "flags.FLAGS.where"),
    "an empty flag": ("flags = tf.app.flags\nflags.DEFINE_string('where', '', '')\n", "flags.FLAGS.where"),
    "an argument": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--where')\nargs = p.parse_args()\n",
        "args.where",
    ),
    "a name": ("where = None\n", "where"),
    "the environment": ("import os\n", "os.environ.get('WHERE')"),
}


def in_folder(case: tuple[str, str]) -> str:
    before, folder = case
    new, findings = run(PROGRAM.format(given=f", {folder}").replace("estimator = ", f"{before}estimator = "))
    assert "model.fit" in new, findings
    return new


@pytest.mark.parametrize("case", EMPTY)
def test_no_folder_was_a_temporary_one(case: str) -> None:
    assert f"model_dir = {EMPTY[case][1]} or tempfile.mkdtemp()\n" in in_folder(EMPTY[case])


@pytest.mark.parametrize("case", EMPTY)
def test_a_folder_that_is_there_is_taken(case: str) -> None:
    if case == "the environment":
        given = EMPTY[case][0], "os.environ.get('WHERE', '/m')"
    else:
        text = EMPTY[case][0].replace("None", "'/m'").replace("'where', ''", "'where', '/m'")
        given = text.replace("'--where'", "'--where', default='/m'"), EMPTY[case][1]
    assert "tempfile" not in in_folder(given)


@pytest.mark.parametrize(
    ("before", "may_be_empty"),
    [
        ("where = None\nwhere = where if where else None\n", True),
        ("where = '/m'\nwhere = where if where else '/n'\n", False),
        ("other = '/m'\nwhere = other\nother = where if where else '/n'\n", False),
        ("other = ''\nwhere = other\nother = where if where else '/n'\n", True),
    ],
)
def test_a_folder_that_is_given_itself(before: str, may_be_empty: bool) -> None:
    """As in `model_dir = model_dir if model_dir else "m"`: the search for its values never ended (TFM905)."""
    assert ("tempfile" in in_folder((before, "where"))) is may_be_empty


PREDICTS = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices([[1.0]]).batch(1)


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=outputs)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


{made}
{driver}
"""
PREDICT = "print(list(estimator.predict(input_fn)))"
ENDS = 'raise ValueError(f"{checkpoint} is an Estimator\'s checkpoint: `tf-migrate checkpoint` carries it over.")'
SKIPS = 'if checkpoint and not os.path.basename(checkpoint).startswith("model.ckpt"):  # an Estimator\'s'


@pytest.mark.parametrize(
    "made",
    [
        'estimator = tf.estimator.Estimator(model_fn, "model")',
        'def build(folder):\n    return tf.estimator.Estimator(model_fn, folder)\n\n\nestimator = build("model")',
        "class Model:\n    def __init__(self):\n"
        "        self.estimator = tf.estimator.Estimator(model_fn, 'model')\n\n\n"
        "estimator = Model().estimator",
    ],
)
@pytest.mark.parametrize("trains", [True, False])
def test_what_trains_nothing_ends_where_the_checkpoints_are_an_estimators(made: str, trains: bool) -> None:
    driver = f"estimator.train(lambda: labelled(), steps=3)\n{PREDICT}" if trains else PREDICT
    text = PREDICTS.replace("{made}", made).replace("{driver}", driver)
    text = text.replace(
        "def model_fn", "def labelled():\n    return input_fn().map(lambda x: (x, x))\n\n\ndef model_fn", 1
    )
    new, findings = run(text)
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    assert (ENDS in new, SKIPS in new) == (not trains, trains)
