"""Data and models that differ by the task of a process, which on parameter servers one process makes for all."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project

BOTH = (
    "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec({feed}, max_steps=5), "
    "tf.estimator.EvalSpec(input_fn, steps=2))"
)
HEAD = "import functools\nimport json\nimport os\n"
CONFIG = 'json.loads(os.environ.get("TF_CONFIG", "{}"))'
FLAGS = 'tf.app.flags.DEFINE_integer("task_index", 0, "")\nFLAGS = tf.app.flags.FLAGS\n\n\n'


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def text_of(lines: str = "", chain: str = "", before: str = "", feed: str = "input_fn", network: str = "") -> str:
    """The program whose input function has some lines and goes on in a chain of methods."""
    text = program(driver=BOTH.format(feed=feed), **({"network": network} if network else {}))
    made = "return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]]))"
    assert made in text
    lines = "".join(f"{line}\n    " for line in lines.splitlines())
    text = text.replace(made, f"{lines}{made}{chain}")
    return HEAD + text.replace("def input_fn", f"{before}def input_fn", 1)


READER = """\
class Reader(object):
    def __init__(self, i):
        self.i = {index}

    def read(self):
        return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).shard(2, self.i).batch(1)


"""
BUILT = """\
def make(index):
    def read():
        return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).shard(2, index).batch(1)

    return read


