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


#: What a block computes for its metrics, and the same without a block.
COMPUTED = {
    "parts of a tensor": (
        'metrics = {}\nfor i, name in enumerate(["a", "b"]):\n'
        "    metrics[name] = tf.metrics.mean(logits[:, i] * (i + 1), labels[..., i:])",
        'metrics = {"a": tf.metrics.mean(logits[:, 0] * 1, labels[..., 0:]), '
        '"b": tf.metrics.mean(logits[:, 1] * 2, labels[..., 1:])}',
    ),
    "what has a name in the block": (
        "metrics = {}\nfor t in (0.3, 0.5):\n    above = tf.cast(logits - 1 > t, tf.float32)\n"
        '    metrics["above_%.1f" % t] = tf.metrics.mean(above)',
        'metrics = {"above_0.3": tf.metrics.mean(tf.cast((logits - 1) > 0.3, tf.float32)), '
        '"above_0.5": tf.metrics.mean(tf.cast((logits - 1) > 0.5, tf.float32))}',
    ),
    "a comprehension, and its name again": (
        'metrics = {"mean_%d" % i: tf.metrics.mean(logits[:, i]) for i in range(2)}\n'
        'for i in (7,):\n    metrics["last"] = tf.metrics.mean(tf.maximum(logits, i))',
        'metrics = {"mean_0": tf.metrics.mean(logits[:, 0]), "mean_1": tf.metrics.mean(logits[:, 1]), '
        '"last": tf.metrics.mean(tf.maximum(logits, 7))}',
    ),
    "a name that means something else behind the block": (
        'score = logits * 2.0\nmetrics = {}\nfor i in (0,):\n    metrics["mean"] = tf.metrics.mean(score[:, i])\n'
        "score = logits * 5.0",
        'metrics = {"mean": tf.metrics.mean((logits * 2.0)[:, 0])}',
    ),
}
UNKNOWN = {
    "a sum from turn to turn": (
        "total = tf.zeros_like(logits)\nmetrics = {}\nfor i in range(2):\n    total = total + logits[:, i]\n"
        '    metrics["m%d" % i] = tf.metrics.mean(total)'
    ),
    "a tensor of before the block that has no name": (
        'score = tf.square(logits)\nmetrics = {}\nfor i in (0,):\n    metrics["mean"] = tf.metrics.mean(score[:, i])\n'
        "score = tf.exp(logits)"
    ),
}


@pytest.mark.parametrize("way", COMPUTED)
def test_what_a_block_computes_for_a_metric(way: str) -> None:
    block, plain = COMPUTED[way]
    new, findings = _run(block)
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    assert new == _run(plain)[0]


@pytest.mark.parametrize("way", UNKNOWN)
def test_what_a_block_has_for_itself(way: str) -> None:
    _, findings = _run(UNKNOWN[way])
    assert "TFM501" in {one.code for one in findings if one.severity is Severity.MANUAL}
