"""Programs whose Estimator does not stay in the function that makes it, with their proofs: see proving.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove_project

pytestmark = pytest.mark.tensorflow

DATA = """\
import numpy as np
import tensorflow as tf


def numbers():
    random = np.random.RandomState(4)
    x = random.normal(size=(40, 6)).astype(np.float32)
    return x, x.sum(axis=1, keepdims=True) / 6


class Numbers(object):
    def __init__(self, batch_size):
        self.batch_size = batch_size

    def train_data(self):
        return tf.data.Dataset.from_tensor_slices(numbers()).repeat().batch(self.batch_size)

    def eval_data(self):
        return tf.data.Dataset.from_tensor_slices(numbers()).batch(self.batch_size)
"""

# Made by a function, kept by an object that the main module drives with checkpoints; the model_fn is an object.
RUNNER = {
    "data.py": DATA,
    "network.py": """\
import tensorflow as tf


class Network(object):
    def __init__(self, units):
        self.units = units

    def __call__(self, features, labels, mode, params):
        net = tf.layers.dense(features, self.units, tf.nn.tanh)
        logits = tf.layers.dense(net, 1)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": logits})
        loss = tf.losses.mean_squared_error(labels, logits)
        if mode == tf.estimator.ModeKeys.EVAL:
            metrics = {"mae": tf.metrics.mean_absolute_error(labels, logits)}
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        optimizer = tf.train.MomentumOptimizer(params["rate"], 0.9)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    "runner.py": """\
import tensorflow as tf

from data import Numbers
from network import Network


def build_estimator(model, params, model_dir, config=None):
    return tf.estimator.Estimator(
        model_fn=model,
        model_dir=model_dir,
        config=config,
        params=params,
    )


class Runner(object):
    def __init__(self, units, rate, model_dir):
        self._model = Network(units)
        self.data = Numbers(8)
        params = {"rate": rate}
        config = tf.estimator.RunConfig(keep_checkpoint_max=2)
        self.estimator = build_estimator(self._model, params, model_dir, config)
        params["rate"] = 100.0

    def train(self, max_steps):
        hooks = [tf.train.StepCounterHook()]
        self.estimator.train(self.data.train_data, hooks, max_steps=max_steps)

    def evaluate(self):
        return self.estimator.evaluate(
            input_fn=self.data.eval_data,
            steps=3,
            name="test",
        )

    def predict(self):
        return [one["y"] for one in self.estimator.predict(self.data.eval_data)]
""",
    "train.py": """\
from runner import Runner

if __name__ == "__main__":
    runner = Runner(4, 0.05, "model")
    for step in (2, 4, 4, 5):
        runner.train(step)
        print(sorted(runner.evaluate().items()))
    print(len(runner.predict()))
""",
}

# One of several model_fns, chosen by a name; given to a function that trains it later, and back in a tuple.
CHOSEN = {
    "data.py": DATA,
    "models.py": """\
import tensorflow as tf


def wide(features, labels, mode, params):
    return spec(tf.layers.dense(features, 1), labels, mode, params)


def deep(features, labels, mode, params):
    net = tf.layers.dense(features, params["units"], tf.nn.relu)
    return spec(tf.layers.dense(net, 1), labels, mode, params)


def spec(logits, labels, mode, params):
    loss = tf.losses.absolute_difference(labels, logits)
    optimizer = tf.train.AdamOptimizer(params["rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


MODELS = {"wide": wide, "deep": deep}
""",
    "train.py": """\
import tensorflow as tf

import models
from data import numbers


def make_input_fn(repeat):
    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(numbers())
        return (dataset.repeat() if repeat else dataset).batch(params["batch_size"])

    return input_fn


def build(name, **sizes):
    params = dict(batch_size=8, rate=0.02, **sizes)
    estimator = tf.estimator.Estimator(models.MODELS[name], params=params)
    return estimator, make_input_fn(True)


def run(estimator, input_fn, steps):
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=steps)
    eval_spec = tf.estimator.EvalSpec(make_input_fn(False), steps=None)
    later = lambda: tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    later()


def main():
    classifier, input_fn = build("deep", units=5)
    run(classifier, input_fn, 5)
    print(classifier.evaluate(make_input_fn(False))["loss"])


main()
""",
}

