"""The recorder inside real training runs: originals on compat.v1, migrated programs on tf_keras."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch, RunOutcome
from migrator.harness.recording import (
    LOSS_OF_BATCHES,
    LOSS_OF_EXAMPLES,
    Recording,
    RecordingError,
    evaluation_weights,
    read,
    read_batch,
)

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

DATA = """
import hashlib, os, sys
import numpy as np
import tensorflow as tf
random = np.random.RandomState(0)
X = random.normal(size=(128, 5)).astype(np.float32)
Y = (0.5 * X.sum(1, keepdims=True)).astype(np.float32)
OPTIONS = sys.argv[2:]
"""

ORIGINAL = (
    DATA
    + """
def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).shuffle(128, seed=3).repeat().batch(8)

def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(32)

def model_fn(features, labels, mode):
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2) if "shards" in OPTIONS else None):
        decay = tf.keras.regularizers.l2(0.01)
        net = tf.layers.dense(features["x"], 16, tf.nn.relu, kernel_regularizer=decay)
        net = tf.layers.dropout(net, 0.25, training=mode == tf.estimator.ModeKeys.TRAIN)
        net = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, net)
    if "unregularized" not in OPTIONS:
        loss += tf.losses.get_regularization_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"mae": tf.metrics.mean_absolute_error(labels, net)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = {
        "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
        "adam": lambda: tf.train.AdamOptimizer(0.01),
        "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    }[sys.argv[1]]()
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

config = tf.estimator.RunConfig(tf_random_seed=4)
estimator = tf.estimator.Estimator(model_fn, os.environ["MODEL_DIR"], config)
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=12)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(eval_input_fn, steps=None))
if "TF_CONFIG" not in os.environ:
    digest = hashlib.sha256()
    for name in sorted(estimator.get_variable_names()):
        digest.update(estimator.get_variable_value(name).tobytes())
    print("WEIGHTS", digest.hexdigest())
"""
)

MIGRATED = (
    DATA
    + """
tf.keras.utils.set_random_seed(5)

def build():
    x = tf.keras.Input((5,), name="x")
    net = tf.keras.layers.Dense(16, tf.nn.relu, kernel_regularizer=tf.keras.regularizers.L2(0.01))(x)
    net = tf.keras.layers.Dropout(0.25)(net)
    model = tf.keras.Model({"x": x}, tf.keras.layers.Dense(1)(net))
    make = tf.keras.optimizers
    optimizer = {
        "momentum": lambda: make.SGD(0.05, momentum=0.9),
        "adam": lambda: make.Adam(0.01, beta_2=float(np.float32(0.999)), epsilon=1e-8),
        "adagrad": lambda: make.Adagrad(0.1, initial_accumulator_value=0.1, epsilon=0.0),
    }[sys.argv[1]]()
    model.compile(optimizer, "mse", metrics=["mae"])
    return model

def train_data():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).shuffle(128, seed=3).repeat().batch(8)

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
jobs = resolver.cluster_spec().jobs
if "ps" in jobs and resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    ).join()
if "ps" in jobs:
    partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner if "shards" in OPTIONS else None)
elif jobs:
    strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
else:
    strategy = tf.distribute.get_strategy()
with strategy.scope():
    model = build()
if "creator" in OPTIONS:
    data = tf.keras.utils.experimental.DatasetCreator(lambda context: train_data())
elif "distributed" in OPTIONS:
    data = strategy.distribute_datasets_from_function(lambda context: train_data())
else:
    data = train_data()
path = os.path.join(os.environ["MODEL_DIR"], "ckpt-{epoch}")
saving = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
model.fit(data, steps_per_epoch=6, epochs=2, verbose=0, callbacks=[saving])
if not jobs:
    model.evaluate(tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(32), verbose=0)
    digest = hashlib.sha256()
    for variable in model.variables + model.optimizer.variables:
        digest.update(variable.numpy().tobytes())
    print("WEIGHTS", digest.hexdigest())
"""
)

MIRRORED = (
    DATA
    + """
def input_fn(input_context):
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
    data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return data.repeat().batch(8)

def model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 16, tf.nn.relu, kernel_regularizer=tf.keras.regularizers.l2(0.01))
    net = tf.layers.dropout(net, 0.25, training=mode == tf.estimator.ModeKeys.TRAIN)
    net = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, net) + tf.losses.get_regularization_loss()
    train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
estimator = tf.estimator.Estimator(
    model_fn, os.environ["MODEL_DIR"], tf.estimator.RunConfig(train_distribute=strategy, tf_random_seed=4)
)
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps=12), tf.estimator.EvalSpec(input_fn, steps=1)
)
"""
)

EPOCHS_ORIGINAL = (
    DATA
    + """
def input_fn():
    return tf.data.Dataset.from_tensor_slices((X[:20], Y[:20])).shuffle(20, seed=3).batch(8)

def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tf.estimator.Estimator(model_fn)
for epoch in range(3):
    estimator.train(input_fn)
    print("LOSS", estimator.evaluate(input_fn)["loss"])
"""
)

EPOCHS_MIGRATED = (
    DATA
    + """
x = tf.keras.Input((5,))
model = tf.keras.Model(x, tf.keras.layers.Dense(1)(x))
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
data = tf.data.Dataset.from_tensor_slices((X[:20], Y[:20])).batch(8)
for epoch in range(3):
    model.fit(data, verbose=0)
    model.evaluate(data, verbose=0)
"""
)

FEATURES_ORIGINAL = (
    DATA
    + """
ids = random.randint(0, 20, (96, 4))
words = np.array(["ab", "c"] * 48)

def input_fn():
    data = tf.data.Dataset.from_tensor_slices(({"ids": ids, "word": words, "z": X[:96, 0]}, Y[:96, 0]))
    return tf.data.make_one_shot_iterator(data.repeat().batch(8)).get_next()

def model_fn(features, labels, mode):
    table = tf.get_variable("table", [20, 6])
    net = tf.reduce_mean(tf.nn.embedding_lookup(table, features["ids"]), 1)
    net = net + tf.expand_dims(features["z"], 1)
    net = tf.layers.batch_normalization(net, training=True)
    loss = tf.losses.mean_squared_error(labels, tf.squeeze(tf.layers.dense(net, 1), 1))
    step = tf.train.get_global_step()
    optimizer = tf.train.AdagradOptimizer(tf.train.exponential_decay(0.05, step, 3, 0.7))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step))

tf.estimator.Estimator(model_fn).train(input_fn, max_steps=12)
"""
)

FEATURES_MIGRATED = (
    DATA
    + """
ids = random.randint(0, 20, (96, 4))
words = np.array(["ab", "c"] * 48)
keras = tf.keras

class Mean(keras.layers.Layer):
    def call(self, inputs):
        return tf.reduce_mean(inputs[0], 1) + tf.expand_dims(inputs[1], 1)

inputs = {
    "ids": keras.Input((4,), dtype=tf.int64, name="ids"),
    "word": keras.Input((), dtype=tf.string, name="word"),
    "z": keras.Input((), name="z"),
}
net = Mean()([keras.layers.Embedding(20, 6, name="table")(inputs["ids"]), inputs["z"]])
net = keras.layers.BatchNormalization()(net)
model = keras.Model(inputs, tf.squeeze(keras.layers.Dense(1)(net), 1))
rate = keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.7)
model.compile(keras.optimizers.Adagrad(rate, epsilon=0.0), "mse", steps_per_execution=4)
data = tf.data.Dataset.from_tensor_slices(({"ids": ids, "word": words, "z": X[:96, 0]}, Y[:96, 0]))
model.fit(data.repeat().batch(8), steps_per_epoch=12, verbose=0)
"""
)

LAYERS_ORIGINAL = (
    DATA
    + """
