"""A SavedModel of a migrated program answers its signature as that of the original did."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.harness.environments import migrated_python, original_python
from tests.rules.programs import run as migrate_text

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
"""
ASK = """\
import glob, json, sys
import tensorflow as tf
example = tf.train.Example(features=tf.train.Features(feature={
    "x": tf.train.Feature(float_list=tf.train.FloatList(value=[0.1, 0.2, -0.4]))}))
found = {}
for folder in sys.argv[1:]:
    (plain,), (last,) = glob.glob(folder + "/plain/*"), glob.glob(folder + "/model/export/last/*")
    (regression,) = glob.glob(folder + "/regression/*")
    for kind, path, values in (
        ("plain", plain, {"pixels": tf.constant([[0.1, 0.2, -0.4]])}),
        ("last", last, {"examples": tf.constant([example.SerializeToString()])}),
        ("regression", regression, {"inputs": tf.constant([example.SerializeToString()])}),
    ):
        for name, signature in tf.saved_model.load(path).signatures.items():
            answer = {k: v.numpy().tolist() for k, v in signature(**values).items()}
            found.setdefault(kind + "/" + name, []).append(answer)
print(json.dumps(found))
"""


def test_signatures_answer_the_same(tmp_path: Path) -> None:
    programs = [("a", PROGRAM, original_python())]
    for name, style in (("b", "native"), ("c", "mapped")):
        new, findings = migrate_text(PROGRAM, style=style)
        assert not [f for f in findings if f.severity is Severity.MANUAL], findings
        programs.append((name, new, migrated_python()))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
    for name, text, python in programs:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(text, encoding="utf-8")
        command = [str(python), "train.py"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    command = [str(migrated_python()), "-c", ASK, *(str(tmp_path / name) for name in "abc")]
    asked = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    answers = json.loads(asked.stdout.splitlines()[-1])
    assert sorted(answers) == [
        *("last/answer", "last/serving_default", "plain/answer", "plain/serving_default"),
        *("regression/regression", "regression/serving_default"),
    ]
    for name, (before, *others) in answers.items():
        value = "outputs" if name.startswith("regression") else "value"
        assert sorted(before) == (["outputs"] if value == "outputs" else ["positive", "value"])
        for after in others:
            assert sorted(before) == sorted(after)
            assert before.get("positive") == after.get("positive")
            assert after[value][0][0] == pytest.approx(before[value][0][0], rel=1e-5)
