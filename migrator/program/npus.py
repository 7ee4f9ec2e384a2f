"""Programs for Ascend NPUs: files that import Huawei's adapter, and the Estimators that it makes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node

from migrator.program.calls import calls_in
from migrator.program.parsed import ParsedFile
from migrator.walking import walk

_ADAPTER = "npu_bridge"
_NPU_ESTIMATOR = "NPUEstimator"
#: What its programs are told.
MESSAGE = "`npu_bridge` runs this program on Ascend NPUs, which is unsupported: remove it first, see TFM182"


def adapted(files: Sequence[ParsedFile]) -> ParsedFile | None:
    """The first file that imports the adapter for Ascend NPUs, where the files read what it brings.

    An import that is tried (`try: ... except ImportError:`) says nothing of a program that reads none of its names.
    """
    importing = [file for file in files if imported(file) is not None]
    if not importing:
        return None
    reads = _Reads()
    for file in files:
        walk(file.module, reads)
    return next((file for file in importing if imported(file, reads.found) is not None), None)


def estimators(file: ParsedFile) -> list[cst.Call]:
    """The calls that make an Estimator of the adapter's."""
    if _NPU_ESTIMATOR not in file.bare:
        return []
    called = [(get_full_name_for_node(call.func) or "", call) for call in calls_in(file.module)]
    return [call for name, call in called if name.rpartition(".")[2] == _NPU_ESTIMATOR]


def imported(file: ParsedFile, reads: Collection[str] | None = None) -> cst.CSTNode | None:
    """The import of the adapter in a file, wherever it stands; one that is tried only where names of it are read."""
    if _ADAPTER not in file.bare:
        return None
    finder = _Adapter(reads)
    walk(file.module, finder)
    return finder.found


class _Adapter(cst.CSTVisitor):
    def __init__(self, reads: Collection[str] | None) -> None:
        super().__init__()
        self.reads = reads
        self.found: cst.CSTNode | None = None
        self._tries = 0

    def visit_Try(self, node: cst.Try) -> None:
        self._tries += 1

    def leave_Try(self, original_node: cst.Try) -> None:
        self._tries -= 1

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        if not node.relative and node.module is not None:
            self._look(node.module, node, None if isinstance(node.names, cst.ImportStar) else node.names)
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            self._look(alias.name, node, [alias])
        return False

    def _look(
        self, name: cst.Attribute | cst.Name, node: cst.CSTNode, brought: Sequence[cst.ImportAlias] | None
    ) -> None:
        """`brought` are the names of an import, None those of `import *`, which may be any."""
        if self.found is not None or (get_full_name_for_node(name) or "").partition(".")[0] != _ADAPTER:
            return
        names = {alias.evaluated_alias or alias.evaluated_name.partition(".")[0] for alias in brought or ()}
        if brought is None or self.reads is None or not self._tries or names & set(self.reads):
            self.found = node


class _Reads(cst.CSTVisitor):
    """The names and attributes that are read, outside of imports."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        return not isinstance(node.target, cst.Name)

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)
