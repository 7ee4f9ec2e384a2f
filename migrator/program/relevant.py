"""Which files of a project can have to do with its programs: the others are not parsed at all."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path


def is_concerned(text: str) -> bool:
    """Whether a file may have to do with a program: `import *` may bring TensorFlow without saying so."""
    return "tensorflow" in text or "stimator" in text or "import *" in text


def around_programs(texts: Mapping[Path, str]) -> list[Path]:
    """The files that speak of an Estimator and all that they import, directly or not, in the order of `texts`.

    An import is taken to mean every file whose path ends like it, so more files may be found than are imported.
    """
    concerned = {path for path, text in texts.items() if is_concerned(text)}
    by_name: dict[str, list[Path]] = {}
    for path in concerned:
        by_name.setdefault(_module(path)[-1], []).append(path)
    found: set[Path] = set()
    queue = [path for path in concerned if "stimator" in texts[path]]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        found.add(path)
        for module in _imported(texts[path]):
            for length in range(len(module), 0, -1):
                head = module[:length]
                queue += [other for other in by_name.get(head[-1], ()) if _module(other)[-length:] == head]
    return [path for path in texts if path in found]


def _module(path: Path) -> tuple[str, ...]:
    """The parts of a file's path, as an import spells them."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


def _imported(text: str) -> Iterable[tuple[str, ...]]:
    """The dotted names that a file imports, the dots of relative imports left out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:
                yield (*module, alias.name)
