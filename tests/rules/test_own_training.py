"""Programs that train themselves, in the mapped form: BERT and its like."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import run_project

UPDATE = """\
import tensorflow as tf


class Plain(tf.train.Optimizer):
    def __init__(self, rate):
        super(Plain, self).__init__(False, "Plain")
        self.learning_rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        return tf.group(*[v.assign(v - self.learning_rate * g) for g, v in grads_and_vars])


def make_train_op(loss, rate, use_tpu):
    step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(rate, step, 10)
    optimizer = Plain(rate)
    if use_tpu:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads = tf.gradients(loss, tvars)
    train_op = optimizer.apply_gradients(zip(grads, tvars))
    return tf.group(train_op, step.assign(step + 1))
"""

PROGRAM = """\
import tensorflow as tf

import update

FLAGS = tf.flags.FLAGS


def input_fn(params):
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(params["batch_size"])


def model_fn_builder(start, use_tpu):
    def model_fn(features, labels, mode, params):
        logits = tf.layers.dense(features, 1)
        loss = tf.reduce_mean(tf.square(labels - logits))
        scaffold_fn = None
        if start:
            names = {{v.name[:-2]: v.name[:-2] for v in tf.trainable_variables()}}
            if use_tpu:

                def tpu_scaffold():
                    tf.train.init_from_checkpoint(start, names)
                    return tf.train.Scaffold()

                scaffold_fn = tpu_scaffold
            else:
                tf.train.init_from_checkpoint(start, names)
        if mode == tf.estimator.ModeKeys.TRAIN:
            {before}
            train_op = update.make_train_op(loss, 0.1, use_tpu)
            return tf.contrib.tpu.TPUEstimatorSpec(
                mode=mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn)

        def metric_fn(answer, guess):
            return {{"error": tf.metrics.mean_squared_error(answer, guess)}}

        eval_metrics = (metric_fn, [labels, logits])
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode=mode, loss=loss, eval_metrics=eval_metrics, scaffold_fn=scaffold_fn)

    return model_fn


def main(_):
    model_fn = model_fn_builder(FLAGS.start, FLAGS.use_tpu)
    estimator = tf.contrib.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu, model_fn=model_fn, train_batch_size=8, eval_batch_size=4{more})
    if FLAGS.do_train:
        estimator.train(input_fn=input_fn, max_steps=5)
    if FLAGS.do_eval:
        result = estimator.evaluate(input_fn=input_fn)
        tf.logging.info(str(result))
