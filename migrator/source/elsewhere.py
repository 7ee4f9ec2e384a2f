"""A project written to a folder of its own: the files as they were, and the new texts in the place of old ones."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from migrator.source.discovery import all_files, real_path


class ElsewhereError(Exception):
    """A folder that cannot be written; nothing is left of it."""


def check_folder(out: Path, paths: Sequence[Path]) -> None:
    """Raises ElsewhereError where a project cannot be written to a folder: it holds something, or the project."""
    if out.is_symlink() or (out.exists() and not out.is_dir()) or (out.is_dir() and any(out.iterdir())):
        raise ElsewhereError(f"{out} exists: name a folder that is not there yet, or is empty")
    if not out.absolute().parent.is_dir():
        raise ElsewhereError(f"there is no folder {out.absolute().parent}")
    real = real_path(out)
    if any(real_path(path).is_relative_to(real) for path in paths):
        raise ElsewhereError(f"{out} holds what is to be migrated")


def write_elsewhere(paths: Sequence[Path], texts: Mapping[Path, bytes], out: Path) -> None:
    """Writes what some paths stand for to a folder, which appears at once and as a whole.

    `texts` are new contents, of files that are there or not. A folder stands for all of its files, not only for those
    of Python: in a git tree for those that git has or does not ignore. Names are as they are seen from the folder that
    holds all of the paths, or from the one path if it is a folder. Mode bits and times stay; a link stays one, to what
    it led to. Raises ElsewhereError, or OSError where the disk is full.
    """
    new = {_absolute(path): content for path, content in texts.items()}
    starts = [_absolute(path if path.is_dir() else path.parent) for path in (*paths, *new)]
    base = Path(os.path.commonpath(starts))
    made = Path(tempfile.mkdtemp(prefix=".tf-migrate-", suffix=".tmp", dir=out.absolute().parent))
    try:
        made.chmod(0o777 & ~_mask())
        for path in _all(paths, out):
            if path not in new:
                _copy(path, made / path.relative_to(base), base)
        for path, content in new.items():
            target = made / path.relative_to(base)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            if path.exists():
                shutil.copymode(path, target)
        if out.is_dir():
            out.rmdir()
        made.rename(out)
    except BaseException as error:
        shutil.rmtree(made, ignore_errors=True)
        if isinstance(error, OSError):
            raise ElsewhereError(f"{out} cannot be written: {error.strerror or error}") from error
        raise


def _all(paths: Sequence[Path], out: Path) -> Iterator[Path]:
    seen: set[Path] = set()
    inside = _absolute(out)
    for path in paths:
        for file in all_files(path) if path.is_dir() else [path]:
            one = _absolute(file)
            if one not in seen and not one.is_relative_to(inside):
                seen.add(one)
                yield one


def _copy(path: Path, target: Path, base: Path) -> None:
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        return  # a socket, say
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISREG(mode):
        shutil.copy2(path, target)
        return
    leads_to = os.readlink(path)  # noqa: PTH115 # as it is written
    inside = _absolute(path.parent / leads_to).is_relative_to(base)
    keeps = inside and not Path(leads_to).is_absolute()
    target.symlink_to(leads_to if keeps else _absolute(path.parent / leads_to))


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 # links stay as they are named


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
