"""Packages that put faster kernels in the place of TensorFlow's, where they are installed."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import read_bindings
from migrator.program.folding import catches_the_import, lines_instead
from migrator.program.parsed import Blocked, ParsedFile, Remover, removed_by
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM197",
        "kernels of an optional package",
        Severity.REVIEW,
        """
`try: import intel_extension_for_tensorflow as itex; layer = itex.ops.LayerNormalization(...)` with a handler for the
ImportError replaces a layer, a function or an optimizer of TensorFlow by one of a package that computes the same. The
new program is what runs where the package is not installed: the lines of the handler stand there, if there are any.
The layers of such a package were made for TensorFlow 1 graphs and know nothing of the new model; on its own the package
still replaces TensorFlow's kernels where it can. Where nothing but the package computes the value, the program raises a
NameError as it did without it.
""",
    ),
)

_PACKAGES = ("intel_extension_for_tensorflow",)
_MESSAGE = "`{}` is dropped: the new program is the code path without it"


def without_accelerators(file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file as it runs without such packages, where they are only tried, and a remark for each of these places."""
    if not any(package in file.bare for package in _PACKAGES):
        return file, []
    return removed_by(_Remover(), file)


def _package(node: cst.Try) -> str | None:
    """The package that the first line of a `try` imports."""
    body = node.body.body
    first = body[0] if isinstance(node.body, cst.IndentedBlock) else None
    small = first.body[0] if isinstance(first, cst.SimpleStatementLine) else None
    if not isinstance(small, (cst.Import, cst.ImportFrom)):
        return None
    found = {(binding.origin or "").partition(".")[0] for binding in read_bindings(small)}
    return found.pop() if len(found) == 1 and found <= set(_PACKAGES) else None


class _Remover(Remover):
    """Puts the handler in the place of a `try`."""

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> Any:
        package = _package(original_node)
        if package is None or original_node.orelse is not None or original_node.finalbody is not None:
            return updated_node
        handler = original_node.handlers[0] if original_node.handlers else None
        if handler is None or handler.name is not None or not catches_the_import(handler.type):
            return updated_node
        body = updated_node.handlers[0].body
        if not isinstance(body, cst.IndentedBlock):
            return updated_node
        self.gone.append(Blocked("TFM197", original_node, _MESSAGE.format(package)))
        lines = [line for line in body.body if not _passes(line)]
        stay = [line for line in updated_node.leading_lines if not _speaks_of(line, package)]
        return lines_instead(lines, stay)


def _speaks_of(line: cst.EmptyLine, package: str) -> bool:
    """Whether a comment is about the package, by its name or that of its maker."""
    text = line.comment.value.lower() if line.comment is not None else ""
    return package in text or package.partition("_")[0] in text or "itex" in text


def _passes(line: cst.BaseStatement) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and all(isinstance(small, cst.Pass) for small in line.body)


__all__ = ["without_accelerators"]
