"""Runs many programs in one interpreter, which has TensorFlow imported already: a forked process for each.

Python 3.7 and later. What a program leaves is a JSON file: the error that it ended with, what it printed, and what
the two sides note of its trainings.
"""

import json
import os
import runpy
import signal
import sys
import traceback

import numpy as np

#: The classes that draw initial values, in several modules of several versions.
RANDOM = (
    "VarianceScaling",
    "RandomUniform",
    "RandomNormal",
    "TruncatedNormal",
    "Orthogonal",
    "GlorotUniform",
    "GlorotNormal",
    "HeNormal",
    "HeUniform",
    "LecunNormal",
    "LecunUniform",
)
_SCALE = 0.3


def pattern(shape, offset=None, full=None):
    """Values for a variable that depend on its shape only, or for a part of it that is told by offset and full."""
    shape = [int(size) for size in shape]
    whole = [int(size) for size in (shape if full is None else full)]
    index = np.arange(int(np.prod(whole)) if whole else 1, dtype=np.float64)
    values = (_SCALE * np.sin(1.7 * index + 0.011 * index * index + 0.4)).reshape(whole)
    if offset is not None:
        values = values[tuple(slice(int(at), int(at) + size) for at, size in zip(offset, shape))]
    return values.astype(np.float32)


def even(shape):
    """Values in [0, 1) that stand in for a dropout's draws: spread evenly, the same in every step."""
    index = np.arange(int(np.prod(shape)) if len(shape) else 1, dtype=np.float64)
    return ((index * 0.6180339887 + 0.123) % 1.0).reshape([int(size) for size in shape]).astype(np.float32)


def plain(value):
    """A result as JSON can say it."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    array = np.asarray(value)
    if array.dtype.kind in "fiub":
        return array.astype(float).tolist()
    return str(value)


def patch(owner, name, make):
    """Puts make(original) in the place of an attribute, if there is one."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, make(original))


def _run(job, side):
    os.setsid()
    signal.alarm(job["seconds"])
    log = os.open(job["out"] + ".log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(job["folder"])
    sys.dont_write_bytecode = True
    found = {"error": None}
    try:
        side.begin()
        script = os.path.join(job["folder"], job["script"])
        sys.argv = [script]
        sys.path.insert(0, job["folder"])
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            found["error"] = "exit %r" % (error.code,)
    except BaseException as error:
        traceback.print_exc()
        found["error"] = ("%s: %s" % (type(error).__name__, error))[:600]
    try:
        found.update(side.end())
    except Exception as error:
        traceback.print_exc()
        found["error"] = found["error"] or "what it trained cannot be read: %r" % (error,)
    sys.stdout.flush()
    sys.stderr.flush()
    with open(job["out"] + ".part", "w") as file:
        json.dump(found, file)
    os.rename(job["out"] + ".part", job["out"])


def serve(side):
    """Runs the jobs of the file that the command line names, one after the other."""
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    for job in jobs:
        process = os.fork()
        if not process:
            try:
                _run(job, side)
            finally:
                os._exit(0)
        os.waitpid(process, 0)
