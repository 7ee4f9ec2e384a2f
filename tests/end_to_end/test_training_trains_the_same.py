"""Proofs of train_op, optimizers and schedules: a small program per construct, see proving.py."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from migrator.harness.protocol import l0b_configuration, l1_variables
from migrator.harness.recording import read
from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6)).astype(np.float32)
    ids = random.randint(0, 9, size=40)
    y = (x.sum(axis=1, keepdims=True) + ids[:, None] / 3.0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((FEATURES, y)).batch(8)


def get_optimizer(name, rate):
    if name == "rms":
        return tf.train.RMSPropOptimizer(rate)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    return optimizer


def model_fn(features, labels, mode, params):
    NETWORK
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
TRAINING
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


params = {"rate": 0.05, "clip": 0.7, "warmup": 3, "optimizer": "rms"}
estimator = tf.estimator.Estimator(model_fn, params=params)
estimator.train(input_fn, steps=5)
"""
DENSE = "net = tf.layers.dense(features, 4, activation=tf.nn.tanh)"


def program(training: str, network: str = DENSE, features: str = "x") -> str:
    lines = textwrap.indent(textwrap.dedent(training).strip("\n"), "    ")
    return PROGRAM.replace("NETWORK", network).replace("TRAINING", lines).replace("FEATURES", features)


def minimized_by(optimizer: str) -> str:
    return f"train_op = {optimizer}.minimize(loss, global_step=tf.train.get_global_step())"


# construct -> how it trains, and what the new program must have in it
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "RMSProp, centered, with momentum": (
        minimized_by("tf.train.RMSPropOptimizer(0.01, 0.8, momentum=0.9, centered=True)"),
        ("class RMSProp", "legacy.RMSprop"),
    ),
    "Ftrl": (
        minimized_by(
            "tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02, "
            "l2_shrinkage_regularization_strength=0.03)"
        ),
        ("keras.optimizers.legacy.Ftrl(",),
    ),
    "Adadelta": (minimized_by("tf.train.AdadeltaOptimizer(0.5)"), ("epsilon=1e-08",)),
    "proximal Adagrad": (
        minimized_by("tf.train.ProximalAdagradOptimizer(0.05, l1_regularization_strength=0.1)"),
        ("ResourceApplyProximalAdagrad",),
    ),
    "dual averaging": (
        minimized_by("tf.train.AdagradDAOptimizer(0.05, tf.train.get_global_step(), l2_regularization_strength=0.1)"),
        ("ResourceApplyAdagradDA",),
    ),
    "momentum with a decaying rate, clipped by global norm, after update operations": (
        """
        global_step = tf.train.get_or_create_global_step()
        learning_rate = tf.train.exponential_decay(params["rate"], global_step, 2, 0.5, staircase=True)
        tf.summary.scalar("rate", learning_rate)
        optimizer = tf.train.MomentumOptimizer(learning_rate, momentum=0.9, use_nesterov=True)
        variables = tf.trainable_variables()
        gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), params["clip"])
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=global_step)
        """,
        ('global_clipnorm=params["clip"]', "schedules.ExponentialDecay"),
    ),
    "warm-up by hand, bounded values in a loop": (
        """
        step = tf.train.get_global_step()
        rate = tf.constant(params["rate"], shape=[], dtype=tf.float32)
        rate = tf.train.polynomial_decay(rate, step, 10, end_learning_rate=0.0)
        if params["warmup"]:
            steps = tf.cast(step, tf.float32)
            warm = params["rate"] * steps / tf.cast(params["warmup"], tf.float32)
            is_warm = tf.cast(steps < params["warmup"], tf.float32)
            rate = (1.0 - is_warm) * rate + is_warm * warm
        optimizer = tf.train.MomentumOptimizer(rate, 0.9)
        pairs = []
        for gradient, variable in optimizer.compute_gradients(loss):
            pairs.append((tf.clip_by_value(gradient, -0.2, 0.2), variable))
        train_op = optimizer.apply_gradients(pairs, global_step=step)
        """,
        ("def __call__(self, step):", "clipvalue=0.2"),
    ),
    "a condition on the step, gradients clipped one by one, an optimizer by its name": (
        """
        gs = tf.train.get_or_create_global_step()
        rate = tf.cond(gs < 2, lambda: 0.1, lambda: tf.train.inverse_time_decay(0.1, gs - 2, 2, 0.5))
        if params["optimizer"] == "adam":
            optimizer = tf.train.AdamOptimizer(rate)
        elif params["optimizer"] == "rms":
            optimizer = tf.train.RMSPropOptimizer(rate)
        else:
            raise ValueError("no such optimizer")
        pairs = optimizer.compute_gradients(loss)
        pairs = [(tf.clip_by_norm(g, 0.3), v) for g, v in pairs if g is not None]
        with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
            train_op = tf.group(tf.assign_add(gs, 1))
        """,
        ("clipnorm=0.3",),
    ),
    "an optimizer that a function makes": (
        """
        step = tf.train.get_or_create_global_step()
        rate = tf.train.polynomial_decay(0.1, step, 4, 0.01, power=2.0, cycle=True)
        optimizer = get_optimizer("momentum", rate)
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        gradients, _ = tf.clip_by_global_norm(gradients, params["clip"])
        train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
        """,
        ('optimizer.global_clipnorm = params["clip"]',),
    ),
    "a sum of decays": (
        """
        gs = tf.train.get_global_step()
        rate = tf.train.natural_exp_decay(0.1, gs, 2, 0.5) + tf.train.cosine_decay_restarts(0.1, gs, 2, t_mul=1.5)
        rate += tf.train.linear_cosine_decay(0.1, gs, 4, num_periods=1.5) + tf.train.cosine_decay(0.1, gs, 6, alpha=0.1)
        rate += tf.train.piecewise_constant(gs, [1, 3], [0.1, 0.05, 0.01])
        train_op = tf.train.GradientDescentOptimizer(rate / 4).minimize(loss, gs)
        """,
        ("LinearCosineDecay(",),
    ),
}


