"""TPUEstimator programs, on a TPU and without one."""

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


def review(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.REVIEW]


def migrated(text: str, strategy: str = "one-device") -> str:
    new, findings = run(text, strategy)
    assert not manual(findings), findings
    ast.parse(new)
    return new


def test_batch_sizes_go_into_params() -> None:
    new = migrated(tpu())
    assert 'input_fn({"batch_size": 8})' in new and 'input_fn({"batch_size": 4}).take(2)' in new
    for word in ("tpu", "TPU", "resolver", "per_host", "metric_fn"):
        assert word not in new.replace("use_tpu", "")
    assert 'name="error"' in new and "guess" not in new and "answer" not in new
    assert "TFM144" in review(run(tpu(), "one-device")[1])


def test_params_and_a_literal() -> None:
    new = migrated(tpu("False", ', params={"rate": 1}', '{"guess": logits, "answer": labels}'), "auto")
    assert 'input_fn(dict({"rate": 1}, batch_size=8))' in new
    assert "TFM144" not in [f.code for f in run(tpu("False"))[1]]


REFUSED = {
    "batch sizes that differ, in the model": (
        tpu().replace("logits = tf", 'print(params["batch_size"])\n    logits = tf'),
        "TFM145",
    ),
    "one model on several cores": (tpu("True").replace("_loop=10", "_loop=10, num_cores_per_replica=2"), "TFM441"),
    "a batch for every host": (tpu("True").replace("PER_HOST_V2", "BROADCAST"), "TFM442"),
    "input by host": (tpu("True").replace("[[2.0]]))", '[[2.0]])).shard(params["context"].n, 0)'), "TFM442"),
    "embeddings of the TPU": (tpu("True", ", embedding_config_spec=1"), "TFM443"),
    "K-FAC": (tpu("True").replace("import tensorflow as tf", "import kfac\nimport tensorflow as tf"), "TFM447"),
    "two resolvers": (tpu("True") + "\nother = tf.contrib.cluster_resolver.TPUClusterResolver('a')\n", "TFM446"),
    "a resolver made elsewhere": (
        tpu("True").replace("resolver = tf.contrib.cluster_resolver.TPUClusterResolver(", "resolver = find("),
        "TFM446",
    ),
    "scaffold": (tpu(spec=", scaffold_fn=f"), "TFM855"),
    "tensors that do not fit": (tpu(tensors="[labels]"), "TFM501"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, code = REFUSED[name]
    new, findings = run(text)
    assert new == text and code in manual(findings)


HOST_CALL = """\
    host_call = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        step = tf.train.get_global_step()
        rate = tf.train.exponential_decay(0.1, step, 10, 0.9)

        def host_call_fn(step_t, loss_t):
            with tf.contrib.summary.create_file_writer("m").as_default():
                with tf.contrib.summary.always_record_summaries():
                    tf.contrib.summary.scalar("loss", loss_t[0], step=step_t[0])
            return tf.contrib.summary.all_summary_ops()

        step_t = tf.reshape(step, [1])
        loss_t = tf.reshape(loss, [1])
        rate_t = tf.reshape(rate, [1])
        host_call = (host_call_fn, [step_t, loss_t, rate_t])
    optimizer = tf.train.GradientDescentOptimizer(rate)
"""


def test_a_host_call_is_left_out_with_what_only_served_it() -> None:
    plain = tpu(spec=", host_call=host_call")
    new, findings = run(plain.replace("    optimizer = tf.train.GradientDescentOptimizer(0.1)\n", HOST_CALL))
    assert "TFM423" in review(findings) and not manual(findings), findings
    assert "tf.keras.layers.Dense(1)" in new and "ExponentialDecay(0.1, 10, 0.9)" in new
    for word in ("host_call", "step_t", "loss_t", "rate_t", "contrib", "compat.v1"):
        assert word not in new
    beside = "def log(loss):\n    tf.contrib.summary.scalar('loss', loss[0])\n\n\ndef model_fn"
    new, findings = run(tpu(spec=", host_call=(log, [loss])").replace("def model_fn", beside))
    assert "TFM423" in review(findings) and "def log" not in new and "Dense(1)" in new


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
    # A function that the model_fn comes down to, and which goes itself, is nobody else.
    built = apart.replace("def model_fn", "def build", 1)
    calls = (
        "def model_fn(features, labels, mode, params):\n    return build(features, labels, mode, params)\n\n\ndef main"
    )
    new = migrated(built.replace("def main", calls, 1))
    assert "metric_fn" not in new and "def build" not in new
    used = built.replace("def main", f"print(build)\n\n\n{calls}", 1)
    assert manual(run(used)[1])


SET_UP = """\
    if FLAGS.use_tpu:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu_name)
        strategy = make_strategy(resolver)
    else:
        strategy = tf.distribute.get_strategy()
    with strategy.scope():
        model = model_fn(
            make_inputs(input_fn({"batch_size": 8})),
            {},
            steps_per_execution=10 if FLAGS.use_tpu else 1,
        )
"""


def test_a_flag_decides_when_the_program_runs() -> None:
    new = migrated(tpu(), "auto")
    assert SET_UP in new and "def model_fn(features, params, steps_per_execution=1):" in new
    assert "steps_per_execution=steps_per_execution" in new
    assert "steps_per_epoch=steps" in new and 'evaluate(input_fn({"batch_size": 4}), steps=2, return_dict=True)' in new
    assert ".take(" not in new and "per_host" not in new and "TPUConfig" not in new
    assert new == migrated(tpu(), "tpu")
    findings = run(tpu())[1]
    assert {"TFM440", "TFM420", "TFM444"} <= set(review(findings)) and "TFM144" not in review(findings)
    lines = {f.code: tpu().splitlines()[f.line - 1] for f in findings}
    assert "FLAGS.tpu_name" in lines["TFM420"] and "TPUEstimator(" in lines["TFM101"]  # although branches are gone


@pytest.mark.parametrize("use_tpu", ["True", "absent"])
def test_a_program_for_tpus_only(use_tpu: str) -> None:
    text = tpu("True") if use_tpu == "True" else tpu().replace("use_tpu=FLAGS.use_tpu, ", "")
    new = migrated(text, "auto")
    assert "    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu_name)\n" in new
    assert "steps_per_execution=10)\n" in new and "get_strategy" not in new


def test_a_master_is_the_name_of_the_tpu() -> None:
    text = tpu("True").replace("cluster=resolver", "master=FLAGS.master")
    start, end = text.index("    resolver = None"), text.index("    per_host")
    assert "TPUClusterResolver(FLAGS.master)" in migrated(text[:start] + text[end:], "auto")


def test_lines_that_say_which_tpu_stay() -> None:
    text = tpu("use_tpu").replace("    resolver = None", "    use_tpu = FLAGS.use_tpu\n    resolver = None")
    assert "    use_tpu = FLAGS.use_tpu\n" in migrated(text, "auto")
    assert "use_tpu" not in migrated(text)


def test_an_estimator_may_go_to_a_tpu_too() -> None:
    text = PLAIN.format()
    assert "TPUClusterResolver()" in migrated(text, "tpu") and "steps_per_execution" not in migrated(text, "tpu")


PLAIN = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
"""


def test_the_batch_of_a_core_in_the_params_of_the_model() -> None:
    text = tpu().replace("logits = tf", 'print(params["batch_size"])\n    logits = tf').replace("size=4", "size=8")
    assert '{"batch_size": 8 // strategy.num_replicas_in_sync}' in migrated(text, "auto")
    assert 'make_inputs(input_fn({"batch_size": 8})), {"batch_size": 8})' in migrated(text)


def test_what_cannot_go_to_a_tpu_runs_without_where_a_flag_decides() -> None:
    text = tpu().replace("_loop=10", "_loop=10, num_cores_per_replica=2")
    new, findings = run(text)
    assert not manual(findings) and "TPUStrategy" not in new and "TFM144" in review(findings)
    assert any("num_cores_per_replica" in f.message for f in findings if f.code == "TFM144")


CROSS = "    if FLAGS.use_tpu:\n        LINEoptimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)\n    train_op ="
OTHERWISE = {
    "a summed loss": ("error(labels, logits)", "error(labels, logits, reduction=tf.losses.Reduction.SUM)", "is a sum"),
    "another loss": ("    train_op =", CROSS.replace("LINE", "loss = 2.0 * loss\n        "), "more than"),
    "the host in a helper": ("def input_fn", 'def host(p):\n    return p["context"]\n\n\ndef input_fn', "host"),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_would_train_otherwise_on_a_tpu_runs_without(name: str) -> None:
    old, new, why = OTHERWISE[name]
    made, findings = run(tpu().replace(old, new, 1), "auto")
    assert not manual(findings) and "TPUStrategy" not in made
    assert any(why in finding.message for finding in findings if finding.code == "TFM144"), findings


def test_a_branch_that_only_serves_the_tpu_goes_to_it() -> None:
    made, findings = run(tpu().replace("    train_op =", CROSS.replace("LINE", 'print("TPU")\n        '), 1), "auto")
    assert not manual(findings) and "TPUStrategy" in made


def test_a_time_is_no_number_of_steps() -> None:
    text = tpu("True").replace("_loop=10", "_loop='60s'")
    assert "steps_per_execution" not in migrated(text, "auto") and "TFM445" in review(run(text)[1])


def test_keras_3_runs_without_a_tpu() -> None:
    new, findings = run(tpu(), keras="3")
    assert not manual(findings) and "TPUStrategy" not in new and "TFM144" in review(findings)
    assert "TFM872" in manual(run(tpu("True"), keras="3")[1])


def test_a_resolver_that_stays_is_not_made_twice() -> None:
    text = tpu("True").replace("    resolver = None\n    if FLAGS.use_tpu and FLAGS.tpu_name:\n    ", "")
    text = text.replace("    per_host =", "    print(resolver.master())\n    per_host =")
    new = migrated(text, "auto")
    assert new.count("TPUClusterResolver(") == 1 and "strategy = make_strategy(resolver)" in new


def test_a_config_that_a_function_makes() -> None:
    text = tpu("True").replace(
        "def main(_):",
        """\
def make_config(master, steps):
    return tf.contrib.tpu.RunConfig(master=master, tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=steps))


def main(_):""",
    )
    start, end = text.index("    resolver = None"), text.index("    estimator =")
    new = migrated(text[:start] + "    config = make_config(FLAGS.master, FLAGS.steps)\n" + text[end:], "auto")
    assert "TPUClusterResolver(FLAGS.master)" in new and "steps_per_execution=FLAGS.steps" in new
    assert "make_config" not in new


def test_a_master_that_is_one_or_another() -> None:
    text = tpu("True").replace("cluster=resolver", "master=url")
    start, end = text.index("    resolver = None"), text.index("    per_host")
    lines = """\
    if FLAGS.master:
        url = FLAGS.master
    else:
        url = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu).get_master()
