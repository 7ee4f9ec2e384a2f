"""`--keras 3`: what new code says otherwise, and what is refused."""

from __future__ import annotations

import libcst as cst
import pytest

from migrator.findings import Finding, Severity
from migrator.rules.keras3 import CLASSES, OPS, on_symbolic
from tests.rules.programs import program, run

ADAM = "tf.train.AdamOptimizer(params['rate'])"
SPARSE = "net = tf.reduce_sum(tf.keras.layers.Embedding(9, 4)(features), 1)"
BOTH = """\
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps=5), tf.estimator.EvalSpec(input_fn))
"""


def blocked(text: str, **options: str) -> list[Finding]:
    new, findings = run(text, keras="3", **options)
    assert new == text
    return [finding for finding in findings if finding.severity is Severity.MANUAL]


# -- functions of a network --------------------------------------------------------------------------------------------

FORMS = {
    "tf.reshape(x, [-1, 4])": "tf.keras.ops.reshape(x, [-1, 4])",
    "tf.reshape(x, [tf.shape(x)[0], 4], name='r')": "tf.keras.ops.reshape(x, [-1, 4])",
    "tf.reshape(x, [-1, tf.shape(x)[1]])": "tf.keras.ops.reshape(x, [-1, x.shape[1]])",
    "tf.concat([x, y], -1)": "tf.keras.ops.concatenate([x, y], -1)",
    "tf.concat(axis=1, values=[x, y])": "tf.keras.ops.concatenate(axis=1, xs=[x, y])",
    "tf.argmax(x, 1)": 'tf.keras.ops.cast(tf.keras.ops.argmax(x, 1), "int64")',
    "tf.argmax(x)": 'tf.keras.ops.cast(tf.keras.ops.argmax(x, axis=0), "int64")',
    "tf.gather(x, i)": "tf.keras.ops.take(x, i, axis=0)",
    "tf.gather(x, i, axis=1)": "tf.keras.ops.take(x, i, axis=1)",
    "tf.nn.gelu(x)": "tf.keras.ops.gelu(x, approximate=False)",
    "tf.split(x, [1, 2, 3], 1)": "tf.keras.ops.split(x, [1, 3], 1)",
    "tf.split(value=x, num_or_size_splits=2, axis=1)": "tf.keras.ops.split(x=x, indices_or_sections=2, axis=1)",
    "tf.pad(x, tf.constant([[0, 0], [1, 1]]))": "tf.keras.ops.pad(x, [[0, 0], [1, 1]])",
    "tf.math.squared_difference(x, y)": "tf.keras.ops.square(tf.keras.ops.subtract(x, y))",
    "tf.identity(x, name='x')": "x",
    "tf.add_n([x, y])": "tf.keras.layers.Add()([x, y])",
    "tf.nn.lrn(x, 4, bias=1.0)": "tf.keras.layers.Lambda(lambda values: tf.nn.lrn(values, 4, bias=1.0))(x)",
    "x.get_shape().as_list()[1]": "list(x.shape)[1]",
    "x.get_shape().ndims": "len(x.shape)",
    "build(x, tf.nn.relu)": "build(x, tf.keras.ops.relu)",
    "tf.keras.layers.Dense(4, activation=tf.nn.relu)(x)": "tf.keras.layers.Dense(4, activation=tf.nn.relu)(x)",
    'tf.keras.layers.MaxPooling2D(2, 2, padding="SAME")(x)': 'tf.keras.layers.MaxPooling2D(2, 2, padding="same")(x)',
    'tf.keras.layers.Dense(4, name="a/b")(x)': 'tf.keras.layers.Dense(4, name="a_b")(x)',
    "tf.keras.layers.Dropout(0.5)(x, training=True)": "AlwaysDropout(0.5)(x)",
    "tf.keras.layers.Dropout(0.5)(x, training=False)": "tf.keras.layers.Identity()(x)",
    "tf.keras.layers.BatchNormalization()(x)": "ImageBatchNormalization()(x)",
    "tf.keras.layers.BatchNormalization(momentum=0.9, fused=False)(x)": (
        "tf.keras.layers.BatchNormalization(momentum=0.9)(x)"
    ),
    "tf.keras.layers.BatchNormalization()(x, training=False)": "FrozenBatchNormalization()(x)",
    "tf.keras.layers.BatchNormalization()(x, training=True)": "BatchBatchNormalization()(x)",
    "x * tf.constant(2.0)": "x * tf.constant(2.0)",
}


def carried(text: str) -> tuple[str, list[str]]:
    module = cst.parse_module("")
    found = on_symbolic(cst.parse_expression(text), module.code_for_node)
    return module.code_for_node(found.node), [code for code, _ in found.problems]


