"""Programs that train by hand in a session: TensorFlow 1 and the new program are run, and the numbers compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.protocol import name_map
from migrator.harness.recording import Recording, read
from migrator.harness.runs import plan_for
from tests.end_to_end.proving import Servers, prove, prove_project
from tests.rules.programs import run
from tests.rules.tower_models import BRANCHES, PLAIN

pytestmark = pytest.mark.tensorflow

LOCAL = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
x_data = random.normal(size=(40, 6)).astype(np.float32)
y_data = x_data.sum(axis=1, keepdims=True) / 6


def train(rate):
    dataset = tf.data.Dataset.from_tensor_slices((x_data, y_data)).repeat().batch(8)
    x, y = dataset.make_one_shot_iterator().get_next()
    hidden = tf.layers.dropout(tf.layers.dense(x, 4, activation=tf.nn.relu), 0.25, training=True)
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(tf.train.exponential_decay(rate, step, 2, 0.5), 0.9)
    gradients, weights = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.1)
    train_op = optimizer.apply_gradients(zip(gradients, weights), global_step=step)
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(last_step=5)]) as session:
        while not session.should_stop():
            print(session.run([train_op, loss])[1])


train(0.1)
"""

SUPERVISOR = "    boss = tf.train.Supervisor(init_op=tf.global_variables_initializer())\n"
MONITORED = "tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(last_step=5)])"
SUPERVISED = LOCAL.replace(f"    with {MONITORED}", f"{SUPERVISOR}    with boss.managed_session()").replace(
    "while not session.should_stop():", "for _ in range(5):"
)

SYNCHRONOUS = """\
import sys

import numpy as np
import tensorflow as tf

ps_hosts, worker_hosts, job_name, task_index = [*sys.argv[1:4], int(sys.argv[4])]


def points():
    random = np.random.RandomState(task_index)
    x = random.normal(size=(40, 6)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True) / 6)).repeat().batch(8)


def main():
    workers = worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts.split(","), "worker": workers})
    server = tf.train.Server(cluster, job_name=job_name, task_index=task_index)
    if job_name == "ps":
        server.join()
    is_chief = task_index == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        x, y = points().make_one_shot_iterator().get_next()
        hidden = tf.layers.dense(x, 4, activation=tf.nn.relu)
        loss = tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1))
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer = tf.train.SyncReplicasOptimizer(
            optimizer, replicas_to_aggregate=len(workers), total_num_replicas=len(workers)
        )
        train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    hooks = [tf.train.StopAtStepHook(last_step=5), optimizer.make_session_run_hook(is_chief)]
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=is_chief, hooks=hooks) as session:
        while not session.should_stop():
            session.run(train_op)


if __name__ == "__main__":
    main()
"""

HELPED = (
    SYNCHRONOUS.replace("def main():", "def train(server, cluster, workers):")
    .replace(
        SYNCHRONOUS[SYNCHRONOUS.index("    workers = ") : SYNCHRONOUS.index("    is_chief")],
        "",
    )
    .replace("len(workers)", "workers")
    .replace(
        'if __name__ == "__main__":',
        """\
def main():
    workers = worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts.split(","), "worker": workers})
    server = tf.train.Server(cluster, job_name=job_name, task_index=task_index)
    if job_name == "ps":
        server.join()
    else:
        train(server, cluster, workers=len(workers))


if __name__ == "__main__":""",
    )
)

TOWERS = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
x_data = random.normal(size=(40, 6)).astype(np.float32)
y_data = x_data.sum(axis=1, keepdims=True) / 6


def average_gradients(tower_gradients):
    average = []
    for pairs in zip(*tower_gradients):
        stacked = tf.stack([gradient for gradient, _ in pairs])
        average.append((tf.reduce_mean(stacked, axis=0), pairs[0][1]))
    return average


def network(x):
    hidden = tf.layers.dense(x, 4, activation=tf.nn.relu, kernel_regularizer=tf.keras.regularizers.l2(0.05))
    return tf.layers.dense(hidden, 1)


