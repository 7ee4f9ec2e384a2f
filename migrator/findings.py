"""Findings: what the tool has to say about one place in one file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How much of a person's attention a finding needs; declared from the least to the most."""

    MIGRATED = "migrated"
    """Carried over; nothing to do."""
    REVIEW = "review"
    """Carried over; somebody should look at it."""
    MANUAL = "manual"
    """Cannot be carried over: the whole program was left as it was."""
    ERROR = "error"
    """The file could not be read or written; it was left as it was."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Severity):
            return NotImplemented
        order = list(Severity)
        return order.index(self) < order.index(other)


@dataclass(frozen=True, order=True)
class Finding:
    """One remark on one place of one file.

    Findings sort by file, then by place. ``str(finding)`` is ``TFMnnn path:line:col message``.
    """

    path: str
    line: int
    """1-based."""
    column: int
    """1-based, in characters."""
    code: str
    """``TFM`` and three digits; ``tf-migrate rules CODE`` explains it."""
    severity: Severity
    message: str
    """One sentence on one line: what was found and what to do about it."""

    def __str__(self) -> str:
        return f"{self.code} {self.path}:{self.line}:{self.column} {self.message}"
