"""Code that stands beside a training program: functions and classes of its files that the program never runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path

import libcst as cst

from migrator.names.imports import dotted
from migrator.names.literals import literal_value
from migrator.program.parsed import ParsedFile
from migrator.walking import walk

_DYNAMIC = frozenset(("eval", "exec", "globals", "locals", "vars", "getattr", "import_module", "__import__"))


def unused(
    files: Iterable[ParsedFile],
    others: Iterable[ParsedFile],
    roots: Collection[cst.CSTNode],
) -> dict[Path, list[cst.FunctionDef | cst.ClassDef]]:
    """The top-level functions and classes of `files` that nothing but themselves and each other names.

    Looked for are all identifiers, attribute names, keywords and strings of one word in the code that runs when the
    files are imported or started, in `roots` (functions of the program) and in `others` (files that are not of the
    program), and from there on in what they name. A file that looks names up when it runs has none that are unused.
    """
    files = list(files)
    units: list[tuple[ParsedFile, cst.FunctionDef | cst.ClassDef]] = []
    words: set[str] = set()
    for other in others:
        words |= _words(other.module)
    for file in files:
        for statement in file.module.body:
            if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and not statement.decorators:
                units.append((file, statement))
            else:
                words |= _words(statement)
    queue = [(file, unit) for file, unit in units]
    found = True
    while found:
        found = False
        for item in list(queue):
            unit = item[1]
            if unit.name.value in words or any(unit is root for root in roots):
                queue.remove(item)
                words |= _words(unit)
                found = True
    dynamic = words & _DYNAMIC
    unused_units: dict[Path, list[cst.FunctionDef | cst.ClassDef]] = {}
    for file, unit in queue:
        if not dynamic:
            unused_units.setdefault(file.path, []).append(unit)
    return unused_units


def tests(file: ParsedFile) -> list[cst.FunctionDef]:
    """The tests of a file: methods `test...` of classes derived from some TestCase, which only a test runner calls."""
    found: list[cst.FunctionDef] = []
    for unit in file.module.body:
        if not isinstance(unit, cst.ClassDef) or not isinstance(unit.body, cst.IndentedBlock):
            continue
        if any((dotted(base.value) or "").endswith("TestCase") for base in unit.bases):
            methods = [one for one in unit.body.body if isinstance(one, cst.FunctionDef)]
            found += [one for one in methods if one.name.value.startswith("test") and not one.decorators]
    return found


class _Words(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        value = literal_value(node)
        if isinstance(value, str) and value.isidentifier() and value not in _DYNAMIC:  # "eval" is a folder's name
            self.found.add(value)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False  # what is imported counts where it is named


@lru_cache(maxsize=16384)
def _words(node: cst.CSTNode) -> set[str]:
    finder = _Words()
    walk(node, finder)
    return finder.found


__all__ = ["tests", "unused"]
