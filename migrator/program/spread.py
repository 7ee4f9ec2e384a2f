"""Texts in which something short was written out: where each of their places comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """A part of the old text, from offset `start` to `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Written:
    """New text, which stands for what was at offset `anchor` of the old one."""

    text: str
    anchor: int


@dataclass(frozen=True)
class Edit:
    """The old text from `start` to `end` is replaced by some pieces."""

    start: int
    end: int
    pieces: tuple[Kept | Written, ...]


@dataclass(frozen=True)
class Spread:
    """A new text, with the old place (1-based line, 0-based column) of each of its own."""

    text: str
    _starts: tuple[int, ...]
    _pieces: tuple[Kept | Written, ...]
    _new_lines: tuple[int, ...]
    _old_lines: tuple[int, ...]

    def original(self, line: int, column: int) -> tuple[int, int]:
        """The old place of a new one."""
        offset = self._new_lines[min(line, len(self._new_lines)) - 1] + column
        index = max(bisect_right(self._starts, offset) - 1, 0)
        piece = self._pieces[index]
        old = piece.anchor if isinstance(piece, Written) else piece.start + offset - self._starts[index]
        row = bisect_right(self._old_lines, old) - 1
        return row + 1, old - self._old_lines[row]


def spread(old: str, edits: Sequence[Edit]) -> Spread:
    """Applies edits that do not overlap."""
    pieces: list[Kept | Written] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces += [Kept(at, edit.start), *edit.pieces]
        at = edit.end
    pieces.append(Kept(at, len(old)))
    pieces = [p for p in pieces if (p.text if isinstance(p, Written) else p.end > p.start)]
    texts = [p.text if isinstance(p, Written) else old[p.start : p.end] for p in pieces]
    starts = [0]
    for text in texts:
        starts.append(starts[-1] + len(text))
    new = "".join(texts)
    return Spread(new, tuple(starts[:-1]), tuple(pieces), line_starts(new), line_starts(old))


def line_starts(text: str) -> tuple[int, ...]:
    """The offset of the first character of every line."""
    return (0, *(i + 1 for i, character in enumerate(text) if character == "\n"))
