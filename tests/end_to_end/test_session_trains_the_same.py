"""What stands around the Estimator in a driver: TensorFlow 1 and the new program are run, and the numbers compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
x = random.normal(size=(40, 6)).astype(np.float32)
y = x.sum(axis=1, keepdims=True) / 6


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


def eval_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode):
    outputs = tf.compat.v1.layers.dense(features, 1)
    loss = tf.compat.v1.losses.mean_squared_error(labels, outputs)
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.1)
    train_op = optimizer.minimize(loss, global_step=tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


{lines}
estimator = tf.estimator.Estimator(model_fn, config={config})
estimator.train(input_fn, steps=5)
estimator.evaluate(eval_fn)
"""

CASES = {
    "session settings": (
        "session = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1, device_count={'GPU': 0, 'CPU': 2},\n"
        "                                   log_device_placement=False, allow_soft_placement=False)\n"
        "session.intra_op_parallelism_threads = 1\n"
        "session.gpu_options.allow_growth = True\n"
        "session.graph_options.optimizer_options.global_jit_level = tf.compat.v1.OptimizerOptions.ON_1\n",
        "tf.estimator.RunConfig(session_config=session)",
        "tf.config.threading.set_inter_op_parallelism_threads(1)",
    ),
}


@pytest.mark.parametrize("construct", CASES)
def test_construct(construct: str, servers: Servers, tmp_path: Path) -> None:
    lines, config, written = CASES[construct]
    new = prove(PROGRAM.format(lines=lines, config=config), servers, tmp_path)
    assert written in new
