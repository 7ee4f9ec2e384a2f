"""`--python2`: files of Python 2 are converted, and then migrated as always."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program

PROGRAM = """import tensorflow as tf
# Caf\xe9: a comment that stays.
STEPS = len([1] * 50) / 4


def model_fn(features, labels, mode):
  logits = tf.layers.dense(features, 1)
  loss = tf.losses.mean_squared_error(labels, logits)
  train_op = tf.train.AdagradOptimizer(0.05).minimize(loss, global_step=tf.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  data = tf.data.Dataset.from_tensors(([[1.], [2.]], [[0.3], [0.5]]))
  return data.repeat()


estimator = tf.estimator.Estimator(model_fn)
for i in xrange(2):
  print "round", i
estimator.train(input_fn, steps=STEPS)
print estimator.evaluate(input_fn, steps=1)
"""


Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Runs `tf-migrate` with its own engine."""
    return lambda *words: CliRunner().invoke(program, ["--no-cache", *words], prog_name="tf-migrate")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    raw = f"# -*- coding: latin-1 -*-\n{PROGRAM}".replace("\n", "\r\n").encode("latin-1")
    (tmp_path / "train.py").write_bytes(raw)
    (tmp_path / "plain.py").write_bytes(b"print 'no TensorFlow'")
    return tmp_path


def test_without_it_the_finding_names_it(project: Path, run: Run) -> None:
    result = run("--check", ".")
    assert "TFM902" in result.stdout
    assert "`tf-migrate --python2 train.py` converts it first" in result.stdout


def test_files_are_converted_and_migrated(project: Path, run: Run) -> None:
    before = (project / "train.py").read_bytes()
    assert run("--python2", "--check", ".").exit_code == 1
    assert (project / "train.py").read_bytes() == before
    result = run("--python2", ".")
    assert result.exit_code == 0, result.stdout
    raw = (project / "train.py").read_bytes()
    assert b"# Caf\xe9: a comment that stays.\r\n" in raw
    assert b"STEPS = len([1] * 50) // 4\r\n" in raw
    assert b'for i in range(2):\r\n  print("round", i)\r\n' in raw
    assert b"tf.keras.layers.Dense(1)" in raw
    assert b"estimator" not in raw.replace(b"tf.estimator", b"")
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert (project / "plain.py").read_bytes() == b"print('no TensorFlow')"
    again = run("--python2", ".")
    assert again.exit_code == 0
    assert "TFM94" not in again.stdout
    assert (project / "train.py").read_bytes() == raw


def test_findings_have_the_lines_of_the_file(project: Path, run: Run) -> None:
    result = run("--python2", "-v", "--check", ".")
    assert "train.py:4:1: TFM940 `len([1] * 50) / 4` divides integers: `//` now" in result.stdout
    line = 1 + PROGRAM.split("\n").index("estimator = tf.estimator.Estimator(model_fn)") + 1
    assert f"train.py:{line}:" in result.stdout


def test_a_patch(project: Path, run: Run) -> None:
    result = run("--python2", "--diff", "plain.py")
    assert "-print 'no TensorFlow'" in result.stdout
    assert "+print('no TensorFlow')" in result.stdout


def test_a_comment_accepts_a_finding(project: Path, run: Run) -> None:
    (project / "plain.py").write_text("def f(a, b):\n  return a / b  # tf-migrate: ignore[TFM941]\nprint f(1, 2.)\n")
    assert "TFM941" not in run("--python2", "--check", "plain.py").stdout


def test_a_blocked_program_is_converted(project: Path, run: Run) -> None:
    text = "import tensorflow as tf\nprint 1\nest = tf.contrib.boosted_trees.estimator.Foo(tf.estimator.Estimator)\n"
    (project / "train.py").write_text(text)
    result = run("--python2", "train.py")
    assert result.exit_code == 1
    assert (project / "train.py").read_text() == text.replace("print 1", "print(1)")


def test_what_no_python_parses_is_one_finding(project: Path, run: Run) -> None:
    (project / "train.py").write_text("import tensorflow as tf\nprint 'a'\nx = = 1\n")
    result = run("--python2", "train.py")
    assert result.exit_code == 2
    assert "train.py:3:" in result.stdout
    assert "neither Python 2 nor Python 3" in result.stdout


def test_stdin(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "migrator", "--python2", "-"]
    done = subprocess.run(command, input=PROGRAM.encode(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert b'print("round", i)' in done.stdout
    assert b"tf.keras.layers.Dense(1)" in done.stdout


def test_staged(project: Path, run: Run) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", "plain.py")
    git("commit", "-qm", "a")
    git("add", "train.py")
    plain = (project / "plain.py").read_bytes()
    assert run("--python2", "--staged").exit_code == 0
    assert b"xrange" not in (project / "train.py").read_bytes()
    assert (project / "plain.py").read_bytes() == plain, "it is not staged"


def test_what_git_does_not_have_stays(project: Path, run: Run) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    result = run("--python2", "plain.py")
    assert "TFM912" in result.stdout
    assert (project / "plain.py").read_bytes() == b"print 'no TensorFlow'"


def test_without_the_extra(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from migrator.python2 import fixers

    fixers._tool.cache_clear()
    monkeypatch.setitem(sys.modules, "fissix", None)
    result = run("--python2", ".")
    fixers._tool.cache_clear()
    assert result.exit_code == 2
    assert "TFM945" in result.stderr
    assert "pip install 'tf-migrate[python2]'" in result.stderr


def test_not_with_verify(project: Path, run: Run) -> None:
    result = run("--python2", "--verify", ".")
    assert result.exit_code == 2
    assert "convert it first" in result.stderr


def test_names_of_python_2_are_told_without_it(project: Path, run: Run) -> None:
    (project / "train.py").write_text(PROGRAM.replace('print "round", i', "pass").replace("print est", "est"))
    result = run("--check", "train.py")
    assert "TFM943 `xrange` exists only in Python 2: `tf-migrate --python2` converts the file first" in result.stdout


def test_files_of_both_pythons_that_are_not_named_hold_nothing_up(project: Path, run: Run) -> None:
    both = "# for tensorflow\nHALF = 7 / 2\n"
    (project / "both.py").write_text(both)
    (project / "train.py").write_text(
        PROGRAM.replace("import tensorflow as tf", "import tensorflow as tf\nimport both", 1)
    )
    result = run("--python2", "train.py")
    assert "TFM911" not in result.stdout
    assert "xrange" not in (project / "train.py").read_text()
    assert (project / "both.py").read_text() == both


def test_python_2_files_of_the_program_have_to_be_named(project: Path, run: Run) -> None:
    (project / "other.py").write_text("import tensorflow as tf\nprint 7 / 2\n")
    text = PROGRAM.replace("import tensorflow as tf", "import tensorflow as tf\nimport other", 1)
    (project / "train.py").write_text(text)
    result = run("--python2", "train.py")
    assert "TFM911" in result.stdout and "`other.py` would have to change with it" in result.stdout
    assert (project / "train.py").read_text() == text


def test_a_new_folder(project: Path, run: Run) -> None:
    before = (project / "train.py").read_bytes()
    assert run("--python2", "--out", "../new-tree", ".").exit_code == 0
    assert (project / "train.py").read_bytes() == before
    assert (project / "../new-tree/plain.py").read_bytes() == b"print('no TensorFlow')"
