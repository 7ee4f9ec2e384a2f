"""SavedModels of both programs, asked the same with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from migrator.harness import exports
from migrator.harness.case import make_case
from migrator.harness.migrated import build_names
from migrator.harness.runs import Session, run_program, weights_file

pytestmark = pytest.mark.tensorflow

DATA = """
import os
import numpy as np
import tensorflow as tf
X = np.random.RandomState(0).uniform(-1, 1, (24, 8)).astype(np.float32)
Y = X[:, :1]
def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(8)
"""

ORIGINAL = (
    DATA
    + """
def model_fn(features, labels, mode):
    out = tf.layers.dense(tf.layers.dense(features["x"], 16, tf.nn.relu), 1)
    predictions = {"value": out * 10.0}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def serving_fn():
    x = tf.placeholder(tf.float32, [None, 8])
    return tf.estimator.export.ServingInputReceiver({"x": x / 255.0}, {"x": x})

estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
estimator.export_saved_model("exported", serving_fn)
"""
)

MIGRATED = (
    DATA.replace("import os\n", "import os\nos.environ.setdefault('TF_USE_LEGACY_KERAS', '1')\n")
    + """
x = tf.keras.Input([8], name="x")
out = tf.keras.layers.Dense(1)(tf.keras.layers.Dense(16, "relu")(x))
model = tf.keras.Model({"x": x}, out)
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(input_fn(), verbose=0)

@tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="x")])
def serve(x):
    return {"value": model({"x": x / 255.0}, training=False) * 10.0}

tf.saved_model.save(model, "exported", signatures={"serving_default": serve})
"""
)


def test_both_models_answer_the_same_request(session_for: Callable[[int], Session], tmp_path: Path) -> None:
    session = session_for(2)
    paths = {"original": tmp_path / "o.py", "migrated": tmp_path / "m.py"}
    paths["original"].write_text(ORIGINAL, encoding="utf-8")
    paths["migrated"].write_text(MIGRATED, encoding="utf-8")
    case = make_case(paths["original"], paths["migrated"])
    runs = [run_program(session, case, name, name, case.shape, evaluate=True) for name in ("original", "migrated")]
    recordings = [run.recording for run in runs]
    assert recordings[0] is not None and recordings[1] is not None, [run.complaint for run in runs]
    names = build_names(recordings[0], recordings[1], {})
    initial = weights_file(session, recordings[0].initial)
    served = exports.ask(session, case, runs[0], runs[1], names, initial)
    assert served is not None
    assert served.signatures == (("serving_default",), ("serving_default",))
    for recording, weights in zip(recordings, served.weights, strict=True):
        assert recording is not None
        for name, value in recording.states[3].items():
            np.testing.assert_array_equal(weights[name], value)
    answer = served.answers["serving_default"]
    assert answer.same_weights is not None and answer.control is not None
    assert answer.outputs["value"].shape == (48, 1)  # all examples, and the same with numbers half as great
    weights = served.weights[0]
    hidden = np.maximum(_asked() / 255.0 @ weights["dense/kernel"] + weights["dense/bias"], 0.0)
    expected = 10.0 * (hidden @ weights["dense_1/kernel"] + weights["dense_1/bias"])
    np.testing.assert_allclose(answer.outputs["value"], expected, rtol=1e-5)
    np.testing.assert_allclose(answer.same_weights["value"], expected, rtol=1e-5)
    assert not np.allclose(answer.control["value"], expected, rtol=1e-3)
    for moved in answer.nudged:
        np.testing.assert_allclose(moved["value"], expected, rtol=1e-5)


def _asked() -> np.ndarray:
    examples = np.random.RandomState(0).uniform(-1, 1, (24, 8)).astype(np.float32)
    return np.concatenate([examples, examples / 2])