def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(8)

def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(32)

def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.clip_by_value(features["x"], -2.0, 2.0)
    net = tf.layers.dense(net, 16, tf.nn.relu)
    net = tf.layers.batch_normalization(net, training=training)
    image = tf.layers.batch_normalization(tf.reshape(net, [-1, 4, 4, 1]), training=training)
    net = tf.layers.dropout(tf.reshape(image, [-1, 16]), 0.25, training=training)
    net = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, net)
    if not training:
        metrics = {"mae": tf.metrics.mean_absolute_error(labels, net)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients = {
        "none": lambda: gradients,
        "global": lambda: tf.clip_by_global_norm(gradients, 0.5)[0],
        "norm": lambda: [tf.clip_by_norm(one, tf.constant(0.25)) for one in gradients],
        "value": lambda: [tf.clip_by_value(one, -0.1, 0.1) for one in gradients],
        "asymmetric": lambda: [tf.clip_by_value(one, -0.1, clip_value_max=0.2) for one in gradients],
        "several": lambda: [tf.clip_by_norm(one, 0.5 + 0.25 * (place % 2)) for place, one in enumerate(gradients)],
        "computed": lambda: tf.clip_by_global_norm(gradients, tf.reduce_sum(labels) ** 2)[0],
    }[sys.argv[1]]()
    train_op = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, max_steps=4)
print("RESULTS", sorted(estimator.evaluate(eval_input_fn).items()))
estimator.train(input_fn, max_steps=8)
print("RESULTS", sorted(estimator.evaluate(eval_input_fn).items()))
"""
)

LAYERS_MIGRATED = (
    DATA
    + """
keras = tf.keras

class Clip(keras.layers.Layer):
    def call(self, inputs):
        return tf.clip_by_value(inputs, -2.0, 2.0)

class Model(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        gradients = {
            "none": lambda: gradients,
            "global": lambda: tf.clip_by_global_norm(gradients, 0.5)[0],
            "asymmetric": lambda: [tf.clip_by_value(one, -0.1, 0.2) for one in gradients],
        }[sys.argv[1]]()
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.compiled_metrics.update_state(y, self(x))
        return {"loss": loss}

x = keras.Input((5,), name="x")
net = keras.layers.Dense(16, tf.nn.relu)(Clip()(x))
net = keras.layers.BatchNormalization(momentum=0.99)(net)
image = keras.layers.BatchNormalization(momentum=0.99)(keras.layers.Reshape((4, 4, 1))(net))
net = keras.layers.Dropout(0.25)(keras.layers.Flatten()(image))
net = keras.layers.Dense(1)(net)
kind = Model if "custom" in OPTIONS else keras.Model
model = kind({"x": x}, net)
clip = {
    "none": {}, "global": {"global_clipnorm": 0.5}, "norm": {"clipnorm": 0.25}, "value": {"clipvalue": 0.1}
}.get(sys.argv[1], {})
optimizer = keras.optimizers.SGD(
    0.05, **({} if "custom" in OPTIONS else clip)
)
model.compile(optimizer, "mse", metrics=["mae"])
data = tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(8)
test = tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(32)
history = model.fit(
    data.take(100), steps_per_epoch=4, epochs=2, verbose=0, validation_data=test
)
print("RESULTS", sorted(history.history), model.history is history)
if "iterator" in OPTIONS:
    test = iter(test)
print("RESULTS", model.evaluate(test, verbose=0, return_dict=True))
print("METRICS", [float(metric.result()) for metric in model.metrics])
digest = hashlib.sha256()
for variable in model.variables + model.optimizer.variables:
    digest.update(variable.numpy().tobytes())
print("WEIGHTS", digest.hexdigest())
"""
)

EVALUATOR = (
    (
        MIGRATED.split("with strategy.scope()")[0]
        + """
with strategy.scope():
    model = build()
path = os.environ["MODEL_DIR"]
if resolver.task_type == "evaluator":
    for checkpoint in tf.train.checkpoints_iterator(path):
        model.load_weights(checkpoint).expect_partial()
        model.evaluate(train_data().take(2), verbose=0)
else:
    saving = tf.keras.callbacks.ModelCheckpoint(path + "/ckpt-{epoch}", save_weights_only=True)
    data = tf.keras.utils.experimental.DatasetCreator(lambda context: train_data())
    model.fit(data, steps_per_epoch=30, epochs=2, verbose=0, callbacks=[saving])
"""
    )
    .replace(
        """strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)""",
        """strategy = tf.distribute.get_strategy()""",
    )
    .replace('if "ps" in jobs:', 'if "ps" in jobs and resolver.task_type != "evaluator":')
)

PLAN: dict[str, Any] = {
    "steps": None,
    "state_steps": [1, 2, 10],
    "initial": None,
    "ulp_seed": None,
    "learning_rate_factor": 1.0,
    "replay": None,
    "record_batches": True,
    "pin_dropout": True,
    "evaluate": True,
}


class Runner:
    """Runs scripts in two fork servers, each run in a fresh folder."""

    def __init__(self, folder: Path, servers: dict[str, ForkServer]) -> None:
        self.folder = folder
        self.servers = servers
        self.count = 0

    def launch(
        self, program: str, body: str, args: str = "", shape: str = "", trainers: str = "local:0", **plan: Any
    ) -> tuple[RunOutcome, Path]:
        """The outcome and the run's folder. `recorded=False` runs without a recorder."""
        self.count += 1
        run_dir = self.folder / f"run-{self.count}"
        run_dir.mkdir()
        script = run_dir / "program.py"
        script.write_text(body)
        whole: dict[str, Any] = {}
        if plan.pop("recorded", True):
            whole = (
                PLAN
                | plan
                | {
                    "record": str(run_dir / "record"),
                    "model_dir": str(run_dir / "model"),
                    "program": program,
                    "trainers": trainers.split(),
                }
            )
        launch = Launch(
            program=program,
            script=script,
            args=tuple(args.split()),
            shape=ClusterShape.parse(shape, coordinated=program == "migrated"),
            run_dir=run_dir,
            plan=whole,
            environment={"MODEL_DIR": str(run_dir / "written-by-the-script"), "TF_CPP_MIN_LOG_LEVEL": "2"},
            total_timeout=180.0,
        )
        return self.servers[program].run(launch), run_dir

    def run(self, program: str, body: str, args: str = "", **more: Any) -> tuple[Recording, Path]:
        outcome, run_dir = self.launch(program, body, args, **more)
        assert outcome.failure is None, outcome.failure
        return read(run_dir / "record"), run_dir

    def output(self, program: str, body: str, args: str = "", **more: Any) -> str:
        outcome, run_dir = self.launch(program, body, args, **more)
        assert outcome.failure is None, outcome.failure
        return "".join(path.read_text() for path in run_dir.glob("tasks/*/stdout.log"))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, servers: tuple[ForkServer, ForkServer]) -> Runner:
    return Runner(tmp_path_factory.mktemp("runs"), {"original": servers[0], "migrated": servers[1]})


def save(path: Path, arrays: dict[str, Any]) -> str:
    np.savez(path, **arrays)
    return str(path)


def transplanted(folder: Path, recording: Recording) -> str:
    return save(
        folder / "initial.npz",
        {name.removeprefix("net/"): value for name, value in recording.initial.items()},
    )