# A class that is derived from Estimator.
DERIVED = {
    "train.py": f"""\
{DATA}

class Regressor(tf.estimator.Estimator):
    \"\"\"Two layers.\"\"\"

    def __init__(self, units, rate=0.1, model_dir=None, config=None):
        self.units = units

        def _model_fn(features, labels, mode, params):
            net = tf.layers.dense(features, self.units, tf.nn.relu)
            logits = tf.layers.dense(net, 1)
            loss = tf.losses.mean_squared_error(labels, logits)
            optimizer = tf.train.AdagradOptimizer(params["rate"])
            train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

        super(Regressor, self).__init__(
            model_fn=_model_fn, model_dir=model_dir, config=config, params={{"rate": rate}})

    def describe(self):
        return "%d units, %r" % (self.units, self.params)


data = Numbers(8)
regressors = []
for units in [4]:
    regressors.append(Regressor(units, rate=0.2))
for regressor in regressors:
    regressor.train(data.train_data, steps=2).train(data.train_data, steps=3)
    print(regressor.describe(), regressor.evaluate(data.eval_data))
"""
}

# A function that makes it is given to the loop of another module.
GIVEN = {
    "data.py": DATA,
    "loop.py": """\
def run_loop(build_fn, data, rounds):
    estimator = build_fn(units=4)
    for _ in range(rounds):
        estimator.train(data.train_data, steps=1)
    return estimator.evaluate(data.eval_data)
""",
    "train.py": """\
import tensorflow as tf

import loop
from data import Numbers


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, params["units"], tf.nn.tanh)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step()))


def build_estimator(units):
    config = tf.estimator.RunConfig().replace(session_config=tf.ConfigProto(device_count={"GPU": 0}))
    return tf.estimator.Estimator(model_fn, params={"units": units}, config=config)


print(loop.run_loop(build_fn=build_estimator, data=Numbers(8), rounds=5))
""",
}

# It has checkpoints of its own by their paths, and trains in an object, evaluated in between.
REMEMBERED = {
    "train.py": f"""\
{DATA}

def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={{"y": logits, "twice": 2 * logits}})
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdagradOptimizer(0.3).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


data = Numbers(8)
estimator = tf.estimator.Estimator(model_fn, "model")
paths, losses = [], []


def more(steps):
    estimator.train(data.train_data, steps=steps)
    paths.append(estimator.latest_checkpoint())
    losses.append(estimator.evaluate(data.eval_data)["loss"])


for steps in (2, 1, 2):
    more(steps)
again = [estimator.evaluate(data.eval_data, checkpoint_path=path)["loss"] for path in paths]
assert again == losses and len(set(losses)) == 3, (again, losses)
assert [path.rpartition("-")[2] for path in paths] == ["2", "3", "5"], paths
first, last = [
    list(estimator.predict(data.eval_data, predict_keys=["y"], checkpoint_path=path)) for path in (paths[0], None)
]
assert list(first[0]) == ["y"] and first[0]["y"] != last[0]["y"]
"""
}

