"""Metrics that only tf.contrib has."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run


@pytest.mark.parametrize("more", ["", ", num_thresholds=50"])
def test_the_best_f1_score(more: str) -> None:
    spec = f', eval_metric_ops={{"f1": tf.contrib.metrics.f1_score(labels, tf.sigmoid(logits){more})}}'
    new, findings = run(program(spec=spec, driver="estimator.evaluate(input_fn, steps=1)"))
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    assert "class BestF1Score(tf.keras.metrics.AUC):" in new and "contrib" not in new
    assert f"BestF1Score(num_thresholds={'50' if more else '200'}" in new
    assert "TFM510" in {finding.code for finding in findings}


def test_tensorflow_has_no_f1_score_of_its_own() -> None:
    spec = ', eval_metric_ops={"f1": tf.metrics.f1_score(labels, logits)}'
    text = program(spec=spec)
    new, findings = run(text, style="auto")
    assert new == text and "TFM501" in {finding.code for finding in findings}
