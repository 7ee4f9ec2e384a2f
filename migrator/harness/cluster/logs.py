"""Keeping the logs of a run after its folder is gone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from migrator.harness.private import make_folder, replacing

#: The file in a task's folder that holds the stacks of its threads, for each time that they were asked for.
STACKS = "stacks.log"
#: Bytes of output that are kept of one task; twice as much as any reader will scroll through.
KEPT = 5_000_000


def keep(target: Path, title: str, sources: Sequence[Path], kept: int = KEPT) -> None:
    """Writes the texts of `sources`, at most `kept` bytes of them in all, to `target`, under `title`.

    A source that does not exist, or is empty, is left out. The folder of `target` is made; both are their
    owner's alone.
    """
    make_folder(target.parent)
    found = sorted((size, source) for source in sources if source.is_file() and (size := source.stat().st_size))
    # Short streams leave what they do not need to the long ones.
    shares: dict[Path, int] = {}
    left = kept
    for number, (size, source) in enumerate(found):
        shares[source] = min(size, left // (len(found) - number))
        left -= shares[source]
    with replacing(target) as into:
        into.write(f"# {title}\n".encode())
        for source in (source for source in sources if source in shares):
            into.write(f"\n# {source.stem}\n".encode())
            with source.open("rb") as text:
                _copy(text, into, shares[source])


def _copy(text: IO[bytes], into: IO[bytes], share: int) -> None:
    size = text.seek(0, os.SEEK_END)
    text.seek(0)
    if size <= share:
        into.write(text.read(share))
        return
    head = share // 2
    into.write(text.read(head))
    into.write(f"\n# ... {size - share} bytes are left out here ...\n".encode())
    text.seek(size - (share - head))
    into.write(text.read(share - head))
