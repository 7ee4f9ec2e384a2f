"""Programs that only predict, in the mapped form (TFM427)."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from migrator.findings import Severity
from migrator.program.modes import PREDICT, not_run_in
from migrator.program.parsed import ParsedFile
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices([[1.0]]).batch(1)


def model_fn(features, labels, mode):
    table = tf.get_variable("table", [1, 2])
    logits = tf.matmul(features, table)
{body}

estimator = tf.estimator.Estimator(model_fn, model_dir="model")
for one in estimator.predict(input_fn):
    print(one)
"""
ENDS = {
    "the mode is checked": """\
    if mode != tf.estimator.ModeKeys.PREDICT:
        raise ValueError("only predictions")
    return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
""",
    "the prediction comes first": """\
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.mean_squared_error(labels, logits)
    with tf.Session() as session:
        rate = session.run(tf.constant(0.1))
    train_op = tf.train.AdamOptimizer(rate).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    "the prediction comes last": """\
    training = mode == tf.estimator.ModeKeys.TRAIN
    if training:
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = tf.train.AdamOptimizer(tf.placeholder(tf.float32)).minimize(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    elif mode == tf.estimator.ModeKeys.EVAL:
        loss = tf.losses.mean_squared_error(labels, logits)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={})
    else:
        spec = tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    return spec
""",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_only_what_predicts_is_left(end: str) -> None:
    new, findings = run(PROGRAM.format(body=end), style="auto")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "TFM427" in {f.code for f in findings}
    ast.parse(new)
    assert '{"predictions": {"logits": logits}}' in new.replace("\n", "").replace("  ", "")
    for gone in ("train_step", "test_step", "compile(", "Session", "placeholder", "Optimizer", "loss", "raise"):
        assert gone not in new, gone
    assert 'modes=("infer",)' in new and "load_weights" in new


def test_a_predictor_without_predictions_is_refused() -> None:
    end = "    return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_sum(logits))\n"
    text, findings = run(PROGRAM.format(body=end), style="mapped")
    assert text == PROGRAM.format(body=end)
    assert [f.code for f in findings if f.severity is Severity.MANUAL] == ["TFM111"]


def test_a_program_that_evaluates_too_is_none() -> None:
    text = PROGRAM.format(body=ENDS["the mode is checked"]) + "estimator.evaluate(input_fn)\n"
    new, findings = run(text, style="mapped")
    assert new == text and "TFM105" in {f.code for f in findings}


@pytest.mark.parametrize(
    ("body", "gone"),
    [
        ("if mode == 'train':\n    a\nelse:\n    b\n", ["a"]),
        ("if mode == 'infer':\n    a\nelif b:\n    c\nelse:\n    d\n", ["c", "d"]),
        ("if mode == 'eval':\n    a\nelif mode == 'infer':\n    b\n    return c\nd\n", ["a", "d"]),
        ("if x:\n    return a\nb\n", []),
        ("train = mode == 'train'\nif train:\n    a\ntrain = x\nif train:\n    b\n", ["a"]),
        ("if not mode == 'infer':\n    return a\nb\n", ["return a"]),
        ("if x and mode == 'infer':\n    return a\nelse:\n    if mode == 'train':\n        b\n    c\n", ["b"]),
        ("if x and mode == 'train':\n    a\nelse:\n    return b\nc\n", ["a", "c"]),
        ("if x or mode == 'infer':\n    a\nelif x:\n    b\nelse:\n    c\n", ["b", "c"]),
        ("with x:\n    if mode == 'infer':\n        return a\n    b\nc\n", ["b", "c"]),
    ],
)
def test_what_a_mode_does_not_run(body: str, gone: list[str]) -> None:
    module = cst.parse_module(body)
    file = ParsedFile.parse(Path("a.py"), "import tensorflow as tf\n")
    found = not_run_in(PREDICT, module.body, file.imports, "mode")
    assert [module.code_for_node(node).strip() for node in found] == gone
