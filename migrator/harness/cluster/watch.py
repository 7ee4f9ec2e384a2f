"""Reading what running tasks write: new lines, last lines, signs of progress."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from migrator.harness import packed

TAIL_LINES = 20
_TAIL_BYTES = 1 << 16
_LONGEST_LINE = 1 << 16
# What TensorFlow goes on to say while it waits for somebody.
_WAITING = re.compile(
    r"still waiting for response from worker|Waiting for model to be ready|has not been increased|"
    r"Waiting for .* to (be|become) (ready|available)|Waiting \d.* secs? before|Could not find trained model|"
    r"Waiting for new checkpoint|not trained yet|Timed-out waiting for a checkpoint"
)
# In a folder with more files than this they are not looked at one by one: they are written once, as a rule.
_MANY = 64


class LogTail:
    """Gives the complete lines that were added to a growing text file since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        #: Whether anything came that says more than that TensorFlow waits. To be reset by whoever looks at it.
        self.progress = False

    def lines(self, final: bool = False) -> list[str]:
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
        if not content and not final:
            return []
        *complete, self._pending = (self._pending + self._decoder.decode(content, final)).split("\n")
        if self._pending and (final or len(self._pending) > _LONGEST_LINE):
            complete.append(self._pending)
            self._pending = ""
        found = [last_state(line) for line in complete]
        # A bar that moves is drawn on a line without an end.
        self.progress = self.progress or any(not _WAITING.search(line) for line in (*found, self._pending) if line)
        return found


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

    def __init__(self, folders: Iterable[Path], without: Iterable[Path] = (), count: Path | None = None) -> None:
        """Files and folders `without` are passed over, with all that is in them. `count`: a file whose records are
        counted (see packed.py).
        """
        self._folders = tuple(map(str, folders))
        self._without = frozenset(map(str, without))
        self._count = count
        self._position = 0
        self._seen: list[tuple[str, int, int]] = []
        self.last_change = time.monotonic()
        #: At the last look: whether a file had something in it, how many records the file to count held, and when the
        #: last file of all was written (time.time(); 0.0 if there was none).
        self.anything = False
        self.counted = 0
        self.newest = 0.0

    def look(self) -> None:
        """Look again."""
        seen = [entry for folder in self._folders for entry in self._below(folder)]
        if seen == self._seen:
            return
        self._seen = seen
        self._count_further()
        self.last_change = time.monotonic()
        self.anything = any(size for _, size, _ in seen)
        self.newest = max((written for _, _, written in seen), default=0) / 1e9

    def _count_further(self) -> None:
        if self._count is not None:
            # What is no file of records says nothing of steps, and whoever reads it when the run is over says so.
            with contextlib.suppress(OSError, ValueError), self._count.open("rb") as stream:
                for place in packed.whole(stream, self._position):
                    self.counted, self._position = self.counted + 1, place.end

    def _below(self, folder: str) -> Iterator[tuple[str, int, int]]:
        """Files with size and time of the last write; a folder of many files with their number, as if it were one."""
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if entry.path not in self._without]
            files = [entry for entry in found if not entry.is_dir(follow_symlinks=False)]
            if len(files) > _MANY:
                yield folder, len(files), Path(folder).stat().st_mtime_ns
                files = []
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in sorted(found, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(entry.path)
        for entry in files:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield entry.path, status.st_size, status.st_mtime_ns

    def note(self) -> None:
        """Count something else as progress."""
        self.last_change = time.monotonic()


class Pace:
    """Says when to do something that takes time: not more often than each `interval` seconds, and rarely enough
    that it takes no noticeable share of a core.
    """

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._next = 0.0

    @contextlib.contextmanager
    def due(self) -> Iterator[bool]:
        """Whether it is time; what is done in the block is what takes time."""
        if time.monotonic() < self._next:
            yield False
            return
        # Not by the clock: on a machine that is overloaded everything takes long, and nothing should wait for longer.
        started = time.thread_time()
        yield True
        self._next = time.monotonic() + max(self.interval, 20 * (time.thread_time() - started))
