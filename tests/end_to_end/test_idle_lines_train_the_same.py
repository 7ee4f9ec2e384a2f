"""Programs with lines around their Estimator that say nothing, run before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

x = np.random.RandomState(0).uniform(-1.0, 1.0, (40, 3)).astype(np.float32)
y = x.sum(1, keepdims=True).astype(np.float32)


def model_fn(features, labels, mode):
    predictions = tf.layers.dense(features, 1, kernel_initializer=tf.ones_initializer())
    loss = tf.losses.mean_squared_error(labels, predictions)
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


def run(threads):
    idle = tf.estimator.RunConfig().replace(
        session_config=tf.ConfigProto(inter_op_parallelism_threads=threads)
    )
    config = tf.estimator.RunConfig(save_summary_steps=50)
    if threads:
        config.replace(tf_random_seed=threads)
    model = tf.estimator.Estimator(model_fn, config=config)
    model = model.train(input_fn, steps=5)
    print(model.evaluate(input_fn, steps=2))


run(2)
"""


def test_a_chained_training_and_settings_that_nobody_takes(servers: Servers, tmp_path: Path) -> None:
    new = prove(PROGRAM, servers, tmp_path)
    assert "RunConfig" not in new and "idle" not in new and "seed" not in new
