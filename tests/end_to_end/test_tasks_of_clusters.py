"""Workers that read their part of the data by the task in TF_CONFIG (TFM765), and clusters without a chief (TFM706)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from migrator.harness.environments import migrated_python
from tests.end_to_end.proving import Servers, prove_project
from tests.rules.programs import run

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import json
import os

import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(3)
    x = random.normal(size=(80, 4)).astype(np.float32)
    y = np.maximum(x[:, :1], 0.0) - 0.5 * x[:, 1:2]
    data = tf.data.Dataset.from_tensor_slices((x, y))
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if config:
        data = data.shard(len(config["cluster"]["worker"]), config["task"]["index"])
    return data.batch(8).repeat()


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 6, kernel_initializer=tf.truncated_normal_initializer(stddev=0.5))
    output = tf.layers.dense(tf.nn.tanh(net), 1)
    loss = tf.losses.mean_squared_error(labels, output)
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    workers = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    config = tf.estimator.RunConfig(train_distribute=workers)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=5),
        tf.estimator.EvalSpec(input_fn, steps=2),
    )


if __name__ == "__main__":
    main()
"""


def test_mirrored_workers_read_their_part(servers: Servers, tmp_path: Path) -> None:
    new = prove_project({"train.py": PROGRAM}, "train.py", servers, tmp_path, clusters=("worker=2", "worker=2"))
    assert 'shard(len(config["cluster"]["worker"]), config["task"]["index"])' in new["train.py"]


def test_servers_would_read_the_coordinators() -> None:
    text = PROGRAM.replace("MultiWorkerMirroredStrategy", "ParameterServerStrategy")
    new, findings = run(text)
    assert new == text and "TFM765" in [finding.code for finding in findings]


@pytest.mark.parametrize("task", [("worker", 0), ("worker", 1), ("ps", 0)])
def test_servers_without_a_chief_do_not_wait_for_ever(task: tuple[str, int]) -> None:
    text = PROGRAM.replace("MultiWorkerMirroredStrategy", "ParameterServerStrategy")
    new, _ = run(
        text.replace("    if config:\n        data = data.shard", "    if 0:\n        data = data.skip").replace(
            'skip(len(config["cluster"]["worker"]), config["task"]["index"])', "skip(1)"
        )
    )
    cluster = {"worker": ["localhost:1", "localhost:2"], "ps": ["localhost:3"]}
    given = json.dumps({"cluster": cluster, "task": {"type": task[0], "index": task[1]}})
    environment = {**os.environ, "TF_CONFIG": given, "CUDA_VISIBLE_DEVICES": ""}
    command = [str(migrated_python()), "-c", new]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1 and 'ValueError: TF_CONFIG names no "chief"' in done.stderr