"""
TOLD = [
    text_of(f"c = {CONFIG}", '.shard(len(c["cluster"]["worker"]), c["task"]["index"])'),
    text_of(f"task = {CONFIG}.get('task', {{}})", ".shard(2, task.get('index', 0))"),
    text_of(f"n, i = 2, int({CONFIG}['task']['index'])", ".shard(n, i)"),
    text_of("", ".shard(2, FLAGS.task_index)", FLAGS),
    text_of("", ".shuffle(9, seed=FLAGS.task_index)", FLAGS),
    text_of("", ".shard(2, INDEX)", f"INDEX = {CONFIG}['task']['index']\n\n\n"),
    text_of("", ".shard(2, INDEX)", f"C = {CONFIG}\nif C:\n    INDEX = C['task']['index']\nelse:\n    INDEX = 0\n\n\n"),
    text_of("", ".shard(2, index())", f"def index():\n    return {CONFIG}['task']['index']\n\n\n"),
    text_of("", ".shard(2, index(C))", f"C = {CONFIG}\n\n\ndef index(c):\n    return c['task']['index']\n\n\n"),
    text_of("if FLAGS.task_index == 0:\n    print(1)\n    tf.set_random_seed(1)", "", FLAGS),
    text_of("n = 3 if FLAGS.task_index else 4", ".repeat(n)", FLAGS),
    text_of("name = 'part-%d' % FLAGS.task_index\nds = tf.data.TFRecordDataset(name)", "", FLAGS),
    text_of("", ".shard(2, int(os.environ['SLURM_PROCID']))"),
    text_of("", ".shard(2, int(os.getenv('RANK', 0)))"),
    text_of("", ".shard(2, tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id)"),
    text_of("if os.environ['TF_CONFIG'] and FLAGS.is_chief:\n    tf.set_random_seed(1)", "", FLAGS),
    text_of("", ".shuffle(9)", FLAGS + "if FLAGS.task_index:\n    SIZE = 3\nelse:\n    SIZE = 4\n\n\n").replace(
        ".shuffle(9)", ".shuffle(SIZE)"
    ),
    text_of("files = sorted(['a', 'b'])[FLAGS.task_index::2]\nds = tf.data.TFRecordDataset(files)", "", FLAGS),
    text_of("", ".shard(*where())", f"def where():\n    c = {CONFIG}\n    return 2, c['task']['index']\n\n\n"),
    text_of(
        "", ".shard(2, I)", f"I = 0\n\n\ndef set_up():\n    global I\n    I = {CONFIG}['task']['index']\n\n\nset_up()\n"
    ),
    text_of("", ".shard(2, HOW['index'])", "HOW = {}\nHOW['index'] = FLAGS.task_index\n".join([FLAGS, ""])),
    text_of(before=FLAGS + READER.format(index="i") + "reader = Reader(FLAGS.task_index)\n", feed="reader.read"),
    text_of(before=READER.format(index=CONFIG + "['task']['index']") + "reader = Reader(0)\n", feed="reader.read"),
    text_of(before=FLAGS + BUILT, feed="make(FLAGS.task_index)"),
    # the function is given it
    text_of("", ".shard(2, i)", FLAGS, "lambda: input_fn(FLAGS.task_index)").replace("input_fn():", "input_fn(i=0):"),
    text_of("", ".shard(2, i)", FLAGS, "functools.partial(input_fn, i=FLAGS.task_index)").replace(
        "input_fn():", "input_fn(i=0):"
    ),
    # the model is one, too
    text_of(before=FLAGS, network="net = tf.nn.dropout(net, 0.5, seed=FLAGS.task_index)"),
    text_of(before=FLAGS, network='net = net * params["index"]').replace(
        'params={"rate": 0.1}', 'params={"rate": 0.1, "index": FLAGS.task_index}'
    ),
]


@pytest.mark.parametrize("text", TOLD)
@pytest.mark.parametrize("strategy", ["auto", "parameter-server"])
def test_what_differs_by_task_is_refused_where_servers_may_be(text: str, strategy: str) -> None:
    new, findings = run(text, strategy)
    assert new == text and "TFM765" in manual(findings)
    (told,) = [f for f in findings if f.code == "TFM765"]
    assert "let every worker read all data" in told.message
    assert ("`--strategy multi-worker-mirrored`" in told.message) is (strategy == "auto")


@pytest.mark.parametrize("text", TOLD[:8])
@pytest.mark.parametrize("strategy", ["multi-worker-mirrored", "one-device"])
def test_every_process_of_its_own_data_reads_its_own_task(text: str, strategy: str) -> None:
    new, findings = run(text, strategy)
    assert manual(findings) == [] and new != text and "model.fit(" in new


@pytest.mark.parametrize(
    "text",
    [
        text_of(f"c = {CONFIG}\nn = len(c.get('cluster', {{}}).get('worker', [])) or 1", ".repeat(n)"),
        text_of(f"c = {CONFIG}\nif c:\n    print(c['task']['index'])", ".repeat(2)"),
        text_of(
            f"n = len({CONFIG}['cluster']['worker'])",
            ".repeat(n)",
            FLAGS + "os.environ['TF_CONFIG'] = json.dumps({'task': {'index': FLAGS.task_index}})\n\n\n",
        ),
        text_of("print('task', FLAGS.task_index)", "", FLAGS),
        text_of("tf.logging.info('task %d', FLAGS.task_index)", "", FLAGS),
        text_of("if FLAGS.task_index == 0:\n    print('the first')\nelse:\n    pass", "", FLAGS),
        text_of("n = 1 if 'TF_CONFIG' in os.environ else 2", ".repeat(n)"),
        text_of(f"n = 1 if {CONFIG}.get('task', {{}}).get('type') == 'evaluator' else 2", ".repeat(n)"),
        # a name of another function, which means something else there
        text_of(
            "index = 3", ".repeat(index)", f"def show():\n    index = {CONFIG}['task']['index']\n    print(index)\n\n\n"
        ),
        # what evaluates is made by the evaluator itself
        text_of(before=FLAGS).replace("EvalSpec(input_fn", "EvalSpec(lambda: input_fn().shard(1, FLAGS.task_index)"),
    ],
)
def test_what_is_the_same_for_all_workers_stays(text: str) -> None:
    new, findings = run(text)
    assert manual(findings) == [] and "make_strategy" in new


def test_a_function_of_another_file() -> None:
    data = "import json\nimport os\n\n\ndef index():\n    return json.loads(os.environ['TF_CONFIG'])['task']['index']\n"
    text = "from data import index\n" + text_of("", ".shard(2, index())")
    results = run_project({"train.py": text, "data.py": data})
    assert results["train.py"][0] == text and "TFM765" in manual(results["train.py"][1])
    texts = {
        "train.py": "from reader import read\n" + text_of(feed="lambda: read()"),
        "reader.py": "import tensorflow as tf\nfrom index import I\n\n\ndef read():\n    d = tf.data.Dataset.range(9)\n"
        "    return d.shard(2, I)\n",
        "index.py": "import tensorflow as tf\n\nI = tf.app.flags.FLAGS.task_index\n",
    }
    assert "TFM765" in [f.code for _, findings in run_project(texts).values() for f in findings]


def test_a_share_by_the_input_context_of_a_strategy_of_servers() -> None:
    lines = "n, i = 1, 0\nif context:\n    n, i = context.num_input_pipelines, context.input_pipeline_id"
    text = text_of(f"context = input_context\n{lines}", ".shard(n, i).repeat()")
    text = text.replace("def input_fn():", "def input_fn(input_context=None):")
    with_one = 'params={"rate": 0.1}, config=tf.estimator.RunConfig(train_distribute=tf.distribute.%s())'
    on_servers = text.replace('params={"rate": 0.1}', with_one % "experimental.ParameterServerStrategy")
    new, findings = run(on_servers)
    (told,) = [f for f in findings if f.code == "TFM765"]
    assert new == on_servers and "`context.input_pipeline_id` differs by task" in told.message
    # mirrored workers have one each, and an Estimator without a strategy had none
    new, findings = run(text.replace('params={"rate": 0.1}', with_one % "MultiWorkerMirroredStrategy"))
    assert manual(findings) == [] and new != text
    for strategy in ("auto", "parameter-server"):
        new, findings = run(text, strategy)
        assert manual(findings) == [] and new != text
