"""`--style module`: native programs for a mesh come out with DTensor's core API, see `emit.modules`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from migrator.emit.modules import CODE, as_module
from migrator.findings import Finding, Severity
from migrator.migration.mesh.sizes import Result, is_place, makes_mesh, unchanged
from migrator.program.known import program_of
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.relevant import connected
from migrator.query.weights import Unclear, training

_Result = TypeVar("_Result", bound=Result)


def with_modules(results: Sequence[_Result]) -> list[_Result]:
    """The results with models that are a tf.Module; a program that has none stays as it was, and is told why."""
    before = {one.source.path: one.source.text for one in results if one.source.text}
    after = {one.source.path: one.text for one in results}
    final = {one.source.path: one for one in results}
    for path in [path for path in after if makes_mesh(before.get(path, ""), after[path])]:
        together = connected(before, {path}) | {path}
        place = next((f for one in results for f in one.findings if Path(f.path) == path and is_place(f)), None)
        try:
            text = _module(path, {one: after[one] for one in together if one in after}, place)
        except Blocked as problem:
            line, column = (place.line, place.column) if place is not None else (1, 1)
            finding = Finding(str(path), line, column, CODE, Severity.MANUAL, problem.message)
            for other in together & final.keys():
                final[other] = unchanged(final[other])
            told = (*final[path].findings, finding)
            final[path] = replace(final[path], findings=tuple(sorted(told)))  # type: ignore[type-var]
        else:
            found = tuple(_renamed(one) for one in final[path].findings)
            final[path] = replace(final[path], text=text, findings=found)  # type: ignore[type-var]
    return list(final.values())


def _renamed(finding: Finding) -> Finding:
    """A finding that says what a program has become."""
    if finding.code != "TFM101":
        return finding
    return replace(finding, message=finding.message.replace("a Keras program", "a program of DTensor's core API"))


def _module(path: Path, texts: dict[Path, str], place: Finding | None) -> str:
    """The new text of a program. Raises Blocked (TFM783)."""
    if place is not None and place.code == "TFM780":
        message = (
            "a TensorFlow 2 program with a MirroredStrategy is unsupported as a tf.Module: leave `--style module` out"
        )
        raise Blocked(CODE, None, message)
    files = {one: ParsedFile.parse(one, text) for one, text in texts.items()}
    try:
        known = training(program_of(files[path], files.values()).evaluator)
    except Unclear as problem:
        message = f"a tf.Module creates its variables from sizes, and {problem.message}: write it in the program"
        raise Blocked(CODE, None, f"{message} (`tf.reshape(net, [-1, 784])` before the layer)") from None
    return as_module(files[path], known)


__all__ = ["with_modules"]
