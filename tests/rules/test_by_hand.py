"""Programs that train by hand in a MonitoredTrainingSession."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

LOCAL = """\
import tensorflow as tf


def train(points, targets, rate):
    dataset = tf.data.Dataset.from_tensor_slices((points, targets))
    dataset = dataset.repeat().batch(8)
    x, y = dataset.make_one_shot_iterator().get_next()
    units = 4
    hidden = tf.layers.dense(x, units)  # how wide it is
    output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(y, output)
    error = tf.reduce_mean(tf.abs(y - output))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=100)]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            _, shown = session.run([train_op, error])
            print("error", shown)
    print("trained")
"""

CLUSTER = """\
import tensorflow as tf

FLAGS = tf.app.flags.FLAGS


def points():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)


def main(_):
    hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    is_chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        x, y = points().make_one_shot_iterator().get_next()
        loss = tf.losses.mean_squared_error(y, tf.layers.dense(x, 1))
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    hooks = [tf.train.StopAtStepHook(last_step=100)]
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=is_chief, hooks=hooks) as session:
        while not session.should_stop():
            session.run(train_op)


if __name__ == "__main__":
    tf.app.run()
"""

WRAPPED = """\
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate={count})
        train_op = optimizer"""
SYNCHRONOUS = CLUSTER.replace("        train_op = optimizer", WRAPPED.format(count="len(hosts)")).replace(
    "(last_step=100)]", "(last_step=100), optimizer.make_session_run_hook(is_chief)]"
)


def test_the_graph_becomes_a_model_and_the_loop_fit() -> None:
    text, findings = run(LOCAL)
    assert [f.code for f in findings if f.severity is not Severity.MIGRATED] == ["TFM725", "TFM763"]
    ast.parse(text)
    assert "def train_input_fn():\n        dataset = tf.data.Dataset.from_tensor_slices((points, targets))\n" in text
    assert "        return dataset.repeat().batch(8)\n" in text
    # What only the model reads moves there, what the caller gives is read from around it.
    assert "    def model_fn(x):\n        units = 4\n" in text and "  # how wide it is\n" in text
    assert "learning_rate=rate" in text and "train_input_fn(), steps_per_epoch=100)" in text
    assert text.endswith('    print("trained")\n')
    for gone in ("session", "error", "hooks", "compat.v1", "global_step"):
        assert gone not in text, gone


def test_a_loop_of_so_many_steps() -> None:
    program = LOCAL.replace("    hooks = [tf.train.StopAtStepHook(last_step=100)]\n", "").replace("hooks=hooks", "")
    text, _ = run(program.replace("while not session.should_stop()", "for i in range(7)"))
    assert "train_input_fn(), steps_per_epoch=7)" in text


def test_a_cluster_becomes_parameter_servers_whose_first_worker_coordinates() -> None:
    text, findings = run(CLUSTER)
    assert {f.code for f in findings} == {"TFM101", "TFM706", "TFM725"}
    ast.parse(text)
    assert "steps_per_execution=5," in text and "    set_train_function(model)\n" in text
    assert "    strategy = make_strategy(cluster, FLAGS.job_name, FLAGS.task_index)\n" in text
    assert "tf.distribute.ParameterServerStrategy(resolver)" in text and "steps_per_epoch=100" in text
    assert "replica_device_setter" not in text and "is_chief" not in text and "server = " not in text


def test_servers_that_end_after_they_have_waited() -> None:
    joins = "        server.join()\n"
    assert joins in CLUSTER
    for behind in ("return", "raise SystemExit(0)"):
        assert run(CLUSTER.replace(joins, f"{joins}        {behind}\n"))[0] == run(CLUSTER)[0]
    assert "TFM762" in {f.code for f in run(CLUSTER.replace(joins, f"        prepare()\n{joins}"))[1]}


def test_synchronous_replicas_become_mirrored_workers() -> None:
    text, findings = run(SYNCHRONOUS)
    assert {f.code for f in findings} == {"TFM101", "TFM725"}
    ast.parse(text)
    assert "    strategy = make_strategy(cluster, FLAGS.task_index)\n" in text
    assert "MultiWorkerMirroredStrategy(cluster_resolver=resolver)" in text
    assert '    if FLAGS.job_name == "ps":\n        return  #' in text
    assert "SyncReplicas" not in text and "make_session_run_hook" not in text


STEPS = "        while not session.should_stop():\n            _, shown = session.run([train_op, error])\n"
ENDS = {
    "the global step": """\
        while not session.should_stop() and n < 50:
            _, shown, n = session.run([train_op, error, step])
