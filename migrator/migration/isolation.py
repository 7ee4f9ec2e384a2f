"""What becomes of a mistake of tf-migrate's own: it costs the programs that it was met in, never the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.internal_errors import CODE, in_file, message_of
from migrator.migration.state import Group
from migrator.names.undefined import undefined
from migrator.program.parsed import Blocked
from migrator.program.relevant import around_programs, imports_of
from migrator.source.reading import syntax_error

Made = tuple[dict[Path, str], dict[Path, list[Finding]]]
_Some = TypeVar("_Some")


def blocked_by(error: Exception, node: cst.CSTNode | None) -> Blocked:
    """An error that was met while a program was read, as something that stands in its way."""
    return Blocked(CODE, node, message_of(error))


def isolated(group: Group, migrate: Callable[[], Made]) -> Made:
    """What `migrate` makes of a group of programs; nothing, and a finding for each program, where it fails.

    It also fails where one of the new texts is not Python, or reads a name that nothing defines any more: the group's
    files change together or not at all.
    """
    try:
        texts, findings = migrate()
        for path, text in texts.items():
            wrong = syntax_error(text)
            if wrong is not None:
                raise wrong
            lost = undefined(text) if path in group.files else frozenset()
            if lost and (lost := lost - undefined(group.files[path].text)):
                raise NameError(f"the new program reads {', '.join(sorted(lost))}, which is not defined")
        return texts, findings
    except Exception as error:
        message = message_of(error)
        findings = {}
        for program in group.programs:
            finding = program.file.finding(CODE, Severity.MANUAL, program.place.call, message)
            findings.setdefault(program.file.path, []).append(finding)
        return {}, findings


def in_parts(
    texts: Mapping[Path, str], migrate: Callable[[Mapping[Path, str]], Made], error: Exception, concerns: Iterable[Path]
) -> Made:
    """What `migrate` makes of a project without those of its parts that it fails for.

    A part are files that import each other. `error` is what it failed with for the whole; `concerns` are the files
    that findings are about.
    """

    def some(paths: Collection[Path]) -> Made:
        return migrate({path: text for path, text in texts.items() if path in paths})

    made, broken = without_broken(texts, some, error)
    new, findings = made or ({}, {})
    for path in concerns:
        if path in broken:
            findings.setdefault(path, []).append(in_file(path, broken[path]))
    return new, findings


def without_broken(
    texts: Mapping[Path, str], make: Callable[[Collection[Path]], _Some], error: Exception
) -> tuple[_Some | None, dict[Path, Exception]]:
    """What `make` makes of the files of a project that it does not fail for, and why it fails for the others.

    None where it fails for whatever it is given, as it did with `error` for all files.
    """
    broken: dict[Path, Exception] = {}
    parts = _parts(texts)
    for part in parts if len(parts) > 1 else ():
        try:
            make(part)
        except Exception as own:
            broken.update(dict.fromkeys(part, own))
    if broken:
        try:
            return make({path for path in texts if path not in broken}), broken
        except Exception as other:  # parts that only fail together
            error = other
    return None, {**dict.fromkeys(texts, error), **broken}


def _parts(texts: Mapping[Path, str]) -> list[set[Path]]:
    """The files around programs, those together that import each other; any other file is in none of them."""
    paths = around_programs(texts)
    imported = imports_of({path: texts[path] for path in paths})
    parts: list[set[Path]] = []
    for path in paths:
        linked = {
            other
            for other in paths
            if other.with_suffix("") in imported[path] or path.with_suffix("") in imported[other]
        }
        joined = {path}
        rest = []
        for part in parts:
            if part & linked:
                joined |= part
            else:
                rest.append(part)
        parts = [*rest, joined]
    return parts
