"""What evaluations and predictions give are NumPy's numbers, which print as they do on TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.telling import told_by_both

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf


def input_fn():
    x = np.linspace(0, 1, 14, dtype=np.float32).reshape(7, 2)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1] * 3)).batch(7)


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(0.7))
    y = tf.matmul(features["x"], w)
    predictions = {"y": y, "large": tf.greater(y[:, 0], 0.5), "rank": tf.argmax(tf.concat([y, 1 - y], 1), 1)}
    predictions["score"] = y[:, 0] / 3
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.mean_squared_error(labels, y)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    off = tf.metrics.mean_absolute_error(labels, y)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"off": off})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=1)
found = estimator.evaluate(input_fn)
print("told", sorted(found.items()))
print("told", found["off"], "%s %r" % (found["loss"], found["loss"]), str(found["off"].dtype), found["off"].item())
for prediction in estimator.predict(input_fn):
    print("told", sorted(prediction.items()))
"""


def test_numbers_are_numpys_and_print_as_they_did(tmp_path: Path) -> None:
    old, new = told_by_both(PROGRAM, tmp_path)
    assert new == old
    assert "float32" in old[1] and "np." not in "".join(new)


def test_keras_tells_its_version(tmp_path: Path) -> None:
    # 2.15's tf.keras told it; tf_keras, which tf.keras is on 2.21 then, tells none.
    asks = "from tensorflow import keras\nfor one in tf.keras, keras:\n    told = one.__version__.split('.')\n"
    old, new = told_by_both(f"{PROGRAM}\n{asks}    print('told', told[0], len(told))\n", tmp_path)
    assert new == old and old[-2:] == ["told 2 3"] * 2
