"""TPUEstimator programs that run without a TPU."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf

FLAGS = tf.flags.FLAGS


def input_fn(params):
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(answer, guess):
            error = tf.metrics.mean_squared_error(answer, guess)
            return {{"error": error}}

        eval_metrics = (metric_fn, {tensors})
        return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=eval_metrics)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op{spec})


def main(_):
    resolver = None
    if FLAGS.use_tpu and FLAGS.tpu_name:
        resolver = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu_name)
    per_host = tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2
    config = tf.contrib.tpu.RunConfig(
        cluster=resolver,
        model_dir="m",
        tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=10, per_host_input_for_training=per_host))
    estimator = tf.contrib.tpu.TPUEstimator(
        use_tpu={use_tpu}, model_fn=model_fn, config=config, train_batch_size=8, eval_batch_size=4{params})
    estimator.train(input_fn=input_fn, max_steps=5)
    estimator.evaluate(input_fn=input_fn, steps=2)


if __name__ == "__main__":
    tf.app.run()
"""


def tpu(use_tpu: str = "FLAGS.use_tpu", params: str = "", tensors: str = "[labels, logits]", spec: str = "") -> str:
    return PROGRAM.format(use_tpu=use_tpu, params=params, tensors=tensors, spec=spec)


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not manual(findings), findings
    ast.parse(new)
    return new


def test_batch_sizes_go_into_params() -> None:
    new = migrated(tpu())
    assert 'input_fn({"batch_size": 8})' in new and 'input_fn({"batch_size": 4}).take(2)' in new
    for word in ("tpu", "TPU", "resolver", "per_host", "metric_fn"):
        assert word not in new.replace("use_tpu", "")
    assert 'name="error"' in new and "guess" not in new and "answer" not in new
    found = [f.code for f in run(tpu())[1] if f.severity is Severity.REVIEW]
    assert "TFM144" in found and "TFM140" in found


def test_params_and_a_literal() -> None:
    new = migrated(tpu("False", ', params={"rate": 1}', '{"guess": logits, "answer": labels}'))
    assert 'input_fn(dict({"rate": 1}, batch_size=8))' in new
    assert "TFM144" not in [f.code for f in run(tpu("False"))[1]]


REFUSED = {
    "a TPU": (tpu("True"), "TFM145"),
    "batch size in the model": (
        tpu().replace("tf.layers.dense(features", 'f(params["batch_size"]'),
        "TFM145",
    ),
    "host call": (tpu(spec=", host_call=(f, [loss])"), "TFM110"),
    "scaffold": (tpu(spec=", scaffold_fn=f"), "TFM855"),
    "tensors that do not fit": (tpu(tensors="[labels]"), "TFM501"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, code = REFUSED[name]
    new, findings = run(text)
    assert new == text and code in manual(findings)


def test_a_metric_fn_beside_the_model_fn_goes_where_nothing_else_uses_it() -> None:
    body = "        def metric_fn(answer, guess):\n            error = tf.metrics.mean_squared_error(answer, guess)\n"
    text = tpu()
    start, end = text.index("        def metric_fn"), text.index("        eval_metrics =")
    assert text[start:].startswith(body)
    function = "\n".join(line[8:] for line in text[start:end].rstrip().splitlines())
    apart = text[:start].rstrip() + "\n" + text[end:]
    apart = apart.replace("def model_fn", f"# judges\n{function}\n\n\ndef model_fn", 1)
    assert "metric_fn" not in migrated(apart)
    kept = apart.replace("def main", "print(metric_fn)\n\n\ndef main")
    assert "TFM203" in manual(run(kept)[1])
