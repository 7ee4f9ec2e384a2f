"""A model_dir that TensorFlow 1 has trained halfway goes on in the bridge, and the bridge's goes on in TensorFlow 1."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from migrator.harness.environments import migrated_python, original_python
from tests import warm
from tests.bridge.sides import FOOT, HEAD, LIBRARY, NEW, OLD, TENSORFLOW1
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

PROGRAM = """
random = np.random.RandomState(0)
x = random.normal(size=(640, 4)).astype(np.float32)
y = (x[:, :1] > x[:, 1:2]).astype(np.float32)

def input_fn(params):
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16).skip(params["skip"])

def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, 6, tf.nn.tanh)
    net = tf.layers.batch_normalization(net, training=True, momentum=0.9)
    loss = tf.losses.sigmoid_cross_entropy(labels, tf.layers.dense(net, 1))
    step = tf.train.get_global_step()
    rate = tf.train.exponential_decay(0.05, step, 7, 0.8)
    kinds = {"adam": tf.train.AdamOptimizer, "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9)}
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = kinds[params["optimizer"]](rate).minimize(loss, step)
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

class Losses(tf.train.SessionRunHook):
    def begin(self):
        self.found = []

    def before_run(self, context):
        return tf.train.SessionRunArgs(tf.get_collection("losses")[-1])

    def after_run(self, context, values):
        self.found.append(values.results)

for optimizer in ("adam", "momentum"):
    folder, hook = os.path.join(FOLDER, optimizer), Losses()
    estimator = est.Estimator(model_fn, folder, params={"optimizer": optimizer, "skip": int(sys.argv[3])})
    estimator.train(input_fn, hooks=[hook], steps=20)
    found[optimizer] = hook.found
    found[optimizer + " state"] = {one: estimator.get_variable_value(one) for one in estimator.get_variable_names()}
"""


def train(side: str, folder: Path, start: int, copy: Path | None = None) -> dict[str, Any]:
    """Twenty steps more in a folder, or in its copy: the losses and the state of each optimizer."""
    python = (Path(TENSORFLOW1) if TENSORFLOW1 else original_python()) if side == "old" else migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    if copy is not None:
        subprocess.run(["cp", "-r", folder, copy], check=True)
        folder = copy
    script = folder.parent / "program.py"
    modules = ("specs", "config", "estimator")
    script.write_text(HEAD + OLD + NEW.format(library=str(LIBRARY), modules=modules) + PROGRAM + FOOT)
    done = warm.run(python, str(script), side, str(folder), str(start), cwd=folder)
    assert not done.returncode, f"{side}: {done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads((folder / f"{side}.json").read_text())
    return found


def test_trainings_go_on_in_both_directions(tmp_path: Path) -> None:
    """Slots, powers, averages and the step are read by name: the next twenty losses are those of TensorFlow 1."""
    folder = tmp_path / "first"
    folder.mkdir()
    first = train("old", folder, 0)
    here = train("new", folder, 20, tmp_path / "new")
    there = train("old", folder, 20, tmp_path / "old")
    assert close(here, there), (here, there)
    assert {"global_step", "beta1_power", "dense/kernel/Adam_1"} < there["adam state"].keys()
    assert "batch_normalization/gamma/Momentum" in there["momentum state"]
    back = train("old", tmp_path / "new", 40, tmp_path / "back")
    assert close(back, train("old", tmp_path / "old", 40, tmp_path / "on")), back
    assert first["adam"] != here["adam"] != back["adam"]
