"""Lines that several branches of the mode have in common, names that say the mode, dropouts that drop nothing."""

from __future__ import annotations

import re

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

HEAD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
"""
TAIL = """

estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
IF = "if mode == tf.estimator.ModeKeys."
STEP = "tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())"
ENDS = f"""\
    loss = tf.losses.mean_squared_error(labels, logits)
    {IF}EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = {STEP}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


def losses(training: str, evaluation: str) -> str:
    """A model_fn of which two branches make the loss, each in two lines."""
    return f"""\
    logits = tf.layers.dense(features, 1)
    {IF}TRAIN:
        # what is minimized
        loss = tf.squared_difference(logits, labels)
        loss = tf.reduce_mean(loss){training}
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op={STEP})
    {IF}EVAL:
        # what is reported
        loss = tf.squared_difference(logits, labels)
        loss = tf.reduce_mean(loss){evaluation}
        return tf.estimator.EstimatorSpec(mode, loss=loss)
"""


def flagged(says: str, between: str = "", asks: str = "training=flag") -> str:
    """A model_fn whose batch normalization is told the mode by a name that lines give True or False."""
    return f"""\
{says}    net = tf.layers.dense(features, 4)
{between}    net = tf.layers.batch_normalization(net, {asks})
    logits = tf.layers.dense(net, 1)
{ENDS}"""


def dropped(training: str, other: str) -> str:
    """A model_fn with a line for the training, and one for the other modes."""
    return f"""\
    net = tf.layers.dense(features, 4)
    {IF}TRAIN:
        {training}
    else:
        {other}
    logits = tf.layers.dense(kept, 1)
{ENDS}"""


EITHER = f"    {IF}TRAIN:\n        flag = True\n    else:\n        flag = False\n"
DEFAULT = f"    flag = False\n    {IF}TRAIN:\n        flag = True\n"
TOLD = "kept = tf.layers.dropout(net, 0.5, training=True)"


@pytest.mark.parametrize(
    "body",
    [
        losses("", ""),
        losses(" * 2.0", " * 2.0"),
        flagged(EITHER),
        flagged(DEFAULT),
        flagged(EITHER.replace("True", "no").replace("False", "True").replace("no", "False"), asks="training=not flag"),
        dropped(TOLD, "kept = net"),
        dropped(TOLD, "kept = tf.layers.dropout(net, 0.5, training=False)"),
        dropped("kept = tf.nn.dropout(net, 0.5)", "kept = tf.nn.dropout(net, keep_prob=1.0)"),
        dropped(TOLD, "kept = tf.layers.dropout(net)"),
    ],
)
def test_what_says_the_same_is_native(body: str) -> None:
    new, findings = run(HEAD + body + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert not re.search(r"\b(mode|flag)\b", new)


def test_lines_of_two_modes_that_differ_are_those_of_two_losses() -> None:
    new, findings = run(HEAD + losses(" * 2.0", " * 3.0") + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    trained, evaluated = new.split("def evaluation_loss")
    assert " * 2.0" in trained and " * 3.0" not in trained
    assert " * 3.0" in evaluated and " * 2.0" not in evaluated


EARLY = f"""\
    features = features * 2.0
    out = tf.layers.dense(features, 1)
    {IF}PREDICT:
        logits = out
        return tf.estimator.EstimatorSpec(mode, predictions={{{{"out": logits}}}})
    loss = tf.losses.mean_squared_error({{before}})
    logits = out
    {IF}EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={{{{"mean": tf.metrics.mean(logits)}}}})
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op={STEP})
"""


def test_a_name_for_a_tensor_passes_lines_that_do_not_read_it() -> None:
    predicts = "print(list(estimator.predict(input_fn)))\n"
    new, findings = run(HEAD + EARLY.format(before="labels, out") + TAIL + predicts)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert new.count("\n    logits = out\n") == 1


def test_lines_of_two_modes_stand_once_with_the_comments_of_both() -> None:
    new, _ = run(HEAD + losses("", "") + TAIL)
    for text in ("tf.math.squared_difference", "# what is minimized", "# what is reported"):
        assert new.count(text) == 1


def test_a_dropout_is_at_work_in_the_training_only() -> None:
    new, _ = run(HEAD + dropped(TOLD, "kept = net") + TAIL)
    assert "kept = tf.keras.layers.Dropout(0.5)(net)" in new


@pytest.mark.parametrize(
    "body",
    [
        flagged(EITHER, between="    flag = True\n"),
        flagged(
            DEFAULT.replace(
                "        flag", "        net = tf.layers.batch_normalization(features, training=flag)\n        flag"
            )
        ),
        flagged(EITHER, between="    if len(features.shape) > 1:\n        flag = False\n"),
        dropped(TOLD, "kept = tf.layers.dropout(net, 0.5, training=True)\n        kept = kept * 2.0"),
        dropped(TOLD, "kept = features * 2.0"),
    ],
)
def test_what_says_something_else_stays(body: str) -> None:
    _, findings = run(HEAD + body + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] != []


MISSING = f"""\
    logits = tf.layers.dense(features, 1)
    {IF}TRAIN:
        loss = tf.losses.mean_squared_error(labels, logits)
        spec = tf.estimator.EstimatorSpec(mode, loss=loss, train_op={STEP})
    elif mode == tf.estimator.ModeKeys.EVAL:
        loss = tf.losses.mean_squared_error(labels, logits)
        spec = tf.estimator.EstimatorSpec(mode, loss=loss)
    return spec
"""


def test_a_model_fn_may_have_no_spec_to_predict() -> None:
    _, findings = run(HEAD + MISSING + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    _, findings = run(HEAD + MISSING + TAIL + "print(list(estimator.predict(input_fn)))\n")
    assert [f for f in findings if f.severity is Severity.MANUAL] != []
    _, findings = run(HEAD + MISSING.replace("ModeKeys.EVAL", "ModeKeys.PREDICT") + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] != []


TRIED = (
    HEAD + "    try:\n" + "\n".join("    " + line for line in MISSING.splitlines()) + "\n    except {error}:\n{handler}"
)


def test_an_error_that_is_only_printed_is_raised() -> None:
    printed = TRIED.format(error="ValueError as error", handler='        print("no model", error)\n')
    _, findings = run(printed + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert "TFM116" in {f.code for f in findings}
    another = "        return tf.estimator.EstimatorSpec(mode)\n"
    for handler in (another, "        features.clear()\n"):
        _, findings = run(TRIED.format(error="ValueError", handler=handler) + TAIL)
        assert [f for f in findings if f.severity is Severity.MANUAL] != []
    _, findings = run(printed + "    return tf.estimator.EstimatorSpec(mode, loss=tf.constant(1.0))\n" + TAIL)
    assert [f for f in findings if f.severity is Severity.MANUAL] != []


def test_a_graph_that_predictions_write_down_is_left_out_and_told() -> None:
    written = 'tf.train.write_graph(tf.get_default_graph().as_graph_def(), "out", "graph.pb")'
    predicts = (
        f"    {IF}PREDICT:\n        {written}\n        return tf.estimator.EstimatorSpec(mode, predictions=logits)\n"
    )
    body = losses("", "").replace(f"    {IF}TRAIN", f"{predicts}    {IF}TRAIN", 1)
    new, findings = run(HEAD + body + TAIL + "print(list(estimator.predict(input_fn)))\n")
    assert [f for f in findings if f.severity is Severity.MANUAL] == [] and "write_graph" not in new
    line = (HEAD + body).splitlines().index(f"        {written}") + 1
    assert ("TFM127", line) in {(f.code, f.line) for f in findings}
