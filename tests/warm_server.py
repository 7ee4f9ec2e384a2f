"""Imports TensorFlow once, then runs each script that it is asked for in a fork: see warm.py. For Python 3.7, too.

usage: python warm_server.py MODULE...   (imported before the first fork; requests and answers are lines of JSON)
"""

import importlib
import json
import os
import runpy
import signal
import sys
import traceback


def run(command):  # type: ignore[no-untyped-def]
    """What `python` does with a script or `-c code`, and its arguments."""
    if command[0] == "-c":
        sys.argv = ["-c", *command[2:]]
        sys.path[0] = ""
        exec(compile(command[1], "<string>", "exec"), vars(importlib.import_module("__main__")))
        return
    sys.argv = command
    sys.path[0] = os.path.dirname(os.path.abspath(command[0]))
    runpy.run_path(command[0], run_name="__main__")


def become(request):  # type: ignore[no-untyped-def]
    """The process of one script, which ends here."""
    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
    os.dup2(os.open(request["stdin"], os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0, closefd=False)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    code = 0
    try:
        run(request["command"])
    except SystemExit as end:
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
        if not isinstance(end.code, (int, type(None))):
            sys.stderr.write(str(end.code) + "\n")
    except BaseException:
        traceback.print_exc()
        code = 1
    # Functions of `atexit` are the server's too; daemons and pools of TensorFlow end with the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main():  # type: ignore[no-untyped-def]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(600)
            become(request)
        _, status = os.waitpid(child, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        answers.write(str(code) + "\n")


if __name__ == "__main__":
    main()
