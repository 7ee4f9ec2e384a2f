"""Checkpoints of a model_dir: an Estimator's are left alone, and the finding says what to do."""

from __future__ import annotations

from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[1.0]])).batch(1)


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn{given})
estimator.train(input_fn, steps=5)
"""


def test_checkpoints_of_an_estimator_are_not_loaded() -> None:
    new, findings = run(PROGRAM.format(given=", 'trained'"))
    assert [finding.code for finding in findings if finding.code == "TFM850"] == ["TFM850"]
    start = new.index("checkpoint = tf.train")
    assert new[start:].splitlines()[:3] == [
        "checkpoint = tf.train.latest_checkpoint(model_dir)",
        'if checkpoint and not os.path.basename(checkpoint).startswith("model.ckpt"):  # an Estimator\'s',
        "    model.load_weights(checkpoint)",
    ]


def test_without_a_model_dir_there_is_nothing_to_say() -> None:
    _, findings = run(PROGRAM.format(given=""))
    assert "TFM850" not in [finding.code for finding in findings]
