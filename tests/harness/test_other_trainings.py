"""A script that trains more than one model: each run records one of them, the one that is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrator.harness.protocol import name_map, origins
from migrator.harness.protocol.l8_artefacts import DIFFERENT, SAME
from migrator.harness.recording import Recording
from tests.end_to_end.proving import Servers, record
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf
from tensorflow import feature_column as fc

X = np.random.RandomState(1).rand(40, 2).astype(np.float32)
Y = X.sum(1)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"a": X[:, 0], "b": X[:, 1]}, Y)).batch(8)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(({"a": X[:, 0], "b": X[:, 1]}, 2 * Y)).batch(8)


narrow = tf.estimator.LinearRegressor([fc.numeric_column("a")])
narrow.train(input_fn)
wide = tf.estimator.LinearRegressor([fc.numeric_column("a"), fc.numeric_column("b")])
wide.train(input_fn)
wide.evaluate(eval_input_fn)
print(narrow.evaluate(input_fn))
"""


@pytest.mark.parametrize(("training", "weights"), [(0, 2), (1, 3)])
def test_one_of_the_models_is_recorded(servers: Servers, tmp_path: Path, training: int, weights: int) -> None:
    new, _ = run_project({"train.py": PROGRAM})["train.py"]
    recordings: list[Recording] = []
    for server, kind, text in zip(servers, ("original", "migrated"), (PROGRAM, new), strict=True):
        script = tmp_path / f"{kind}.py"
        script.write_text(text)
        recordings.append(record(server, kind, script, tmp_path / kind, None, training=training))
    original, migrated = recordings
    for one in recordings:
        assert (len(one.steps), len(one.evaluations), one.other_trainings) == (5, 1, 1)
        assert one.training == training
        assert sum(int(np.prod(variable.shape)) for variable in one.variables) == weights
    assert name_map.build(original.variables, migrated.variables).complete
    assert original.evaluations[0].results["loss"] == pytest.approx(migrated.evaluations[0].results["loss"], rel=1e-5)


WARM = """
import numpy as np
import tensorflow as tf

X = np.random.RandomState(3).normal(size=(120, 4)).astype(np.float32)


def batches(y):
    return tf.data.Dataset.from_tensor_slices((X, y)).batch(20)


def make(width, name):
    def model_fn(features, labels, mode):
        with tf.variable_scope("body"):
            hidden = tf.layers.dense(features, 6, tf.tanh)
        loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, width, name=name))
        op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=op)

    return model_fn


tf.estimator.Estimator(make(2, "first"), "before").train(lambda: batches(X[:, :2]))
start = tf.estimator.WarmStartSettings("before", vars_to_warm_start="body.*")
tf.estimator.Estimator(make(1, "second"), "after", warm_start_from=start).train(lambda: batches(X[:, 2:3]))
"""

FITTED = """
import numpy as np
import tensorflow as tf

X = np.random.RandomState(3).normal(size=(120, 4)).astype(np.float32)


def batches(y):
    return tf.data.Dataset.from_tensor_slices((X, y)).batch(20)


def train(body, width, y):
    inputs = tf.keras.Input((4,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(width)(body(inputs)))
    model.compile(tf.keras.optimizers.legacy.SGD(0.1), "mse")
    model.fit(batches(y))


def new():
    return tf.keras.Sequential([tf.keras.layers.Dense(6, activation="tanh", input_shape=(4,))])


body = new()
train(body, 2, X[:, :2])
BETWEEN
train(body, 1, X[:, 2:3])
"""


@pytest.mark.parametrize(
    ("between", "status"),
    [
        ("", SAME),
        ("kept, body = body, new(); body.set_weights(kept.get_weights())", SAME),
        ("body = new()", DIFFERENT),
        ("body.layers[0].bias.assign(tf.zeros([6]))", DIFFERENT),
    ],
)
def test_where_the_weights_of_a_second_model_come_from(
    servers: Servers, tmp_path: Path, between: str, status: str
) -> None:
    texts = (WARM, 'import os\nos.environ["TF_USE_LEGACY_KERAS"] = "1"\n' + FITTED.replace("BETWEEN", between))
    found: list[list[Recording]] = []
    for server, kind, text in zip(servers, ("original", "migrated"), texts, strict=True):
        script = tmp_path / f"{kind}.py"
        script.write_text(text)
        runs = [record(server, kind, script, tmp_path / f"{kind}{n}", None, training=n) for n in (0, 1)]
        found.append(runs)
    first, second = (
        name_map.build(original.variables, migrated.variables) for original, migrated in zip(*found, strict=True)
    )
    judged = origins.judge(1, found[0][1], found[1][1], second, {0: first})
    assert judged is not None and judged.status == status, judged
