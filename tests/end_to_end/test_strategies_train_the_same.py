"""Programs whose RunConfig has a strategy for several devices of one machine train and evaluate the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove, prove_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf


def input_fn(count={count}, input_context=None):
    random = np.random.RandomState(3)
    x = random.normal(size=(count, 4)).astype(np.float32)
    y = np.maximum(x[:, :1], 0.0) - 0.5 * x[:, 1:2]
    if input_context:
        y = y * input_context.num_replicas_in_sync
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 8, kernel_initializer=tf.truncated_normal_initializer(stddev=0.5))
    {network}
    output = tf.layers.dense(tf.nn.tanh(net), 1)
    {loss}
    if mode == tf.estimator.ModeKeys.EVAL:
        error = tf.metrics.mean_absolute_error(labels, output)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={{"error": error}})
    optimizer = {optimizer}
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    session = tf.ConfigProto(device_count={{"CPU": 2}})
    config = tf.estimator.RunConfig(train_distribute={strategy}, {evaluation}session_config=session)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    {driver}


main()
"""
NORMALIZED = "net = tf.layers.batch_normalization(net, momentum=0.8, training=mode == tf.estimator.ModeKeys.TRAIN)"
MEAN = "loss = tf.losses.mean_squared_error(labels, output)"
DECAYED = f"{MEAN}\n    loss = loss + 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])"
SUM = "loss = tf.reduce_sum(tf.square(labels - output))"
MIRRORED = 'tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])'
CENTRAL = 'tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")'
# Eleven batches are five rounds. Each of four batches is divided between the two devices that evaluate.
ALL = "estimator.train(input_fn)\n    print(estimator.evaluate(lambda: input_fn(32)))"
BOTH = """\
tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn().repeat(), max_steps=5),
        tf.estimator.EvalSpec(lambda: input_fn(32), steps=2),
    )"""
MOMENTUM = "tf.train.MomentumOptimizer(0.1, 0.9)"
DESCENT = "tf.train.GradientDescentOptimizer(0.01)"
PLAIN = "net = net * 0.5"


@pytest.mark.parametrize(
    ("strategy", "network", "loss", "optimizer", "driver", "count", "apart", "style"),
    [
        (MIRRORED, NORMALIZED, MEAN, MOMENTUM, ALL, 80, False, "native"),
        (CENTRAL, PLAIN, SUM, DESCENT, BOTH, 87, True, "native"),
        (CENTRAL, NORMALIZED, DECAYED, MOMENTUM, ALL, 80, True, "native"),
        (CENTRAL, PLAIN, DECAYED, MOMENTUM, ALL, 80, True, "bridge"),
        (MIRRORED, PLAIN, MEAN, MOMENTUM, ALL, 87, False, "native"),
    ],
)
def test_replicas_train_the_same(
    strategy: str,
    network: str,
    loss: str,
    optimizer: str,
    driver: str,
    count: int,
    apart: bool,
    style: str,
    servers: Servers,
    tmp_path: Path,
) -> None:
    evaluation = f"eval_distribute={strategy}, " if apart else ""
    given = {"strategy": strategy, "network": network, "loss": loss, "optimizer": optimizer, "driver": driver}
    text = PROGRAM.format(**given, count=count, evaluation=evaluation)
    # A native program makes its virtual CPUs of the ConfigProto, a bridge has to be given them.
    devices = 2 if style == "bridge" else 1
    prove_project({"train.py": text}, "train.py", servers, tmp_path, style=style, devices=devices)


CHOSEN = """
    count = {count}
    if count > 1:
        strategy = tf.distribute.MirroredStrategy(["/cpu:%d" % i for i in range(count)])
    elif count == 1:
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    else:
        strategy = None
    config ="""
RETURNED = """
def get_distribution_strategy(num_gpus):
    if num_gpus == 1:
        return tf.distribute.OneDeviceStrategy("device:CPU:0")
    return tf.distribute.MirroredStrategy(["/cpu:%d" % i for i in range(num_gpus)])


def main():"""


@pytest.mark.parametrize(("how", "count"), [("if", 0), ("if", 1), ("if", 2), ("function", 1), ("function", 2)])
def test_a_chosen_strategy_trains_the_same(how: str, count: int, servers: Servers, tmp_path: Path) -> None:
    given = {"network": NORMALIZED, "loss": MEAN, "optimizer": MOMENTUM, "driver": ALL}
    chosen = "strategy" if how == "if" else f"get_distribution_strategy({count})"
    text = PROGRAM.replace("input_context=None", "more=None").replace("if input_context:", "if more:")
    text = text.format(**given, count=40 * max(count, 1), evaluation="", strategy=chosen)  # five steps
    if how == "if":
        text = text.replace("\n    config =", CHOSEN.format(count=count))
    text = text.replace("\ndef main():", RETURNED)
    prove(text, servers, tmp_path)