def ulps(left: float, right: float) -> float:
    return abs(left - right) / float(np.spacing(np.float32(abs(left))))


def losses(recording: Recording) -> list[float]:
    return [step.loss for step in recording.steps]


def relative(original: dict[Any, Any], migrated: dict[Any, Any], rename: Callable[[Any], Any]) -> float:
    """The largest difference of two sets of arrays, relative to the largest element of each array."""
    assert {rename(name) for name in original} == set(migrated)
    differences = [
        np.abs(value - migrated[rename(name)]).max() / max(np.abs(value).max(), 1e-30)
        for name, value in original.items()
    ]
    return float(max(differences))


def short(name: Any) -> Any:
    if isinstance(name, tuple):
        return name[0].removeprefix("net/"), name[1]
    return name.removeprefix("net/")


def reported(results: dict[str, float] | None) -> dict[str, float]:
    """What the program itself reports of an evaluation: the recorder adds two means of the loss."""
    assert results is not None
    return {name: value for name, value in results.items() if name not in (LOSS_OF_BATCHES, LOSS_OF_EXAMPLES)}


def check_same_training(original: Recording, migrated: Recording) -> None:
    """Equal batches and rates, step 1 equal to an ulp, all else to float32 rounding."""
    assert [step.batch for step in original.steps] == [step.batch for step in migrated.steps]
    assert None not in [step.batch for step in original.steps]
    assert [step.learning_rate for step in original.steps] == [step.learning_rate for step in migrated.steps]
    assert ulps(original.steps[0].loss, migrated.steps[0].loss) <= 1
    np.testing.assert_allclose(losses(original), losses(migrated), rtol=2e-5)
    assert original.optimizer == migrated.optimizer
    assert set(original.states) == set(migrated.states) == {1, 2, 10, 12}
    assert set(original.gradients) == set(migrated.gradients) == {1, 2, 10}
    for number in original.states:
        assert relative(original.states[number], migrated.states[number], short) < 1e-4
        assert relative(original.slots[number], migrated.slots[number], short) < 1e-4
    for number in original.gradients:
        assert relative(original.gradients[number], migrated.gradients[number], short) < 1e-4
    assert list(map(short, original.activations)) == list(migrated.activations) == ["dense/kernel", "dense_1/kernel"]
    assert relative(original.activations, migrated.activations, short) < 1e-5
    shapes = [(short(one.name), one.shape, one.dtype, one.trainable) for one in original.variables]
    assert shapes == [(one.name, one.shape, one.dtype, one.trainable) for one in migrated.variables]


@pytest.mark.parametrize("optimizer", ["momentum", "adam", "adagrad"])
def test_local_original_against_local_keras(runner: Runner, optimizer: str) -> None:
    original, folder = runner.run("original", ORIGINAL, f"{optimizer} shards")
    initial = transplanted(folder, original)
    migrated, _ = runner.run("migrated", MIGRATED, optimizer, initial=initial, replay=str(folder / "record"))
    check_same_training(original, migrated)
    assert [one.shards for one in original.variables] == [2, 2, 2, 1]
    assert original.dropout_rates == migrated.dropout_rates == (0.25,)
    # Estimator counts a term for each part of a partitioned variable.
    assert (original.regularizers, migrated.regularizers) == (2, 1)
    assert migrated.regularization == pytest.approx(original.regularization, rel=1e-6)
    assert original.participation == migrated.participation == {"local:0": 12}
    assert original.evaluations[0].results == pytest.approx(reported(migrated.evaluations[0].results), rel=1e-5)
    assert original.evaluations[0].step == migrated.evaluations[0].step == 12


@pytest.mark.parametrize(
    ("old", "new", "rates", "inputs"),
    [
        ("", "", (0.25,), ((16,),)),
        ("Dropout(0.25)(net)", "Dropout(0.25)(net, training=False)", (), ()),
        ("Dropout(0.25)(net)", "Dropout(0.25)(net, True)", (0.25,), ((16,),)),
    ],
    ids=["plain", "switched off", "always on"],
)
def test_a_dropout_counts_where_it_is_at_work(
    runner: Runner, old: str, new: str, rates: tuple[float, ...], inputs: tuple[tuple[int, ...], ...]
) -> None:
    assert old in MIGRATED
    migrated, _ = runner.run("migrated", MIGRATED.replace(old, new), "momentum")
    assert (migrated.dropout_rates, migrated.dropout_inputs) == (rates, inputs)
    original, _ = runner.run("original", ORIGINAL, "momentum")
    assert (original.dropout_rates, original.dropout_inputs) == ((0.25,), ((16,),))


def test_initial_values_are_drawn_further_times(runner: Runner) -> None:
    plain, _ = runner.run("original", ORIGINAL, "momentum", steps=1)
    for program, body, prefix in (("original", ORIGINAL, "net/"), ("migrated", MIGRATED, "")):
        found, _ = runner.run(program, body, "momentum", steps=1, draw_initial=True)
        kernel, bias = found.drawn[f"{prefix}dense/kernel"], found.drawn[f"{prefix}dense/bias"]
        assert kernel.shape == (64, 5, 16) and not np.any(bias)  # the most draws, 5120 numbers
        # Glorot's rule: a variance of 2 / (5 + 16).
        assert float(np.std(kernel)) == pytest.approx((2 / 21) ** 0.5, rel=0.05)
        assert len(np.unique(kernel)) > 4900
        if program == "original":
            assert losses(found) == losses(plain)


def test_an_original_without_a_seed_begins_with_the_same_weights_each_time(runner: Runner) -> None:
    body = ORIGINAL.replace("RunConfig(tf_random_seed=4)", "RunConfig(tf_random_seed=None)")
    assert body != ORIGINAL
    first, second = (runner.run("original", body, "momentum", steps=1, generators=1)[0].initial for _ in range(2))
    assert first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)
    kernels = [value for value in first.values() if value.ndim == 2]
    assert len(kernels) == 2 and all(len(np.unique(value)) == value.size for value in kernels)
    other = runner.run("original", body, "momentum", steps=1)[0].initial
    assert not any(np.array_equal(first[name], other[name]) for name in first if first[name].ndim == 2)


def test_an_evaluation_without_a_checkpoint_is_of_weights_that_are_kept(runner: Runner) -> None:
    """An Estimator whose RunConfig keeps none evaluates weights that it draws for it, as one that was never trained."""
    body = ORIGINAL.partition("config =")[0] + (
        "config = tf.estimator.RunConfig(save_checkpoints_steps=None, save_checkpoints_secs=None)\n"
        "estimator = tf.estimator.Estimator(model_fn, os.environ['MODEL_DIR'], config)\n"
        "estimator.train(input_fn, steps=2)\n"
        "estimator.evaluate(eval_input_fn)\n"
    )
    found, folder = runner.run("original", body, "momentum", steps=2, evaluation_noise=True)
    (evaluation,) = found.evaluations
    kept = evaluation_weights(folder / "record")
    assert evaluation.step == 0 and list(kept) == [0]
    with np.load(kept[0]) as archive:
        assert set(found.initial) <= set(archive.files)
    assert evaluation.nudged  # the same weights, but for rounding
    assert all(one["loss"] == pytest.approx(evaluation.results["loss"], rel=1e-4) for one in evaluation.nudged)