@pytest.mark.parametrize("text", FORMS)
def test_a_function_of_the_network(text: str) -> None:
    assert carried(text) == (FORMS[text], [])


REFUSED = {
    "tf.strings.to_number(x)": "TFM871",
    "tf.shape(x)[0]": "TFM871",
    "tf.matmul(x, y, transpose_b=True)": "TFM871",
    "tf.gather(x, i, batch_dims=1)": "TFM871",
    "tf.split(x, sizes, 1)": "TFM871",
    "tf.where(x > 0.0)": "TFM871",
    "tf.nn.l2_normalize(x)": "TFM871",
    "tf.reduce_mean(*arguments)": "TFM871",
    "tf.random.normal([3])": "TFM871",
    "x.set_shape([None, 3])": "TFM871",
    "tf.keras.layers.DenseFeatures(columns)(x)": "TFM870",
    "tf.keras.layers.LSTM(3)(x)": "TFM870",
    "layer(x, training=True)": "TFM870",
    "tf.keras.layers.BatchNormalization(axis=1)(x)": "TFM870",
    "tf.keras.backend.int_shape(x)": "TFM870",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_keras_3_has_not_is_refused(text: str) -> None:
    assert REFUSED[text] in carried(text)[1]


def test_functions_of_keras_have_one_name_for_each_argument() -> None:
    for op in OPS.values():
        names = [new for _, new in op.parameters if new is not None]
        assert len(names) == len(set(names)), op
        assert set(op.added) <= {*names, "epsilon"} and op.needs <= set(names), op
    for name, text in CLASSES.items():
        assert text.startswith(f"class {name}(")
        compile(text, name, "exec")


# -- programs ----------------------------------------------------------------------------------------------------------


def test_a_program_chooses_no_keras_and_no_xla() -> None:
    new, findings = run(program(), keras="3")
    assert "TF_USE_LEGACY_KERAS" not in new and "import os" not in new
    assert "    net = tf.keras.ops.relu(net)\n" in new
    assert "jit_compile=False" in new
    assert "tf.keras.Input(spec.shape[1:], dtype=spec.dtype, name=name)" in new
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]


def test_helpers_of_the_network_are_carried_over_and_others_are_not() -> None:
    text = program(network="net = widen(net)\nnet = tf.nn.relu(net)").replace(
        "def model_fn",
        "def widen(net):\n    return tf.tile(net, [1, 2])\n\n\ndef other(value):\n    return tf.tile(value, [2])\n\n\n"
        "def model_fn",
    )
    new, _ = run(text, keras="3")
    assert "    return tf.keras.ops.tile(net, [1, 2])\n" in new
    assert "    return tf.tile(value, [2])\n" in new


def test_the_loss_sees_labels_as_they_are() -> None:
    loss = "loss = tf.reduce_mean(tf.abs(tf.to_float(labels) - logits))"
    new, _ = run(program(loss=loss), keras="3")
    assert "def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):" in new
    assert "loss = tf.reduce_mean(tf.abs(tf.cast(labels, tf.float32) - logits))" in new
    assert "def loss_fn" in run(program(loss=loss).replace("dense(net, 1)", "dense(net, 3)"))[0]


def test_functions_of_losses_have_their_names_in_keras_3() -> None:
    network = "other = tf.layers.dense(net, 1)"
    loss = "loss = tf.losses.mean_squared_error(labels, logits) + tf.losses.absolute_difference(labels, other)"
    new, _ = run(program(network=network, loss=loss), keras="3")
    assert "tf.keras.losses.mse(labels, logits)" in new and "tf.keras.losses.mae(labels, other)" in new


@pytest.mark.parametrize(
    ("given", "rate"),
    [("0.1", "0.1"), ("1", "1.0"), ("params['rate']", "float(params['rate'])")],
)
def test_rates_are_floats(given: str, rate: str) -> None:
    new, _ = run(program(optimizer=f"tf.train.AdamOptimizer({given})"), keras="3")
    assert f"learning_rate={rate}, beta_1=0.9" in new


def test_a_schedule_is_no_float() -> None:
    rate = "tf.train.exponential_decay(0.1, tf.train.get_global_step(), 10, 0.9)"
    new, _ = run(program(optimizer=f"tf.train.AdamOptimizer({rate})"), keras="3")
    assert "learning_rate=tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)" in new


def test_rows_that_a_batch_uses_twice_are_added_up() -> None:
    new, findings = run(program(network=SPARSE, optimizer=ADAM), keras="3")
    assert "class AdamOptimizer(tf.keras.optimizers.Adam):" in new
    assert "        return [add_up_rows(gradient) for gradient in grads]\n" in new
    assert "TFM876" in [finding.code for finding in findings]
    assert "add_up_rows" not in run(program(network=SPARSE), keras="3")[0]  # gradient descent adds them by itself
    assert "add_up_rows" not in run(program(network=SPARSE, optimizer=ADAM))[0]


