"""The codemod on systems that this machine is not: what it imports, how it spells paths, where its cache is."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from migrator import folders
from migrator.report.diff import in_patch
from migrator.source import git
from migrator.source.discovery import discover

PACKAGE = Path(__file__).resolve().parents[1] / "migrator"


def newer_than_39(code: str) -> list[int]:
    """Lines that Python 3.9 reads and cannot run; ruff finds those that it cannot read."""
    found: list[int] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "zip" and any(keyword.arg == "strict" for keyword in node.keywords):
                found.append(node.lineno)
            if node.func.id in ("isinstance", "issubclass"):
                found += [node.lineno for part in ast.walk(node.args[-1]) if isinstance(part, ast.BinOp)]
    return found


def test_nothing_is_newer_than_python_39() -> None:
    assert newer_than_39("isinstance(x, int | str)") == newer_than_39("zip(x, y, strict=True)") == [1]
    lines = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if not {"harness", "library"} & set(path.relative_to(PACKAGE).parts) and path.name != "verify_project.py"
        for line in newer_than_39(path.read_text(encoding="utf-8"))
    }
    assert lines == set()


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (PureWindowsPath(r"models\train.py"), "models/train.py"),
        (PureWindowsPath(r"D:\work\train.py"), "work/train.py"),
        (PureWindowsPath(r"\\server\share\models\train.py"), "models/train.py"),
        (PurePosixPath("/work/models/train.py"), "work/models/train.py"),
        (PurePosixPath("models/train.py"), "models/train.py"),
    ],
)
def test_paths_in_patches(path: PureWindowsPath | PurePosixPath, named: str) -> None:
    assert in_patch(path) == named


def test_the_cache_is_where_the_user_or_the_system_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folders.cache_folder() == tmp_path / "tf-migrate"
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, appauthor: tmp_path / "system" / name)
    for useless in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", useless)
        assert folders.cache_folder() == tmp_path / "system/tf-migrate"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_is_asked_where_links_are_not_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".git/info").mkdir(parents=True)
    for name, text in (("HEAD", "ref: refs/heads/main\n"), ("info/exclude", "ignored.py\n")):
        (tmp_path / ".git" / name).write_text(text)
    (tmp_path / ".git/objects").mkdir()
    for name in ("ignored.py", "kept.py"):
        (tmp_path / name).write_text("")

    def refuse(path: Path, target: Path) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert git.listed_files(tmp_path) == ["kept.py"]
    assert [found.path.name for found in discover([tmp_path])] == ["kept.py"]