@pytest.mark.parametrize("drawn", ["tf.random_normal([1], 1.0)", "lambda: tf.random_normal([1], 1.0)"])
def test_a_weight_that_is_drawn_by_hand_is_the_same_each_time(runner: Runner, drawn: str) -> None:
    body = ORIGINAL.replace("RunConfig(tf_random_seed=4)", "RunConfig(tf_random_seed=None)")
    loss = "    loss = tf.losses.mean"
    body = body.replace(loss, f"    net *= tf.Variable({drawn}, name='scale')\n{loss}")
    first, second = (runner.run("original", body, "momentum", steps=1, generators=1)[0].initial for _ in range(2))
    assert first["scale"] == second["scale"]
    assert runner.run("original", body, "momentum", steps=1)[0].initial["scale"] != first["scale"]


OWN_MASK = """
class Mask(tf.keras.layers.Layer):
    def call(self, x, training=None):
        if not training:
            return x
        keep = tf.cast(tf.random.uniform(tf.shape(x)) >= 0.25, x.dtype)
        return SCALED

def build():
"""


def test_a_mask_of_the_programs_own_drops_what_a_dropout_drops(runner: Runner) -> None:
    original, folder = runner.run("original", ORIGINAL, "momentum", steps=4)
    plan = {"initial": transplanted(folder, original), "replay": str(folder / "record"), "steps": 4}
    found = {}
    for scaled in ("x * keep / 0.75", "x * keep", "tf.nn.dropout(x, 0.25)"):
        own = MIGRATED.replace("\ndef build():\n", OWN_MASK.replace("SCALED", scaled))
        own = own.replace("tf.keras.layers.Dropout(0.25)(net)", "Mask()(net)")
        found[scaled], _ = runner.run("migrated", own, "momentum", **plan)
    right, unscaled, known = found.values()
    assert losses(right) == pytest.approx(losses(original), rel=1e-5)
    assert losses(known) == pytest.approx(losses(original), rel=1e-5)
    assert losses(unscaled) != pytest.approx(losses(original), rel=1e-3)
    # Dropouts of TensorFlow are known as such, a mask is a number that was drawn.
    assert (right.dropout_rates, right.draws) == ((), 1)
    assert known.dropout_rates == original.dropout_rates == (0.25,)
    assert original.draws == 0


def test_noise_is_the_same_in_both_programs(runner: Runner) -> None:
    dropped, layer = "net = tf.layers.dropout(net, 0.25, training=mode == tf.estimator.ModeKeys.TRAIN)", "Dropout(0.25)"
    assert dropped in ORIGINAL and layer in MIGRATED
    noisy = ORIGINAL.replace(dropped, "net = net + 0.3 * tf.random_normal(tf.shape(net))")
    original, folder = runner.run("original", noisy, "momentum", steps=4)
    plan = {"initial": transplanted(folder, original), "replay": str(folder / "record"), "steps": 4}
    migrated, _ = runner.run("migrated", MIGRATED.replace(layer, "GaussianNoise(0.3)"), "momentum", **plan)
    more, _ = runner.run("migrated", MIGRATED.replace(layer, "GaussianNoise(0.33)"), "momentum", **plan)
    assert losses(migrated) == pytest.approx(losses(original), rel=1e-5)
    assert losses(more) != pytest.approx(losses(original), rel=1e-4)
    assert original.draws == migrated.draws == 1


SAME = """
class Same(tf.nn.rnn_cell.RNNCell):
    state_size, output_size = 1, 16

    def call(self, inputs, state):
        return inputs, state

def of_cell(net, **options):
    cell = tf.nn.rnn_cell.DropoutWrapper(Same(), input_keep_prob=0.75, **options)
    return tf.nn.dynamic_rnn(cell, net[:, None], dtype=tf.float32)[0][:, 0]

def model_fn("""
OF_LAYER = "tf.layers.dropout(net, 0.25, training=mode == tf.estimator.ModeKeys.TRAIN)"
OF_STATES = "variational_recurrent=True, input_size=tf.TensorShape([16]), dtype=tf.float32"


@pytest.fixture(scope="module")
def of_layer(runner: Runner) -> tuple[Recording, str]:
    """An original with a dropout layer, and where its initial values are."""
    assert OF_LAYER in ORIGINAL and "\ndef model_fn(" in ORIGINAL
    original, folder = runner.run("original", ORIGINAL, "momentum", steps=4)
    return original, save(folder / "initial.npz", dict(original.initial))


@pytest.mark.parametrize("size", ["8", "8, drop_remainder=True"], ids=["any size", "fixed size"])
@pytest.mark.parametrize(
    ("form", "rates", "draws"),
    [
        ("tf.nn.dropout(net, 0.75)", (0.25,), 0),
        ("tf.nn.dropout(net, keep_prob=tf.constant(0.75))", (0.25,), 0),
        ("tf.nn.dropout(net, rate=tf.placeholder_with_default(0.25, []))", (), 0),
        ("tf.nn.dropout(net, rate=0.25, noise_shape=[tf.shape(net)[0], 16])", (0.25,), 0),
        ("tf.compat.v2.nn.dropout(net, 0.25)", (0.25,), 0),
        ("of_cell(net)", (0.25,), 0),
        (f"of_cell(net, {OF_STATES})", (), 1),
        ("net * tf.cast(tf.random_uniform(tf.shape(net)) >= 0.25, tf.float32) / 0.75", (), 1),
    ],
)
def test_every_form_of_dropout_drops_the_same(
    runner: Runner, of_layer: tuple[Recording, str], form: str, rates: tuple[float, ...], draws: int, size: str
) -> None:
    known, initial = of_layer
    body = ORIGINAL.replace("\ndef model_fn(", SAME).replace(OF_LAYER, form).replace(".batch(8)", f".batch({size})")
    original, _ = runner.run("original", body, "momentum", initial=initial, steps=4)
    assert losses(original) == pytest.approx(losses(known), rel=1e-5)
    assert (original.dropout_rates, original.draws) == (rates, draws)
    assert original.dropout_inputs == (() if draws else ((16,),))
    assert known.dropout_after == (2,) and original.dropout_after == (() if draws else (2,))
    assert original.dropout_loops == ((1,) if "of_cell(net)" in form else (0,))


OF_KERAS_CELL = """
class Same(tf.keras.layers.Layer):
    state_size = output_size = 16

    def call(self, inputs, states):
        return inputs, states

class Mask(tf.keras.layers.Layer):
    def call(self, x, training=None):
        return FORM if training else x

def build():
"""


@pytest.mark.parametrize(
    ("form", "rates", "draws"),
    [
        ("tf.keras.layers.RNN(tf.nn.RNNCellDropoutWrapper(Same(), input_keep_prob=0.75))(net[:, None])", (0.25,), 0),
        ("tf.compat.v1.nn.dropout(x, keep_prob=0.75)", (0.25,), 0),
        ("tf.nn.experimental.stateless_dropout(x, 1 - tf.constant(0.75), seed=[1, 2])", (0.25,), 0),
        ("x * tf.cast(tf.random.uniform(tf.shape(x)) >= 0.25, x.dtype) / 0.75", (), 1),
    ],
)
def test_every_form_of_dropout_drops_the_same_in_keras(
    runner: Runner, form: str, rates: tuple[float, ...], draws: int
) -> None:
    """In batches of a fixed size, whose random numbers have sizes that are known while the step is traced."""
    original, folder = runner.run("original", ORIGINAL, "momentum", steps=4)
    body = MIGRATED.replace("\ndef build():\n", OF_KERAS_CELL.replace("FORM", form if "x" in form[:30] else "x"))
    body = body.replace("tf.keras.layers.Dropout(0.25)(net)", form if "(net" in form else "Mask()(net)")
    body = body.replace(".batch(8)", ".batch(8, drop_remainder=True)")
    initial = transplanted(folder, original)
    migrated, _ = runner.run("migrated", body, "momentum", initial=initial, replay=str(folder / "record"), steps=4)
    assert losses(migrated) == pytest.approx(losses(original), rel=1e-5)
    assert (migrated.dropout_rates, migrated.draws) == (rates, draws)


