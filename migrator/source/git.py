"""What git says of the files of a folder, asked so that nothing in the folder has a say in how git runs.

A repository's settings may name programs (`core.fsmonitor`, filters, hooks, a remote's `uploadpack` for objects that
are fetched when they are missed), and any folder that looks like a bare repository is one to git. So git is given an
empty repository of our own, and of the tree's only what is data: its index, its objects, the names of its commits and
its ignore files. The user's own settings (`core.excludesFile`) are obeyed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrator.full_disk import full_disk

_FORMATS = ("sha1", "sha256")
_NO_COMMIT = b"ref: refs/heads/main\n"
_COMMIT = re.compile("[0-9a-f]{40,64}")
_CONFIG = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = {}\n"
# Of a user's own settings: a helper that would be started for the repository that we made.
_SWITCHED_OFF = ("core.fsmonitor=false", "core.untrackedCache=false", f"core.hooksPath={os.devnull}")


class GitError(Exception):
    """A revision that cannot be read; the message says why, and what to do."""


@dataclass(frozen=True)
class Blob:
    """A file of a revision: its mode as git writes it ("100644", "120000" for a link, "160000" for a submodule) and
    the name of its content.
    """

    mode: str
    name: str


@dataclass(frozen=True)
class Revision:
    """A commit: its full name, the top folder of its repository (absolute), and its files by path below that."""

    commit: str
    root: Path
    files: Mapping[Path, Blob] = field(repr=False)


@dataclass(frozen=True)
class _Repository:
    """A repository's folder of files, its own folder, and that of what its work trees share."""

    root: Path
    own: Path
    common: Path


def listed_files(folder: Path) -> list[str] | None:
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
                        names = os.fsdecode(output.rstrip(b"\0"))
                        return names.replace("/", os.sep).split("\0") if names else []
                elif status == 0:
                    return None
        except OSError as error:
            if full_disk(error):
                raise  # or files that git ignores would be taken for the user's
            return None
    return None


@dataclass(frozen=True)
class Kept:
    """What git has of the files of a repository: by absolute path the name of the object in the index."""

    root: Path
    objects: Mapping[Path, str]

    def has(self, path: Path, raw: bytes) -> bool:
        """Whether git could give this content back; with other newlines, where it is told to change them."""
        name = self.objects.get(path)
        if name is None:
            return False
        unix = raw.replace(b"\r\n", b"\n")
        return _object_name(raw, name) == name or (unix != raw and _object_name(unix, name) == name)


def kept_files(folder: Path) -> Kept | None:
    """What git keeps of the repository that `folder` is in; None without a repository or without git."""
    repository = _repository_of(folder)
    if repository is None:
        return None
    output = _asked(repository, "ls-files", "-z", "--stage")
    if output is None:
        return None
    objects: dict[Path, str] = {}
    for entry in output.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        mode, _, rest = about.partition(b" ")
        if mode in (b"100644", b"100755"):
            objects[repository.root / os.fsdecode(name)] = rest.split(b" ")[0].decode()
    return Kept(repository.root, objects)


def staged_files(folder: Path) -> list[Path] | None:
    """The files below `folder` that the next commit adds or changes, absolute; None where git has no say."""
    repository = _repository_of(folder)
    if repository is None:
        return None
    words = ("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=ACMT", "HEAD", "--")
    output = _asked(repository, *words)
    if output is None and _head(repository) == _NO_COMMIT and not (repository.common / "reftable").exists():
        output = _asked(repository, "ls-files", "-z", "--cached")  # before the first commit all is new
    if output is None:
        return None
    inside = folder.resolve()
    paths = [repository.root / os.fsdecode(name) for name in output.split(b"\0") if name]
    return [path for path in paths if path.is_relative_to(inside)]


def _asked(repository: _Repository, *words: str) -> bytes | None:
    """What git answers about the whole of a repository; None where it cannot."""
    for object_format in _FORMATS:
        try:
            with _private(repository, object_format) as environment:
                status, output = _git(repository.root, environment, *words)
                if status == 0:
                    return output
        except OSError as error:
            if full_disk(error):
                raise
            return None
    return None


def _object_name(raw: bytes, like: str) -> str:
    """The name that git gives to a content, by the hash that `like` was made with."""
    made = hashlib.sha1(usedforsecurity=False) if len(like) == 40 else hashlib.sha256(usedforsecurity=False)
    made.update(b"blob %d\0" % len(raw) + raw)
    return made.hexdigest()


