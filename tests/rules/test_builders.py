"""Functions of another file that only make an Estimator: the construction goes to where it is called."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run_project

BUILD = (
    'def build(units, folder=None):\n    """Makes it."""\n'
    '    return tf.estimator.Estimator(model_fn, folder, params={"units": units, "more": MORE})\n'
)
CALL = "net.build(UNITS)"


def files(build: str = BUILD, call: str = CALL, head: str = "import model as net\n", **others: str) -> dict[str, str]:
    """model.py with a model_fn and a function that makes an Estimator, and task.py, which trains it."""
    _, _, tail = program().partition("def model_fn")
    model_fn, _, _ = tail.partition("\n\n\nestimator")
    model_fn = model_fn.replace("labels, mode)", "labels, mode, params)", 1)
    data = "def input_fn():\n    return tf.data.Dataset.from_tensors(([[1.0, 2.0]], [[3.0]])).repeat()\n"
    return {
        "model.py": f"import tensorflow as tf\n\nMORE = 2\n\n\ndef model_fn{model_fn}\n\n\n{build}",
        "task.py": f"import tensorflow as tf\n{head}\nUNITS = 3\n\n\n{data}\n\nestimator = {call}\n"
        "estimator.train(input_fn, steps=3)\n",
        **{f"{name}.py": text for name, text in others.items()},
    }


def test_construction_goes_to_its_call() -> None:
    given = files()
    results = run_project(given)
    findings = [one for _, found in results.values() for one in found]
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "def build" not in results["model.py"][0] and "MORE = 2" in results["model.py"][0]
    assert 'model = net.model_fn(make_inputs(input_fn()), {"units": UNITS, "more": net.MORE})' in results["task.py"][0]
    made = [one for one in results["model.py"][1] if one.code == "TFM101"]
    line = given["model.py"].splitlines()[made[0].line - 1]
    assert "tf.estimator.Estimator" in line


FOLLOWED = {
    "imported by itself": (files(call="build(UNITS)", head="from model import build\n"), 1),
    "that gives it a name first": (files(BUILD.replace("return", "made =") + "    return made\n"), 1),
    "called in the call that trains": (
        {
            **(given := files(call="None")),
            "task.py": given["task.py"].replace(
                "estimator = None\nestimator.train(input_fn, steps=3)",
                "train, evaluation = tf.estimator.TrainSpec(input_fn, 3), tf.estimator.EvalSpec(input_fn, 2)\n"
                "tf.estimator.train_and_evaluate(net.build(UNITS), train, evaluation)",
            ),
        },
        1,
    ),
}


@pytest.mark.parametrize("case", FOLLOWED)
def test_constructions_that_are_followed(case: str) -> None:
    given, count = FOLLOWED[case]
    results = run_project(given)
    findings = [one for _, found in results.values() for one in found]
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "def build" not in results["model.py"][0]
    assert results["task.py"][0].count("model_fn(make_inputs(") + results["task.py"][0].count("Estimator(") >= count
    assert "tf.estimator" not in results["task.py"][0] + results["model.py"][0]


def test_names_of_import_star_are_no_names() -> None:
    given = files(head="from other import *\nimport model as net\n", other="RATE = 0.1\n")
    findings = [one for _, found in run_project(given).values() for one in found]
    assert findings and "TFM905" not in [one.code for one in findings]


STAYS = {
    "called by a name of import star": files(call="build(UNITS)", head="from model import *\n"),
    "called twice": files(call="net.build(1)\nother = net.build(UNITS)"),
    "named in a third file": files(third="import model\n\nprint(model.build)\n"),
    "named as a text": files(call='net.build(UNITS)\nprint("build")'),
    "given what acts": files(call="net.build(read())"),
    "with a comment": files(build=BUILD.replace("    return", "    # as ever\n    return")),
    "with a decorator": files(build=f"@noted\n{BUILD}"),
    "a module that is bound twice": files(head="import model as net\nnet = net\n"),
    "of a name that means something else there": files(
        build=BUILD.replace('"more": MORE', '"more": max(1, 2)'), head="import model as net\nmax = min\n"
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_construction_that_stays(case: str) -> None:
    """Where the calls are followed, what the function makes is another object; else nothing changes."""
    given, results = STAYS[case], run_project(STAYS[case])
    new = {path: text for path, (text, _) in results.items()}
    if case in ("named in a third file", "with a decorator"):
        assert new == given
        return
    made = new["model.py"].partition("def build(units, folder=None):\n")[2]
    assert "return KerasEstimator(" in made and not [
        f for _, (_, found) in results.items() for f in found if _manual(f)
    ]
    assert new["task.py"].endswith(given["task.py"].partition("import tensorflow as tf\n")[2])


def _manual(finding: Finding) -> bool:
    return finding.severity is Severity.MANUAL


CONF = '''\
import tensorflow as tf

PERIOD = 4


def make_config():
    """For all."""
    config = tf.estimator.RunConfig(tf_random_seed=3, save_checkpoints_steps=PERIOD)
    return config


def make_spec(input_fn, steps=8):
    return tf.estimator.TrainSpec(
        input_fn,
        max_steps=steps,  # in all
    )
'''
DRIVES = """\
{head}