def test_the_recorder_changes_no_bit(runner: Runner) -> None:
    for program, body in (("original", ORIGINAL), ("migrated", MIGRATED)):
        plain = runner.output(program, body, "momentum", recorded=False)
        recorded = runner.output(program, body, "momentum", pin_dropout=False)
        pinned = runner.output(program, body, "momentum")
        digests = [re.findall("WEIGHTS (.*)", output) for output in (plain, recorded, pinned)]
        assert len(digests[0]) == 1
        assert digests[0] == digests[1]
        assert digests[0] != digests[2]


def test_original_on_its_own_batches_repeats_itself(runner: Runner) -> None:
    first, folder = runner.run("original", ORIGINAL, "momentum")
    again, _ = runner.run(
        "original",
        ORIGINAL,
        "momentum",
        initial=str(folder / "record" / "local-0" / "initial.npz"),
        replay=str(folder / "record"),
    )
    assert losses(first) == losses(again)
    assert first.batches == again.batches
    for name, value in first.states[12].items():
        np.testing.assert_array_equal(value, again.states[12][name])


def test_batches_hold_what_the_program_fed(runner: Runner) -> None:
    original, folder = runner.run("original", ORIGINAL, "momentum", steps=1)
    batch = read_batch(folder / "record", original.batches[0])
    rows = np.random.RandomState(0).normal(size=(128, 5)).astype(np.float32)
    assert set(batch) == {"features/x", "labels"}
    assert batch["features/x"].shape == (8, 5)
    for row, label in zip(batch["features/x"], batch["labels"], strict=True):
        assert any((row == one).all() for one in rows)
        np.testing.assert_allclose(label, [0.5 * row.sum()], rtol=1e-5)


def test_one_ulp_in_every_initial_value(runner: Runner) -> None:
    plain, folder = runner.run("original", ORIGINAL, "momentum shards", steps=2)
    initial = transplanted(folder, plain)
    whole = str(folder / "record" / "local-0" / "initial.npz")
    for program, body, start in (("original", ORIGINAL, whole), ("migrated", MIGRATED, initial)):
        first, _ = runner.run(program, body, "momentum shards", steps=2, initial=start, ulp_seed=1)
        second, _ = runner.run(program, body, "momentum shards", steps=2, initial=start, ulp_seed=2)
        moves = []
        for name, value in plain.initial.items():
            name = name if program == "original" else short(name)
            moved = first.initial[name]
            up, down = np.nextafter(value, np.float32(np.inf)), np.nextafter(value, np.float32(-np.inf))
            # A biased zero becomes the smallest denormal, which TensorFlow may flush back to zero.
            assert np.all((moved == up) | (moved == down) | ((value == 0) & (moved == 0)))
            moves.append((moved == up)[value != 0])
            if np.any(value != 0):
                assert np.any(moved != second.initial[name])
        share = np.concatenate(moves).mean()
        assert 0.3 < share < 0.7


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_learning_rate_factor(runner: Runner, optimizer: str) -> None:
    for program, body in (("original", ORIGINAL), ("migrated", MIGRATED)):
        plain, folder = runner.run(program, body, optimizer, steps=3)
        scaled, _ = runner.run(
            program,
            body,
            optimizer,
            steps=3,
            learning_rate_factor=1.5,
            initial=str(folder / "record" / "local-0" / "initial.npz"),
            replay=str(folder / "record"),
        )
        for before, after in zip(plain.steps, scaled.steps, strict=True):
            assert after.learning_rate == pytest.approx(1.5 * float(before.learning_rate or 0), rel=1e-6)
        assert losses(plain)[0] == losses(scaled)[0]
        name = next(one.name for one in plain.variables if one.name.endswith("dense/kernel"))
        moved = plain.states[1][name] - plain.initial[name]
        moved_more = scaled.states[1][name] - scaled.initial[name]
        np.testing.assert_allclose(moved_more, 1.5 * moved, rtol=1e-2, atol=1e-7)


def test_a_regulariser_that_does_not_reach_the_loss_does_not_count(runner: Runner) -> None:
    original, _ = runner.run("original", ORIGINAL, "momentum unregularized", steps=1)
    assert (original.regularizers, original.regularization) == (0, None)


def test_steps_end_training(runner: Runner) -> None:
    for program, body in (("original", ORIGINAL), ("migrated", MIGRATED)):
        recording, _ = runner.run(program, body, "adam", steps=4)
        assert [step.number for step in recording.steps] == [1, 2, 3, 4]
        assert max(recording.states) == 4


def test_replay_shorter_than_the_program_ends_training(runner: Runner) -> None:
    original, folder = runner.run("original", ORIGINAL, "momentum", steps=8)
    initial = transplanted(folder, original)
    migrated, _ = runner.run("migrated", MIGRATED, "momentum", initial=initial, replay=str(folder / "record"))
    assert [step.batch for step in migrated.steps] == [step.batch for step in original.steps]
    assert max(migrated.states) == 8
    assert migrated.evaluations[-1].step == 8


def test_several_training_calls_with_partial_batches(runner: Runner) -> None:
    original, folder = runner.run("original", EPOCHS_ORIGINAL)
    assert [batch.size for batch in original.batches] == [8, 8, 4] * 3
    again, _ = runner.run(
        "original",
        EPOCHS_ORIGINAL,
        replay=str(folder / "record"),
        initial=str(folder / "record" / "local-0" / "initial.npz"),
    )
    assert again.evaluations == original.evaluations
    migrated, _ = runner.run(
        "migrated", EPOCHS_MIGRATED, replay=str(folder / "record"), initial=transplanted(folder, original)
    )
    assert [step.batch for step in migrated.steps] == [step.batch for step in original.steps]
    np.testing.assert_allclose(losses(original), losses(migrated), rtol=1e-5)
    assert [one.step for one in migrated.evaluations] == [3, 6, 9]
    # Plain gradient descent has no state, whatever Keras allocates for it.
    assert original.slots[2] == migrated.slots[2] == {}


def test_replay_of_other_data_is_refused(runner: Runner) -> None:
    _, folder = runner.run("original", EPOCHS_ORIGINAL, steps=2)
    outcome, _ = runner.launch("migrated", MIGRATED, "momentum", replay=str(folder / "record"))
    assert outcome.failure is None  # one features tensor in the place of another, whatever its name
    other = EPOCHS_ORIGINAL.replace("X[:20]", "X[:20, :3]")
    _, folder = runner.run("original", other, steps=2)
    outcome, _ = runner.launch("migrated", EPOCHS_MIGRATED, replay=str(folder / "record"))
    assert outcome.failure is not None
    assert "cannot replay: component features has shape" in "\n".join(outcome.failure.tail)


def test_replay_needs_the_batches_of_every_trainer(runner: Runner) -> None:
    _, folder = runner.run("original", EPOCHS_ORIGINAL, steps=2)
    outcome, _ = runner.launch(
        "migrated",
        MIGRATED,
        "momentum",
        shape="worker=2",
        trainers="worker:0 worker:1",
        replay=str(folder / "record"),
    )
    assert outcome.failure is not None
    assert "1 tasks were recorded and 2 train here" in "\n".join(outcome.failure.tail)


