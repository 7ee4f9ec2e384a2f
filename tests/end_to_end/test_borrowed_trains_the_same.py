"""A program that stays TensorFlow 1 beside one that is migrated, whose modules it reads: both train as before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrator.findings import Severity
from tests.end_to_end.proving import Servers, losses, record, record_both
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

NETWORK = """\
import tensorflow.compat.v1 as tf


def network(features):
    net = features
    for index in range(2):
        with tf.variable_scope("layer_%d" % index):
            # Seeds of their own: others would be counted from what is in the graph.
            first = tf.random_normal_initializer(seed=index)
            kernel = tf.get_variable("kernel", [net.shape[-1], 4], initializer=first)
            net = tf.keras.layers.LayerNormalization()(tf.tanh(tf.matmul(net, kernel)))
    return tf.keras.layers.Dense(1, kernel_initializer="ones")(net)


def log(loss):
    return tf.train.LoggingTensorHook({"loss": loss}, 100)
"""
PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

import network


def input_fn_builder(batch_size):
    def scale(x, y):
        return tf.to_float(x), tf.to_float(y)

    def input_fn():
        random = np.random.RandomState(3)
        x = random.normal(size=(40, 5))
        data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True)))
        # Small batches of the same data, in order: what is not read as before shows in every loss.
        return data.map(scale, tf.data.experimental.AUTOTUNE).repeat().batch(batch_size)

    return input_fn


def model_fn(features, labels, mode):
    loss = RATE * tf.reduce_mean(tf.square(labels - network.network(features)))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[network.log(loss)])


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn_builder(8), steps=5)
"""
_GONE = "from tensorflow_estimator.python.estimator.util import _DatasetInitializerHook\n"
TEXTS = {
    "network.py": NETWORK,
    "train.py": PROGRAM.replace("RATE", "0.1"),
    # A function that nothing stands for blocks this program.
    "stays.py": (
        PROGRAM.replace("RATE", "0.1")
        .replace("import network\n", f"{_GONE}\nimport network\nimport train\n")
        .replace("def model_fn", "print(_DatasetInitializerHook.__name__)\n\n\ndef model_fn")
        .replace("input_fn_builder(8)", "train.input_fn_builder(8)")
    ),
}


def test_both_train_the_same(servers: Servers, tmp_path: Path) -> None:
    results = run_project(TEXTS, style="auto")
    new = {name: text for name, (text, _) in results.items()}
    assert new["stays.py"] == TEXTS["stays.py"] and "keras_estimator" in new["train.py"]
    blocked = {name for name, (_, found) in results.items() if any(f.severity is Severity.MANUAL for f in found)}
    assert blocked == {"stays.py"}
    for kind, files in (("original", TEXTS), ("migrated", new)):
        (tmp_path / kind).mkdir()
        for name, text in files.items():
            (tmp_path / kind / name).write_text(text, encoding="utf-8")
    before, after, pairs = record_both(
        servers, tmp_path / "original" / "train.py", tmp_path / "migrated" / "train.py", tmp_path
    )
    np.testing.assert_allclose(losses(after), losses(before), rtol=1e-5)
    for ours, theirs in pairs.pairs:
        np.testing.assert_allclose(after.states[5][theirs], before.states[5][ours], rtol=1e-4, atol=1e-6)
    # The one that stays is run by TensorFlow 1, with the old modules and with the new ones: the same variables, and
    # the same numbers to the last bit.
    alone = [
        record(servers[0], "original", tmp_path / kind / "stays.py", tmp_path / f"stays-{kind}", None)
        for kind in ("original", "migrated")
    ]
    assert [v.name for v in alone[0].variables] == [v.name for v in alone[1].variables]
    assert losses(alone[0]) == losses(alone[1]) and len(losses(alone[0])) == 5
    np.testing.assert_allclose(losses(alone[0]), losses(before), rtol=1e-5)
