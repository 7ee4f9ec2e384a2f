"""What a metric reads of a network that fills a list is an output of the model."""

from __future__ import annotations

from tests.rules.programs import run_or_blocked

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    sizes = []
    sizes.append(3)
    parts = []
    for size in sizes:
        parts.append(tf.layers.dense(features, size))
    out = tf.layers.dense(tf.concat(parts, -1), 1)
    share = tf.sigmoid(out)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=out))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    metrics = {
        "mean": tf.metrics.mean(share, weights=labels),
        "most": tf.metrics.mean(tf.reduce_max(share) + len(sizes), weights=labels),
    }
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""


def test_metrics_read_outputs() -> None:
    """`share` comes of `parts`, which only `append` gave anything; `sizes`, which constants fill, stays as it is."""
    new, blocked = run_or_blocked(PROGRAM)
    assert not blocked
    _, update = new.split("def compute_metrics")
    given = update.split("update_state", 1)[0]
    assert "share" in given and "y_pred" in given and "len(sizes)" in update
