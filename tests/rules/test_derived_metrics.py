"""Metrics that are computed from the results of others, as an F1 score of precision and recall."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

HEAD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [1])).batch(1)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 2)
    predicted = tf.argmax(logits, 1)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    precision, counted = tf.metrics.precision(labels, predicted)
    recall = tf.metrics.recall(labels, predicted)
"""
TAIL = """
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=ENTRIES)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
F1 = "    f1 = 2 * precision * recall[0] / (precision + recall[0] + 1e-7)\n"
BOTH = "tf.group(counted, recall[1])"


def text(lines: str, entries: str) -> str:
    return HEAD + lines + TAIL.replace("ENTRIES", entries)


DERIVED = {
    "one entry": text(F1, '{"f1": (f1, UPDATE)}'.replace("UPDATE", BOTH)),
    "beside its metrics": text(
        F1, '{"precision": (precision, counted), "recall": recall, "f1": (f1, UPDATE)}'.replace("UPDATE", BOTH)
    ),
    "an update with a name": text(
        F1 + "    update = tf.group(recall[1], counted)\n", '{"f1": (tf.identity(f1), update)}'
    ),
    "calls": text(
        "    f1 = tf.divide(tf.multiply(2.0, precision * recall[0]), tf.add(precision + recall[0], 1e-7))\n",
        '{"f1": (f1, UPDATE)}'.replace("UPDATE", BOTH),
    ),
}


@pytest.mark.parametrize("name", DERIVED)
def test_one_metric_counts_for_all(name: str) -> None:
    """Beside TensorFlow 1.15.5 the values of four such programs are the same to five digits."""
    new, findings = run(DERIVED[name])
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert 'Counts(num_classes=2, name="f1")' in new
    assert "precision = tf.math.divide_no_nan(counts[1, 1], counts[0, 1] + counts[1, 1])" in new
    assert "recall = tf.math.divide_no_nan(counts[1, 1], counts[1, 0] + counts[1, 1])" in new


OTHERS = {
    "not all are updated": text(F1, '{"f1": (f1, counted)}'),
    "an update of its own": text(F1, '{"f1": (f1, f1)}'),
    "other labels": text(F1, '{"f1": (f1, UPDATE)}'.replace("UPDATE", BOTH)).replace(
        "tf.metrics.recall(labels,", "tf.metrics.recall(1 - labels,"
    ),
    "another function": text(F1.replace("2 * ", "2 * tf.exp(precision) * "), '{"f1": (f1, UPDATE)}').replace(
        "UPDATE", BOTH
    ),
    "a metric that is no count": text(F1, '{"f1": (f1, UPDATE)}'.replace("UPDATE", BOTH)).replace(
        "tf.metrics.recall(labels", "tf.metrics.accuracy(labels"
    ),
    "the training reads it": text(F1 + "    loss = loss + f1\n", '{"f1": (f1, UPDATE)}'.replace("UPDATE", BOTH)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_known_to_be_the_same_stays(name: str) -> None:
    new, findings = run(OTHERS[name])
    assert [f for f in findings if f.severity is Severity.MANUAL] and new == OTHERS[name]


def test_the_output_of_the_model_is_called_so_in_what_metrics_are_computed_from() -> None:
    """`out` is a symbolic tensor there: the program failed when it evaluated."""
    lines = "    out = tf.layers.dense(features, 1)\n    chance = tf.sigmoid(tf.squeeze(out, 1))\n"
    lines += "    loss = tf.losses.sigmoid_cross_entropy(labels, tf.squeeze(out, 1))\n"
    made = text(lines, '{"f1": tf.metrics.precision(labels, chance > 0.5, weights=labels)}')
    made = made.replace("    logits = tf.layers.dense(features, 2)\n", "").replace(
        "    predicted = tf.argmax(logits, 1)\n", ""
    )
    made = "".join(line for line in made.splitlines(keepends=True) if "predicted" not in line and "logits)" not in line)
    new, findings = run(made)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert "chance = tf.sigmoid(outputs)" in new


CONDITIONAL = """\
    entries = {"recall": recall}
    if params["all"]:
        entries["precision"] = tf.metrics.precision(labels, predicted)
    else:
        entries["mean"] = tf.metrics.mean(logits)
    if not params["few"] and DEBUG:
        entries["weighed"] = tf.metrics.accuracy(labels, predicted, weights=labels)
"""


def conditional(lines: str) -> str:
    made = text(lines, "entries").replace("labels, mode):", "labels, mode, params):")
    made = made.replace("    precision, counted = tf.metrics.precision(labels, predicted)\n", "")
    made = made.replace("import tensorflow as tf\n", "import tensorflow as tf\n\nDEBUG = True\n", 1)
    return made.replace("Estimator(model_fn)", 'Estimator(model_fn, params={"all": True, "few": False})')


def test_conditions_decide_which_metrics_there_are() -> None:
    """Beside TensorFlow 1.15.5 four such programs report the same metrics, with the same values."""
    new, findings = run(conditional(CONDITIONAL))
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert '**({"precision": tf.keras.metrics.Precision(name="precision")} if params["all"] else {}),' in new
    assert '**({"mean": tf.keras.metrics.Mean(name="mean")} if not params["all"] else {}),' in new
    assert '**({"weighed": tf.keras.metrics.Accuracy(name="weighed")} if not params["few"] and DEBUG else {}),' in new
    assert 'if "weighed" in entries:' in new


def test_a_condition_in_what_is_compiled() -> None:
    lines = '    entries = {}\n    if params["all"]:\n        entries["recall"] = recall\n'
    new, findings = run(conditional(lines))
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert '*([Recall(name="recall")] if params["all"] else [])' in new


@pytest.mark.parametrize(
    "lines",
    [
        CONDITIONAL.replace('params["all"]', "labels.shape[0] == 2"),
        CONDITIONAL.replace('params["all"]', "len(params) > 1"),
        CONDITIONAL.replace('    if params["all"]', '    params = dict(params, few=True)\n    if params["all"]'),
    ],
)
def test_a_condition_that_is_not_known_when_the_model_is_made(lines: str) -> None:
    new, findings = run(conditional(lines))
    assert [f for f in findings if f.severity is Severity.MANUAL] and new == conditional(lines)


def test_a_condition_in_another_one() -> None:
    inner = '        if params["few"]:\n            entries["precision"]'
    lines = CONDITIONAL.replace('        entries["precision"]', inner)
    new, findings = run(conditional(lines))
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert 'Precision(name="precision")} if params["all"] and params["few"] else {}),' in new
    lines = lines.replace("    else:\n        entries", "        else:\n            entries")
    new, _ = run(conditional(lines))
    assert 'Mean(name="mean")} if params["all"] and (not params["few"]) else {}),' in new
    either = '            entries["precision"] = recall\n        else:\n            entries["precision"]'
    lines = CONDITIONAL.replace('        entries["precision"]', f'        if params["few"]:\n{either}')
    new, findings = run(conditional(lines))
    assert [f for f in findings if f.severity is Severity.MANUAL]
