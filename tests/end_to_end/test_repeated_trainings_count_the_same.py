"""Trainings that follow one another over data that do not know their length: the steps count as the Estimator's did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.harness.session import Session
from tests.end_to_end.proving import Servers, prove

SessionFor = Callable[[int], Session]

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

x = np.random.RandomState(0).uniform(-1.0, 1.0, (24, 3)).astype(np.float32)
y = x.sum(1, keepdims=True).astype(np.float32)


def model_fn(features, labels, mode):
    predictions = tf.layers.dense(features, 1, kernel_initializer=tf.ones_initializer(), name="out")
    loss = tf.losses.mean_squared_error(labels + 3.0, predictions)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    return data.filter(lambda features, labels: tf.reduce_all(features < 2.0))


{driver}
"""
LOOP = """\
estimator = tf.estimator.Estimator(model_fn)
for _ in range(2):
    estimator.train(input_fn)
assert estimator.evaluate(input_fn)["global_step"] == 6
"""
HANDED = """\
def make():
    return tf.estimator.Estimator(model_fn)


def run(estimator):
    for _ in range(2):
        estimator.train(input_fn)
    assert estimator.evaluate(input_fn)["global_step"] == 6


run(make())
"""


KEPT = """estimator = tf.estimator.Estimator(model_fn, model_dir="kept")
estimator.train(input_fn)
estimator.train(input_fn)
assert estimator.evaluate(input_fn)["global_step"] == 6
"""


# The steps are read behind a single training.
READ = """estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: input_fn().repeat(2))
for name, value in estimator.evaluate(input_fn).items():
    assert name != "global_step" or value == 6
"""


# The data end before the steps do.
ENDS = """estimator = tf.estimator.Estimator(model_fn, model_dir="ends")
training = tf.estimator.TrainSpec(lambda: input_fn().repeat(2), max_steps=50)
tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(input_fn, steps=2))
assert estimator.evaluate(input_fn)["global_step"] == 6
"""


@pytest.mark.parametrize(
    ("driver", "style"),
    [(LOOP, "native"), (HANDED, "bridge"), (KEPT, "native"), (ENDS, "native"), (READ, "native")],
    ids=["loop", "handed", "kept", "ends", "read"],
)
def test_a_batch_that_is_looked_for_is_no_step(driver: str, style: str, servers: Servers, tmp_path: Path) -> None:
    new = prove(PROGRAM.format(driver=driver), servers, tmp_path, steps=6, style=style)
    assert ("CountedSteps()" if style == "native" else "keras_estimator") in new


def test_a_batch_that_is_looked_for_is_no_step_on_keras_3(session_for: SessionFor, tmp_path: Path) -> None:
    opened = session_for(3)
    trainings = LOOP[: LOOP.index("assert")]
    new = prove(PROGRAM.format(driver=trainings), (opened.original, opened.migrated), tmp_path, steps=6, keras="3")
    assert "callbacks=[CountedSteps()]" in new
