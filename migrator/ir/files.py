"""The files of a project, as the evaluator imports them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

from migrator.ir.machine import File
from migrator.names.annotated import parse_module
from migrator.source.discovery import module_files


@dataclass(frozen=True)
class Parsed:
    """A file that was parsed."""

    path: Path
    module: cst.Module

    @staticmethod
    def of(path: Path, text: str) -> Parsed:
        """Parses a text; raises libcst.ParserSyntaxError."""
        return Parsed(path, parse_module(text))


@dataclass(frozen=True)
class Together:
    """Files that may import each other."""

    files: tuple[File, ...]
    _by_path: dict[Path, File] = field(default_factory=dict, compare=False)
    _found: dict[tuple[Path, str, int], File | None] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(files: Iterable[File]) -> Together:
        """The files of a project."""
        return Together(tuple(files))

    def imported(self, importer: Path, module: str, level: int) -> File | None:
        """The file that a module is, imported in another with so many leading dots; None where it is none of these."""
        key = importer, module, level
        if key not in self._found:
            self._found[key] = self._look_up(Path.cwd() / importer, module, level)
        return self._found[key]

    def _look_up(self, importer: Path, module: str, level: int) -> File | None:
        if not self._by_path:
            self._by_path.update({Path.cwd() / file.path: file for file in self.files})
        known = self._by_path
        folder = importer.parent
        if level:
            roots = [folder, *folder.parents][level - 1 : level]
        else:
            roots = [folder, *folder.parents]
        parts = [part for part in module.split(".") if part]
        for root in roots:
            for candidate in module_files(root, parts) if parts else [root / "__init__.py"]:
                if candidate in known and candidate != importer:
                    return known[candidate]
        return None


__all__ = ["Parsed", "Together"]
