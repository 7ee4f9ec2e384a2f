"""warm_start_from, get_variable_value: both programs start from a checkpoint, train 5 steps and tell their weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.proving import Servers
from tests.end_to_end.test_checkpoint_carries_on import migrated, train

pytestmark = pytest.mark.tensorflow

# The pattern leaves "other" alone, and one variable was called otherwise before.
PROGRAM = """\
import json
import os

import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
x = random.normal(size=(40, 6)).astype(np.float32)
y = np.tanh(x.sum(axis=1, keepdims=True)).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode, params):
    start = tf.random_normal_initializer(seed=1)
    with tf.variable_scope("net"):
        first = tf.get_variable(params["name"], [6, 6], initializer=start)
        second = tf.get_variable("second", [6, 6], initializer=start)
    hidden = tf.nn.tanh(tf.matmul(tf.nn.tanh(tf.matmul(features, first)), second))
    outputs = tf.layers.dense(hidden, 1, kernel_initializer=tf.ones_initializer(), name="other")
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

{rest}
"""
BEFORE = """\
estimator = tf.estimator.Estimator(model_fn, model_dir='MODEL_DIR', params={"name": "first"})
estimator.train(input_fn, steps=10)"""
AFTER = """\
settings = None
if os.path.isdir('BEFORE'):
    settings = tf.estimator.WarmStartSettings(
        'BEFORE', vars_to_warm_start='net/', var_name_to_prev_var_name={'net/renamed': 'net/first'})
estimator = tf.estimator.Estimator(model_fn, 'MODEL_DIR', params={"name": "renamed"}, warm_start_from=settings)
estimator.train(input_fn, steps=5)
told = {name: estimator.get_variable_value(name).tolist() for name in ("net/renamed", "other/kernel")}
told["step"] = int(estimator.get_variable_value("global_step"))
told["names"] = [name for name in estimator.get_variable_names() if "Momentum" not in name]
json.dump(told, open(os.path.join('MODEL_DIR', "told.json"), "w"))"""


INIT = """\
estimator = tf.estimator.Estimator(model_fn, 'MODEL_DIR', params={"name": "first"})
estimator.train(input_fn, steps=5)"""


def test_both_programs_start_from_the_checkpoint(servers: Servers, tmp_path: Path) -> None:
    before, after = PROGRAM.replace("{rest}", BEFORE), PROGRAM.replace("{rest}", AFTER)
    tf1, out = tmp_path / "before", tmp_path / "ours"
    cold = train(servers[0], "original", before, tf1, tmp_path / "a")
    expected = train(servers[0], "original", after.replace("BEFORE", str(tf1)), tmp_path / "expected", tmp_path / "b")
    new = migrated(after.replace("BEFORE", str(tf1)), "bridge")
    told = json.loads((tmp_path / "expected" / "told.json").read_text())
    found = train(servers[1], "migrated", new["train.py"], out, tmp_path / "c", new)
    np.testing.assert_allclose([step.loss for step in found.steps], [step.loss for step in expected.steps], rtol=1e-5)
    ours = json.loads((out / "told.json").read_text())
    assert ours["step"] == told["step"] == 5
    assert sorted(ours["names"]) == sorted(told["names"])
    for name in ("net/renamed", "other/kernel"):
        np.testing.assert_allclose(ours[name], told[name], rtol=1e-4, atol=1e-6)
    # A cold start from the same initial values is another training.
    assert cold.steps[0].loss != pytest.approx(expected.steps[0].loss, rel=1e-2)

    # The same by an assignment map in the model_fn, for a variable and for a scope.
    network = PROGRAM.replace("{rest}", INIT).replace(
        "    loss = ",
        f"    tf.train.init_from_checkpoint('{tf1}', {{'net/': 'net/', 'other/bias': 'other/bias'}})\n    loss = ",
    )
    expected = train(servers[0], "original", network, tmp_path / "init", tmp_path / "d")
    new = migrated(network, "bridge")
    found = train(servers[1], "migrated", new["train.py"], tmp_path / "ours-init", tmp_path / "e", new)
    np.testing.assert_allclose([step.loss for step in found.steps], [step.loss for step in expected.steps], rtol=1e-5)
    assert cold.steps[0].loss != pytest.approx(expected.steps[0].loss, rel=1e-2)
