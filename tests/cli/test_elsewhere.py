"""`--out` writes the new project to another folder, `--backup` keeps what is overwritten."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run

OLD = b"import tensorflow as tf1\r\ntf1.x()  # \xc3\xa9"
NEW = OLD.replace(b"tf1", b"tf_auto")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "tree"
    (root / "pack/data").mkdir(parents=True)
    (root / "train.py").write_bytes(OLD)
    (root / "train.py").chmod(0o755)
    (root / "pack/net.py").write_bytes(OLD)
    (root / "pack/plain.py").write_bytes(b"x = 1\n")
    (root / "pack/data/x.bin").write_bytes(bytes(range(256)))
    (root / "link.py").symlink_to("train.py")
    (root / "outside").symlink_to("../other")
    (tmp_path / "other").write_text("secret\n")
    monkeypatch.chdir(tmp_path)
    return root


def content(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_the_new_project_is_written_elsewhere(run: Run, tree: Path) -> None:
    before = content(tree)
    result = run("tree", "--out", "new")
    assert (result.exit_code, content(tree)) == (0, before), result.output
    assert content(Path("new")) == {
        **before,
        "train.py": NEW,
        "pack/net.py": NEW,
        "outside": str(tree.parent / "other"),
    }
    assert stat.S_IMODE(Path("new/train.py").stat().st_mode) == 0o755
    assert sorted(path.name for path in tree.parent.iterdir()) == ["new", "other", "tree"]
    assert run("new", "--check").exit_code == 0


def test_of_a_git_tree_what_git_has(run: Run, tree: Path) -> None:
    (tree / ".gitignore").write_text("*.bin\n")
    subprocess.run(["git", "-C", tree, "init", "-q"], check=True)
    assert run("tree", "--out", "new").exit_code == 0, "nothing is overwritten, so nothing has to be committed"
    assert sorted(content(Path("new"))) == [
        *(".gitignore", "link.py", "outside", "pack/net.py", "pack/plain.py", "train.py")
    ]


def test_files_are_seen_from_the_folder_that_holds_them(run: Run, tree: Path) -> None:
    assert run("tree/train.py", "tree/pack/plain.py", "--out", "new").exit_code == 0
    assert content(Path("new")) == {"train.py": NEW, "pack/plain.py": b"x = 1\n"}


def test_into_a_folder_of_the_project(run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    Path("new").mkdir()
    assert run(".", "--out", "new").exit_code == 0
    assert "new/new" not in content(Path()) and Path("new/train.py").read_bytes() == NEW


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tree", "--out", "tree"], "exists"),
        (["tree", "--out", "tree/pack"], "exists"),
        (["tree", "--out", "other"], "exists"),
        (["tree", "--out", "a/b"], "there is no folder"),
        (["tree", "--out", "new", "--check"], "cannot be combined with"),
        (["tree", "--out", "new", "--backup"], "cannot be combined with"),
        (["-", "--out", "new"], "cannot be combined with"),
    ],
)
def test_where_nothing_can_be_written(run: Run, tree: Path, arguments: list[str], said: str) -> None:
    before = content(tree.parent)
    result = run(*arguments)
    assert (result.exit_code, said in result.output, content(tree.parent)) == (2, True, before)


def test_nothing_is_left_of_a_folder_that_could_not_be_written(
    run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    before = content(tree.parent)
    monkeypatch.setattr(Path, "write_bytes", full)
    result = run("tree", "--out", "new")
    assert (result.exit_code, content(tree.parent)) == (2, before)
    assert "new cannot be written: No space left on device" in result.output


def test_a_backup_is_the_file_itself(run: Run, tree: Path) -> None:
    before = (tree / "train.py").stat()
    assert run("tree", "--backup").exit_code == 0
    kept = tree / "train.py.orig"
    assert ((tree / "train.py").read_bytes(), kept.read_bytes()) == (NEW, OLD)
    assert (kept.stat().st_mode, kept.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert not (tree / "pack/plain.py.orig").exists(), "it did not change"
    (tree / "train.py").write_bytes(OLD + b"# 2")
    assert run("tree", "--backup").exit_code == 0
    assert (kept.read_bytes(), (tree / "train.py.orig.1").read_bytes()) == (OLD, OLD + b"# 2")


def test_with_a_backup_nothing_has_to_be_committed(run: Run, tree: Path) -> None:
    subprocess.run(["git", "-C", tree, "init", "-q"], check=True)
    assert run("tree").exit_code == 2
    assert (tree / "train.py").read_bytes() == OLD
    assert run("tree", "--backup").exit_code == 0
    assert (tree / "train.py").read_bytes() == NEW


def test_without_links_a_backup_is_a_copy(run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert run("tree/train.py", "--backup").exit_code == 0
    assert (tree / "train.py.orig").read_bytes() == OLD
