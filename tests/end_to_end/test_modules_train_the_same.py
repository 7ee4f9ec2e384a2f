"""Programs of DTensor's core API (`--style module`) train as the Estimator did, however variables are divided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.meshes import COLUMNS, assert_same, begin, run_all, write
from tests.end_to_end.proving import Servers, record

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(0)
    features = random.normal(size=({size}, 6)).astype(np.float32)
    labels = {labels}
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(8){repeat}


def model_fn(features, labels, mode, params):
    units = params["units"]
    net = tf.tanh(tf.layers.dense(features * 2.0, units))
    output = tf.layers.dense(net, {units})
    loss = {loss}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={metrics})
    train_op = {optimizer}.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn, {folder}params={{"units": 8}})
    estimator.train(input_fn{steps})
    print(estimator.evaluate(input_fn)["loss"])


if __name__ == "__main__":
    main()
"""
SQUARES = PROGRAM.format(
    size=36,
    repeat="",
    labels="features.sum(axis=1, keepdims=True)",
    units=1,
    loss="tf.losses.mean_squared_error(labels, output)",
    metrics="{}",
    optimizer="tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True)",
    folder="",
    steps="",  # five batches, the last of four examples
)
CLASSES = PROGRAM.format(
    size=8,
    repeat=".repeat(5)",
    labels="random.randint(0, 4, size=8).astype(np.int32)",
    units=4,
    loss="tf.losses.sparse_softmax_cross_entropy(labels, output)",
    metrics='{"accuracy": tf.metrics.accuracy(labels, tf.argmax(output, 1))}',
    optimizer="tf.train.AdamOptimizer(0.05)",
    folder='model_dir="MODEL_DIR", ',
    steps=", max_steps=STEPS",
)


def test_momentum(servers: Servers, tmp_path: Path) -> None:
    """On two devices, and on eight in a mesh of two dimensions whose variables and slots are divided."""
    (tmp_path / "original.py").write_text(SQUARES, encoding="utf-8")
    original = record(servers[0], "original", tmp_path / "original.py", tmp_path / "run", None)
    initial = begin(original, tmp_path / "initial.npz")
    plain = write(SQUARES, tmp_path, "plain.py", style="module")
    divided = write(SQUARES, tmp_path, "divided.py", "model=2", COLUMNS, style="module")
    assert "tf.keras" not in divided.read_text(encoding="utf-8")
    columns = CLASSES.replace("size=8)", "size=(8, 1))").replace('model_dir="MODEL_DIR", ', "").replace("STEPS", "5")
    descent = write(
        columns.replace("AdamOptimizer", "GradientDescentOptimizer"), tmp_path, "descent.py", style="module"
    )
    runs = {
        "two": (plain, [("batch", 2)], initial),
        "both": (divided, None, initial),
        "descent": (descent, [("batch", 2)], None),
    }
    seen = run_all(runs, tmp_path)
    assert len(original.steps) == 5
    for name in ("two", "both"):
        assert_same(seen[name], original)
    assert seen["both"].parts == [[[6, 4]] * 8, [[4]] * 8, [[4, 1]] * 8, [[1]] * 8]
    assert ["unsharded", "model"] in seen["both"].slots
    assert seen["descent"].held == 4 * (48 + 8 + 32 + 4)  # no slots
    assert seen["descent"].losses[-1] < seen["descent"].losses[0]  # of labels in a column


def test_adam_and_checkpoints(servers: Servers, tmp_path: Path) -> None:
    """Three steps whole, the rest divided, from the checkpoint: as in one training of five."""
    (tmp_path / "original.py").write_text(CLASSES.replace("STEPS", "5"), encoding="utf-8")
    original = record(servers[0], "original", tmp_path / "original.py", tmp_path / "run", None)
    initial = begin(original, tmp_path / "initial.npz")
    text = CLASSES.replace("MODEL_DIR", str(tmp_path / "checkpoints"))
    before = write(text.replace("STEPS", "3"), tmp_path, "before.py", style="module")
    after = write(text.replace("STEPS", "5"), tmp_path, "after.py", "model=2", COLUMNS, style="module")
    seen = run_all({"before": (before, [("batch", 4)], initial), "after": (after, None, None)}, tmp_path)
    np.testing.assert_allclose(seen["before"].losses, [step.loss for step in original.steps][:3], rtol=1e-5)
    assert len(seen["after"].losses) == 2
    assert_same(seen["after"], original, 3)
    assert set(seen["after"].results) == {"loss", "accuracy"}
    assert seen["after"].parts[0] == [[6, 4]] * 8
