"""Which files of a project import which, and where a file goes that all of a program's files can import."""

from __future__ import annotations

import ast
import keyword
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrator.bridge.codemod import Support
from migrator.source.discovery import module_files
from migrator.syntax import NOT_PYTHON, statements_in, tree_of


@dataclass(frozen=True)
class Edge:
    """An import of one file of the project by another.

    `root` is the folder below which the name of the module is looked up, `level` the dots of a relative import, and
    `name` is what the importing file calls `what`, a name of the imported file ("": the module itself, "*": all).
    """

    importer: Path
    imported: Path
    root: Path
    level: int
    name: str
    what: str


@dataclass(frozen=True)
class Imports:
    """The imports among the files of a project."""

    edges: tuple[Edge, ...]
    of: Mapping[Path, tuple[Edge, ...]]
    trees: Mapping[Path, ast.Module]

    def reach(self, start: Path) -> list[Path]:
        """A file and all that it imports, directly or not."""
        found: dict[Path, None] = {}
        queue = [start]
        while queue:
            path = queue.pop()
            if path not in found:
                found[path] = None
                queue += [edge.imported for edge in self.of.get(path, ())]
        return list(found)

    def importers(self, paths: Collection[Path]) -> list[Edge]:
        """The imports of some files, by any file."""
        return [edge for edge in self.edges if edge.imported in paths]


def read_imports(texts: Mapping[Path, str]) -> Imports:
    """Reads the imports of all files; those that do not parse have none."""
    known = {absolute(path): path for path in texts}
    trees: dict[Path, ast.Module] = {}
    found: dict[Path, tuple[Edge, ...]] = {}
    for path, text in texts.items():
        try:
            trees[path] = tree_of(text)
        except NOT_PYTHON:
            continue
        edges: list[Edge] = []
        for node in statements_in(trees[path]):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                edges += _edges(path, node, known)
        found[path] = tuple(dict.fromkeys(edges))
    return Imports(tuple(edge for edges in found.values() for edge in edges), found, trees)


def absolute(path: Path) -> Path:
    """A path from the root, without a look at the disk."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - without following links


def _edges(path: Path, node: ast.Import | ast.ImportFrom, known: Mapping[Path, Path]) -> Iterable[Edge]:
    folder = absolute(path).parent
    if isinstance(node, ast.Import):
        for alias in node.names:
            parts = alias.name.split(".")
            found = _find([folder, *folder.parents], parts, known)
            if found is not None:
                root, files = found
                for file in files:
                    yield Edge(path, file, root, 0, alias.asname or parts[0], "")
        return
    module = node.module.split(".") if node.module else []
    if node.level:
        roots = [folder if node.level == 1 else folder.parents[min(node.level - 2, len(folder.parents) - 1)]]
    else:
        roots = [folder, *folder.parents]
    for alias in node.names:
        local = alias.asname or alias.name
        inside = _find(roots, [*module, alias.name], known) if alias.name != "*" else None
        if inside is not None:
            for file in inside[1]:
                yield Edge(path, file, inside[0], node.level, local, "")
            continue
        itself = _find(roots, module, known)
        if itself is not None:
            for file in itself[1]:
                last = file == itself[1][-1]
                yield Edge(path, file, itself[0], node.level, local if last else "", alias.name if last else "")


def _find(roots: Iterable[Path], parts: list[str], known: Mapping[Path, Path]) -> tuple[Path, list[Path]] | None:
    """The root and the files of a module: those of the packages around it, and its own last."""
    for root in roots:
        candidates = module_files(root, parts) if parts else (root / "__init__.py",)
        own = next((known[one] for one in candidates if one in known), None)
        if own is not None:
            packages = [root.joinpath(*parts[:end], "__init__.py") for end in range(1, len(parts))]
            return root, [*(known[one] for one in packages if one in known and known[one] != own), own]
    return None


@dataclass(frozen=True)
class Placed:
    """Where the support file of some files goes: its folder, and how a file imports it."""

    folder: Path
    package: str = ""
    relative: bool = False

    def support(self, path: Path, name: str) -> Support:
        """The import of the support file in one file."""
        if self.relative:
            return Support(name, "." * (len(absolute(path).parent.relative_to(absolute(self.folder)).parts) + 1))
        return Support(name, self.package)


def place(paths: Collection[Path], imports: Imports) -> Placed:
    """Where all of some files can import a further one from, in the way in which they import each other."""
    folders = [absolute(path).parent for path in paths]
    common = Path(os.path.commonpath(folders))
    edges = [*imports.importers(paths), *(edge for path in paths for edge in imports.of.get(path, ()))]
    roots = {edge.root for edge in edges if edge.level == 0}
    roots = {root for root in roots if common == root or root in common.parents}
    # A folder like `bert-ner` is no package: what is below it is imported from it, not from above.
    roots = {root for root in roots if all(_is_name(part) for part in common.relative_to(root).parts[:1])}
    if roots:
        root = min(roots, key=lambda one: len(one.parts))
        inside = common.relative_to(root).parts
        if not inside:
            return Placed(_like(root, paths))
        # The folder of a package that all of them are in, as the absolute imports name it.
        return Placed(_like(root / inside[0], paths), inside[0])
    relative = [edge for edge in edges if edge.level]
    if relative:
        bases = {_base(edge) for edge in relative}
        top = min(bases, key=lambda one: len(one.parts))
        if common == top or top in common.parents:
            return Placed(_like(top, paths), relative=True)
    return Placed(_like(common, paths))


def _is_name(part: str) -> bool:
    return part.isidentifier() and not keyword.iskeyword(part)


def _base(edge: Edge) -> Path:
    folder = absolute(edge.importer).parent
    return folder if edge.level == 1 else folder.parents[min(edge.level - 2, len(folder.parents) - 1)]


def _like(folder: Path, paths: Collection[Path]) -> Path:
    """A folder, relative where the files were given so."""
    if all(path.is_absolute() for path in paths):
        return folder
    return Path(os.path.relpath(folder))
