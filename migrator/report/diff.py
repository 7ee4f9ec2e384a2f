"""An outcome as a patch."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from difflib import diff_bytes, unified_diff
from pathlib import Path, PurePath

_NO_NEWLINE = b"\\ No newline at end of file\n"


def to_diff(path: Path, old: bytes, new: bytes) -> bytes:
    """Returns the unified diff from ``old`` to ``new``; empty when they are equal.

    It is made of bytes, so that it holds in any encoding and with any newlines, and is named ``a/`` and
    ``b/``, so that ``patch -p1`` and ``git apply`` take it in the folder where it was made.
    """
    name = _name(path)
    before = b"a/" + name if old or path.exists() else b"/dev/null"
    lines = diff_bytes(unified_diff, _lines(old), _lines(new), before, b"b/" + name)
    return b"".join(_terminated(lines))


def _lines(content: bytes) -> list[bytes]:
    # `patch` knows LF only; bytes.splitlines would also split at a lone CR.
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _terminated(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE


def _name(path: Path) -> bytes:
    try:
        relative = os.path.relpath(path) if path.is_absolute() else os.path.normpath(path)
    except ValueError:  # another drive of Windows
        relative = str(path)
    if relative.startswith(".."):
        relative = str(path.resolve())
    name = in_patch(Path(relative))
    # As git does: a tab ends a name that holds a space, which `patch` would otherwise cut there.
    return os.fsencode(name) + (b"\t" if " " in name else b"")


def in_patch(path: PurePath) -> str:
    """A path as patches name it, on every system: with slashes, and without a root or drive."""
    return path.relative_to(path.anchor).as_posix()
