"""The codemod for programs that are TensorFlow 2 already: every check of the rules, file by file.

Unlike an Estimator program such a file is not all or nothing: its mendings do not depend on each other, and what cannot
be mended is named and stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import libcst as cst

from migrator.emit.file import choose_keras_2
from migrator.findings import Finding, Severity
from migrator.internal_errors import in_file
from migrator.places import text_of
from migrator.program.modern import Change, Check, Edit, ModernFile
from migrator.program.parsed import ParsedFile
from migrator.program.relevant import may_be_modern, scripts_with
from migrator.rules.catalogue import checks
from migrator.walking import Transformer


def modernize(
    texts: Mapping[Path, str], skip: Collection[Path], further: Sequence[Check] = ()
) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """The new texts of the TensorFlow 2 files that change, and all findings by file.

    `further` are checks beside those of the rules. Files in `skip` belong to Estimator programs and are left alone. A
    file that cannot be parsed is as well: whatever needs it says so.
    """
    known = (*checks(), *further)
    parsed: dict[Path, ParsedFile] = {}
    found: dict[Path, list[Change]] = {}
    failed: dict[Path, list[Finding]] = {}
    for path, text in texts.items():
        if path not in skip and may_be_modern(text) and (file := _parsed(path, text)) is not None:
            modern = ModernFile(file, [other for at, other in texts.items() if at != path])
            try:
                found[path] = [change for check in known for change in check(modern)]
                parsed[path] = file
            except Exception as error:  # a mistake of ours: the other files are looked at all the same
                failed[path] = [in_file(path, error)]
    needing = {path for path, changes in found.items() if any(change.keras_2 for change in changes)}
    for path in scripts_with(texts, needing) - set(skip):
        if path not in failed and (script := parsed.get(path) or _parsed(path, texts[path])) is not None:
            parsed[path] = script
            needing.add(path)
    new: dict[Path, str] = {}
    findings = dict(failed)
    for path, file in parsed.items():
        changes = found.get(path, [])
        chosen = path in needing and "TF_USE_LEGACY_KERAS" not in file.bare
        try:
            module = _apply(file, changes)
            if chosen:
                module = choose_keras_2(module)
        except Exception as error:
            findings[path] = [in_file(path, error)]
            continue
        for change in _told(changes, chosen):
            findings.setdefault(path, []).append(
                file.finding(change.code, change.severity, change.node, change.message)
            )
        if module is not file.module and (written := text_of(module, module)) != file.text:
            new[path] = written
    return new, findings


def _parsed(path: Path, text: str) -> ParsedFile | None:
    try:
        return ParsedFile.parse(path, text)
    except cst.ParserSyntaxError:
        return None


def _told(changes: Iterable[Change], chosen: bool) -> Iterable[Change]:
    """The changes to report: of those that need Keras 2 the first, and none where it is chosen already."""
    once = chosen
    for change in changes:
        if change.edit is None and change.keras_2 and change.severity is Severity.MIGRATED:
            if once:
                yield change
            once = False
        elif change.message:
            yield change


class _Apply(Transformer):
    """Makes the edits; `around` are the nodes that one of these is below."""

    def __init__(self, edits: Mapping[cst.CSTNode, list[Edit]], around: Collection[cst.CSTNode]) -> None:
        super().__init__()
        self.edits = edits
        self.around = around

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.around

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        new: cst.CSTNode = updated_node
        for edit in self.edits.get(original_node, ()):
            new = edit(new)
        return new


def _apply(file: ParsedFile, changes: Iterable[Change]) -> cst.Module:
    edits: dict[cst.CSTNode, list[Edit]] = {}
    for change in changes:
        if change.edit is not None:
            edits.setdefault(change.node, []).append(change.edit)
    if not edits:
        return file.module
    around: set[cst.CSTNode] = set()
    for node in edits:
        above = file.parents.get(node)
        while above is not None and above not in around:
            around.add(above)
            above = file.parents.get(above)
    new = file.module.visit(_Apply(edits, around))
    assert isinstance(new, cst.Module)
    return new
