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
        "if config.is_chief and not tf.gfile.Exists('/tmp/m'):\n    tf.gfile.MakeDirs('/tmp/m')",
        "if config.is_chief:\n    with open('/tmp/m', 'w') as file:\n        file.write('chief: {}'.format(len('a')))",
        "if config.is_chief:\n    try:\n        shutil.rmtree('/tmp/m')\n    except OSError as e:\n        print(e)",
        "if config.is_chief:\n    os.makedirs(os.path.join('/tmp', 'm'))",
        "if config.is_chief:\n    logger.warning('the chief of %s', str(os.getpid()))",
        "logging.info(f'chief: {config.is_chief}')",
        "absl_logging.info('chief: %s' % config.is_chief)",
        "logger.info('chief: %s', config.is_chief)",
        "logging.getLogger(__name__).info('chief: %s', repr(config.is_chief))",
    ],
)
def test_the_chief(reads: str) -> None:
    imports = "import logging\nimport os\nimport shutil\nfrom absl import logging as absl_logging\n"
    text = imports + text_of(reads, before="logger = logging.getLogger(__name__)\n")
    new, findings = run(text)
    assert manual(findings) == [] and "TFM178" in [f.code for f in findings]
    assert TASK in new and "config = ClusterTask()\n" in new and "RunConfig(" not in new
    told = (
        reads.splitlines()[0].replace("tf.logging", "tf.get_logger()").replace("tf.gfile.Exists", "tf.io.gfile.exists")
    )
    assert told in new
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


@pytest.mark.parametrize(
    ("given", "value", "reads", "expected"),
    [
        ("save_checkpoints_steps", "60", "config.save_checkpoints_steps.bit_length()", "(60).bit_length()"),
        ("save_checkpoints_steps", "60", "2 * config.save_checkpoints_steps", "2 * 60"),
        ("tf_random_seed", "-3", "config.tf_random_seed ** 2", "(-3) ** 2"),
        ("tf_random_seed", "-3", "abs(config.tf_random_seed)", "abs(-3)"),
        ("model_dir", "'/tmp/m'", "config.model_dir.upper()", "'/tmp/m'.upper()"),
        ("model_dir", "FOLDER", "f'{config.model_dir}/x'", "f'{FOLDER}/x'"),
        ("model_dir", "'/tmp/m'", "1 if config.is_chief else(config.model_dir)", "else('/tmp/m')"),
    ],
)
def test_a_value_stays_one_expression(given: str, value: str, reads: str, expected: str) -> None:
    new, findings = run(text_of(f"print({reads})", f"{given}={value}", "FOLDER = '/tmp/m'\n"))
    assert manual(findings) == [] and expected in new
    compile(new, "new.py", "exec")


STEPS = "save_checkpoints_steps=3, model_dir='/tmp/m'"
IN_CALLS = {
    "the folder of the Estimator": (
        text_of("").replace("config=config", "model_dir=config.model_dir, config=config"),
        "model_dir = '/tmp/m'\n",
    ),
    "a parameter": (
        text_of("").replace('{"rate": 0.1}', '{"dir": config.model_dir}'),
        """model_fn(make_inputs(input_fn()), {"dir": '/tmp/m'})""",
    ),
    "the steps of a TrainSpec": (
        text_of("", STEPS).replace("max_steps=5", "max_steps=5 * config.save_checkpoints_steps"),
        "5 * 3",
    ),
    "the steps of a training": (
        text_of("", STEPS).replace(BOTH, "estimator.train(input_fn, steps=config.save_checkpoints_steps)"),
        "input_fn().take(3)",
    ),
    "the steps, by a name": (
        text_of("", "save_checkpoints_steps=every", "every = 3\n").replace(
            BOTH, "estimator.train(input_fn, steps=config.save_checkpoints_steps)"
        ),
        "input_fn().take(every)",
    ),
    "the steps, as a fraction": (
        text_of("", "save_checkpoints_steps=3.0").replace(
            BOTH, "estimator.train(input_fn, steps=config.save_checkpoints_steps)"
        ),
        "input_fn().take(3)",
    ),
    "the steps of an Estimator before, which has no RunConfig": (
        text_of("other = tf.estimator.Estimator(model_fn, params={'rate': 0.2})", STEPS)
        .replace(
            "Estimator(model_fn, config=config, params={'rate': 0.2})", "Estimator(model_fn, params={'rate': 0.2})"
        )
        .replace(BOTH, f"other.train(input_fn, steps=config.save_checkpoints_steps)\n{BOTH}"),
        "input_fn().take(3)",
    ),
}


