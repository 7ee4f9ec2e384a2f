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


@dataclass(frozen=True)
class Finding:
    """One remark on one place of one file.

    Findings sort by file, then by place. ``str(finding)`` is ``path:line:col: TFMnnn message``.
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

    cell: int = 0
    """Of a notebook, once `line` is one of a cell: the number of the cell, 1-based. 0 elsewhere."""

    @property
    def place(self) -> str:
        """``path:line:col``; in a cell of a notebook ``path:cell n:line:col``."""
        return f"{self.path}:{f'cell {self.cell}:' if self.cell else ''}{self.line}:{self.column}"

    def __str__(self) -> str:
        return f"{self.place}: {self.code} {self.message}"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Finding):
            return NotImplemented
        return self._order < other._order

    @property
    def _order(self) -> tuple[object, ...]:
        return self.path, self.cell, self.line, self.column, self.code, self.severity, self.message
