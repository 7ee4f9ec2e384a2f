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


PREDICTS = "def ask(estimator):\n    return list(estimator.predict(input_fn))\n\n\nprint(ask(estimator))"


MLPERF = "from mlperf_compliance import mlperf_log, tf_mlperf_log\n"


def test_values_that_mlperf_compliance_logs_in_a_graph() -> None:
    rate = "tf_mlperf_log.log_deferred(op=params['rate'], log_id=mlperf_log.resnet_print(deferred=True))"
    new, findings = run(MLPERF + program(optimizer=f"tf.train.GradientDescentOptimizer({rate})"))
    assert [f.code for f in findings if f.severity is Severity.REVIEW].count("TFM254") == 1
    assert "optimizer = tf.keras.optimizers.legacy.SGD(learning_rate=params['rate'])\n" in new
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
    new, findings = run(text)
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


FROM_TABLE = "KINDS = {'deep': deep}\n\n\ndef deep(features):\n    return tf.get_variable('w', [1, 1]) * features\n\n\n"


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


LOOP = """\
state = 1.0
estimator.train(input_fn, steps=5)
for _ in range(3):
    ask = tf.estimator.inputs.numpy_input_fn({"x": [[state]]}, shuffle=False)
    state = next(estimator.predict(ask))["y"]"""
