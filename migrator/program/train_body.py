"""A model_fn as the readers of its train_op and of its learning rate see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.modes import ModalStatement
from migrator.program.parsed import ParsedFile, Project


@dataclass(frozen=True)
class TrainBody:
    """A model_fn as the reader of its train_op sees it.

    `data` are the names whose values come from features or labels; `loss_index` says which statement gives a name its
    last value, `project` which files were given.
    """

    file: ParsedFile
    function: cst.FunctionDef
    statements: Sequence[ModalStatement]
    data: frozenset[str]
    loss_index: Callable[[str], int]
    project: Project | None = None

    @property
    def imports(self) -> ImportMap:
        return self.file.imports


__all__ = ["TrainBody"]