# Optimizers whose updates of an embedding the newer classes of Keras do otherwise: rows that a batch does not use.
EMBEDDING = "net = tf.keras.layers.Embedding(30, 4)(features)"
SPARSE = {
    "Momentum": "tf.train.MomentumOptimizer(0.3, 0.9, use_nesterov=True)",
    "RMSProp": "tf.train.RMSPropOptimizer(0.02, momentum=0.5, centered=True)",
    "Ftrl": "tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.001, l2_shrinkage_regularization_strength=0.02)",
    "Adadelta": "tf.train.AdadeltaOptimizer(20.0)",
}
KERAS = {"Momentum": "SGD", "RMSProp": "RMSprop", "Ftrl": "Ftrl", "Adadelta": "Adadelta"}


def same_settings(tmp_path: Path) -> None:
    """The recorder reads the same update rule, settings and slots from both programs."""
    original, migrated = (read(tmp_path / f"{kind}-run" / "record") for kind in ("original", "migrated"))
    different = [field for field in l0b_configuration.optimizer_fields(original, migrated) if not field[3]]
    assert not different, different
    slots = [set(l1_variables.slots_in_use(recording).values()) for recording in (original, migrated)]
    assert slots[0] == slots[1]


@pytest.mark.parametrize("construct", CASES)
def test_trains_the_same(construct: str, servers: Servers, tmp_path: Path) -> None:
    training, parts = CASES[construct]
    new = prove(program(training), servers, tmp_path)
    for part in parts:
        assert part in new
    same_settings(tmp_path)


@pytest.mark.parametrize("optimizer", SPARSE)
def test_embeddings_train_the_same(optimizer: str, servers: Servers, tmp_path: Path) -> None:
    new = prove(program(minimized_by(SPARSE[optimizer]), EMBEDDING, "ids"), servers, tmp_path)
    assert f"tf.keras.optimizers.legacy.{KERAS[optimizer]}" in new
    same_settings(tmp_path)
