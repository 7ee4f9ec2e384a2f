"""The recorder inside TensorFlow 1 programs that train by hand, in sessions of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.recording import Recording, UnrecordedTraining, read, read_batch
from migrator.harness.runs import plan_for

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

DATA = """
import numpy as np
import tensorflow as tf
random = np.random.RandomState(0)
X = random.normal(size=(64, 5)).astype(np.float32)
Y = X.sum(1, keepdims=True).astype(np.float32)

def mean_error(x, y):
    hidden = tf.layers.dense(x, 4, tf.nn.relu)
    hidden = tf.layers.dropout(hidden, 0.5, training=True)
    return tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1))

dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
"""

PROGRAMS = {
    "monitored": """
x, y = dataset.repeat().make_one_shot_iterator().get_next()
loss = mean_error(x, y)
train_op = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=tf.train.get_or_create_global_step())
hooks = [tf.train.StopAtStepHook(last_step=6)]
with tf.train.MonitoredTrainingSession(checkpoint_dir="{folder}", hooks=hooks) as session:
    while not session.should_stop():
        print(session.run([train_op, loss])[1])
""",
    "plain": """
x = tf.placeholder(tf.float32, [None, 5])
y = tf.placeholder(tf.float32, [None, 1])
loss = mean_error(x, y)
train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.Variable(0, trainable=False))
session = tf.Session()
session.run(tf.global_variables_initializer())
for step in range(6):
    session.run(train_op, {{x: X[8 * step : 8 * step + 8], y: Y[8 * step : 8 * step + 8]}})
    session.run(loss, {{x: X, y: Y}})
tf.train.Saver().save(session, "{folder}/model")
""",
    "supervised": """
iterator = tf.data.make_initializable_iterator(dataset.take(6))
loss = mean_error(*iterator.get_next())
step = tf.Variable(0, trainable=False, name="global_step")
weights = tf.trainable_variables()
gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, weights), 0.5)
train_op = tf.train.GradientDescentOptimizer(0.1).apply_gradients(zip(gradients, weights), global_step=step)
begin = tf.group(tf.local_variables_initializer(), iterator.initializer)
supervisor = tf.train.Supervisor(logdir="{folder}", global_step=step, local_init_op=begin)
with supervisor.managed_session() as session:
    while not supervisor.should_stop():
        session.run(train_op)
""",
}
OPTIMIZERS = {"monitored": ("Adam", None), "plain": ("SGD", None), "supervised": ("SGD", 0.5)}

CLUSTER = """
import sys
import numpy as np
import tensorflow as tf

job, index, kind = sys.argv[3], int(sys.argv[4]), sys.argv[5]
hosts = [part.split(",") for part in sys.argv[1:3]]
cluster = tf.train.ClusterSpec({"ps": hosts[0], "worker": hosts[1]})
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
random = np.random.RandomState(index)
X = random.normal(size=(64, 5)).astype(np.float32)
Y = X.sum(1, keepdims=True).astype(np.float32)
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % index, cluster=cluster)):
    x, y = tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(8).make_one_shot_iterator().get_next()
    weights = tf.get_variable("weights", [5, 1], initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(y, tf.matmul(x, weights))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    hooks = [tf.train.StopAtStepHook(last_step=8)]
    if kind == "synchronous":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, len(hosts[1]), len(hosts[1]))
        hooks.append(optimizer.make_session_run_hook(index == 0))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
with tf.train.MonitoredTrainingSession(server.target, index == 0, "/tmp/tf_migrate_sessions", hooks=hooks) as session:
    while not session.should_stop():
        session.run(train_op)
"""


class Runner:
    """Runs scripts in one fork server, each in a fresh folder."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def run(self, name: str, text: str, shape: str = "", args: tuple[str, ...] = (), **plan: Any) -> Path:
        folder = self.folder / name
        folder.mkdir()
        script = folder / "program.py"
        script.write_text(text)
        cluster = ClusterShape.parse(shape)
        plan = plan_for("original", folder, cluster, **{"state_steps": [1, 5], **plan})
        outcome = self.server.run(Launch("original", script, args, cluster, folder, plan, total_timeout=180.0))
        assert outcome.failure is None, outcome.failure
        return folder / "record"


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, servers: tuple[ForkServer, ForkServer]) -> Runner:
    return Runner(servers[0], tmp_path_factory.mktemp("sessions"))


