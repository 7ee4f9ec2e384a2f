"""Files that a migrated program imports and that were not given: nobody has looked at them."""

from __future__ import annotations

import ast
import contextlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.source.discovery import module_files
from migrator.source.reading import Source, read
from migrator.syntax import statements_in, tree_of

CODE = "TFM198"
_IMPORT = re.compile(r"^\s*(import|from)\s+tensorflow\b", re.MULTILINE)


def not_given(changed: Sequence[Source], given: Collection[Path]) -> dict[Path, list[Finding]]:
    """A finding for each file with TensorFlow that one of the changed files imports and that is not among those given.

    Looked for as Python would find it where the importing file is a script or a module of a package: beside it, and
    below the folder that its own package is in. `changed` are files as they were before.
    """
    here = os.getcwd()  # noqa: PTH109 # there are thousands of paths, and Path is slow
    known = {os.path.normcase(os.path.join(here, path)) for path in given}  # noqa: PTH118
    seen: dict[str, bool] = {}
    found: dict[Path, list[Finding]] = {}
    for source in changed:
        told = set(known)
        for node, candidates in _imports(source):
            path = next((path for path in candidates if os.path.normcase(path) in known or path.is_file()), None)
            if path is None or (name := os.path.normcase(path)) in told:
                continue
            told.add(name)
            if name not in seen:
                text = read(path, strict=False)
                seen[name] = isinstance(text, Source) and _IMPORT.search(text.text) is not None
            if seen[name]:
                found.setdefault(source.path, []).append(_finding(source, node, path))
    return found


def _finding(source: Source, node: ast.stmt, path: Path) -> Finding:
    message = (
        f"`{path.name}` is imported here and uses TensorFlow, but was not given: it was neither read nor "
        "changed; give tf-migrate the folder"
    )
    return Finding(str(source.path), node.lineno, node.col_offset + 1, CODE, Severity.REVIEW, message)


def _imports(source: Source) -> Iterator[tuple[ast.stmt, list[Path]]]:
    """Every module that a file imports, or may import, with the files that it may be in, the likeliest first."""
    folder = source.path.absolute().parent
    tree = ast.Module([], [])
    with contextlib.suppress(SyntaxError):
        tree = tree_of(source.text)
    for node in statements_in(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, _files(folder, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            base = folder if node.level < 2 else folder.parents[min(node.level - 2, len(folder.parents) - 1)]
            for alias in node.names:
                inside = _below(base, [*module, alias.name]) if node.level else _files(folder, [*module, alias.name])
                itself = _below(base, module) if node.level else _files(folder, module)
                yield node, [*inside, *itself]


def _files(folder: Path, parts: list[str]) -> list[Path]:
    """Where an absolute import may lead: beside the file, or into the package that the file is in."""
    packages = [parent.parent for parent in (folder, *folder.parents) if parts and parent.name == parts[0]]
    return [path for root in (folder, *packages) for path in _below(root, parts)]


def _below(root: Path, parts: list[str]) -> list[Path]:
    return list(module_files(root, parts)) if parts else [root / "__init__.py"]
