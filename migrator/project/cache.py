"""What the engine made of programs before, kept in the user's cache: by their content, the options and the version.

A cache must never cost anything but time: whatever is wrong with it, it is as if it were empty.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from migrator import __version__
from migrator.folders import cache_folder
from migrator.source.reading import Source

if TYPE_CHECKING:
    import sqlite3

    from migrator.migrate import Options

_MOST = 200_000_000  # bytes
_LEFT = 0.8  # of these, after what was not used for long is taken out
_DAY = 86_400
_DIGEST = 16  # bytes in front of each value, which say whether it is whole
_PACKAGE = Path(__file__).parents[1]


class Cache:
    """Values by keys, in a file that several processes may use at once. Use as a context manager."""

    def __init__(self, file: Path | None = None, most: int = _MOST) -> None:
        self.file = file or cache_folder() / "migrations.sqlite"
        self.most = most
        self.connection: sqlite3.Connection | None = None
        self.written = False

    def __enter__(self) -> Cache:
        """Opens the file, and makes it where there is none."""
        import sqlite3

        with contextlib.suppress(OSError, sqlite3.Error):
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.connection = self._opened()
        return self

    def __exit__(self, *_: object) -> None:
        """Keeps what was put, and the size in its bounds."""
        import sqlite3

        if self.connection is not None:
            with contextlib.suppress(sqlite3.Error):
                if self.written:
                    self._bound()
                self.connection.commit()
            self.connection.close()
            self.connection = None

    def _opened(self) -> sqlite3.Connection:
        import sqlite3

        table = "create table if not exists kept (key blob primary key, value blob, used integer) without rowid"
        for attempt in range(2):
            connection = sqlite3.connect(self.file, timeout=5)
            try:
                # A value that is cut off by a power cut is seen by its digest.
                connection.execute("pragma synchronous = off")
                connection.execute(table)
                return connection
            except sqlite3.DatabaseError as error:
                connection.close()
                if attempt or isinstance(error, sqlite3.OperationalError):
                    raise
                self.file.unlink()  # it is no database, or a broken one
        raise AssertionError("unreachable")

    def get(self, key: bytes) -> bytes | None:
        """What was put under a key."""
        import sqlite3

        if self.connection is None:
            return None
        try:
            row = self.connection.execute("select value, used from kept where key = ?", (key,)).fetchone()
            if row is None:
                return None
            value, used = row
            now = int(time.time())
            if now - used > _DAY:
                self.connection.execute("update kept set used = ? where key = ?", (now, key))
            packed = value[_DIGEST:]
            return zlib.decompress(packed) if _digest(key + packed) == value[:_DIGEST] else None
        except (sqlite3.Error, TypeError, zlib.error):
            return None

    def put(self, key: bytes, value: bytes) -> None:
        """Keeps a value."""
        import sqlite3

        if self.connection is None:
            return
        packed = zlib.compress(value, 1)
        with contextlib.suppress(sqlite3.Error):
            self.connection.execute(
                "insert or replace into kept values (?, ?, ?)",
                (key, _digest(key + packed) + packed, int(time.time())),
            )
            self.connection.commit()  # or other processes would wait for this one to end
            self.written = True

    def _bound(self) -> None:
        assert self.connection is not None
        size = self.connection.execute("select coalesce(sum(length(value)), 0) from kept").fetchone()[0]
        if size <= self.most:
            return
        gone = []
        for key, length in self.connection.execute("select key, length(value) from kept order by used, key").fetchall():
            if size <= self.most * _LEFT:
                break
            gone.append((key,))
            size -= length
        self.connection.executemany("delete from kept where key = ?", gone)
        self.connection.commit()
        self.connection.execute("vacuum")


def key_of(sources: Sequence[Source], options: Options, tool: str) -> bytes:
    """What the engine's answer depends on: the files and where they are, the options, and the tool itself."""
    made = hashlib.blake2b(digest_size=32)
    # Where the names of the folders above are those of packages, they matter.
    for word in (tool, repr(options), os.getcwd()):  # noqa: PTH109
        made.update(word.encode("utf-8", "surrogateescape") + b"\0")
    for source in sources:
        path = os.fsencode(source.path)
        made.update(b"%d %d\0" % (len(path), len(source.raw)) + path + source.raw)
    return made.digest()


def tool() -> str:
    """The version of this tool, and of what it runs on; a tree that is worked on has one for each change."""
    files = sorted(_stamps(os.fspath(_PACKAGE)))
    return repr((__version__, sys.version_info[:3], _libcst(), _digest(repr(files).encode())))


def _libcst() -> str:
    from importlib.util import find_spec

    spec = find_spec("libcst")
    origin = spec.origin if spec is not None and spec.origin is not None else ""
    version = Path(origin).with_name("_version.py")
    try:
        return f"{origin} {version.stat().st_mtime_ns}"
    except OSError:
        return origin


def _stamps(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in ("__pycache__", "harness"):
                    yield from _stamps(entry.path)
            elif not entry.name.endswith((".pyc", ".so")):
                about = entry.stat()
                yield entry.path, about.st_size, about.st_mtime_ns


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