def losses(recording: Recording) -> list[float]:
    return [step.loss for step in recording.steps]


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_session_that_trains_is_recorded(kind: str, runner: Runner, tmp_path: Path) -> None:
    written = tmp_path / "written"
    text = DATA + PROGRAMS[kind].format(folder=written)
    record = runner.run(kind, text)
    found = read(record)
    name, clipping = OPTIMIZERS[kind]
    assert found.optimizer is not None
    assert (found.optimizer.name, found.optimizer.settings["global_clipnorm"]) == (name, clipping)
    # The program's own counter of steps is no variable of its model.
    assert [one.name for one in found.variables] == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    assert len(found.steps) == 6 and sorted(found.states) == [1, 5, 6] and sorted(found.gradients) == [1, 5]
    assert found.dropout_rates == (0.5,)
    assert {"loss", "optimizer", "train"} <= found.sources.keys() and not written.exists()
    batch = read_batch(record, found.batches[1])
    random = np.random.RandomState(0).normal(size=(64, 5)).astype(np.float32)
    np.testing.assert_array_equal(batch["features"], random[8:16])
    assert batch["labels"].shape == (8, 1)
    weights = tmp_path / "initial.npz"
    np.savez(weights, **found.initial)
    # The data come in another order here: those of the recorded run are what is trained on.
    again = text.replace(".astype(np.float32)\n", ".astype(np.float32)[::-1]\n", 1)
    assert again != text
    plan = {"initial": str(weights), "replay": str(record), "steps": 4}
    assert losses(read(runner.run(f"{kind}-again", again, **plan))) == losses(found)[:4]


TWO = """
x = tf.placeholder(tf.float32, [None, 5])
y = tf.placeholder(tf.float32, [None, 1])
first = mean_error(x, y)
others = len(tf.trainable_variables())
second = tf.reduce_mean(tf.square(tf.layers.dense(x, 1)))
weights = tf.trainable_variables()
train_first = tf.train.AdamOptimizer(0.1).minimize(first, var_list=weights[:others])
train_second = tf.train.MomentumOptimizer(0.1, 0.9).minimize(second, var_list=weights[others:])
session = tf.Session()
session.run(tf.global_variables_initializer())
for step in range(6):
    batch = X[8 * step : 8 * step + 8]
    both = {x: batch, y: Y[8 * step : 8 * step + 8]}
"""
IN_ONE_CALL = """
    session.run([train_first, train_second], both)
"""
IN_TWO_CALLS = """
    session.run(train_first, both)
    if step % EVERY == EVERY - 1:
        session.run(train_second, {x: batch})
"""


def test_calls_that_train_on_one_batch_are_one_step(runner: Runner, tmp_path: Path) -> None:
    together = read(runner.run("together", DATA + TWO + IN_ONE_CALL))
    weights = tmp_path / "initial.npz"
    np.savez(weights, **together.initial)
    plan = {"initial": str(weights)}
    text = DATA + TWO + IN_TWO_CALLS.replace("EVERY", "1")
    record = runner.run("apart", text, **plan)
    apart = read(record)
    np.testing.assert_allclose(losses(apart), losses(together), rtol=2e-6)
    assert together.anew and apart.anew  # masks are those of the step in both
    for step in (1, 5, 6):
        for name, value in together.states[step].items():
            np.testing.assert_allclose(apart.states[step][name], value, rtol=1e-5, atol=1e-7)
        assert apart.slots[step].keys() == together.slots[step].keys()
    for step in (1, 5):
        assert apart.gradients[step].keys() == together.gradients[step].keys()
        for name, value in together.gradients[step].items():
            np.testing.assert_allclose(apart.gradients[step][name], value, rtol=1e-4, atol=1e-6)
    assert [batch.size for batch in apart.batches] == [8] * 6
    again = text.replace("X[8 * step : 8 * step + 8]", "X[8 * step : 8 * step + 8] + 1")
    replayed = read(runner.run("apart-again", again, replay=str(record), **plan))
    assert losses(replayed) == losses(apart)
    limited = read(runner.run("apart-limited", text, steps=2, **plan))
    assert losses(limited) == losses(apart)[:2]
    assert limited.states[2].keys() == apart.states[1].keys()
    every = read(runner.run("every-other", DATA + TWO + IN_TWO_CALLS.replace("EVERY", "2"), **plan))
    assert len(every.steps) == 6 and len(every.gradients[1]) == 4
    kernel = "dense_2/kernel"
    np.testing.assert_array_equal(every.states[1][kernel], every.initial[kernel])
    assert not np.array_equal(every.states[5][kernel], every.initial[kernel])


