"""Programs that train in the session of a Supervisor."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

LOCAL = """\
import tensorflow as tf

STEPS = 100


def main(points, targets):
    dataset = tf.data.Dataset.from_tensor_slices((points, targets)).repeat().batch(8)
    x, y = dataset.make_one_shot_iterator().get_next()
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(x, 1))
    global_step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
    init_op = tf.global_variables_initializer()
    supervisor = tf.train.Supervisor(
        logdir="/tmp/run",
        init_op=init_op,
        global_step=global_step,
        saver=tf.train.Saver(),
    )
    with supervisor.managed_session() as session:
        step = 0
        while not supervisor.should_stop() and step < STEPS:
            _, shown, step = session.run([train_op, loss, global_step])
            if step % 10 == 0:
                print(step, shown)
    supervisor.stop()
    print("trained")
"""
WHILE = "while not supervisor.should_stop() and step < STEPS:"
LOOPS = {
    "as it is": WHILE,
    "a condition inside": "while not supervisor.should_stop():\n            if step >= STEPS:\n                break",
    "an endless loop": "while True:\n            if supervisor.should_stop():\n                break\n"
    "            if step >= STEPS:\n                break",
    "a count of its own": "for _ in range(STEPS):\n            if supervisor.should_stop():\n                break",
}

CLUSTER = """\
import tensorflow as tf

FLAGS = tf.app.flags.FLAGS


def points():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    is_chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        x, y = points().make_one_shot_iterator().get_next()
        loss = tf.losses.mean_squared_error(y, tf.layers.dense(x, 1))
        global_step = tf.Variable(0, name="global_step", trainable=False)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
    supervisor = tf.train.Supervisor(is_chief=is_chief, logdir="/tmp/run", global_step=global_step)
    config = tf.ConfigProto(allow_soft_placement=True)
    with supervisor.managed_session(server.target, config=config) as session:
        while not supervisor.should_stop():
            _, step = session.run([train_op, global_step])
            if step >= 100:
                break
    supervisor.stop()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_supervisor_trains_as_a_monitored_session_does(loop: str) -> None:
    text, findings = run(LOCAL.replace(WHILE, LOOPS[loop]))
    ast.parse(text)
    assert {f.code for f in findings} == {"TFM101", "TFM725", "TFM763", "TFM850"}, findings
    assert "STEPS" in text and "supervisor" not in text.lower() and "session" not in text
    assert ('"/tmp/run"' in text) and 'print("trained")' in text
    if loop != "a count of its own":
        assert "steps = STEPS - model.optimizer.iterations.numpy()" in text


def test_a_supervisor_without_a_saver_has_no_checkpoints() -> None:
    text, findings = run(LOCAL.replace("saver=tf.train.Saver()", "saver=None"))
    assert "/tmp/run" not in text and "heckpoint" not in text and "model.fit(" in text, text
    assert {f.code for f in findings} == {"TFM101", "TFM725", "TFM763"}, findings


def test_a_limit_that_is_computed_before_the_session() -> None:
    text = LOCAL.replace("    dataset =", "    limit = STEPS * 2\n    dataset =").replace(
        "step < STEPS", "step < limit"
    )
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "    limit = STEPS * 2\n" in new and "steps = limit - model.optimizer" in new


def test_what_people_write_around_the_loop() -> None:
    """A global step of their own, counted by position; the time."""
    text = LOCAL.replace("tf.train.get_or_create_global_step()", "tf.Variable(0, trainable=False)")
    text = text.replace("loss, global_step=global_step", "loss, global_step")
    text = text.replace("        step = 0\n", "        step = 0\n        start = time.time()\n").replace(
        "print(step, shown)", "print(step, shown, time.time() - start)"
    )
    new, findings = run(text.replace("import tensorflow", "import time\nimport tensorflow"))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "global_step" not in new and "time.time" not in new


def test_servers_of_a_supervisor() -> None:
    text, findings = run(CLUSTER)
    ast.parse(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "ParameterServerStrategy" in text and "100" in text and "upervisor" not in text


REFUSED = {
    "weights of its own": (
        "global_step=global_step,\n    ",
        "global_step=global_step, init_fn=restore,\n    ",
        "TFM733",
    ),
    "an initialization that does more": (
        "init_op = tf.global_variables_initializer()",
        "init_op = tf.group(tf.global_variables_initializer(), tf.assign(global_step, 7))",
        "TFM733",
    ),
    "one step more": ("step < STEPS", "step <= STEPS", "TFM733"),
    "another count": ("step < STEPS", "shown < STEPS", "TFM733"),
    "a limit that changes": ("step < STEPS:", "step < limit:\n            limit = 9", "TFM733"),
    "a limit that is said inside": (
        f"step = 0\n        {WHILE}",
        f"step = 0\n        limit = STEPS * 2\n        {WHILE.replace('STEPS', 'limit')}",
        "TFM733",
    ),
    "a saver of some": ("tf.train.Saver()", "tf.train.Saver(tf.trainable_variables())", "TFM733"),
    "a saver that may be none": ("saver=tf.train.Saver()", "saver=make_saver()", "TFM733"),
    "no checkpoints now and then": (
        "global_step=global_step,\n    ",
        "save_model_secs=0 if STEPS < 3 else 60,\n    ",
        "TFM733",
    ),
    "checkpoints that are only read": ("global_step=global_step,\n    ", "save_model_secs=0,\n    ", "TFM733"),
    "another reason": ("not supervisor.should_stop() and", "not finished() and", "TFM733"),
    "steps that are not counted": (", global_step=global_step)\n    init", ")\n    init", "TFM733"),
    "a session without a block": (
        "with supervisor.managed_session() as session:\n        step = 0",
        "session = supervisor.prepare_or_wait_for_session()\n    if True:\n        step = 0",
        "TFM760",
    ),
    "two sessions": (
        'print("trained")',
        "with supervisor.managed_session() as session:\n        session.run(loss)",
        "TFM733",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_another_training_is_refused(what: str) -> None:
    before, after, code = REFUSED[what]
    assert before in LOCAL
    program = LOCAL.replace(before, after)
    text, findings = run(program)
    assert text == program
    told = [f for f in findings if f.severity is Severity.MANUAL]
    assert code in [f.code for f in told], findings
    assert all(f.line > 1 for f in told), told


def test_workers_that_train_in_step_want_another_session() -> None:
    wrapped = "tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)"
    changed = CLUSTER.replace("tf.train.GradientDescentOptimizer(0.1)", wrapped)
    text, findings = run(changed)
    assert text == changed
    assert any(f.code == "TFM764" and "MonitoredTrainingSession(master=" in f.message for f in findings), findings


def test_steps_of_each_worker_are_told_what_counts_all() -> None:
    changed = CLUSTER.replace("while not supervisor.should_stop():", "for _ in range(9):").replace(
        "            if step >= 100:\n                break\n", ""
    )
    text, findings = run(changed)
    assert text == changed
    assert any("`while step < n:`" in f.message and "StopAtStepHook" not in f.message for f in findings), findings


def test_workers_that_are_fed_are_told_of_datasets() -> None:
    changed = CLUSTER.replace("[train_op, global_step])", "[train_op, global_step], feed_dict={x: 1, y: 2})")
    text, findings = run(changed)
    assert text == changed
    assert any(f.code == "TFM732" and "from_tensor_slices" in f.message for f in findings), findings
