"""An Estimator around a compiled Keras model is told from a program of its own."""

from __future__ import annotations

from migrator.findings import Severity
from tests.rules.programs import program, run

WRAPPED = """\
def as_estimator(model):
    def model_fn(features, labels, mode):
        network = tf.keras.models.clone_model(model)
        logits = network(features)
        loss = model.loss(labels, logits)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return tf.estimator.Estimator(model_fn)
"""


def test_the_keras_model_is_the_program() -> None:
    text = "import tensorflow as tf\n\n\n" + WRAPPED
    new, findings = run(text)
    assert new == text
    assert [(f.code, f.line) for f in findings if f.severity is Severity.MANUAL] == [("TFM858", 12)]


def test_a_model_fn_that_only_has_keras_layers_is_none() -> None:
    text = program(network="net = tf.keras.layers.Dense(2)(net)")
    assert "TFM858" not in [f.code for f in run(text)[1]]
