"""Programs with layers of their own: what their drivers write and read, and what only other functions do."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run

WRITER = 'estimator.train(input_fn, steps=3)\nwriter = tf.summary.FileWriter("logs", flush_secs=wait)\n'


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def test_summaries_of_the_driver() -> None:
    new, findings = run(
        program(
            driver=WRITER + 'summary = tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=0.5)])\n'
            'summary.value.add(tag="b", simple_value=1)\n# told\n'
            "writer.add_summary(summary, tf.to_int32(4))\nwriter.close()"
        )
    )
    assert not manual(findings)
    assert new.endswith(
        'writer = tf.summary.create_file_writer("logs", flush_millis=1000 * (wait))\n'
        'summary = tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="a", simple_value=0.5)])\n'
        'summary.value.add(tag="b", simple_value=1)\n# told\nwith writer.as_default():\n'
        "    tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=tf.cast(4, tf.int32))\n"
        "writer.close()\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "writer.add_summary(made_elsewhere, 3)",
        'writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=0.5)]))',
        "events = writer.add_summary(tf.Summary(), 3)",
        "writer.add_graph(graph)",
        'other = tf.summary.FileWriter("logs", graph)',
    ],
)
def test_what_else_a_file_writer_writes_is_refused(line: str) -> None:
    text = program(driver=WRITER + line)
    new, findings = run(text)
    assert new == text
    assert manual(findings) == ["TFM252"]


HANDED = """\
def go(estimator):
    estimator.train(input_fn, steps=3)
    {line}


go(tf.estimator.Estimator(model_fn, model_dir="model"))"""
MADE = 'estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n'


def test_the_step_of_the_newest_checkpoint() -> None:
    line = "return int(estimator.latest_checkpoint().split('-')[-1])"
    new, findings = run(program(driver=HANDED.format(line=line)).replace(MADE, ""))
    assert not manual(findings)
    assert "    return int(estimator.latest_step())\n" in new
    assert "def latest_step(self):" in new


@pytest.mark.parametrize(
    "line",
    [
        "step = estimator.latest_checkpoint().split('-')[-1]",
        "step = int(estimator.latest_checkpoint().rpartition('-')[2])",
        "path = estimator.latest_checkpoint()\n    step = path[path.rindex('-'):]",
    ],
)
def test_other_ways_to_take_the_name_of_a_checkpoint_apart_are_refused(line: str) -> None:
    text = program(driver=HANDED.format(line=line)).replace(MADE, "")
    new, findings = run(text)
    assert new == text
    assert manual(findings) == ["TFM255"]


PREDICTS = "def ask(estimator):\n    return list(estimator.predict(input_fn))\n\n\nprint(ask(estimator))"


def test_an_estimator_that_only_a_function_predicts_with() -> None:
    new, findings = run(program(driver=PREDICTS, spec=", predictions={'out': logits}"), style="mapped")
    assert not manual(findings)
    # Its data has no labels, so the variables are made for the mode that is asked for.
    assert 'for batch in self.prepare(input_fn(), "infer"):' in new
    assert "        self.model.make_variables(dataset, mode)\n" in new
    assert "def model_fn(params):" in new


MLPERF = "from mlperf_compliance import mlperf_log, tf_mlperf_log\n"


def test_values_that_mlperf_compliance_logs_in_a_graph() -> None:
    rate = "tf_mlperf_log.log_deferred(op=params['rate'], log_id=mlperf_log.resnet_print(deferred=True))"
    new, findings = run(MLPERF + program(optimizer=f"tf.train.GradientDescentOptimizer({rate})"))
    assert [f.code for f in findings if f.severity is Severity.REVIEW].count("TFM254") == 1
    assert "optimizer = tf.keras.optimizers.SGD(learning_rate=params['rate'])\n" in new
    assert "tf_mlperf_log" not in new and "from mlperf_compliance import mlperf_log\n" in new


def test_a_train_op_made_in_the_spec_itself() -> None:
    text = program().replace(
        "    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())\n    return tf.estimator."
        "EstimatorSpec(mode, loss=loss, train_op=train_op)",
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train(loss))\n\n\ndef train(loss):\n"
        "    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)\n"
        "    return optimizer.minimize(loss, global_step=tf.train.get_global_step())",
    )
    text = text.replace("    optimizer = tf.train.GradientDescentOptimizer(0.1)\n", "", 1)
    new, findings = run(text, style="mapped")
    assert not manual(findings), findings
    assert "SGD(learning_rate=0.1, momentum=0.9)" in new


KEPT = """\
class Net(tf.estimator.Estimator):
    def __init__(self, params):
        self.{name} = tf.train.GradientDescentOptimizer(params["rate"])

        def model_fn(features, labels, mode, params):
            logits = tf.layers.dense(features, 1)
            loss = tf.losses.mean_squared_error(labels, logits)
            {train}
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

        super(Net, self).__init__(model_fn=model_fn, params=params)
{more}

