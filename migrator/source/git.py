"""What git says of the files of a folder, asked so that nothing in the folder has a say in how git runs.

A repository's settings may name programs (`core.fsmonitor`, filters, hooks, a remote's `uploadpack` for objects that
are fetched when they are missed), and any folder that looks like a bare repository is one to git. So git is given an
empty repository of our own, and of the tree's only what is data: its index, its objects and its ignore files. The
user's own settings (`core.excludesFile`) are obeyed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrator.full_disk import full_disk

_FORMATS = ("sha1", "sha256")
_CONFIG = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = {}\n"
# Of a user's own settings: a helper that would be started for the repository that we made.
_SWITCHED_OFF = ("core.fsmonitor=false", "core.untrackedCache=false", f"core.hooksPath={os.devnull}")


@dataclass(frozen=True)
class _Repository:
    """A repository's folder of files, its own folder, and that of what its work trees share."""

    root: Path
    own: Path
    common: Path


def listed_files(folder: Path) -> list[Path] | None:
    """The tracked files below `folder`, and the untracked ones that git does not ignore, relative to it.

    A repository in the repository (a submodule, say) is one entry. None where git has no say: no repository, no git,
    or a folder that is ignored as a whole.
    """
    repository = _repository_of(folder)
    if repository is None:
        return None
    for object_format in _FORMATS:
        try:
            with _private(repository, object_format) as environment:
                # 0 for an ignored folder, 1 for one that git looks after, 128 for what it cannot read.
                status, _ = _git(folder, environment, "check-ignore", "--quiet", ".")
                if status == 1:
                    status, output = _git(
                        folder, environment, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
                    )
                    if status == 0:
                        return [Path(os.fsdecode(name)) for name in output.split(b"\0") if name]
                elif status == 0:
                    return None
        except OSError as error:
            if full_disk(error):
                raise  # or files that git ignores would be taken for the user's
            return None
    return None


def _repository_of(folder: Path) -> _Repository | None:
    """The repository that `folder` is in: the nearest `.git` above, as git finds it."""
    try:
        start = folder.resolve()
    except (OSError, RuntimeError):
        return None
    if ".git" in start.parts:
        return None
    for root in (start, *start.parents):
        own = root / ".git"
        if own.is_file():
            own = _pointed_to(own)
        if (own / "HEAD").is_file():
            common = _first_line(own / "commondir")
            return _Repository(root, own, own if common is None else own / common)
    return None


def _pointed_to(link: Path) -> Path:
    """The folder that the `.git` file of a work tree or a submodule names."""
    name = _first_line(link) or ""
    return link.parent / name.removeprefix("gitdir:").strip()


def _first_line(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.readline(4096)).rstrip("\r\n")
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def _private(repository: _Repository, object_format: str) -> Iterator[dict[str, str]]:
    """An empty repository that has the index and the ignore file of another; the environment that names it."""
    with tempfile.TemporaryDirectory(prefix="tf-migrate-git-") as name:
        made = Path(name)
        for folder in ("objects", "refs", "info"):
            (made / folder).mkdir()
        (made / "HEAD").write_bytes(b"ref: refs/heads/main\n")
        (made / "config").write_bytes(_CONFIG.format(object_format).encode())
        exclude = repository.common / "info" / "exclude"
        if exclude.is_file():
            _lend(exclude, made / "info" / "exclude")
        for shared in repository.own.glob("sharedindex.*"):
            _lend(shared, made / shared.name)
        # Inside a git hook, GIT_DIR and its like would point every call at the repository of the hook.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {
            "GIT_DIR": str(made),
            "GIT_WORK_TREE": str(repository.root),
            "GIT_INDEX_FILE": str(repository.own.absolute() / "index"),
            "GIT_OBJECT_DIRECTORY": str(repository.common.absolute() / "objects"),
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        yield environment


def _lend(file: Path, place: Path) -> None:
    """Makes a file of theirs readable at a place of ours: by a link, or a copy where links are for administrators."""
    try:
        place.symlink_to(file.absolute())
    except OSError:
        shutil.copyfile(file, place)


def _git(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, bytes]:
    settings = [word for setting in _SWITCHED_OFF for word in ("-c", setting)]
    done = subprocess.run(
        ["git", "-C", os.fspath(folder), *settings, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout
