"""What is to be run and what came of it: the data between the harness and its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrator.harness.cluster.tasks import ClusterShape, Task

PROGRAMS = ("original", "migrated")


@dataclass(frozen=True)
class Launch:
    """One run: a program, once, on one cluster shape.

    `plan` is the JSON object that inside/recorder.py obeys; empty runs the script without a recorder. Its
    "task" and "program" are filled in. `environment` is added to that of every task. Times are in seconds:
    `ready_timeout` until the first sign of life, `stall_timeout` without any progress after it,
    `total_timeout` for everything.
    """

    program: str
    script: Path
    args: tuple[str, ...]
    shape: ClusterShape
    run_dir: Path
    plan: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    ready_timeout: float = 120.0
    stall_timeout: float = 60.0
    total_timeout: float = 600.0

    def folder(self, task: Task) -> Path:
        """Where the logs of `task` are."""
        return self.run_dir / "tasks" / task.folder


@dataclass(frozen=True)
class TaskOutcome:
    """How one task ended. Times are those of time.time(); `tail` is at most 20 lines of output.

    Exactly one of `exit_code` and `signal` (a name, "SIGKILL") is set. `ended_by_launcher`: it still ran
    when the launcher ended the run, which for a server (ps) is how success looks.
    """

    task: Task
    pid: int
    started: float
    ended: float
    exit_code: int | None
    signal: str | None
    ended_by_launcher: bool
    max_rss_bytes: int
    cpu_seconds: float
    stdout: Path
    stderr: Path
    tail: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """The root cause of a failed run: the first task that went wrong, and its last lines.

    `kind`: "exit" (wrong exit code, or a server that left early), "signal", "stall", "timeout", "ports".
    """

    task: Task
    kind: str
    message: str
    tail: tuple[str, ...]


@dataclass(frozen=True)
class RunOutcome:
    """What came of a Launch: all tasks in start order, the failure if there was one, wall time."""

    run_dir: Path
    tasks: tuple[TaskOutcome, ...]
    failure: Failure | None
    seconds: float