def train(towers):
    dataset = tf.data.Dataset.from_tensor_slices((x_data, y_data)).repeat().batch({size})
    {before}
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(tf.train.exponential_decay(0.1, step, 2, 0.5), 0.9)
    tower_gradients = []
    for i in range(towers):
        with tf.device("/gpu:%d" % i), tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
            {inside}
            tower_gradients.append(optimizer.compute_gradients(loss))
    gradients, weights = zip(*average_gradients(tower_gradients))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    train_op = optimizer.apply_gradients(zip(gradients, weights), global_step=step)
    config = tf.ConfigProto(allow_soft_placement=True)
    hooks = [tf.train.StopAtStepHook(last_step=5)]
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
        while not session.should_stop():
            session.run(train_op)


train(2)
"""
BATCHES = {
    "parts of a batch": {
        "size": "16",
        "before": """\
x, y = dataset.make_one_shot_iterator().get_next()
    x_parts = tf.split(x, towers)
    y_parts = tf.split(y, towers)""",
        "inside": """\
loss = tf.losses.mean_squared_error(y_parts[i], network(x_parts[i])) + tf.losses.get_regularization_loss()""",
    },
    "batches of their own": {
        "size": "8",
        "before": "batches = dataset.make_one_shot_iterator()",
        "inside": """\
x, y = batches.get_next()
            guess = network(x)
            loss = tf.losses.mean_squared_error(y, guess) + tf.losses.get_regularization_loss()""",
    },
}

FED = """\
import numpy as np
import tensorflow as tf


