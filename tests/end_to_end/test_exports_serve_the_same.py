"""A SavedModel of a migrated program answers its signature as that of the original did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrator.findings import Severity
from migrator.harness.environments import migrated_python, original_python
from tests import warm
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

x = np.linspace(-1.0, 1.0, 24).reshape(8, 3).astype(np.float32)
y = x.sum(axis=1, keepdims=True)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": x, "unserved": x[:, :2]}, y)).batch(4)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 4, tf.nn.tanh, kernel_initializer=tf.constant_initializer(0.3))
    out = tf.layers.dense(net, 1, kernel_initializer=tf.constant_initializer(0.2))
    predictions = {"value": out, "positive": out > 0.0}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"answer": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def serving_fn():
    pixels = tf.placeholder(tf.float32, [None, 3], name="pixels")
    scaled = pixels / 2.0
    return tf.estimator.export.ServingInputReceiver({"x": scaled}, {"pixels": pixels})


parse_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": tf.FixedLenFeature([3], tf.float32)})

estimator = tf.estimator.Estimator(model_fn, model_dir="model")
exporter = tf.estimator.LatestExporter("last", parse_fn)
spec = tf.estimator.EvalSpec(input_fn, exporters=exporter)
tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=2), spec)
path = estimator.export_savedmodel("plain", serving_fn)
print(path.decode())

columns = [tf.feature_column.numeric_column("x", 3)]


def regression_fn(features, labels, mode):
    net = tf.feature_column.input_layer(features, columns)
    out = tf.layers.dense(net, 1, kernel_initializer=tf.constant_initializer(0.3))
    predictions = {"value": out, "input": features["x"]}
    if mode == tf.estimator.ModeKeys.PREDICT:
        regression = tf.estimator.export.RegressionOutput(predictions["value"])
        return tf.estimator.EstimatorSpec(mode, predictions, export_outputs={"regression": regression})
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


column_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(
    tf.feature_column.make_parse_example_spec(columns))
regressor = tf.estimator.Estimator(regression_fn, model_dir="regressor")
regressor.train(input_fn, steps=2)
regressor.export_savedmodel("regression", column_fn)


def classes_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, [[0], [1], [0], [1], [1], [0], [1], [0]])).batch(4)


def canned_fn():
    parsed = tf.feature_column.make_parse_example_spec(columns)
    return tf.estimator.export.build_parsing_serving_input_receiver_fn(parsed)()


def numbers_fn():
    parsed = tf.feature_column.make_parse_example_spec(columns)
    return tf.estimator.export.build_parsing_serving_input_receiver_fn(parsed)()


def several_fn():
    parsed = tf.feature_column.make_parse_example_spec(columns)
    return tf.estimator.export.build_parsing_serving_input_receiver_fn(parsed)()


def raw_fn():
    values = tf.placeholder(tf.float32, [None, 3])
    return tf.estimator.export.ServingInputReceiver({"x": values}, {"x": values})


binary = tf.estimator.LinearClassifier(columns, model_dir="binary_dir", optimizer="SGD")
binary.train(classes_fn, steps=2)
binary.export_saved_model("binary", canned_fn)
binary.export_saved_model("raw", raw_fn)
numbers = tf.estimator.LinearRegressor(columns, model_dir="numbers_dir")
numbers.train(input_fn, steps=2)
numbers.export_saved_model("numbers", numbers_fn)
classes = tf.estimator.LinearClassifier(columns, n_classes=3, model_dir="classes_dir")
classes.train(classes_fn, steps=2)
classes.export_saved_model("several", several_fn)
"""
# The three canned Estimators share one serving function, which asks the model for its predictions.
_OWN = PROGRAM[PROGRAM.index("def numbers_fn()") : PROGRAM.index("def raw_fn()")]
SHARED = PROGRAM.replace(_OWN, "").replace("numbers_fn", "canned_fn").replace("several_fn", "canned_fn")
ASK = """\
import glob, json, sys
import tensorflow as tf
KINDS = ("plain", "regression", "binary", "raw", "numbers", "several")
example = tf.train.Example(features=tf.train.Features(feature={
    "x": tf.train.Feature(float_list=tf.train.FloatList(value=[0.1, 0.2, -0.4]))}))
serialized, pixels = tf.constant([example.SerializeToString()] * 2), tf.constant([[0.1, 0.2, -0.4]])
found = {}
for folder in sys.argv[1:]:
    (last,) = glob.glob(folder + "/model/export/last/*")
    paths = {kind: glob.glob(folder + f"/{kind}/*")[0] for kind in KINDS}
    for kind, path in {"last": last, **paths}.items():
        for name, signature in tf.saved_model.load(path).signatures.items():
            (key,) = signature.structured_input_signature[1]
            values = {key: serialized if key in ("examples", "inputs") else pixels}
            answer = {k: (str(v.dtype), v.numpy().astype(str).tolist()) for k, v in signature(**values).items()}
            found.setdefault(kind + "/" + name, []).append((key, answer))
print(json.dumps(found))
"""


def test_signatures_answer_the_same(tmp_path: Path) -> None:
    programs = [("a", {"train.py": PROGRAM}, original_python())]
    for name, style, text in (("b", "native", SHARED), ("c", "bridge", PROGRAM)):
        results = run_project({"train.py": text}, style=style)
        findings = [f for _, found in results.values() for f in found]
        assert not [f for f in findings if f.severity is Severity.MANUAL], findings
        programs.append((name, {file: new for file, (new, _) in results.items()}, migrated_python()))
    for name, texts, python in programs:
        folder = tmp_path / name
        folder.mkdir()
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        done = warm.run(python, "train.py", cwd=folder)
        assert done.returncode == 0, done.stderr
    asked = warm.run(migrated_python(), "-c", ASK, *(str(tmp_path / name) for name in "abc"))
    assert asked.returncode == 0, asked.stderr
    answers = json.loads(asked.stdout.splitlines()[-1])
    assert sorted(answers) == [
        *(f"binary/{name}" for name in ("classification", "predict", "regression", "serving_default")),
        *("last/answer", "last/serving_default"),
        *(f"numbers/{name}" for name in ("predict", "regression", "serving_default")),
        *("plain/answer", "plain/serving_default", "raw/predict"),
        *("regression/regression", "regression/serving_default"),
        *(f"several/{name}" for name in ("classification", "predict", "serving_default")),
    ]
    for (key, before), *others in answers.values():
        for asked_by, after in others:
            assert (asked_by, sorted(after)) == (key, sorted(before))
            for name, (dtype, values) in before.items():
                assert after[name][0] == dtype
                assert flat(after[name][1]) == pytest.approx(flat(values), rel=1e-5, abs=1e-7)


def flat(values: Any) -> list[float]:
    """The numbers in nested lists, also those that are truths or texts."""
    if isinstance(values, list):
        return [one for value in values for one in flat(value)]
    return [{"True": 1.0, "False": 0.0}[values] if values in ("True", "False") else float(values)]
