"""Files for their owner alone: what programs print and compute is nobody else's business."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, each that is new with mode 0700. One that is there stays as it is."""
    for folder in (*reversed(path.parents), path):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
    if not path.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(path))


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file with mode 0600 that takes the place of `path` when the block ends well; else nothing changes.

    OSError, of a full disk too, names `path`.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        if isinstance(error, OSError) and error.filename in (None, name):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_text(path: Path, text: str) -> None:
    """Writes a file with mode 0600, whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))