def test_initial_values_of_the_wrong_shape_are_refused(runner: Runner) -> None:
    _, folder = runner.run("original", EPOCHS_ORIGINAL, steps=1)
    path = folder / "wrong.npz"
    np.savez(path, **{"dense/kernel": np.zeros((1, 5), np.float32), "dense/bias": np.zeros(1, np.float32)})
    for program, body in (("original", EPOCHS_ORIGINAL), ("migrated", EPOCHS_MIGRATED)):
        outcome, run_dir = runner.launch(program, body, initial=str(path))
        assert outcome.failure is not None
        assert "the initial value of 'dense/kernel' has shape (1, 5)" in "\n".join(outcome.failure.tail)
        with pytest.raises(RecordingError):
            read(run_dir / "record")


def test_nothing_is_written_where_the_script_wanted_it(runner: Runner) -> None:
    for program, body in (("original", ORIGINAL), ("migrated", MIGRATED)):
        _, folder = runner.run(program, body, "momentum")
        assert not (folder / "written-by-the-script").exists()
        assert list((folder / "model").rglob("*ckpt*"))


def test_parameter_server_with_one_worker(runner: Runner) -> None:
    original, folder = runner.run("original", ORIGINAL, "adam shards", shape="chief=1,ps=2", trainers="chief:0")
    migrated, migrated_folder = runner.run(
        "migrated",
        MIGRATED,
        "adam shards creator",
        shape="chief=1,worker=1,ps=2",
        trainers="worker:0",
        initial=transplanted(folder, original),
        replay=str(folder / "record"),
    )
    check_same_training(original, migrated)
    assert [one.shards for one in original.variables] == [one.shards for one in migrated.variables] == [2, 2, 2, 1]
    assert original.dropout_rates == migrated.dropout_rates == (0.25,)
    assert original.dropout_inputs == migrated.dropout_inputs == ((16,),)
    assert original.participation == {"chief:0": 12}
    # The worker process itself wrote its steps; the chief only coordinates.
    assert migrated.participation == {"worker:0": 12}
    assert not (migrated_folder / "record" / "chief-0" / "steps").read_bytes()


def test_every_asynchronous_trainer_takes_part(runner: Runner) -> None:
    trainers = "chief:0 worker:0 worker:1"
    original, _ = runner.run("original", ORIGINAL, "adam", shape="chief=1,worker=2,ps=1,evaluator=1", trainers=trainers)
    assert set(original.participation) == set(trainers.split())
    assert 12 <= sum(original.participation.values()) <= 14
    assert (original.evaluations[-1].step or 0) >= 12


def test_free_workers_and_the_evaluator_of_a_migrated_program(runner: Runner) -> None:
    trainers = "worker:0 worker:1"
    migrated, folder = runner.run(
        "migrated",
        EVALUATOR,
        "adam creator",
        shape="chief=1,worker=2,ps=1,evaluator=1",
        trainers=trainers,
        state_steps=[],
        evaluation_control=True,
    )
    assert set(migrated.participation) <= set(trainers.split())
    assert sum(migrated.participation.values()) == 60
    assert set(migrated.states) == {60}
    # The evaluator has no end of its own: it stops after the last checkpoint, once training is over.
    assert migrated.evaluations[-1].step == 60
    # The evaluator does not train: the weights that training began with are those of another task.
    assert migrated.evaluations[0].control is not None
    assert {(one.task, str(one.control)) for one in migrated.evaluations} == {
        ("evaluator:0", str(migrated.evaluations[0].control))
    }
    assert not (folder / "written-by-the-script").exists()


def test_embeddings_schedules_strings_and_batch_normalization(runner: Runner) -> None:
    original, folder = runner.run("original", FEATURES_ORIGINAL)
    path = folder / "initial.npz"
    rename = {"table": "table/embeddings"}
    np.savez(path, **{rename.get(name, name): value for name, value in original.initial.items()})
    migrated, _ = runner.run("migrated", FEATURES_MIGRATED, initial=str(path), replay=str(folder / "record"))
    assert [one.name for one in migrated.variables] == [rename.get(one.name, one.name) for one in original.variables]
    assert [step.batch for step in original.steps] == [step.batch for step in migrated.steps]
    words = read_batch(folder / "record", original.batches[0])["features/word"]
    assert words.tolist() == [b"ab", b"c"] * 4
    rates = [0.05 * 0.7 ** (number / 3) for number in range(12)]
    np.testing.assert_allclose([step.learning_rate for step in original.steps], rates, rtol=1e-6)
    assert [step.learning_rate for step in original.steps] == [step.learning_rate for step in migrated.steps]
    assert losses(original)[0] == losses(migrated)[0]
    np.testing.assert_allclose(losses(original), losses(migrated), rtol=1e-5)
    assert original.update_ops == migrated.update_ops == 2
    # Rows that the batch does not look up have no gradient.
    gradient = original.gradients[1]["table"]
    looked_up = read_batch(folder / "record", original.batches[0])["features/ids"]
    assert set(np.flatnonzero(np.abs(gradient).sum(1))) == set(looked_up.reshape(-1).tolist())
    assert relative(original.gradients[1], migrated.gradients[1], lambda name: rename.get(name, name)) < 1e-5


MOVING = """
import os, time
import numpy as np
import tensorflow as tf

def batches():
    for number in range(6):
        yield {"x": np.full((4, 3), number, np.float32)}, np.ones((4, 1), np.float32)
    time.sleep(0.5)  # what waits for no data is done by then

def input_fn():
    shapes = ({"x": (4, 3)}, (4, 1))
    return tf.data.Dataset.from_generator(batches, ({"x": tf.float32}, tf.float32), shapes)

def model_fn(features, labels, mode):
    drift = tf.get_variable("drift", [2], initializer=tf.zeros_initializer(), trainable=False)
    mean = tf.get_variable("mean", [3], initializer=tf.zeros_initializer(), trainable=False)
    net = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer())
    loss = tf.losses.mean_squared_error(labels, net)
    moved = [drift.assign(0.5 * drift + 1.0), mean.assign(0.5 * mean + tf.reduce_mean(features["x"], 0))]
    with tf.control_dependencies([loss]):
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(train_op, *moved))

tf.estimator.Estimator(model_fn, os.environ["MODEL_DIR"]).train(input_fn)
"""


def test_what_moves_whatever_the_data_are_is_as_the_last_step_has_left_it(runner: Runner) -> None:
    """The call that ends an Estimator's training finds no data, and moves once more what needs none."""
    recording, _ = runner.run("original", MOVING)
    assert [step.number for step in recording.steps] == list(range(1, 7))
    last = recording.states[6]
    np.testing.assert_allclose(last["drift"], 2.0 * (1.0 - 0.5**6), rtol=1e-6)  # 2 (1 - 2^-7) a step later
    mean = 0.0
    for number in range(6):
        mean = 0.5 * mean + number
    np.testing.assert_allclose(last["mean"], mean, rtol=1e-6)


@pytest.mark.parametrize("form", ["creator", "distributed", "global"])
def test_two_mirrored_workers(runner: Runner, form: str) -> None:
    shape, trainers = "chief=1,worker=1", "chief:0 worker:0"
    original, folder = runner.run("original", MIRRORED, shape=shape, trainers=trainers)
    migrated, _ = runner.run(
        "migrated",
        MIGRATED,
        f"momentum {form}",
        shape=shape,
        trainers=trainers,
        initial=transplanted(folder, original),
        replay=str(folder / "record"),
    )
    check_same_training(original, migrated)
    assert original.replicas == migrated.replicas == 2
    assert (migrated.dropout_rates, migrated.dropout_inputs) == ((0.25,), ((16,),))
    assert original.participation == migrated.participation == {"chief:0": 12, "worker:0": 12}
    first = [step for step in original.steps if step.number == 1]
    assert first[0].batch != first[1].batch
    # The mean over replicas is what a gradient step sees: the recorded sum is not halved twice.
    name = "dense_1/bias"
    step = original.initial[name] - original.states[1][name]
    np.testing.assert_allclose(step, 0.05 * original.gradients[1][name], rtol=1e-4, atol=1e-8)


