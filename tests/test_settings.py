"""The settings of a project: where they are found, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from migrator.settings import Project, SettingsError, find, read


@dataclass(frozen=True)
class Run:
    entry: str
    arguments: tuple[str, ...] = ()
    steps: int = 1


@dataclass(frozen=True)
class Section:
    strict: bool = False
    some_rate: float = 0.5
    style: Literal["auto", "native"] = "auto"
    codes: tuple[str, ...] = ()
    programs: Mapping[str, Run] = field(default_factory=dict)
    more: tuple[Run, ...] = ()


TOML = """
[tool.tf-migrate]
strict = true
some-rate = 1
style = "native"
codes = ["TFM1", "TFM2"]
[tool.tf-migrate.programs."a b"]
entry = "a.py"
arguments = ["--x", "1"]
steps = 3
"""
CFG = """
[tf-migrate]
strict = yes
some-rate = 1
style = native
codes = TFM1, TFM2
[tool:tf-migrate.programs.a b]
entry = a.py
arguments =
    --x
    1
steps = 3
"""


@pytest.mark.parametrize(("name", "text"), [("pyproject.toml", TOML), ("setup.cfg", CFG)])
def test_both_files_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    project = find([tmp_path])
    assert (project.root, project.file) == (tmp_path, tmp_path / name)
    assert read(project, Section) == Section(
        True, 1.0, "native", ("TFM1", "TFM2"), {"a b": Run("a.py", ("--x", "1"), 3)}
    )


def test_a_section_belongs_to_its_command(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tf-migrate]\nstrict = true\n[tool.tf-migrate.verify]\ncodes = ["a"]\nmore = [{entry = "x"}]\n'
    )
    project = find([tmp_path])
    assert read(project, Section) == Section(strict=True)
    assert read(project, Section, "verify") == Section(codes=("a",), more=(Run("x"),))
    assert read(project, Section, "status") == Section()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stict = true", "`stict`: unknown setting; known here: codes, more, programs, some-rate, strict, style"),
        ("some_rate = 1", "`some_rate`: unknown setting"),
        ("strict = 1", "`strict`: must be true or false, not 1"),
        ('some-rate = "fast"', "`some-rate`: must be a number, not 'fast'"),
        ('style = "mine"', "`style`: must be one of auto, native, not 'mine'"),
        ('codes = "TFM1"', "`codes`: must be a list, not 'TFM1'"),
        ("codes = [1]", "`codes[0]`: must be a string, not 1"),
        ("programs.a = 1", "`programs.a`: must be a table, not 1"),
        ("programs.a.steps = 2", "`programs.a.entry`: is missing"),
        ('programs.a = {entry = "a", step = 2}', "`programs.a.step`: unknown setting; known here: arguments, entry"),
        ("strict = ", "is not TOML"),
    ],
)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.tf-migrate]\n{line}\n")
    with pytest.raises(SettingsError) as caught:
        read(find([tmp_path]), Section)
    assert str(caught.value).startswith(f"TFM910 {file}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tf-migrate]\nstrict = perhaps\n", "`strict`: must be true or false, not 'perhaps'"),
        ("[tf-migrate]\nnew = 1\n", "`new`: unknown setting"),
        ("[tf-migrate]\nstrict = 1\nstrict = 0\n", "already exists"),
        ("[tf-migrate]\n[tool:tf-migrate]\n", "are the same section"),
        ("[tf-migrate]\ncodes = a\n[tf-migrate.codes.x]\n", "is both a value and a section"),
    ],
)
def test_what_cannot_be_understood_in_setup_cfg(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "setup.cfg").write_text(text)
    with pytest.raises(SettingsError, match=r"TFM910 .*setup\.cfg: ") as caught:
        read(find([tmp_path]), Section)
    assert said in str(caught.value)


def test_two_files_with_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(TOML)
    (tmp_path / "setup.cfg").write_text(CFG)
    with pytest.raises(SettingsError, match=r"setup\.cfg: pyproject\.toml beside it has settings"):
        find([tmp_path])
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = tf-migrate\n")
    assert find([tmp_path]).file == tmp_path / "pyproject.toml"


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.tf-migrate]\n# \xff\n")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        find([tmp_path])


def test_the_root_is_that_of_git(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(TOML)
    root = tmp_path / "repository"
    inner = root / "package/inner"
    inner.mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "package/setup.py").touch()
    assert find([inner]) == Project(root, marked=True), "settings above a git tree are not the project's"
    (root / "pyproject.toml").write_text(TOML)
    assert find([inner / "x.py"]).file == root / "pyproject.toml"
    (root / "package/setup.cfg").write_text(CFG)
    project = find([inner / "x.py"])
    assert (project.root, project.file, project.folder) == (root, root / "package/setup.cfg", root / "package")
    assert find([inner, root]).file == root / "pyproject.toml", "of the folder that all paths are in"


def test_without_git_the_root_is_the_nearest_package(tmp_path: Path) -> None:
    inner = tmp_path / "package/inner"
    inner.mkdir(parents=True)
    assert find([inner]) == Project(inner, marked=False)
    (tmp_path / "package/setup.py").touch()
    assert find([inner]) == Project(tmp_path / "package", marked=True)
