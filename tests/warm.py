"""Scripts of tests in interpreters that have imported TensorFlow already: a fork takes 0.1 s, an import 3 to 10.

What a program does by itself, as plain `python`, is not tested so: it has to import what it needs.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from migrator.harness.environments import migrated_python

_SERVER = Path(__file__).with_name("warm_server.py")
_CLEAN = ("PYTHONPATH", "TF_CONFIG", "TF_USE_LEGACY_KERAS")
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


@dataclass(frozen=True)
class _Interpreter:
    """One that waits for scripts, and how it is asked."""

    process: subprocess.Popen[str]
    log: Path

    def run(self, request: Mapping[str, object]) -> int:
        """The exit code of a script; that of a script which a signal ended is negative."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        assert answer, f"the interpreter ended: {self.log.read_text(errors='replace')[-3000:]}"
        return int(answer)


@cache
def _interpreter(python: str, modules: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> _Interpreter:
    handle, log = tempfile.mkstemp(prefix="tf-migrate-warm-")
    atexit.register(os.unlink, log)
    given = {name: value for name, value in os.environ.items() if name not in _CLEAN}
    with os.fdopen(handle, "w") as file:
        process = subprocess.Popen(
            [python, str(_SERVER), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env={**given, **_QUIET, **dict(environment)},
        )

    def end() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()

    atexit.register(end)
    return _Interpreter(process, Path(log))


def run(
    python: Path | str,
    *command: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    keras: int = 2,
) -> subprocess.CompletedProcess[str]:
    """What `python command...` said and how it ended: a script or `-c code`, in a fork of an interpreter.

    `keras` is what `tf.keras` is on TensorFlow 2.16 and later; `environment` is added to that of the tests, `cwd` is a
    folder of its own where it is not given.
    """
    migrated = Path(python) == migrated_python()
    modules = ("numpy", "tensorflow.compat.v1", *(["tf_keras"] if migrated and keras == 2 else []))
    legacy = {"TF_USE_LEGACY_KERAS": "1"} if migrated and keras == 2 else {}
    given = {name: value for name, value in os.environ.items() if name not in _CLEAN}
    interpreter = _interpreter(str(python), modules, tuple(legacy.items()))
    with tempfile.TemporaryDirectory(prefix="tf-migrate-warm-") as name:
        files = {kind: Path(name, kind) for kind in ("stdin", "stdout", "stderr")}
        files["stdin"].write_text(stdin, encoding="utf-8")
        code = interpreter.run(
            {
                "command": list(command),
                "cwd": str((cwd or Path(name)).absolute()),
                "environment": {**given, **_QUIET, **legacy, **(environment or {})},
                **{kind: str(path) for kind, path in files.items()},
            }
        )
        said = [files[kind].read_text(encoding="utf-8", errors="replace") for kind in ("stdout", "stderr")]
    return subprocess.CompletedProcess([str(python), *command], code, *said)
