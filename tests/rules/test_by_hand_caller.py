"""Trainings by hand in a function that is given the server of the cluster."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

ASYNCHRONOUS = """\
import tensorflow as tf

FLAGS = tf.app.flags.FLAGS


def points():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)


def train(server, cluster):
    is_chief = FLAGS.task_index == 0
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=cluster)):
            x, y = points().make_one_shot_iterator().get_next()
            loss = tf.losses.mean_squared_error(y, tf.layers.dense(x, 1))
            optimizer = tf.train.GradientDescentOptimizer(0.1)
            train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        hooks = [tf.train.StopAtStepHook(last_step=100)]
        with tf.train.MonitoredTrainingSession(master=server.target, is_chief=is_chief, hooks=hooks) as session:
            while not session.should_stop():
                session.run(train_op)


def main(_):
    hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        print("trains")
        train(server, cluster)
        print("over")
    print("ends")


if __name__ == "__main__":
    tf.app.run()
"""

WRAPPED = """\
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=workers)
            train_op = optimizer"""
SYNCHRONOUS = (
    ASYNCHRONOUS.replace("            train_op = optimizer", WRAPPED)
    .replace("(last_step=100)]", "(last_step=100), optimizer.make_session_run_hook(is_chief)]")
    .replace("server, cluster)", "server, cluster, workers)", 1)
    .replace("train(server, cluster)\n        print", "train(server, cluster, workers=len(hosts))\n        print")
)


def told(program: str, parameters: str, given: str) -> str:
    """The program whose training has some parameters, which are given some values."""
    assert "def train(server, cluster):" in program and "        train(server, cluster)\n" in program
    program = program.replace("def train(server, cluster):", f"def train({parameters}):")
    return program.replace("        train(server, cluster)\n", f"        train({given})\n")


def test_the_server_goes_and_the_caller_calls_for_every_task() -> None:
    text, findings = run(ASYNCHRONOUS)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    ast.parse(text)
    assert "\ndef train(cluster):\n" in text
    assert "    strategy = make_strategy(cluster, FLAGS.job_name, FLAGS.task_index)\n" in text
    main = text[text.index("def main(_):") : text.index("if __name__")]
    wanted = """\
def main(_):
    hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": hosts})
    print("trains")
    train(cluster)
    print("over")
    print("ends")


"""
    assert main == wanted


def test_servers_of_mirrored_workers_leave_the_caller() -> None:
    text, findings = run(SYNCHRONOUS)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert '    if FLAGS.job_name == "ps":\n        return  #' in text
    assert "\ndef train(cluster, workers):\n" in text and "    train(cluster, workers=len(hosts))\n" in text
    assert "make_strategy(cluster, FLAGS.task_index)" in text


def test_what_the_strategy_needs_has_the_names_of_the_function_that_trains() -> None:
    program = told(ASYNCHRONOUS, "options, spec, target", "args, cluster, server.target")
    program = program.replace("main(_)", "main(args)").replace("FLAGS.", "args.").replace("tf.app.flags.FLAGS", "None")
    program = program.replace("is_chief = args.", "is_chief = options.").replace("cluster=cluster", "cluster=spec")
    text, findings = run(program.replace("server.target, is_chief", "target, is_chief"))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "\ndef train(options, spec):\n" in text and "    train(args, spec" not in text
    assert "    train(args, cluster)\n" in text
    assert "make_strategy(spec, options.job_name, options.task_index)" in text


def test_a_function_that_only_knew_the_server_is_given_the_cluster() -> None:
    program = told(ASYNCHRONOUS, "server", "server=server").replace("setter(cluster=cluster)", "setter(1)")
    text, findings = run(program)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "\ndef train(cluster):\n" in text and "    train(cluster=cluster)\n" in text
    assert "make_strategy(cluster, FLAGS.job_name, FLAGS.task_index)" in text


def test_an_index_with_another_name() -> None:
    named = ASYNCHRONOUS.replace(
        "    hosts =", "    job, number = FLAGS.job_name, 0\n    index = FLAGS.task_index\n    hosts ="
    )
    text, _ = run(named.replace("task_index=FLAGS.task_index", "task_index=index"))
    assert "make_strategy(cluster, FLAGS.job_name, FLAGS.task_index)" in text


SHARD = ASYNCHRONOUS.replace("points().make", "points().shard(2, part).make")
REFUSED = {
    "the server is kept": (ASYNCHRONOUS, '    print("ends")', "    print(server)", "TFM762"),
    "two calls": (ASYNCHRONOUS, "        train(server, cluster)\n", "        train(server, cluster)\n" * 2, "TFM762"),
    "a result": (ASYNCHRONOUS, "        train(server, cluster)\n", "        x = train(server, cluster)\n", "TFM762"),
    "a function between": (
        ASYNCHRONOUS,
        "def main(_):",
        "def go(server, cluster):\n    train(server, cluster)\n\n\ndef main(_):",
        "TFM762",
    ),
    "the server in the model": (
        ASYNCHRONOUS,
        "        hooks =",
        "        print(server.target)\n        hooks =",
        "TFM762",
    ),
    "an index that changes": (
        ASYNCHRONOUS.replace("task_index=FLAGS.task_index", "task_index=index"),
        "    hosts =",
        "    index = FLAGS.task_index\n    index += 1\n    hosts =",
        "TFM762",
    ),
    "an index that is not told": (
        ASYNCHRONOUS.replace("task_index=FLAGS.task_index", "task_index=index"),
        "    hosts =",
        "    index = int(FLAGS.task_index)\n    hosts =",
        "TFM762",
    ),
    "steps of each worker": (ASYNCHRONOUS, "while not session.should_stop()", "for i in range(9)", "TFM762"),
    "star arguments": (ASYNCHRONOUS, "        train(server, cluster)\n", "        train(*both)\n", "TFM762"),
    "a part": (told(SHARD, "server, cluster, part", "server, cluster, FLAGS.task_index"), "", "", "TFM765"),
    "a part by a name": (
        told(SHARD, "server, cluster, part", "server, cluster, part=number"),
        "    hosts =",
        "    number = FLAGS.task_index % 2\n    hosts =",
        "TFM765",
    ),
    "a rate by workers": (
        told(ASYNCHRONOUS, "server, cluster, n", "server, cluster, len(hosts)"),
        "Optimizer(0.1)",
        "Optimizer(0.1 * n)",
        "TFM765",
    ),
    "backup workers": (SYNCHRONOUS, "workers=len(hosts)", "workers=len(hosts) - 1", "TFM764"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_known_is_refused(what: str) -> None:
    program, before, after, code = REFUSED[what]
    assert before in program
    changed = program.replace(before, after, 1)
    text, findings = run(changed)
    assert text == changed
    assert code in [f.code for f in findings if f.severity is Severity.MANUAL], findings


def test_defaults_and_types_of_parameters_stay() -> None:
    parameters = "\n    cluster,\n    rate: float = 0.1,  # of every step\n    server=None,\n"
    program = told(ASYNCHRONOUS, parameters, "cluster, server=server").replace("Optimizer(0.1)", "Optimizer(rate)")
    text, findings = run(program)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "\ndef train(\n    cluster, rate: float = 0.1):\n" in text and "    train(cluster)\n" in text
