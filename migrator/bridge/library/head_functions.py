"""The functions that the heads of ready-made models are made of, for heads that programs write themselves."""

import inspect

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .exporting import ClassificationOutput
from .heads import _all_classes, _broadcast, _checked_logits, _in_range, _labels_like_logits, _weights


def head_summary_key(head_name, val):
    """The name of a value's summary: that of the head behind it, where it has one."""
    return f"{val}/{head_name}" if head_name else val


def head_auc(labels, predictions, weights=None, curve="ROC", name=None):
    """The metric of the area under a curve: value and update."""
    with tf1.name_scope(name, "auc", (predictions, labels, weights)) as scope:
        predictions = tf.cast(predictions, tf.float32)
        weights = None if weights is None else _broadcast(weights, predictions)
        return tf1.metrics.auc(labels, predictions, weights=weights, curve=curve, name=scope)


def head_accuracy_baseline(labels_mean):
    """The accuracy of the more frequent of two classes, by the mean of the labels (value and update)."""
    with tf1.name_scope(None, "accuracy_baseline", labels_mean):
        value, update = labels_mean
        return tf.maximum(value, 1.0 - value, name="value"), tf.maximum(update, 1 - update, name="update_op")


def head_indicator_labels_mean(labels, weights=None, name=None):
    """The metric of the mean of labels that are 0 or 1: value and update."""
    return _mean(labels, weights, name, "labels_mean")


def head_predictions_mean(predictions, weights=None, name=None):
    """The metric of the mean of predictions: value and update."""
    return _mean(predictions, weights, name, "predictions_mean")


def _mean(values, weights, name, default):
    with tf1.name_scope(name, default, (values, weights)) as scope:
        values = tf.cast(values, tf.float32)
        return tf1.metrics.mean(values, None if weights is None else _broadcast(weights, values), name=scope)


def head_accuracy_at_threshold(labels, predictions, weights, threshold, name=None):
    """The accuracy where a prediction from `threshold` on counts as true: value and update."""
    with tf1.name_scope(name, f"accuracy_at_{threshold}", (predictions, labels, weights, threshold)) as scope:
        above = tf.cast(tf.greater_equal(predictions, threshold), tf.float32)
        return tf1.metrics.accuracy(labels, above, weights=weights, name=scope)


def head_precision_at_threshold(labels, predictions, weights, threshold, name=None):
    """The precision at a threshold: value and update."""
    return _at_threshold("precision", labels, predictions, weights, threshold, name)


def head_recall_at_threshold(labels, predictions, weights, threshold, name=None):
    """The recall at a threshold: value and update."""
    return _at_threshold("recall", labels, predictions, weights, threshold, name)


def _at_threshold(kind, labels, predictions, weights, threshold, name):
    metric = getattr(tf1.metrics, f"{kind}_at_thresholds")
    with tf1.name_scope(name, f"{kind}_at_{threshold}", (predictions, labels, weights, threshold)) as scope:
        value, update = metric(labels, predictions, (threshold,), weights=weights, name=scope)
        return tf.squeeze(value), tf.squeeze(update)


def head_get_weights_and_check_match_logits(features, weight_column, logits, allow_per_logit_weights=False):
    """The weights of the examples, of a shape that goes with the logits; 1 where there is no column."""
    return _weights(features, weight_column, logits, allow_per_logit_weights)


def head_check_logits_final_dim(logits, expected_logits_dimension):
    """The logits in single precision, checked: [D0, D1, ... DN, expected_logits_dimension]."""
    return _checked_logits(logits, expected_logits_dimension)


def head_check_dense_labels_match_logits_and_reshape(labels, logits, expected_labels_dimension):
    """Labels of the logits' shape, but for the last dimension, which is the expected one."""
    return _labels_like_logits(labels, logits, expected_labels_dimension)


def head_assert_range(labels, n_classes, message=None):
    """Labels that are checked to be from 0 to `n_classes` - 1."""
    return _in_range(labels, n_classes)


def head_validate_n_classes(n_classes):
    """The number of classes, if it is larger than 2.

    Raises:
        ValueError: It is 2 or less.
    """
    if isinstance(n_classes, int) and n_classes <= 2:
        raise ValueError(f"n_classes must be > 2: {n_classes}.")
    return n_classes


def head_validate_loss_fn_args(loss_fn):
    """Checks that a function of the loss takes `labels` and `logits`, and besides `features` at most.

    Raises:
        ValueError: It does not.
    """
    arguments = set(inspect.signature(loss_fn).parameters)
    if not {"labels", "logits"} <= arguments <= {"labels", "logits", "features"}:
        raise ValueError(f"loss_fn must take labels and logits, and may take features; it takes {sorted(arguments)}")


def head_call_loss_fn(loss_fn, labels, logits, features, expected_loss_dim=1):
    """What a function of the loss gives, of shape [D0, D1, ... DN, expected_loss_dim]."""
    keywords = {"features": features} if "features" in inspect.signature(loss_fn).parameters else {}
    loss = loss_fn(labels=labels, logits=logits, **keywords)
    expected = tf.concat([tf.shape(logits)[:-1], [expected_loss_dim]], axis=0)
    message = f"loss_fn must return a tensor of shape [D0, D1, ... DN, {expected_loss_dim}]"
    with tf.control_dependencies([tf1.assert_equal(tf.shape(loss), expected, message=message)]):
        return tf.identity(loss)


def head_all_class_ids(logits, n_classes):
    """The numbers of all classes beside each example: [batch, n_classes]."""
    return tf.tile(tf.expand_dims(tf.range(n_classes), 0), [tf.shape(logits)[0], 1])


def head_all_classes(logits, n_classes, label_vocabulary=None):
    """The names of all classes beside each example: [batch, n_classes]."""
    return _all_classes(tf.shape(logits)[0], n_classes, label_vocabulary)


def head_classification_output(scores, n_classes, label_vocabulary=None):
    """What is served of a classification, with the names of all classes."""
    return ClassificationOutput(scores, head_all_classes(scores, n_classes, label_vocabulary))


def head_append_update_ops(train_op):
    """The training step together with the updates that the graph has collected."""
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    return tf.group(train_op, *updates) if updates else train_op


def head_create_eval_metrics_tuple(fn, kwargs):
    """The `eval_metrics` of a TPUEstimatorSpec: a function of the tensors among `kwargs`, and these."""
    tensors = {key: value for key, value in kwargs.items() if tf.is_tensor(value)}
    others = {key: value for key, value in kwargs.items() if key not in tensors}
    return (lambda **given: fn(**{**others, **given})), tensors
