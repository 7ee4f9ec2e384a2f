"""warm_start_from and the variables that an Estimator is asked for: what is written for them, and what is refused."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import run

PROGRAM = """\
import os

import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[1.0]])).batch(1)


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(path, folder):
    {before}
    estimator = tf.estimator.Estimator(model_fn{given})
    estimator.train(input_fn, steps=5)
    {after}
"""
SETTINGS = "tf.estimator.WarmStartSettings"


def migrated(before: str = "pass", given: str = "", after: str = "pass", style: str = "auto") -> tuple[str, list[str]]:
    new, findings = run(PROGRAM.format(before=before, given=given, after=after), style=style)
    return new, [finding.code for finding in findings if finding.severity is not Severity.MIGRATED]


def manual(before: str = "pass", given: str = "", after: str = "pass", style: str = "auto") -> list[Finding]:
    text = PROGRAM.format(before=before, given=given, after=after)
    new, findings = run(text, style=style)
    assert new == text
    return [finding for finding in findings if finding.severity is Severity.MANUAL]


def test_the_own_model_dir_is_no_other_start() -> None:
    new, codes = migrated(given=", model_dir=folder, warm_start_from=folder")
    assert "warm_start" not in new
    assert "TFM851" in codes


@pytest.mark.parametrize(
    ("before", "given"),
    [
        ("pass", "'before'"),
        ("pass", f"{SETTINGS}(path, ['a', 'b'])"),
        (f"start = path\n    if path:\n        start = {SETTINGS}(path)", "start"),
    ],
)
def test_other_warm_starts_need_the_names_that_the_bridge_keeps(before: str, given: str) -> None:
    given = f", warm_start_from={given}"
    assert "TFM146" in {finding.code for finding in manual(before, given, style="native")}
    new, codes = migrated(before, given)
    assert codes == ["TFM155"] and given.replace("tf.estimator.", "keras_estimator.") in new


def test_variables_by_name_take_the_bridge() -> None:
    after = "print(estimator.get_variable_value('dense/kernel'), estimator.get_variable_names())"
    assert "TFM853" in {finding.code for finding in manual(after=after, style="native")}
    new, codes = migrated(after=after)
    assert codes == ["TFM155"] and after in new


@pytest.mark.parametrize(
    "read",
    [
        "tf.train.load_checkpoint(path).get_tensor('dense/kernel')",
        "tf.train.load_variable(path, 'dense/kernel')",
        "tf.train.list_variables(estimator.model_dir)",
        "len(tf.gfile.Glob(path + '/model.ckpt-*'))",
        "int(tf.train.latest_checkpoint(path).split('-')[-1])",
    ],
)
def test_checkpoints_that_are_read_by_name_take_the_bridge(read: str) -> None:
    after = f"print({read})"
    assert [finding.code for finding in manual(after=after, style="native")] == ["TFM853"]
    new, codes = migrated(after=after)
    assert codes == ["TFM155"] and after in new
    assert "TFM853" not in migrated(after="print('see model.ckpt for more')", style="native")[1]


@pytest.mark.parametrize(
    ("after", "is_refused"),
    [
        ("newest = tf.train.latest_checkpoint(path)\n    print(newest, newest is None)", False),
        ("newest = tf.train.latest_checkpoint(path)\n    if newest:\n        print('goes on')", False),
        ("newest: str = tf.train.latest_checkpoint(path)\n    print(newest)", False),
        ("newest = tf.train.latest_checkpoint(path)\n    same = newest\n    print(same)", False),
        ("newest = tf.train.latest_checkpoint(path)\n    same = newest\n    print(same[-1])", True),
        ("newest = tf.train.latest_checkpoint(path)\n    same = newest\n    newest = same\n    print(newest)", False),
        ("newest = tf.train.latest_checkpoint(path)\n    print(os.path.basename(newest))", True),
        ("newest = tf.train.latest_checkpoint(path)\n    print(int(newest.split('-')[-1]))", True),
    ],
)
def test_the_name_of_a_checkpoint_may_be_told_and_not_taken_apart(after: str, is_refused: bool) -> None:
    assert ("TFM853" in migrated(after=after, style="native")[1]) == is_refused


@pytest.mark.parametrize("name", ["'global_step'", "tf.GraphKeys.GLOBAL_STEP"])
def test_the_global_step_is_the_optimizers(name: str) -> None:
    new, _ = migrated(after=f"print(estimator.get_variable_value({name}))", style="native")
    assert "print(int(model.optimizer.iterations.numpy()))" in new


def test_variables_are_asked_for_behind_the_training() -> None:
    text = PROGRAM.format(before="pass", given="", after="pass").replace(
        "    estimator.train(input_fn, steps=5)\n",
        "    print(estimator.get_variable_value('global_step'))\n"
        "    tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=5), "
        "tf.estimator.EvalSpec(input_fn))\n",
    )
    new, findings = run(text)
    assert new == text
    assert [finding.code for finding in findings if finding.severity is Severity.MANUAL] == ["TFM853"]
