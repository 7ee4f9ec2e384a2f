"""What changes together or not at all: a program never half written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from migrator.bridge.support import NAME
from migrator.findings import Finding, Severity
from migrator.project.gather import Gathered
from migrator.project.imports import Edges, below, edges, joined
from migrator.project.run import Migrated

NOT_NAMED, IMPORTED = "TFM911", "TFM915"
_SHOWN = 3


@dataclass(frozen=True)
class Refused:
    """A file that must not be written, and what to say of it."""

    path: Path
    code: str
    why: str
    """What is wrong with it: a sentence without its end."""
    todo: str
    severity: Severity = Severity.ERROR


def kept_whole(
    results: Mapping[Path, Migrated], of: Edges, refused: Mapping[Path, Refused], gathered: Gathered
) -> dict[Path, Migrated]:
    """The results without the changes of programs that a file belongs to that must not be written.

    `of` is what the files import of each other. Each refused file whose change is held back gets its finding, or the
    first file of its program that was given, where it was not.
    """
    changing = {path for path, one in results.items() if one.changed}
    stopped = changing & refused.keys()
    if not stopped:
        return dict(results)
    groups = programs(results, of)
    kept = dict(results)
    for group in groups:
        causes = sorted(group & stopped)
        if not causes:
            continue
        given = sorted(path for path in group if path not in refused or refused[path].code != NOT_NAMED)
        for path in group:
            kept[path] = _unchanged(kept[path])
        for finding in _findings(causes, group, given, of, refused, gathered):
            path = Path(finding.path)
            kept[path] = replace(kept[path], findings=tuple(sorted((*kept[path].findings, finding))))
    return _without_idle_support(kept, results)


def programs(results: Mapping[Path, Migrated], of: Edges) -> list[set[Path]]:
    """The files that change, those together that have to: what one file of the project needs, directly or not."""
    changing = {path for path, one in results.items() if one.changed and path.stem != NAME}
    alone = {path for path in changing if results[path].alone}
    tied = changing - alone
    sets = [below(of, [path]) & tied for path in of] if tied else []
    return joined([*({path} for path in sorted(changing)), *(one for one in sets if len(one) > 1)])


def _unchanged(one: Migrated) -> Migrated:
    """A file as it was, and what is said of it where nothing is done."""
    told = tuple(finding for finding in one.findings if finding.severity in (Severity.MANUAL, Severity.ERROR))
    return replace(one, text=one.source.text, findings=told)


def _findings(
    causes: list[Path],
    group: set[Path],
    given: list[Path],
    of: Edges,
    refused: Mapping[Path, Refused],
    gathered: Gathered,
) -> Iterator[Finding]:
    unnamed = [path for path in causes if refused[path].code == NOT_NAMED]
    for path in causes:
        if path not in unnamed:
            one = refused[path]
            others = sorted(group - {path})
            left = f", and so does its program ({_names(others, gathered)})" if others else ""
            message = f"{one.why}: it stays as it is{left}; {one.todo}"
            yield Finding(str(path), 1, 1, one.code, one.severity, message)
    if unnamed and given:
        place = next((path for path in given if of.get(path, frozenset()) & set(unnamed)), given[0])
        line = _line_of_import(gathered.sources[place].text, unnamed)
        names = _names(unnamed, gathered)
        message = (
            f"this program is unchanged: {names} would have to change with it, but {_was(unnamed)} "
            f"excluded or not named; name {'it' if len(unnamed) == 1 else 'them'} too, or the folder"
        )
        yield Finding(str(place), line, 1, NOT_NAMED, Severity.MANUAL, message)
    elif unnamed:
        # Nothing that was named changes, but it may need what does.
        for place in gathered.given:
            wanted = sorted(below(of, [place]) & set(unnamed)) if place in gathered.sources else []
            if wanted:
                line = _line_of_import(gathered.sources[place].text, wanted)
                message = (
                    f"{_names(wanted, gathered)}, which this file needs, would be migrated and {_was(wanted)} not named"
                )
                yield Finding(str(place), line, 1, IMPORTED, Severity.REVIEW, message)


def _line_of_import(text: str, paths: list[Path]) -> int:
    """The line that seems to import one of some files, else the first."""
    names = "|".join(re.escape(path.parent.name if path.stem == "__init__" else path.stem) for path in paths)
    pattern = re.compile(rf"\s*(from|import)\b.*\b({names})\b")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def _was(paths: list[Path]) -> str:
    return "was" if len(paths) == 1 else "were"


def _names(paths: list[Path], gathered: Gathered) -> str:
    names = [f"`{gathered.show(path)}`" for path in paths[:_SHOWN]]
    if len(paths) > _SHOWN:
        names.append(f"{len(paths) - _SHOWN} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _without_idle_support(kept: dict[Path, Migrated], before: Mapping[Path, Migrated]) -> dict[Path, Migrated]:
    """Without the support files that only programs asked for whose changes are held back."""
    support = [path for path, one in kept.items() if path.stem == NAME and one.changed]
    if not support:
        return kept
    raws = {path: one.text.encode("utf-8", "replace") for path, one in before.items() if one.changed}
    needed = edges(raws, support)
    for path in support:
        asking = {other for other, found in needed.items() if path in found and other != path}
        if asking and not any(kept[other].changed for other in asking):
            kept[path] = replace(kept[path], text=kept[path].source.text)
    return {path: one for path, one in kept.items() if one.source.raw or one.text}
