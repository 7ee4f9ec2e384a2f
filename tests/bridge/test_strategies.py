"""Bridged programs on replicas, on several workers and on parameter servers: the numbers of TensorFlow 1."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ephemeral_port_reserve import LOCALHOST, reserve

from migrator.harness.environments import migrated_python
from tests.bridge.sides import FOOT, HEAD, LIBRARY, NEW, OLD, TENSORFLOW1, run_both
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

MODULES = ("specs", "config", "estimator", "training", "unseen")
COMMON = """
x = np.random.RandomState(0).normal(size=(96, 4)).astype(np.float32)
y = (x[:, :1] > 0).astype(np.float32)
once = lambda: tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
session = tf.ConfigProto(device_count={"CPU": 2})
if not tf.__version__.startswith("1."):
    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    if "TF_CONFIG" not in os.environ:
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)


def kernel(*shape):
    return tf.constant_initializer(np.sin(np.arange(np.prod(shape))).reshape(shape).astype(np.float32))


def model_fn(features, labels, mode, params):
    training = mode == "train"
    hidden = tf.layers.dense(features, 5, activation=tf.nn.relu, kernel_initializer=kernel(4, 5))
    hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.8)
    updates = []
    if params["keras"]:
        layer = tf.keras.layers.BatchNormalization(momentum=0.8, name="own")
        hidden = layer(hidden, training=training)
        updates = layer.updates
    out = tf.layers.dense(hidden, 1, kernel_initializer=kernel(5, 1))
    loss = tf.losses.mean_squared_error(labels, out)
    if mode == "eval":
        metrics = {"mean": tf.metrics.mean(out), "auc": tf.metrics.auc(labels, tf.nn.sigmoid(out))}
        return est.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    step = tf.train.get_or_create_global_step()
    optimizer = params["optimizer"](tf.train.exponential_decay(0.1, step, 3, 0.9))
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    with tf.control_dependencies(updates + tf.get_collection("update_ops")):
        train_op = optimizer.apply_gradients(zip(gradients, variables), step)
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.found = []

    def before_run(self, context):
        return tf.train.SessionRunArgs(tf.get_collection("losses")[-1])

    def after_run(self, context, values):
        self.found.append(values.results)


def run(name, input_fn, strategy, eval_strategy=None, optimizer=lambda rate: tf.train.MomentumOptimizer(rate, 0.9)):
    folder = os.path.join(FOLDER, sys.argv[1] + name.replace(" ", "_"))
    config = est.RunConfig(train_distribute=strategy, eval_distribute=eval_strategy, session_config=session)
    estimator = est.Estimator(model_fn, folder, config, {"optimizer": optimizer, "keras": name != "central storage"})
    hook = Losses()
    if "TF_CONFIG" in os.environ:
        est.train_and_evaluate(estimator, est.TrainSpec(input_fn, max_steps=12, hooks=[hook]), est.EvalSpec(once))
    else:
        estimator.train(input_fn, hooks=[hook], steps=12)
    found[name] = [hook.found]
    if config.is_chief:
        found[name].append({one: estimator.get_variable_value(one) for one in estimator.get_variable_names()})
    if "TF_CONFIG" not in os.environ:
        found[name].append(estimator.evaluate(once))
"""
REPLICAS = """
mirrored = lambda: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
central = lambda: tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")
data = lambda: once().repeat()
run("one device", data, None)
run("mirrored", data, mirrored(), mirrored())
run("mirrored adagrad", data, mirrored(), optimizer=tf.train.AdagradOptimizer)
run("central storage", data, central())
"""
WORKERS = """
def sharded(input_context):
    assert input_context.num_replicas_in_sync == 2
    return once().shard(input_context.num_input_pipelines, input_context.input_pipeline_id).repeat()

from tensorflow.python.eager import context
started = []
start = context.context().enable_collective_ops
context.context().enable_collective_ops = lambda definition: (started.append(definition), start(definition))
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
run("workers", sharded, strategy)

def line(features, labels, mode):
    out = tf.layers.dense(features, 1, kernel_initializer=kernel(4, 1))
    loss = tf.losses.mean_squared_error(labels, out)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, step) if mode == "train" else None
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

