"""Names that are bound in every way that is followed, with their proofs: see proving.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import contextlib
import numpy as np
import tensorflow as tf

x: np.ndarray = np.random.RandomState(0).uniform(-1.0, 1.0, (40, 3)).astype(np.float32)
y: np.ndarray = x.sum(1, keepdims=True).astype(np.float32)


def model_fn(features: tf.Tensor, labels: tf.Tensor, mode: tf.estimator.ModeKeys) -> tf.estimator.EstimatorSpec:
    {features}
    logits: tf.Tensor = tf.layers.dense(features, units := 4, kernel_initializer=tf.ones_initializer())
    print(units, logits := tf.layers.dense(logits, 1))
    labels: tf.Tensor = labels * 2.0
    loss: tf.Tensor = tf.losses.mean_squared_error(labels, logits)
    optimizer: tf.train.Optimizer = tf.train.GradientDescentOptimizer(rate := 0.05)
    rate = rate * 100.0
    print(rate)
    train_op: tf.Operation = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


estimator: tf.estimator.Estimator = tf.estimator.Estimator(model_fn)
print(steps := 5)
estimator.train(input_fn, steps=steps)
print(estimator.evaluate(input_fn, steps=2))
"""
#: Each makes other features, which the network is computed from and the Keras model is not made of.
FEATURES = {
    "unpacked": "features, _ = features * 3.0, 0",
    "in a loop": "for factor in (2.0, 1.5):\n        features = features * factor",
    "by a with statement": "with contextlib.nullcontext(features * 3.0) as features:\n        pass",
    "deleted and made anew": "kept = features * 3.0\n    del features\n    features = kept",
}


@pytest.mark.parametrize("features", FEATURES)
def test_names_of_all_kinds(features: str, servers: Servers, tmp_path: Path) -> None:
    new = prove(PROGRAM.format(features=FEATURES[features]), servers, tmp_path)
    assert "logits: tf.Tensor = " in new and "tf.train.Optimizer" not in new and "tf.estimator" not in new
