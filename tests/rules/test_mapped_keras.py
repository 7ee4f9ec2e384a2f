"""Keras layers, variables among others and counted steps in the mapped form."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import run_project

PROGRAM = """\
import tensorflow as tf
{before}

def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def train(loss):
    {train}


def model_fn(features, labels, mode):
    net = tf.matmul(features, tf.get_variable("w", [1, 2]))
    {network}
    loss = tf.losses.mean_squared_error(labels, tf.reduce_sum(net, 1, keepdims=True))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train(loss))


{driver}
"""
STOCK = "return tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())"
OWN = """step = tf.train.get_or_create_global_step()
    tvars = tf.trainable_variables()
    train_op = tf.group(*[v.assign(v - 0.1 * g) for g, v in zip(tf.gradients(loss, tvars), tvars)])
    return tf.group(train_op, step.assign(step + 1))"""
DRIVER = "estimator = tf.estimator.Estimator(model_fn)\nestimator.train(input_fn, max_steps=3)"


def migrate(
    network: str = "net = tf.tanh(net)", train: str = STOCK, driver: str = DRIVER, before: str = ""
) -> tuple[str, list[Finding]]:
    text = PROGRAM.format(network=network.replace("\n", "\n    "), train=train, driver=driver, before=before)
    return run_project({"train.py": text}, style="mapped")["train.py"]


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def test_a_layer_is_found_again() -> None:
    new, findings = migrate("net = tf.keras.layers.Dense(3, activation=tf.nn.relu)(net)")
    assert 'net = keras_layer("dense", lambda: tf.keras.layers.Dense(3, activation=tf.nn.relu))(net)' in new
    assert "TFM428" in [f.code for f in findings] and "known.extend" not in new


def test_its_weights_are_collected_beside_a_train_op_of_the_programs_own() -> None:
    new, _ = migrate("layer = tf.keras.layers.LayerNormalization()\nnet = layer(net)", OWN)
    assert 'layer = keras_layer("layer_normalization", lambda: tf.keras.layers.LayerNormalization())' in new
    assert "known.extend(weight for weight in layer.trainable_weights" in new


@pytest.mark.parametrize(
    ("network", "train"),
    [
        ("net = tf.keras.layers.Dropout(0.5)(net)", STOCK),
        ("net = tf.keras.layers.BatchNormalization()(net)", STOCK),
        ("net = tf.keras.layers.Dense(3, kernel_regularizer=tf.keras.regularizers.l2(0.1))(net)", STOCK),
        ("layer = tf.keras.layers.Dense(3)\nnet = layer(net) + tf.reduce_sum(layer.kernel)", OWN),
        ("layer = tf.keras.layers.Embedding(3, 4)\nnet = layer(inputs=net)", OWN),
    ],
)
def test_other_layers_are_refused(network: str, train: str) -> None:
    new, findings = migrate(network, train)
    assert "TFM151" in manual(findings) and "TF1Model" not in new


def test_a_class_without_weights_stays() -> None:
    network = """class Norm(tf.keras.layers.LayerNormalization):
    def call(self, inputs, gamma):
        self.gamma = gamma
        return super(Norm, self).call(inputs)

net = Norm(axis=-1, center=False, scale=False)(net, tf.get_variable("gamma", [2]))"""
    new, findings = migrate(network)
    assert not manual(findings) and "class Norm(tf.keras.layers.LayerNormalization):" in new
    with_weights, findings = migrate(network.replace("scale=False", "scale=True"))
    assert "TFM151" in manual(findings) and "TF1Model" not in with_weights


def test_a_variable_among_others_is_the_very_same() -> None:
    network = """tvars = tf.trainable_variables()
wanted = {one.name: one for one in tvars if one.name == "w:0"}
for one in tvars:
    if one not in wanted.values():
        raise ValueError(one.name)
for name in wanted:
    if name in ("a", "b"):
        print(name)"""
    new, _ = migrate(network)
    assert "if not any(one is other for other in wanted.values()):" in new
    assert 'if name in ("a", "b"):' in new


def test_a_scope_around_the_driver_did_nothing() -> None:
    driver = "with tf.tpu.bfloat16_scope():\n    # made here\n    name = 'x'\n" + DRIVER
    new, findings = migrate(driver=driver)
    assert "bfloat16_scope" not in new and "\n# made here\nname = 'x'\n" in new
    assert "TFM429" in [f.code for f in findings]
    inside, findings = migrate("with tf.tpu.bfloat16_scope():\n    net = tf.tanh(net)")
    assert "with tf.compat.v1.tpu.bfloat16_scope():" in inside and not manual(findings)


COUNTED = OWN.replace("step.assign(step + 1)", "step.assign(tf.cond(loss > 0.1, lambda: step + 1, lambda: step))")


def test_steps_that_are_counted_by_a_condition_end_the_training() -> None:
    new, findings = migrate(train=COUNTED)
    assert "model.fit(input_fn().filter(lambda *_: True), callbacks=[StopAtStep(last_step=3)])" in new
    assert "TFM430" in [f.code for f in findings] and not manual(findings)
    plain, _ = migrate(train=OWN)
    assert "StopAtStep" not in plain
    long = DRIVER.replace("max_steps=3", "max_steps=300")
    assert "last_step=300" in migrate(train=COUNTED, driver=long)[0]
    assert "steps_per_execution" not in migrate(train=COUNTED, driver=long)[0]
    assert "steps_per_execution=20" in migrate(train=OWN, driver=long)[0]


def test_but_not_where_the_estimator_is_handed_around() -> None:
    driver = "def make():\n    return tf.estimator.Estimator(model_fn)\n\n\nmake().train(input_fn, max_steps=3)"
    new, findings = migrate(train=COUNTED, driver=driver)
    assert "TFM422" in manual(findings) and "StopAtStep" not in new
