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
    "a step that is counted beside the optimizer": (
        f"""
        step = {STEP}
        trained = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        train_op = tf.group(trained, tf.assign_add(step, 1))
        """,
        "TFM415",
        "group",
    ),
    "variables by a suffix": (
        f"""
        head = tf.contrib.framework.get_trainable_variables(suffix="kernel")
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP}, var_list=head)
        """,
        "TFM415",
        "var_list",
    ),
    "clipping for an optimizer of Keras": (
        """
        optimizer = tf.keras.optimizers.SGD(0.1)
        optimizer.iterations = tf.train.get_or_create_global_step()
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.01)
        train_op = optimizer.apply_gradients(zip(gradients, variables))
        """,
        "TFM403",
        "SGD",
    ),
    "averages beside an optimizer of Keras": (
        """
        optimizer = tf.keras.optimizers.SGD(0.1)
        optimizer.iterations = tf.train.get_or_create_global_step()
        with tf.control_dependencies([optimizer.minimize(loss, tf.trainable_variables())]):
            train_op = tf.train.ExponentialMovingAverage(0.9).apply()
        """,
        "TFM413",
        "SGD",
    ),
    "averages of a step that is counted before the weights move": (
        f"""
        step = {STEP}
        ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
        with tf.control_dependencies([tf.assign_add(step, 1)]):
            moved = ema.apply()
        with tf.control_dependencies([moved]):
            train_op = tf.train.AdamOptimizer(0.1).minimize(loss)
        """,
        "TFM413",
        "apply",
    ),
    "averages of a step that is counted after them": (
        f"""
        step = {STEP}
        ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
        with tf.control_dependencies([tf.train.AdamOptimizer(0.1).minimize(loss)]):
            moved = ema.apply()
        with tf.control_dependencies([moved]):
            train_op = tf.assign_add(step, 1)
        """,
        "TFM413",
        "ExponentialMovingAverage",
    ),
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
            train_op = average.apply(tf.trainable_variables("dense"))
        """,
        "TFM413",
        "average.apply",
    ),
    "moving averages of the loss": (
        f"""
        losses = tf.train.ExponentialMovingAverage(0.9)
        train_op = tf.group(tf.train.AdamOptimizer(0.1).minimize(loss, {STEP}), losses.apply([loss]))
        """,
        "TFM413",
        "losses.apply([loss])",
    ),
    "moving averages that something else waits for": (
        f"""
        average = tf.train.ExponentialMovingAverage(0.9)
        with tf.control_dependencies([average.apply()]):
            loss = tf.identity(loss)
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP})
        """,
        "TFM403",
        "average.apply()",
    ),
    "two kinds of moving averages": (
        f"""
        minimize = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP})
        with tf.control_dependencies([minimize]):
            fast = tf.train.ExponentialMovingAverage(0.9).apply()
            slow = tf.train.ExponentialMovingAverage(0.99).apply()
        train_op = tf.group(fast, slow)
        """,
        "TFM413",
        "ExponentialMovingAverage(0.99)",
    ),
    "moving averages that are read": (
        f"""
        average = tf.train.ExponentialMovingAverage(0.9)
        minimize = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP})
        with tf.control_dependencies([minimize]):
            train_op = average.apply()
        print(average.variables_to_restore())
        """,
        "TFM413",
        "variables_to_restore",
    ),
    "moving averages with a decay that changes": (
        f"""
        average = tf.train.ExponentialMovingAverage(tf.train.exponential_decay(0.9, {STEP}, 10, 0.9))
        minimize = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP})
        with tf.control_dependencies([minimize]):
            train_op = average.apply()
        """,
        "TFM413",
        "exponential_decay",
    ),
    "moving averages whose decay comes after the optimizer": (
        f"""
        optimizer = tf.train.AdamOptimizer(0.1)
        decay = params["decay"]
        with tf.control_dependencies([optimizer.minimize(loss, {STEP})]):
            train_op = tf.train.ExponentialMovingAverage(decay).apply()
        """,
        "TFM413",
        "ExponentialMovingAverage(decay)",
    ),
    "two optimizers": (
        f"""
        one = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP})
        two = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        train_op = tf.group(one, two)
        """,
        "TFM415",
        "tf.group",
    ),
    "some variables only": (
        f'train_op = tf.train.AdamOptimizer(0.1).minimize(loss, {STEP}, var_list=tf.trainable_variables("head"))',
        "TFM415",
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
        note(rate)
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, {STEP})
        """,
        "TFM402",
        "note(rate)",
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
    assert new.count("class RMSPropOptimizer(tf.keras.optimizers.legacy.RMSprop):") == 1


def test_moving_averages_of_an_optimizer_that_a_function_makes_are_refused() -> None:
    text = program(
        f"""
        with tf.control_dependencies([make_optimizer().minimize(loss, {STEP})]):
            train_op = tf.train.ExponentialMovingAverage(0.9).apply()
        """
    )
    maker = "def make_optimizer():\n    return tf.train.AdamOptimizer(0.1)\n\n\ndef model_fn("
    text = text.replace("def model_fn(", maker)
    new, findings = run(text)
    assert new == text
    assert "TFM413" in {f.code for f in findings}


