"""Reading what running tasks write: new lines, last lines, signs of progress."""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

TAIL_LINES = 20
_TAIL_BYTES = 1 << 16
_LONGEST_LINE = 1 << 16


class LogTail:
    """Gives the complete lines that were added to a growing text file since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    def lines(self, final: bool = False) -> Iterator[str]:
        """The new lines; with `final` also a last one without its newline.

        Of a line that was drawn over by carriage returns (a progress bar) only the last state is given.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            content = b""
        self._offset += len(content)
        *complete, self._pending = (self._pending + self._decoder.decode(content, final)).split("\n")
        if self._pending and (final or len(self._pending) > _LONGEST_LINE):
            complete.append(self._pending)
            self._pending = ""
        yield from map(last_state, complete)


def last_state(line: str) -> str:
    """What a terminal shows of a line with carriage returns in it."""
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def last_lines(*paths: Path, count: int = TAIL_LINES) -> tuple[str, ...]:
    """The last `count` lines of several logs, as if they were one after the other in a single file."""
    lines: list[str] = []
    for path in reversed(paths):
        lines = _end_of(path)[len(lines) - count :] + lines if len(lines) < count else lines
    return tuple(lines[-count:])


def _end_of(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return [last_state(line) for line in text.split("\n") if line.strip()]


class Activity:
    """Notices whether anything below some folders changes."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._seen: frozenset[tuple[str, int, int]] = frozenset()
        self._next_look = 0.0
        self.last_change = time.monotonic()

    def look(self) -> None:
        """Look again, unless that would make looking take a noticeable share of the time."""
        now = time.monotonic()
        if now < self._next_look:
            return
        seen = frozenset(entry for folder in self._folders for entry in _files_below(str(folder)))
        finished = time.monotonic()
        self._next_look = finished + max(0.25, 20 * (finished - now))
        if seen != self._seen:
            self._seen = seen
            self.last_change = finished

    @property
    def anything(self) -> bool:
        """Whether there was a file with something in it at the last look."""
        return any(size for _, size, _ in self._seen)

    def note(self) -> None:
        """Count something else as progress."""
        self.last_change = time.monotonic()


def _files_below(folder: str) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in found:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(entry.path)
            else:
                status = entry.stat(follow_symlinks=False)
                yield entry.path, status.st_size, status.st_mtime_ns
        except FileNotFoundError:
            continue
