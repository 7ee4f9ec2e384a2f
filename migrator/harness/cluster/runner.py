"""The interface of what runs programs, and what is the same wherever they run."""

from __future__ import annotations

import dataclasses
import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from migrator.harness.cluster import memory, ports
from migrator.harness.cluster.launch import PROGRAMS, Failure, Launch, RunOutcome, TaskOutcome
from migrator.harness.cluster.supervise import Attempt, OnLine
from migrator.harness.cluster.tasks import Task
from migrator.harness.cluster.vitals import Vitals
from migrator.harness.cluster.writes import Write

_ATTEMPTS = 3


class Runner(ABC):
    """Runs programs of one kind with one interpreter; also the Channel by which a run is supervised.

    Usable between the beginning and the end of a `with` statement. Runs follow one another: one at a time.
    """

    def __init__(self, python: Path, program: str, preload: tuple[str, ...], folder: Path | None) -> None:
        if program not in PROGRAMS:
            raise ValueError(f"{program!r} is no program: expected one of {', '.join(PROGRAMS)}")
        self._python = python
        self._program = program
        self._preload = preload
        self._folder = folder
        self._one_run = threading.Lock()

    @abstractmethod
    def __enter__(self) -> Runner: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self._python

    def begin(self) -> None:
        """Start, where that has waited until somebody needs it; `describe` and `run` do so by themselves."""
        return

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Versions ("python", "tensorflow", "keras"), "import_seconds", "pid"; waits for the start."""

    @abstractmethod
    def addresses(self, tasks: Sequence[Task]) -> dict[Task, str]:
        """A "host:port" for each task, chosen where it will run."""

    @abstractmethod
    def send(self, request: Mapping[str, Any]) -> None:
        """See Channel.send."""

    @abstractmethod
    def poll(self, timeout: float) -> list[dict[str, Any]]:
        """See Channel.poll."""

    @abstractmethod
    def look(self, tasks: Mapping[Task, int]) -> tuple[int | None, Mapping[Task, Vitals]]:
        """See Channel.look."""

    @abstractmethod
    def exact_memory(self, tasks: Mapping[Task, int]) -> Mapping[Task, int]:
        """See Channel.exact_memory."""

    @abstractmethod
    def available(self) -> int:
        """See Channel.available."""

    @abstractmethod
    def close(self) -> None:
        """End everything that was started. A second call does nothing."""

    @abstractmethod
    def _check_running(self) -> None:
        """ForkServerError outside of the `with` statement, or when what runs the programs is gone."""

    @abstractmethod
    def _place(self, tasks: Sequence[Task]) -> None:
        """Decide where each task of the next run will be."""

    def run(self, launch: Launch, on_line: OnLine | None = None) -> RunOutcome:
        """Run a program once on its cluster; returns when all of it has ended. A run that another thread asks for
        meanwhile waits.

        `on_line` gets each line that a task prints. `launch.run_dir`/tasks is emptied first. A failure of
        the program is in the outcome, not an exception; a failure of the server is a ForkServerError.
        Whatever is raised (KeyboardInterrupt too), no process of the run is left.
        """
        if launch.program != self._program:
            raise ValueError(f"this server runs {self._program} programs, the launch is of a {launch.program} one")
        with self._one_run:
            return self._run(launch, on_line)

    def _run(self, launch: Launch, on_line: OnLine | None) -> RunOutcome:
        self._check_running()
        self.describe()
        self._place(launch.shape.tasks())
        # Absolute from here on: the tasks write to the same folders even if a script changes its directory.
        launch = dataclasses.replace(launch, run_dir=launch.run_dir.absolute())
        launch.run_dir.mkdir(parents=True, exist_ok=True)
        before = set(launch.run_dir.iterdir())
        started = time.monotonic()
        refusal = self._refuse(launch)
        if refusal is not None:
            return RunOutcome(launch.run_dir, (), refusal, time.monotonic() - started)
        outcomes: tuple[TaskOutcome, ...] = ()
        failure: Failure | None = None
        kept: tuple[Write, ...] = ()
        for number in range(1, _ATTEMPTS + 1):
            shutil.rmtree(launch.run_dir / "tasks", ignore_errors=True)
            addresses = self.addresses(launch.shape.addressed())
            attempt = Attempt(self, launch, addresses, on_line, self._folder)
            try:
                outcomes, failure = attempt.run()
                kept = attempt.writes()
            finally:
                if not attempt.ended_all:
                    # Interrupted twice: what is still under way must not be taken for the next run's.
                    self.close()
            if failure is None or not _port_was_taken(launch, failure):
                break
            if number == _ATTEMPTS:
                failure = dataclasses.replace(failure, kind="ports", message=_ports_message(failure))
                break
            for left in set(launch.run_dir.iterdir()) - before:
                shutil.rmtree(left, ignore_errors=True)
        return RunOutcome(launch.run_dir, outcomes, failure, time.monotonic() - started, kept)

    def _refuse(self, launch: Launch) -> Failure | None:
        """Why a launch would not fit into memory, if so; names the first task that would not."""
        tasks = launch.shape.tasks()
        each = memory.TASK_WITH_TENSORFLOW if "tensorflow" in self._preload else memory.TASK
        left = self.available()
        limit = left - memory.reserve(left) if launch.memory_limit is None else launch.memory_limit
        if len(tasks) * each <= limit:
            return None
        message = (
            f"{len(tasks)} tasks need about {memory.text(len(tasks) * each)} of memory, {memory.text(each)} each, and "
            f"may take {memory.text(limit)}: {memory.text(left)} are available. Nothing was started."
        )
        return Failure(tasks[max(0, limit // each)], "memory", message, ())


def _port_was_taken(launch: Launch, failure: Failure) -> bool:
    try:
        said = (launch.folder(failure.task) / "stderr.log").read_text("utf-8", "replace")
    except FileNotFoundError:
        return False
    serves = bool(launch.shape.counts)
    return serves and failure.kind == "exit" and any(text in said for text in ports.TAKEN)


def _ports_message(failure: Failure) -> str:
    return (
        f"{failure.task} could not start its gRPC server, {_ATTEMPTS} times, each time on another port. "
        "Probably the program runs an operation before it creates its server or strategy: those come first."
    )