def test_eager_training_is_not_taken_for_a_session(runner: Runner) -> None:
    text = """
import tensorflow.compat.v1 as tf
tf.enable_eager_execution()
weight = tf.Variable(1.0)
with tf.GradientTape() as tape:
    loss = weight * weight
tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tape.gradient(loss, weight), weight)])
"""
    with pytest.raises(UnrecordedTraining, match="outside of a graph"):
        read(runner.run("eager", text))


ADDED_UP = """
x = tf.placeholder(tf.float32, [None, 5])
y = tf.placeholder(tf.float32, [None, 1])
loss = mean_error(x, y)
optimizer = tf.train.GradientDescentOptimizer(0.1)
pairs = optimizer.compute_gradients(loss)
sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for _, v in pairs]
add = [total.assign_add(gradient) for total, (gradient, _) in zip(sums, pairs)]
apply = optimizer.apply_gradients([(total / 2, v) for total, (_, v) in zip(sums, pairs)])
clear = [total.assign(tf.zeros_like(total)) for total in sums]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(6):
        session.run(add, {x: X[8 * step : 8 * step + 8], y: Y[8 * step : 8 * step + 8]})
        if step % 2:
            session.run(apply)
            session.run(clear)
print("to the end")
"""


def test_gradients_of_earlier_calls_are_told(runner: Runner) -> None:
    """The program runs to its end; its steps have no batch of their own."""
    with pytest.raises(UnrecordedTraining, match="gradients that earlier calls of its session add up"):
        read(runner.run("added-up", DATA + ADDED_UP))


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_between_graph_training_is_recorded(kind: str, runner: Runner) -> None:
    """Two workers and a server, told by arguments who they are; both trainings repeat bit for bit."""
    args = ("{ps_hosts}", "{worker_hosts}", "{job_name}", "{task_index}", kind)
    plan = {"turns": kind == "asynchronous"}
    first = read(runner.run(kind, CLUSTER, "chief=1,worker=1,ps=1", args, **plan))
    again = read(runner.run(f"{kind}-again", CLUSTER, "chief=1,worker=1,ps=1", args, **plan))
    each = 4 if kind == "asynchronous" else 8
    assert first.participation == {"chief:0": each, "worker:0": each}
    assert first.replicas == (1 if kind == "asynchronous" else 2)

    def by_task(recording: Recording) -> list[tuple[str, float]]:
        return sorted((step.task, step.loss) for step in recording.steps)

    assert by_task(first) == by_task(again)
    if kind == "synchronous":
        # The first update from zeros, by hand: the mean of the two workers' gradients of their first batches.
        gradients = []
        for index in range(2):
            x = np.random.RandomState(index).normal(size=(64, 5)).astype(np.float32)[:8]
            gradients.append(-2 * x.T @ x.sum(1, keepdims=True) / 8)
        np.testing.assert_allclose(first.states[1]["weights"], -0.1 * np.mean(gradients, axis=0), rtol=1e-5)
        np.testing.assert_allclose(first.gradients[1]["weights"], np.mean(gradients, axis=0), rtol=1e-5)
