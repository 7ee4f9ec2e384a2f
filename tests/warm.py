"""Scripts of tests in interpreters that have imported TensorFlow already: a fork takes 0.1 s, an import 3 to 10.

What a program does by itself, as plain `python`, is not tested so: it has to import what it needs.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.environments import migrated_python, original_python

#: Both a program of TensorFlow 2 to the fork server, which changes nothing in the TensorFlow of such programs.
_KIND = "migrated"
_SECONDS = 600.0
#: As `python -c` runs it.
_CODE = """\
import sys
sys.argv[0], sys.path[0] = "-c", ""
exec(compile({code!r}, "<string>", "exec"))
"""


@cache
def _server(python: Path, keras: int) -> ForkServer:
    modules = ["numpy", "tensorflow", "tensorflow.compat.v1"]
    if python == migrated_python():
        modules += ["tf_keras"] if keras == 2 else []
    elif python == original_python():
        # What is not loaded before the fork is loaded again in each: the API of Estimators takes a second.
        modules += ["tensorflow_estimator.python.estimator.api._v1.estimator"]
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = ForkServer(python, _KIND, tuple(modules), keras=keras, environment={**given, "TF_CPP_MIN_LOG_LEVEL": "3"})
    atexit.register(server.__enter__().close)
    return server


def run(
    python: Path | str, *command: str, cwd: Path | None = None, stdin: str = "", keras: int = 2
) -> subprocess.CompletedProcess[str]:
    """What `python command...` said and how it ended: a script or `-c code`, in a fork of an interpreter.

    `keras` is what `tf.keras` is on TensorFlow 2.16 and later; `cwd` is a folder of its own where it is not given.
    The exit code of a script that a signal ended is negative.
    """
    with tempfile.TemporaryDirectory(prefix="tf-migrate-warm-") as name:
        folder = Path(name)
        (folder / "stdin").write_text(stdin, encoding="utf-8")
        (folder / "cwd").mkdir()
        cwd = (cwd or folder / "cwd").absolute()
        script, args = cwd / command[0], command[1:]
        if command[0] == "-c":
            script, args = folder / "code.py", command[2:]
            script.write_text(_CODE.format(code=command[1]), encoding="utf-8")
        launch = Launch(
            _KIND,
            script,
            args,
            ClusterShape.parse(""),
            folder / "run",
            ready_timeout=_SECONDS,
            stall_timeout=_SECONDS,
            total_timeout=_SECONDS,
            cwd=cwd,
            stdin=folder / "stdin",
        )
        outcome = _server(Path(python), keras).run(launch)
        assert outcome.failure is None or outcome.failure.kind in ("exit", "signal"), outcome.failure
        [task] = outcome.tasks
        said = [path.read_text(encoding="utf-8", errors="replace") for path in (task.stdout, task.stderr)]
    code = -signal.Signals[task.signal] if task.signal else task.exit_code or 0
    return subprocess.CompletedProcess([str(python), *command], code, *said)
