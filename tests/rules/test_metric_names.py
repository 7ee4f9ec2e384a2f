"""Names of the tensors of metrics."""

from __future__ import annotations

from tests.rules.programs import program, run

EVALUATED = """\
if mode == tf.estimator.ModeKeys.EVAL:
    error = tf.metrics.mean_absolute_error(labels, logits)
    tf.identity(error[1], name="e")
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"error": error})"""


def test_the_name_of_a_metrics_tensor_that_nothing_reads_is_left_out() -> None:
    text = program(
        loss=f"loss = tf.losses.mean_squared_error(labels, logits)\n{EVALUATED}",
        driver="estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn)",
    )
    new, findings = run(text)
    assert "identity" not in new and "TFM512" in {finding.code for finding in findings}, findings
