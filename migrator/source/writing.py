"""New text in the place of old, or nothing at all."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.full_disk import full_disk
from migrator.source.reading import Source, declared_encoding, encode, syntax_error

CANNOT_WRITE = "TFM903"
DOES_NOT_PARSE = "TFM904"


def check(source: Source, text: str) -> bytes | Finding:
    """Returns the bytes of ``text`` in the encoding of ``source``, or the finding that forbids writing them.

    TFM904: the text does not parse, or would be decoded differently from how it was encoded. TFM903: the
    encoding of the file lacks one of its characters.
    """
    error = syntax_error(text)
    if error is not None:
        message = f"the migrated text does not parse: {error.msg}; the file was left as it was: please report it"
        return _error(source, DOES_NOT_PARSE, message, error.lineno or 1, max(1, error.offset or 1))
    try:
        new = encode(source, text)
    except ValueError as problem:
        if not isinstance(problem, UnicodeEncodeError):  # of a notebook
            return _error(source, DOES_NOT_PARSE, f"{problem}; it was left as it was: please report it")
        line = text.count("\n", 0, problem.start) + 1
        message = f"{source.encoding} has no {text[problem.start]!a}; convert the file to UTF-8 first"
        return _error(source, CANNOT_WRITE, message, line)
    if source.notebook is not None:
        return new
    if declared_encoding(new) != (source.encoding, source.bom):
        message = "the migrated text lost its coding line; the file was left as it was: please report it"
        return _error(source, DOES_NOT_PARSE, message)
    return new


def write(source: Source, text: str) -> Finding | None:
    """Replaces the file of ``source`` by ``text`` in one step, or leaves it as it is and says why.

    Readers see the old content or the new one, never a part of it. Mode bits and ownership stay; a symbolic
    link stays one, and the file it leads to is replaced. A file that changed since it was read, or that the
    user may not write, is left alone (TFM903). A source without bytes whose file is not there is a new file.
    """
    return write_all([(source, text)])[0]


def write_all(texts: Sequence[tuple[Source, str]], *, backup: bool = False) -> list[Finding | None]:
    """Replaces files as `write` does, and gives the same answers in their order.

    All that is new is on the disk before the first file is replaced. Where there is no room for all of them none is
    replaced: a program may consist of several. With `backup` what is replaced stays beside it, as `train.py.orig`
    (`train.py.orig.1` where there is one).
    """
    staged: list[_Staged | Finding | None] = []
    try:
        for source, text in texts:
            staged.append(_stage(source, text))
    except BaseException as error:
        for one in staged:
            if isinstance(one, _Staged):
                one.discard()
        full = full_disk(error)
        if full is None:
            raise
        place = texts[len(staged)][0].path
        message = f"{full}: there is no room for the new {place.name} in {place.parent}; no file was changed"
        return [_error(source, CANNOT_WRITE, message) for source, _ in texts]
    return [one.put_in_place(backup) if isinstance(one, _Staged) else one for one in staged]


@dataclass(frozen=True)
class _Staged:
    """The new content of a file, beside it."""

    source: Source
    target: Path
    temporary: Path
    is_new: bool = False

    def put_in_place(self, backup: bool = False) -> Finding | None:
        """Replaces the file, in one step; the finding if that cannot be."""
        try:
            if self.is_new:
                os.link(self.temporary, self.target)  # which, unlike a renaming, never replaces a file
                self.temporary.unlink()
            else:
                if backup:
                    _keep(self.target)
                self.temporary.replace(self.target)
        except OSError as error:
            self.discard()
            return _cannot_write(self.source, error)
        _sync_folder(self.target.parent)
        return None

    def discard(self) -> None:
        """Leaves the file as it is."""
        with contextlib.suppress(OSError):
            self.temporary.unlink()


def _keep(file: Path) -> Path:
    """Gives the content of a file a second name, which nothing has: `train.py.orig`, or with a number behind it."""
    for number in itertools.count():
        kept = file.with_name(f"{file.name}.orig{f'.{number}' if number else ''}")
        try:
            os.link(file, kept)
        except FileExistsError:
            if kept.is_file() and kept.read_bytes() == file.read_bytes():
                return kept
        except OSError:  # a file system without links
            if os.path.lexists(kept):
                continue
            shutil.copy2(file, kept)
            return kept
        else:
            return kept
    raise AssertionError("unreachable")


def _stage(source: Source, text: str) -> _Staged | Finding | None:
    """Writes the new content of a file beside it; None if it is that already. Raises OSError where the disk is full."""
    new = check(source, text)
    if isinstance(new, Finding):
        return new
    try:
        if not source.raw and not source.path.exists():
            return _Staged(source, source.path, _beside(source.path, new), is_new=True)
        target = source.path.resolve(strict=True)
        if target.read_bytes() != source.raw:
            return _error(source, CANNOT_WRITE, "the file changed in the meantime; run tf-migrate again")
        if not os.access(target, os.W_OK):
            return _error(source, CANNOT_WRITE, "cannot write the file: it is read-only")
        return None if new == source.raw else _Staged(source, target, _beside(target, new))
    except (OSError, RuntimeError) as error:
        if full_disk(error):
            raise
        return _cannot_write(source, error)


def _beside(target: Path, new: bytes) -> Path:
    """A new file with this content in the folder of `target`, with its mode and owner where it is there."""
    handle, name = tempfile.mkstemp(prefix=".tf-migrate-", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            if target.exists():
                _keep_owner(target, temporary)
                shutil.copymode(target, temporary)
            else:
                mask = os.umask(0)
                os.umask(mask)
                temporary.chmod(0o666 & ~mask)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return temporary


def _cannot_write(source: Source, error: OSError | RuntimeError) -> Finding:
    reason = full_disk(error) or getattr(error, "strerror", None) or str(error)
    return _error(source, CANNOT_WRITE, f"cannot write the file: {reason}; it was left as it was")


def _keep_owner(target: Path, new_file: Path) -> None:
    old, new = target.stat(), new_file.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(OSError):  # only root may give files away
            os.chown(new_file, old.st_uid, old.st_gid)


def _sync_folder(folder: Path) -> None:
    # Or a power cut may undo the renaming. Some file systems cannot do it; the file is whole either way.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _error(source: Source, code: str, message: str, line: int = 1, column: int = 1) -> Finding:
    return Finding(str(source.path), line, column, code, Severity.ERROR, message)
