"""The codemod on systems that this machine is not: what it imports, how it spells paths, where its cache is."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from click.testing import CliRunner

from migrator import folders
from migrator.cli.program import program
from migrator.project import imports
from migrator.report import sarif
from migrator.report.diff import in_patch
from migrator.source import discovery, git
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


def test_imports_of_files_with_paths_of_windows() -> None:
    texts = {
        r"train.py": b"from models import net\r\nimport layers, os\r\n",
        r"models\__init__.py": b"",
        r"models\net.py": b"from . import layers\r\nfrom .parts.block import \\\r\n  Block\r\n",
        r"models\layers.py": b"import numpy\r\n",
        r"models\parts\block.py": b"",
    }
    expected = {
        r"train.py": {r"models\__init__.py", r"models\net.py", r"models\layers.py"},
        r"models\net.py": {r"models\__init__.py", r"models\layers.py", r"models\parts\block.py"},
    }
    for folder in ("", "C:\\work\\", "\\\\server\\share\\work\\"):
        raws = {PureWindowsPath(folder + name): raw for name, raw in texts.items()}
        found = imports.edges(raws, raws)  # type: ignore[arg-type]
        assert {path: some for path, some in found.items() if some} == {
            PureWindowsPath(folder + name): {PureWindowsPath(folder + one) for one in some}
            for name, some in expected.items()
        }


def test_what_git_lists_is_spelled_as_the_system_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(git, "_repository_of", lambda folder: git._Repository(tmp_path, tmp_path, tmp_path))
    monkeypatch.setattr(
        git, "_git", lambda folder, environment, *words: (int("ls-files" not in words), b"a/b.py\0c.py\0")
    )
    monkeypatch.setattr("os.sep", "\\")
    assert git.listed_files(tmp_path) == ["a\\b.py", "c.py"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PureWindowsPath(r"models\a b.py"), {"uri": "models/a%20b.py", "uriBaseId": "%SRCROOT%"}),
        (PureWindowsPath(r"C:\work\train.py"), {"uri": "file:///C:/work/train.py"}),
    ],
)
def test_places_in_sarif(monkeypatch: pytest.MonkeyPatch, path: PureWindowsPath, uri: dict[str, str]) -> None:
    for name in ("Path", "PurePath"):
        monkeypatch.setattr(sarif, name, PureWindowsPath)
    assert sarif._artifact(str(path)) == uri


def test_programs_that_end_their_lines_with_cr_lf(tmp_path: Path) -> None:
    """As a checkout on Windows has them: the migrated file has no other ends."""
    case = PACKAGE.parent / "fixtures/two_files"
    for name in ("model.py", "train.py"):
        (tmp_path / name).write_bytes((case / "original" / name).read_bytes().replace(b"\n", b"\r\n"))
    assert CliRunner().invoke(program, [str(tmp_path)], prog_name="tf-migrate").exit_code == 0
    for name in ("model.py", "train.py"):
        expected = (case / "migrated" / name).read_bytes()
        assert (tmp_path / name).read_bytes() == expected.replace(b"\n", b"\r\n")


def test_a_link_and_its_file_are_one_where_case_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/Net.py").write_text("")
    (tmp_path / "net.py").symlink_to(tmp_path / "models/Net.py")
    own = discovery.real_path
    monkeypatch.setattr(discovery, "real_path", lambda path: Path(str(own(path)).replace("Net.py", "NET.PY")))
    assert len(discover([tmp_path])) == 2, "two names are two files here"
    monkeypatch.setattr("os.path.normcase", lambda path: str(path).lower())
    assert [found.path.name for found in discover([tmp_path])] == ["Net.py"]


def test_what_has_no_fork_starts_new_interpreters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("classifier", "multi_worker_guide"):
        (tmp_path / f"{name}.py").write_bytes((PACKAGE.parent / f"fixtures/{name}/original.py").read_bytes())
    monkeypatch.setattr("migrator.project.run.STARTS_BY", "spawn")
    monkeypatch.delattr("os.fork")
    assert CliRunner().invoke(program, ["--jobs", "2", str(tmp_path)], prog_name="tf-migrate").exit_code == 0
    for name in ("classifier", "multi_worker_guide"):
        migrated = PACKAGE.parent / f"fixtures/{name}/migrated.py"
        assert (tmp_path / f"{name}.py").read_bytes() == migrated.read_bytes()
