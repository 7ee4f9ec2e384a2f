"""Metrics of tf.contrib.metrics: pairs of a value and an update. Their predictions come before their labels."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1


def streaming_mean_squared_error(
    predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
):
    """The mean of the squared errors."""
    return tf1.metrics.mean_squared_error(labels, predictions, weights, metrics_collections, updates_collections, name)


def streaming_root_mean_squared_error(
    predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
):
    """The root of the mean of the squared errors."""
    return tf1.metrics.root_mean_squared_error(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_mean_absolute_error(
    predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
):
    """The mean of the absolute errors."""
    return tf1.metrics.mean_absolute_error(labels, predictions, weights, metrics_collections, updates_collections, name)


def f1_score(
    labels,
    predictions,
    weights=None,
    num_thresholds=200,
    metrics_collections=None,
    updates_collections=None,
    name=None,
):
    """The best F1 score that predictions from 0 to 1 have at any of `num_thresholds` thresholds."""
    thresholds = [-1e-7, *((i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)), 1.0 + 1e-7]
    with tf1.variable_scope(name, "f1", (labels, predictions, weights)):
        predictions = tf.cast(predictions, tf.float32)
        true = tf1.metrics.true_positives_at_thresholds(labels, predictions, thresholds, weights)
        false = tf1.metrics.false_positives_at_thresholds(labels, predictions, thresholds, weights)
        missed = tf1.metrics.false_negatives_at_thresholds(labels, predictions, thresholds, weights)
        value, update = (_best_f1(*counts) for counts in zip(true, false, missed, strict=True))
        for collections, tensor in ((metrics_collections, value), (updates_collections, update)):
            if collections:
                tf1.add_to_collections(collections, tensor)
        return value, update


def _best_f1(true, false, missed):
    precision, recall = true / (1e-7 + true + false), true / (1e-7 + true + missed)
    return tf.reduce_max(2.0 * precision * recall / (precision + recall + 1e-7))
