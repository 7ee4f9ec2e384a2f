"""The engine over a project, in parts that have nothing to do with each other."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.bridge.support import NAME
from migrator.findings import Finding
from migrator.project.gather import Gathered
from migrator.project.imports import is_concerned, joined
from migrator.source.reading import Source, mentions_tensorflow

if TYPE_CHECKING:
    from migrator.migrate import Options


@dataclass(frozen=True)
class Migrated:
    """What the engine made of one file."""

    source: Source
    text: str
    """The text of the source where nothing changes."""
    findings: tuple[Finding, ...] = ()
    alone: bool = False
    """Whether the change makes sense without that of any other file."""

    @property
    def changed(self) -> bool:
        """Whether there is a new text."""
        return self.text != self.source.text


class EngineError(Exception):
    """A mistake of ours that the engine did not get over; the message says what was raised."""


def parts_of(gathered: Gathered) -> list[list[Source]]:
    """The sources of programs that have nothing to do with each other, in the order of the given files.

    A file that does not speak of TensorFlow, and a support file, is with all programs that may need it.
    """
    sources, edges = gathered.sources, gathered.edges
    support = {path for path in sources if path.stem == NAME}
    members = {path for path, source in sources.items() if is_concerned(source.raw)} - support
    whole = joined({path, *(edges[path] & members)} for path in sources if path in members)
    plain = sources.keys() - members - support
    parts = []
    for part in whole:
        chosen = part | support | {path for path in plain if edges[path] & part}
        if any(mentions_tensorflow(sources[path]) for path in part):
            parts.append([source for path, source in sources.items() if path in chosen])
    return parts


def migrate_parts(parts: Sequence[Sequence[Source]], options: Options) -> dict[Path, Migrated]:
    """What the engine makes of all files of these parts, new ones first. Raises EngineError."""
    return joint([migrate_part(part, options) for part in parts])


def migrate_part(sources: Sequence[Source], options: Options) -> list[Migrated]:
    """What the engine makes of some files, and those that it writes beside them. Raises EngineError."""
    from migrator.migrate import migrate
    from migrator.source.newlines import unified, with_newlines_of

    # New code comes with LF or CRLF, whatever the file has: the engine sees LF only.
    unix = [replace(source, text=unified(source.text)) for source in sources]
    try:
        results = migrate(unix, options)
    except Exception as error:
        if os.environ.get("TF_MIGRATE_TRACEBACK"):
            traceback.print_exc()
        raise EngineError(f"{type(error).__name__}: {error}") from None
    given = [
        Migrated(source, with_newlines_of(source.text, result.text), result.findings, result.alone)
        for source, result in zip(sources, results)
    ]
    return given + [
        Migrated(result.source, result.text, result.findings, result.alone) for result in results[len(sources) :]
    ]


def joint(parts: Sequence[Sequence[Migrated]]) -> dict[Path, Migrated]:
    """What became of the files of all parts; a support file holds what any part needs of it."""
    found: dict[Path, Migrated] = {}
    for one in (one for part in parts for one in part):
        path = one.source.path
        other = found.get(path)
        found[path] = one if other is None else _both(other, one)
    new = {path: one for path, one in found.items() if not one.source.raw and one.text}
    return {**new, **{path: one for path, one in found.items() if path not in new}}


def _both(first: Migrated, second: Migrated) -> Migrated:
    findings = tuple(sorted({*first.findings, *second.findings}))
    if not second.changed or first.text == second.text:
        return replace(first, findings=findings)
    if not first.changed:
        return replace(second, findings=findings)
    from migrator.bridge.assemble import extended, held_by

    text = extended(first.text, held_by(second.text))
    if text is None:
        raise EngineError(f"two programs want different texts of {first.source.path}")
    return replace(first, text=text, findings=findings)


def texts_of(results: Mapping[Path, Migrated]) -> dict[Path, str]:
    """The text of every file, as it would be."""
    return {path: one.text for path, one in results.items()}