AVERAGING = """
step = tf.train.get_global_step()
ema = tf.train.ExponentialMovingAverage(params["decay"], num_updates=step)
"""
# how averages are moved -> when: the last lines of the class that keeps them
AFTER = """\
        super().update_step(gradient, variable)
        steps = tf.cast(self.iterations + 1, variable.dtype)
        decay = tf.minimum(self.ema_momentum, (1 + steps) / (10 + steps))
        average.assign(start - (1 - decay) * (start - variable))
"""
BEFORE = """\
        steps = tf.cast(self.iterations, variable.dtype)
        decay = tf.minimum(self.ema_momentum, (1 + steps) / (10 + steps))
        average.assign(start - (1 - decay) * (start - variable))
        super().update_step(gradient, variable)
"""
OPEN = "TensorFlow 1 may update these averages before or after the weights"
MOVED = {
    "after a step": (
        """
        minimize = tf.train.RMSPropOptimizer(0.1).minimize(loss, step)
        with tf.control_dependencies([minimize]):
            train_op = ema.apply()
        """,
        AFTER,
        False,
    ),
    "in a group that waits": (
        """
        minimize = tf.train.RMSPropOptimizer(0.1).minimize(loss, step)
        with tf.control_dependencies([minimize]):
            average_op = ema.apply(var_list=tf.trainable_variables())
        train_op = tf.group(minimize, average_op)
        """,
        AFTER,
        False,
    ),
    "before a step": (
        """
        with tf.control_dependencies([ema.apply()]):
            train_op = tf.train.RMSPropOptimizer(0.1).minimize(loss, step)
        """,
        BEFORE,
        False,
    ),
    "in a group": (
        "train_op = tf.group(tf.train.RMSPropOptimizer(0.1).minimize(loss, step), ema.apply())",
        AFTER,
        True,
    ),
    "made before, run after": (
        """
        average_op = ema.apply()
        with tf.control_dependencies([tf.train.RMSPropOptimizer(0.1).minimize(loss, step), average_op]):
            train_op = tf.no_op()
        """,
        AFTER,
        True,
    ),
    "after an update that does not count": (
        """
        optimizer = tf.train.RMSPropOptimizer(0.1)
        with tf.control_dependencies([optimizer.apply_gradients(optimizer.compute_gradients(loss))]):
            train_op = tf.group(ema.apply(), tf.assign_add(step, 1))
        """,
        AFTER,
        True,
    ),
    "after optimize_loss": (
        """
        done = tf.contrib.layers.optimize_loss(loss, step, 0.1, "RMSProp")
        with tf.control_dependencies([done]):
            train_op = ema.apply()
        """,
        AFTER,
        False,
    ),
}


@pytest.mark.parametrize("how", MOVED)
def test_moving_averages_of_the_weights(how: str) -> None:
    training, expected, is_open = MOVED[how]
    new, findings = run(program(AVERAGING + textwrap.dedent(training)))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "class AveragedRMSPropOptimizer(RMSPropOptimizer):" in new
    assert 'AveragedRMSPropOptimizer(learning_rate=0.1, rho=0.9, epsilon=1e-10, ema_momentum=params["decay"])' in new
    assert expected in new
    assert "ema = " not in new
    messages = [f.message for f in findings if f.code == "TFM412"]
    assert len(messages) == 1 + is_open
    assert is_open == any(OPEN in message for message in messages)


def test_embeddings_get_lazy_updates() -> None:
    text = program(f"train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, {STEP})")
    new, _ = run(text.replace("(features, 1)", "(tf.keras.layers.Embedding(3, 2)(features), 1)"))
    assert "tf.keras.optimizers.legacy.SGD(learning_rate=0.1, momentum=0.9)" in new  # lazy, as TensorFlow 1's


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("MomentumOptimizer(params['rate'], 0.9)", "legacy.SGD(learning_rate=params['rate'], momentum=0.9)"),
        ("AdagradOptimizer(0.1)", "legacy.Adagrad(learning_rate=0.1, initial_accumulator_value=0.1, epsilon=1e-30)"),
        ("AdadeltaOptimizer(0.1)", "legacy.Adadelta(learning_rate=0.1, rho=0.95, epsilon=1e-08)"),
        ("FtrlOptimizer(0.1)", "legacy.Ftrl(learning_rate=0.1)"),
        ("RMSPropOptimizer(0.1)", "legacy.RMSprop):"),
    ],
)
def test_optimizers_are_those_that_update_by_one_operation(made: str, expected: str) -> None:
    """Those treat the rows of embeddings as TensorFlow 1 did; Keras 3 has none of them."""
    text = program(f"train_op = tf.train.{made}.minimize(loss, {STEP})")
    rows = text.replace("(features, 1)", "(tf.keras.layers.Embedding(3, 2)(features), 1)")
    for one in (text, rows):
        new, _ = run(one)
        assert f"tf.keras.optimizers.{expected}" in new and "update_step" not in new
        newer, _ = run(one, keras="3")
        assert "legacy" not in newer


