"""Canned Estimators of tf.contrib.learn as native programs: what is written out, and what is left to the bridge."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.program.canned import write_out
from migrator.program.parsed import ParsedFile
from tests.rules.programs import run

TOP = """\
import numpy as np
import tensorflow as tf

data, target = np.ones([8, 4], np.float32), np.arange(8) % 3
"""
ARRAY = '[tf.contrib.layers.real_valued_column("", dimension=4)]'
NAMED = '[tf.contrib.layers.real_valued_column("age"), tf.contrib.layers.real_valued_column("size")]'


def program(made: str, drive: str, before: str = "") -> str:
    return f"{TOP}{before}m = tf.contrib.learn.{made}\n{drive}"


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "contrib" not in new
    compile(new, "new", "exec")
    return new


def refused(text: str) -> str:
    """Why Estimators of a program are not written out."""
    assert run(text)[0] == text
    path = Path("train.py")
    file = write_out([ParsedFile.parse(path, text)], {path: text})[0]
    return " ".join(message for _, message in file.refused.values())


def test_arrays_and_one_column_without_a_name() -> None:
    made = "DNNClassifier(feature_columns=columns, hidden_units=[10, 20], n_classes=3, model_dir='m')"
    drive = "m.fit(x=data, y=target, steps=20)\nprint(m.evaluate(x=data, y=target)['accuracy'])\n"
    new = migrated(program(made, drive + "print(list(m.predict(data[:2])))\n", f"columns = {ARRAY}\n"))
    assert "net = tf.cast(features, tf.float32)\n    for units in [10, 20]:" in new
    assert "columns" not in new  # nothing reads them any more
    assert "legacy.Adagrad(learning_rate=0.05, initial_accumulator_value=0.1, epsilon=1e-30)" in new
    assert "SparseCategoricalCrossentropy(from_logits=True)" in new  # a mean: no sum over the batch
    assert "tf.data.Dataset.from_tensors((data, target)).repeat(),\n    steps_per_epoch=20" in new
    assert 'm.evaluate(tf.data.Dataset.from_tensors((data, target)), return_dict=True)["accuracy"]' in new.replace(
        "'accuracy'", '"accuracy"'
    )
    assert 'list(one["classes"] for one in predict(predictor, tf.data.Dataset.from_tensors(data[:2])))' in new


def test_batches_are_those_of_rows_in_a_new_order_each_epoch() -> None:
    text = program(f"LinearRegressor({ARRAY})", "m.fit(data, data[:, 0], batch_size=3, steps=5)\n")
    new, findings = run(text)
    assert "from_tensor_slices((data, data[:, 0])).shuffle(len(data)).batch(3).repeat()" in new
    assert "TFM611" in {f.code for f in findings}


def test_inferred_columns_are_the_array() -> None:
    before = "columns = tf.contrib.learn.infer_real_valued_columns_from_input(data)\n"
    drive = "m.fit(data, target, steps=5)\nfor value in m.predict_scores(x=data):\n    print(value)\n"
    new = migrated(program("LinearRegressor(feature_columns=columns)", drive, before))
    assert "net = tf.keras.layers.Flatten()(tf.cast(features, tf.float32))" in new
    assert "tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.Zeros())(net)" in new
    assert "legacy.Ftrl(learning_rate=0.2)" in new
    assert '(one["scores"] for one in predict(' in new


INPUT = """\
def input_fn():
    features = {"age": tf.constant(data[:, 0]), "size": tf.constant(data[:, 1])}
    return features, tf.constant(target)


