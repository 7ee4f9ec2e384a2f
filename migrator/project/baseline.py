"""A baseline: the findings of a day, in a file, so that later runs tell what is new.

A finding is known again by its file, its code and the text of its line, so that it may move.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from migrator import __version__
from migrator.findings import Finding, Severity
from migrator.project.accepted import NEVER
from migrator.report.outcome import FileOutcome
from migrator.settings import UsageProblem

STALE = "TFM914"
FORMAT = 1
_LONGEST = 200
_BLOCKING = (Severity.MANUAL, Severity.ERROR)

Lines = Mapping[str, Sequence[str]]


class BaselineError(UsageProblem):
    """A file that is no baseline, or cannot be read or written."""


@dataclass(frozen=True)
class Entry:
    """A finding as a baseline knows it."""

    path: str
    """Relative to the folder of the baseline, with slashes."""
    code: str
    text: str
    """The line that it is about, without the space around it."""


@dataclass(frozen=True)
class Baseline:
    """What is accepted: how often each finding, and which files would be rewritten."""

    file: Path
    findings: Counter[Entry]
    changes: frozenset[str] = frozenset()


def load(file: Path) -> Baseline:
    """Reads a baseline. Raises BaselineError."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise BaselineError(f"{file} is a baseline of format {data['format']}, and this tf-migrate reads {FORMAT}")
        found: Counter[Entry] = Counter()
        for one in data["findings"]:
            found[Entry(str(one["path"]), str(one["code"]), str(one["line"]))] += int(one["count"])
        return Baseline(file, found, frozenset(str(one) for one in data["would_change"]))
    except OSError as error:
        raise BaselineError(f"the baseline {file} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, BaselineError):
            raise
        raise BaselineError(f"{file} is no baseline of tf-migrate") from None


def of(files: Iterable[FileOutcome], lines: Lines, file: Path, *, dry: bool) -> Baseline:
    """The baseline of an outcome; in a dry run, with the files that would be rewritten."""
    found: Counter[Entry] = Counter()
    changes = set()
    for one in files:
        found.update(_entry(finding, lines, file) for finding in one.findings if _may_be_accepted(finding))
        if dry and one.changed:
            changes.add(_relative(one.path, file))
    return Baseline(file, found, frozenset(changes))


def save(baseline: Baseline) -> None:
    """Writes a baseline, in one step. Raises BaselineError."""
    entries = sorted(baseline.findings.items(), key=lambda item: (item[0].path, item[0].code, item[0].text))
    data: dict[str, Any] = {
        "format": FORMAT,
        "tool": {"name": "tf-migrate", "version": __version__},
        "findings": [
            {"path": entry.path, "code": entry.code, "line": entry.text, "count": count} for entry, count in entries
        ],
        "would_change": sorted(baseline.changes),
    }
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        handle, name = tempfile.mkstemp(prefix=".tf-migrate-", suffix=".tmp", dir=baseline.file.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(text.encode("utf-8", "backslashreplace"))
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)
            Path(name).replace(baseline.file)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise BaselineError(f"the baseline {baseline.file} cannot be written: {error.strerror or error}") from None


def without_known(files: Sequence[FileOutcome], lines: Lines, baseline: Baseline) -> tuple[list[FileOutcome], set[str]]:
    """The outcomes without what a baseline has, and the files in them whose rewriting it has.

    A last outcome, of the baseline itself, names entries of the files that were looked at that are no longer there.
    """
    left = baseline.findings.copy()
    kept: list[FileOutcome] = []
    for file in files:
        stay: list[Finding] = []
        gone: list[Finding] = []
        for finding in file.findings:
            entry = _entry(finding, lines, baseline.file)
            if _may_be_accepted(finding) and left[entry] > 0:
                left[entry] -= 1
                gone.append(finding)
            else:
                stay.append(finding)
        kept.append(replace(file, findings=tuple(stay), accepted=(*file.accepted, *gone)) if gone else file)
    known = {file.path for file in files if _relative(file.path, baseline.file) in baseline.changes}
    stale = _stale(left, {_relative(file.path, baseline.file) for file in files}, baseline.file)
    return [*kept, *stale], known


def _stale(left: Counter[Entry], seen: set[str], file: Path) -> list[FileOutcome]:
    gone = sorted(
        (
            entry
            for entry, count in left.items()
            if count > 0 and (entry.path in seen or not (file.parent / entry.path).exists())
        ),
        key=lambda entry: (entry.path, entry.code, entry.text),
    )
    if not gone:
        return []
    number = sum(left[entry] for entry in gone)
    are, more = (
        ("finding of this baseline is", "it is") if number == 1 else ("findings of this baseline are", "the first is")
    )
    message = (
        f"{number} {are} no longer there ({more} {gone[0].code} in {gone[0].path}): write it anew with --write-baseline"
    )
    return [FileOutcome(str(file), False, False, (Finding(str(file), 1, 1, STALE, Severity.REVIEW, message),))]


def _may_be_accepted(finding: Finding) -> bool:
    return finding.severity in _BLOCKING and finding.code not in NEVER


def _entry(finding: Finding, lines: Lines, file: Path) -> Entry:
    of_file = lines.get(finding.path, ())
    text = of_file[finding.line - 1].strip()[:_LONGEST] if finding.line <= len(of_file) else ""
    return Entry(_relative(finding.path, file), finding.code, text)


def _relative(path: str, file: Path) -> str:
    folder = os.path.realpath(file.parent)
    real = Path(os.path.realpath(Path(path).parent), Path(path).name)
    try:
        return Path(os.path.relpath(real, folder)).as_posix()
    except ValueError:  # another drive
        return real.as_posix()