"""
    new = migrated(text[:start] + lines + text[end:], "auto")
    assert (
        "        url = FLAGS.master\n" in new and "resolver = tf.distribute" in new and "TPUClusterResolver(url)" in new
    )
    assert ".TPUClusterResolver(FLAGS.tpu).get_master()\n" in new


def test_the_master_of_a_resolver_is_the_resolver() -> None:
    text = tpu("True").replace("cluster=resolver", "master=resolver.get_master()")
    text = text.replace("    resolver = None\n    if FLAGS.use_tpu and FLAGS.tpu_name:\n    ", "")
    assert "TPUClusterResolver(FLAGS.tpu_name)" in migrated(text, "auto")


_SOUND = 'batch(params["batch_size"], drop_remainder=True)'
_SIZE = 'params["batch_size"]'


@pytest.mark.parametrize(
    ("batching", "told"),
    [
        (_SOUND, False),
        (f"repeat().batch({_SIZE})", False),
        (f"batch({_SIZE}, drop_remainder=params['train'])", False),
        ("apply(tf.contrib.data.batch_and_drop_remainder(8))", False),
        (f"batch({_SIZE})", True),
        (f"repeat(2).batch({_SIZE})", True),
        (f"batch({_SIZE}, drop_remainder=False).repeat()", True),
    ],
)
def test_a_last_batch_that_may_be_smaller_is_told_for_a_tpu(batching: str, told: bool) -> None:
    text = tpu("True").replace(_SOUND, batching)
    _, findings = run(text, "auto")
    assert [f.line for f in findings if f.code == "TFM433"] == ([7] if told else [])
    _, findings = run(tpu().replace(_SOUND, batching), "one-device")
    assert "TFM433" not in review(findings)


def test_data_that_are_repeated_in_a_statement_before_have_whole_batches() -> None:
    made = "tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]]))"
    text = tpu("True").replace(
        f"return {made}.{_SOUND}", f"data = {made}\n    data = data.repeat()\n    return data.batch(8)"
    )
    assert "TFM433" not in review(run(text, "auto")[1])


@pytest.mark.parametrize(
    ("before", "lines"),
    [
        ("features = tf.strings.to_number(tf.as_string(features))", [11, 11]),
        ("features = tf.py_func(lambda x: x, [features], tf.float32)", [11]),
        ("features = tf.string_to_number(tf.as_string(features))", [11, 11]),
        ("features = tf.where(features > 0, features, -features)", []),
    ],
)
def test_operations_that_a_tpu_lacks_are_told(before: str, lines: list[int]) -> None:
    text = tpu("True").replace("    logits = ", f"    {before}\n    logits = ")
    _, findings = run(text, "auto")
    assert [f.line for f in findings if f.code == "TFM432"] == lines
    assert not manual(findings) or "py_func" in before
    _, findings = run(text.replace("use_tpu=True", "use_tpu=False"), "auto")
    assert "TFM432" not in review(findings)


def test_what_the_input_function_computes_runs_on_the_host() -> None:
    text = tpu("True").replace(_SOUND, f"map(lambda x, y: (x, tf.strings.to_number(tf.as_string(y)))).{_SOUND}")
    assert "TFM432" not in review(run(text, "auto")[1])


def test_rows_of_embeddings_have_no_operation_on_a_tpu() -> None:
    dense, _ = run(tpu().replace("GradientDescentOptimizer(0.1)", "AdagradOptimizer(0.1)"))
    assert "tf.keras.optimizers.legacy.Adagrad(" in dense
    text = tpu().replace("GradientDescentOptimizer(0.1)", "AdagradOptimizer(0.1)")
    rows, _ = run(text.replace("(features, 1)", "(tf.keras.layers.Embedding(3, 2)(features), 1)"))
    assert "tf.keras.optimizers.Adagrad(" in rows and "legacy" not in rows
