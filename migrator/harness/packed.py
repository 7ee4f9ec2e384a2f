"""Records one behind another in one file, as runs leave them of their steps and batches (see inside/appended.py).

Of a process that was killed, part of the last record may be there; it is passed over.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

_NUMBER, _HEAD = 18, 30


class Place(NamedTuple):
    """A record: its number, where its content begins in the file, and how many bytes that has."""

    number: int
    begin: int
    length: int

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.begin + self.length


def whole(stream: BinaryIO, position: int = 0) -> Iterator[Place]:
    """The records that are whole from one that begins at a position, as they were appended.

    Raises ValueError where no record begins.
    """
    size = os.fstat(stream.fileno()).st_size
    while position + _HEAD <= size:
        stream.seek(position)
        head = stream.read(_HEAD)
        if len(head) < _HEAD:
            return
        place = Place(int(head[:_NUMBER]), position + _HEAD, int(head[_NUMBER:]))
        if place.end > size:
            return
        yield place
        position = place.end


def places(path: Path) -> tuple[Place, ...]:
    """The whole records of a file by their numbers, ascending; none where there is no file.

    Raises ValueError if it is no file of records, OSError if it cannot be read.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return ()
    return _places(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=32)
def _places(path: Path, size: int, changed: int) -> tuple[Place, ...]:
    with path.open("rb", buffering=0) as stream:
        return tuple(sorted(whole(stream), key=lambda place: place.number))


def content(path: Path, place: Place) -> bytes:
    """What a record holds."""
    with path.open("rb", buffering=0) as stream:
        stream.seek(place.begin)
        return _exactly(stream, place.length)


def contents(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number and content of each whole record, by their numbers."""
    with path.open("rb") as stream:
        for place in places(path):
            stream.seek(place.begin)
            yield place.number, _exactly(stream, place.length)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    found = stream.read(length)
    while len(found) < length:
        more = stream.read(length - len(found))
        if not more:
            raise OSError("the file has become shorter")
        found += more
    return found


def for_replay(record: Path, folder: Path) -> Path:
    """A record folder whose batches a program can be given: operations read whole files, so each batch has one there.

    They are written below `folder`, once; a record that has such files already is given as it is.
    """
    packed = [task for task in sorted(record.glob("*-*")) if (task / "batches").is_file()]
    if not packed:
        return record
    target = folder / hashlib.sha256(os.fsencode(record.resolve())).hexdigest()[:16]
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".", dir=folder))
    for task in packed:
        batches = made / task.name / "batches"
        batches.mkdir(parents=True)
        for number, one in contents(task / "batches"):
            (batches / f"{number:018d}").write_bytes(one)
        if (task / "calls.jsonl").exists():
            shutil.copyfile(task / "calls.jsonl", made / task.name / "calls.jsonl")
    try:
        made.rename(target)
    except OSError:  # another run has been quicker
        if not target.exists():
            raise
        shutil.rmtree(made, ignore_errors=True)
    return target
