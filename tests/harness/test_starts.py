"""Programs start as users start them: modules, folders, stdin, packages; and what fails when a training is over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli.program import program
from migrator.harness.cluster import LOCAL, ClusterShape, Failure, ForkServer, Launch, RunOutcome
from migrator.harness.environments import EnvironmentNotReady, Extra, _requirements, original_specification, python_of
from migrator.harness.protocol import l0_runs
from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.runs import _failed_late

PROGRAMS = Path(__file__).parent / "programs"
TELLS = """\
import json, os, sys
from . import helper
json.dump({"name": __name__, "argv": sys.argv[1:], "file": sys.argv[0], "first": sys.path[0], "cwd": os.getcwd(),
           "package": __package__, "stdin": sys.stdin.read(), "helper": helper.VALUE}, sys.stdout)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(Path(sys.executable), "original", preload=()) as server:
        yield server


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "pkg"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TELLS)
    (folder / "helper.py").write_text("VALUE = 7\n")
    (folder / "__init__.py").write_text("")
    return folder


def test_a_module_starts_as_python_m_starts_it(server: ForkServer, package: Path, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("1,2\n")
    launch = Launch(
        "original",
        package / "train.py",
        ("--x", "1"),
        ClusterShape(),
        tmp_path / "run",
        module="pkg.train",
        cwd=package.parent,
        stdin=tmp_path / "rows",
    )
    outcome = server.run(launch)
    assert outcome.failure is None, outcome.failure
    found = json.loads(outcome.tasks[0].stdout.read_text())
    command = [sys.executable, "-m", "pkg.train", "--x", "1"]
    real = subprocess.run(command, cwd=package.parent, input="1,2\n", capture_output=True, text=True, check=True)
    assert found == json.loads(real.stdout)


def test_each_task_reads_stdin_from_its_beginning(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("all of it")
    (tmp_path / "train.py").write_text("import sys; print(sys.stdin.read())\n")
    shape = ClusterShape.parse("chief=1,worker=2")
    launch = Launch("original", tmp_path / "train.py", (), shape, tmp_path / "run", stdin=tmp_path / "rows")
    outcome = server.run(launch)
    assert [task.stdout.read_text() for task in outcome.tasks] == ["all of it\n"] * 3


def test_a_module_that_fails_is_told_from_its_own_line(server: ForkServer, package: Path, tmp_path: Path) -> None:
    (package / "train.py").write_text("\nraise ValueError('mine')\n")
    launch = Launch(
        "original", package / "train.py", (), ClusterShape(), tmp_path / "run", module="pkg.train", cwd=package.parent
    )
    failure = server.run(launch).failure
    assert failure is not None
    assert "ValueError: mine" in failure.tail[-1]
    assert not any("runpy" in line for line in failure.tail)


class TestPackages:
    def test_lines_of_files_that_include_each_other(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("pandas<3  # frames\n-r more/b.txt\n\n# nothing\nlong \\\n  ; extra\n")
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "b.txt").write_text("tabulate\n-r ../a.txt\n")
        assert list(_requirements(tmp_path / "a.txt")) == ["pandas<3", "tabulate", "long    ; extra"]
        with pytest.raises(EnvironmentNotReady, match=r"c\.txt cannot be read"):
            list(_requirements(tmp_path / "c.txt"))

    def test_an_environment_is_another_with_other_packages(self, tmp_path: Path) -> None:
        from dataclasses import replace

        (tmp_path / "a.txt").write_text("tabulate\n")
        plain = original_specification()
        keys = [plain.key, replace(plain, extra=Extra((), ("tabulate",))).key]
        keys.append(replace(plain, extra=Extra((tmp_path / "a.txt",), ("pandas",))).key)
        (tmp_path / "a.txt").write_text("tabulate==0.9\n")
        keys.append(replace(plain, extra=Extra((tmp_path / "a.txt",), ("pandas",))).key)
        assert len(set(keys)) == 4
        assert replace(plain, extra=Extra()).key == plain.key

    def test_nothing_is_added_to_an_interpreter_of_the_user_s(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        monkeypatch.setenv("TF_MIGRATE_ORIGINAL_PYTHON", sys.executable)
        with pytest.raises(EnvironmentNotReady, match="to which nothing is added"):
            python_of(replace(original_specification(), extra=Extra((), ("tabulate",))))


class TestLateFailures:
    L0 = LevelResult("L0", "Both programs run", Status.EQUIVALENT, "both ran")

    @pytest.mark.parametrize(
        ("begun", "ended", "cluster", "late"),
        [(1, 1, "", True), (2, 2, "", True), (2, 1, "", False), (0, 0, "", False), (1, 1, "worker=2", False)],
    )
    def test_a_failure_is_late_when_every_training_came_to_its_end(
        self, tmp_path: Path, begun: int, ended: int, cluster: str, late: bool
    ) -> None:
        shape = ClusterShape.parse(cluster)
        record = tmp_path / "record"
        task = shape.tasks()[0]
        (record / task.folder).mkdir(parents=True)
        for name, count in (("calls.jsonl", begun), ("ended.jsonl", ended)):
            if count:
                (record / task.folder / name).write_text("{}\n" * count)
        launch = Launch("original", tmp_path / "x.py", (), shape, tmp_path, plan={"record": str(record)})
        outcome = RunOutcome(tmp_path, (), Failure(task, "exit", "exit code 1: ImportError", ()), 1.0)
        assert _failed_late(launch, outcome) == ("exit code 1: ImportError" if late else None)
        killed = RunOutcome(tmp_path, (), Failure(LOCAL, "memory", "killed", ()), 1.0)
        assert _failed_late(launch, killed) is None
        assert _failed_late(launch, RunOutcome(tmp_path, (), None, 1.0)) is None

    def test_what_only_the_migrated_program_fails_at_is_its_failure(self) -> None:
        both = l0_runs.failed_late(self.L0, "exit code 1", "exit code 1")
        assert (both.status, len(both.notes)) == (Status.EQUIVALENT, 2)
        old = l0_runs.failed_late(self.L0, "no display", None)
        assert old.status is Status.EQUIVALENT
        assert "the original program failed after its training, which was judged: no display" in old.notes
        new = l0_runs.failed_late(self.L0, None, "no display")
        assert (new.status, new.reason) == (Status.FAILED, Reason.PROGRAM_FAILED)


@pytest.mark.tensorflow
def test_a_package_with_its_packages_arguments_and_stdin_is_verified_though_its_original_fails_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = (
        "import sys, tabulate, tensorboard\nfrom . import rows\nassert sys.argv[1:] == ['--go'] and rows.READ == '72'\n"
    )
    for folder in ("old", "new"):
        (tmp_path / folder / "pkg").mkdir(parents=True)
        (tmp_path / folder / "pkg/__init__.py").write_text("")
        (tmp_path / folder / "pkg/rows.py").write_text("import sys\nREAD = sys.stdin.read()\n")
    original = (PROGRAMS / "regression_original.py").read_text()
    migrated = (PROGRAMS / "regression_migrated.py").read_text()
    (tmp_path / "old/pkg/train.py").write_text(first + original + "\nraise SystemExit('no display to plot on')\n")
    (tmp_path / "new/pkg/train.py").write_text(first + migrated)
    words = ["verify", "old", "new", "-m", "pkg.train", "--with", "tabulate", "--stdin", "-", "--report", "out"]
    result = CliRunner().invoke(program, [*words, "--", "--go"], input=b"72", prog_name="tf-migrate")
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "out/report.json").read_text())
    assert document["verdict"] == "EQUIVALENT"
    assert "failed after its training" in document["levels"][0]["notes"][0]
    assert "-m pkg.train" in document["command"] and document["command"].endswith("-- --go")
