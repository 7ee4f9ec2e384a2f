"""action.yml: its steps, run by hand as GitHub's runner would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
PROGRAMS = ROOT / "tests/harness/programs"


def expand(text: str, inputs: dict[str, str], base: str) -> str:
    """The value of the few kinds of expressions that the steps' environments have."""

    def value(match: re.Match[str]) -> str:
        names = {
            "github.action_path": str(ROOT),
            "github.event.pull_request.base.sha": "",
            "github.event.before": base,
            **{f"inputs.{name}": one for name, one in inputs.items()},
        }
        return next((names[word.strip()] for word in match[1].split("||") if names[word.strip()]), "")

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def run_step(
    name: str, folder: Path, base: str = "", path: Path | None = None, **inputs: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Runs one step; what it did, and what it told the runner."""
    step = STEPS[name]
    given = {one: str(about.get("default", "")) for one, about in ACTION["inputs"].items()} | inputs
    output = folder.parent / "output"
    output.write_text("")
    environment = {key: expand(text, given, base) for key, text in step.get("env", {}).items()}
    places = [path or Path(sys.executable).parent, Path(os.environ["PATH"].split(os.pathsep)[0])]
    environment |= {"GITHUB_OUTPUT": str(output), "PATH": os.pathsep.join([*map(str, places), os.environ["PATH"]])}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return done, output.read_text()


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "train.py").write_text((PROGRAMS / "regression_original.py").read_text())
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    return folder


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder with a tf-migrate that only notes its arguments and ends with the code of the file `code`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tf-migrate").write_text(
        '#!/bin/bash\nprintf "%s\\n" "$@" > "$(dirname "$0")/said"\nexit "$(cat "$(dirname "$0")/code")"\n'
    )
    (folder / "tf-migrate").chmod(0o755)
    (folder / "code").write_text("0")
    return folder


def test_every_step_is_either_an_action_or_bash() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in STEPS.values():
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["shell"] == "bash"
        # What comes from outside reaches a script as a variable, never as a part of it.
        assert "${{" not in step.get("run", "")
    used = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])


def test_the_installation_is_that_of_the_action_s_own_files(project: Path, tmp_path: Path) -> None:
    python = tmp_path / "python-bin"
    python.mkdir()
    (python / "python").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (python / "python").chmod(0o755)
    done, _ = run_step("Install tf-migrate", project, path=python)
    assert done.stdout.split() == ["-m", "pip", "install", "--quiet", f"{ROOT}[verify]"]


def test_what_is_passed_on(project: Path, recorded: Path) -> None:
    done, _ = run_step("Check", project, path=recorded, paths="a folder\n\nb.py\n$(touch x)\n")
    assert done.returncode == 0
    assert (recorded / "said").read_text().splitlines() == ["--check", "a folder", "b.py", "$(touch x)"]
    (recorded / "code").write_text("3")
    done, output = run_step("Verify", project, "abc", recorded, shard="3/8", project="sub")
    assert (done.returncode, output) == (3, "")
    words = [
        "verify",
        "sub",
        "--report",
        "tf-migrate-report",
        "--inconclusive",
        "fail",
        "--base",
        "abc",
        "--shard",
        "3/8",
    ]
    assert (recorded / "said").read_text().splitlines() == words


def test_a_program_that_is_left_fails_the_check(project: Path) -> None:
    done, _ = run_step("Check", project)
    assert done.returncode == 1
    assert "train.py" in done.stdout
    (project / "train.py").write_text("print('nothing left')\n")
    assert run_step("Check", project)[0].returncode == 0


def test_nothing_that_changed_is_nothing_to_verify(project: Path) -> None:
    done, output = run_step("Verify", project, "HEAD")
    assert (done.returncode, output) == (0, "verdict=SKIPPED\n")


@pytest.mark.tensorflow
def test_a_migration_is_checked_and_verified(project: Path) -> None:
    (project / "train.py").write_text((PROGRAMS / "regression_migrated.py").read_text())
    git(project, "commit", "-qam", "migrated")
    assert run_step("Check", project)[0].returncode == 0
    done, output = run_step("Verify", project, "HEAD~1", report="out")
    assert (done.returncode, output) == (0, "verdict=EQUIVALENT\n"), done.stdout + done.stderr
    (one,) = json.loads((project / "out/project.json").read_text())["programs"]
    assert one["steps"] == 25