def line_of(body: str, text: str) -> int:
    """The number of the only line with a text, at its first occurrence."""
    return next(number for number, line in enumerate(body.splitlines(), start=1) if text in line)


def batch_norm(value: Any, epsilon: float = 1e-3) -> Any:
    axes = tuple(range(value.ndim - 1))
    return (value - value.mean(axes)) / np.sqrt(value.var(axes) + epsilon)


def check_activations(recording: Recording, folder: Path) -> None:
    """Each layer's output computed again from the batch and the initial weights."""
    x = np.clip(read_batch(folder / "record", recording.batches[0])["features/x"], -2, 2)
    weights = recording.initial
    hidden = np.maximum(x @ weights["dense/kernel"] + weights["dense/bias"], 0)
    normal = batch_norm(hidden)
    again = batch_norm(normal.reshape(-1, 4, 4, 1))
    kept = np.mod(0.98 + 0.6180339887498949 * np.arange(16), 1.0) >= 0.25  # what a dropout drops, see even.py
    dropped = again.reshape(-1, 16) * kept / 0.75
    expected = {
        "dense/kernel": hidden,
        "batch_normalization/gamma": normal,
        "batch_normalization_1/gamma": again,
        "dense_1/kernel": dropped @ weights["dense_1/kernel"] + weights["dense_1/bias"],
    }
    assert list(recording.activations) == list(expected)
    for name, value in expected.items():
        assert recording.activations[name].dtype == np.float32
        np.testing.assert_allclose(recording.activations[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("custom", ["", "custom"], ids=["compiled", "own train step"])
def test_layers_of_both_programs(runner: Runner, custom: str) -> None:
    original, original_folder = runner.run("original", LAYERS_ORIGINAL, "global")
    migrated, migrated_folder = runner.run(
        "migrated",
        LAYERS_MIGRATED,
        f"global {custom}",
        initial=transplanted(original_folder, original),
        replay=str(original_folder / "record"),
    )
    check_activations(original, original_folder)
    check_activations(migrated, migrated_folder)
    np.testing.assert_allclose(losses(original), losses(migrated), rtol=1e-5)
    # One rank-2 layer, one that TensorFlow computes fused.
    assert original.update_ops == migrated.update_ops == 4
    # The input is clipped as well, which is no clipping of gradients.
    assert original.optimizer == migrated.optimizer
    assert migrated.optimizer is not None
    assert migrated.optimizer.settings["global_clipnorm"] == 0.5
    assert migrated.optimizer.settings["clipvalue"] is None
    assert original.dropout_rates == migrated.dropout_rates == (0.25,)
    assert original.dropout_after == migrated.dropout_after == (6,)
    assert original.steps[0].time < original.steps[-1].time
    assert original.mutation is migrated.mutation is None

    lines = {what: source.line for what, source in original.sources.items()}
    assert {Path(source.path) for source in original.sources.values()} == {original_folder / "program.py"}
    assert lines == {
        "train": line_of(LAYERS_ORIGINAL, "max_steps=4"),
        "input": line_of(LAYERS_ORIGINAL, "def input_fn"),
        "optimizer": line_of(LAYERS_ORIGINAL, "GradientDescentOptimizer"),
        "loss": line_of(LAYERS_ORIGINAL, "mean_squared_error"),
        "variable:dense/kernel": line_of(LAYERS_ORIGINAL, "tf.nn.relu"),
        "variable:dense/bias": line_of(LAYERS_ORIGINAL, "tf.nn.relu"),
        "variable:dense_1/kernel": line_of(LAYERS_ORIGINAL, "dense(net, 1)"),
        "variable:dense_1/bias": line_of(LAYERS_ORIGINAL, "dense(net, 1)"),
    } | {
        f"variable:{layer}/{name}": line_of(LAYERS_ORIGINAL, text)
        for layer, text in (("batch_normalization", "(net, training"), ("batch_normalization_1", "image ="))
        for name in ("gamma", "beta", "moving_mean", "moving_variance")
    }
    lines = {what: source.line for what, source in migrated.sources.items()}
    assert {Path(source.path) for source in migrated.sources.values()} == {migrated_folder / "program.py"}
    assert lines["optimizer"] == line_of(LAYERS_MIGRATED, "SGD(")
    assert lines["loss"] == line_of(LAYERS_MIGRATED, "model.compile")
    assert lines["train"] == line_of(LAYERS_MIGRATED, "model.fit")
    assert lines["input"] == line_of(LAYERS_MIGRATED, "data = tf.data")
    assert lines["variable:dense/bias"] == line_of(LAYERS_MIGRATED, "tf.nn.relu")
    assert lines["variable:batch_normalization_1/moving_mean"] == line_of(LAYERS_MIGRATED, "image =")
    assert {f"variable:{one.name}" for one in migrated.variables} < set(lines)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", {}),
        ("norm", {"clipnorm": 0.25}),
        ("value", {"clipvalue": float(np.float32(0.1))}),
        ("asymmetric", {"clipvalue": "[-0.1, 0.2]"}),
        ("several", {"clipnorm": "0.5, 0.75"}),
        ("computed", {"global_clipnorm": "computed"}),
    ],
)
def test_clipping_is_a_setting(runner: Runner, kind: str, expected: dict[str, Any]) -> None:
    found = [runner.run("original", LAYERS_ORIGINAL, kind, steps=1)[0]]
    if kind in ("none", "norm", "value"):
        found.append(runner.run("migrated", LAYERS_MIGRATED, kind, steps=1)[0])
    if kind in ("none", "asymmetric"):
        found.append(runner.run("migrated", LAYERS_MIGRATED, f"{kind} custom", steps=1)[0])
    for recording in found:
        assert recording.optimizer is not None
        settings = recording.optimizer.settings
        assert {key: value for key, value in settings.items() if "clip" in key and value is not None} == expected


def test_batch_normalization_that_is_not_trained_updates_nothing(runner: Runner) -> None:
    for program, body, old, new in (
        (
            "original",
            LAYERS_ORIGINAL,
            "control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS))",
            "name_scope('a')",
        ),
        (
            "migrated",
            LAYERS_MIGRATED,
            "BatchNormalization(momentum=0.99)(net)",
            "BatchNormalization()(net, training=False)",
        ),
    ):
        assert old in body
        recording, _ = runner.run(program, body.replace(old, new), "none", steps=1)
        assert recording.update_ops == (0 if program == "original" else 2)


def test_weights_outside_layers_tell_the_place_of_a_dropout_too(runner: Runner) -> None:
    body = LAYERS_ORIGINAL.replace(
        "net = tf.layers.dense(net, 1)", "net = tf.matmul(net, tf.get_variable('w', [16, 1]))"
    )
    original, _ = runner.run("original", body, "none", steps=1)
    assert original.dropout_after == (6,)
    assert "w" not in original.activations
    assert original.sources["variable:w"].line == line_of(body, "get_variable")