def uneven(input_context):
    return once().repeat(5).skip(input_context.input_pipeline_id).take(33 + 8 * input_context.input_pipeline_id)

taken, call = [], est.SeveralSteps.__call__
def counted(self, count, first):
    done, loss, moves_by_one = call(self, count, first)
    taken.append(done)
    return done, loss, moves_by_one
est.SeveralSteps.__call__ = counted
est.UnseenSteps.slowest = est.UnseenSteps.longest = 1e9  # whatever this machine is doing
for name, data, most in [("ends", uneven, None), ("one by one", uneven, None), ("stops", sharded, 30)]:
    est.UnseenSteps.steps_before = 10**9 if name == "one by one" else 3
    # Only the chief looks at summaries.
    every = 7 if "worker0" in FOLDER else 0
    config = est.RunConfig(train_distribute=strategy, log_step_count_steps=20, save_summary_steps=every)
    estimator = est.Estimator(line, os.path.join(FOLDER, name), config)
    est.train_and_evaluate(estimator, est.TrainSpec(data, max_steps=most), est.EvalSpec(once))
    taken.append(name)
    if config.is_chief:
        found[name] = {one: estimator.get_variable_value(one) for one in estimator.get_variable_names()}
found["taken"] = taken
found["servers started"] = len(started)
"""

# The gradients are the same in every step, so that the order of the workers' steps does not matter.
SERVERS = """
def linear(features, labels, mode, params):
    with tf.variable_scope("net", partitioner=params["partitioner"]):
        w = tf.get_variable("w", [4, 3], initializer=tf.ones_initializer())
    b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
    seen = tf.layers.batch_normalization(features, training=mode == "train", momentum=0.0, scale=False, center=False)
    loss = tf.reduce_mean(tf.matmul(features, w) + b)
    if mode == "eval":
        return est.EstimatorSpec(mode, loss=loss, eval_metric_ops={"seen": tf.metrics.mean(tf.abs(seen))})
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection("update_ops")):
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

whole = lambda: tf.data.Dataset.from_tensor_slices(x).batch(96).repeat()
once = lambda: tf.data.Dataset.from_tensor_slices(x).batch(96)
config = est.RunConfig(save_checkpoints_steps=20)
estimator = est.Estimator(linear, os.path.join(FOLDER, sys.argv[1]), config,
                          {"partitioner": tf.fixed_size_partitioner(2)})
if not OLD:
    given, call = [], est.Workers._call
    est.Workers._call = lambda self, step, size, last: given.append(size) or call(self, step, size, last)
est.train_and_evaluate(estimator, est.TrainSpec(whole, max_steps=40), est.EvalSpec(once))
found["checkpoints"] = sorted(one for one in os.listdir(estimator.model_dir) if one.endswith(".index"))
# Data that end: each of two workers takes 13 steps.
ends = lambda: whole().take(13 if "TF_CONFIG" in os.environ else 26)
est.train_and_evaluate(estimator, est.TrainSpec(ends), est.EvalSpec(once))
if "TF_CONFIG" in os.environ:
    found["given"] = given
found["servers"] = {one: estimator.get_variable_value(one) for one in estimator.get_variable_names()}
found["shapes"] = sorted([name, list(shape)] for name, shape in tf.train.list_variables(estimator.latest_checkpoint()))
os.environ.pop("TF_CONFIG", None)
alone = est.Estimator(linear, estimator.model_dir, est.RunConfig(), {"partitioner": None})
found["evaluation"] = alone.evaluate(once)
"""

PARTS = """
def divided(features, labels, mode):
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        for initializer in (None, "he_uniform", tf.keras.initializers.Orthogonal(), tf.glorot_uniform_initializer()):
            features = tf.layers.dense(features, 40, kernel_initializer=initializer)
    loss = tf.reduce_mean(features)
    step = tf.train.get_or_create_global_step()
    return est.EstimatorSpec(mode, loss=loss, train_op=tf.group(step.assign_add(1)))

estimator = est.Estimator(divided, os.path.join(FOLDER, sys.argv[1]))
estimator.train(lambda: tf.data.Dataset.from_tensor_slices(np.ones([8, 40], np.float32)).batch(4), steps=1)
for name in estimator.get_variable_names():
    if name.endswith("kernel"):
        value = estimator.get_variable_value(name)
        found[name] = [bool(np.allclose(value[:20], value[20:])), round(float(abs(value).max()) * 50)]
