"""Which files a list of paths stands for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from migrator.source.git import listed_files

#: The endings of the files that a folder stands for: Python files, and notebooks.
SUFFIXES = (".py", ".ipynb")
SKIPPED_FOLDERS = frozenset({"venv", "site-packages", "node_modules", "__pycache__", "__pypackages__"})


@dataclass(frozen=True)
class Found:
    """A file to look at."""

    path: Path
    """As the user would write it: relative when the path given was relative."""
    named: bool
    """Whether the user named this very file, rather than a folder above it."""


def discover(paths: Sequence[Path]) -> list[Found]:
    """Returns the files that ``paths`` stand for, each once, in the order of the paths and sorted within a
    folder.

    A path that is not a folder is taken as it is, whatever its name and whether it exists or not: the user
    asked for it, so reading it has to answer. A folder stands for its ``*.py`` and ``*.ipynb`` files. In a git tree
    these are
    the tracked ones and the untracked ones that git does not ignore; elsewhere, or in a folder that git
    ignores as a whole, all of them. Hidden files and folders, virtual environments, ``site-packages``,
    ``node_modules``, ``__pycache__`` and ``*.egg-info`` are left out, and so is a symbolic link that leads
    out of the folder.
    """
    found: list[Found] = []
    for path in paths:
        if path.is_dir():
            found.extend(Found(file, named=False) for file in files_in(path) or ())
        else:
            found.append(Found(path, named=True))
    return found if len(paths) == 1 else _each_once(found)


def module_files(folder: Path, parts: Sequence[str]) -> tuple[Path, Path]:
    """The two files that the module of these names may be in, below a folder: its own, and that of a package."""
    return folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts, "__init__.py")


def files_in(folder: Path, most: int | None = None) -> list[Path] | None:
    """The Python files and notebooks of a folder, sorted; None where more than `most` have to be looked at."""
    listed = _git_files(folder)
    relative: list[str] = []
    for name in listed if listed is not None else _walk(folder):
        if name.endswith(SUFFIXES):
            relative.append(name)
            if most is not None and len(relative) > most:
                return None
    root = real_path(folder)
    folders: dict[str, Path | None] = {}  # where each of them leads, None for those that are left out
    environments: dict[Path, bool] = {}
    kept: dict[str, str] = {}
    links: dict[str, str] = {}
    for name in relative:
        head, _, last = name.rpartition(os.sep)
        if head not in folders:
            skipped = _is_skipped(folder, Path(head, "x.py"), environments)
            folders[head] = None if skipped else _inside(folder / head, root)
        parent = folders[head]
        if parent is None or last.startswith("."):
            continue
        path = os.path.join(folder, name)  # noqa: PTH118 # thousands of files: Path is slow
        kind = _kind(path)
        if kind is _Kind.FILE:
            kept[os.path.normcase(os.path.join(parent, last))] = name  # noqa: PTH118 # as above
        elif kind is _Kind.LINK and (real := real_path(Path(path))).is_relative_to(root):
            # Real files before links to them, so that a finding names the real one.
            links.setdefault(os.path.normcase(real), name)
    by_parts = sorted({**links, **kept}.values(), key=lambda name: name.split(os.sep))  # noqa: PTH206 # as above
    return [folder / name for name in by_parts]


def all_files(folder: Path) -> list[Path]:
    """All files of a folder, whatever they are: those that git has or does not ignore, else all but those skipped."""
    listed = _git_files(folder)
    names = listed if listed is not None else _walk(folder)
    root = real_path(folder)
    return [
        folder / name
        for name in names
        if real_path((folder / name).parent).is_relative_to(root) and os.path.lexists(folder / name)
    ]


def _inside(folder: Path, root: Path) -> Path | None:
    real = real_path(folder)
    return real if real.is_relative_to(root) else None


class _Kind(Enum):
    """What a path is."""

    FILE = "a file"
    LINK = "a link to a file"
    OTHER = "anything else"


def _kind(path: str) -> _Kind:
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode):
            return _Kind.FILE
        if stat.S_ISLNK(mode) and Path(path).is_file():
            return _Kind.LINK
    except (OSError, ValueError):
        pass
    return _Kind.OTHER


def real_path(path: Path) -> Path:
    """Where a path leads."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of symbolic links
        return path.absolute()


def _each_once(found: Iterable[Found]) -> list[Found]:
    kept: dict[Path, Found] = {}
    folders: dict[Path, Path] = {}
    for file in found:
        real = _real(file.path, folders)
        known = kept.get(real)
        # A file that was also named keeps the strict treatment of named files.
        if known is None or (file.named and not known.named):
            kept[real] = file
    return list(kept.values())


def _real(path: Path, folders: dict[Path, Path]) -> Path:
    """Where a path leads; `folders` are those that are known already."""
    if _kind(os.fspath(path)) is not _Kind.FILE:
        return real_path(path)
    parent = path.parent
    if parent not in folders:
        folders[parent] = real_path(parent)
    return folders[parent] / path.name


def _is_skipped(folder: Path, file: Path, environments: dict[Path, bool]) -> bool:
    if file.name.startswith("."):
        return True
    for parent in file.parents:
        name = parent.name
        if name and (name.startswith(".") or name in SKIPPED_FOLDERS or name.endswith(".egg-info")):
            return True
        if parent not in environments:
            environments[parent] = bool(name) and (folder / parent / "pyvenv.cfg").exists()
        if environments[parent]:
            return True
    return False


def _walk(folder: Path) -> Iterator[str]:
    environments: dict[Path, bool] = {}
    for parent, folders, files in os.walk(folder):
        here = Path(parent).relative_to(folder)
        # Judging a made-up file in each folder prunes the walk by the one rule that also filters git's
        # answer.
        folders[:] = [name for name in folders if not _is_skipped(folder, here / name / "x.py", environments)]
        yield from (os.path.join(here, name) if here.name else name for name in files)  # noqa: PTH118 # thousands


def _git_files(folder: Path) -> list[str] | None:
    """Returns what git sees below ``folder``, relative to it, or None when git has no say there."""
    listed = listed_files(folder)
    if listed is None:
        return None
    files: list[str] = []
    for file in listed:
        path = os.path.join(folder, file)  # noqa: PTH118 # thousands of files: Path is slow
        if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
            # A git tree in a git tree (a submodule, say) is one entry of the outer one.
            inner = _git_files(folder / file)
            files.extend(os.path.join(file, name) for name in (_walk(folder / file) if inner is None else inner))  # noqa: PTH118
        else:
            files.append(file)
    return files
