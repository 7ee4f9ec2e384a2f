"""Metrics are what `eval_metric_ops` holds in the end, however the dict comes about."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run

LOSS = "loss = tf.losses.mean_squared_error(labels, logits)\n"
ERROR = "tf.metrics.mean_absolute_error(labels, logits)"
MEAN = "tf.metrics.mean(logits)"
WRITTEN_OUT = f'metrics = {{"error": {ERROR}, "mean": {MEAN}}}'
WAYS = {
    "entries": f'metrics = {{}}\nmetrics["error"] = {ERROR}\nmetrics["mean"] = {MEAN}',
    "update": f'metrics = {{"error": {ERROR}}}\nmetrics.update({{"mean": {MEAN}}})',
    "update by keyword": f"metrics = dict()\nmetrics.update(error={ERROR}, mean={MEAN})",
    "zip": f'metrics = dict(zip(["error", "mean"], [{ERROR}, {MEAN}]))',
    "comprehension": f'metrics = {{name: made for name, made in [("error", {ERROR}), ("mean", {MEAN})]}}',
    "loop": f'metrics = {{}}\nfor name, made in [("error", {ERROR}), ("mean", {MEAN})]:\n    metrics[name] = made',
    "loop over arguments": (
        f'metrics = {{"error": {ERROR}}}\nfor name, of in [("mean", logits)]:\n    metrics[name] = tf.metrics.mean(of)'
    ),
    "merged": f'first = {{"error": {ERROR}}}\nmetrics = {{**first, "mean": {MEAN}}}',
    "another name": f'made = {{"error": {ERROR}, "mean": {MEAN}}}\nmetrics = made',
    "setdefault": f'metrics = {{"error": {ERROR}}}\nmetrics.setdefault("mean", {MEAN})',
    "a branch that is known": (
        f'metrics = {{"error": {ERROR}, "mean": {MEAN}}}\nif None:\n    metrics["other"] = tf.metrics.mean(labels)'
    ),
    "pairs": f'e, e_op = {ERROR}\nm = {MEAN}\nmetrics = {{"error": (e, e_op), "mean": (m[0], m[1])}}',
}
BAD = {
    "a condition": f'metrics = {{"error": {ERROR}}}\nif features.more:\n    metrics["mean"] = {MEAN}',
    "an unknown number": f'metrics = {{}}\nfor name in open("names"):\n    metrics[name] = {MEAN}',
    "something else in the block": (
        f'metrics = {{}}\nfor name in ["error"]:\n    metrics[name] = {ERROR}\n    net = tf.assign_add(logits, logits)'
    ),
    "its result goes into the network": f'm = {MEAN}\nmetrics = {{"mean": m}}\nloss = loss + m[0]',
    "a name of the block is used": (
        f'metrics = {{}}\nfor name, of in [("mean", labels * 2)]:\n    metrics[name] = {MEAN}\nloss = loss + of'
    ),
    "parts of two": f'a, a_op = {MEAN}\nb, b_op = {ERROR}\nmetrics = {{"mean": (a, b_op)}}',
}


def _run(lines: str) -> tuple[str, list[Finding]]:
    text = program(loss=LOSS + lines, spec=", eval_metric_ops=metrics", driver="estimator.evaluate(input_fn, steps=1)")
    return run(text)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_metrics(way: str) -> None:
    new, findings = _run(WAYS[way])
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    assert new == _run(WRITTEN_OUT)[0]


@pytest.mark.parametrize("way", BAD)
def test_what_is_not_known_or_not_apart_is_told(way: str) -> None:
    _, findings = _run(BAD[way])
    assert "TFM501" in {one.code for one in findings if one.severity is Severity.MANUAL}
