"""What a user may accept: by comments, by settings, by a baseline; and how exit codes follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

OLD = "import tensorflow as tf1\n"
BLOCKED = "import tensorflow as tf1\nblocked = 1\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.py").touch()
    return tmp_path


def settings(root: Path, text: str) -> None:
    (root / "pyproject.toml").write_text(f"[tool.tf-migrate]\n{text}\n")


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf1\nblocked = 1  # tf-migrate: ignore[TFM203]\n",
        "import tensorflow as tf1\nblocked = 1  # mine  # tf-migrate: ignore[TFM270, TFM203]\n",
        "import tensorflow as tf1\nblocked = (\n    1  # tf-migrate: ignore[TFM203]\n)\n",
        "import tensorflow as tf1\n# Why.\n# tf-migrate: ignore[TFM203]\n\nblocked = 1\n",
        "import tensorflow as tf1\r\nblocked = 1  # tf-migrate: ignore[TFM203]\r\n",
    ],
    ids=["on the line", "among others", "in the statement", "above", "crlf"],
)
def test_a_comment_accepts_a_blocked_program(run: Run, root: Path, text: str) -> None:
    (root / "a.py").write_bytes(text.encode())
    result = run(".", "--check")
    assert result.exit_code == 0, result.output
    assert "TFM203" not in result.output
    assert "1 accepted" in result.output
    assert (root / "a.py").read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("blocked = 1\nx = 1  # tf-migrate: ignore[TFM203]\n", 3, "there is no TFM203 here to ignore"),
        ("blocked = 1  # tf-migrate: ignore\n", 2, "this names no codes"),
        ("blocked = 1  # tf-migrate: ignore[203]\n", 2, "`203` is not a code"),
        ("blocked = 1  # tf-migrate: ignore[TFM204]\n", 2, "there is no TFM204 here to ignore"),
        ("blocked = '# tf-migrate: ignore[TFM203]'\n", 0, ""),
    ],
)
def test_a_comment_that_accepts_nothing_is_told(run: Run, root: Path, text: str, line: int, said: str) -> None:
    (root / "a.py").write_text(OLD + text)
    result = run(".")
    assert result.exit_code == 1
    told = [one for one in result.output.splitlines() if ": TFM913 " in one]
    assert len(told) == (1 if said else 0)
    if said:
        assert told[0].startswith(f"a.py:{line}:") and said in told[0]


def test_a_comment_in_a_file_without_tensorflow_is_told(run: Run, root: Path) -> None:
    (root / "a.py").write_text("x = 1  # tf-migrate: ignore[TFM203]\n")
    result = run(".")
    assert (result.exit_code, "a.py:1:8: TFM913 " in result.output) == (0, True)


def test_a_comment_does_not_hide_what_could_not_be_written(run: Run, root: Path) -> None:
    settings(root, 'ignore = ["TFM9"]')
    (root / "a.py").write_text(OLD + "bug = 1\n")
    result = run(".")
    assert (result.exit_code, "TFM904" in result.output) == (2, True)
    (root / "a.py").write_text("import tensorflow\nprint 'x'\n")
    assert run(".").exit_code == 0, "a file of Python 2 may be accepted"


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        ('ignore = ["TFM203"]', 0),
        ('ignore = ["TFM2"]', 0),
        ('ignore = ["TFM21"]', 1),
        ('select = ["TFM1"]', 0),
        ('select = ["TFM2"]', 1),
        ('select = ["TFM203"]\nignore = ["TFM2"]', 1),
        ('select = ["TFM2"]\nignore = ["TFM203"]', 0),
        ('per-file."a.py".ignore = ["TFM203"]', 0),
        ('per-file."*.py".ignore = ["TFM203"]', 0),
        ('per-file."b.py".ignore = ["TFM203"]', 1),
        ('exclude = ["a.py"]', 0),
        ('exclude = ["/sub"]', 1),
    ],
)
def test_settings_accept(run: Run, root: Path, text: str, exit_code: int) -> None:
    settings(root, text)
    (root / "a.py").write_text(BLOCKED)
    result = run(".")
    assert (result.exit_code, "TFM203" in result.output) == (exit_code, exit_code == 1), result.output


def test_the_command_line_comes_before_the_settings(run: Run, root: Path) -> None:
    settings(root, 'ignore = ["TFM203"]\nstrategy = "parameter-server"')
    (root / "a.py").write_text(BLOCKED)
    assert run(".", "--ignore", "TFM1").exit_code == 1
    assert run(".", "--select", "tfm203", "--ignore", "").exit_code == 1
    assert run(".", "--select", "nonsense").exit_code == 2
    (root / "a.py").write_text(OLD)
    run(".")
    assert (root / "a.py").read_text() == "import tensorflow as tf_parameter_server\n"
    (root / "a.py").write_text(OLD)
    run(".", "--strategy", "auto")
    assert (root / "a.py").read_text() == "import tensorflow as tf_auto\n"


def test_settings_by_file(run: Run, root: Path) -> None:
    settings(root, 'per-file."old/**".strategy = "one-device"\nper-file."b.py".strategy = "parameter-server"')
    (root / "old").mkdir()
    for name in ("a.py", "b.py", "old/c.py"):
        (root / name).write_text(OLD)
    assert run(".").exit_code == 0
    assert [(root / name).read_text().split()[-1] for name in ("a.py", "b.py", "old/c.py")] == [
        "tf_auto",
        "tf_parameter_server",
        "tf_one_device",
    ]


def test_excluded_files_are_not_written_unless_named(run: Run, root: Path) -> None:
    settings(root, 'exclude = ["old/", "*_pb2.py"]')
    (root / "old").mkdir()
    for name in ("a.py", "old/b.py", "x_pb2.py"):
        (root / name).write_text(OLD)
    assert run(".").output.splitlines()[-1] == "2 files: 1 migrated, 1 with nothing to do."
    assert (root / "old/b.py").read_text() == OLD == (root / "x_pb2.py").read_text()
    assert run("old").output == "No Python files or notebooks.\n"
    assert run("old/b.py").exit_code == 0
    assert (root / "old/b.py").read_text() != OLD


@pytest.mark.parametrize(
    "text",
    ["ignor = []", 'style = "mine"', 'ignore = ["E501"]', 'per-file."a".styl = "auto"', 'baseline = "../x.json"'],
)
def test_settings_that_mean_nothing_are_refused(run: Run, root: Path, text: str) -> None:
    settings(root, text)
    (root / "a.py").write_text(OLD)
    result = run(".")
    assert (result.exit_code, (root / "a.py").read_text()) == (2, OLD)
    assert f"TFM910 {root / 'pyproject.toml'}: " in result.output


def test_a_baseline_accepts_what_was_there(run: Run, root: Path) -> None:
    (root / "a.py").write_text(BLOCKED)
    (root / "b.py").write_text(OLD)
    (root / "c.py").write_text("import tensorflow\nprint 'x'\n")
    assert run(".", "--check").exit_code == 2
    assert run(".", "--check", "--write-baseline", "known.json").exit_code == 0
    assert json.loads((root / "known.json").read_text())["findings"] == [
        {"path": "a.py", "code": "TFM203", "line": "blocked = 1", "count": 1},
        {"path": "c.py", "code": "TFM902", "line": "", "count": 1},
    ]
    assert (root / "b.py").read_text() == OLD
    result = run(".", "--check", "--baseline", "known.json")
    assert (result.exit_code, "TFM203" in result.output) == (0, False), result.output
    (root / "a.py").write_text("import os\n\n\n" + BLOCKED.replace("blocked", "  blocked".strip()))
    assert run(".", "--check", "--baseline", "known.json").exit_code == 0, "lines may move"
    (root / "a.py").write_text(BLOCKED + "\nblocked = 2\n")
    (root / "d.py").write_text(BLOCKED)
    result = run(".", "--check", "--baseline", "known.json")
    assert (result.exit_code, [one[:12] for one in result.output.splitlines() if ": TFM203 " in one]) == (
        1,
        ["d.py:2:1: TF"],
    )


def test_a_program_that_could_be_migrated_is_accepted_by_a_baseline_too(run: Run, root: Path) -> None:
    (root / "a.py").write_text(OLD)
    assert run(".", "--check", "--write-baseline", "known.json").exit_code == 0
    settings(root, 'baseline = "known.json"')
    assert run(".", "--check").exit_code == 0
    (root / "b.py").write_text(OLD)
    assert run(".", "--check").exit_code == 1
    assert run(".").exit_code == 0
    assert (root / "a.py").read_text() != OLD


def test_findings_of_a_baseline_that_are_gone_are_told(run: Run, root: Path) -> None:
    for name in ("a", "b"):
        (root / f"{name}.py").write_text(BLOCKED)
    run(".", "--check", "--write-baseline", "known.json")
    (root / "a.py").write_text("x = 1\n")
    result = run(".", "--check", "--baseline", "known.json")
    told = "known.json:1:1: TFM914 1 finding of this baseline is no longer there (it is TFM203 in a.py)"
    assert (result.exit_code, told in result.output) == (0, True), result.output
    assert "TFM914" not in run("b.py", "--check", "--baseline", "known.json").output, "of what is looked at"
    (root / "a.py").unlink()
    assert "TFM914" in run("b.py", "--check", "--baseline", "known.json").output


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"format": 7}', b"\xff"])
def test_a_file_that_is_no_baseline(run: Run, root: Path, content: bytes | None) -> None:
    (root / "a.py").write_text(OLD)
    if content is not None:
        (root / "known.json").write_bytes(content)
    result = run(".", "--baseline", "known.json")
    assert (result.exit_code, (root / "a.py").read_text()) == (2, OLD)
    assert "known.json" in result.output


def test_a_baseline_is_seen_from_its_folder(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "sub").mkdir()
    (root / "sub/a.py").write_text(BLOCKED)
    run(".", "--check", "--write-baseline", "known.json")
    settings(root, 'baseline = "known.json"')
    monkeypatch.chdir(root / "sub")
    assert run("a.py", "--check").exit_code == 0
    assert run(root / "sub" / "a.py", "--check").exit_code == 0