def test_evaluations_with_the_weights_of_the_original(runner: Runner) -> None:
    # Without a seed the trainings of two starts now and then end at losses that are nearly the same.
    seeded = "Estimator(model_fn, config=tf.estimator.RunConfig(tf_random_seed=5))"
    body = LAYERS_ORIGINAL.replace("Estimator(model_fn)", seeded)
    original, folder = runner.run("original", body, "global", evaluation_noise=True)
    record = folder / "record"
    weights = evaluation_weights(record)
    assert list(weights) == [4, 8]
    given = {step: dict(np.load(path)) for step, path in weights.items()}
    for name, value in original.states[8].items():
        np.testing.assert_array_equal(given[8][name], value)
    assert given[4]["global_step"] == 4
    assert [(one.step, sorted(one.results)) for one in original.evaluations] == [
        (4, ["loss", "mae"]),
        (8, ["loss", "mae"]),
    ]
    assert [one.same_weights for one in original.evaluations] == [None, None]
    # One ulp of every weight moves the metrics by some rounding and not more.
    for evaluation in original.evaluations:
        assert len(evaluation.nudged) == 2
        for moved in evaluation.nudged:
            assert moved == pytest.approx(evaluation.results, rel=1e-5)
        assert any(moved != evaluation.results for moved in evaluation.nudged)

    another = Path(transplanted(folder, original))
    with np.load(another) as archive:
        # Another start, so that own weights, given weights and initial weights are three different things.
        # Reversed alone they are nearly as good: hidden units that change places are the same network.
        values = {name: 2 * np.flip(archive[name]) for name in archive.files}
    np.savez(another, **values)
    plan = {
        "initial": str(another),
        "evaluate_weights": [{"step": step, "path": str(path)} for step, path in weights.items()],
        "evaluation_control": True,
    }
    migrated, migrated_folder = runner.run("migrated", LAYERS_MIGRATED, "global", **plan)
    plain, plain_folder = runner.run("migrated", LAYERS_MIGRATED, "global", initial=plan["initial"], replay=None)
    assert [one.step for one in migrated.evaluations] == [4, 8, 8]
    assert [one.weights_step for one in migrated.evaluations] == [4, 8, 8]
    for evaluation in migrated.evaluations:
        source = original.evaluations[0 if evaluation.step == 4 else 1]
        assert reported(evaluation.same_weights) == pytest.approx(source.results, rel=1e-5)
        assert evaluation.control == migrated.evaluations[0].control
        assert evaluation.results["loss"] != pytest.approx(source.results["loss"], rel=1e-3)
    # Apart from the additional results nothing has changed, neither weights nor metrics nor history.
    assert [one.results for one in migrated.evaluations] == [one.results for one in plain.evaluations]
    assert [one.same_weights for one in plain.evaluations] == [None] * 3
    outputs = [(folder / "tasks" / "local-0" / "stdout.log").read_text() for folder in (migrated_folder, plain_folder)]
    assert "WEIGHTS" in outputs[0]
    assert outputs[0] == outputs[1]

    # The control really is the initial weights.
    start, _ = runner.run(
        "migrated",
        LAYERS_MIGRATED,
        "global",
        initial=plan["initial"],
        evaluate_weights=[{"step": 1, "path": str(migrated_folder / "record" / "local-0" / "initial.npz")}],
    )
    assert start.evaluations[0].same_weights == migrated.evaluations[0].control


@pytest.mark.parametrize(
    ("shape", "trainers", "options"),
    [("chief=1,worker=1", "chief:0 worker:0", ""), ("chief=1,worker=1,ps=2", "worker:0", "shards creator")],
    ids=["mirrored", "parameter servers"],
)
def test_evaluations_of_a_cluster(runner: Runner, shape: str, trainers: str, options: str) -> None:
    evaluating = """
for _ in range(2):
    model.evaluate(tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(32), verbose=0, steps=4)
if not jobs:
"""
    body = MIGRATED.replace("\nif not jobs:\n", evaluating)
    assert body != MIGRATED
    random = np.random.RandomState(0)
    x = random.normal(size=(128, 5)).astype(np.float32)
    weights = {
        "dense/kernel": random.normal(size=(5, 16)).astype(np.float32),
        "dense/bias": random.normal(size=16).astype(np.float32),
        "dense_1/kernel": random.normal(size=(16, 1)).astype(np.float32),
        "dense_1/bias": np.zeros(1, np.float32),
    }
    output = np.maximum(x @ weights["dense/kernel"] + weights["dense/bias"], 0) @ weights["dense_1/kernel"]
    error = output - 0.5 * x.sum(1, keepdims=True)
    expected = {"loss": (error**2).mean() + 0.01 * (weights["dense/kernel"] ** 2).sum(), "mae": np.abs(error).mean()}
    recording, _ = runner.run(
        "migrated",
        body,
        f"momentum {options}",
        shape=shape,
        trainers=trainers,
        evaluate_weights=[
            {"step": step, "path": save(runner.folder / f"{step}.npz", arrays)}
            for step, arrays in ((11, weights), (2, {name: 0 * value for name, value in weights.items()}))
        ],
        evaluation_control=True,
    )
    chief = [one for one in recording.evaluations if one.task == "chief:0"]
    assert len(chief) == 2
    for one in chief:
        assert reported(one.same_weights) == pytest.approx(expected, rel=1e-5)
        assert (one.step, one.weights_step) == (12, 11)
        assert one.control == chief[0].control
        # The second evaluation finds the weights again that training ended with.
        assert one.results == pytest.approx(chief[0].results, rel=1e-6)
        # The control has the initial weights. Which of both is better is open: a dropout drops the same in all steps.
        assert abs(one.results["loss"] - chief[0].control["loss"]) > 0.01


def test_data_that_can_be_read_once_is_evaluated_once(runner: Runner) -> None:
    _, folder = runner.run("original", LAYERS_ORIGINAL, "none")
    given = [{"step": 4, "path": str(evaluation_weights(folder / "record")[4])}]
    migrated, _ = runner.run(
        "migrated", LAYERS_MIGRATED, "none iterator", evaluate_weights=given, evaluation_control=True
    )
    once = migrated.evaluations[-1]
    assert (once.same_weights, once.control) == (None, None)
    assert "only once" in once.note
    assert migrated.evaluations[0].same_weights is not None


def test_weights_of_another_model_are_not_evaluated(runner: Runner) -> None:
    _, folder = runner.run("original", EPOCHS_ORIGINAL, steps=3)
    given = [{"step": 3, "path": str(evaluation_weights(folder / "record")[3])}]
    migrated, _ = runner.run("migrated", LAYERS_MIGRATED, "none", evaluate_weights=given)
    assert [one.same_weights for one in migrated.evaluations] == [None] * 3
    assert "'dense/kernel' has shape" in migrated.evaluations[0].note


def test_no_evaluation_is_recorded_where_the_plan_wants_none(runner: Runner) -> None:
    given = [{"step": 4, "path": "absent.npz"}]
    for program, body in (("original", LAYERS_ORIGINAL), ("migrated", LAYERS_MIGRATED)):
        recording, folder = runner.run(program, body, "none", evaluate=False, evaluate_weights=given)
        assert recording.evaluations == ()
        assert evaluation_weights(folder / "record") == {}


def test_an_empty_program_description_is_not_written_by_servers(runner: Runner) -> None:
    _, folder = runner.run("original", ORIGINAL, "adam", shape="chief=1,ps=1", trainers="chief:0", steps=2)
    task = json.loads((folder / "record" / "ps-0" / "task.json").read_text())
    assert task["task"] == "ps:0"
    assert not (folder / "record" / "ps-0" / "program.json").exists()
