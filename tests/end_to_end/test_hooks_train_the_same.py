"""Programs with session hooks: the training ends after the same step, with the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import os
import time

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
random = np.random.RandomState(4)
x = random.normal(size=(48, 6)).astype(np.float32)
y = x.sum(axis=1, keepdims=True) / 6

{hook}

def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat()


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode, params):
    net = tf.compat.v1.layers.dense(features, 4, tf.nn.tanh)
    logits = tf.compat.v1.layers.dense(net, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.compat.v1.losses.mean_squared_error(labels, logits)
    {model}
    optimizer = tf.compat.v1.train.GradientDescentOptimizer({rate})
    train_op = optimizer.minimize(loss, global_step=tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op{spec})


config = tf.estimator.RunConfig(save_checkpoints_steps=5)
estimator = tf.estimator.Estimator(model_fn, params={{}}, config=config)
{driver}
"""
TRAIN = "estimator.train(input_fn, steps=9, hooks=[{hook}])\n"
BOTH = """\
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=40, hooks=[hook])
eval_spec = tf.estimator.EvalSpec(eval_input_fn, throttle_secs=0)
tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
"""
STOPS = """
class Stops(tf.estimator.SessionRunHook):
    def __init__(self, last):
        self.last = last
        self.seen = []

    def begin(self):
        self.step = tf.compat.v1.train.get_global_step()

    def after_create_session(self, session, coord):
        self.first = session.run(self.step)

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(self.step)

    def after_run(self, run_context, run_values):
        self.seen.append(run_values.results)
        if len(self.seen) >= self.last:
            run_context.request_stop()

    def end(self, session):
        assert self.seen in (list(range(self.last)), list(range(1, self.last + 1))), self.seen
        assert session.run(self.step) == self.first + self.last
"""
ENOUGH = """
y[40:] += 5

class Enough(tf.estimator.SessionRunHook):
    def __init__(self, limit):
        self.limit = limit

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs({"loss": "total_loss:0"})

    def after_run(self, run_context, run_values):
        if run_values.results["loss"] > self.limit:
            run_context.request_stop()
"""
WATCHED = """
class Watches(tf.estimator.SessionRunHook):
    def __init__(self):
        self.began, self.batches, self.ended = 0, 0, 0

    def begin(self):
        self.began += 1

    def before_run(self, run_context):
        self.started = time.time()

    def after_run(self, run_context, run_values):
        assert time.time() >= self.started
        self.batches += 1

    def end(self, session):
        self.ended += 1


class Counts(tf.estimator.SessionRunHook):
    def begin(self):
        self.step = v1.train.get_global_step()
        self.more = v1.assign_add(self.step, 1, use_locking=True)

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(self.more)
"""
WATCHES = """\
watches = Watches()
train_hooks = [watches]
if time.time() > 3:
    train_hooks.append(tf.estimator.StopAtStepHook(num_steps=5))
estimator.train(input_fn, steps=9, hooks=train_hooks)
estimator.evaluate(eval_input_fn, hooks=[watches])
assert (watches.began, watches.batches, watches.ended) == (2, 5 + 6, 2), vars(watches)
hooks = [watches]
if time.time() > 3:
    hooks += [Counts(), tf.estimator.StopAtStepHook(4)]
found = [one for one in estimator.predict(eval_input_fn, hooks=hooks)]
assert len(found) == 4 * 8, len(found)
assert (watches.began, watches.batches, watches.ended) == (3, 5 + 6 + 4, 3), vars(watches)
"""
EARLY = """\
hook = tf.estimator.experimental.{name}(
    estimator, {arguments}, run_every_secs=None, run_every_steps={every})
"""


def case(driver: str, hook: str = "", model: str = "", spec: str = "", rate: float = 0.05) -> str:
    return PROGRAM.format(driver=driver, hook=hook, model=model, spec=spec, rate=rate)


#: Programs, and the number of steps that both must train.
CASES = {
    "own hook in a list": (
        case(
            "counter = v1.train.StepCounterHook(3)\nhooks = [counter]\nif time.time() > 3:\n    hooks.append(counter)\n"
            "hooks += [Stops(6)]\nestimator.train(input_fn, max_steps=9, hooks=hooks)\nassert hooks[-1].seen",
            STOPS,
        ),
        6,
    ),
    # The loss of each batch, not the mean of the epoch so far: the sixth is about 25, their mean about 5.
    "own hook that looks at the loss": (
        case(
            TRAIN.format(hook="Enough(10)"),
            ENOUGH,
            model="tf.identity(loss, name='total_loss')",
        ),
        6,
    ),
    "hook of the model_fn": (
        case(
            "estimator.train(input_fn, steps=9)",
            model="stop = tf.estimator.StopAtStepHook(num_steps=6)",
            spec=", training_hooks=[stop, v1.train.LoggingTensorHook({'loss': loss}, 2)]",
        ),
        6,
    ),
    "hooks of trainings, evaluations and predictions": (case(WATCHES, WATCHED), 5),
    "asked every other step": (
        case(
            "asked = []\n\ndef enough():\n    asked.append(1)\n    return len(asked) == 4\n\n"
            + EARLY.format(name="make_early_stopping_hook", arguments="enough", every=2)
            + TRAIN.format(hook="hook")
        ),
        7,
    ),
    # The negative rate makes the loss grow, so that the first evaluation (step 5) is the best; it grows so slowly that
    # rounding does not. Looked at are the evaluations before steps 1, 6, 11, 16 (every 5) and 1, 2, 3, ... (every step,
    # also after an evaluation).
    "no decrease": (
        case(EARLY.format(name="stop_if_no_decrease_hook", arguments="'loss', 10", every=5) + BOTH, rate=-0.02),
        16,
    ),
    "no decrease, looked at after each step": (
        case(EARLY.format(name="stop_if_no_decrease_hook", arguments="'loss', 10", every=1) + BOTH, rate=-0.02),
        15,
    ),
    "higher": (
        case(
            EARLY.format(name="stop_if_higher_hook", arguments="'loss', 0.0, min_steps=8", every=3) + BOTH,
        ),
        10,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_hooks_train_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    text, steps = CASES[name]
    new = prove(text, servers, tmp_path, steps=steps)
    assert "Hook" not in new
