"""New text in the place of old, or nothing at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from migrator.findings import Finding, Severity
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
    except UnicodeEncodeError as problem:
        line = text.count("\n", 0, problem.start) + 1
        message = f"{source.encoding} has no {text[problem.start]!a}; convert the file to UTF-8 first"
        return _error(source, CANNOT_WRITE, message, line)
    if declared_encoding(new) != (source.encoding, source.bom):
        message = "the migrated text lost its coding line; the file was left as it was: please report it"
        return _error(source, DOES_NOT_PARSE, message)
    return new


def write(source: Source, text: str) -> Finding | None:
    """Replaces the file of ``source`` by ``text`` in one step, or leaves it as it is and says why.

    Readers see the old content or the new one, never a part of it. Mode bits and ownership stay; a symbolic
    link stays one, and the file it leads to is replaced. A file that changed since it was read, or that the
    user may not write, is left alone (TFM903).
    """
    new = check(source, text)
    if isinstance(new, Finding):
        return new
    try:
        target = source.path.resolve(strict=True)
        if target.read_bytes() != source.raw:
            return _error(source, CANNOT_WRITE, "the file changed in the meantime; run tf-migrate again")
        if not os.access(target, os.W_OK):
            return _error(source, CANNOT_WRITE, "cannot write the file: it is read-only")
        if new != source.raw:
            _replace(target, new)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return _error(source, CANNOT_WRITE, f"cannot write the file: {reason}; it was left as it was")
    return None


def _replace(target: Path, new: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".tf-migrate-", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            _keep_owner(target, temporary)
            shutil.copymode(target, temporary)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


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
