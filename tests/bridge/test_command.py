"""`tf-migrate --style bridge` on files: the new file, the patch, and what is there already."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli.migrate import command
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


def test_standard_input_has_no_file_beside_it() -> None:
    assert "give the program's file" in CliRunner().invoke(command, ["--style", "bridge", "-"], input=PROGRAM).output
