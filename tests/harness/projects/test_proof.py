"""`tf-migrate PATH --verify` with verifications that run nothing: what is written, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program

from .conftest import Repository, Verifications

FIXTURES = Path(__file__).parents[3] / "fixtures"
GUIDE = (FIXTURES / "multi_worker_guide/original.py").read_text()
Run = Callable[..., Result]


@pytest.fixture
def run(verifications: Verifications, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(repository.root)
    return lambda *words: CliRunner().invoke(program, list(map(str, words)), prog_name="tf-migrate")


def test_only_what_was_proven_is_written(run: Run, repository: Repository, verifications: Verifications) -> None:
    parts = {name: (FIXTURES / "two_files/original" / f"{name}.py").read_text() for name in ("model", "train")}
    repository.commit(
        {"good.py": GUIDE, "bad.py": GUIDE, "pkg/model.py": parts["model"], "pkg/train.py": parts["train"]}
    )
    verifications.verdicts = {"bad.py": "DIFFERENT", "train.py": "INCONCLUSIVE"}
    result = run(".", "--verify")
    assert result.exit_code == 1, result.output
    assert repository.git("status", "--short") == "M good.py", "the others are as they were, byte for byte"
    assert "import tensorflow" in (repository.root / "good.py").read_text()
    told = [line.split(":")[0] for line in result.output.splitlines() if ": TFM916 " in line]
    assert told == ["bad.py", "pkg/model.py", "pkg/train.py"]
    assert "bad.py is DIFFERENT" in result.output
    # Both programs ran as they would be: the old text from the tree, the new one from a copy of it.
    old, new = next(
        pair
        for case, pair in zip(verifications.cases, verifications.texts, strict=True)
        if case.migrated.name == "good.py"
    )
    assert (old, new) == (GUIDE, (repository.root / "good.py").read_text())


def test_nothing_is_written_when_it_is_only_looked_at(
    run: Run, repository: Repository, verifications: Verifications
) -> None:
    repository.commit({"good.py": GUIDE})
    result = run(".", "--verify", "--diff")
    assert result.exit_code == 0
    assert repository.git("status", "--short") == ""
    assert "+++ " in result.stdout
    assert len(verifications.cases) == 1


def test_a_file_that_no_verified_script_imports_is_not_proven(
    run: Run, repository: Repository, verifications: Verifications
) -> None:
    repository.commit({"good.py": GUIDE, "pyproject.toml": "[tool.tf-migrate.verify]\ndiscover = false\n"})
    result = run(".", "--verify")
    assert result.exit_code == 1
    assert "no verified program runs this file" in " ".join(result.output.split())
    assert repository.git("status", "--short") == ""


def test_nothing_to_migrate_starts_nothing(run: Run, repository: Repository, verifications: Verifications) -> None:
    repository.commit({"plain.py": "print(1)\n"})
    assert run(".", "--verify").exit_code == 0
    assert (verifications.cases, verifications.sessions) == ([], [])
    assert run("-", "--verify").exit_code == 2
