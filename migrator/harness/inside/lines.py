"""Which lines of the user's files ran, of those that can: also in the threads that call functions of a data set, and in
the code that AutoGraph makes of a function, which has lines of its own.

The files are compiled with a note before each statement, which takes a hundredth of a statement of TensorFlow. (A trace
function would be called for each function of each library, too: a training took three times as long.)
"""

import ast
import atexit
import builtins
import dis
import functools
import importlib
import importlib.machinery
import itertools
import os
import runpy
import types

from sources import is_users

#: What notes that a statement runs: in `builtins`, which every module sees.
NAME = "__tf_migrate_runs__"
_GENERATED = "__autograph_generated_file"
_STATEMENTS = (ast.stmt, ast.ExceptHandler) + ((ast.match_case,) if hasattr(ast, "match_case") else ())


def executable(path):
    """The numbers of the lines of a file that can run; empty for one that is no Python."""
    try:
        with open(path, "rb") as stream:
            waiting = [compile(stream.read(), path, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return set()
    found = set()
    while waiting:
        code = waiting.pop()
        found.update(line for _, line in dis.findlinestarts(code) if line)
        waiting.extend(one for one in code.co_consts if isinstance(one, types.CodeType))
    return found


class Branch(object):
    """A branch of a file: the lines in it, none in an "else" that is not written. Of such a one the `notes`, of its
    statement and of itself.
    """

    def __init__(self, inside, notes=None):
        self.inside = inside
        self.notes = notes


class File(object):
    """The notes of a file: {number: lines of the statement}, and its branches: {(line, kind): Branch}."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.lines = {}
        self.branches = {}

    def watch(self, tree):
        """Puts a note before each statement of a module."""
        self._block(tree, tree.body, set())
        return tree

    def _block(self, owner, body, before):
        """Puts notes into a list of statements; `before` are lines that run when the list begins."""
        waiting, noted = set(before), []
        first = ast.get_docstring(owner, clean=False) is not None if _has_docstring(owner) else False
        for place, statement in enumerate(body):
            waiting |= _own_lines(statement)
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            note = None
            if not (future or (first and place == 0)):  # these have to stay the first ones
                note, waiting = self._note(waiting, statement), set()
                noted.append(note)
            self._inner(statement, note)
            noted.append(statement)
        if waiting:
            noted.append(self._note(waiting, body[-1]))
        body[:] = noted

    def _note(self, lines, beside):
        number = next(self.numbers)
        self.lines[number] = lines
        called = ast.Name(id=NAME, ctx=ast.Load())
        note = ast.Expr(ast.Call(func=called, args=[ast.Constant(value=number, kind=None)], keywords=[]))
        note.number = number
        for one in ast.walk(note):
            ast.copy_location(one, beside)
        return note

    def _inner(self, statement, note):
        line = statement.lineno
        if isinstance(statement, ast.If) and not _is_main(statement.test):
            self.branches[line, "then"] = Branch(_lines_of(statement.body))
            self.branches[line, "else"] = Branch(_lines_of(statement.orelse))
        elif isinstance(statement, (ast.For, ast.While)):
            self.branches[line, "body"] = Branch(_lines_of(statement.body))
        for name in ("body", "orelse", "finalbody"):
            body = getattr(statement, name, None)
            if body:
                self._block(statement, body, set())
        if isinstance(statement, ast.If) and not statement.orelse:
            otherwise = self._note(set(), statement)
            statement.orelse.append(otherwise)
            if (line, "else") in self.branches:
                self.branches[line, "else"].notes = note.number, otherwise.number
        for handler in getattr(statement, "handlers", ()):
            self.branches[handler.lineno, "except"] = Branch(_lines_of(handler.body))
            self._block(handler, handler.body, _own_lines(handler))
        for case in getattr(statement, "cases", ()):
            self.branches[case.pattern.lineno, "case"] = Branch(_lines_of(case.body))
            self._block(case, case.body, _own_lines(case))

    def taken(self, ran, seen):
        """Which branches were taken, and which there are, of the lines and the notes that were seen. Whether an "else"
        that is not written was taken in code that AutoGraph has made of it cannot be seen: it is left out.
        """
        some, every = [], []
        for place, branch in sorted(self.branches.items()):
            if branch.notes is not None and place[0] in ran and branch.notes[0] not in seen:
                continue
            every.append(place)
            if branch.inside & ran if branch.notes is None else branch.notes[1] in seen:
                some.append(place)
        return some, every


def _has_docstring(node):
    return isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))


def _lines_of(nodes):
    return {one.lineno for node in nodes for one in ast.walk(node) if hasattr(one, "lineno")}


def _own_lines(statement):
    """The lines of a statement that run when it does: not those of statements in it, and of the body of a lambda."""
    found, waiting = set(), [statement]
    while waiting:
        node = waiting.pop()
        if hasattr(node, "lineno"):
            found.add(node.lineno)
        for name, value in ast.iter_fields(node):
            if isinstance(node, ast.Lambda) and name == "body":
                continue
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, ast.AST) and not isinstance(one, _STATEMENTS):
                    waiting.append(one)
    return found


def _is_main(test):
    return any(isinstance(one, ast.Name) and one.id == "__name__" for one in ast.walk(test))


class Lines(object):
    """The lines that ran in this process."""

    def __init__(self, folder):
        self.folder = folder
        self.numbers = itertools.count()
        self.seen = set()  # the numbers of the notes
        self.files = {}  # by path, also those that AutoGraph made: [File]
        self.origins = {}  # (made file, line) -> (file, line)

    def compiled(self, text, path, mode="exec", **more):
        """The code of a file; with its notes, if it is one to watch."""
        if not _watched(path):
            return compile(text, path, mode, **more)
        file = File(self.numbers)
        try:
            code = compile(file.watch(ast.parse(text, path)), path, "exec", dont_inherit=True)
        except RecursionError:  # deeper than can be walked
            return compile(text, path, "exec", dont_inherit=True)
        self.files.setdefault(path, []).append(file)
        return code

    def watch_files(self):
        """From now on what is run and imported has notes: never from compiled files, which have none."""
        setattr(builtins, NAME, self.seen.add)
        runpy.compile = self.compiled
        loader = importlib.machinery.SourceFileLoader
        original = loader.get_code

        @functools.wraps(original)
        def get_code(module, name):
            path = module.get_filename(name)
            return self.compiled(module.get_data(path), path) if _watched(path) else original(module, name)

        loader.get_code = get_code

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

    def ran(self):
        """{file of the user's: lines that ran}"""
        seen, found = set(self.seen), {}
        for path, files in list(self.files.items()):
            ran = {line for file in files for number in seen & set(file.lines) for line in file.lines[number]}
            if is_users(path):
                found.setdefault(path, set()).update(ran)
                continue
            for line in ran:
                origin = self.origins.get((path, line))
                if origin is not None and is_users(origin[0]):
                    found.setdefault(origin[0], set()).add(origin[1])
        return {path: lines for path, lines in found.items() if lines}

    def said(self):
        """What is written of each file."""
        said = {}
        for path, lines in self.ran().items():
            files = self.files.get(path, ())
            # Whether what only a lambda has on its lines ran is not seen.
            able = executable(path) & {line for file in files for own in file.lines.values() for line in own}
            if able:
                some, every = files[-1].taken(lines, self.seen)
                said[os.path.abspath(path)] = {
                    "ran": sorted(lines & able),
                    "of": sorted(able),
                    "taken": some,
                    "branches": every,
                }
        return said

    def write(self):
        self.folder.write_json("lines.json", self.said())


def _watched(path):
    return is_users(path) or os.path.basename(path).startswith(_GENERATED)


def leave_unnoted():
    """What another process has compiled with notes, and a model has kept, runs in this one, too."""
    setattr(builtins, NAME, lambda number: None)


def install(folder):
    """From now on the lines that run are noted; they are written when the process ends."""
    lines = Lines(folder)
    lines.watch_files()
    lines.watch_autograph()
    atexit.register(lines.write)
