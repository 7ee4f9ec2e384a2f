"""Programs for a mesh of devices (`--strategy dtensor`) train as the Estimator did, however variables are divided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.meshes import COLUMNS, WEIGHTS, assert_same, begin, run_all, write
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


def model_fn(features, labels, mode):
    decay = tf.keras.regularizers.l2(0.01)
    net = tf.layers.dense(features, 8, activation=tf.nn.tanh, kernel_regularizer=decay)
    output = tf.layers.dense(net, {units})
    loss = {loss}
    loss += tf.losses.get_regularization_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={metrics})
    train_op = {optimizer}.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    {driver}
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
    metrics='{"error": tf.metrics.mean_absolute_error(labels, output)}',
    optimizer="tf.train.MomentumOptimizer(0.05, 0.9)",
    # Five batches, the last of four examples.
    driver="estimator = tf.estimator.Estimator(model_fn)\n    estimator.train(input_fn)",
)
CLASSES = PROGRAM.format(
    size=8,
    repeat=".repeat(5)",  # always the same batch: a training that goes on begins with the first again
    labels="random.randint(0, 4, size=8).astype(np.int32)",
    units=4,
    loss="tf.losses.sparse_softmax_cross_entropy(labels, output)",
    metrics='{"accuracy": tf.metrics.accuracy(labels, tf.argmax(output, 1))}',
    optimizer="tf.train.AdamOptimizer(0.05)",
    driver='estimator = tf.estimator.Estimator(model_fn, model_dir="MODEL_DIR")\n'
    "    estimator.train(input_fn, max_steps=STEPS)",
)
# The partitioner splits the table; the dense layers are outside of its scope, and stay whole.
LOOKUPS = """
import numpy as np
import tensorflow as tf

ROWS = 12


def input_fn():
    random = np.random.RandomState(0)
    ids = random.randint(0, ROWS, size=(40, 4)).astype(np.int64)
    labels = (ids.sum(axis=1) % 3).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"ids": ids}, labels)).batch(8)


def model_fn(features, labels, mode):
    with tf.variable_scope("words", partitioner=tf.fixed_size_partitioner(2)):
        table = tf.get_variable("table", [ROWS, 4], initializer=tf.random_uniform_initializer(-1.0, 1.0))
    net = tf.nn.embedding_lookup(table, features["ids"], partition_strategy="div")
    net = tf.layers.dense(tf.reduce_mean(net, axis=1), 8, activation=tf.nn.sigmoid)
    output = tf.layers.dense(net, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, output)
    accuracy = tf.metrics.accuracy(labels, tf.argmax(output, 1))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    train_op = tf.train.AdagradOptimizer(0.5).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=5)
    print(estimator.evaluate(input_fn)["loss"])


if __name__ == "__main__":
    main()