"""


def test_the_rate_of_a_linear_model_comes_from_its_columns() -> None:
    drive = "m.fit(input_fn=input_fn, steps=5)\nprint(m.evaluate(input_fn=lambda: input_fn(), steps=1))\n"
    new = migrated(program(f"LinearClassifier({NAMED})", drive, INPUT))
    assert "legacy.Ftrl(learning_rate=0.2)" in new
    many = f"{NAMED} + [tf.contrib.layers.real_valued_column(k) for k in data]"
    new = migrated(program(f"LinearClassifier({many})", drive, INPUT))
    assert "legacy.Ftrl(learning_rate=min(0.2, len(feature_columns) ** -0.5))" in new
    assert '"labels/prediction_mean": tf.keras.metrics.Mean(' in new
    assert "tf.data.Dataset.from_tensors(input_fn()).repeat()" in new


def test_a_combined_model_that_counts_each_step_once() -> None:
    columns = f"linear_feature_columns={NAMED}, dnn_feature_columns={NAMED}, dnn_hidden_units=[4]"
    drive = "m.fit(input_fn=input_fn, steps=5)\n"
    new = migrated(program(f"DNNLinearCombinedRegressor({columns}, fix_global_step_increment_bug=True)", drive, INPUT))
    assert "deep=tf.keras.optimizers.legacy.Adagrad(learning_rate=0.05" in new
    assert "linear=tf.keras.optimizers.legacy.Ftrl(learning_rate=0.2)" in new
    assert "counts twice" in refused(program(f"DNNLinearCombinedRegressor({columns})", drive, INPUT))


def test_one_that_a_function_makes_and_another_uses() -> None:
    text = (
        TOP
        + INPUT
        + f"""\
def build(kind):
    if kind == "wide":
        m = tf.contrib.learn.LinearClassifier({NAMED})
    else:
        m = tf.contrib.learn.DNNClassifier([4], {NAMED})
    return m


def main(kind):
    m = build(kind)
    m.fit(input_fn=input_fn, steps=5)
    print(m.evaluate(input_fn=input_fn, steps=1))


main("deep")
"""
    )
    new = migrated(text)
    assert "linear_classifier(features, feature_columns=" in new and "dnn_classifier(features, feature_columns=" in new


@pytest.mark.parametrize(
    ("made", "drive", "reason"),
    [
        ("weight_column_name='w'", "m.fit(data, target, steps=5)", "weight_column_name"),
        ("enable_centered_bias=True", "m.fit(data, target, steps=5)", "enable_centered_bias"),
        ("gradient_clip_norm=1.0", "m.fit(data, target, steps=5)", "gradient_clip_norm"),
        ("", "m.fit(data, target, steps=5, monitors=[tf.train.StepCounterHook()])", "monitors"),
        ("", "m.fit(data, target, steps=5); m.evaluate(data, target, metrics={'a': tf.metrics.mean})", "metrics"),
        ("", "m.fit(data, target, steps=5); print(m.predict(data, as_iterable=False))", "iterable"),
        ("", "m.partial_fit(data, target)", "partial_fit"),
        ("", "m.fit(data, target, steps=5)\ndef show(one):\n    return one.predict(data)", "whose `predict`"),
    ],
)
def test_what_the_bridge_alone_knows(made: str, drive: str, reason: str) -> None:
    text = program(f"LinearRegressor({ARRAY}{', ' * bool(made)}{made})", drive + "\n")
    assert reason in refused(text)


def test_constant_tensors_of_an_input_function_are_one_batch_again_and_again() -> None:
    text = (
        TOP
        + INPUT
        + """\
columns = [tf.feature_column.numeric_column("age"), tf.feature_column.numeric_column("size")]
m = tf.estimator.DNNRegressor([4], columns)
m.train(input_fn, steps=5)
print(m.evaluate(input_fn=lambda: input_fn(), steps=1))
"""
    )
    new = migrated(text)
    assert "m.fit(tf.data.Dataset.from_tensors(input_fn()).repeat(), steps_per_epoch=5)" in new
    assert INPUT in new
    for other in ("tf.random_uniform([8])", "tf.train.batch([data[:, 1]], 8)", "tf.constant(np.random.rand(8))"):
        assert run(text.replace("tf.constant(data[:, 1])", other))[0] == text.replace("tf.constant(data[:, 1])", other)
    endless = text.replace("m.train(input_fn, steps=5)", "m.train(input_fn)")
    assert run(endless)[0] == endless


def test_an_estimator_with_a_model_fn() -> None:
    text = (
        TOP
        + """\
from tensorflow.contrib import learn
from tensorflow.contrib.learn import ModelFnOps


def model_fn(features, labels, mode, params):
    out = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), out)
    train_op = tf.train.AdagradOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    return ModelFnOps(mode, {"out": out}, loss, train_op)


m = learn.Estimator(model_fn, params={"rate": 0.1})
m.fit(data, data[:, 0], steps=5)
print(list(m.predict(x=data)))
"""
    )
    new = migrated(text)
    assert "m.fit(" in new and "print(list(predict(predictor, tf.data.Dataset.from_tensors(data))))" in new