"""


def migrate(update: str = UPDATE, before: str = "pass", more: str = "", strategy: str = "auto") -> dict[str, str]:
    results = run_project(
        {"train.py": PROGRAM.format(before=before, more=more), "update.py": update}, strategy, style="mapped"
    )
    assert not manual(results), manual(results)
    new = {path: text for path, (text, _) in results.items()}
    for text in new.values():
        ast.parse(text)
    return new


def manual(results: dict[str, tuple[str, list[Finding]]]) -> list[str]:
    found = [finding for _, findings in results.values() for finding in findings]
    return [f.code for f in found if f.severity is Severity.MANUAL]


def blocked(update: str = UPDATE, before: str = "pass", strategy: str = "auto") -> list[str]:
    texts = {"train.py": PROGRAM.format(before=before, more=""), "update.py": update}
    results = run_project(texts, strategy, style="mapped")
    assert {path: text for path, (text, _) in results.items()} == texts
    return manual(results)


def test_the_train_op_stays_where_it_is() -> None:
    new = migrate()
    assert new["update.py"].endswith(
        UPDATE[UPDATE.index("class") :]
        .replace("tf.train.", "tf.compat.v1.train.")
        .replace("tf.trainable_variables", "tf.compat.v1.trainable_variables")
        .replace("tf.gradients", "tf.compat.v1.gradients")
        .replace("    if use_tpu:\n        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)\n", "")
    )
    assert 'model.compile(optimizer=tf.keras.optimizers.Optimizer("train_op"))' in new["train.py"]
    assert '"loss": loss, "train_op": train_op' in new["train.py"]


def test_a_model_behind_flags_gets_its_variables_before_each_use() -> None:
    main = migrate(more=', model_dir="m"')["train.py"].partition("def main")[2]
    wanted = [
        "    model = model_fn()\n",
        "    if FLAGS.do_train:\n"
        '        model.make_variables(input_fn({"batch_size": 8}), "train")\n'
        "        checkpoint = tf.train.latest_checkpoint(model_dir)\n",
        "            model.load_weights(checkpoint)\n        steps = 5 - model.optimizer.iterations.numpy()\n",
        "            model.fit(\n",
        "    if FLAGS.do_eval:\n"
        '        model.make_variables(input_fn({"batch_size": 4}), "eval")\n'
        "        checkpoint = tf.train.latest_checkpoint(model_dir)\n",
        "            model.load_weights(checkpoint)\n"
        '        result = model.evaluate(input_fn({"batch_size": 4}), return_dict=True)\n',
    ]
    places = [main.index(text) for text in wanted]
    assert places == sorted(places)


def test_weights_to_begin_with_are_loaded_when_the_variables_are_made() -> None:
    new = migrate()["train.py"]
    assert "            model.init_from_checkpoint(start, names)\n" in new
    assert "    def init_from_checkpoint(self, checkpoint, assignment_map):\n" in new
    assert "Scaffold" not in new and "scaffold" not in new


def test_a_pair_of_a_function_and_its_tensors_becomes_the_call() -> None:
    new = migrate()["train.py"]
    assert 'eval_metrics = metric_fn(labels, logits) if mode == "eval" else None\n' in new
    assert '"loss": loss, "metrics": eval_metrics' in new


@pytest.mark.parametrize(
    ("update", "before"),
    [
        (UPDATE.replace("    tvars", "    other = tf.train.AdamOptimizer(rate).minimize(loss)\n    tvars", 1), "pass"),
        (UPDATE, "tf.get_variable('w', [1]).assign([1.0])"),
        (UPDATE, "tf.assign(tf.get_variable('w', [1]), [1.0])"),
    ],
)
def test_what_would_do_something_else_in_a_keras_model_is_refused(update: str, before: str) -> None:
    assert "TFM422" in blocked(update, before)


def test_it_trains_on_one_device() -> None:
    assert "TFM422" in blocked(strategy="parameter-server") or "TFM704" in blocked(strategy="parameter-server")


def test_branches_that_run_anywhere_stay() -> None:
    text = PROGRAM.format(before="if use_tpu:\n                loss = loss * 1.0", more="")
    new, _ = run_project({"train.py": text, "update.py": UPDATE}, style="mapped")["train.py"]
    assert "if use_tpu:\n                    loss = loss * 1.0\n" in new


def test_positions_are_those_of_the_file_as_it_was() -> None:
    """Also behind a branch that was left out."""
    text = PROGRAM.format(before="tf.get_variable('w', [1]).assign([1.0])", more="")
    _, findings = run_project({"train.py": text, "update.py": UPDATE}, style="mapped")["train.py"]
    (line,) = [number for number, text in enumerate(text.splitlines(), 1) if "assign(" in text]
    assert [finding.line for finding in findings if finding.code == "TFM422"] == [line]


def test_layer_norm_of_contrib_is_written_out() -> None:
    new = migrate(before="logits = tf.contrib.layers.layer_norm(logits, begin_norm_axis=-1, scope='LayerNorm')")
    assert "logits = contrib_layer_norm(logits, begin_norm_axis=-1, scope='LayerNorm')\n" in new["train.py"]
    assert "def contrib_layer_norm(\n" in new["train.py"]
    assert "TFM151" in blocked(before="logits = tf.contrib.layers.layer_norm(logits, outputs_collections='c')")


def test_what_is_left_of_contrib_crf_is_written_out() -> None:
    crf = "net, _ = {}(tf.reshape(logits, [-1, 1, 1]), transitions, tf.ones([4], tf.int32))"
    new = migrate(before=crf.format("tf.contrib.crf.crf_decode"))["train.py"]
    assert crf.format("crf_decode") in new and "def crf_decode(potentials, transition_params, sequence_length):" in new
    assert "TFM151" in blocked(before=crf.format("tf.contrib.crf.crf_log_norm"))


def test_a_number_of_steps_that_may_be_none_takes_all() -> None:
    text = PROGRAM.format(before="pass", more="").replace(
        "result = estimator.evaluate(input_fn=input_fn)",
        "steps = None\n        if FLAGS.short:\n            steps = 2\n"
        "        result = estimator.evaluate(input_fn=input_fn, steps=steps)",
    )
    new, _ = run_project({"train.py": text, "update.py": UPDATE}, style="mapped")["train.py"]
    assert 'model.evaluate(input_fn({"batch_size": 4}).take(-1 if steps is None else steps), return_dict=True)' in new


BLOCKED = """\
import tensorflow as tf

