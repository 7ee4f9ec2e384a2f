"""Which lines of the user's files ran, of those that can: also in the threads that call functions of a data set, and in
the code that AutoGraph makes of a function, which has lines of its own.
"""

import atexit
import dis
import functools
import importlib
import os
import sys
import threading
import types

from sources import is_users

#: A frame that has run this many lines shows no new ones: a loop over all examples is not watched to its end.
_ENOUGH = 20000
_GENERATED = "__autograph_generated_file"


def executable(path):
    """The numbers of the lines of a file that can run; empty for one that is no Python."""
    try:
        with open(path, "rb") as stream:
            waiting = [compile(stream.read(), path, "exec")]
    except (OSError, SyntaxError, ValueError):
        return set()
    found = set()
    while waiting:
        code = waiting.pop()
        found.update(line for _, line in dis.findlinestarts(code) if line)
        waiting.extend(one for one in code.co_consts if isinstance(one, types.CodeType))
    return found


class Lines(object):
    """The lines that ran in this process."""

    def __init__(self, folder):
        self.folder = folder
        self.ran = {}  # by file, also those that AutoGraph made
        self.tracers = {}  # by file; None where nobody looks
        self.origins = {}  # (made file, line) -> (file, line)

    def trace(self, frame, event, argument):
        path = frame.f_code.co_filename
        if path not in self.tracers:
            watched = is_users(path) or os.path.basename(path).startswith(_GENERATED)
            self.tracers[path] = self.tracer(self.ran.setdefault(path, set())) if watched else None
        make = self.tracers[path]
        return None if make is None else make()

    def tracer(self, lines):
        def make():
            left = [_ENOUGH]

            def local(frame, event, argument):
                lines.add(frame.f_lineno)
                left[0] -= 1
                return local if left[0] else None

            return local

        return make

    def watch_threads(self):
        """Functions of data sets are called in threads that Python did not start."""
        script_ops = importlib.import_module("tensorflow.python.ops.script_ops")
        kinds = [one for one in vars(script_ops).values() if isinstance(one, type)]
        for kind in kinds:
            if kind.__module__ == script_ops.__name__ and "__call__" in vars(kind):
                kind.__call__ = self.traced(kind.__call__)

    def traced(self, original):
        @functools.wraps(original)
        def call(*args, **kwargs):
            if sys.gettrace() is None:
                sys.settrace(self.trace)
            return original(*args, **kwargs)

        return call

    def watch_autograph(self):
        """What AutoGraph makes of a function says which line each of its own comes of."""
        api = importlib.import_module("tensorflow.python.autograph.impl.api")
        original = getattr(api, "_convert_actual", None)
        if original is None:
            return

        @functools.wraps(original)
        def convert(*args, **kwargs):
            made = original(*args, **kwargs)
            for place, origin in (getattr(made, "ag_source_map", None) or {}).items():
                self.origins[place.filename, place.lineno] = (origin.loc.filename, origin.loc.lineno)
            return made

        api._convert_actual = convert

    def write(self):
        sys.settrace(None)
        found = {path: set(lines) for path, lines in list(self.ran.items()) if is_users(path)}
        for path, lines in list(self.ran.items()):
            for line in lines:
                origin = self.origins.get((path, line))
                if origin is not None and is_users(origin[0]):
                    found.setdefault(origin[0], set()).add(origin[1])
        said = {}
        for path, lines in found.items():
            able = executable(path)
            if able:
                said[os.path.abspath(path)] = {"ran": sorted(lines & able), "of": sorted(able)}
        self.folder.write_json("lines.json", said)


def install(folder):
    """From now on the lines that run are noted; they are written when the process ends."""
    lines = Lines(folder)
    lines.watch_threads()
    lines.watch_autograph()
    atexit.register(lines.write)
    threading.settrace(lines.trace)
    sys.settrace(lines.trace)
