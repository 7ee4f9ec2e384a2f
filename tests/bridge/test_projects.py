"""What programs of other people's projects do, on TensorFlow 1 and on the bridge's library: the same numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import run_both
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

MODULES = ("specs", "config", "estimator", "training")

PROGRAM = """
x = np.arange(64, dtype=np.float32).reshape(16, 4) / 64


def model_fn(features, labels, mode, params):
    value = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer(), name="d")
    loss = tf.losses.mean_squared_error(tf.cast(labels, tf.float32)[:, None], value)
    tf.identity(loss, name="watched")
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={})


class Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.losses = []

    def before_run(self, context):
        return tf.train.SessionRunArgs("watched:0")

    def after_run(self, context, run_values):
        self.losses.append(run_values.results)


def losses(input_fn, steps=6):
    hook = Losses()
    est.Estimator(model_fn, params={}).train(input_fn, hooks=[hook], steps=steps)
    return hook.losses


def shuffled():
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, np.arange(16)))
    data = data.shuffle(7, seed=3).batch(5)  # 1.15.5 draws otherwise where it is repeated, and joins both in one
    return data.make_one_shot_iterator().get_next()

found["shuffled"] = losses(shuffled)


# A dataset that is made where the file is imported, which TensorFlow 1.15.5 takes only for graphs of its own.
def rows():
    return tf.data.Dataset.from_generator(lambda: iter(x), tf.float32, tf.TensorShape([4]))

imported = None if OLD else rows()

def of_imported():
    data = (rows() if OLD else imported).map(lambda row: ({"x": row}, tf.reduce_sum(row))).batch(5)
    return data.make_one_shot_iterator().get_next()

found["imported"] = losses(of_imported)

# The same input_fn in a graph and a session of the program's own.
with tf.Graph().as_default():
    batch = shuffled()
    with tf.Session() as session:
        found["own graph"] = session.run(batch)[1]
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("projects"), MODULES)


@pytest.mark.parametrize("what", ["shuffled", "imported", "own graph"])
def test_programs_of_projects_compute_what_they_did(what: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert close(old[what], new[what]), (old[what], new[what])