@pytest.mark.parametrize("where", IN_CALLS)
def test_what_it_was_given_is_read_in_a_call_that_is_rewritten(where: str) -> None:
    text, expected = IN_CALLS[where]
    assert "config." in text
    new, findings = run(text)
    assert manual(findings) == [] and expected in new
    assert "config." not in new


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
    "two of them, one in a function": text_of(
        "def f():\n    print(config)\n\n\nconfig = config.replace()\nprint(config.is_chief)"
    ),
    "a method of something else": text_of("config.is_chief.log(3)"),
    "a branch that changes a list": text_of("if not config.is_chief:\n    files.reverse()", before="files = ['a']\n"),
    "a branch that changes a dict": text_of("if config.is_chief:\n    settings.update(rate=0.5)"),
    "a branch that seeds": text_of("if config.task_type == 'worker':\n    tf.set_random_seed(2)"),
    "a branch that seeds numpy": "import numpy as np\n" + text_of("if config.is_chief:\n    np.random.seed(1)"),
    "a branch that calls a function": text_of(
        "if config.is_chief:\n    helper()", before="def helper():\n    pass\n\n"
    ),
    "a branch that calls what is unknown": text_of("if config.is_chief:\n    helper()"),
    "a branch that changes in what it prints": text_of("if config.is_chief:\n    print(files.pop())"),
    "a branch with an else that changes": text_of("if config.is_chief:\n    pass\nelse:\n    files.reverse()"),
    "a branch with a function named print": text_of("if config.is_chief:\n    print(1)", before="print = setup\n"),
    "a branch with another os": text_of("if config.is_chief:\n    os.makedirs('a')", before="os = System()\n"),
    "a branch that ends with an assertion": text_of("if config.is_chief:\n    assert False"),
    "a branch that waits": text_of("if config.is_chief:\n    while True:\n        pass"),
    "a branch that gives a file a name that is read": text_of(
        "if config.is_chief:\n    with open('a') as file:\n        pass\nprint(file)"
    ),
    "a branch in a context": text_of("if config.is_chief:\n    with lock:\n        print(1)"),
    "a test with an effect": text_of("if config.is_chief and settings.pop('rate'):\n    print(1)"),
    "a test that makes a file": text_of("if config.is_chief and open('a', 'w'):\n    print(1)"),
    "printed with an effect": text_of("print(files.pop(config.task_id))"),
    "logged with an effect": "import logging\n" + text_of("logging.info(setup(config.task_id))"),
    "printed and bound": text_of("print(x := config.task_id)"),
    "printed, a list of effects": text_of("print([files.append(i) for i in range(config.task_id)])"),
    "a log that is no logger": text_of("dialog.log(config.task_id)", before="dialog = Dialog()\n"),
    "a logger that is something else, too": "import logging\n"
    + text_of("logger.info(config.task_id)", before="logger = logging.getLogger('a')\nlogger = Dialog()\n"),
    "given, in an f-string": text_of("print(f'{config.model_dir}/x')"),
    "given, an f-string that tells its text": text_of("print(f'{config.model_dir=}')", "model_dir=folder"),
    "given, and its name changes later": text_of("print(config.model_dir)\nfolder = 'b'", "model_dir=folder"),
    "given, and a function changes its name": text_of(
        "print(config.model_dir)",
        "model_dir=folder",
        "folder = 'a'\ndef change():\n    global folder\n    folder = 'b'\n",
    ),
    "given, and a list has that name": text_of("print([config.model_dir for folder in 'ab'])", "model_dir=folder"),
    "given None": text_of("print(config.model_dir)", "model_dir=None"),
    "given, and set": text_of("config.model_dir = 'b'"),
}


#: Where the driver stays, and the RunConfig is a dict of what it was given when it was made.
FOLLOWED = (
    *("what is computed", "what has changed", "given, and its name changes later", "given None"),
    *("given, and a function changes its name", "given, and a list has that name"),
)


@pytest.mark.parametrize("why", FOLLOWED)
def test_the_folder_of_a_run_config_that_is_a_dict(why: str) -> None:
    new, findings = run(REFUSED[why])
    assert not manual(findings) and 'config.get("model_dir")' in new and "config = dict(" in new


@pytest.mark.parametrize("why", [why for why in REFUSED if why not in FOLLOWED])
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