"""


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(COMMON + REPLICAS, tmp_path_factory.mktemp("replicas"), MODULES)


def run_cluster(program: str, folder: Path, tasks: dict[str, int], serving: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the first task finds on the new side; the tasks of `serving` never end by themselves."""
    python = migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    script = folder / "program.py"
    script.write_text(HEAD + OLD + NEW.format(library=str(LIBRARY), modules=MODULES) + program + FOOT)
    cluster = {job: [f"{LOCALHOST}:{reserve(LOCALHOST)}" for _ in range(count)] for job, count in tasks.items()}
    started = []
    try:
        for job, addresses in cluster.items():
            for index in range(len(addresses)):
                own = folder / f"{job}{index}"
                own.mkdir()
                environment = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}
                command = ["env", *(f"{key}={value}" for key, value in environment.items()), python, script, "new", own]
                with (own / "log").open("w") as log:
                    started.append((job, own, subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)))
        for job, own, process in started:
            if job not in serving:
                assert process.wait(timeout=300) == 0, (own / "log").read_text()[-4000:]
    finally:
        for _, _, process in started:
            process.kill()
            process.wait()
    found: dict[str, Any] = json.loads((started[0][1] / "new.json").read_text())
    return found


@pytest.mark.parametrize("name", ["one device", "mirrored", "mirrored adagrad", "central storage"])
def test_replicas_train_as_in_tensorflow_1(name: str, replicas: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = replicas
    for one, other in zip(old[name], new[name], strict=True):
        assert close(one, other), (one, other)


def test_replicas_are_not_one_device(replicas: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """The comparison sees a training that uses half of the data of a step, and another optimizer."""
    new = replicas[1]
    assert not close(new["one device"], new["mirrored"])
    assert not close(new["mirrored adagrad"], new["mirrored"])


def test_workers_train_as_replicas_do(tmp_path: Path, replicas: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Two workers that read every other batch are two replicas that are given batches in turn."""
    found = run_cluster(COMMON + WORKERS, tmp_path, {"worker": 2})
    for one, other in zip(found["workers"], replicas[1]["mirrored"], strict=False):
        assert close(one, other), (one, other)
    # Several steps in a call, up to the end of the data of both: the same.
    assert close(found["ends"], found["one by one"]), found
    assert found["ends"]["global_step"] == 41
    assert found["stops"]["global_step"] == 30
    assert 6 in found["taken"][: found["taken"].index("ends")]
    assert found["servers started"] == 1  # a second one forgets what the other worker has asked the first for


def test_servers_train_as_one_device_does(tmp_path: Path) -> None:
    """A chief, two workers and a server: what gradients that are always the same add up to, and the split variable."""
    (tmp_path / "both").mkdir()
    old, new = run_both(COMMON + SERVERS, tmp_path / "both", MODULES)
    assert close(old, new), (old, new)
    found = run_cluster(COMMON + SERVERS, tmp_path, {"chief": 1, "worker": 2, "ps": 1}, serving=("worker", "ps"))
    for part in ("shapes", "servers", "evaluation", "checkpoints"):
        assert close(old[part], found[part]), (part, old[part], found[part])
    assert found["servers"]["global_step"] == 66
    # Of 40 steps hooks see few: the others come several in a call, fewer to the end of what nobody sees.
    assert max(found["given"]) == 5
    assert len(found["given"]) < 40


@pytest.mark.skipif(not TENSORFLOW1, reason="2.15 gives the parts the same values: set TF_MIGRATE_TENSORFLOW1_PYTHON")
def test_parts_of_a_variable_start_from_values_of_their_own(tmp_path: Path) -> None:
    """On the scale of the whole variable, but for Orthogonal, which knows no parts."""
    old, new = run_both(PARTS, tmp_path, MODULES)
    assert len(new) == len(old) == 4
    assert not any(same for same, _ in [*old.values(), *new.values()])
    for name in ("net/dense/kernel", "net/dense_1/kernel", "net/dense_3/kernel"):
        assert old[name] == new[name], (name, old, new)