def test_an_update_of_its_own_is_given_the_rate() -> None:
    optimizer = "tf.train.MomentumOptimizer(tf.train.cosine_decay(0.1, tf.train.get_global_step(), 9), 0.9)"
    new, _ = run(program(optimizer=optimizer), keras="3")
    assert "def update_step(self, gradient, variable, learning_rate):" in new
    assert "self.momentums[self._get_variable_index(variable)]" in new
    assert "_index_dict" not in new and "self.learning_rate" not in new


def test_checkpoints_are_kept_with_the_optimizer() -> None:
    text = program().replace("(model_fn, params", "(model_fn, 'folder', params")
    new, findings = run(text, keras="3")
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    for line in (
        "model.optimizer.build(model.trainable_variables)",
        "checkpoints.restore_or_initialize()",
        "on_epoch_end=lambda epoch, logs: checkpoints.save(model.optimizer.iterations.numpy())",
    ):
        assert line in new


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_train_and_evaluate_is_for_one_device() -> None:
    text = program(driver=BOTH)
    new, findings = run(text, keras="3")
    assert "TFM873" in [finding.code for finding in findings]
    assert "make_strategy" not in new and "model.fit(" in new


@pytest.mark.parametrize("strategy", ["parameter-server", "multi-worker-mirrored"])
def test_clusters_are_refused(strategy: str) -> None:
    found = blocked(program(driver=BOTH), strategy=strategy)
    assert {finding.code for finding in found} == {"TFM872"}
    assert (
        found[0].line == program(driver=BOTH)[: program(driver=BOTH).index("tf.estimator.Estimator(")].count("\n") + 1
    )


MIRRORED = "tf.distribute.MirroredStrategy()"
NORMALIZED = "net = tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN)"


def of_replicas(config: str = "", network: str = NORMALIZED) -> str:
    text = program(network=network, driver="estimator.train(input_fn, steps=6)\nestimator.evaluate(input_fn, steps=2)")
    config = f"config=tf.estimator.RunConfig(train_distribute={MIRRORED}{config})"
    return text.replace('params={"rate": 0.1}', f'params={{"rate": 0.1}}, {config}')


def test_replicas_fit_and_their_averages_are_saved_as_a_mean() -> None:
    new, findings = run(of_replicas(', model_dir="m"'), keras="3")
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL], findings
    assert "return strategy.distribute_datasets_from_function(whole_rounds)" in new
    assert new.index("        replica_averages(model),") < new.index("tf.keras.callbacks.LambdaCallback(\n")
    assert "with strategy.scope():\n    model.optimizer.build(model.trainable_variables)\n" in new
    plain, _ = run(of_replicas(network="net = net * 0.5"), keras="3")
    assert "replica_averages" not in plain and "per_replica(strategy, lambda: " in plain


@pytest.mark.parametrize("config", [', model_dir="m", save_checkpoints_steps=2', f", eval_distribute={MIRRORED}"])
def test_what_replicas_on_keras3_were_not_tried_with_is_refused(config: str) -> None:
    assert "TFM872" in [finding.code for finding in blocked(of_replicas(config))]


def test_a_program_that_sets_its_cluster_is_refused() -> None:
    text = "import os\nos.environ['TF_CONFIG'] = '{}'\n" + program(driver=BOTH)
    assert {finding.code for finding in blocked(text)} == {"TFM872"}


def test_a_refusal_names_the_line() -> None:
    text = program(network="net = tf.nn.relu(net)\nnet = tf.strings.to_number(net)")
    found = blocked(text)
    assert [(finding.code, finding.line) for finding in found] == [("TFM871", 11)]
    assert "tf.strings.to_number" in found[0].message


def test_hooks_of_the_program_are_refused() -> None:
    hook = """class Told(tf.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        print("step")


def model_fn"""
    text = program(driver="estimator.train(input_fn, hooks=[Told()], steps=3)").replace("def model_fn", hook, 1)
    assert "(tf.keras.callbacks.Callback)" in run(text)[0]
    found = blocked(text)
    assert [finding.code for finding in found] == ["TFM870"] and "tf.keras.callbacks.Callback" in found[0].message


def test_a_model_of_the_program_is_refused() -> None:
    text = """import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
estimator = tf.keras.estimator.model_to_estimator(model)
estimator.train(input_fn, steps=3)
"""
    assert run(text)[0] != text and "TFM870" in [finding.code for finding in blocked(text)]
