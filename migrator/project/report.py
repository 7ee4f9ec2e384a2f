"""What is told of files that did not change, and of those around the given ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.project.gather import Gathered
from migrator.project.run import Migrated
from migrator.report.outcome import FileOutcome

_STANDING = ("TFM27",)  # what is true of one file, whatever imports it


def outcome_of(path: Path, gathered: Gathered) -> FileOutcome:
    """The outcome of a given file that the engine was not shown: nothing to do, or not to be read."""
    shown = str(gathered.show(path))
    problem = gathered.problems.get(path)
    return FileOutcome(shown, False, False, () if problem is None else (replace(problem, path=shown),))


def around_outcomes(results: Mapping[Path, Migrated], gathered: Gathered) -> list[FileOutcome]:
    """Those of files around the given ones that block a program of these."""
    given = set(gathered.given)
    files = []
    for path, one in results.items():
        if path not in given and one.source.raw:
            shown = str(gathered.show(path))
            found = tuple(sorted(replace(finding, path=shown) for finding in one.findings if _blocks(finding)))
            if found:
                files.append(FileOutcome(shown, False, False, found))
    return files


def _blocks(finding: Finding) -> bool:
    return finding.severity is Severity.MANUAL and not finding.code.startswith(_STANDING)
