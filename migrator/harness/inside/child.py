"""One task of a run: the half of a fork that becomes the user's program.

It runs in the user's interpreter (Python 3.7 or newer, no migrator package), straight after the fork.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import json
import os
import random
import runpy
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
from types import TracebackType
from typing import Any

import guard
import keras_asked
import views

PR_SET_PDEATHSIG = 1
STACKS_DESCRIPTOR = 900
GENERATED = "__autograph_generated_file"
INSIDE = os.path.dirname(os.path.abspath(__file__))


def die_with_parent(signal_number: int) -> None:
    """Ask the kernel for a signal when the parent dies. Without effect where there is no prctl."""
    prctl(PR_SET_PDEATHSIG, signal_number)


def prctl(option: int, value: int) -> None:
    """Set an option of this process (Linux; nothing happens elsewhere)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def run(job: dict[str, Any], view: views.View | None = None) -> None:
    """Become the task that `job` describes, run its script to the end, leave the process.

    With a `view` what it changes outside of its run stays in there, or is refused.
    """
    die_with_parent(signal.SIGKILL)
    if os.getppid() != job["parent"]:
        os._exit(1)
    os.setsid()
    _restore_signals()
    _redirect(job.get("stdin") or os.devnull, job["stdout"], job["stderr"])
    os.environ.update(job["environment"])
    faulthandler.enable(file=2)
    _show_stacks_on_request(job["stacks"])
    _keep_generated_code(os.path.dirname(job["stacks"]))
    _reseed()
    code = 1
    try:
        if view is not None:
            view.enter()
            die_with_parent(signal.SIGKILL)  # the kernel may forget it when the rights of a process change
            guard.Guard(os.path.join(os.path.dirname(job["error"]), guard.NOTES), view.own, view.covered).install()
        os.chdir(job["cwd"])
        if job["plan"].get("record"):
            _install_recorder(job["plan"])
        if job["program"] == "original" and "tensorflow" in sys.modules:
            _install_shim()
        if job.get("keras_asked") is not None:
            keras_asked.install(job["keras_asked"]["of_user"])
        code = _run_script(job)
    except BaseException as error:  # the preparation itself failed: still worth an error.json and a traceback
        _write_error(job, error, error.__traceback__)
        with contextlib.suppress(OSError):
            traceback.print_exc()
    _leave(code)


def _restore_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _redirect(stdin: str, stdout: str, stderr: str) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for path, target in ((stdin, 0), (stdout, 1), (stderr, 2)):
        descriptor = os.open(path, os.O_RDONLY if target == 0 else flags, 0o644)
        os.dup2(descriptor, target)
        os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        # The launcher may end this process at any moment: what was printed must be in the file by then.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]


def _show_stacks_on_request(path: str) -> None:
    """Have SIGUSR1 write the stacks of all threads to `path`: not to stderr, which is the program's own."""
    if not hasattr(faulthandler, "register"):
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    # High up, where it is not among those that a program expects to get; unless so many are not allowed.
    with contextlib.suppress(OSError):
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, STACKS_DESCRIPTOR)
        os.close(descriptor)
        descriptor = high
    faulthandler.register(signal.SIGUSR1, file=descriptor, all_threads=True)


def _keep_generated_code(folder: str) -> None:
    """Have AutoGraph write its code into `folder`: from the place for temporary files nobody would remove that of a
    task that is ended.
    """

    def create(*args: Any, **keywords: Any) -> Any:
        return tempfile.NamedTemporaryFile(*args, **{"dir": folder, "prefix": GENERATED, **keywords})

    for name, module in list(sys.modules.items()):
        if name.endswith((".autograph.pyct.loader", ".autograph.pyct.compiler")) and hasattr(module, "tempfile"):
            module.tempfile = types.SimpleNamespace(NamedTemporaryFile=create)  # type: ignore[attr-defined]


def _reseed() -> None:
    # A fork copies the generators' states, but real processes start from different ones.
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _install_recorder(plan: dict[str, Any]) -> None:
    sys.path.insert(0, INSIDE)
    try:
        import recorder

        recorder.install(plan)
    finally:
        # The recorder has loaded all of its modules. What the user calls by such a name is the user's.
        sys.path.remove(INSIDE)
        sys.modules.pop("recorder", None)


def _install_shim() -> None:
    tensorflow = sys.modules["tensorflow"]
    if not str(tensorflow.__version__).startswith("1."):
        _SHIM.install(tensorflow)


def _run_script(job: dict[str, Any]) -> int:
    script = job["script"]
    sys.argv = [script, *list(job["args"])]
    # `python -m` looks modules up in the working directory, `python script.py` beside the script.
    sys.path.insert(0, job["cwd"] if job.get("module") else os.path.dirname(os.path.realpath(script)))
    if job["program"] == "original":  # Horovod's, where it is not installed
        sys.path.append(os.path.join(INSIDE, "substitutes"))
    try:
        if job.get("module"):
            runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = _exit_code(end.code)
        if code != 0:
            _write_error(job, end, end.__traceback__)
        return code
    except BaseException as error:
        trace = _from_script(error.__traceback__, script)
        _write_error(job, error, trace)
        with contextlib.suppress(OSError):
            sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _exit_code(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF
    print(value, file=sys.stderr)
    return 1


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback without the frames above the script's own, which are not the user's business."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace


def _write_error(job: dict[str, Any], error: BaseException, trace: TracebackType | None) -> None:
    lines: list[str] = traceback.format_exception(type(error), error, trace)
    content = {
        "task": job["task"],
        "pid": os.getpid(),
        "time": time.time(),
        "type": type(error).__name__,
        "message": str(error),
        "trace": "".join(lines),
    }
    partial = job["error"] + ".part"
    with contextlib.suppress(OSError):  # on a full disk: the tool sees that too
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(partial, job["error"])


def _leave(code: int) -> None:
    """End as the interpreter does, without C++ destructors: they may wait for threads lost in the fork."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        with contextlib.suppress(OSError):
            traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _load_shim() -> Any:
    # By path and under a private name: a user's own module called `shim` must not meet ours.
    import importlib.util

    spec = importlib.util.spec_from_file_location("_tf_migrate_shim", os.path.join(INSIDE, "shim.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_SHIM = _load_shim()