import update
import train

with tf.Session() as session:
    session.run(tf.constant(1.0))


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features, 1))
    train_op = update.make_train_op(loss, 0.1, False)
    print(tf.get_default_session())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: tf.data.Dataset.from_tensors(([[1.0]], [[2.0]])), steps=3)
"""


def share(update: str = UPDATE, blocked_program: str = BLOCKED) -> dict[str, tuple[str, list[Finding]]]:
    texts = {"train.py": PROGRAM.format(before="pass", more=""), "update.py": update, "other.py": blocked_program}
    return run_project(texts, style="mapped")


def test_a_blocked_program_that_shares_a_module_keeps_the_others_from_nothing() -> None:
    alone = BLOCKED.replace("import train\n", "")
    norm = "    loss = tf.reduce_sum(tf.contrib.layers.layer_norm(tf.reshape(loss, [1, 1])))\n    tvars"
    results = share(UPDATE.replace("    tvars", norm, 1), alone)
    assert results["other.py"][0] == alone
    assert "TF1Model" in results["train.py"][0]
    assert "tf.compat.v1.gradients" in results["update.py"][0]
    assert "TFM424" in [finding.code for finding in results["update.py"][1]]


def test_but_not_where_it_imports_them_or_where_the_module_would_change() -> None:
    wants_model = BLOCKED.replace("    print(", "    train.model_fn_builder and print(")
    for results in (share(blocked_program=wants_model), share(UPDATE + "\n\nDATA = tf.string_to_number('1')\n")):
        assert "TFM424" not in [f.code for _, findings in results.values() for f in findings]
        assert "TF1Model" not in results["train.py"][0]


def test_a_shared_module_makes_a_keras_layer_anew_in_a_graph_of_tensorflow_1() -> None:
    layer = "    loss = tf.reduce_sum(tf.keras.layers.LayerNormalization()(tf.reshape(loss, [1, 1])))\n    tvars"
    update = UPDATE.replace("    tvars", layer, 1)
    alone = BLOCKED.replace("import train\n", "")
    texts = {"train.py": PROGRAM.format(before="pass", more=""), "update.py": update}
    for_both = "        eagerly = tf.executing_eagerly()\n    if not eagerly:\n        return make()"
    assert for_both not in run_project(texts, style="mapped")["update.py"][0]
    results = share(update, alone)
    assert for_both in results["update.py"][0] and "TF1Model" in results["train.py"][0]
    assert "    @tf.compat.v1" in results["train.py"][0]
    importing = share(update, BLOCKED)["train.py"][0]
    assert "    @tf.compat.v1" not in importing and "(TF1Model.run_tracked)" in importing


def test_a_step_that_is_counted_in_any_order_is_told() -> None:
    _, findings = run_project(
        {"train.py": PROGRAM.format(before="pass", more=""), "update.py": UPDATE}, style="mapped"
    )["update.py"]
    (found,) = [finding for finding in findings if finding.code == "TFM425"]
    assert UPDATE.splitlines()[found.line - 1].strip() == "return tf.group(train_op, step.assign(step + 1))"
    ordered = UPDATE.replace(
        "    return tf.group(train_op, step.assign(step + 1))",
        "    with tf.control_dependencies([train_op]):\n        return tf.group(step.assign(step + 1))",
    )
    texts = {"train.py": PROGRAM.format(before="pass", more=""), "update.py": ordered}
    found_now = [f.code for _, findings in run_project(texts, style="mapped").values() for f in findings]
    assert "TFM421" in found_now and "TFM425" not in found_now
