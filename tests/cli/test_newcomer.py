"""As a newcomer: a repository of three programs in six files and a notebook, from the first look to a clean hook."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.walk_through import write_programs

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
TOOL = f"{shlex.quote(sys.executable)} -m migrator"


class Repository:
    """A git repository with hooks, in which commands are run as a user would run them."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))},
            "PYTHONPATH": str(ROOT),
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "TF_MIGRATE_CACHE": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        folder.mkdir()
        self.run("git", "init", "-q", "-b", "main")

    def run(self, *command: str, code: int | None = 0) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        assert code is None or done.returncode == code, done.stdout
        return done.stdout

    def migrate(self, *arguments: str, code: int = 0) -> str:
        return self.run(sys.executable, "-m", "migrator", *arguments, code=code)

    def hook(self, name: str, *further: str, all_files: bool = True, code: int = 0) -> str:
        """Runs a hook of ours by pre-commit, as it stands in .pre-commit-hooks.yaml, but with the tool of this tree."""
        hook: dict[str, Any] = {**HOOKS[name], "language": "system", "args": list(further), "verbose": True}
        assert hook["entry"].startswith("tf-migrate ")
        hook["entry"] = hook["entry"].replace("tf-migrate", TOOL, 1)
        config = {"repos": [{"repo": "local", "hooks": [hook]}]}
        path = self.folder.parent / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        words = ["--all-files"] if all_files else []
        return self.run(sys.executable, "-m", "pre_commit", "run", "-c", str(path), *words, name, code=code)

    def commit(self) -> None:
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", "x")

    def changed(self) -> list[str]:
        return sorted(line[3:] for line in self.run("git", "status", "--porcelain", "-uall").splitlines())


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository", tmp_path)
    write_programs(made.folder)
    made.commit()
    return made


def test_from_the_first_look_to_a_clean_hook(repository: Repository) -> None:
    book = (repository.folder / "explore.ipynb").read_bytes()
    said = repository.hook("tf-migrate-check", code=1)
    for name in ("price/model.py", "price/train.py", "linear/train.py", "explore.ipynb"):
        assert f"would migrate {name}" in said
    assert "trees/train.py:" in said
    assert said.count(" files: ") == 1, "one call for all of it"
    assert repository.changed() == []

    # Accepted as it is, so that the hook is about what is new.
    (repository.folder / "setup.cfg").write_text("[tf-migrate]\nbaseline = known.json\n")
    repository.migrate("--check", "--write-baseline", "known.json", ".")
    repository.commit()
    repository.hook("tf-migrate-check")
    shutil.copytree(repository.folder / "linear", repository.folder / "new")
    repository.run("git", "add", "new")
    said = repository.hook("tf-migrate-check", code=1)
    assert "would migrate new/train.py" in said and "would migrate linear/train.py" not in said
    repository.run("git", "rm", "-rqf", "new")

    # The two programs that can be carried over; the third one stays, and is accepted on its line.
    repository.migrate(".")
    assert repository.changed() == ["explore.ipynb", "linear/train.py", "price/model.py", "price/train.py"]
    for name in ("model.py", "train.py"):
        expected = (FIXTURES / "two_files/migrated" / name).read_bytes()
        assert (repository.folder / "price" / name).read_bytes() == expected
    cells = json.loads((repository.folder / "explore.ipynb").read_text())["cells"]
    assert "make_strategy" in "".join(line for cell in cells for line in cell["source"])
    assert cells[-1]["outputs"] == json.loads(book)["cells"][-1]["outputs"]
    (repository.folder / "setup.cfg").unlink()
    (repository.folder / "known.json").unlink()
    repository.commit()
    said = repository.migrate("--check", ".", code=1)
    place, code = next(line for line in said.splitlines() if line.startswith("trees/")).split(" ")[:2]
    name, line = place.split(":")[:2]
    path = repository.folder / name
    lines = path.read_text().splitlines()
    lines[int(line) - 1] += f"  # tf-migrate: ignore[{code}]"
    path.write_text("\n".join(lines) + "\n")
    repository.commit()
    said = repository.hook("tf-migrate-check")
    assert "1 accepted" in said

    # Once the finding is gone, the comment has to go, too.
    path.write_text(f"import tensorflow as tf  # tf-migrate: ignore[{code}]\n")
    assert f"{name}:1:26: TFM913 there is no {code} here to ignore" in repository.migrate("--check", ".")


def test_the_hook_of_staged_files_in_a_repository_of_thousands(repository: Repository) -> None:
    for number in range(40):
        folder = repository.folder / f"lib/part_{number}"
        folder.mkdir(parents=True)
        for other in range(75):
            (folder / f"file_{other}.py").write_text(f"import os\n\nVALUE = {other}\n")
    repository.commit()
    said = repository.hook("tf-migrate-check-staged", all_files=False)
    assert "no files to check" in said, "nothing is staged"
    for name in ("price/train.py", "lib/part_3/file_1.py"):
        with (repository.folder / name).open("a") as file:
            file.write("# touched\n")
    repository.run("git", "add", "-A")
    with (repository.folder / "price/model.py").open("a") as file:
        file.write("# not staged\n")  # pre-commit puts this away while the hook runs
    said = repository.hook("tf-migrate-check-staged", all_files=False, code=1)
    assert "price/train.py:7:1: TFM911 this program is unchanged: `price/model.py` would have to change" in said
    assert "linear" not in said and "trees" not in said and "explore" not in said
    repository.run("git", "add", "-A")
    said = repository.hook("tf-migrate-staged", all_files=False, code=1)
    assert "files were modified by this hook" in said
    assert "3 files: 2 migrated, 1 with nothing to do." in said
    repository.run("git", "add", "-A")
    repository.hook("tf-migrate-check-staged", all_files=False)
    assert repository.hook("tf-migrate-check", code=1).count(" files: ") == 1


@pytest.mark.parametrize(
    "words",
    [["--without-verification"], pytest.param([], marks=pytest.mark.tensorflow)],
    ids=["looked-at", "proven"],
)
def test_the_script_that_goes_all_the_way(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "tools/walk_through.py", *words, tmp_path / "walk"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-3000:]
    assert done.stdout.endswith("All was as expected.\n")
    assert ("3 EQUIVALENT" in done.stdout) == (not words)
