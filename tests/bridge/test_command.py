"""`tf-migrate --style bridge` on files: the new file, the patch, and what is there already."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.bridge.assemble import SETUP, assemble, library, section
from migrator.cli.migrate import command
from migrator.harness.environments import migrated_python
from tests import warm
from tests.bridge.test_project import MODEL

PROGRAM = MODEL + '\n\ntf.estimator.Estimator(model_fn, "m").train(lambda: None)\n'


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(command, [str(one) for one in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.output


def test_file_is_written_once(tmp_path: Path) -> None:
    program, support = tmp_path / "train.py", tmp_path / "keras_estimator.py"
    program.write_text(PROGRAM)
    said = run("--style", "bridge", program)
    assert "TFM155" in said and "2 migrated" in said
    assert program.read_text().startswith("import keras_estimator")
    assert support.stat().st_mode & 0o777 == program.stat().st_mode & 0o777
    written = support.read_bytes()
    other = tmp_path / "other.py"
    other.write_text(PROGRAM.replace('"m")', '"m", tf.estimator.RunConfig())').replace("train(", "evaluate("))
    run("--style", "bridge", other)  # which finds the support file, though it was not given
    assert support.read_bytes() == written  # an Estimator needs a RunConfig anyway
    assert "nothing to do" in run("--style", "bridge", tmp_path)


def test_patch_makes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)
    patch = run("--style", "bridge", "--diff", "train.py")
    assert [one.name for one in tmp_path.iterdir()] == ["train.py"]
    patch = patch[patch.index("--- ") :].partition("TFM155")[0]
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True)
    assert "class Estimator" in Path("keras_estimator.py").read_text()
    assert "keras_estimator.Estimator(model_fn" in Path("train.py").read_text()


def piped(text: str, *options: str) -> str:
    done = CliRunner().invoke(command, [*options, "-"], input=text)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_standard_input_gets_a_section() -> None:
    new = piped(PROGRAM, "--style", "bridge")
    names = {one for node in ast.parse(new).body for one in _bound(node)}
    assert names == {"tf", "make_keras_estimator", "keras_estimator", "model_fn"}
    assert "tf-migrate wrote this section" in new and "keras_estimator.Estimator(model_fn" in new
    assert "import keras_estimator" not in new
    assert piped(new, "--style", "bridge") == new
    assert piped(new) == new


def test_standard_input_falls_back_to_it_and_tells_nothing_of_the_section() -> None:
    done = CliRunner().invoke(command, ["-"], input=PROGRAM + "tf.Session().close()\n")
    assert "make_keras_estimator" in done.stdout
    assert "TFM155" in done.stderr and "TFM270" not in done.stderr


def test_names_taken_of_the_section() -> None:
    program = (
        "from tensorflow.estimator import Estimator, RunConfig as Config\nimport tensorflow as tf\n"
        "make_keras_estimator = 1\n"
        "def main():\n  from tensorflow.contrib import learn\n  learn.ModeKeys\n"
        "  from tensorflow import estimator as est\n  est.ModeKeys\n  Estimator(print, config=Config())\n"
    )
    new = piped(program, "--style", "bridge")
    assert "\nEstimator = keras_estimator_2.Estimator\nConfig = keras_estimator_2.RunConfig\n" in new
    assert "  est = keras_estimator_2\n" in new and "keras_estimator_2 = make_keras_estimator_2()" in new
    assert "from keras_estimator" not in new and "import keras_estimator" not in new


def test_all_of_the_library_can_stand_inside() -> None:
    """As one function: it compiles, and strings of several lines are what they were."""
    text = section([*library().public, *SETUP], "support")
    assert strings(text) == strings(assemble([*library().public, *SETUP]))
    assert set(re.findall("[^ -~\n]", text)) == set()  # for files of any encoding


TRAINED = (
    PROGRAM.rpartition("\n\n")[0]
    + """
import numpy as np

def input_fn():
    x = np.linspace(0, 1, 8, dtype="float32")[:, None]
    return tf.data.Dataset.from_tensors(({"x": x}, 3 * x)).repeat(4)

class Told(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[0])
    def after_run(self, run_context, run_values):
        print("loss", run_values.results)

with tf.gfile.GFile("out", "w"):
    pass
estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(tf_random_seed=3))
estimator.train(input_fn, hooks=[Told()])
print("loss", estimator.evaluate(input_fn)["loss"])
"""
)


@pytest.mark.tensorflow
def test_both_forms_train_the_same(tmp_path: Path) -> None:
    inside, beside = tmp_path / "inside.py", tmp_path / "beside.py"
    inside.write_text(piped(TRAINED, "--style", "bridge"))
    beside.write_text(TRAINED)
    run("--style", "bridge", beside)
    told = [losses_of(program) for program in (inside, beside)]
    assert told[0] == told[1] and len(told[0]) == 5


@pytest.mark.tensorflow
def test_all_of_the_section_is_made(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        section([*library().public, "keep_tensorflow_1_shapes"], "support") + "print('loss', support.Estimator)"
    )
    assert losses_of(program)


def losses_of(program: Path) -> list[str]:
    done = warm.run(migrated_python(), program.name, cwd=program.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if line.startswith("loss")]


def strings(text: str) -> set[str]:
    tree = ast.parse(text)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = {n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {n.value for n in found if id(n) not in documentation and "\n" in n.value}


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [one.id for one in node.targets if isinstance(one, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
