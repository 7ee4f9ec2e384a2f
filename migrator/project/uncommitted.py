"""Files whose content nobody else has: they are not overwritten unless that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrator.bridge.support import MARK
from migrator.project.together import Refused
from migrator.source.discovery import real_path
from migrator.source.git import Kept, kept_files
from migrator.source.reading import Source

CODE = "TFM912"


def uncommitted(sources: Sequence[Source], *, staged: bool = False) -> dict[Path, Refused]:
    """Of some files that are to be written, those in a git tree whose content is neither committed nor staged.

    `staged` says that the next commit is what the files are looked at for.
    """
    known: dict[Path, Kept | None] = {}
    refused: dict[Path, Refused] = {}
    for source in sources:
        if not source.raw or MARK in source.text:
            continue  # a new file, or one that is written by this tool
        real = real_path(source.path)
        kept = _kept(real.parent, known)
        if kept is None or kept.has(real, source.raw):
            continue
        if real in kept.objects:
            why = "the file has unstaged changes" if staged else "the file has uncommitted changes"
        else:
            why = "the file is not tracked by git"
        todo = "stage or commit it first (git add), or use --force"
        refused[source.path] = Refused(source.path, CODE, why, todo)
    return refused


def _kept(folder: Path, known: dict[Path, Kept | None]) -> Kept | None:
    if folder not in known:
        above = next((one for one in known.values() if one and folder.is_relative_to(one.root)), None)
        nested = above is not None and any(
            (one / ".git").exists()
            for one in (folder, *folder.parents)
            if one != above.root and above.root in one.parents
        )
        known[folder] = above if above is not None and not nested else kept_files(folder)
    return known[folder]
