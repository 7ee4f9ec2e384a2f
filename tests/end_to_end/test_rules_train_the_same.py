"""Each rule with its proof: TensorFlow 1 and the Keras form that the codemod writes are run, and the numbers compared.

A small program per construct is migrated, both are trained from the same weights on the same batches, and losses,
evaluation metrics and predictions are compared. Bounds: the losses and metrics of one float32 program in two
TensorFlow versions agree to 1e-6 or better over these few steps (reference figures: 2e-7 to 4e-6 for weights over
60 to 100 steps), so 1e-5 leaves room for rounding and none for a wrong formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from migrator.findings import Severity
from migrator.harness.cluster import LOCAL, ClusterShape, ForkServer, Launch
from migrator.harness.environments import migrated_python, original_python
from migrator.harness.protocol import name_map
from migrator.harness.recording import Recording, read
from tests.rules.programs import run as migrate_text

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf


def data():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6, 6, 1)).astype(np.float32)
    {labels}
    return x, y


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).batch(8)


def model_fn(features, labels, mode):
    net = tf.layers.flatten(features)
    {network}
    {loss}
    metrics = {metrics}
    optimizer = {optimizer}
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, predictions={{"out": logits}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""

BINARY = "y = (x.mean(axis=(1, 2)) > 0).astype(np.float32)"
CLASSES = "y = random.randint(0, 4, size=40).astype(np.int64)"
NUMBERS = "y = x.sum(axis=(1, 2)) / 6"
ONE = "logits = tf.layers.dense(net, 1)"
FOUR = "logits = tf.layers.dense(net, 4)"
MSE = "loss = tf.losses.mean_squared_error(labels, logits)"
SPARSE = "loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)"
SIGMOID = "loss = tf.losses.sigmoid_cross_entropy(labels, logits)"
SGD = "tf.train.GradientDescentOptimizer(0.05)"

# construct -> labels, network, loss, metrics, optimizer
CASES: dict[str, tuple[str, str, str, str, str]] = {
    "absolute difference, mean_absolute_error": (
        NUMBERS,
        ONE,
        "loss = tf.losses.absolute_difference(labels, logits)",
        '{"mae": tf.metrics.mean_absolute_error(labels, logits), "mse": tf.metrics.mean_squared_error(labels, logits)}',
        SGD,
    ),
    "huber, root mean squared error": (
        NUMBERS,
        ONE,
        "loss = tf.losses.huber_loss(labels, logits, delta=0.3)",
        '{"rmse": tf.metrics.root_mean_squared_error(labels, logits)}',
        "tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True)",
    ),
    "sparse softmax, accuracy": (
        CLASSES,
        FOUR,
        SPARSE,
        '{"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}',
        "tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.2)",
    ),
    "softmax with smoothing of one-hot labels": (
        CLASSES,
        FOUR,
        "hot = tf.one_hot(labels, 4)\n    loss = tf.losses.softmax_cross_entropy(hot, logits, label_smoothing=0.1)",
        '{"accuracy": tf.metrics.accuracy(tf.argmax(hot, 1), tf.argmax(logits, 1))}',
        "tf.train.AdamOptimizer(0.01, epsilon=1e-3)",
    ),
    "mean of tf.nn sparse softmax with a cast": (
        CLASSES.replace("int64", "float32"),
        FOUR,
        "losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(labels, tf.int32), logits=logits)\n"
        "    loss = tf.reduce_mean(losses)",
        "{}",
        SGD,
    ),
    "sigmoid, auc, precision, recall, accuracy of a threshold": (
        BINARY,
        ONE + "\n    probability = tf.sigmoid(logits)\n    positive = tf.cast(probability > 0.5, tf.float32)",
        SIGMOID,
        '{"auc": tf.metrics.auc(labels, probability), "precision": tf.metrics.precision(labels, positive),'
        ' "recall": tf.metrics.recall(labels, positive), "accuracy": tf.metrics.accuracy(labels, positive),'
        ' "mean": tf.metrics.mean(probability)}',
        SGD,
    ),
    "hand-written squared error": (
        NUMBERS,
        ONE,
        "loss = tf.reduce_mean(tf.square(labels - logits))",
        "{}",
        SGD,
    ),
    "total loss with two regularizers": (
        NUMBERS,
        "net = tf.layers.dense(net, 5, tf.nn.relu, kernel_regularizer=tf.keras.regularizers.l2(0.1))\n"
        "    logits = tf.layers.dense(net, 1, kernel_regularizer=tf.keras.regularizers.l1(0.02))",
        "tf.losses.mean_squared_error(labels, logits)\n    loss = tf.losses.get_total_loss()",
        "{}",
        SGD,
    ),
    "regularizer that never counted": (
        NUMBERS,
        "logits = tf.layers.dense(net, 1, kernel_regularizer=tf.keras.regularizers.l2(0.5))",
        MSE,
        "{}",
        SGD,
    ),
    "convolution, average pooling, strides by position": (
        NUMBERS,
        'net = tf.layers.conv2d(features, 3, [3, 3], 2, "same", activation=tf.nn.relu)\n'
        "    net = tf.layers.average_pooling2d(net, 2, 1)\n"
        "    logits = tf.layers.dense(tf.layers.flatten(net), 1, use_bias=False)",
        MSE,
        "{}",
        SGD,
    ),
    "layer objects and a dropout that is off": (
        NUMBERS,
        "net = tf.layers.Dense(4, activation=tf.nn.tanh)(net)\n    net = tf.layers.dropout(net, 0.5)\n    " + ONE,
        MSE,
        "{}",
        SGD,
    ),
    "label expanded to a column": (
        NUMBERS.replace("(1, 2))", "(1, 2, 3))"),
        ONE,
        "labels = tf.expand_dims(labels, -1)\n    " + MSE,
        '{"rmse": tf.metrics.root_mean_squared_error(labels, logits)}',
        SGD,
    ),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[ForkServer, ForkServer]]:
    with (
        ForkServer(original_python(), "original") as original,
        ForkServer(migrated_python(), "migrated") as migrated,
    ):
        yield original, migrated


def record(server: ForkServer, program: str, script: Path, folder: Path, initial: Path | None) -> Recording:
    plan = {
        "record": str(folder / "record"),
        "model_dir": str(folder / "model"),
        "trainers": [str(LOCAL)],
        "steps": None,
        "state_steps": [1, 5],
        "initial": str(initial) if initial else None,
        "ulp_seed": None,
        "learning_rate_factor": 1.0,
        "replay": None,
        "record_batches": True,
        "pin_dropout": True,
        "evaluate": True,
    }
    folder.mkdir()
    outcome = server.run(Launch(program, script, (), ClusterShape.parse(""), folder, plan))
    assert outcome.failure is None, outcome.failure
    return read(folder / "record")


@pytest.mark.parametrize("construct", CASES)
def test_trains_and_evaluates_the_same(construct: str, servers: tuple[ForkServer, ForkServer], tmp_path: Path) -> None:
    labels, network, loss, metrics, optimizer = CASES[construct]
    text = PROGRAM.format(labels=labels, network=network, loss=loss, metrics=metrics, optimizer=optimizer)
    new, findings = migrate_text(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    (tmp_path / "original.py").write_text(text, encoding="utf-8")
    (tmp_path / "migrated.py").write_text(new, encoding="utf-8")
    original = record(servers[0], "original", tmp_path / "original.py", tmp_path / "a", None)
    probe = record(servers[1], "migrated", tmp_path / "migrated.py", tmp_path / "b", None)
    pairs = name_map.build(original.variables, probe.variables)
    assert pairs.complete, pairs
    initial = tmp_path / "initial.npz"
    np.savez(initial, **{pairs.to_migrated()[name]: value for name, value in original.initial.items()})
    migrated = record(servers[1], "migrated", tmp_path / "migrated.py", tmp_path / "c", initial)

    assert len(original.steps) == len(migrated.steps) == 5
    np.testing.assert_allclose(
        [step.loss for step in migrated.steps], [step.loss for step in original.steps], rtol=1e-5
    )
    for ours, theirs in pairs.pairs:
        np.testing.assert_allclose(migrated.states[5][theirs], original.states[5][ours], rtol=1e-4, atol=1e-6)
    before, after = original.evaluations[-1].results, migrated.evaluations[-1].results
    assert before and set(before) <= set(after)
    for name in before:
        assert after[name] == pytest.approx(before[name], rel=1e-5), name
