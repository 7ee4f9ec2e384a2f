"""The fork server: imports TensorFlow once and forks one process per task whenever the tool asks.

usage: python server.py CONFIGURATION   (JSON: read, write: descriptors; program; preload; parent; folder)

It speaks JSON lines with the tool over two pipes. It only starts, signals and reaps processes; what is a
failure and when a run is over is decided in the tool. When the tool dies it ends every process it ever
started, removes the folder of the runs, then ends itself.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from typing import Any

import child
import views

PR_SET_CHILD_SUBREAPER = 36
# In the environment of the server from its start, so in that of all its descendants: the way to find the
# strays.
TAG = "TF_MIGRATE_FORK_SERVER"


class Server:
    """Starts, ends and reaps tasks; one instance per process."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self._read = configuration["read"]
        self._write = configuration["write"]
        self._program = configuration["program"]
        self._parent = configuration["parent"]
        self._tag = os.environ.get(TAG, "")
        self._pending = b""
        self._tasks: dict[int, str] = {}
        self._deadline: float | None = None
        self._ending = False
        #: Whether the tool said goodbye. If it did not it is dead, or dying: its requests end before its children
        #: get another parent.
        self.dismissed = False
        self._woken, self._wake = socket.socketpair()
        self._view: views.View | None = None
        self._view_of = ""
        #: Why there are no views here ("" if there are); None before it was tried.
        self._no_views: str | None = None if configuration["views"] else "not wanted"

    def serve(self) -> tuple[dict[str, Any], views.View | None] | None:
        """Answer requests until the tool goes away. Returns None; in a child, the job to become and its view."""
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        # SIGHUP says that the tool may be dead. Dying of it at once would leave descendants of tasks behind.
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            selector.register(self._read, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while os.getppid() == self._parent:
                selector.select(self._patience())
                self._drain_wakeups()
                self._reap()
                for request in self._requests(selector):
                    job = self._handle(request)
                    if job is not None:
                        self._become_child(selector)
                        return job, self._view
                if self._read < 0:
                    break
                self._advance_ending()
        self._end_everything()
        return None

    def send(self, event: dict[str, Any]) -> None:
        """Tell the tool something. A tool that is gone is not an error: the loop finds out by itself."""
        line = (json.dumps(event) + "\n").encode()
        try:
            while line:
                line = line[os.write(self._write, line) :]
        except OSError:
            pass

    def _patience(self) -> float | None:
        # A second at most, because a getppid that changed may come without any signal (not Linux).
        return 0.02 if self._ending else 1.0

    def _drain_wakeups(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _requests(self, selector: selectors.BaseSelector) -> list[dict[str, Any]]:
        ready = any(key.fd == self._read for key, _ in selector.select(0))
        if ready:
            content = os.read(self._read, 1 << 16)
            if not content:
                # What was asked for before does not matter any more, but for the last word.
                self.dismissed = self.dismissed or self._pending.endswith(b'{"op": "close"}\n')
                self._read = -1
                return []
            self._pending += content
        # One at a time: a fork leaves the loop in the child, where the requests behind it mean nothing.
        line, newline, rest = self._pending.partition(b"\n")
        if not newline:
            return []
        self._pending = rest
        if b"\n" in rest:
            self._wake.send(b"\0")
        return [json.loads(line)]

    def _handle(self, request: dict[str, Any]) -> dict[str, Any] | None:
        if request["op"] == "start":
            return self._start(request["job"])
        if request["op"] == "signal":
            self._signal(request["signal"], request["tasks"])
        elif request["op"] == "end":
            self._begin_ending(request["grace"])
        elif request["op"] == "close":
            self.dismissed = True
        return None

    def _start(self, job: dict[str, Any]) -> dict[str, Any] | None:
        sys.stdout.flush()
        sys.stderr.flush()
        started = time.time()
        own = os.getpid()
        self._prepare_view(job.get("confine"))
        try:
            pid = os.fork()
        except OSError as error:
            self.send({"event": "not started", "task": job["task"], "message": error.strerror, "errno": error.errno})
            return None
        if pid == 0:
            job["parent"] = own
            job["program"] = self._program
            return job
        self._tasks[pid] = job["task"]
        self.send({"event": "started", "task": job["task"], "pid": pid, "time": started})
        return None

    def _prepare_view(self, wanted: dict[str, Any] | None) -> None:
        """Have the view of the run that a job belongs to; the first one makes it."""
        if wanted is None:
            self._close_view()
            return
        if self._view is not None and self._view_of == wanted["run"]:
            return
        self._close_view()
        if self._no_views is None:
            try:
                self._no_views = views.try_out()
            except OSError as error:
                self._no_views = str(error)
        self._view, self._view_of = views.View(wanted["own"], wanted["near"]), wanted["run"]
        if not self._no_views:
            try:
                self._view.make()
            except OSError as error:
                self._no_views = str(error)

    def _close_view(self) -> None:
        if self._view is not None:
            self._view.close()
        self._view = None

    def _become_child(self, selector: selectors.BaseSelector) -> None:
        selector.close()
        signal.set_wakeup_fd(-1)
        self._woken.close()
        self._wake.close()
        os.close(self._read)
        os.close(self._write)

    def _signal(self, number: int, tasks: list[str]) -> None:
        for pid, task in self._tasks.items():
            if task in tasks:
                _send_signal(pid, number)

    def _begin_ending(self, grace: float) -> None:
        self._reap()
        self._ending = True
        self._deadline = time.monotonic() + grace
        self.send({"event": "ending", "time": time.time()})
        for pid in self._tasks:
            _send_signal(pid, signal.SIGTERM, group=True)

    def _advance_ending(self) -> None:
        if not self._ending:
            return
        if self._tasks and self._deadline is not None and time.monotonic() < self._deadline:
            return
        strays = self._kill_all()
        if not strays and not self._tasks:
            self._ending = False
            self._deadline = None
            changes = [] if self._view is None else self._view.changes()
            self.send({"event": "ended all", "time": time.time(), "changes": changes})
            self._close_view()

    def _kill_all(self) -> set[int]:
        for pid in self._tasks:
            _send_signal(pid, signal.SIGKILL, group=True)
        strays = descendants(os.getpid(), self._tag)
        for pid in strays:
            _send_signal(pid, signal.SIGKILL)
        self._reap()
        return strays

    def _end_everything(self) -> None:
        deadline = time.monotonic() + 3.0
        while (self._kill_all() or self._tasks) and time.monotonic() < deadline:
            time.sleep(0.01)
        self._close_view()

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            task = self._tasks.pop(pid, None)
            if task is None:
                continue
            self.send(
                {
                    "event": "ended",
                    "task": task,
                    "pid": pid,
                    "time": time.time(),
                    "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    "signal": _signal_name(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None,
                    "max_rss_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
                    "cpu_seconds": usage.ru_utime + usage.ru_stime,
                }
            )


def descendants(root: int, tag: str) -> set[int]:
    """Living processes under `root` or with `tag` in their environment. Empty where there is no /proc."""
    parents: dict[int, int] = {}
    tagged: set[int] = set()
    needle = (TAG + "=" + tag).encode()
    try:
        entries = os.listdir("/proc")
    except OSError:
        return set()
    for entry in entries:
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] in (b"Z", b"X"):
                continue
            parents[int(entry)] = int(fields[1])
            with open(f"/proc/{entry}/environ", "rb") as file:
                if tag and needle in file.read().split(b"\0"):
                    tagged.add(int(entry))
        except OSError:
            continue
    found = {root}
    grown = True
    while grown:
        below = {pid for pid, parent in parents.items() if parent in found}
        grown = not below <= found
        found |= below
    return (found | tagged) - {root}


def _send_signal(pid: int, number: int, group: bool = False) -> None:
    for send in (os.kill, os.killpg) if group else (os.kill,):
        with contextlib.suppress(OSError):
            send(pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def preload(program: str, modules: list[str]) -> dict[str, Any]:
    """Import what every task needs, without touching TensorFlow's runtime, and describe what was found."""
    started = time.perf_counter()
    if program == "migrated" and importlib.util.find_spec("tf_keras") is None:
        # TensorFlow 2.15, say, whose own Keras is Keras 2: asking for tf_keras would only fail.
        os.environ.pop("TF_USE_LEGACY_KERAS", None)
    for name in modules:
        importlib.import_module(name)
    description: dict[str, Any] = {"python": sys.version.split()[0], "pid": os.getpid()}
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        # Keras and Estimator load lazily: what is not touched here would be loaded again in every task.
        if program == "migrated":
            description["layer"] = tensorflow.keras.layers.Dense.__module__
        elif tensorflow.__version__.startswith("1."):
            description["estimator"] = tensorflow.estimator.Estimator.__module__
        else:
            description["layer"] = tensorflow.compat.v1.layers.Dense.__module__
            estimator = getattr(tensorflow.compat.v1, "estimator", None)
            description["estimator"] = getattr(getattr(estimator, "Estimator", None), "__module__", None)
        description["tensorflow"] = tensorflow.__version__
        description["keras"] = _keras_version(program)
        description["context_initialized"] = _context_initialized()
    description["import_seconds"] = round(time.perf_counter() - started, 3)
    return description


def _keras_version(program: str) -> str | None:
    for name in ("tf_keras", "keras") if program == "migrated" else ("keras",):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            return str(version)
    return None


def _context_initialized() -> bool:
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    return bool(getattr(context, "_initialized", False))


def _clear(configuration: dict[str, Any]) -> None:
    """Remove the folder of the runs: the tool cannot do it any more because it was killed."""
    if configuration.get("folder"):
        shutil.rmtree(configuration["folder"], ignore_errors=True)


def _orphaned(configuration: dict[str, Any]) -> None:
    if os.getppid() != configuration["parent"]:
        _clear(configuration)
        os._exit(1)


def main() -> None:
    """Prepare, report, serve; in a child, run the task."""
    configuration = json.loads(sys.argv[1])
    # The signal also comes when only the thread ends that started this process; hence the look at the parent.
    signal.signal(signal.SIGHUP, lambda *_: _orphaned(configuration))
    child.die_with_parent(signal.SIGHUP)
    _orphaned(configuration)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in (configuration["read"], configuration["write"]):
        os.set_inheritable(descriptor, False)
    sys.path.pop(0)
    for name in ("child", "guard", "keras_asked", "views"):
        sys.modules.pop(name, None)
    server = Server(configuration)
    gc.disable()  # hardly anything that is imported goes away: looking for it takes a sixth of the time
    try:
        description = preload(configuration["program"], configuration["preload"])
    except BaseException as error:
        traceback.print_exc()
        server.send({"event": "failed", "message": f"{type(error).__name__}: {error}"})
        os._exit(1)
    # Orphaned grandchildren come to this process and not to init, so they can be found and reaped.
    child.prctl(PR_SET_CHILD_SUBREAPER, 1)
    gc.collect()
    gc.freeze()  # the pages of what was imported stay shared with the tasks
    gc.enable()
    server.send(dict(description, event="ready"))
    task = server.serve()
    if task is not None:
        child.run(*task)
    elif not server.dismissed or os.getppid() != configuration["parent"]:
        _clear(configuration)
    os._exit(0)


if __name__ == "__main__":
    main()
