"""Keras models, and loss objects, inside of model_fns: what `fit` does by itself, and what it would do otherwise."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run


def migrated(text: str) -> str:
    new, findings = run(text)
    assert new != text, [f"{f.code}: {f.message}" for f in findings]
    return new


GUIDE = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [1])).batch(1)


def make_model():
    layers = [tf.keras.layers.Dense(4), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(3)]
    return tf.keras.Sequential(layers)


def model_fn(features, labels, mode):
    model = make_model()
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    logits = model(features, training=mode == tf.estimator.ModeKeys.TRAIN)
    loss = loss_fn(labels, logits)
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    minimize_op = optimizer.minimize(
        loss, var_list=model.trainable_variables, global_step=tf.compat.v1.train.get_or_create_global_step()
    )
    train_op = UPDATED
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
"""
MOVED = {
    "of the inputs": "tf.group(minimize_op, model.get_updates_for(None) + model.get_updates_for(features))",
    "all": "tf.group(minimize_op, model.updates)",
    "in a list": "tf.group(minimize_op, *[model.get_updates_for(features)])",
}
STILL = {
    "none": "minimize_op",
    "of no input": "tf.group(minimize_op, model.get_updates_for(None))",
    "of another tensor": "tf.group(minimize_op, model.get_updates_for(logits))",
    "of the collection": "tf.group(minimize_op, tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS))",
}


@pytest.mark.parametrize("name", MOVED)
def test_updates_of_a_keras_model(name: str) -> None:
    """`verify`: equivalent with these updates (2.15.1 and 2.21), 12 steps and the evaluation of the moving averages."""
    new = migrated(GUIDE.replace("UPDATED", MOVED[name]))
    assert "loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)" in new
    assert "updates" not in new and "tf.keras.layers.BatchNormalization()" in new


@pytest.mark.parametrize("name", STILL)
def test_averages_of_a_keras_model_that_no_step_moves(name: str) -> None:
    """`verify`: with the collection the moving mean of 2.15.1 is 0 after a step, and that of `fit` is not."""
    new, findings = run(GUIDE.replace("UPDATED", STILL[name]))
    assert {"TFM202", "TFM403"} & {f.code for f in findings if f.severity is Severity.MANUAL}
    assert new == GUIDE.replace("UPDATED", STILL[name])


PLAIN = GUIDE.replace("tf.compat.v1.", "tf.").replace(", var_list=model.trainable_variables", "")


@pytest.mark.parametrize("name", MOVED)
def test_updates_of_a_keras_model_of_tensorflow_1(name: str) -> None:
    """Beside TensorFlow 1.15.5 (eb, k1, k2 of native10b): weights and averages after 12 steps are apart by 1e-6."""
    new = migrated(PLAIN.replace("UPDATED", MOVED[name]))
    assert "updates" not in new and "tf.keras.layers.BatchNormalization()" in new


@pytest.mark.parametrize("made", ["BatchNormalization(trainable=False)", "BatchNormalization(trainable=FIXED)"])
def test_a_batch_normalization_that_is_not_trainable_is_another_one(made: str) -> None:
    text = PLAIN.replace("UPDATED", MOVED["all"]).replace("BatchNormalization()", made)
    new, findings = run(text)
    assert "TFM202" in {f.code for f in findings if f.severity is Severity.MANUAL} and new == text
    text = PLAIN.replace("UPDATED", MOVED["all"]).replace(
        "    loss_fn", "    model.layers[1].trainable = False\n    loss_fn"
    )
    new, findings = run(text)
    assert [f for f in findings if f.severity is Severity.MANUAL] and new == text


OBJECTS = {
    "SparseCategoricalCrossentropy()": "loss=tf.keras.losses.SparseCategoricalCrossentropy()",
    "SparseCategoricalCrossentropy(True, name='l')": "losses.SparseCategoricalCrossentropy(from_logits=True)",
    "CategoricalCrossentropy(label_smoothing=0.1)": "loss=tf.keras.losses.CategoricalCrossentropy(label_smoothing=0.1)",
}


@pytest.mark.parametrize("made", OBJECTS)
def test_a_loss_object_of_keras(made: str) -> None:
    """Their values in TensorFlow 1.15.5 and 2.21 are the same (SCE 0.6577723, with labels as a column, too)."""
    named = program(loss=f"compare = tf.keras.losses.{made}\nloss = compare(labels, logits)")
    in_place = program(loss=f"loss = tf.keras.losses.{made}(y_true=labels, y_pred=logits)")
    for text in (named, in_place):
        assert OBJECTS[made] in migrated(text)


@pytest.mark.parametrize("made", ["CosineSimilarity()", "SparseCategoricalCrossentropy(reduction='sum')"])
def test_a_loss_object_of_keras_that_is_another_one_in_compile(made: str) -> None:
    text = program(loss=f"loss = tf.keras.losses.{made}(labels, logits)")
    assert run(text)[0] == text


CHOSEN = """\
import argparse
import tensorflow as tf

SETTINGS = argparse.ArgumentParser().parse_args()


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [1])).batch(1)


def small():
    inputs = tf.keras.Input((1,))
    return tf.keras.Model(inputs, tf.keras.layers.Dense(3)(inputs))


def large():
    inputs = tf.keras.Input((1,))
    return tf.keras.Model(inputs, tf.keras.layers.Dense(3)(tf.keras.layers.Dense(9)(inputs)))


def other(x, training):
    return tf.layers.dense(x, 3) * (2.0 if training else 1.0)


def model_fn(features, labels, mode):
    if SETTINGS.model == "small":
        model = small()
    else:
        model = {second}
    if mode == tf.estimator.ModeKeys.TRAIN:
        logits = model(features, training=True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)
    logits = model(features, training=False)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return tf.estimator.EstimatorSpec(mode, loss=loss)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
"""


def test_a_model_that_a_condition_chooses() -> None:
    new = migrated(CHOSEN.format(second="large()"))
    assert "        model = large()\n    logits = model(features)\n" in new


@pytest.mark.parametrize("second", ["other", "large() if SETTINGS.deep else None"])
def test_what_a_condition_chooses_beside_models(second: str) -> None:
    text = CHOSEN.format(second=second)
    new, findings = run(text)
    assert new == text and [f for f in findings if f.severity is Severity.MANUAL]
