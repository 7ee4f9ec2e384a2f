"""`tf-migrate checkpoint`: both programs train 10 steps on from one TensorFlow 1 checkpoint, with the same losses."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from migrator.checkpoint.carrying import Carried, Order, carry
from migrator.findings import Severity
from migrator.harness.cluster import LOCAL, ClusterShape, ForkServer, Launch
from migrator.harness.environments import migrated_python
from migrator.harness.protocol import name_map
from migrator.harness.recording import Recording, read
from tests.end_to_end.proving import Servers
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
x = random.normal(size=(80, 6)).astype(np.float32)
y = np.tanh(x.sum(axis=1, keepdims=True)).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode):
{network}
    loss = tf.losses.mean_squared_error(labels, outputs)
    optimizer = {optimizer}
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    with tf.control_dependencies([train_op]):
        train_op = tf.train.ExponentialMovingAverage(0.9).apply()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, model_dir='MODEL_DIR')
estimator.train(input_fn, steps=10)
"""
LAYERS = """\
    training = mode == tf.estimator.ModeKeys.TRAIN
    hidden = tf.layers.dense(features, 6, tf.nn.tanh)
    hidden = tf.layers.batch_normalization(hidden, training=training)
    hidden = tf.layers.dense(hidden, 6, tf.nn.tanh)
    outputs = tf.layers.dense(hidden, 1)"""
# In the graph the second matrix is made first.
VARIABLES = """\
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        second = tf.get_variable("second", [6, 6])
        first = tf.get_variable("first", [6, 6])
    hidden = tf.matmul(tf.tanh(tf.matmul(features, tf.convert_to_tensor(first))), tf.convert_to_tensor(second))
    outputs = tf.layers.dense(hidden, 1)"""
MOMENTUM = "tf.train.MomentumOptimizer(0.02, 0.9)"


def train(
    server: ForkServer, kind: str, text: str, model_dir: Path, folder: Path, support: dict[str, str] | None = None
) -> Recording:
    folder.mkdir()
    script = folder / "train.py"
    for name, content in {**(support or {}), "train.py": text}.items():
        (folder / name).write_text(content.replace("MODEL_DIR", str(model_dir)), encoding="utf-8")
    plan = {
        "record": str(folder / "record"),
        "model_dir": str(model_dir.parent),  # folders below stay where they are
        "trainers": [str(LOCAL)],
        "steps": None,
        "state_steps": [10],
        "initial": None,
        "ulp_seed": None,
        "learning_rate_factor": 1.0,
        "replay": None,
        "record_batches": True,
        "pin_dropout": True,
        "evaluate": True,
    }
    outcome = server.run(Launch(kind, script, (), ClusterShape.parse(""), folder, plan))
    assert outcome.failure is None, outcome.failure
    return read(folder / "record")


def losses(recording: Recording) -> list[float]:
    assert len(recording.steps) == 10
    return [step.loss for step in recording.steps]


def carried(program: Path, tf1: Path, *, keras: Path | None = None, out: Path | None = None) -> Carried:
    found = carry(Order(migrated_python(), program, (), tf1, keras, out, {}))
    assert found.good, found
    assert not found.remarks, found.remarks
    return found


def migrated(text: str, style: str) -> dict[str, str]:
    """The new files: the program, train.py, and the support file of a bridge."""
    results = run_project({"train.py": text}, style=style)
    findings = [finding for _, found in results.values() for finding in found]
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL], findings
    return {name: new for name, (new, _) in results.items()}


def test_a_bridge_goes_on_from_the_checkpoint_itself(servers: Servers, tmp_path: Path) -> None:
    """Its model_dir is the Estimator's: nothing is carried over."""
    text = PROGRAM.format(network=VARIABLES, optimizer=MOMENTUM)
    new = migrated(text, "bridge")
    tf1, copy = tmp_path / "tf1", tmp_path / "copy"
    first = losses(train(servers[0], "original", text, tf1, tmp_path / "a"))
    shutil.copytree(tf1, copy)
    original = train(servers[0], "original", text, tf1, tmp_path / "b")
    goes_on = train(servers[1], "migrated", new["train.py"], copy, tmp_path / "c", new)
    second = losses(original)
    assert abs(second[0] - first[0]) > 1e-2  # another training than the first ten steps
    np.testing.assert_allclose(losses(goes_on), second, rtol=1e-5)
    _compare_averages(original, goes_on)


def _compare_averages(original: Recording, goes_on: Recording) -> None:
    for a, b in name_map.build(original.variables, goes_on.variables).pairs:
        if (a, "average") in original.slots[10] or (b, "average") in goes_on.slots[10]:
            average, theirs_too = original.slots[10][a, "average"], goes_on.slots[10][b, "average"]
            np.testing.assert_allclose(theirs_too, average, rtol=1e-4, atol=1e-6)
    assert sum(slot == "average" for _, slot in original.slots[10]) > 2


def test_both_programs_go_on_alike(servers: Servers, tmp_path: Path) -> None:
    text = PROGRAM.format(network=LAYERS, optimizer="tf.train.AdamOptimizer(0.01)")
    new = migrated(text, "native")["train.py"]
    tf1, keras, again = tmp_path / "tf1", tmp_path / "keras", tmp_path / "again"
    first = losses(train(servers[0], "original", text, tf1, tmp_path / "a"))

    # A model_dir with an Estimator's checkpoints is no hindrance, and they stay.
    copy = tmp_path / "copy"
    shutil.copytree(tf1, copy)
    losses(train(servers[1], "migrated", new, copy, tmp_path / "f"))
    for file in tf1.glob("model.ckpt*"):
        assert (copy / file.name).read_bytes() == file.read_bytes()

    program = tmp_path / "migrated.py"
    # What a program deletes on its way to its model stays: the checkpoint that is to be carried over, say.
    deletes = f"import shutil\nshutil.rmtree({str(tf1)!r}, ignore_errors=True)\n"
    program.write_text(deletes + new.replace("MODEL_DIR", str(keras)), encoding="utf-8")
    assert carried(program, tf1).prefix == keras / "ckpt"
    assert sorted(path.name for path in keras.iterdir()) == ["checkpoint", "ckpt.data-00000-of-00001", "ckpt.index"]
    original = train(servers[0], "original", text, tf1, tmp_path / "b")
    goes_on = train(servers[1], "migrated", new, keras, tmp_path / "c")
    second = losses(original)
    assert abs(second[0] - first[0]) > 1e-2  # another training than the first ten steps
    np.testing.assert_allclose(losses(goes_on), second, rtol=1e-5)
    _compare_averages(original, goes_on)

    # And back: the original goes on from where the migrated program stopped.
    carried(program, tf1, keras=keras, out=again)
    third = losses(train(servers[0], "original", text, tf1, tmp_path / "d"))
    theirs = losses(train(servers[0], "original", text, again, tmp_path / "e"))
    np.testing.assert_allclose(theirs, third, rtol=1e-5)
