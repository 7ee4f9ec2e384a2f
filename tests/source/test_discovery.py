"""Discovery: the user's own Python files, each once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from migrator.source.discovery import Found, discover

FILES = (
    "train.py",
    "pkg/model.py",
    "pkg/data.txt",
    "pkg/notebook.ipynb",
    "pkg/.hidden.py",
    ".tox/x.py",
    "venv/lib/x.py",
    "my-env/lib/x.py",
    "pkg/site-packages/x.py",
    "node_modules/gyp/x.py",
    "pkg/__pycache__/x.py",
    "pkg.egg-info/x.py",
    "env/cartpole.py",
)
KEPT = ["env/cartpole.py", "pkg/model.py", "pkg/notebook.ipynb", "train.py"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # No tree above the temporary folder counts, whatever the machine has there.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    root = tmp_path / "project"
    for name in FILES:
        add(root / name)
    add(root / "my-env/pyvenv.cfg")
    return root


def add(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def names(*paths: Path, root: Path) -> list[str]:
    return [found.path.relative_to(root).as_posix() for found in discover(paths)]


def test_walk(tree: Path) -> None:
    assert names(tree, root=tree) == KEPT


def test_git_tree_gives_tracked_and_untracked_but_no_ignored_files(tree: Path) -> None:
    git(tree, "init")
    add(tree / "tracked.py")
    add(tree / "gone.py")
    add(tree / "generated/x.py")
    add(tree / "pkg/scratch.py")
    (tree / ".gitignore").write_text("generated/\nscratch.py\n")
    git(tree, "add", "tracked.py", "gone.py")
    (tree / "gone.py").unlink()
    assert names(tree, root=tree) == ["env/cartpole.py", "pkg/model.py", "pkg/notebook.ipynb", "tracked.py", "train.py"]
    assert names(tree / "pkg", root=tree) == ["pkg/model.py", "pkg/notebook.ipynb"]
    assert names(tree / "generated", root=tree) == ["generated/x.py"], "an ignored folder that is asked for is walked"
    assert names(tree / "pkg/scratch.py", root=tree) == ["pkg/scratch.py"], "and so is an ignored file"


def test_git_tree_in_a_git_tree(tree: Path) -> None:
    git(tree, "init")
    git(tree / "pkg", "init")
    add(tree / "pkg/skipped.py")
    (tree / "pkg/.gitignore").write_text("skipped.py\n")
    assert names(tree, root=tree) == KEPT


def test_git_variables_of_a_hook_do_not_mislead(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tree, "init")
    (tree / ".gitignore").write_text("train.py\n")
    add(tmp_path / "other/x.py")
    git(tmp_path / "other", "init")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert names(tree, root=tree) == ["env/cartpole.py", "pkg/model.py", "pkg/notebook.ipynb"]


def test_without_git_the_folder_is_walked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tree, "init")
    (tree / ".gitignore").write_text("train.py\n")
    monkeypatch.setenv("PATH", "")
    assert names(tree, root=tree) == KEPT


def test_a_file_is_taken_once_and_as_it_is_named(tree: Path) -> None:
    train = tree / "train.py"
    assert discover([train, train]) == [Found(train, named=True)]
    assert discover([tree, train]).count(Found(train, named=True)) == 1
    assert len(discover([tree, train, tree / "pkg"])) == len(KEPT)


def test_named_files_are_taken_whatever_they_are(tree: Path) -> None:
    odd = [tree / "pkg/data.txt", tree / "missing.py", tree / "pkg/.hidden.py"]
    assert discover(odd) == [Found(path, named=True) for path in odd]


def test_relative_paths_stay_relative(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert [str(found.path) for found in discover([Path("pkg")])] == ["pkg/model.py", "pkg/notebook.ipynb"]
    assert [str(found.path) for found in discover([Path()])] == KEPT


def test_symbolic_links(tree: Path, tmp_path: Path) -> None:
    add(tmp_path / "outside.py")
    (tree / "a_link.py").symlink_to("train.py")
    (tree / "b_link.py").symlink_to(tmp_path / "outside.py")
    (tree / "c_link.py").symlink_to("missing.py")
    (tree / "loop").symlink_to(".")
    (tree / "d_link.py").symlink_to("d_link.py")
    assert names(tree, root=tree) == KEPT, "links inside are the files they lead to, links outside are left"
    assert names(tree / "b_link.py", root=tree) == ["b_link.py"], "unless they are named"


def test_names_that_are_not_text(tree: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    add(tree / name)
    assert name in names(tree, root=tree)
    git(tree, "init")
    assert name in names(tree, root=tree)
