"""Which lines of the user's files ran, of those that can: also in the threads that call functions of a data set, and in
the code that AutoGraph makes of a function, which has lines of its own.
"""

import ast
import atexit
import dis
import functools
import importlib
import os
import sys
import threading
import types

from sources import is_users

# What was called, or has run lines within one call, so often shows no new ones: work for each example is not watched to
# its end, since it would take several times as long.
_CALLS, _LINES = 2000, 20000
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


def branches(path):
    """The branches of a file: {(line of the statement, kind): (lines in the branch, lines of the statement)}; no lines
    are in an "else" that is not written.
    """
    try:
        with open(path, "rb") as stream:
            tree = ast.parse(stream.read(), path)
    except (OSError, SyntaxError, ValueError):
        return {}
    found = {}
    for node in ast.walk(tree):
        whole = _lines_of([node])
        if isinstance(node, ast.If) and not _is_main(node.test):
            found[node.lineno, "then"] = (_lines_of(node.body), whole)
            found[node.lineno, "else"] = (_lines_of(node.orelse), whole)
        elif isinstance(node, (ast.For, ast.While)):
            found[node.lineno, "body"] = (_lines_of(node.body), whole)
        elif isinstance(node, ast.ExceptHandler):
            found[node.lineno, "except"] = (_lines_of(node.body), whole)
        elif type(node).__name__ == "match_case":
            found[node.pattern.lineno, "case"] = (_lines_of(node.body), whole)
    return found


def _lines_of(nodes):
    return {one.lineno for node in nodes for one in ast.walk(node) if hasattr(one, "lineno")}


def _is_main(test):
    return any(isinstance(one, ast.Name) and one.id == "__name__" for one in ast.walk(test))


def taken(path, ran, jumps):
    """Which branches of a file were taken, and which there are, of the lines that ran in it and the steps from one line
    to the next within a function (to 0 where it returns). Whether an "else" that is not written was taken in code
    that AutoGraph has made cannot be seen; it is left out.
    """
    known = branches(path)
    seen, there = set(), set()
    for (line, kind), (inside, whole) in known.items():
        left = [to for start, to in jumps if start == line]
        if not inside and line in ran and not left:
            continue
        there.add((line, kind))
        if inside & ran if inside else any(to not in whole for to in left):
            seen.add((line, kind))
    return sorted(seen), sorted(there)


class Lines(object):
    """The lines that ran in this process."""

    def __init__(self, folder):
        self.folder = folder
        self.ran = {}  # by file, also those that AutoGraph made
        self.jumps = {}  # by file, from one line to the next
        self.codes = {}  # by id: [calls to look at, lines of its file, the code itself]
        self.origins = {}  # (made file, line) -> (file, line)

    def trace(self, frame, event, argument):
        code = frame.f_code
        known = self.codes.get(id(code))
        if known is None:
            path = code.co_filename
            watched = is_users(path) or os.path.basename(path).startswith(_GENERATED)
            places = [one.setdefault(path, set()) for one in (self.ran, self.jumps)] if watched else None
            known = [_CALLS if watched else 0, places, code]
            self.codes[id(code)] = known
        if not known[0]:
            return None
        known[0] -= 1
        (lines, jumps), left, before = known[1], [_LINES], [0]

        def local(frame, event, argument):
            line = frame.f_lineno
            lines.add(line)
            jumps.add((before[0], 0 if event == "return" else line))
            before[0] = line
            left[0] -= 1
            return local if left[0] else None

        return local

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
                some, every = taken(path, lines, self.jumps.get(path, ()))
                said[os.path.abspath(path)] = {
                    "ran": sorted(lines & able),
                    "of": sorted(able),
                    "taken": some,
                    "branches": every,
                }
        self.folder.write_json("lines.json", said)


def install(folder):
    """From now on the lines that run are noted; they are written when the process ends."""
    lines = Lines(folder)
    lines.watch_threads()
    lines.watch_autograph()
    atexit.register(lines.write)
    threading.settrace(lines.trace)
    sys.settrace(lines.trace)
