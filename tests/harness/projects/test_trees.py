"""Folders that look like a project at another time."""

from __future__ import annotations

import os
from pathlib import Path

from migrator.harness.projects.trees import tree_at, tree_with
from migrator.source.git import read_revision, tracked_files

from .conftest import Repository


def test_given_files_stand_among_links_to_the_real_ones(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("a/b/kept.py", "a/b/given.py", "a/other.py", "data/rows.csv", ".git/HEAD", "a/__pycache__/x.pyc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("real")
    tree_with(root, {Path("a/b/given.py"): b"new", Path("c/d.py"): b"new too"}, {Path("a/other.py")}, tmp_path / "made")
    made = tmp_path / "made"
    found = {
        path.relative_to(made).as_posix(): path.read_text()
        for folder, _, files in os.walk(made, followlinks=True)
        for path in (Path(folder, name) for name in files)
    }
    assert found == {"a/b/kept.py": "real", "a/b/given.py": "new", "data/rows.csv": "real", "c/d.py": "new too"}
    assert (made / "data").is_symlink() and not (made / "a/b").is_symlink()
    assert (root / "a/b/given.py").read_text() == "real"


def test_modes_links_and_large_files_of_a_revision(repository: Repository, tmp_path: Path) -> None:
    repository.write({"run.sh": "#!/bin/sh\n", "rows.csv": "version https://git-lfs.github.com/spec/v1\noid x\n"})
    (repository.root / "run.sh").chmod(0o755)
    (repository.root / "link.py").symlink_to("pkg/real.py")
    (repository.root / "out").symlink_to("../elsewhere")
    repository.commit({"pkg/real.py": "x = 1\n", "moved.py": "old\n"})
    repository.write({"rows.csv": "1,2\n" * 100, "pkg/real.py": "x = 2\n", "new.py": "new\n", "scratch.txt": "mine\n"})
    repository.git("add", "new.py")
    (repository.root / "moved.py").unlink()
    (repository.root.parent / "elsewhere").mkdir()
    made = tmp_path / "made"
    tree_at(read_revision(repository.root, "HEAD"), tracked_files(repository.root), made)
    assert os.access(made / "run.sh", os.X_OK) and not os.access(made / "moved.py", os.X_OK)
    assert (made / "moved.py").read_text() == "old\n", "what is gone now was there"
    assert (made / "link.py").read_text() == "x = 1\n", "a link leads to the file of its time"
    assert (made / "out").resolve() == repository.root.parent / "elsewhere"
    assert (made / "rows.csv").read_text() == "1,2\n" * 100, "git has a pointer only"
    assert (made / "scratch.txt").read_text() == "mine\n"
    assert not (made / "new.py").exists()
    assert not (made / ".git").exists()