Net({{"rate": 0.1}}).train(input_fn, steps=3)
"""
PLAIN = "train_op = self.optimizer.minimize(loss, global_step=tf.train.get_global_step())"


def derived(train: str = PLAIN, name: str = "optimizer", more: str = "") -> str:
    whole = program()
    return whole[: whole.index("def model_fn")] + KEPT.format(train=train, name=name, more=more)


def test_an_optimizer_that_the_object_keeps() -> None:
    new, findings = run(derived())
    assert not manual(findings)
    assert '        self.optimizer = tf.keras.optimizers.SGD(learning_rate=params["rate"])\n' in new
    assert "optimizer=self.optimizer" in new


@pytest.mark.parametrize(
    "text",
    [
        derived(more="\n    def change(self):\n        self.optimizer = tf.train.AdamOptimizer(0.1)\n"),
        derived(
            "grads, tvars = zip(*self.optimizer.compute_gradients(loss))\n"
            "            grads, _ = tf.clip_by_global_norm(grads, 1.0)\n"
            "            train_op = self.optimizer.apply_gradients(zip(grads, tvars), tf.train.get_global_step())"
        ),
    ],
)
def test_other_optimizers_of_the_object_are_refused(text: str) -> None:
    new, findings = run(text)
    assert new == text
    assert manual(findings) == ["TFM403"]


FROM_TABLE = "KINDS = {'deep': deep}\n\n\ndef deep(features):\n    return tf.get_variable('w', [1, 1]) * features\n\n\n"


def test_networks_that_a_table_holds_and_collections_of_the_program() -> None:
    text = program(
        "net = KINDS['deep'](features)\ntf.add_to_collection('nets', net)\n(net,) = tf.get_collection(key='nets')"
    ).replace("def model_fn", FROM_TABLE + "def model_fn")
    new, findings = run(text, style="mapped")
    assert not manual(findings)
    assert "return tf.compat.v1.get_variable('w', [1, 1]) * features" in new
    assert "(net,) = tf.compat.v1.get_collection(key='nets')" in new


@pytest.mark.parametrize(
    "call", ["tf.get_collection('update_ops')", "tf.get_collection(name)", "tf.get_collection('a', 'b')"]
)
def test_collections_of_tensorflow_are_refused(call: str) -> None:
    text = program(f"net = features + tf.add_n({call})")
    new, findings = run(text, style="mapped")
    assert new == text
    assert "TFM151" in manual(findings)


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("start = tf.glorot_uniform_initializer()\nnet = layer(net, start)\nnet = layer(net, start)", True),
        ("start = tf.contrib.layers.xavier_initializer()\nfor _ in (1, 2):\n    net = layer(net, start)", True),
        ("start = tf.glorot_uniform_initializer()\nnet = layer(net, start)", False),
        ("start = tf.glorot_uniform_initializer(seed=1)\nnet = layer(net, start)\nnet = layer(net, start)", False),
        ("start = tf.zeros_initializer()\nnet = layer(net, start)\nnet = layer(net, start)", False),
        ("for _ in (1, 2):\n    start = tf.glorot_uniform_initializer()\n    net = layer(net, start)", False),
    ],
)
def test_an_initializer_of_several_layers(network: str, told: bool) -> None:
    network = network.replace("layer(net, start)", "tf.layers.dense(net, 3, kernel_initializer=start)")
    new, findings = run(program(network))
    assert "TFM258" in {f.code for f in findings} if told else "TFM258" not in {f.code for f in findings}
    assert new.count("kernel_initializer=start") or new.count("GlorotUniform") or new.count("Zeros")


def test_initializers_of_tensorflow_1_code_draw_anew() -> None:
    network = (
        "with tf.variable_scope('a', initializer=tf.contrib.layers.xavier_initializer(seed=2)):\n"
        "    w = tf.get_variable('w', [1, 1], initializer=tf.contrib.layers.variance_scaling_initializer())\n"
        "net = net * w"
    )
    new, findings = run(program(network), style="mapped")
    assert not manual(findings) and "TFM258" not in {f.code for f in findings}
    assert "initializer=tf.compat.v1.glorot_uniform_initializer(seed=2)" in new
    assert 'tf.compat.v1.variance_scaling_initializer(scale=2.0, mode="fan_in", distribution="truncated_normal")' in new


LOOP = """\
state = 1.0
estimator.train(input_fn, steps=5)
for _ in range(3):
    ask = tf.estimator.inputs.numpy_input_fn({"x": [[state]]}, shuffle=False)
    state = next(estimator.predict(ask))["y"]"""


def test_predictions_in_a_loop_keep_the_arrays_of_their_round() -> None:
    text = program(driver=LOOP, spec=", predictions={'y': logits}")
    new, findings = run(text, style="mapped")
    assert not manual(findings), findings
    lines = new.splitlines()
    at = lines.index('    def ask(arrays={"x": [[state]]}):')
    assert lines[at + 1] == "        return tf.data.Dataset.from_tensor_slices(arrays).batch(128)"
    assert lines[at + 3] == '    model.make_variables(ask(), "infer")'
