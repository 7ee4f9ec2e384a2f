"""The outcome of one run of the codemod as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from migrator.findings import Finding, Severity


class ExitCode(IntEnum):
    """Exit status of ``tf-migrate PATH...``."""

    DONE = 0
    """Nothing left to do, or all of it done."""
    LEFT = 1
    """``--check`` would change a file, or a program cannot be carried over."""
    FAILED = 2
    """Wrong usage, or a file that could not be read or written."""


@dataclass(frozen=True)
class FileOutcome:
    """What became of one file."""

    path: str
    changed: bool
    """Whether its new text differs from the old one."""
    written: bool
    """Whether the new text is in the place of the old one."""
    findings: tuple[Finding, ...]
    """Sorted."""
    accepted: tuple[Finding, ...] = ()
    """Those that the user has seen and accepts: they are told to nobody, and fail nothing."""

    def has(self, severity: Severity) -> bool:
        """Tells whether there is a finding of this severity."""
        return any(finding.severity is severity for finding in self.findings)


@dataclass(frozen=True)
class Outcome:
    """What became of all files, in the order they were looked at."""

    files: tuple[FileOutcome, ...]
    dry: bool
    """Whether files were only judged (``--check``, ``--diff``)."""
    check: bool
    """Whether a file that would change is a failure."""
    tolerated: frozenset[str] = frozenset()
    """Files that may change without a failure: a baseline names them."""
    programs: Mapping[str, int] = field(default_factory=dict)
    """How many programs there are of each form, see `worklist.programs`; none where they were not counted."""

    @property
    def findings(self) -> list[Finding]:
        """All findings, sorted by place."""
        return sorted(finding for file in self.files for finding in file.findings)

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that this outcome stands for."""
        if any(file.has(Severity.ERROR) for file in self.files):
            return ExitCode.FAILED
        if any(file.has(Severity.MANUAL) or self._fails(file) for file in self.files):
            return ExitCode.LEFT
        return ExitCode.DONE

    def _fails(self, file: FileOutcome) -> bool:
        return self.check and file.changed and file.path not in self.tolerated


_FORMS = {"native": "native", "bridge": "by the bridge", "blocked": "blocked", "silent": "not judged"}


def programs_in_words(counts: Mapping[str, int]) -> str:
    """How many programs there are of each form, as a sentence; "" for none."""
    said = [(counts[form], what) for form, what in _FORMS.items() if counts.get(form)]
    total = sum(number for number, _ in said)
    if len(said) == 1:
        return f"1 program: {said[0][1]}." if total == 1 else f"{total} programs: all {said[0][1]}."
    return f"{total} programs: {', '.join(f'{number} {what}' for number, what in said)}." if said else ""


def count(files: Sequence[FileOutcome]) -> dict[str, int]:
    """Returns how many files changed (or would), hold a blocked program, failed, and had nothing to do.

    A file may hold both a program that was migrated and one that is blocked; it counts as both.
    """
    counts = {
        "changed": sum(file.changed for file in files),
        "blocked": sum(file.has(Severity.MANUAL) for file in files),
        "failed": sum(file.has(Severity.ERROR) for file in files),
    }
    counts["unchanged"] = sum(
        not (file.changed or file.has(Severity.MANUAL) or file.has(Severity.ERROR)) for file in files
    )
    return counts
