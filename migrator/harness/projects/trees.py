"""Folders that look like a project, with other files in some places: the rest are links to the real ones."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from migrator.source.git import Blob, Revision, read_blobs

_LEFT_OUT = frozenset({".git", "__pycache__", ".venv", "venv", "node_modules"})
_LINK, _SUBMODULE, _EXECUTABLE = "120000", "160000", "100755"
#: The first line of a file whose content Git LFS keeps elsewhere.
_POINTER = b"version https://git-lfs.github.com/spec/"


def tree_with(root: Path, files: Mapping[Path, bytes], absent: Collection[Path], into: Path) -> None:
    """Makes `into` (new) look like `root` with the contents of some files, by paths relative to it, and without others.

    What is not given is a link: to a whole folder where nothing below it is given or absent.
    """
    own = {parent for path in (*files, *absent) for parent in path.parents}
    into.mkdir(parents=True)
    _link(root, into, Path(), own, {*files, *absent})
    for path, content in files.items():
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def tree_at(revision: Revision, tracked: Collection[Path], into: Path) -> None:
    """Makes `into` (new) look as the working tree would at a revision.

    `tracked` are the files that git looks after now: those that the revision has not are left out, and what git does
    not look after (data, say) is linked to. So are files whose content Git LFS keeps, and submodules. Raises GitError.
    """
    blobs = {path: blob for path, blob in revision.files.items() if blob.mode != _SUBMODULE}
    tree_with(revision.root, {}, {*blobs, *(path for path in tracked if path not in revision.files)}, into)
    # Links last: no file is written through one.
    ordered = sorted(blobs.items(), key=lambda item: (item[1].mode == _LINK, item[0]))
    contents = read_blobs(revision, [blob.name for _, blob in ordered])
    for (path, blob), content in zip(ordered, contents, strict=True):
        _place(into / path, blob, content, revision.root / path, revision.root)


def _place(target: Path, blob: Blob, content: bytes, real: Path, root: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if blob.mode == _LINK:
        leads = Path(os.fsdecode(content))
        end = Path(os.path.normpath(real.parent / leads))
        target.symlink_to(leads if not leads.is_absolute() and end.is_relative_to(root) else end)
    elif content.startswith(_POINTER) and real.is_file():
        target.symlink_to(real)
    else:
        target.write_bytes(content)
        if blob.mode == _EXECUTABLE:
            target.chmod(0o755)


def _link(root: Path, into: Path, below: Path, own: Collection[Path], left_out: Collection[Path]) -> None:
    for entry in _entries(root / below):
        path = below / entry.name
        if path in left_out or entry.name in _LEFT_OUT:
            continue
        if path in own and entry.is_dir(follow_symlinks=False):
            (into / path).mkdir()
            _link(root, into, path, own, left_out)
        elif path not in own:
            (into / path).symlink_to(root / path)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        yield from found
