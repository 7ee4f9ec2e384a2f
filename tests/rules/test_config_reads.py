"""A RunConfig that the program reads for more than the Estimator: its task, and what it was given itself."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run

BOTH = (
    "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=5), "
    "tf.estimator.EvalSpec(input_fn, steps=2))"
)


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def text_of(reads: str, given: str = "model_dir='/tmp/m'", before: str = "", kind: str = "estimator") -> str:
    made = f"{before}config = tf.{kind}.RunConfig({given})\n{reads}\n"
    text = program(driver=BOTH).replace("estimator = ", f"{made}estimator = ", 1)
    return text.replace("Estimator(model_fn, ", "Estimator(model_fn, config=config, ")


TASK = """\
class ClusterTask:
    \"""What TF_CONFIG says of this process, under the names of a RunConfig.\"""

    def __init__(self):
        config = json.loads(os.environ.get("TF_CONFIG", "{}"))
        task = config.get("task", {})
        cluster = config.get("cluster", {})
        self.is_chief = not cluster or task.get("type") in ("chief", "master")


"""


@pytest.mark.parametrize(
    "reads",
    [
        "print(config.is_chief)",
        "if config.is_chief:\n    tf.gfile.MakeDirs('/tmp/m')",
        "if not config.is_chief:\n    print('a worker')\nelse:\n    with open('/tmp/m') as file:\n        print(file)",
        "tf.logging.info('chief: %s', config.is_chief)",
    ],
)
def test_the_chief(reads: str) -> None:
    new, findings = run(text_of(reads))
    assert manual(findings) == [] and "TFM178" in [f.code for f in findings]
    assert TASK in new and "config = ClusterTask()\n" in new and "RunConfig(" not in new
    assert reads.splitlines()[0].replace("tf.logging", "tf.get_logger()") in new
    assert "import json\n" in new and "import os\n" in new


def test_what_is_told_of_the_cluster() -> None:
    reads = "print(config.task_type, config.task_id, config.num_worker_replicas, config.cluster_spec.as_dict())"
    new, findings = run(text_of(reads))
    assert manual(findings) == [] and reads in new
    for line in (
        'self.task_type = task.get("type", "worker")',
        'self.task_id = int(task.get("index", 0))',
        "self.num_worker_replicas = 0 if evaluates else workers if cluster else 1",
        "self.cluster_spec = tf.train.ClusterSpec({} if evaluates else cluster)",
    ):
        assert line in new


def test_what_it_was_given_is_written_where_it_is_read() -> None:
    reads = "print(os.path.join(config.model_dir, 'x'), config.tf_random_seed)"
    new, findings = run(text_of(f"import os\n{reads}", "model_dir=FOLDER, tf_random_seed=7", "FOLDER = '/tmp/m'\n"))
    assert manual(findings) == [] and "TFM178" not in [f.code for f in findings]
    assert "print(os.path.join(FOLDER, 'x'), 7)" in new and "ClusterTask" not in new


REFUSED = {
    "a number that counts": text_of("steps = 100 // config.num_worker_replicas"),
    "a task's number": text_of("shard = config.task_id"),
    "a test by the number of workers": text_of("if config.num_worker_replicas > 1:\n    print(1)"),
    "a branch that binds a name": text_of("if config.is_chief:\n    shard = 0"),
    "a branch that drives": text_of("if config.is_chief:\n    helper.train()"),
    "a branch that hands the Estimator on": text_of("") + "if config.is_chief:\n    export(estimator)\n",
    "a branch that ends": text_of("if not config.is_chief:\n    exit()"),
    "in a function": text_of("def tell():\n    print(config.is_chief)"),
    "in a lambda": text_of("tell = lambda: print(config.is_chief)"),
    "a value": text_of("first = config.is_chief"),
    "before it is made": text_of("", before="print(config.task_type)\n"),
    "the address of a session": text_of("print(config.master)"),
    "what it was not given": text_of("print(config.tf_random_seed)"),
    "what is computed": text_of("print(config.model_dir)", "model_dir='/tmp/' + 'm'"),
    "what has changed": text_of("folder = 'b'\nprint(config.model_dir)", "model_dir=folder", "folder = 'a'\n"),
    "given to a function": text_of("tell(config)"),
    "given with its model_dir": text_of("tell(config, config.model_dir)"),
    "beside a strategy": text_of("print(config.is_chief)", "train_distribute=tf.distribute.MirroredStrategy()"),
    "of contrib.learn": text_of("print(config.is_chief)", kind="contrib.learn"),
    "two of them": text_of("config = config.replace(tf_random_seed=2)\nprint(config.is_chief)"),
    "a method of something else": text_of("config.is_chief.log(3)"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    new, findings = run(REFUSED[why])
    assert new == REFUSED[why] and "TFM108" in manual(findings), findings


@pytest.mark.parametrize(
    ("reads", "told"),
    [
        ("print(config.master)", "sessions"),
        ("x = config.num_worker_replicas", "the chief does not train"),
        ("def tell():\n    print(config.is_chief)", "in a function"),
    ],
)
def test_what_is_in_the_way_is_told(reads: str, told: str) -> None:
    _, findings = run(text_of(reads))
    assert any(f.code == "TFM108" and told in f.message for f in findings), findings