{program}
estimator = tf.estimator.Estimator(model_fn, model_dir="m", config={c}make_config(), params={{}})
tf.estimator.train_and_evaluate(estimator, {c}make_spec(input_fn), tf.estimator.EvalSpec(input_fn, steps=1))
"""


def said(head: str = "from conf import make_config, make_spec", conf: str = CONF, **others: str) -> dict[str, str]:
    """conf.py with functions that make what a driver gives its Estimator, and task.py, the driver."""
    before, _, _ = program().partition("estimator = tf.estimator.Estimator(")
    driver = DRIVES.format(head=head, program=before, c="conf." if head == "import conf" else "")
    return {"conf.py": conf, "task.py": driver, **{f"{name}.py": text for name, text in others.items()}}


@pytest.mark.parametrize("head", ["from conf import make_config, make_spec", "import conf"])
def test_configurations_and_specifications_go_to_their_calls(head: str) -> None:
    given = said(head)
    other = said(head)["task.py"].replace('"m"', '"other"').replace("make_spec(input_fn)", "make_spec(input_fn, 12)")
    results = run_project({**given, "other.py": other}, strategy="one-device")
    findings = [one for _, found in results.values() for one in found]
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    assert "def make" not in results["conf.py"][0] and "PERIOD = 4" in results["conf.py"][0]
    for name in ("task.py", "other.py"):
        new = results[name][0]
        assert "make_config" not in new and "make_spec" not in new and "set_seed(3)" in new
        assert ("from conf import PERIOD" in new) is (head != "import conf")


@pytest.mark.parametrize(
    "files",
    [
        said(third="import conf\n\nconf.make_config = None\n"),
        said(third="from conf import *\n\nmake_config()\n"),
        said(conf=CONF + "\n\n__all__ = ['make_config', 'make_spec']\n"),
        said(conf=CONF.replace("def make_config", "@noted\ndef make_config")),
        said(conf=CONF.replace("    config =", "    print(PERIOD)\n    config =")),
        said(head="from conf import make_config, make_spec\nPERIOD = 5"),
    ],
)
def test_those_that_somebody_else_may_mean_stay(files: dict[str, str]) -> None:
    results = run_project(files, strategy="one-device")
    assert "def make_config" in results["conf.py"][0]


def test_names_that_a_star_brings_are_no_names_of_the_function() -> None:
    given = files(constants="RATE = 0.1\n")
    given["task.py"] = given["task.py"].replace("import model", "from constants import *\nimport model")
    findings = [one for _, found in run_project(given).values() for one in found]
    assert "TFM905" not in [one.code for one in findings]
