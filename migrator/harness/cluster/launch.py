"""What is to be run and what came of it: the data between the harness and its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from migrator.harness.cluster import logs
from migrator.harness.cluster.tasks import ClusterShape, Task
from migrator.harness.cluster.writes import Write

PROGRAMS = ("original", "migrated")

FailureKind = Literal["exit", "signal", "stopped", "stall", "memory", "disk", "timeout", "ports", "not_started"]

#: What each kind of failure means; there are no others.
FAILURE_KINDS: Mapping[FailureKind, str] = {
    "exit": "a task left with a wrong exit code, or a server while others still needed it",
    "signal": "a signal ended a task",
    "stopped": "a task was stopped (SIGSTOP, a debugger) and not continued",
    "stall": "a task made no progress for the stall timeout",
    "memory": "memory ran out, or would have, or is too little for so many tasks",
    "disk": "the disk that the run writes to was full, or a quota used up",
    "timeout": "the run was not over within the total timeout",
    "ports": "the tasks' gRPC servers could not be started, on any port",
    "not_started": "a task's process could not be made, or nobody began within the ready timeout",
}


@dataclass(frozen=True)
class Launch:
    """One run: a program, once, on one cluster shape.

    `plan` is the JSON object that inside/recorder.py obeys; empty runs the script without a recorder. Its
    "task" and "program" are filled in. `environment` is added to that of every task. Times are in seconds:
    `ready_timeout` without any progress until the first step (with an empty plan: until the first line),
    `stall_timeout` without any progress after it, `total_timeout` for everything. `memory_limit`: bytes that all
    tasks together may hold; None is what is available at the start less a reserve. `confine`: what the program changes
    outside of the run's folder stays in a view of its own, or is refused. `asks_for_keras`: a program for Keras 2 has
    to ask for it, as its user's Python wants it to. `module` is the script's name where it is run as `python -m` does.
    `cwd` is the working directory (None: that of the tool), and each task reads `stdin` from its beginning (None:
    nothing).
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
    memory_limit: int | None = None
    confine: bool = False
    asks_for_keras: bool = False
    module: str = ""
    cwd: Path | None = None
    stdin: Path | None = None

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

    `kind` is one of FAILURE_KINDS. `tail` of a task that did not go on ends with the stack of the thread that says
    most about it, innermost line first.
    """

    task: Task
    kind: FailureKind
    message: str
    tail: tuple[str, ...]


@dataclass(frozen=True)
class RunOutcome:
    """What came of a Launch: all tasks in start order, the failure if there was one, wall time.

    `writes`: what a program that was confined tried to change elsewhere. `tasks` holds those whose process could be
    made: none if the run was refused for lack of memory.
    """

    run_dir: Path
    tasks: tuple[TaskOutcome, ...]
    failure: Failure | None
    seconds: float
    writes: tuple[Write, ...] = ()

    def keep_logs(self, folder: Path, role: str | None = None) -> tuple[Path, ...]:
        """Copies what each task printed to `folder`/`role`/<task>.log and gives the paths, in start order.

        `role` says what the run was for; None takes the name of its folder. A file holds a task's stdout, stderr
        and stacks, one after the other, and at most about logs.KEPT bytes: of a longer stream head and tail.
        """
        kept = []
        for task in self.tasks:
            target = folder / (role or self.run_dir.name) / f"{task.task.folder}.log"
            logs.keep(target, _title(task), (task.stdout, task.stderr, task.stderr.with_name(logs.STACKS)))
            kept.append(target)
        return tuple(kept)


def _title(task: TaskOutcome) -> str:
    how = f"exit code {task.exit_code}" if task.signal is None else task.signal
    return f"{task.task}, process {task.pid}: {how}{', ended by the launcher' if task.ended_by_launcher else ''}"
