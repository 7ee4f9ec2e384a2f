"""How train_ops are made: what is refused, with its line, and what a migrated one reads like."""

from __future__ import annotations

import textwrap

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
{training}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"rate": 0.1}})
estimator.train(input_fn, steps=3)
"""
STEP = "tf.train.get_global_step()"


def program(training: str) -> str:
    return PROGRAM.format(training=textwrap.indent(textwrap.dedent(training).strip("\n"), "    "))


def migrated(training: str) -> str:
    new, findings = run(program(training))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    return new


# construct -> training, code, part of the line that the finding names
REFUSED = {
    "steps that are not counted": ("train_op = tf.train.AdamOptimizer(0.1).minimize(loss)", "TFM403", "minimize"),
    "gradients that are scaled": (
        f"""
        optimizer = tf.train.AdamOptimizer(0.1)
        pairs = [(2.0 * g, v) for g, v in optimizer.compute_gradients(loss)]
        train_op = optimizer.apply_gradients(pairs, {STEP})
        """,
        "TFM403",
        "apply_gradients",
    ),
    "clipping twice": (
        f"""
        optimizer = tf.train.AdamOptimizer(0.1)
        pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
        pairs = [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs]
        train_op = optimizer.apply_gradients(pairs, {STEP})
        """,
        "TFM403",
        "clip_by_value",
    ),
    "bounds that are not opposite": (
        f"""
        optimizer = tf.train.AdamOptimizer(0.1)
        pairs = [(tf.clip_by_value(g, -1.0, 2.0), v) for g, v in optimizer.compute_gradients(loss)]
        train_op = optimizer.apply_gradients(pairs, {STEP})
        """,
        "TFM403",
        "clip_by_value",
    ),
    "moving averages of the weights": (
        f"""
        average = tf.train.ExponentialMovingAverage(0.9)
        minimize = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP})
        with tf.control_dependencies([minimize]):
            train_op = average.apply(tf.trainable_variables())
        """,
        "TFM403",
        "average.apply",
    ),
    "two optimizers": (
        f"""
        one = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP})
        two = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        train_op = tf.group(one, two)
        """,
        "TFM403",
        "tf.group",
    ),
    "some variables only": (
        f'train_op = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP}, var_list=tf.trainable_variables("head"))',
        "TFM403",
        "var_list",
    ),
    "no training": ("train_op = tf.no_op()", "TFM403", "no_op"),
    "a rate from the data": (
        f"""
        rate = 0.1 / tf.cast(tf.shape(features)[0], tf.float32)
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, {STEP})
        """,
        "TFM402",
        "AdamOptimizer(rate)",
    ),
    "a rate that is used elsewhere": (
        f"""
        rate = tf.train.exponential_decay(0.1, {STEP}, 10, 0.9)
        print(rate)
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, {STEP})
        """,
        "TFM402",
        "print(rate)",
    ),
    "a momentum that changes": (
        f"""
        momentum = tf.train.exponential_decay(0.9, {STEP}, 10, 0.9)
        train_op = tf.train.MomentumOptimizer(0.1, momentum).minimize(loss, {STEP})
        """,
        "TFM402",
        "MomentumOptimizer",
    ),
    "a rate with noise": (
        f"""
        rate = tf.train.noisy_linear_cosine_decay(0.1, {STEP}, 10)
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, {STEP})
        """,
        "TFM402",
        "noisy_linear",
    ),
    "synchronous replicas": (
        f"""
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.1), 2)
        train_op = optimizer.minimize(loss, {STEP})
        """,
        "TFM401",
        "SyncReplicasOptimizer",
    ),
}


@pytest.mark.parametrize("construct", REFUSED)
def test_refused(construct: str) -> None:
    training, code, part = REFUSED[construct]
    text = program(training)
    new, findings = run(text)
    assert new == text
    manual = [f for f in findings if f.severity is Severity.MANUAL]
    assert code in [f.code for f in manual], manual
    assert any(part in text.splitlines()[f.line - 1] for f in manual if f.code == code), manual


def test_contrib_optimize_loss_says_it_all_at_once() -> None:
    new = migrated(
        """
        train_op = tf.contrib.layers.optimize_loss(
            loss, tf.train.get_global_step(), learning_rate=params["rate"], optimizer="RMSProp", clip_gradients=2.0,
            learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 10, 0.9))
        """
    )
    schedule = 'tf.keras.optimizers.schedules.ExponentialDecay(params["rate"], 10, 0.9)'
    assert f"RMSPropOptimizer(learning_rate={schedule}, rho=0.9, epsilon=1e-10, global_clipnorm=2.0)" in new
    assert new.count("class RMSPropOptimizer(tf.keras.optimizers.RMSprop):") == 1


def test_embeddings_get_lazy_updates() -> None:
    text = program(f"train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, {STEP})")
    new, _ = run(text.replace("(features, 1)", "(tf.keras.layers.Embedding(3, 2)(features), 1)"))
    assert "tf.raw_ops.ResourceSparseApplyMomentum" in new


def test_a_wrapper_for_tpus_goes() -> None:
    new = migrated(
        f"""
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        if params.get("use_tpu"):
            optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, {STEP})
        """
    )
    assert "use_tpu" not in new and "optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)\n" in new


def test_replicas_clip_before_their_gradients_are_summed() -> None:
    training = f"""
        optimizer = tf.train.AdamOptimizer(0.1)
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
        train_op = optimizer.apply_gradients(zip(gradients, variables), {STEP})
        """
    text = program(training).replace(
        "estimator.train(input_fn, steps=3)",
        "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=3),\n"
        "                                tf.estimator.EvalSpec(input_fn))",
    )
    mirrored, _ = run(text, strategy="multi-worker-mirrored")
    assert "class ClippedAdam(tf.keras.optimizers.Adam):" in mirrored and "optimizer = ClippedAdam(" in mirrored
    plain, _ = run(text, strategy="one-device")
    assert "global_clipnorm=5.0" in plain and "ClippedAdam" not in plain


HELPER = """
def get_optimizer(name, rate):
    if name == "momentum":
        return tf.train.MomentumOptimizer(rate, 0.9)
    optimizer = tf.train.AdamOptimizer(learning_rate=rate)
    return optimizer


