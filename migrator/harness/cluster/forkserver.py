"""The tool's side of the fork server: one interpreter with TensorFlow loaded, and runs made of its forks."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import psutil

from migrator.harness.cluster import memory, ports
from migrator.harness.cluster.launch import PROGRAMS, Failure, Launch, RunOutcome, TaskOutcome
from migrator.harness.cluster.supervise import Attempt, ForkServerError, OnLine
from migrator.harness.cluster.watch import TAIL_LINES
from migrator.harness.cluster.writes import Write

_SERVER = Path(__file__).resolve().parent.parent / "inside" / "server.py"
_TAG = "TF_MIGRATE_FORK_SERVER"  # as inside/server.py, which cannot be imported here, has it
_ATTEMPTS = 3
#: Seconds that killed processes get to be gone.
_SWEEP_SECONDS = 5.0
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "ftp_proxy")
# Of the tool's interpreter, not of the user's; or of another cluster.
_DROPPED = (
    "TF_CONFIG",
    "TF_USE_LEGACY_KERAS",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
    "PYTHONEXECUTABLE",
)


class ForkServer:
    """One interpreter that imports TensorFlow once and is forked for each task.

    The import begins with the `with` statement and is waited for by the first `describe` or `run`, so that
    two servers can start at the same time. Runs follow one another: one at a time for each server.
    Everything it started ends with it, and it ends with the tool, however the tool ends.
    """

    def __init__(
        self,
        python: Path,
        program: str,
        preload: tuple[str, ...] = ("tensorflow",),
        start_timeout: float = 300.0,
        folder: Path | None = None,
        keras: int = 2,
        views: bool = True,
    ) -> None:
        """`preload` names the modules to import before the forks, `start_timeout` limits that (seconds).

        `keras` is the generation of Keras that migrated programs get as `tf.keras`: 2 (tf_keras) or 3.
        Without `views` what confined programs change outside of their runs is refused, as where the kernel has none.
        `folder` is removed if the tool dies without closing this server (SIGKILL): nobody else can then.
        """
        if program not in PROGRAMS:
            raise ValueError(f"{program!r} is no program: expected one of {', '.join(PROGRAMS)}")
        self._python = python
        self._program = program
        self._preload = preload
        self._start_timeout = start_timeout
        self._folder = folder
        self._keras = keras
        self._views = views
        self._tag = uuid.uuid4().hex
        self._process: subprocess.Popen[bytes] | None = None
        self._description: dict[str, Any] | None = None
        self._pending = b""
        self._requests = -1
        self._events = -1
        self._one_run = threading.Lock()

    def __enter__(self) -> ForkServer:
        requests_read, self._requests = os.pipe()
        self._events, events_write = os.pipe()
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="tf-migrate-server-")
        configuration = {
            "read": requests_read,
            "write": events_write,
            "program": self._program,
            "preload": list(self._preload),
            "parent": os.getpid(),
            "views": self._views,
            "folder": None if self._folder is None else str(self._folder.absolute()),
        }
        try:
            self._process = subprocess.Popen(
                [str(self._python), str(_SERVER), json.dumps(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                pass_fds=(requests_read, events_write),
                start_new_session=True,
            )
        except OSError as error:
            self.close()
            raise ForkServerError(f"{self._python} cannot be started: {error.strerror}") from None
        finally:
            os.close(requests_read)
            os.close(events_write)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        dropped = {*_DROPPED, *_PROXIES, *(name.upper() for name in _PROXIES)}
        environment = {name: value for name, value in os.environ.items() if name not in dropped}
        environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        environment |= {
            _TAG: self._tag,
            "CUDA_VISIBLE_DEVICES": "-1",
            # Peers start at different times: a connection that is refused at first must not be the end.
            "GRPC_FAIL_FAST": "use_caller",
            "no_proxy": "*",
            "NO_PROXY": "*",
        }
        if self._program == "migrated" and self._keras == 2:
            environment["TF_USE_LEGACY_KERAS"] = "1"
        return environment

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self._python

    def describe(self) -> dict[str, Any]:
        """Versions ("python", "tensorflow", "keras"), "import_seconds", "pid"; waits for the start."""
        if self._description is None:
            limit = self._start_timeout
            deadline = time.monotonic() + limit
            events: list[dict[str, Any]] = []
            while not events:
                if time.monotonic() > deadline:
                    self.close()
                    raise ForkServerError(f"{self._python} did not import {self._preload} in {limit:g} s")
                events = self.poll(0.5)
            if events[0]["event"] == "failed":
                raise ForkServerError(f"{self._python} cannot run the program: {events[0]['message']}\n{self._said()}")
            self._description = {key: value for key, value in events[0].items() if key != "event"}
        return dict(self._description)

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
        server = self.describe()["pid"]
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
            addresses = ports.addresses(launch.shape.addressed())
            attempt = Attempt(self, server, launch, addresses, on_line, self._folder)
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
        left = memory.available()
        limit = left - memory.reserve(left) if launch.memory_limit is None else launch.memory_limit
        if len(tasks) * each <= limit:
            return None
        message = (
            f"{len(tasks)} tasks need about {memory.text(len(tasks) * each)} of memory, {memory.text(each)} each, and "
            f"may take {memory.text(limit)}: {memory.text(left)} are available. Nothing was started."
        )
        return Failure(tasks[max(0, limit // each)], "memory", message, ())

    def send(self, request: Mapping[str, Any]) -> None:
        """Write one request to the server."""
        self._check_running()
        line = (json.dumps(request) + "\n").encode()
        try:
            while line:
                line = line[os.write(self._requests, line) :]
        except OSError:
            self._mourn()

    def poll(self, timeout: float) -> list[dict[str, Any]]:
        """The events that the server sent, after at most `timeout` seconds."""
        self._check_running()
        with selectors.DefaultSelector() as selector:
            selector.register(self._events, selectors.EVENT_READ)
            if not selector.select(timeout):
                return []
        content = os.read(self._events, 1 << 16)
        if not content:
            self._mourn()
        *lines, self._pending = (self._pending + content).split(b"\n")
        return [json.loads(line) for line in lines]

    @staticmethod
    def _is_stopped(pid: int) -> bool:
        with contextlib.suppress(psutil.Error):
            return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
        return False

    def _check_running(self) -> None:
        if self._requests < 0:
            raise ForkServerError(f"the fork server of {self._python} is not running")

    def _mourn(self) -> None:
        said = self._said()
        code = self._process.wait() if self._process is not None else None
        self.close()
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        raise ForkServerError(f"the fork server of {self._python} ended by itself ({how})\n{said}")

    def _said(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def close(self) -> None:
        """End the server and everything it started. A second call does nothing."""
        if self._requests < 0:
            return
        with contextlib.suppress(OSError):
            os.write(self._requests, b'{"op": "close"}\n')
        os.close(self._requests)  # without that message the server takes the end of its requests for ours
        self._requests = -1
        if self._process is not None:
            if self._description is None or self._is_stopped(self._process.pid):
                self._process.kill()  # still importing: no tasks yet, and no ear for us; or it will never hear
            try:
                self._process.wait(5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.returncode != 0:
                _sweep(self._tag)
        os.close(self._events)
        self._log.close()


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


def _sweep(tag: str) -> None:
    """Kill what carries the tag of a server that could not do it itself, and wait until it is gone."""
    deadline = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < deadline:
        found = [process for process in psutil.process_iter() if _carries(process, tag)]
        if not found:
            return
        for process in found:
            with contextlib.suppress(psutil.Error, OSError):
                process.kill()
        psutil.wait_procs(found, timeout=0.5)


def _carries(process: psutil.Process, tag: str) -> bool:
    try:
        return bool(process.environ().get(_TAG) == tag)
    except (psutil.Error, OSError):
        return False