"""
LOOKUP_WEIGHTS = ("words/table", *WEIGHTS)


def test_data_and_model_parallel(servers: Servers, tmp_path: Path) -> None:
    """Two devices compute what one did, and so do eight in a mesh of two dimensions, whose variables are divided."""
    (tmp_path / "original.py").write_text(SQUARES, encoding="utf-8")
    original = record(servers[0], "original", tmp_path / "original.py", tmp_path / "run", None)
    initial = begin(original, tmp_path / "initial.npz")
    plain = write(SQUARES, tmp_path, "plain.py")
    divided = write(SQUARES, tmp_path, "divided.py", "model=2", COLUMNS)
    seen = run_all(
        {
            "two": (plain, [("batch", 2)], initial),
            "both": (divided, None, initial),
        },
        tmp_path,
    )
    assert len(original.steps) == 5
    for one in seen.values():
        assert_same(one, original)
        assert set(one.results) == {"loss", "error"}
    assert seen["two"].parts[0] == [[6, 8]] * 2
    assert seen["both"].layouts == [["unsharded", "model"], ["model"], ["model", "unsharded"], ["unsharded"]]
    assert seen["both"].parts == [[[6, 4]] * 8, [[4]] * 8, [[4, 1]] * 8, [[1]] * 8]
    assert ["unsharded", "model"] in seen["both"].slots  # momentum is divided as its variable is


def test_layouts_that_are_chosen_from_sizes(servers: Servers, tmp_path: Path) -> None:
    """The devices hold what was computed, and what is divided is what makes it fit. The gradients are not looked at."""
    (tmp_path / "original.py").write_text(SQUARES, encoding="utf-8")
    original = record(servers[0], "original", tmp_path / "original.py", tmp_path / "run", None)
    initial = begin(original, tmp_path / "initial.npz")
    whole = write(SQUARES, tmp_path, "whole.py", "model=2", ("auto",), device_memory="780")
    divided = write(SQUARES, tmp_path, "divided.py", "model=2", ("auto",), device_memory="600B")
    seen = run_all({"whole": (whole, None, initial), "divided": (divided, None, initial)}, tmp_path)
    for one in seen.values():
        assert_same(one, original)
    assert seen["whole"].held == 2 * 260  # a slot beside each weight
    assert seen["divided"].held == 2 * (260 - 96)
    assert seen["divided"].layouts == [["unsharded", "model"], ["unsharded"], ["unsharded", "unsharded"], ["unsharded"]]


def test_a_table_that_was_partitioned_is_divided(servers: Servers, tmp_path: Path) -> None:
    """By the rows, over the dimension that the partitioner made; whole on every device it trains the same."""
    (tmp_path / "original.py").write_text(LOOKUPS, encoding="utf-8")
    original = record(servers[0], "original", tmp_path / "original.py", tmp_path / "run", None)
    initial = begin(original, tmp_path / "initial.npz", LOOKUP_WEIGHTS)
    divided = write(LOOKUPS, tmp_path, "divided.py")
    whole = write(LOOKUPS.replace(", partitioner=tf.fixed_size_partitioner(2)", ""), tmp_path, "whole.py")
    seen = run_all(
        {"divided": (divided, [("batch", 2), ("model", 2)], initial), "whole": (whole, [("batch", 2)], initial)},
        tmp_path,
    )
    assert len(original.steps) == 5
    for one in seen.values():
        assert_same(one, original, 0, LOOKUP_WEIGHTS)
        assert set(one.results) == {"loss", "accuracy"}
    assert seen["divided"].layouts[0] == ["model", "unsharded"]
    assert seen["divided"].parts[:2] == [[[6, 4]] * 4, [[4, 8]] * 4]
    assert seen["divided"].slots[1] == ["unsharded", "unsharded"]  # Keras' Adagrad does not divide its accumulators
    assert seen["whole"].parts[0] == [[12, 4]] * 2


def test_a_checkpoint_moves_between_layouts(servers: Servers, tmp_path: Path) -> None:
    """Three steps on a mesh of one dimension, the rest with divided variables: as in one training of five."""
    (tmp_path / "original.py").write_text(CLASSES.replace("STEPS", "5"), encoding="utf-8")
    original = record(servers[0], "original", tmp_path / "original.py", tmp_path / "run", None)
    initial = begin(original, tmp_path / "initial.npz")
    text = CLASSES.replace("MODEL_DIR", str(tmp_path / "checkpoints"))
    before = write(text.replace("STEPS", "3"), tmp_path, "before.py")
    after = write(text.replace("STEPS", "5"), tmp_path, "after.py", "model=2", COLUMNS)
    seen = run_all({"before": (before, [("batch", 4)], initial), "after": (after, None, None)}, tmp_path)
    np.testing.assert_allclose(seen["before"].losses, [step.loss for step in original.steps][:3], rtol=1e-5)
    assert len(seen["after"].losses) == 2
    assert_same(seen["after"], original, 3)
    assert seen["after"].parts[0] == [[6, 4]] * 8