# The RunConfig of a script is changed once, and given to a module that makes one of two canned Estimators with it; the
# serving function is looked up by the name of a format.
SAMPLE = {
    "model.py": """\
import numpy as np
import tensorflow as tf

COLUMNS = ["x", "y", "label"]
INPUTS = [tf.feature_column.numeric_column("x"), tf.feature_column.numeric_column("y")]


def build_estimator(kind, config, hidden_units=None):
    if kind == "wide":
        return tf.estimator.LinearRegressor(INPUTS, config=config)
    return tf.estimator.DNNRegressor(
        config=config,
        feature_columns=INPUTS,
        hidden_units=hidden_units or [4, 2],
        optimizer=tf.train.ProximalAdagradOptimizer(learning_rate=0.1),
    )


def parse_csv(rows):
    columns = tf.decode_csv(tf.expand_dims(rows, -1), record_defaults=[[0.0], [0.0], [0.0]])
    return dict(zip(COLUMNS, columns))


def csv_serving_fn():
    rows = tf.placeholder(shape=[None], dtype=tf.string)
    features = parse_csv(rows)
    features.pop("label")
    return tf.estimator.export.ServingInputReceiver(features, {"rows": rows})


def json_serving_fn():
    inputs = {}
    for column in INPUTS:
        inputs[column.name] = tf.placeholder(shape=[None], dtype=column.dtype)
    return tf.estimator.export.ServingInputReceiver(inputs, inputs)


SERVING = {"CSV": csv_serving_fn, "JSON": json_serving_fn}


def input_fn(count):
    x = np.random.RandomState(count).normal(size=(count, 2)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x[:, 0], "y": x[:, 1]}, x.sum(axis=1))).batch(4)
""",
    "train.py": """\
import sys
import tempfile

import tensorflow as tf

import model


def run(kind, folder, served, steps):
    train_spec = tf.estimator.TrainSpec(lambda: model.input_fn(20), max_steps=steps)
    exporter = tf.estimator.FinalExporter("sample", model.SERVING[served])
    eval_spec = tf.estimator.EvalSpec(lambda: model.input_fn(8), steps=None, exporters=[exporter], name="sample")
    config = tf.estimator.RunConfig()
    config = config.replace(model_dir=folder)
    print("model dir {}".format(config.model_dir))
    tf.estimator.train_and_evaluate(model.build_estimator(kind, config, [3]), train_spec, eval_spec)


if __name__ == "__main__":
    run(sys.argv[1] if len(sys.argv) > 1 else "deep", tempfile.mkdtemp(), "JSON", 5)
""",
}

PROGRAMS = {"a function that is given": GIVEN, "a runner": RUNNER, "a chosen model": CHOSEN, "a derived class": DERIVED}


@pytest.mark.parametrize("name", PROGRAMS)
def test_trains_and_evaluates_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    new = prove_project(PROGRAMS[name], "train.py", servers, tmp_path, style="bridge")
    assert "keras_estimator.py" in new


@pytest.mark.parametrize("name", ["a runner", "a chosen model"])
def test_an_object_in_its_place_trains_and_evaluates_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    """Natively: trainings that go on from each other's checkpoint, evaluations between and in them, predictions."""
    new = prove_project(PROGRAMS[name], "train.py", servers, tmp_path, strategy="one-device")
    assert any(" = KerasEstimator(" in text for text in new.values()) and "keras_estimator.py" not in new


def test_checkpoints_by_their_paths_are_those_of_their_steps(servers: Servers, tmp_path: Path) -> None:
    new = prove_project(REMEMBERED, "train.py", servers, tmp_path, style="native")
    assert "estimator = KerasEstimator(" in new["train.py"]


def test_a_run_config_that_is_changed_and_given_to_several(servers: Servers, tmp_path: Path) -> None:
    new = prove_project(SAMPLE, "train.py", servers, tmp_path, style="native", strategy="one-device")
    assert "linear_regressor, feature_columns=INPUTS), **config)" in new["model.py"]
    assert "    config = dict(config" in new["train.py"] and 'config.get("model_dir")' in new["train.py"]
    assert "def json_serving_fn(predictor):" in new["model.py"] and "SERVING[served])" in new["train.py"]


def test_an_object_trains_on_the_cluster_in_tf_config(servers: Servers, tmp_path: Path) -> None:
    last = '    print(classifier.evaluate(make_input_fn(False))["loss"])\n'  # an Estimator with servers cannot
    script = CHOSEN["train.py"].replace(last, "")
    files = {**CHOSEN, "train.py": script}
    clusters = ("chief=1,ps=1", "chief=1,worker=1,ps=1")
    new = prove_project(files, "train.py", servers, tmp_path, clusters=clusters)
    assert "self.strategy = make_strategy(self.resolver)" in new["train.py"]
