"""Programs that only run on a TPU: the original without one, the migrated program on its stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove, prove_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

flags = tf.flags
flags.DEFINE_string("master", "grpc://10.0.0.1:8470", "Where the TPU is.")
FLAGS = flags.FLAGS


def examples(params, seed):
    random = np.random.RandomState(seed)
    x = random.normal(size=(48, 3)).astype(np.float32)
    y = (x.sum(axis=1, keepdims=True) > 0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(params["batch_size"], drop_remainder=True)


def train_input_fn(params):
    return examples(params, 1)


def eval_input_fn(params):
    return examples(params, 2)


def metric_fn(labels, logits):
    return {{"accuracy": tf.metrics.accuracy(labels, tf.cast(logits > 0, tf.float32))}}


def print_loss(loss):
    return tf.print(loss)


def model_fn(features, labels, mode, params):
    {network}
    loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)) / params["batch_size"]
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.1, 0.9))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op{spec})


def main(_):
    config = tf.estimator.tpu.RunConfig(
        master=FLAGS.master, tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=3)
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn, config=config, params={{"units": 4}}, train_batch_size=8, eval_batch_size=8
    )
    estimator.train(train_input_fn, max_steps=5)
    print(estimator.evaluate(eval_input_fn, steps=4))


if __name__ == "__main__":
    tf.app.run()
"""
NATIVE = "logits = tf.layers.dense(tf.layers.dense(features, params['units'], tf.nn.tanh), 1)"
VARIABLES = """\
    with tf.variable_scope("hidden"):
        weights = tf.get_variable("weights", [3, params["units"]], initializer=tf.random_normal_initializer())
        hidden = tf.tanh(tf.matmul(features, weights))
    logits = tf.matmul(hidden, tf.get_variable("out", [params["units"], 1], initializer=tf.ones_initializer()))"""
HOST_CALL = ", host_call=(print_loss, [tf.reshape(loss, [1])])"


@pytest.mark.parametrize(("style", "network"), [("native", NATIVE), ("bridge", VARIABLES.strip())])
def test_it_trains_the_same(style: str, network: str, servers: Servers, tmp_path: Path) -> None:
    text = PROGRAM.format(network=network, spec=HOST_CALL)
    if style == "bridge":  # a loss that is divided by the batch size of a core, on two of them
        prove_project({"train.py": text}, "train.py", servers, tmp_path, style=style, tpu_cores=2)
        return
    new = prove(text, servers, tmp_path, style=style)
    assert "tf.distribute.TPUStrategy(resolver)" in new and "TPUClusterResolver(FLAGS.master)" in new
    assert "steps_per_execution=3" in new and "// strategy.num_replicas_in_sync" in new
