"""The tool's side of the fork server: one interpreter with TensorFlow loaded, and runs made of its forks."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import psutil

from migrator.harness.cluster import memory, ports, vitals
from migrator.harness.cluster.runner import Runner
from migrator.harness.cluster.supervise import ForkServerError
from migrator.harness.cluster.tasks import Task
from migrator.harness.cluster.watch import TAIL_LINES

_T = TypeVar("_T")

_SERVER = Path(__file__).resolve().parent.parent / "inside" / "server.py"
_TAG = "TF_MIGRATE_FORK_SERVER"  # as inside/server.py, which cannot be imported here, has it
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


class ForkServer(Runner):
    """One interpreter that imports TensorFlow once and is forked for each task.

    The import begins with the `with` statement, unless it `waits`, and is waited for by the first `describe` or `run`,
    so that two servers can start at the same time. Runs follow one another: one at a time for each server.
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
        environment: Mapping[str, str] | None = None,
        gpu: bool = False,
        waits: bool = False,
    ) -> None:
        """`preload` names the modules to import before the forks, `start_timeout` limits that (seconds).

        `keras` is the generation of Keras that migrated programs get as `tf.keras`: 2 (tf_keras) or 3.
        Without `views` what confined programs change outside of their runs is refused, as where the kernel has none.
        `environment` is that of the programs instead of this process's (None). With `gpu` they have the GPUs that it
        names, or all, with kernels that repeat themselves; else none. One that `waits` starts with `begin`, or when
        it is asked for something.
        `folder` is removed if the tool dies without closing this server (SIGKILL): nobody else can then.
        """
        super().__init__(python, program, preload, folder)
        self._given = environment
        self._start_timeout = start_timeout
        self._keras = keras
        self._views = views
        self._gpu = gpu
        self._waits = waits
        self._starting = threading.Lock()
        self._tag = uuid.uuid4().hex
        self._process: subprocess.Popen[bytes] | None = None
        self._description: dict[str, Any] | None = None
        self._pending = b""
        self._requests = self._requests_read = -1
        self._events = self._events_write = -1

    def __enter__(self) -> ForkServer:
        self._requests_read, self._requests = os.pipe()
        self._events, self._events_write = os.pipe()
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="tf-migrate-server-")
        if not self._waits:
            self.begin()
        return self

    def begin(self) -> None:
        """See Runner.begin. Does nothing where the interpreter has started, or is gone."""
        with self._starting:
            if self._process is None and self._requests >= 0:
                self._launch()

    def _launch(self) -> None:
        requests_read, events_write = self._requests_read, self._events_write
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
            self._close_ends()

    def _close_ends(self) -> None:
        """Close the ends of the pipes that are the interpreter's."""
        for end in (self._requests_read, self._events_write):
            if end >= 0:
                os.close(end)
        self._requests_read = self._events_write = -1

    def _environment(self) -> dict[str, str]:
        dropped = {*_DROPPED, *_PROXIES, *(name.upper() for name in _PROXIES)}
        given = os.environ if self._given is None else self._given
        environment = {name: value for name, value in given.items() if name not in dropped}
        environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        environment |= {
            _TAG: self._tag,
            # Peers start at different times: a connection that is refused at first must not be the end.
            "GRPC_FAIL_FAST": "use_caller",
            "no_proxy": "*",
            "NO_PROXY": "*",
        }
        if self._gpu:  # two programs share a GPU: neither may take all of its memory
            environment |= {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_DETERMINISTIC_OPS": "1"}
        else:
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        if self._program == "migrated" and self._keras == 2:
            environment["TF_USE_LEGACY_KERAS"] = "1"
        return environment

    def describe(self) -> dict[str, Any]:
        """Versions ("python", "tensorflow", "keras"), "import_seconds", "pid"; waits for the start."""
        if self._description is None:
            self.begin()
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

    def _place(self, tasks: Sequence[Task]) -> None:
        """All are forks of the one server."""

    def addresses(self, tasks: Sequence[Task]) -> dict[Task, str]:
        """See Runner.addresses: of this machine, for nobody else."""
        return {task: ports.address() for task in tasks}

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

    def look(self, tasks: Mapping[Task, int]) -> tuple[int | None, Mapping[Task, vitals.Vitals]]:
        """See Channel.look."""
        server = self.describe()["pid"]
        stopped, seen = vitals.look(server, set(tasks.values()))
        return server if stopped else None, _by_task(seen, tasks)

    def exact_memory(self, tasks: Mapping[Task, int]) -> Mapping[Task, int]:
        """See Channel.exact_memory."""
        return _by_task(vitals.exact_memory(self.describe()["pid"], set(tasks.values())), tasks)

    def available(self) -> int:
        """See Channel.available."""
        return memory.available()

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
        self._close_ends()
        os.close(self._events)
        self._log.close()


def _by_task(seen: Mapping[int, _T], tasks: Mapping[Task, int]) -> dict[Task, _T]:
    return {task: seen[pid] for task, pid in tasks.items() if pid in seen}


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
