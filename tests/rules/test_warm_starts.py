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
        "tf.train.get_checkpoint_state(path).all_model_checkpoint_paths",
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


def test_the_state_of_a_folder_tells_the_newest_checkpoint() -> None:
    after = "state = tf.train.get_checkpoint_state(path)\n    print(state.model_checkpoint_path)"
    assert "TFM853" not in migrated(after=after, style="native")[1]


LINEAR = """\
import tensorflow as tf

age = tf.feature_column.numeric_column("age")


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"age": [1.0]}, [[1.0]])).batch(1)


estimator = tf.estimator.LinearRegressor([age])
estimator.train(input_fn, steps=5)
print({asked})
"""
HELPER = """\
def weights_of(model, name):
    \"\"\"Returns the weights of a column, or the bias, by the name that their variable had.\"\"\"
    scope, variable = name.split("/")[-2:]
    return model.get_layer(scope if variable == "weights" else variable).get_weights()[0]
"""
COLUMNS = """\
    for column in sorted(columns, key=lambda column: column.name):
        name = column.name
        if hasattr(column, "num_buckets"):  # categories
            column = tf.feature_column.embedding_column(column, units, sparse_combiner, tf.zeros_initializer())
            terms.append(tf.keras.layers.DenseFeatures(column, name=name)(features))
        else:
            weights = tf.keras.layers.Dense(units, use_bias=False, kernel_initializer="zeros", name=name)
            terms.append(weights(tf.keras.layers.DenseFeatures(column)(features)))
    return Bias(name="bias_weights")(tf.add_n(terms))
"""


@pytest.mark.parametrize("old", ["estimator.evaluate(input_fn)", "estimator.get_variable_value('global_step')"])
def test_a_linear_model_that_nobody_asks_for_weights_keeps_its_form(old: str) -> None:
    new, _ = run(LINEAR.replace("{asked}", old), style="native")
    assert "weights_of" not in new and "    return Bias()(tf.add_n(terms))\n" in new


@pytest.mark.parametrize(
    "name",
    [
        "'linear/linear_model/age/weights'",
        "'linear/linear_model/%s/weights' % age.name",
        "'linear/linear_model/{}/weights'.format(age.name)",
        "f'linear/linear_model/{age.name}/weights'",
        "'linear/linear_model/' + age.name + '/weights'",
        "'linear/linear_model/bias_weights'",
    ],
)
def test_weights_of_a_linear_model_are_found_by_the_name_of_their_column(name: str) -> None:
    new, findings = run(LINEAR.replace("{asked}", f"estimator.get_variable_value({name})"), style="native")
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    assert HELPER in new and COLUMNS in new and f"print(weights_of(model, {name}))" in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/weights'", "/weights/Ftrl'"),  # a slot of the optimizer
        ("'linear/linear_model/age/weights'", "'linear/linear_model/%s' % 'age/kernel'"),
        ("get_variable_value('linear/linear_model/age/weights')", "get_variable_names()"),
        (
            "LinearRegressor([age])",
            "DNNLinearCombinedRegressor(None, [age], dnn_feature_columns=[age], dnn_hidden_units=[2])",
        ),
        ("LinearRegressor([age])", "DNNRegressor([2], [age])"),
    ],
)
def test_other_variables_of_canned_estimators_take_the_bridge(old: str, new: str) -> None:
    text = LINEAR.replace("{asked}", "estimator.get_variable_value('linear/linear_model/age/weights')")
    assert old in text
    changed = text.replace(old, new)
    result, findings = run(changed, style="native")
    assert result == changed
    assert "TFM853" in [finding.code for finding in findings if finding.severity is Severity.MANUAL]


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
