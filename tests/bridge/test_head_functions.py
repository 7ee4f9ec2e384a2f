"""Functions of ready-made heads that programs import from behind tf.estimator: the numbers of the original ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.sides import run_both
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import types
    from tensorflow_estimator.python.estimator.canned import head as head_lib
    est = types.SimpleNamespace(**{"head" + name: value for name, value in vars(head_lib).items() if name[:1] == "_"})
"""
MODULES = ("head_functions",)
PROGRAM = """
def loss_fn(labels, logits, features):
    return tf.reduce_sum(tf.square(labels - logits), axis=-1, keepdims=True) + features["add"]


def fails(function, *given):
    try:
        function(*given)
    except ValueError:
        return True
    return False


graph = tf.Graph()
with graph.as_default():
    LABELS = tf.constant([[1.0], [0.0], [1.0], [1.0]])
    GUESSES = tf.constant([[0.9], [0.4], [0.3], [0.6]])
    WEIGHTS = tf.constant([[1.0], [2.0], [0.5], [1.0]])
    LOGITS = tf.constant([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]])
    mean = est.head_indicator_labels_mean(LABELS, weights=WEIGHTS)
    metrics = {
        "auc": est.head_auc(LABELS, GUESSES),
        "weighted auc": est.head_auc(LABELS, GUESSES, weights=WEIGHTS, curve="PR", name="mine"),
        "labels": mean,
        "baseline": est.head_accuracy_baseline(mean),
        "predictions": est.head_predictions_mean(GUESSES),
        "accuracy": est.head_accuracy_at_threshold(LABELS, GUESSES, WEIGHTS, 0.35),
        "precision": est.head_precision_at_threshold(LABELS, GUESSES, WEIGHTS, 0.35),
        "recall": est.head_recall_at_threshold(LABELS, GUESSES, None, 0.5),
    }
    features = {"w": tf.constant([2, 3]), "add": tf.constant([[1.0], [2.0]])}
    tensors = {
        "weights": est.head_get_weights_and_check_match_logits(features, "w", LOGITS),
        "none": est.head_get_weights_and_check_match_logits(features, None, LOGITS),
        "logits": est.head_check_logits_final_dim(LOGITS, 3),
        "labels like": est.head_check_dense_labels_match_logits_and_reshape(tf.constant([4, 5]), LOGITS, 1),
        "range": est.head_assert_range(tf.constant([[2], [0]]), 3),
        "loss": est.head_call_loss_fn(loss_fn, tf.ones([2, 3]), LOGITS, features, 1),
        "ids": est.head_all_class_ids(LOGITS, 3),
        "classes": est.head_all_classes(LOGITS, 3, ["a", "b", "c"]),
        "numbers": est.head_classification_output(LOGITS, 3).classes,
    }
    given = {"labels": LABELS, "n": 3}
    fn, given = est.head_create_eval_metrics_tuple(lambda labels, n: {"n": (labels * n, labels)}, given)
    tensors["tpu"] = fn(**given)["n"][0]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        found["updates"] = session.run({name: update for name, (_, update) in metrics.items()})
        found["values"] = session.run({name: value for name, (value, _) in metrics.items()})
        found["tensors"] = session.run({name: tf.convert_to_tensor(value) for name, value in tensors.items()})
    found["local"] = [variable.name for variable in tf.local_variables()]
    found["keys"] = [est.head_summary_key("head", "loss"), est.head_summary_key(None, "loss"), sorted(given)]
    found["errors"] = [
        fails(est.head_validate_n_classes, 2),
        fails(est.head_validate_n_classes, 3),
        fails(est.head_validate_loss_fn_args, loss_fn),
        fails(est.head_validate_loss_fn_args, lambda labels: labels),
    ]
"""


def test_numbers_are_those_of_the_original(tmp_path: Path) -> None:
    old, new = run_both(PROGRAM, tmp_path, MODULES, SETUP)
    assert not {what: (old[what], new[what]) for what in old if not close(old[what], new[what])}
