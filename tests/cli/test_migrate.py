"""`tf-migrate PATH...`: what it writes, prints and exits with."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run

OLD = b"import tensorflow as tf1\r\ntf1.x()  # \xc3\xa9"
NEW = b"import tensorflow as tf_auto\r\ntf_auto.x()  # \xc3\xa9"
BLOCKED = b"import tensorflow as tf1\nblocked = 1\n"
PYTHON_2 = b"import tensorflow as tf1\nprint 'x'\n"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.py"
    path.write_bytes(OLD)
    return path


def test_rewrites_in_place(run: Run, old: Path) -> None:
    old.chmod(0o755)
    result = run(old)
    assert (result.exit_code, old.read_bytes()) == (0, NEW)
    assert stat.S_IMODE(old.stat().st_mode) == 0o755
    assert result.stdout.splitlines() == [
        f"{old}:2:5: TFM102 look at this",
        f"migrated {old}",
        "1 program: native.",
        "1 file: 1 migrated.",
    ]
    assert result.stderr == ""


def test_second_run_changes_nothing(run: Run, old: Path) -> None:
    run(old)
    before = old.stat()
    result = run(old)
    assert (result.exit_code, result.stdout) == (0, "1 file: 1 with nothing to do.\n")
    assert (old.stat().st_ino, old.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_check_leaves_the_file_alone(run: Run, old: Path) -> None:
    before = old.stat()
    result = run("--check", old)
    assert (result.exit_code, old.read_bytes()) == (1, OLD)
    assert (old.stat().st_ino, old.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert f"would migrate {old}\n" in result.stdout
    old.write_bytes(NEW)
    assert run("--check", old).exit_code == 0


@pytest.mark.parametrize(
    "content",
    [
        OLD,
        OLD + b"\r\n",
        b"\n" * 20 + OLD + b"\n" * 20 + b"tf1",
        OLD.replace(b"\r\n", b"\r"),
        b"\xef\xbb\xbf" + OLD,
    ],
    ids=["crlf", "final newline", "two hunks", "cr", "bom"],
)
def test_diff_is_a_patch(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("a folder/old file.py")
    path.parent.mkdir()
    path.write_bytes(content)
    result = run("--diff", path)
    assert (result.exit_code, path.read_bytes()) == (0, content)
    assert "look at this" in result.stderr, "the report leaves stdout to the patch"
    expected = content.replace(b"tf1", b"tf_auto")
    for command in (["patch", "-p1", "--binary"], ["git", "apply", "--whitespace=nowarn"]):
        path.write_bytes(content)
        subprocess.run(command, input=result.stdout_bytes, check=True, capture_output=True)
        assert path.read_bytes() == expected, command


def test_diff_and_check_together(run: Run, old: Path) -> None:
    result = run("--diff", "--check", old)
    assert result.exit_code == 1
    assert result.stdout_bytes.startswith(b"--- a/")
    assert old.read_bytes() == OLD


def test_a_blocked_program_is_left_and_named(run: Run, old: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked.py"
    blocked.write_bytes(BLOCKED)
    result = run(tmp_path, "--quiet")
    assert (result.exit_code, blocked.read_bytes(), old.read_bytes()) == (1, BLOCKED, NEW)
    assert result.stdout == f"{blocked}:2:1: TFM203 cannot be carried over\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PYTHON_2, "--python2"),
        (b"import tensorflow\nx = '\xe9'\n", "coding: latin-1"),
        (b"import tensorflow\n(\n", "parse"),
    ],
)
def test_one_bad_file_does_not_stop_the_others(run: Run, old: Path, tmp_path: Path, content: bytes, said: str) -> None:
    bad = tmp_path / "bad.py"
    bad.write_bytes(content)
    result = run(tmp_path)
    assert (result.exit_code, bad.read_bytes(), old.read_bytes()) == (2, content, NEW)
    assert [line for line in result.stdout.splitlines() if ": TFM90" in line and said in line]
    assert f"{bad}:" in result.stdout
    assert "2 files: 1 migrated, 1 failed." in result.stdout


def test_text_that_does_not_parse_is_not_written(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(OLD + b"\nbug = 1\n")
    for options in ([], ["--check"], ["--diff"]):
        result = run(path, *options)
        assert result.exit_code == 2
        assert path.read_bytes() == OLD + b"\nbug = 1\n"
        assert f"{path}:4:" in result.output and ": TFM904 " in result.output
        assert "--- a/" not in result.output


def test_a_failure_of_the_engine_is_a_message(run: Run, old: Path, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import tensorflow\ncrash = 1\n")
    result = run(tmp_path)
    assert (result.exit_code, old.read_bytes()) == (2, OLD)
    assert "internal error: RuntimeError: engine failure" in result.stderr
    assert "Traceback" not in result.output


def test_missing_path(run: Run, old: Path, tmp_path: Path) -> None:
    result = run(tmp_path / "missing.py", old)
    assert (result.exit_code, old.read_bytes()) == (2, NEW)
    assert "TFM901" in result.stdout and "No such file" in result.stdout


def test_folder_without_python(run: Run, tmp_path: Path) -> None:
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (0, "No Python files or notebooks.\n")


@pytest.mark.parametrize(
    "arguments",
    [[], ["--strategy", "magic", "x.py"], ["--no-such-option"], ["-", "x.py"], ["-q", "-v", "x.py"]],
)
def test_wrong_usage(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage: tf-migrate [OPTIONS] PATH..." in result.output


def test_stdin(run: Run) -> None:
    result = run("-", stdin=OLD)
    assert (result.exit_code, result.stdout_bytes) == (0, NEW)
    assert "<stdin>:2:5: TFM102 look at this" in result.stderr


def test_stdin_that_is_blocked_comes_back_as_it_was(run: Run) -> None:
    result = run("-", stdin=BLOCKED)
    assert (result.exit_code, result.stdout_bytes) == (1, BLOCKED)


def test_stdin_check_and_diff(run: Run) -> None:
    result = run("-", "--check", stdin=OLD)
    assert (result.exit_code, "1 would be migrated" in result.stdout) == (1, True)
    result = run("-", "--diff", stdin=OLD)
    assert (result.exit_code, result.stdout_bytes[:13]) == (0, b"--- a/<stdin>")


def test_stdin_that_is_unreadable_gives_nothing(run: Run) -> None:
    result = run("-", stdin=PYTHON_2)
    assert (result.exit_code, result.stdout_bytes) == (2, b"")
    assert "<stdin>:2:1: TFM902" in result.stderr


@pytest.mark.parametrize("strategy", ["auto", "one-device", "parameter-server", "multi-worker-mirrored"])
def test_strategy_is_passed_on(run: Run, old: Path, strategy: str) -> None:
    assert run(old, "--strategy", strategy).exit_code == 0
    assert b"tf_" + strategy.replace("-", "_").encode() in old.read_bytes()


def test_json(run: Run, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zero.py").write_bytes(PYTHON_2)
    monkeypatch.setenv("TF_MIGRATE_DOCS", "https://docs.test")
    result = run("--format", "json", tmp_path)
    data = json.loads(result.stdout)
    assert data["exit_code"] == result.exit_code == 2
    assert data["summary"] == {"changed": 1, "blocked": 0, "failed": 1, "unchanged": 0}
    assert data["files"] == [
        {"path": str(old), "changed": True, "written": True},
        {"path": str(tmp_path / "zero.py"), "changed": False, "written": False},
    ]
    assert [(finding["code"], finding["severity"]) for finding in data["findings"]] == [
        ("TFM101", "migrated"),
        ("TFM102", "review"),
        ("TFM902", "error"),
    ]
    assert data["findings"][0] == {
        "path": str(old),
        "line": 2,
        "column": 1,
        "code": "TFM101",
        "severity": "migrated",
        "message": "carried over",
        "url": "https://docs.test/rules/TFM101.html",
    }


def test_json_leaves_stdout_to_the_program(run: Run) -> None:
    result = run("-", "--format", "json", stdin=OLD)
    assert result.stdout_bytes == NEW
    assert json.loads(result.stderr)["files"] == [{"path": "<stdin>", "changed": True, "written": True}]


def test_verbose_shows_what_was_carried_over(run: Run, old: Path) -> None:
    assert f"{old}:2:1: TFM101 carried over" in run("-v", old).stdout


def test_files_that_do_not_mention_tensorflow_do_not_load_the_engine(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("tf1 = 1  # crash\n")
    assert run(tmp_path).exit_code == 0
    assert (tmp_path / "x.py").read_text() == "tf1 = 1  # crash\n"


def test_a_path_named_like_a_command(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("rules")
    Path("rules/old.py").write_bytes(OLD)
    assert run("./rules").exit_code == 0
    assert Path("rules/old.py").read_bytes() == NEW


def test_every_line_keeps_its_newline(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mixed.py"
    path.write_bytes(b"import tensorflow as tf1\r\nx = 1\ry = 2\n\rtf1.x()\r\n# end\r\n")
    assert run(path).exit_code == 0
    assert path.read_bytes() == b"import tensorflow as tf_auto\r\nx = 1\ry = 2\n\rtf_auto.x()\r\n# end\r\n"
