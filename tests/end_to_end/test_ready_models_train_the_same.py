"""Keras models that model_to_estimator was given train and evaluate the same under strategies, made in their scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def input_fn(count=80):
    random = np.random.RandomState(3)
    x = random.normal(size=(count, 4)).astype(np.float32)
    y = np.maximum(x[:, :1], 0.0) - 0.5 * x[:, 1:2]
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def summed(labels, outputs):
    return tf.reduce_sum(tf.square(labels - outputs))


def build():
    inputs = tf.keras.Input([4])
    net = tf.keras.layers.Dense(6, activation="tanh", kernel_regularizer=tf.keras.regularizers.l2(0.02))(inputs)
    net = tf.keras.layers.Dropout(0.3)(net)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(net))


def main():
    model = build()
    model.compile(optimizer={optimizer}, loss={loss}, metrics=[tf.keras.metrics.MeanAbsoluteError(name="mae")])
    strategy = {strategy}
    session = tf1.ConfigProto(device_count={{"CPU": 2}})
    config = tf.estimator.RunConfig(train_distribute=strategy, {evaluation}session_config=session)
    estimator = tf.keras.estimator.model_to_estimator(model, config=config)
    {driver}


main()
"""
MIRRORED = 'tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])'
CENTRAL = 'tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")'
# Each of four batches is divided between the two devices that evaluate.
ALL = "estimator.train(input_fn)\n    print(estimator.evaluate(lambda: input_fn(32)))"
BOTH = """\
tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn().repeat(), max_steps=5),
        tf.estimator.EvalSpec(lambda: input_fn(32), steps=2),
    )"""
KERAS_SGD = "tf.keras.optimizers.SGD(0.1, momentum=0.9)"


@pytest.mark.parametrize(
    ("strategy", "optimizer", "loss", "driver", "apart"),
    [
        (MIRRORED, KERAS_SGD, '"mse"', ALL, False),
        (MIRRORED, '"adam"', "tf.keras.losses.Huber()", BOTH, False),
        (MIRRORED, '"rmsprop"', "summed", "estimator.train(input_fn)", True),
        (CENTRAL, KERAS_SGD, '"mse"', ALL, False),
    ],
)
def test_replicas_train_the_same(
    strategy: str, optimizer: str, loss: str, driver: str, apart: bool, servers: Servers, tmp_path: Path
) -> None:
    evaluation = "eval_distribute=strategy, " if apart else ""
    given = {"strategy": strategy, "optimizer": optimizer, "loss": loss, "driver": driver, "evaluation": evaluation}
    new = prove_project({"train.py": PROGRAM.format(**given)}, "train.py", servers, tmp_path, devices=2)["train.py"]
    assert "    with strategy.scope():\n        model = build()\n        model.compile(" in new
    assert "per_replica(" in new and "model_to_estimator" not in new


CLUSTER = """
import numpy as np
import tensorflow as tf


def input_fn(count=80):
    random = np.random.RandomState(3)
    x = random.normal(size=(count, 4)).astype(np.float32)
    y = np.maximum(x[:, :1], 0.0) - 0.5 * x[:, 1:2]
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat()


layers = [tf.keras.layers.Dense(6, activation="tanh", input_shape=(4,)), tf.keras.layers.Dense(1)]
model = tf.keras.Sequential(layers)
optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
model.compile(optimizer=optimizer, loss="mse", metrics=[tf.keras.metrics.MeanAbsoluteError(name="error")])

if __name__ == "__main__":
    config = tf.estimator.RunConfig({strategy})
    estimator = tf.keras.estimator.model_to_estimator(model, config=config)
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=5)
    eval_spec = tf.estimator.EvalSpec(lambda: input_fn(32), steps=2)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
"""
WORKERS = "train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy()"


@pytest.mark.parametrize(
    ("strategy", "cluster"),
    [("", ""), (WORKERS, "worker=2"), ("", "chief=1,ps=1")],
)
def test_clusters_train_the_same(strategy: str, cluster: str, servers: Servers, tmp_path: Path) -> None:
    text = CLUSTER.format(strategy=strategy)
    migrated = cluster.replace("chief=1,ps=1", "chief=1,worker=1,ps=1")
    new = prove_project({"train.py": text}, "train.py", servers, tmp_path, clusters=(cluster, migrated))["train.py"]
    assert "with strategy.scope():\n    layers = [" in new and "TFConfigClusterResolver()" in new