def test_lazy_adam_of_embeddings() -> None:
    text = program(f"train_op = tf.contrib.opt.LazyAdamOptimizer(0.1).minimize(loss, {STEP})")
    new, _ = run(text)
    assert "optimizer=tf.keras.optimizers.legacy.Adam(" in new
    new, _ = run(text.replace("(features, 1)", "(tf.keras.layers.Embedding(3, 2)(features), 1)"))
    assert "class LazyAdamOptimizer(tf.keras.optimizers.legacy.Adam):" in new and "scatter_sub" in new


def test_a_wrapper_for_tpus_goes() -> None:
    new = migrated(
        f"""
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        if params.get("use_tpu"):
            optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, {STEP})
        """
    )
    assert "use_tpu" not in new and "optimizer = tf.keras.optimizers.legacy.SGD(learning_rate=0.1)\n" in new


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
    assert "class ClippedAdam(tf.keras.optimizers.legacy.Adam):" in mirrored and "optimizer = ClippedAdam(" in mirrored
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
    assert 'if params["rate"] > 1 else tf.keras.optimizers.legacy.SGD(learning_rate=0.2)' in new
    assert "optimizer = tf.keras.optimizers.legacy.Adam(learning_rate=0.1" in new


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


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ("RMSprop(0.1)", "legacy.RMSprop(0.1)"),
        ("RMSprop(0.1, centered=True, momentum=0.9)", "legacy.RMSprop(0.1, centered=True, momentum=0.9)"),
        ("RMSprop(0.1, momentum=0.9)", "legacy.RMSprop(0.1, momentum=0.9)"),
        ("RMSprop(0.1, 0.9, 0.9)", "legacy.RMSprop(0.1, 0.9, 0.9)"),
        ("RMSprop(0.1, 0.9, 0.0)", "legacy.RMSprop(0.1, 0.9, 0.0)"),
        ("Nadam(0.1)", "legacy.Nadam(0.1)"),
        ("Adagrad(0.1)", "legacy.Adagrad(0.1)"),
        ("Adam(0.1, weight_decay=0.01)", "Adam(0.1, weight_decay=0.01)"),  # legacy ones have none
    ],
)
def test_optimizers_of_keras_that_are_computed_otherwise_since_tensorflow_2_11(made: str, kept: str) -> None:
    new = migrated(
        f"""
        optimizer = tf.keras.optimizers.{made}
        optimizer.iterations = tf.train.get_or_create_global_step()
        train_op = optimizer.minimize(loss, tf.trainable_variables())
        """
    )
    assert f"tf.keras.optimizers.{kept}" in new


EARLY = """
        early = tf.trainable_variables()
        logits = tf.layers.dense(logits, 1)
        loss = tf.losses.mean_squared_error(labels, logits)
"""


@pytest.mark.parametrize(
    "trained",
    [
        "minimize(loss, STEP, var_list=early)",
        "minimize(loss, STEP, var_list=[v for v in tf.trainable_variables() if v not in early])",
        "apply_gradients(zip(tf.gradients(loss, early), early), STEP)",
    ],
)
def test_variables_of_half_a_network(trained: str) -> None:
    text = program(
        EARLY + f"        train_op = tf.train.GradientDescentOptimizer(0.1).{trained}\n".replace("STEP", STEP)
    )
    new, findings = run(text)
    assert "TFM415" in [f.code for f in findings] and new == text


def test_averages_of_half_a_network() -> None:
    text = """
        ema = tf.train.ExponentialMovingAverage(0.9)
        moved = ema.apply()
        logits = tf.layers.dense(logits, 1)
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = tf.group(moved, tf.train.GradientDescentOptimizer(0.1).minimize(loss, STEP))
        """
    new, findings = run(program(text.replace("STEP", STEP)))
    assert "TFM413" in [f.code for f in findings] and new == program(text.replace("STEP", STEP))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('optimizer="rmsprop", loss="mse"', 'optimizer=tf.keras.optimizers.legacy.RMSprop(), loss="mse"'),
        ('"Nadam", "mse"', 'tf.keras.optimizers.legacy.Nadam(), "mse"'),
        ('loss="mse"', 'optimizer=tf.keras.optimizers.legacy.RMSprop(), loss="mse"'),
        ('"adam", "mse"', '"adam", "mse"'),
    ],
)
def test_models_of_keras_that_name_their_optimizer(given: str, expected: str) -> None:
    text = PROGRAM.partition("def model_fn")[0] + (
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])\n"
        f"model.compile({given})\n"
        "estimator = tf.keras.estimator.model_to_estimator(model)\n"
        "estimator.train(input_fn, steps=3)\n"
    )
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert f"model.compile({expected})" in new