def read_revision(folder: Path, name: str) -> Revision:
    """The files of a revision (`HEAD`, `origin/main`, `v1~3`, ...) of the repository that `folder` is in.

    Raises GitError for a folder without a repository and for a name that means no commit there.
    """
    repository = _repository_of(folder)
    if repository is None:
        raise GitError(f"{folder} is in no git repository")
    if name.startswith("-"):
        raise GitError(f"{name} is no revision")
    try:
        for object_format in _FORMATS:
            with _with_names(repository, object_format) as environment:
                status, output = _git(
                    repository.root, environment, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"
                )
                if status == 0:
                    commit = output.decode().strip()
                    status, output = _git(repository.root, environment, "ls-tree", "-r", "-z", "--full-tree", commit)
                    if status != 0:
                        raise GitError(f"the files of {name} cannot be read: fetch the whole repository")
                    return Revision(commit, repository.root, dict(_entries(output)))
    except OSError as error:
        raise GitError(f"git cannot read {name}: {full_disk(error) or error}") from None
    shallow = " (the clone is shallow: fetch more of its history)" if (repository.common / "shallow").exists() else ""
    raise GitError(f"{name} is no revision of the repository {repository.root}{shallow}")


def tracked_files(root: Path) -> list[Path]:
    """The files that git looks after now, relative to the top folder of a repository; none where there is none."""
    repository = _repository_of(root)
    output = None if repository is None else _asked(repository, "ls-files", "-z", "--cached", "--full-name")
    return [Path(os.fsdecode(name)) for name in (output or b"").split(b"\0") if name]


def read_blobs(revision: Revision, names: list[str]) -> Iterator[bytes]:
    """The contents of blobs of a revision, in the order of their names. Raises GitError for what is not there."""
    repository = _repository_of(revision.root)
    if repository is None:
        raise GitError(f"{revision.root} is in no git repository any more")
    object_format = "sha256" if len(revision.commit) == 64 else "sha1"
    with _with_names(repository, object_format) as environment, tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{name}\n" for name in names).encode())
        asked.seek(0)
        with subprocess.Popen(
            _command(repository.root, "cat-file", "--batch"),
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        ) as process:
            assert process.stdout is not None
            for name in names:
                words = process.stdout.readline().split()
                if len(words) != 3 or words[1] != b"blob":
                    raise GitError(f"the file {name} of {revision.commit} is not here: fetch the whole repository")
                content = process.stdout.read(int(words[2]))
                process.stdout.read(1)
                yield content


def _entries(listing: bytes) -> Iterator[tuple[Path, Blob]]:
    for entry in listing.split(b"\0"):
        facts, _, name = entry.partition(b"\t")
        words = facts.decode().split()
        path = Path(os.fsdecode(name))
        # What git itself would not check out: it would lead out of the folder.
        if len(words) == 3 and path.parts and not path.is_absolute() and not {"..", ".git"} & set(path.parts):
            yield path, Blob(words[0], words[2])


@contextlib.contextmanager
def _with_names(repository: _Repository, object_format: str) -> Iterator[dict[str, str]]:
    """The private repository with the names of another's commits, which are data as its objects are."""
    with _private(repository, object_format) as environment:
        made = Path(environment["GIT_DIR"])
        shutil.rmtree(made / "refs")
        (made / "refs").symlink_to((repository.common / "refs").absolute())
        for folder, name in (
            (repository.own, "HEAD"),
            (repository.common, "packed-refs"),
            (repository.common, "shallow"),
        ):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, made / name)
        for name in ("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD"):
            if (repository.own / name).is_file():
                shutil.copyfile(repository.own / name, made / name)
        yield environment


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
        (made / "HEAD").write_bytes(_head(repository))
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
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        yield environment


def _lend(file: Path, place: Path) -> None:
    """Makes a file of theirs readable at a place of ours: by a link, or a copy where links are for administrators."""
    try:
        place.symlink_to(file.absolute())
    except OSError:
        shutil.copyfile(file, place)


def _head(repository: _Repository) -> bytes:
    """The commit that HEAD names, as our repository's HEAD; a branch without a commit where there is none."""
    said = _first_line(repository.own / "HEAD") or ""
    if said.startswith("ref: refs/") and ".." not in said:
        name = said[len("ref: ") :]
        said = _first_line(repository.common / name) or _packed(repository.common / "packed-refs", name)
    return said.encode("ascii", "replace") + b"\n" if _COMMIT.fullmatch(said) else _NO_COMMIT


def _packed(packed: Path, name: str) -> str:
    try:
        lines = packed.read_bytes().splitlines()
    except OSError:
        return ""
    wanted = b" " + os.fsencode(name)
    return next((line[: -len(wanted)].decode("ascii", "replace") for line in lines if line.endswith(wanted)), "")


def _git(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, bytes]:
    done = subprocess.run(
        _command(folder, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout


def _command(folder: Path, *arguments: str) -> list[str]:
    settings = [word for setting in _SWITCHED_OFF for word in ("-c", setting)]
    return ["git", "-C", os.fspath(folder), *settings, *arguments]