def model_fn"""


def test_one_of_two_optimizers_by_a_condition() -> None:
    new = migrated(
        """
        optimizer = tf.train.AdamOptimizer(0.1) if params["rate"] > 1 else tf.train.GradientDescentOptimizer(0.2)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        """
    )
    assert 'if params["rate"] > 1 else tf.keras.optimizers.SGD(learning_rate=0.2)' in new
    assert "optimizer = tf.keras.optimizers.Adam(learning_rate=0.1" in new


def test_an_optimizer_that_a_function_makes() -> None:
    training = """
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.1, step, 2, 0.5)
        optimizer = get_optimizer("momentum", rate)
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
        train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
        """
    text = program(training).replace("\ndef model_fn", HELPER)
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "return MomentumOptimizer(learning_rate=rate, momentum=0.9)" in new
    assert "    optimizer.global_clipnorm = 0.5\n" in new
    assert 'optimizer = get_optimizer("momentum", rate)' in new


def test_a_function_that_does_more_with_a_rate_is_refused() -> None:
    training = f"""
        rate = tf.train.exponential_decay(0.1, {STEP}, 2, 0.5)
        train_op = get_optimizer("adam", rate).minimize(loss, {STEP})
        """
    text = program(training).replace("\ndef model_fn", HELPER.replace("(rate, 0.9)", "(2 * rate, 0.9)"))
    new, findings = run(text)
    assert new == text and "TFM402" in [f.code for f in findings]


@pytest.mark.parametrize(
    "spec",
    [
        'eval_metric_ops={"rate": tf.metrics.mean(rate)}',
        'eval_metric_ops={"step": tf.metrics.mean(tf.cast(step, tf.float32) + logits)}',
        'predictions={"scaled": logits * rate}',
    ],
)
def test_rates_and_steps_that_the_spec_reports_are_refused(spec: str) -> None:
    text = program(
        f"""
        step = {STEP}
        rate = tf.train.exponential_decay(0.1, step, 10, 0.9)
        train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, step)
        """
    )
    text = text.replace("train_op=train_op)", f"train_op=train_op, {spec})")
    new, findings = run(text)
    assert new == text
    assert {"TFM402", "TFM403"} & {f.code for f in findings if "train_op=train_op" in text.splitlines()[f.line - 1]}
