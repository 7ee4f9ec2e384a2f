"""Files of a project: those that are named are written, those around them are read; a program is never half written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program

FIXTURES = Path(__file__).parents[2] / "fixtures"
TWO_FILES = FIXTURES / "two_files"
MODERN = "import tensorflow as tf\n\nds = tf.data.experimental.AUTOTUNE\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, [str(argument) for argument in arguments], prog_name="tf-migrate")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> None:
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of two files, committed; the current folder."""
    root = tmp_path / "repository"
    shutil.copytree(TWO_FILES / "original", root)
    commit(root)
    monkeypatch.chdir(root)
    return root


def is_migrated(folder: Path) -> list[bool]:
    names = ("model.py", "train.py")
    return [(folder / name).read_bytes() == (TWO_FILES / "migrated" / name).read_bytes() for name in names]


def test_both_files_named(two: Path) -> None:
    result = run("train.py", "model.py")
    assert (result.exit_code, is_migrated(two)) == (0, [True, True]), result.output


def test_one_of_two_files_is_no_half_migration(two: Path) -> None:
    before = {name: (two / name).read_bytes() for name in ("model.py", "train.py")}
    result = run("train.py")
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == (
        "train.py:7:1: TFM911 this program is unchanged: `model.py` would have to change with it, but was excluded "
        "or not named; name it too, or the folder"
    )
    assert before == {name: (two / name).read_bytes() for name in before}
    result = run("model.py", "--check")
    assert (result.exit_code, result.output.splitlines()[0].split(" this")[0]) == (1, "model.py:1:1: TFM911")


@pytest.mark.parametrize("where", ["in git", "with a setup.py", "beside"])
def test_what_is_around_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Only the script changes: what it imports has to be known for that."""
    root = tmp_path / "root"
    folder = root if where == "beside" else root / "inner"
    folder.mkdir(parents=True)
    (folder / "layers.py").write_text("# For the estimator.\nunits = 1\n")
    text = (FIXTURES / "multi_worker_guide/original.py").read_text()
    assert "Dense(1)" in text or "dense(" in text
    (folder / "train.py").write_text(
        text.replace("import tensorflow as tf\n", "import tensorflow as tf\nimport layers\n", 1)
    )
    if where == "in git":
        commit(root)
    elif where == "with a setup.py":
        (root / "setup.py").touch()
    monkeypatch.chdir(root)
    result = run(folder / "train.py")
    assert result.exit_code == 0, result.output
    assert "TFM198" not in result.output
    assert "migrated" in result.output


PASSED_ON = {
    "train.py": """\
import tensorflow as tf
from nets import network


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(network(features))
    tf.get_variable_scope()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.assign_add(tf.train.get_global_step(), 1))


tf.estimator.Estimator(model_fn, "m").train(lambda: tf.data.Dataset.from_tensors([[1.0]]), steps=1)
""",
    "nets/__init__.py": "from .small import units\nfrom .parts import network\n",
    "nets/parts/__init__.py": "from .network import network\n",
    "nets/parts/network.py": "import tensorflow as tf\n\n\ndef network(x):\n    return tf.layers.dense(x, 1)\n",
    "nets/small.py": "units = 1\n",
    "look.py": """\
import tensorflow as tf
from nets.parts.network import network

