"""Git is asked, and nothing in the tree that it is asked about runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.source.discovery import discover
from migrator.source.git import (
    GitError,
    kept_files,
    listed_files,
    read_blobs,
    read_revision,
    staged_files,
    tracked_files,
)

_IDENTITY = ("-c", "user.email=a@b", "-c", "user.name=a", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", folder, *_IDENTITY, *arguments], check=True, capture_output=True)


class Trap:
    """A program of the tree that leaves a file when it runs."""

    def __init__(self, folder: Path) -> None:
        self.sprung = folder / "sprung"
        self.script = folder / "trap.sh"
        self.script.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.sprung}\nprintf "/\\0"\n')
        self.script.chmod(0o755)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "pkg").mkdir(parents=True)
    (root / "train.py").write_text("x = 1\n")
    (root / "pkg" / "ignored.py").write_text("x = 1\n")
    (root / ".gitignore").write_text("ignored.py\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    return root


def names(folder: Path) -> list[str]:
    return [found.path.relative_to(folder).as_posix() for found in discover([folder])]


SETTINGS = {
    "fsmonitor": "[core]\n\tfsmonitor = {trap}\n",
    "fsmonitor of an include": "[include]\n\tpath = more\n",
    "hooks": "[core]\n\thooksPath = {hooks}\n",
    "pager and editor": "[core]\n\tpager = {trap}\n\teditor = {trap}\n\tsshCommand = {trap}\n\taskPass = {trap}\n",
    "filter": '[filter "x"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n',
    "diff": '[diff "x"]\n\ttextconv = {trap}\n\tcommand = {trap}\n[diff]\n\texternal = {trap}\n',
    "alias": "[alias]\n\tls-files = !{trap}\n\tcheck-ignore = !{trap}\n",
}


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_no_setting_of_the_tree_runs_a_program(tree: Path, trap: Trap, kind: str) -> None:
    hooks = tree / ".git" / "own-hooks"
    hooks.mkdir()
    for name in ("post-index-change", "post-checkout", "fsmonitor-watchman", "query-watchman"):
        shutil.copy(trap.script, hooks / name)
        shutil.copy(trap.script, tree / ".git" / "hooks" / name)
    with (tree / ".git" / "config").open("a") as config:
        config.write(SETTINGS[kind].format(trap=trap.script, hooks=hooks))
    (tree / ".git" / "more").write_text(SETTINGS["fsmonitor"].format(trap=trap.script))
    (tree / ".gitattributes").write_text("*.py filter=x diff=x\n")
    (tree / "train.py").write_text("x = 2\n")  # git would look at its content anew
    assert names(tree) == ["train.py"]
    assert not trap.sprung.exists(), trap.sprung.read_text()


def test_the_traps_are_real(tree: Path, trap: Trap) -> None:
    """What the tests above ask of the tool can be got wrong: plain git springs the trap."""
    with (tree / ".git" / "config").open("a") as config:
        config.write(SETTINGS["fsmonitor"].format(trap=trap.script))
    git(tree, "ls-files", "--others")
    assert trap.sprung.exists()


def test_a_missing_object_is_not_fetched(tree: Path, trap: Trap) -> None:
    # A partial clone gets what it misses from its remote, by a program that its settings name.
    git(tree, "config", "core.repositoryFormatVersion", "1")
    git(tree, "config", "extensions.partialClone", "origin")
    git(tree, "config", "remote.origin.url", str(tree))
    git(tree, "config", "remote.origin.promisor", "true")
    git(tree, "config", "remote.origin.uploadpack", str(trap.script))
    git(tree, "update-index", "--skip-worktree", ".gitignore")
    (tree / ".gitignore").unlink()
    shutil.rmtree(tree / ".git" / "objects")
    (tree / ".git" / "objects").mkdir()
    subprocess.run(["git", "-C", tree, "ls-files", "--others", "--exclude-standard"], check=False, capture_output=True)
    assert trap.sprung.exists(), "plain git springs the trap"
    trap.sprung.unlink()
    assert "train.py" in names(tree)
    assert not trap.sprung.exists(), trap.sprung.read_text()


def test_an_embedded_bare_repository_is_a_folder_like_others(tmp_path: Path, trap: Trap) -> None:
    source = tmp_path / "source"
    embedded = source / "examples"
    for name in ("objects", "refs"):
        (embedded / name).mkdir(parents=True)
        (embedded / name / ".gitkeep").touch()
    (embedded / "HEAD").write_text("ref: refs/heads/main\n")
    (embedded / "train.py").write_text("import tensorflow as tf\n")
    shutil.copy(trap.script, embedded / "monitor.sh")
    core = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = "."\n\tfsmonitor = "./monitor.sh"\n'
    (embedded / "config").write_text(core)
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-qm", "x")
    cloned = tmp_path / "cloned"
    git(tmp_path, "clone", "-q", str(source), str(cloned))
    found = subprocess.run(
        [sys.executable, "-m", "migrator", "--check", "examples"],
        cwd=cloned,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in found.stderr
    assert names(cloned) == ["examples/train.py"]
    assert not trap.sprung.exists(), trap.sprung.read_text()


def test_a_work_tree_and_a_submodule_have_their_own_index(tree: Path, tmp_path: Path) -> None:
    (tree / ".git" / "info" / "exclude").write_text("scratch.py\n")
    git(tree, "worktree", "add", "-q", str(tmp_path / "second"))
    second = tmp_path / "second"
    for name in ("new.py", "scratch.py", "ignored.py"):
        (second / name).touch()
    assert names(second) == ["new.py", "train.py"]
    git(tree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(second), "sub")
    (tree / "sub" / "ignored.py").touch()
    assert names(tree) == ["sub/train.py", "train.py"]


def test_a_split_index_and_another_object_format(tree: Path, tmp_path: Path) -> None:
    git(tree, "update-index", "--split-index")
    assert names(tree) == ["train.py"]
    other = tmp_path / "sha256"
    other.mkdir()
    git(other, "init", "-q", "--object-format=sha256")
    (other / ".gitignore").write_text("ignored.py\n")
    for name in ("train.py", "ignored.py"):
        (other / name).touch()
    git(other, "add", "train.py")
    assert names(other) == ["train.py"]


def test_the_index_is_not_written(tree: Path) -> None:
    index = tree / ".git" / "index"
    before = index.read_bytes()
    os.utime(tree / "train.py", (1, 1))
    assert listed_files(tree) is not None
    assert index.read_bytes() == before


def test_a_pointer_into_nowhere_is_no_repository(tree: Path) -> None:
    shutil.rmtree(tree / ".git")
    for content in (b"gitdir: /nowhere\n", b"", b"\xff\0\n"):
        (tree / ".git").write_bytes(content)
        assert listed_files(tree) is None
        assert names(tree) == ["pkg/ignored.py", "train.py"]


def test_python_m_imports_nothing_of_the_tree(tmp_path: Path, trap: Trap) -> None:
    for name in ("click", "libcst", "dataclasses", "tomllib"):
        (tmp_path / f"{name}.py").write_text(f"open({str(trap.sprung)!r}, 'w')\nraise SystemExit('of the tree')\n")
    done = subprocess.run(
        [sys.executable, "-m", "migrator", "--check", "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not trap.sprung.exists()


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_what_is_staged_and_kept_is_asked_without_running_anything(tree: Path, trap: Trap, kind: str) -> None:
    with (tree / ".git" / "config").open("a") as config:
        config.write(SETTINGS[kind].format(trap=trap.script, hooks=tree))
    (tree / ".git" / "more").write_text(SETTINGS["fsmonitor"].format(trap=trap.script))
    (tree / ".gitattributes").write_text("*.py filter=x diff=x\n")
    (tree / "train.py").write_text("x = 2\n")
    assert staged_files(tree) == []
    kept = kept_files(tree)
    assert kept is not None and kept.root == tree
    assert kept.has(tree / "train.py", b"x = 1\n") and kept.has(tree / "train.py", b"x = 1\r\n")
    assert not kept.has(tree / "train.py", b"x = 2\n") and not kept.has(tree / "pkg/ignored.py", b"x = 1\n")
    assert not trap.sprung.exists(), trap.sprung.read_text()


@pytest.mark.parametrize("way", ["loose", "packed", "detached", "worktree", "sha256"])
def test_staged_files_by_every_way_to_name_the_last_commit(tree: Path, tmp_path: Path, way: str) -> None:
    if way == "packed":
        git(tree, "pack-refs", "--all")
    elif way == "detached":
        git(tree, "checkout", "-q", "--detach")
    elif way == "worktree":
        git(tree, "worktree", "add", "-q", str(tmp_path / "second"))
        tree = tmp_path / "second"
    elif way == "sha256":
        tree = tmp_path / "other"
        (tree / "pkg").mkdir(parents=True)
        git(tree, "init", "-q", "--object-format=sha256")
        (tree / "train.py").touch()
        git(tree, "add", ".")
        git(tree, "commit", "-qm", "x")
        kept = kept_files(tree)
        assert kept is not None and kept.has(tree / "train.py", b"")
    (tree / "pkg").mkdir(exist_ok=True)
    (tree / "pkg" / "new.py").write_text("x = 1\n")
    (tree / "other.py").write_text("x = 1\n")
    (tree / "train.py").write_text("x = 2\n")
    git(tree, "add", "pkg/new.py", "other.py")
    assert staged_files(tree) == [tree / "other.py", tree / "pkg/new.py"]
    assert staged_files(tree / "pkg") == [tree / "pkg/new.py"]
    git(tree, "add", "train.py")
    git(tree, "rm", "-q", "--cached", "other.py")
    assert staged_files(tree) == [tree / "pkg/new.py", tree / "train.py"]


class TestRevisions:
    def test_files_and_contents_of_a_commit(self, tree: Path) -> None:
        first = subprocess.run(["git", "-C", tree, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        (tree / "train.py").write_text("x = 2\n")
        git(tree, "commit", "-qam", "y")
        git(tree, "tag", "v2")
        for name, content in (("HEAD", b"x = 2\n"), ("v2", b"x = 2\n"), ("main~1", b"x = 1\n")):
            revision = read_revision(tree / "pkg", name)
            assert (revision.root, sorted(map(str, revision.files))) == (tree.resolve(), [".gitignore", "train.py"])
            assert list(read_blobs(revision, [revision.files[Path("train.py")].name])) == [content]
        assert read_revision(tree, "HEAD~1").commit == first.stdout.strip()
        assert tracked_files(tree) == [Path(".gitignore"), Path("train.py")]

    def test_packed_names_and_other_work_trees(self, tree: Path, tmp_path: Path) -> None:
        git(tree, "tag", "v1")
        git(tree, "pack-refs", "--all")
        git(tree, "gc", "-q")
        git(tree, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
        (tmp_path / "other" / "train.py").write_text("x = 3\n")
        git(tmp_path / "other", "commit", "-qam", "z")
        revision = read_revision(tmp_path / "other", "HEAD")
        assert list(read_blobs(revision, [revision.files[Path("train.py")].name])) == [b"x = 3\n"]
        assert read_revision(tmp_path / "other", "v1").commit == read_revision(tree, "HEAD").commit

    @pytest.mark.parametrize("name", ["nope", "--help", "HEAD:train.py", "", "HEAD~9"])
    def test_what_is_no_commit(self, tree: Path, name: str) -> None:
        with pytest.raises(GitError, match="is no revision"):
            read_revision(tree, name)

    def test_a_shallow_clone_says_so(self, tree: Path, tmp_path: Path) -> None:
        (tree / "train.py").write_text("x = 2\n")
        git(tree, "commit", "-qam", "y")
        git(tmp_path, "clone", "-q", "--depth", "1", tree.as_uri(), str(tmp_path / "clone"))
        with pytest.raises(GitError, match="shallow"):
            read_revision(tmp_path / "clone", "HEAD~1")

    def test_no_setting_of_the_tree_runs_anything(self, tree: Path, trap: Trap) -> None:
        config = tree / ".git" / "config"
        for text in SETTINGS.values():
            config.write_text(config.read_text() + text.format(trap=trap.script, hooks=trap.script.parent))
        (tree / ".gitattributes").write_text("*.py filter=x diff=x\n")
        git(tree, "-c", "filter.x.clean=cat", "-c", "filter.x.process=", "-c", "core.fsmonitor=false", "add", "-A")
        trap.sprung.unlink(missing_ok=True)
        revision = read_revision(tree, "HEAD")
        assert list(read_blobs(revision, [revision.files[Path("train.py")].name])) == [b"x = 1\n"]
        tracked_files(tree)
        assert not trap.sprung.exists()

    def test_paths_that_lead_out_of_the_folder_are_left_out(self, tree: Path) -> None:
        blob = subprocess.run(
            ["git", "-C", tree, "hash-object", "-w", "--stdin"], input=b"bad\n", check=True, capture_output=True
        ).stdout.decode()
        inner = _tree_object(tree, f"100644 blob {blob.strip()}\tx\n")
        outer = _tree_object(tree, f"040000 tree {inner}\t..\n100644 blob {blob.strip()}\tgood.py\n")
        commit = subprocess.run(
            ["git", "-C", tree, *_IDENTITY, "commit-tree", "-m", "x", outer], check=True, capture_output=True, text=True
        )
        assert list(read_revision(tree, commit.stdout.strip()).files) == [Path("good.py")]


def _tree_object(folder: Path, listing: str) -> str:
    """A tree with any names, which `git mktree` and `git add` refuse."""
    content = b""
    for line in listing.splitlines():
        facts, _, name = line.partition("\t")
        mode, _, digest = facts.split()
        content += f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(digest)
    done = subprocess.run(
        ["git", "-C", folder, "hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
        input=content,
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()
