"""The mapped form: model_fns that stay TensorFlow 1 code."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.rules import mapped
from migrator.source.reading import Source, decode
from tests.rules.programs import PROGRAM, program, run, run_project

SCOPED = 'with tf.variable_scope("net", reuse=tf.AUTO_REUSE):\n    net = net * tf.get_variable("w", [1])'


def model(new: str) -> str:
    """The part of a program that was its model_fn."""
    return new[new.index("def model_fn") : new.index("\nmodel = model_fn(")]


def codes(text: str, style: str = "mapped") -> list[str]:
    return [finding.code for finding in run(text, style=style)[1] if finding.severity is Severity.MANUAL]


def test_a_model_fn_stays_as_it_is_but_for_its_ends() -> None:
    new, findings = run(program(network=SCOPED), style="mapped")
    assert model(new) == (
        "def model_fn(dataset, params):\n"
        "    def forward(features, labels, mode):\n"
        "        net = features\n"
        '        with tf.compat.v1.variable_scope("net", reuse=tf.compat.v1.AUTO_REUSE):\n'
        '            net = net * tf.compat.v1.get_variable("w", [1])\n'
        "        logits = tf.compat.v1.layers.dense(net, 1)\n"
        "        loss = tf.compat.v1.losses.mean_squared_error(labels, logits)\n"
        '        return {"loss": loss}\n'
        "\n"
        "    optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)\n"
        "    model = TF1Model(forward)\n"
        "    model.compile(optimizer=optimizer)\n"
        "    model.make_variables(dataset)\n"
        "    return model\n"
        "\n"
    )
    assert 'model = model_fn(input_fn(), {"rate": 0.1})\n' in new
    assert [f.code for f in findings if f.severity is Severity.REVIEW] == ["TFM150"]


def test_auto_is_native_where_that_works_and_mapped_where_it_is_blocked() -> None:
    assert run(program(), style="auto") == run(program(), style="native")
    new, findings = run(program(network=SCOPED), style="auto")
    assert new == run(program(network=SCOPED), style="mapped")[0]
    (note,) = [f for f in findings if f.code == "TFM150"]
    assert "blocked by TFM" in note.message
    assert run(program(network=SCOPED), style="native")[0] == program(network=SCOPED)


def test_auto_is_what_the_library_does_unless_told_otherwise() -> None:
    source = decode(_path(), program(network=SCOPED).encode())
    assert isinstance(source, Source)
    assert "TF1Model" in migrate([source], Options())[0].text


def _path():  # type: ignore[no-untyped-def]
    from pathlib import Path

    return Path("train.py")


def test_what_blocks_both_forms_is_said_for_both() -> None:
    text = program(network="net = net * tf.placeholder(tf.float32, [])", spec=", scaffold=tf.train.Scaffold()")
    new, findings = run(text, style="auto")
    assert new == text
    assert "TFM150" not in {f.code for f in findings}
    text = program(network=f"{SCOPED}\nnet = net * tf.placeholder(tf.float32, [])")
    found = {f.code: f for f in run(text, style="auto")[1]}
    assert "`tf.placeholder`" in found["TFM153"].message


@pytest.mark.parametrize(
    "network",
    [
        "net = net * tf.Variable(1.0, caching_device='cpu')",
        "net = tf.keras.layers.BatchNormalization()(net)",
        "net = net * tf.placeholder(tf.float32, [])",
        "net = net * tf.cast(len(tf.global_variables()), tf.float32)",
        "net = net * tf.add_n(tf.get_collection('update_ops'))",
        "net = tf.contrib.layers.instance_norm(net)",
        'counter = tf.get_variable("counter", [])\nnet = net * tf.assign_add(counter, 1.0)',
        "net = net * len(tf.trainable_variables(scope='net'))",
    ],
)
def test_what_means_something_else_in_a_keras_model_is_refused(network: str) -> None:
    assert codes(program(network=network)) == ["TFM312" if "_variables" in network else "TFM151"]


def test_questions_to_the_graph_are_asked_of_the_model() -> None:
    loss = (
        "loss = tf.losses.mean_squared_error(labels, logits)\n"
        "loss += tf.losses.get_regularization_loss()\n"
        "loss += 0.1 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])\n"
        "loss += tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))\n"
        "loss *= tf.cast(tf.train.get_global_step(), tf.float32)"
    )
    new = model(run(program(loss=loss), style="mapped")[0])
    for line in (
        "loss += sum(model.losses)\n",
        "loss += 0.1 * tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])\n",
        "loss += tf.add_n((model.losses or [0.0]))\n",
        "loss *= tf.cast(model.optimizer.iterations, tf.float32)\n",
    ):
        assert line in new
    total = program(loss="tf.losses.mean_squared_error(labels, logits)\nloss = tf.losses.get_total_loss()")
    assert "loss = (tf.add_n(tf.compat.v1.losses.get_losses()) + sum(model.losses))" in run(total, style="mapped")[0]


def test_questions_to_the_graph_in_a_helper_are_refused() -> None:
    text = program(loss="loss = penalty(tf.losses.mean_squared_error(labels, logits))").replace(
        "def model_fn", "def penalty(loss):\n    return loss + tf.losses.get_regularization_loss()\n\n\ndef model_fn"
    )
    assert codes(text) == ["TFM151"]


METRICS = program(
    loss="loss = tf.losses.mean_squared_error(labels, logits)\nerror = tf.metrics.mean_absolute_error(labels, logits)\n"
    'metrics = {"error": error}\nmetrics["mean"] = tf.metrics.mean(logits)',
    spec=", eval_metric_ops=metrics",
)


def test_metrics_become_what_keras_metrics_are_given() -> None:
    new = model(run(METRICS, style="mapped")[0])
    assert (
        "        error = (lambda: tf.keras.metrics.MeanMetricWrapper(lambda y_true, y_pred: tf.abs(y_true - y_pred)), "
        'labels, logits)\n        metrics = {"error": error}\n'
        '        metrics["mean"] = (tf.keras.metrics.Mean, logits)\n' in new
    )
    assert '        return {"loss": loss, "metrics": metrics}\n' in new
    assert 'make_variables(dataset, modes=("train", "eval"))' in new


def test_metrics_may_have_any_key_and_names_for_their_parts() -> None:
    new = model(run(METRICS.replace('{"error": error}', "dict([(params['name'], error)])"), style="mapped")[0])
    assert "metrics = dict([(params['name'], error)])" in new
    pair = METRICS.replace("error = tf", "error, update = tf").replace('{"error": error}', '{"error": (error, update)}')
    new = model(run(pair, style="mapped")[0])
    assert "        error = (lambda: tf.keras" in new and 'metrics = {"error": error}' in new


def test_a_helper_that_trains_is_read_through_and_goes() -> None:
    text = program(network=SCOPED, loss="loss = tf.losses.mean_squared_error(labels, logits)")
    start, end = text.index("    optimizer = tf.train"), text.index("    return tf.estimator.EstimatorSpec")
    text = text[:start] + "    train_op = training(loss, params)\n" + text[end:]
    text = text.replace(
        "def model_fn",
        "def training(loss, params):\n"
        '    with tf.variable_scope("training"):\n'
        "        step = tf.train.get_global_step()\n"
        '        rate = params["rate"] * tf.minimum(1.0, tf.to_float(step) / 10.0)\n'
        "        optimizer = tf.train.GradientDescentOptimizer(rate)\n"
        "        return optimizer.minimize(loss, global_step=step)\n\n\ndef model_fn",
    )
    new = run(text, style="mapped")[0]
    assert "def training" not in new
    assert (
        '        return {"loss": loss}\n\n'
        "    class LearningRate(tf.keras.optimizers.schedules.LearningRateSchedule):\n"
        "        def __call__(self, step):\n"
        '            rate = params["rate"] * tf.minimum(1.0, tf.cast(step, tf.float32) / 10.0)\n'
        "            return rate\n\n"
        "    optimizer = tf.keras.optimizers.SGD(learning_rate=LearningRate())\n"
    ) in new


def test_what_a_rate_reads_may_be_given_between_its_lines() -> None:
    rate = (
        "loss = tf.losses.mean_squared_error(labels, logits)\n"
        "step = tf.to_float(tf.train.get_global_step())\n"
        'rate = params["rate"] * tf.rsqrt(step + 1.0)\n'
        "size = 4.0\n"
        "rate *= size"
    )
    new = run(program(network=SCOPED, loss=rate, optimizer="tf.train.AdamOptimizer(rate)"), style="mapped")[0]
    assert "            rate *= size\n" in new
    changed = rate + "\nsize = 5.0"
    assert codes(program(network=SCOPED, loss=changed, optimizer="tf.train.AdamOptimizer(rate)")) == ["TFM402"]


def test_hooks_of_a_spec_that_only_tell_are_left_out() -> None:
    hook = "tf.train.LoggingTensorHook({'loss': loss}, 10)"
    new, findings = run(program(network=SCOPED, spec=f", training_hooks=[{hook}]"), style="mapped")
    assert "Hook" not in new
    assert any(f.severity is Severity.REVIEW and "LoggingTensorHook" in f.message for f in findings)
    assert codes(program(network=SCOPED, spec=", training_hooks=[tf.train.StopAtStepHook(last_step=3)]")) == ["TFM110"]


def test_private_names_of_public_symbols() -> None:
    text = program(network="cell = rnn.GRUCell(3)\nnest.flatten(net)").replace(
        "import tensorflow as tf\n",
        "import tensorflow as tf\nfrom tensorflow.contrib import rnn\nfrom tensorflow.python.util import nest\n",
    )
    new = run(text, style="mapped")[0]
    assert "cell = tf.compat.v1.nn.rnn_cell.GRUCell(3)\n        tf.nest.flatten(net)\n" in new


def test_predictions_are_read_as_tensorflow_1_reads_them() -> None:
    text = METRICS.replace("tf.metrics.mean_absolute_error(labels, logits)", "tf.metrics.precision(labels, logits)")
    assert "(tf.keras.metrics.Precision, labels, tf.cast(logits, tf.bool))" in run(text, style="mapped")[0]
    text = METRICS.replace("tf.metrics.mean_absolute_error(labels, logits)", "tf.metrics.accuracy(labels, logits)")
    assert "(tf.keras.metrics.Accuracy, labels, tf.cast(logits, labels.dtype))" in run(text, style="mapped")[0]


def test_the_value_of_a_metric_is_not_read() -> None:
    assert codes(METRICS.replace('metrics = {"error": error}', 'metrics = {"error": error}\n    loss += error[1]')) == [
        "TFM501"
    ]
    assert codes(METRICS.replace('metrics["mean"] =', "loss += metrics['error'][1]\n    metrics[\"mean\"] =")) == [
        "TFM501"
    ]
    named = METRICS.replace('metrics["mean"] =', "tf.identity(metrics['error'][1], name='e')\n    metrics[\"mean\"] =")
    new, findings = run(named, style="mapped")
    assert "identity" not in new and "TFM512" in {f.code for f in findings}
    pair = METRICS.replace("error = tf", "error, update = tf").replace('{"error": error}', '{"error": (error, update)}')
    assert codes(pair.replace('metrics["mean"]', 'loss += update\n    metrics["mean"]')) == ["TFM501"]


def test_statements_that_only_served_the_training_go_and_nothing_else() -> None:
    text = (
        program(spec=", export_outputs=outputs")
        .replace(
            "    train_op = optimizer.minimize",
            "    outputs = {'x': tf.estimator.export.PredictOutput({'y': logits})}\n"
            "    step = tf.train.get_global_step()\n"
            "    unused = len(params)\n"
            "    tf.summary.scalar('loss', loss)\n"
            "    for variable in tf.trainable_variables():\n"
            "        tf.summary.histogram(variable.name, variable)\n"
            "    train_op = optimizer.minimize",
        )
        .replace("global_step=tf.train.get_global_step())", "global_step=step)")
    )
    new, findings = run(text, style="mapped")
    new = model(new)
    start = new.index("        loss =")
    assert new[start : new.index("    optimizer")] == (
        "        loss = tf.compat.v1.losses.mean_squared_error(labels, logits)\n"
        "        unused = len(params)\n"
        '        return {"loss": loss}\n\n'
    )
    assert [f.code for f in findings].count("TFM801") == 2


def test_branches_of_which_nothing_is_left_go() -> None:
    text = (
        PROGRAM.format(
            network="train_op, metrics = None, None",
            loss="loss = tf.losses.mean_squared_error(labels, logits)",
            optimizer="tf.train.GradientDescentOptimizer(0.1)",
            spec=", eval_metric_ops=metrics",
            driver="estimator.train(input_fn, steps=3)",
        )
        .replace(
            "    optimizer = tf.train.GradientDescentOptimizer(0.1)\n    train_op = ",
            "    if mode == tf.estimator.ModeKeys.TRAIN:\n"
            "        optimizer = tf.train.GradientDescentOptimizer(0.1)\n"
            "        train_op = ",
        )
        .replace(
            "    return tf.estimator",
            "    else:\n"
            '        metrics = {"error": tf.metrics.mean_squared_error(labels, logits)}\n'
            "    return tf.estimator",
        )
    )
    new = model(run(text, style="mapped")[0])
    assert '        if mode != "train":\n            metrics = {"error": (lambda: ' in new
    assert "        metrics = None\n" in new


def test_a_parameter_that_is_changed_inside_stays_a_parameter() -> None:
    new = run(program(network="params = dict(params)"), style="mapped")[0]
    assert "    def forward(features, labels, mode, params=params):\n" in new


def test_an_optimizer_that_depends_on_the_batch_is_refused() -> None:
    text = program(network="rate = 0.1 / tf.cast(tf.shape(features)[0], tf.float32)").replace(
        "Optimizer(0.1)", "Optimizer(rate)"
    )
    assert set(codes(text)) <= {"TFM152", "TFM402"} and codes(text)


def test_dimensions_are_numbers() -> None:
    new = run(
        program(network="size = net.shape[1].value\nshape = net.get_shape()\nsize += shape[0].value"), style="mapped"
    )[0]
    assert "size = net.shape[1]\n" in new and "size += shape[0]\n" in new


def test_a_partitioner_is_left_out_with_a_note() -> None:
    text = program(
        network='with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):\n'
        '    net = net + tf.get_variable("w", [1])'
    )
    new, findings = run(text, style="mapped")
    assert 'with tf.compat.v1.variable_scope("net"):' in new and "partitioner" not in new
    assert "TFM154" in {f.code for f in findings}


def test_helpers_in_other_files_stay_as_they_are_too() -> None:
    main = "from net import network\n" + program(network="net = network(net)")
    net = 'import tensorflow as tf\n\n\ndef network(x):\n    return x * tf.get_variable("w", [1])\n'
    found = run_project({"train.py": main, "net.py": net}, style="mapped")
    assert 'return x * tf.compat.v1.get_variable("w", [1])\n' in found["net.py"][0]
    assert "class TF1Model" in found["train.py"][0] and "class TF1Model" not in found["net.py"][0]


def test_migrating_again_changes_nothing() -> None:
    new = run(program(network=SCOPED), style="mapped")[0]
    assert run(new, style="auto") == (new, [])


def test_the_tables_agree() -> None:
    assert mapped.in_compat("tf.get_variable") and not mapped.in_compat("tf.contrib.layers.conv2d")
    assert mapped.refused("tf.keras.layers.Dense") and mapped.refused("tf.train.Saver")
    assert not mapped.refused("tf.keras.regularizers.l2") and not mapped.refused("tf.VariableScope")


WEIGHTS = "tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])"
HELPER = "def head(net):\n    return tf.layers.dense(net, 2)\n\n\n"


@pytest.mark.parametrize("style", ["native", "mapped"])
@pytest.mark.parametrize("later", ["net = tf.layers.dense(net, 2)", "net = head(net)"])
def test_variables_asked_for_before_the_network_is_finished_are_refused(later: str, style: str) -> None:
    first = SCOPED if style == "mapped" else "net = tf.layers.dense(net, 3)"
    early = program(network=f"{first}\npenalty = {WEIGHTS}\n{later}", loss="loss = tf.reduce_mean(net) + penalty")
    text = early.replace("def model_fn", HELPER + "def model_fn")
    new, findings = run(text, style=style)
    assert new == text
    (found,) = [f for f in findings if f.code == "TFM312"]
    assert "penalty" in text.splitlines()[found.line - 1]
    late = program(network=f"{first}\n{later}", loss=f"loss = tf.reduce_mean(logits) + {WEIGHTS}")
    assert not codes(late.replace("def model_fn", HELPER + "def model_fn"), style)


def test_params_that_other_functions_get_are_copied() -> None:
    driver = "estimator.train(input_fn, steps=3)\nextend(columns)\n"
    text = program(network="net = tf.layers.dense(net, len(params['columns']))", driver=driver)
    text = text.replace('{"rate": 0.1}', '{"rate": 0.1, "columns": columns}')
    text = text.replace(
        "estimator = ", "columns = [1]\n\n\ndef extend(columns):\n    columns.append(2)\n\n\nestimator = ", 1
    )
    new, findings = run(text, style="mapped")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert 'copy.deepcopy({"rate": 0.1, "columns": columns})' in new and "\nimport copy\n" in f"\n{new}"
    assert "deepcopy" not in run(text.replace("extend(columns)\n", "print()\n"), style="mapped")[0]
