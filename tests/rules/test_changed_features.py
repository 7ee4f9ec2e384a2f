"""A metric that reads one entry of the features, where the model_fn gives another one a new value."""

from __future__ import annotations

from migrator.findings import Severity
from tests.rules.programs import run

TEXT = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices({"image": tf.ones([8, 4]), "label": tf.range(8)}).batch(4)


def model_fn(features, mode):
    features["image"] = tf.reshape(features["image"], [-1, 2, 2])
    logits = tf.layers.dense(tf.layers.flatten(features["image"]), 10)
    loss = tf.losses.sparse_softmax_cross_entropy(features["label"], logits)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(features["label"], tf.argmax(logits, 1))}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
print(estimator.evaluate(input_fn))
"""


def test_what_it_reads_stays() -> None:
    new, findings = run(TEXT)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "inputs = features\n    features = dict(features)" in new
    assert 'features, logits = x, y_pred["logits"]' in new
    assert 'update_state(features["label"], tf.argmax(logits, 1))' in new


def test_what_it_reads_is_changed_or_not_known() -> None:
    for old, given in (
        ('accuracy(features["label"]', 'accuracy(features["image"]'),
        ('features["image"] = tf', 'features["label"] = tf'),
        ('features["image"] = tf', "features[key] = tf"),
        ("    logits =", "    features.update(label=features['image'])\n    logits ="),
    ):
        new, findings = run(TEXT.replace(old, given))
        assert new == TEXT.replace(old, given), given
        assert [f for f in findings if f.severity is Severity.MANUAL]