""",
    "the global step, inside": """\
        while not session.should_stop():
            _, n = session.run((train_op, step))
            if n >= 50:
                break
            shown = n
""",
}
COUNTED = """\
        n = 0
        while not session.should_stop() and n < 50:
            _, shown = session.run([train_op, error])
            n += 1
"""
HOOK = "    hooks = [tf.train.StopAtStepHook(last_step=100)]\n"


@pytest.mark.parametrize("how", ENDS)
def test_a_loop_that_ends_by_the_global_step(how: str) -> None:
    """The hook that was given stops, too: whichever comes first."""
    program = LOCAL.replace(STEPS, ENDS[how]).replace("    hooks =", "    n = 0\n    hooks =")
    both, findings = run(program)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "callbacks=[StopAtStep(last_step=50), StopAtStep(last_step=100)]" in both
    for hooks in ("[]", "[tf.train.LoggingTensorHook([loss], 10)]"):
        text, _ = run(program.replace("[tf.train.StopAtStepHook(last_step=100)]", hooks))
        assert "train_input_fn(), steps_per_epoch=50)" in text, text


def test_a_loop_that_counts_its_own_turns() -> None:
    text, findings = run(LOCAL.replace(STEPS, COUNTED).replace(HOOK, "").replace("hooks=hooks", ""))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "train_input_fn(), steps_per_epoch=50)" in text
    wrong = {
        "from one": ("n = 0", "n = 1"),
        "two at a time": ("n += 1", "n += 2"),
        "sometimes": ("            n += 1", "            if shown > 1:\n                n += 1"),
        "one more": ("n < 50", "n <= 50"),
        "twice": ("            n += 1", "            n += 1\n            n += 1"),
        "another hook": ("session(hooks", "session(hooks"),
    }
    for name, (before, after) in wrong.items():
        changed = LOCAL.replace(STEPS, COUNTED.replace(before, after))
        if name != "another hook":
            changed = changed.replace(HOOK, "").replace("hooks=hooks", "")
        text, findings = run(changed)
        assert text == changed, name
        assert {"TFM760", "TFM110"} & {f.code for f in findings if f.severity is Severity.MANUAL}, name


def test_a_count_of_each_worker_is_not_that_of_all() -> None:
    own = "        n = 0\n        while not session.should_stop() and n < 9:\n            n += 1\n            session"
    changed = CLUSTER.replace("        while not session.should_stop():\n            session", own)
    text, findings = run(changed)
    assert text == changed and "TFM762" in {f.code for f in findings}


SCAFFOLDS = {
    "keeps": "tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=3))",
    "initializes": "tf.train.Scaffold(init_op=tf.global_variables_initializer())",
    "named": "scaffold",
}


@pytest.mark.parametrize("how", SCAFFOLDS)
def test_a_scaffold_that_keeps_checkpoints_is_left_out(how: str) -> None:
    before = "    saver = tf.train.Saver(max_to_keep=3)\n    scaffold = tf.train.Scaffold(saver=saver)\n"
    program = LOCAL.replace("    hooks =", f"{before}    hooks =")
    text, findings = run(program.replace("hooks=hooks", f"hooks=hooks, scaffold={SCAFFOLDS[how]}"))
    assert {f.code for f in findings if f.severity is not Severity.MIGRATED} == {"TFM725", "TFM763", "TFM854"}
    assert "caffold" not in text and "Saver" not in text


REFUSED = {
    "fed batches": (LOCAL, "session.run([train_op, error])", "session.run([train_op, error], {x: []})", "TFM732"),
    "another iterator": (LOCAL, "make_one_shot", "make_initializable", "TFM761"),
    "one name for a batch": (LOCAL, "x, y = dataset", "x = dataset", "TFM761"),
    "another end": (LOCAL, 'print("error", shown)', "break", "TFM760"),
    "a step of its own": (LOCAL, 'print("error", shown)', "session.run(error)", "TFM760"),
    "what is done between steps": (LOCAL, 'print("error", shown)', "export(shown)", "TFM760"),
    "what is used later": (LOCAL, 'print("trained")', "return shown", "TFM760"),
    "a tensor used later": (LOCAL, 'print("trained")', "return error", "TFM760"),
    "a value that changes": (LOCAL, "    hooks = [", "    rate = 1.0\n    print(rate)\n    hooks = [", "TFM760"),
    "another condition": (LOCAL, "should_stop()", "should_stop() and points", "TFM760"),
    "a scaffold": (LOCAL, "hooks=hooks", "hooks=hooks, scaffold=points", "TFM760"),
    "a scaffold that restores": (LOCAL, "hooks=hooks", "hooks=hooks, scaffold=tf.train.Scaffold(init_fn=f)", "TFM855"),
    "a saver of some": (
        LOCAL,
        "hooks=hooks",
        "hooks=hooks, scaffold=tf.train.Scaffold(saver=tf.train.Saver([units]))",
        "TFM855",
    ),
    "no name": (LOCAL, " as session:", ":\n        session = None", "TFM760"),
    "a loss in a block": (
        LOCAL,
        "    error =",
        '    with tf.name_scope("train"):\n        loss = 2.0 * loss\n        saver = tf.train.Saver()\n    error =',
        "TFM760",
    ),
    "an operation that changes": (LOCAL, "tf.reduce_mean(tf.abs(y - output))", "tf.assign_add(units, 1.0)", "TFM760"),
    "a step under a condition": (
        LOCAL,
        "            _, shown =",
        "            if points:\n                _, shown =",
        "TFM760",
    ),
    "a result that is kept": (LOCAL, "_, shown =", "_, rate.shown =", "TFM760"),
    "a number inside": (LOCAL, "while not session.should_stop()", "n = 9\n        for i in range(n)", "TFM760"),
    "an else": (
        LOCAL,
        '    print("trained")',
        '        else:\n            print("over")\n    print("trained")',
        "TFM760",
    ),
    "a rate by workers": (CLUSTER, "Optimizer(0.1)", "Optimizer(0.1 * len(hosts))", "TFM765"),
    "a server that does more": (
        CLUSTER,
        "        server.join()",
        "        print(hosts)\n        server.join()",
        "TFM762",
    ),
    "a placement": (CLUSTER, "(cluster=cluster)", "(cluster=cluster, ps_strategy=best)", "TFM762"),
    "other jobs": (CLUSTER, '"worker": hosts', '"worker": hosts, "master": hosts', "TFM762"),
    "steps of each worker": (CLUSTER, "while not session.should_stop()", "for i in range(9)", "TFM762"),
    "no number of steps": (CLUSTER, "tf.train.StopAtStepHook(last_step=100)", "", "TFM762"),
    "shards of the data": (CLUSTER, "points().make", "points().shard(2, FLAGS.task_index).make", "TFM765"),
    "data of a worker": (CLUSTER, "[[2.0]]", "[[2.0 * FLAGS.task_index]]", "TFM765"),
    "a model for each worker": (CLUSTER, "dense(x, 1)", "dense(x, 1 + FLAGS.task_index)", "TFM765"),
    "backup workers": (SYNCHRONOUS, "len(hosts)", "len(hosts) - 1", "TFM764"),
    "a number of replicas": (SYNCHRONOUS, "len(hosts)", "2", "TFM764"),
    "averages": (SYNCHRONOUS, "len(hosts)", "len(hosts), variable_averages=best", "TFM764"),
}


def test_arrays_that_had_the_names_of_the_batch_are_no_part_of_the_model() -> None:
    program = LOCAL.replace("points, targets, rate", "rate").replace(
        "    dataset = tf.data.Dataset.from_tensor_slices((points, targets))\n",
        "    x, y = [[1.0]], [[2.0]]\n    dataset = tf.data.Dataset.from_tensor_slices((x, y))\n",
    )
    text, _ = run(program)
    assert "    def train_input_fn():\n        x, y = [[1.0]], [[2.0]]\n" in text
    assert "    def model_fn(x):\n        units = 4\n" in text


def test_a_seed_and_a_folder_before_the_training_stay() -> None:
    before = '    tf.set_random_seed(3)\n    tf.gfile.MakeDirs("/tmp/run")\n    units = 4\n'
    text, findings = run(LOCAL.replace("    units = 4\n", before))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert '    tf.random.set_seed(3)\n    tf.io.gfile.makedirs("/tmp/run")\n' in text
    assert text.index("set_seed") < text.index("def train_input_fn")


def test_a_device_setter_may_have_a_name() -> None:
    setter = "    setter = tf.train.replica_device_setter(cluster=cluster)\n    with tf.device(setter):\n"
    named = CLUSTER.replace("    with tf.device(tf.train.replica_device_setter(cluster=cluster)):\n", setter)
    text, _ = run(named)
    assert text == run(CLUSTER)[0]


def test_what_follows_the_loop_stays() -> None:
    text, _ = run(LOCAL.replace('    print("trained")\n', '        print("all")\n    print("trained")\n'))
    assert text.endswith('steps_per_epoch=100)\n    print("all")\n    print("trained")\n')


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_known_is_refused(what: str) -> None:
    program, before, after, code = REFUSED[what]
    assert before in program
    changed = program.replace(before, after)
    text, findings = run(changed)
    assert text == changed
    assert code in [f.code for f in findings if f.severity is Severity.MANUAL], findings


def test_a_cluster_is_what_the_program_says() -> None:
    text, findings = run(CLUSTER, strategy="one-device")
    assert text == CLUSTER and "TFM762" in [f.code for f in findings]


def test_a_session_that_does_not_train_stays_and_what_is_gone_is_told() -> None:
    text = LOCAL.replace("train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)", "")
    new, findings = run(text)
    assert new == text
    assert {finding.code for finding in findings} == {"TFM270"}


def test_workers_that_may_train_in_step_have_to_choose() -> None:
    line = "optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=len(hosts))"
    assert line in SYNCHRONOUS
    for chosen in (
        SYNCHRONOUS.replace(line, f"if FLAGS.sync:\n            {line}"),
        SYNCHRONOUS.replace(line, f"{line} if FLAGS.sync else optimizer"),
    ):
        text, findings = run(chosen)
        assert text == chosen
        assert any(f.code == "TFM764" and "remove the `if`" in f.message for f in findings), findings


def test_jobs_of_the_environment_are_written_out_as_the_finding_says() -> None:
    spec = '{"ps": FLAGS.ps_hosts.split(","), "worker": hosts}'
    config = '    told = json.loads(os.environ["TF_CONFIG"])\n    hosts ='
    program = CLUSTER.replace("    hosts =", config).replace(
        "import tensorflow", "import json\nimport os\n\nimport tensorflow"
    )
    program = program.replace("FLAGS.job_name", 'told["task"]["type"]').replace(
        "FLAGS.task_index", 'told["task"]["index"]'
    )
    wanted = '{"ps": told["cluster"]["ps"], "worker": told["cluster"]["worker"]}'
    text, findings = run(program.replace(spec, 'told["cluster"]'))
    assert any(f.code == "TFM762" and f"ClusterSpec({wanted})" in f.message for f in findings), findings
    text, findings = run(program.replace(spec, wanted))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert 'make_strategy(cluster, told["task"]["type"], told["task"]["index"])' in text
    shard = program.replace(spec, wanted).replace("points().make", 'points().shard(2, told["task"]["index"]).make')
    assert "TFM765" in {f.code for f in run(shard)[1]}
    _, findings = run(program.replace(spec, 'json.loads(os.environ["TF_CONFIG"])["cluster"]'))
    assert any('ClusterSpec({"ps": jobs["ps"]' in f.message for f in findings), findings
