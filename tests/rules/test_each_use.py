"""What a model_fn reads from outside is the same at each use of its Estimator, or the model is made anew for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.migration.project import migrate_project

TOP = """\
import numpy as np
import tensorflow as tf
{imports}

def input_fn():
    x = np.ones([16, 4], np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat(2).batch(8)


{before}
def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=net)
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.GradientDescentOptimizer({rate}).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, "m")
{driver}
"""
TRAIN = "estimator.train(input_fn, steps=2)\n"
CONFIG = "RATE = 0.1\nRATES = [0.1]\nPARAMS = {'rate': 0.1}\n\n\ndef double():\n    PARAMS['rate'] *= 2\n"
CLASS = "class Config:\n    rate = 0.1\n\n\nconfig = Config()\n\n\n"
STATE = "STAGE = 0\n\n\ndef advance():\n    global STAGE\n    STAGE += 1\n\n\ndef rate():\n    return 0.1 * STAGE\n\n\n"

#: What stands before the model_fn, the rate, and what is done between two trainings.
CHANGES = {
    "an attribute of an object": (CLASS, "config.rate", "config.rate = 0.2\n"),
    "an attribute by setattr": (CLASS, "config.rate", "setattr(config, 'rate', 0.2)\n"),
    "an attribute of a class": (CLASS, "config.rate", "Config.rate = 0.2\n"),
    "a number that a function reads": (STATE, "rate()", "advance()\n"),
    "an entry that a function changes": (
        "P = {'rate': 0.1}\n\n\ndef more(table):\n    table['rate'] = 0.2\n\n\n",
        "P['rate']",
        "more(P)\n",
    ),
    "a flag": ("FLAGS = tf.app.flags.FLAGS\n", "FLAGS.rate", "tf.app.flags.FLAGS.rate = 0.2\n"),
    "the last of a list": ("RATES = [0.1]\n", "RATES[-1]", "RATES.append(0.2)\n"),
}
#: What is imported from a file beside, how the rate is read, and what is done between two trainings.
OF_A_FILE = {
    "an attribute of a module": ("import config", "config.RATE", "config.RATE = 0.2\n"),
    "a list of a module": ("from config import RATES", "RATES[-1]", "RATES.append(0.2)\n"),
    "an entry of a module's dict": ("from config import PARAMS", "PARAMS['rate']", "PARAMS['rate'] = 0.2\n"),
    "a dict that its module changes": ("import config", "config.PARAMS['rate']", "config.double()\n"),
}
#: The same, where nothing changes that the model_fn reads.
STEADY = {
    "another attribute": ("", "config.RATE", "config.STEPS = 2\n"),
    "the same number again": ("", "config.RATE", "config.RATE = 0.1\n"),
    "before the Estimator": ("config.RATE = 0.2\n\n\n", "config.RATE", ""),
    "what is only asked": (STATE, "rate()", "print(rate())\n"),
    "a list that the model_fn does not read": ("DONE = []\n", "0.1", "DONE.append(1)\n"),
}


def text_of(before: str, rate: str, between: str, imports: str = "") -> str:
    return TOP.format(imports=imports, before=before, rate=rate, driver=TRAIN + between + TRAIN)


def made_anew(files: dict[str, str]) -> bool:
    """Whether the model is made anew for each use; a program must come out native either way."""
    texts = {Path(name): text for name, text in files.items()}
    new, findings = migrate_project(texts, "auto")
    blocked = [one for found in findings.values() for one in found if one.severity is Severity.MANUAL]
    assert not blocked, blocked
    return "class KerasEstimator" in new[Path("train.py")]


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str) -> None:
    assert made_anew({"train.py": text_of(*CHANGES[name])})


@pytest.mark.parametrize("name", OF_A_FILE)
@pytest.mark.parametrize("is_given", [True, False])
def test_changes_of_a_file(name: str, is_given: bool) -> None:
    if not is_given and "double" in OF_A_FILE[name][2]:
        return  # nobody can know
    imports, rate, between = OF_A_FILE[name]
    given = {"config.py": CONFIG} if is_given else {}
    assert made_anew({"train.py": text_of("", rate, between, imports), **given})


@pytest.mark.parametrize("name", STEADY)
def test_nothing_changes(name: str) -> None:
    assert not made_anew({"train.py": text_of(*STEADY[name], "import config"), "config.py": CONFIG})


def test_input_functions_change_it() -> None:
    before = CLASS + "def other_fn():\n    config.rate = 0.2\n    return input_fn()\n\n\n"
    once = TOP.format(imports="", before=before, rate="config.rate", driver="estimator.train(other_fn, steps=2)")
    assert not made_anew({"train.py": once})  # it is called before the model_fn
    assert made_anew({"train.py": once + TRAIN + once.splitlines()[-1]}) is False  # and leaves it so
    assert made_anew({"train.py": text_of(before, "config.rate", "estimator.train(other_fn, steps=2)\n")})


def test_loops() -> None:
    def of(body: str) -> str:
        loop = "".join(f"    {line}\n" for line in (body + TRAIN).splitlines())
        return TOP.format(
            imports="import sys", before=CLASS, rate="config.rate", driver="for one in sys.argv:\n" + loop
        )

    assert made_anew({"train.py": of("config.rate = float(one)\n")})
    assert made_anew({"train.py": of("config.rate *= 0.5\n")})
    assert not made_anew({"train.py": of("print(one)\n")})


def test_params_are_copied() -> None:
    """An Estimator keeps a copy of its params: what becomes of them afterwards is nothing to it."""
    text = text_of("", "params['rate']", "params['rate'] = 0.2\nparams['more'] = [1]\n")
    text = text.replace("labels, mode)", "labels, mode, params)").replace('"m")', '"m", params=params)')
    assert not made_anew({"train.py": text.replace("\n\nestimator = ", "\n\nparams = {'rate': 0.1}\nestimator = ")})


def test_a_model_fn_may_keep_things() -> None:
    """What it gives its own object and reads again is its own."""
    text = text_of("class Kept:\n    pass\n\n\nkept = Kept()\n", "kept.rate", "")
    assert not made_anew({"train.py": text.replace("    loss = ", "    kept.rate = 0.1\n    loss = ")})