def main():
    random = np.random.RandomState(7)
    x_data = random.normal(size=(40, 6))
    y_data = x_data.sum(axis=1, keepdims=True) / 6
    x = tf.placeholder(tf.float32, [None, 6])
    y = tf.placeholder(tf.float32, shape=(None, 1))
    keep = tf.placeholder(tf.float32)
    hidden = tf.nn.dropout(tf.layers.dense(x, 4, activation=tf.nn.relu), keep_prob=keep)
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1))
    step = tf.Variable(0, trainable=False)
    optimizer = tf.train.MomentumOptimizer(tf.train.exponential_decay(0.1, step, 2, 0.5), 0.9)
    train_op = optimizer.minimize(loss, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        begin = 0
        for epoch in range(3):
            chosen = random.permutation(40)
            for _ in range(2):
                part = chosen[begin : begin + 8]
                _, shown = session.run([train_op, loss], feed_dict={x: x_data[part], y: y_data[part], keep: 0.75})
                begin = (begin + 8) % 40
            print(epoch, shown, session.run(loss, feed_dict={x: x_data, y: y_data, keep: 1.0}))


main()
"""

TOLD = ("{ps_hosts}", "{worker_hosts}", "{job_name}", "{task_index}")


def test_training_on_one_device(servers: Servers, tmp_path: Path) -> None:
    new = prove(LOCAL, servers, tmp_path)
    assert "model.fit(train_input_fn(), steps_per_epoch=5)" in new


def test_the_session_of_a_supervisor(servers: Servers, tmp_path: Path) -> None:
    new = prove(SUPERVISED, servers, tmp_path)
    assert "model.fit(train_input_fn(), steps_per_epoch=5)" in new and "boss" not in new


def test_a_monitored_session_that_counts_its_steps_and_keeps_checkpoints(servers: Servers, tmp_path: Path) -> None:
    given = "scaffold=tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2))"
    program = LOCAL.replace("hooks=[tf.train.StopAtStepHook(last_step=5)]", given).replace(
        "        while not session.should_stop():\n",
        "        done = 0\n        while not session.should_stop() and done < 5:\n            done += 1\n",
    )
    new = prove(program, servers, tmp_path)
    assert "model.fit(train_input_fn(), steps_per_epoch=5)" in new and "done" not in new


def test_batches_that_are_fed_come_from_a_generator(servers: Servers, tmp_path: Path) -> None:
    """In their order: the program draws from its own random numbers between the steps."""
    new = prove(FED, servers, tmp_path, steps=6)
    assert "yield x_data[part], y_data[part]" in new and "placeholder" not in new


def test_towers_that_are_built_in_a_function_which_gets_their_scope(servers: Servers, tmp_path: Path) -> None:
    program = TOWERS.format(**BATCHES["parts of a batch"])
    for old, new in {
        "def network(x):": "def network(scope, x):",
        "network(x_parts[i])": "network(scope, x_parts[i])",
        "    tower_gradients = []\n": "    tower_gradients, tower_losses = [], []\n",
        '("/gpu:%d" % i), ': '("/gpu:%d" % i), tf.name_scope("tower_%d" % i) as scope, ',
        "(optimizer.compute_gradients(loss))": "(optimizer.compute_gradients(loss))\n            "
        "tower_losses.append(loss)",
    }.items():
        assert old in program
        program = program.replace(old, new)
    text = prove_project({"train.py": program}, "train.py", servers, tmp_path, devices=2)["train.py"]
    assert "MirroredStrategy()" in text and "scope" not in text.replace("strategy.scope()", "").replace("_scope", "")


@pytest.mark.parametrize("how", BATCHES)
def test_two_towers_are_two_replicas(how: str, servers: Servers, tmp_path: Path) -> None:
    """The original's towers share a CPU, each replica of the new program has one."""
    program = TOWERS.format(**BATCHES[how])
    new = prove_project({"train.py": program}, "train.py", servers, tmp_path, devices=2)["train.py"]
    assert "MirroredStrategy()" in new and "TrainingLoop" in new


TAKEN = """\
tvars = tf.trainable_variables()
            grads = tf.gradients(loss, tvars)
            tower_gradients.append(zip(grads, tvars))"""
GRADIENTS = PLAIN.replace("tower_gradients.append(optimizer.compute_gradients(loss))", TAKEN)


@pytest.mark.parametrize("program", [BRANCHES, PLAIN, GRADIENTS], ids=["branches", "plain", "gradients"])
def test_towers_of_a_model_fn_are_two_replicas(program: str, servers: Servers, tmp_path: Path) -> None:
    new = prove_project({"train.py": program}, "train.py", servers, tmp_path, steps=6, devices=2)["train.py"]
    assert "MirroredStrategy()" in new and "TrainingLoop" in new and "tower" not in new


def on_cluster(
    server: ForkServer, program: str, script: Path, folder: Path, shape: str, initial: Path | None
) -> Recording:
    folder.mkdir()
    cluster = ClusterShape.parse(shape, coordinated=program == "migrated")
    given = None if initial is None else str(initial)
    plan = plan_for(program, folder, cluster, state_steps=[1, 5], initial=given)
    outcome = server.run(Launch(program, script, TOLD, cluster, folder, plan))
    assert outcome.failure is None, outcome.failure
    return read(folder / "record")


@pytest.mark.parametrize("program", [SYNCHRONOUS, HELPED], ids=["in one function", "in a function of its own"])
def test_synchronous_replicas_on_two_workers(program: str, servers: Servers, tmp_path: Path) -> None:
    """The original as a cluster of two workers and a server, the new program as two mirrored workers."""
    new, findings = run(program)
    assert {f.code for f in findings} == {"TFM101"}, findings
    scripts = {"original": tmp_path / "original.py", "migrated": tmp_path / "migrated.py"}
    scripts["original"].write_text(program, encoding="utf-8")
    scripts["migrated"].write_text(new, encoding="utf-8")
    original = on_cluster(servers[0], "original", scripts["original"], tmp_path / "a", "chief=1,worker=1,ps=1", None)
    probe = on_cluster(servers[1], "migrated", scripts["migrated"], tmp_path / "b", "chief=1,worker=1", None)
    pairs = name_map.build(original.variables, probe.variables)
    assert pairs.complete, pairs
    initial = tmp_path / "initial.npz"
    np.savez(initial, **{pairs.to_migrated()[name]: value for name, value in original.initial.items()})
    migrated = on_cluster(servers[1], "migrated", scripts["migrated"], tmp_path / "c", "chief=1,worker=1", initial)

    assert original.participation == migrated.participation == {"chief:0": 5, "worker:0": 5}
    for task in original.participation:
        losses = [[step.loss for step in one.steps if step.task == task] for one in (original, migrated)]
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    for ours, theirs in pairs.pairs:
        np.testing.assert_allclose(migrated.states[5][theirs], original.states[5][ours], rtol=1e-4, atol=1e-6)