x = tf.placeholder(tf.float32, [None, 1])
y = network(x)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(y, {x: [[1.0]]}))
""",
}


def test_a_package_passes_on_what_its_files_have(tmp_path: Path) -> None:
    """The packages say nothing of TensorFlow: what they import belongs to the Estimator's program all the same, and a
    session's program that uses it may not turn TensorFlow 2 off there.
    """
    for name, text in PASSED_ON.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert "2 programs: all by the bridge." in result.output
    network = (tmp_path / "nets/parts/network.py").read_text()
    assert "import tensorflow.compat.v1 as tf" in network and "disable_v2_behavior" not in network
    look = (tmp_path / "look.py").read_text()
    assert look.startswith("import keras_estimator  # before TensorFlow: it chooses Keras 2\n")
    assert "disable_v2_behavior()" in look
    written = {path: path.read_bytes() for path in tmp_path.rglob("*.py")}
    assert "migrated" not in run("--force", tmp_path).output
    assert written == {path: path.read_bytes() for path in tmp_path.rglob("*.py")}


def test_from_a_folder_below(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (two / "scripts").mkdir()
    git(two, "mv", "train.py", "scripts/train.py")
    git(two, "commit", "-qm", "moved")
    monkeypatch.chdir(two / "scripts")
    result = run("train.py")
    assert (result.exit_code, "`../model.py` would have to change" in result.output) == (1, True), result.output
    assert run(".", "../model.py").exit_code == 0
    assert (two / "model.py").read_bytes() == (TWO_FILES / "migrated/model.py").read_bytes()


def test_a_script_that_needs_what_was_not_named(two: Path) -> None:
    shutil.copy(two / "train.py", two / "whole.py")
    (two / "main.py").write_text("import tensorflow as tf\nimport train\n\ntrain.main(tf.constant(3))\n")
    result = run("--check", "main.py")
    assert "main.py:2:1: TFM915 `model.py` and `train.py`, which this file needs, would be migrated" in result.output


def test_modern_files_do_not_wait_for_each_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(MODERN + ("import b\n" if name == "a" else ""))
    commit(tmp_path)
    assert run(tmp_path / "a.py").exit_code == 0
    assert "experimental" not in (tmp_path / "a.py").read_text()
    assert "experimental" in (tmp_path / "b.py").read_text()


def test_programs_of_one_folder_share_their_support_file(tmp_path: Path) -> None:
    text = (
        "import tensorflow as tf\n\n\ndef model_fn(features, labels, mode):\n"
        "    w = tf.get_variable('w', [])\n    loss = w * w\n"
        "    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())\n"
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)\n\n\n"
        "tf.estimator.Estimator(model_fn, 'm').{}\n"
    )
    (tmp_path / "a.py").write_text(text.format("train(lambda: None, steps=2)"))
    (tmp_path / "b.py").write_text(text.format("evaluate(lambda: None, steps=2, hooks=[tf.train.StopAtStepHook(3)])"))
    commit(tmp_path)
    both = run("--style", "bridge", "--diff", tmp_path)
    assert both.exit_code == 0
    assert run("--style", "bridge", tmp_path / "a.py").exit_code == 0
    first = (tmp_path / "keras_estimator.py").read_text()
    assert "import keras_estimator" not in (tmp_path / "b.py").read_text()
    result = run("--style", "bridge", tmp_path / "b.py")
    assert result.exit_code == 0, result.output
    joint = (tmp_path / "keras_estimator.py").read_text()
    assert len(joint) >= len(first)
    git(tmp_path, "checkout", "-q", ".")
    (tmp_path / "keras_estimator.py").unlink()
    assert run("--style", "bridge", tmp_path).exit_code == 0
    assert (tmp_path / "keras_estimator.py").read_text() == joint


def test_a_file_that_git_does_not_have_is_not_overwritten(two: Path) -> None:
    with (two / "model.py").open("a") as file:
        file.write("# mine\n")
    before = (two / "model.py").read_bytes(), (two / "train.py").read_bytes()
    result = run(".")
    assert result.exit_code == 2
    assert result.output.splitlines()[0] == (
        "model.py:1:1: TFM912 the file has uncommitted changes: it stays as it is, and so does its program "
        "(`train.py`); stage or commit it first (git add), or use --force"
    )
    assert before == ((two / "model.py").read_bytes(), (two / "train.py").read_bytes())
    assert run("--check", ".").exit_code == 1, "which writes nothing"
    git(two, "add", "model.py")
    assert run(".").exit_code == 0, "the index has it now"
    assert (two / "model.py").read_text().endswith("# mine\n")
    assert git(two, "show", ":model.py").encode() == before[0]


def test_an_untracked_file_is_not_overwritten_unless_forced(two: Path) -> None:
    shutil.copytree(TWO_FILES / "original", two / "new")
    result = run("new")
    assert (result.exit_code, result.output.count("the file is not tracked by git")) == (2, 2)
    assert is_migrated(two / "new") == [False, False]
    assert run("new", "--force").exit_code == 0
    assert is_migrated(two / "new") == [True, True]


def test_files_with_other_newlines_in_the_tree_are_committed(two: Path) -> None:
    (two / "model.py").write_bytes((two / "model.py").read_bytes().replace(b"\n", b"\r\n"))
    assert run(".").exit_code == 0
    assert b"\r\n" in (two / "model.py").read_bytes()


def test_staged_files_are_written_and_others_read(two: Path) -> None:
    assert run("--staged").output == "No Python files or notebooks.\n"
    for name in ("model.py", "train.py"):
        (two / name).write_text((two / name).read_text() + "# staged\n")
    shutil.copytree(TWO_FILES / "original", two / "other")
    git(two, "add", "train.py")
    result = run("--staged")
    assert (result.exit_code, "`model.py` would have to change with it" in result.output) == (1, True)
    git(two, "add", "model.py")
    result = run("--staged")
    assert result.exit_code == 0, result.output
    assert (
        "import tensorflow as tf" in (two / "model.py").read_text()
        and "EstimatorSpec" not in (two / "model.py").read_text()
    )
    assert is_migrated(two / "other") == [False, False], "which is not staged"


def test_a_staged_file_with_further_changes_is_left(two: Path) -> None:
    for name in ("model.py", "train.py"):
        (two / name).write_text((two / name).read_text() + "# staged\n")
    git(two, "add", ".")
    (two / "train.py").write_text((two / "train.py").read_text() + "# not yet\n")
    result = run("--staged")
    assert (result.exit_code, "train.py:1:1: TFM912 the file has unstaged changes" in result.output) == (
        2,
        True,
    )


def test_staged_outside_of_git(tmp_path: Path) -> None:
    result = run("--staged", tmp_path)
    assert (result.exit_code, "is not in a git repository" in result.output) == (2, True)


def test_before_the_first_commit_all_that_is_staged_is_new(tmp_path: Path) -> None:
    root = tmp_path / "new"
    shutil.copytree(TWO_FILES / "original", root)
    git(root, "init", "-q")
    git(root, "add", "model.py", "train.py")
    assert run("--staged", root).exit_code == 0
    assert is_migrated(root) == [True, True]
