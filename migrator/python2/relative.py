"""`import reader` for a file beside: Python 2 looked in the folder of a package first, Python 3 does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from migrator.python2.edits import Edits

_SCRIPT = re.compile(r"^if[ \t(]+__name__\b", re.M)
_ABSOLUTE = re.compile(r"^from __future__ import\b[^\n]*\babsolute_import\b", re.M)


def local_imports(path: Path, edits: Edits, tree: ast.Module, texts: Mapping[Path, str]) -> list[tuple[int, str]]:
    """Makes the imports of files beside relative ones, in a package; returns what is to be told: lines and sentences.

    In a folder without an `__init__.py` nothing changes, nor where a script of the folder is started by itself, for
    then the folder is where Python looks. Where other folders import the package as well, somebody has to choose.
    """
    folder = path.parent
    if folder / "__init__.py" not in texts and not (folder / "__init__.py").is_file():
        return []
    if _ABSOLUTE.search(edits.text):
        return []
    beside = {one.stem for one in texts if one.parent == folder and one != path}
    beside |= {one.parent.name for one in texts if one.name == "__init__.py" and one.parent.parent == folder}
    found = list(_found(tree, beside - {"__init__", "__main__"}))
    if not found:
        return []
    started = any(_SCRIPT.search(text) for one, text in texts.items() if one.parent == folder)
    imported = re.compile(rf"^[ \t]*(?:from|import)[ \t]+(?:[\w.]+\.)?{re.escape(folder.resolve().name)}\b", re.M)
    asked = any(imported.search(text) for one, text in texts.items() if folder not in one.parents)
    if started and not asked:
        return []
    told = []
    for node, name in found:
        if started:
            told.append(
                (
                    node.lineno,
                    (
                        f"`{name}` is found beside this file only if a script of this folder is run: if the "
                        f"folder is imported as a package, Python 3 needs `from . import {name}`"
                    ),
                )
            )
        elif isinstance(node, ast.ImportFrom):
            at = edits.raw.index(str(node.module).encode(), edits.start(node) + 4)
            edits.between(at, at, ".")
        elif isinstance(node, ast.Import):
            made = _relative(node, name)
            if made is None:
                told.append((node.lineno, f"`{name}` is beside this file: Python 3 needs `from . import {name}`"))
            else:
                edits.between(edits.start(node), edits.end(node), made)
    return told


def _found(tree: ast.Module, beside: set[str]) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            if (first := node.module.split(".")[0]) in beside:
                yield node, first
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
            if any(name in beside for name in names):
                yield node, next(name for name in names if name in beside)


def _relative(node: ast.Import, name: str) -> str | None:
    """`from . import a as b` for `import a as b`, of one name; None for what says it in another way."""
    if len(node.names) != 1 or "." in node.names[0].name:
        return None
    alias = node.names[0]
    return f"from . import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
