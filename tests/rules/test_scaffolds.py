"""Scaffolds: what only keeps checkpoints is left out with the lines that made it, the rest is refused."""

from __future__ import annotations

from textwrap import indent

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

SAVER = "tf.train.Saver(max_to_keep=3, save_relative_paths=True)"


def with_scaffold(before: str, given: str) -> str:
    loss = f"loss = tf.losses.mean_squared_error(labels, logits)\n{before}"
    return program(loss=loss, spec=f", scaffold={given}")


@pytest.mark.parametrize(
    ("before", "given"),
    [
        (f"saver = {SAVER}\nscaffold = tf.train.Scaffold(saver=saver)", "scaffold"),
        ("scaffold = None\nif params['rate'] > 1:\n    scaffold = tf.train.Scaffold()", "scaffold"),
        ("pass", f"tf.train.Scaffold(saver={SAVER})"),
        ("pass", "tf.train.Scaffold(summary_op=tf.summary.merge_all())"),
    ],
)
def test_what_only_keeps_checkpoints_is_left_out(before: str, given: str) -> None:
    new, findings = run(with_scaffold(before, given))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "TFM854" in [f.code for f in findings]
    assert "caffold" not in new and "aver(" not in new and "merge_all" not in new


@pytest.mark.parametrize(
    ("before", "given", "says"),
    [
        ("pass", "tf.train.Scaffold(init_fn=lambda scaffold, session: None)", "warm_start_from"),
        ("pass", "tf.train.Scaffold(local_init_op=tf.tables_initializer())", "`local_init_op`"),
        ("pass", "tf.train.Scaffold(saver=tf.train.Saver([logits]))", "`var_list`"),
        ("kept = tf.train.Checkpoint(a=loss)", "tf.train.Scaffold(saver=kept)", "called here"),
        ("pass", "params['scaffold']", "created in the model_fn"),
    ],
)
def test_what_may_change_the_training_is_refused(before: str, given: str, says: str) -> None:
    text = with_scaffold(before, given)
    new, findings = run(text)
    assert new == text
    assert any(f.code == "TFM855" and says in f.message for f in findings), findings


KEPT = """
ema = tf.train.ExponentialMovingAverage(0.9)
if mode == tf.estimator.ModeKeys.EVAL:
    restored = EMA.variables_to_restore()
    scaffold = tf.train.Scaffold(saver=tf.train.Saver(restored, max_to_keep=3))
    return tf.estimator.EstimatorSpec(mode, loss=loss, scaffold=scaffold)
"""
APPLIED = """
with tf.control_dependencies([train_op]):
    train_op = ema.apply()
"""
AVERAGES = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.mean_squared_error(labels, logits)
{kept}
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
{applied}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
estimator.evaluate(input_fn)
"""


def averages(kept: str = KEPT, applied: str = APPLIED) -> str:
    return AVERAGES.format(kept=indent(kept, "    "), applied=indent(applied, "    "))


@pytest.mark.parametrize("made", ["ema", "tf.train.ExponentialMovingAverage(0.5)"])
@pytest.mark.parametrize("keras", ["2", "3"])
def test_averages_are_evaluated_where_a_scaffold_restores_them(made: str, keras: str) -> None:
    new, findings = run(averages(KEPT.replace("EMA", made)), keras=keras)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert [f.code for f in findings if "evaluated weights" in f.message] == ["TFM412"]
    assert "class AveragedModel(tf.keras.Model):" in new
    assert "model = AveragedModel(" in new
    assert "caffold" not in new and "restored" not in new and "ema." not in new


def test_a_model_class_of_its_own_evaluates_averages_too() -> None:
    text = averages(KEPT.replace("EMA", "ema")).replace("loss = tf", "loss = tf.reduce_sum(logits) + tf")
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "(AveragedModel):" in new
    assert new.count("(tf.keras.Model):") == 1


REFUSED = {
    "averages that nobody keeps": (averages(KEPT.replace("EMA", "ema"), "pass"), {}),
    "averages by another name": (
        averages(KEPT.replace("EMA", 'tf.train.ExponentialMovingAverage(0.5, name="mean")')),
        {},
    ),
    "a loop of its own": (averages(KEPT.replace("EMA", "ema")), {"loop": "custom"}),
    "predictions": (
        averages(KEPT.replace("EMA", "ema"))
        .replace(", predictions=logits)", ", predictions=logits, scaffold=SCAFFOLD)")
        .replace("SCAFFOLD", "tf.train.Scaffold(saver=tf.train.Saver(EMA.variables_to_restore()))")
        .replace("EMA", "tf.train.ExponentialMovingAverage(0.9)"),
        {},
    ),
    "some weights": (averages(KEPT.replace("EMA.variables_to_restore()", "ema.variables_to_restore([logits])")), {}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_averages_are_not_evaluated_in(what: str) -> None:
    text, options = REFUSED[what]
    new, findings = run(text, **options)
    assert new == text
    assert {"TFM413", "TFM855"} & {f.code for f in findings if f.severity is Severity.MANUAL}, findings
