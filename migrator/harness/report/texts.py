"""What programs said, made fit to be shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

#: What is longer is cut where a table would get too wide, in characters.
LONGEST = 40

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """The text without colours and other orders to a terminal; tabs and newlines stay."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def relative(path: str, folder: Path) -> str | None:
    """The path as seen from `folder`, with slashes; None if it lies outside."""
    seen = os.path.relpath(Path(path).absolute(), folder.absolute())
    return None if seen.startswith("..") else Path(seen).as_posix()


def shown(path: str) -> str:
    """The path as short as it can be typed here."""
    return relative(path, Path.cwd()) or path


def short(text: str) -> str:
    """The beginning of a long text, as of a digest; report.json has all of it."""
    return text if len(text) <= LONGEST else f"{text[:12]}…"
