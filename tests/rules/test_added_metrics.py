"""`add_metrics`: its function is called in the model_fn, where everything about it is plain."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0, 2.0], [3.0, 5.0]], [0, 1])).batch(2)


def model_fn(features, labels, mode):
    logits = tf1.layers.dense(features, 2)
    predictions = tf.argmax(logits, axis=1)
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    accuracy = tf1.metrics.accuracy(labels, predictions)
    return tf1.estimator.EstimatorSpec(
        mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})


estimator = tf1.estimator.Estimator(model_fn)
estimator.train(input_fn)


def more(labels, predictions):
    labels = tf.cast(labels, predictions.dtype)
    return {"mse": tf1.metrics.mean_squared_error(labels, predictions)}


estimator = tf1.estimator.add_metrics(estimator, more)
print(estimator.evaluate(input_fn))
"""


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "TFM147" in [f.code for f in findings]
    compile(new, "new", "exec")
    return new


def test_metrics_go_into_the_model() -> None:
    new = migrated(PROGRAM)
    assert '"mse": tf.keras.metrics.MeanMetricWrapper(tf.math.squared_difference, name="mse"),' in new
    assert '"accuracy": tf.keras.metrics.Accuracy(name="accuracy"),' in new
    assert "add_metrics" not in new and "def more" not in new
    assert new.endswith("print(model.evaluate(input_fn(), return_dict=True))\n") and "Trainer" not in new


def test_a_model_without_metrics_of_its_own() -> None:
    bare = PROGRAM.replace("    accuracy = tf1.metrics.accuracy(labels, predictions)\n", "")
    new = migrated(bare.replace(', eval_metric_ops={"accuracy": accuracy}', ""))
    assert "mse" in new and "ccuracy(" not in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"mse":', '{"accuracy":'),  # overrides the model's own
        ('{"mse": tf1', "{name: tf1"),
        ("def more(labels, predictions)", "def more(labels, predictions, config)"),
        ("add_metrics(estimator, more)", "add_metrics(estimator, lambda labels: {})"),
        ("estimator = tf1.estimator.add", "if input():\n    estimator = tf1.estimator.add"),
        ("estimator = tf1.estimator.add", "if input():\n    print(1)\n    estimator = tf1.estimator.add"),
        ("print(estimator.ev", "finally:\n    print(1)\nprint(estimator.ev"),
        ("estimator = tf1.estimator.add_metrics", "other = tf1.estimator.add_metrics"),
        ("    logits = tf1", "    labels = labels + 1\n    logits = tf1"),
        ("estimator.train(input_fn)", "estimator.train(input_fn)\ntf1.estimator.Estimator(model_fn).train(input_fn)"),
        ("print(estimator.ev", "estimator = tf1.estimator.add_metrics(estimator, more)\nprint(estimator.ev"),
    ],
)
def test_what_is_not_plain_stays(old: str, new: str) -> None:
    text = PROGRAM.replace(old, new)
    if new.startswith("finally"):
        text = text.replace("estimator = tf1.estimator.add", "try:\n    estimator = tf1.estimator.add")
    assert text != PROGRAM
    result, findings = run(text)
    assert result == text and [f for f in findings if f.severity is Severity.MANUAL]


CANNED = """\
import numpy as np
import tensorflow as tf

SCALE = 100.0
X = np.linspace(0.0, 1.0, 12, dtype=np.float32)
COLUMNS = [tf.feature_column.numeric_column("x")]


def data(epochs):
    return tf.estimator.inputs.numpy_input_fn({"x": X}, 2 * X, batch_size=4, num_epochs=epochs, shuffle=False)


def run(folder):
    estimator = tf.estimator.LinearRegressor(COLUMNS, folder, optimizer=tf.train.FtrlOptimizer(0.2))

    # in dollars
    def rmse(labels, predictions):
        dollars = predictions["predictions"] * SCALE
        return {"rmse": tf.metrics.root_mean_squared_error(
            labels * SCALE, dollars)}
    estimator = tf.contrib.estimator.add_metrics(estimator, rmse)
    estimator.train(data(None), steps=3)
    return estimator.evaluate(data(1))


print(run("m"))
"""
LAMBDA = 'lambda labels, predictions: {"mean": tf.metrics.mean(predictions["predictions"])}'
DEFINED = CANNED[CANNED.index("    # in dollars") : CANNED.index("    estimator = tf.contrib")]
WITHOUT = CANNED.replace(DEFINED, "")
BEHIND = "\n\ndef rmse(labels, predictions, features):\n    return {'rmse': tf.metrics.mean(features['x'])}\n"
INSTEAD = {
    "at the top, behind": WITHOUT + BEHIND,
    "another name": CANNED.replace("estimator = tf.contrib", "told = tf.contrib")
    .replace("estimator.train", "told.train")
    .replace("estimator.eval", "told.eval"),
    "a lambda": WITHOUT.replace("add_metrics(estimator, rmse)", f"add_metrics(estimator, {LAMBDA})"),
    "as it is made": WITHOUT.replace("= tf.estimator.Lin", "= tf.estimator.add_metrics(tf.estimator.Lin")
    .replace("Optimizer(0.2))", f"Optimizer(0.2)), {LAMBDA})")
    .replace("    estimator = tf.contrib.estimator.add_metrics(estimator, rmse)\n", ""),
}


def test_metrics_of_a_canned_estimator_compare_the_labels_as_they_are_given() -> None:
    new = migrated(CANNED)
    assert '"rmse": tf.keras.metrics.RootMeanSquaredError(name="rmse"),' in new and "def rmse" not in new
    assert 'eval_metric_ops["rmse"].update_state(labels * SCALE, dollars)' in new
    assert "targets = tf.cast(tf.reshape(labels, [-1, 1]), tf.float32)" in new and "add_metrics" not in new


@pytest.mark.parametrize("case", INSTEAD)
def test_metrics_of_canned_estimators_said_otherwise(case: str) -> None:
    assert INSTEAD[case] != CANNED
    assert "add_metrics" not in migrated(INSTEAD[case])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"rmse":', '{"average_loss":'),  # overrides the Estimator's own
        ("dollars)}\n", "dollars)}\n    rmse = print\n"),
        ("def run(folder):", "def run(folder, SCALE=1.0):"),  # the function reads what another one has
        ("    # in dollars", "    @noted"),
        ("(labels, predictions):", "(labels, predictions, config):"),
        ("(labels, predictions):", "(labels, predictions, scale=2):"),
        ("    estimator = tf.contrib", "    if input():\n        estimator = tf.contrib"),
        ("    estimator = tf.contrib", "    told = tf.contrib"),  # it is evaluated without them
        ("(estimator, rmse)", "(estimator, rmse)\n    estimator = tf.contrib.estimator.add_metrics(estimator, rmse)"),
    ],
)
def test_metrics_of_canned_estimators_that_are_not_plain_stay(old: str, new: str) -> None:
    text = CANNED.replace(old, new)
    result, findings = run(text)
    assert text != CANNED and result == text and [f for f in findings if f.severity is Severity.MANUAL]
