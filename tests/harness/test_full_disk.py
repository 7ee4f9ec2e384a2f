"""Runs and reports on a disk without room."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_documents import make

from migrator.cli.outputs import Outputs
from migrator.harness.cluster import ClusterShape, ForkServer, Launch


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(Path(sys.executable), "original", preload=()) as server:
        yield server


@pytest.mark.parametrize(
    "statement",
    [
        "open('/dev/full', 'w').write('x' * 100_000)",
        "raise OSError(122, 'Disk quota exceeded')",
        "raise RuntimeError('/models/ckpt.data; No space left on device')",
        "import numpy; numpy.ones(100_000).tofile('/dev/full')",
    ],
)
def test_a_program_that_finds_no_room(server: ForkServer, tmp_path: Path, statement: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(statement)
    outcome = server.run(Launch("original", script, (), ClusterShape(), tmp_path / "run"))
    assert outcome.failure is not None and outcome.failure.kind == "disk"
    assert outcome.failure.message.startswith("local:0 ended with exit code 1 because the disk was full: ")


def test_a_full_disk_that_takes_no_word_on_it(server: ForkServer, small: Path, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        f"file = open({str(small / 'filler')!r}, 'wb', buffering=0)\nwhile True: file.write(b'x' * 4096)\n"
    )
    outcome = server.run(Launch("original", script, (), ClusterShape(), small / "run"))
    assert outcome.failure is not None and outcome.failure.kind == "disk"
    assert "because the disk was full" in outcome.failure.message


def test_a_failure_with_room_is_none_of_the_disk(server: ForkServer, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("raise ValueError('Errno 28 days later')")
    outcome = server.run(Launch("original", script, (), ClusterShape(), tmp_path / "run"))
    assert outcome.failure is not None and outcome.failure.kind == "exit"


def test_a_verdict_is_shown_where_its_report_has_no_room(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = small / "report"
    (small / "filler").write_bytes(b"x" * 56_000)
    assert Outputs(None, None, None, "fail", github=False).finish(make("EQUIVALENT"), folder) == 2
    shown = capsys.readouterr()
    assert "EQUIVALENT: " in shown.out
    assert shown.err == (
        f"Error: the report cannot be written to {folder}: the disk is full (No space left on device)\n"
    )
    assert not [path for path in folder.iterdir() if path.name.startswith(".")], "no part of a file is left"
