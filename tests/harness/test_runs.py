"""A run that stops making progress is made once more: what waits for ever once says nothing against a program yet."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrator.harness import session
from migrator.harness.cluster import Launch, RunOutcome
from migrator.harness.cluster.launch import Failure, FailureKind
from migrator.harness.cluster.tasks import LOCAL
from migrator.harness.migrated import MigratedEvidence
from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol.results import LevelResult, Status
from migrator.harness.runs import Run, run_program

PROGRAM = Path(__file__).parent / "programs" / "regression_original.py"
CASE = session.make_case(PROGRAM, PROGRAM)


class Server:
    """Ends each run as it is told; what was started is in `launched`."""

    def __init__(self, *ends: FailureKind | None) -> None:
        self.ends = iter(ends)
        self.launched: list[Launch] = []

    def run(self, launch: Launch) -> RunOutcome:
        self.launched.append(launch)
        kind = next(self.ends)
        failure = None if kind is None else Failure(LOCAL, kind, f"local:0 had a {kind}", ())
        return RunOutcome(launch.run_dir, (), failure, 1.0)


def made(server: Server, folder: Path) -> Run:
    numbers = itertools.count()

    def new_folder(role: str) -> Path:
        path = folder / f"{next(numbers)}-{role}"
        path.mkdir()
        return path

    opened = SimpleNamespace(new_folder=new_folder, server=lambda case, program: server)
    return run_program(cast(Any, opened), CASE, "migrated", "migrated", CASE.shape, steps=3)


def test_a_run_that_stalls_once_is_made_again(tmp_path: Path) -> None:
    server = Server("stall", None)
    run = made(server, tmp_path)
    assert run.stalled == "local:0 had a stall" and run.outcome.failure is None
    first, second = server.launched
    assert first.run_dir != second.run_dir and second.plan["record"] == str(second.run_dir / "record")
    assert {**first.plan, "record": "", "model_dir": ""} == {**second.plan, "record": "", "model_dir": ""}


@pytest.mark.parametrize("ends", [("stall", "stall"), ("stall", "exit")])
def test_one_that_fails_again_has_failed(ends: tuple[FailureKind, FailureKind], tmp_path: Path) -> None:
    run = made(Server(*ends), tmp_path)
    assert run.failed and run.complaint == f"local:0 had a {ends[1]}" and run.stalled == "local:0 had a stall"


@pytest.mark.parametrize("kind", ["exit", "signal", "memory", "timeout", "not_started"])
def test_other_failures_are_not_tried_again(kind: FailureKind, tmp_path: Path) -> None:
    server = Server(kind)
    assert made(server, tmp_path).stalled is None and len(server.launched) == 1


def test_the_report_says_which_runs_were_made_twice(tmp_path: Path) -> None:
    run = replace(made(Server("stall", None), tmp_path), role="migrated control")
    found = session.Findings(
        CASE,
        OriginalEvidence(replace(run, role="original", stalled=None), None, None),
        MigratedEvidence(main=run),
        levels=(LevelResult("L0", "", Status.EQUIVALENT, ""), LevelResult("L1", "", Status.EQUIVALENT, "")),
    )
    levels = session._with_late_failures(found).levels
    assert levels[0].notes == ("migrated control: run twice, since at first local:0 had a stall",)
    assert levels[1].notes == ()
