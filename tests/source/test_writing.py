"""Writing: the new text whole, or the old file as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from migrator.findings import Finding, Severity
from migrator.source import writing
from migrator.source.reading import Source, read
from migrator.source.writing import write


def source_of(path: Path, raw: bytes = b"x = 1\n") -> Source:
    path.write_bytes(raw)
    source = read(path)
    assert isinstance(source, Source)
    return source


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o664, 0o4755])
def test_mode_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x.py"
    source = source_of(path)
    path.chmod(mode)
    assert write(source, "x = 2\n") is None
    assert path.read_bytes() == b"x = 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["x.py"], "nothing else is left in the folder"


@pytest.mark.parametrize(
    ("raw", "text", "new"),
    [
        (b"\xef\xbb\xbfx = 1\r\n", "x = 'é'\r\n", b"\xef\xbb\xbfx = '\xc3\xa9'\r\n"),
        (b"# coding: latin-1\rs = '\xe9'", "# coding: latin-1\rs = 'é!'", b"# coding: latin-1\rs = '\xe9!'"),
    ],
)
def test_encoding_and_newlines_are_kept(tmp_path: Path, raw: bytes, text: str, new: bytes) -> None:
    path = tmp_path / "x.py"
    assert write(source_of(path, raw), text) is None
    assert path.read_bytes() == new


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real/x.py", tmp_path / "link.py"
    source_of(real)
    link.symlink_to("real/x.py")
    source = read(link)
    assert isinstance(source, Source)
    assert write(source, "x = 2\n") is None
    assert link.is_symlink() and os.readlink(link) == "real/x.py"
    assert real.read_bytes() == b"x = 2\n" and not real.is_symlink()


def refused(path: Path, source: Source, text: str, code: str) -> Finding:
    before, files = path.read_bytes(), sorted(os.listdir(path.parent))
    finding = write(source, text)
    assert isinstance(finding, Finding)
    assert (finding.code, finding.severity, finding.path) == (code, Severity.ERROR, str(path))
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == files, "no temporary file is left"
    return finding


def test_text_that_does_not_parse_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    finding = refused(path, source_of(path), "x = 1\ny = = 2\n", "TFM904")
    assert finding.line == 2


def test_text_that_lost_its_coding_line_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    refused(path, source_of(path, b"# coding: latin-1\ns = '\xe9'\n"), "s = 'é'\n", "TFM904")


def test_text_that_the_encoding_cannot_hold_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    source = source_of(path, b"# coding: latin-1\ns = 1\n")
    finding = refused(path, source, "# coding: latin-1\ns = '漢'\n", "TFM903")
    assert finding.line == 2 and "UTF-8" in finding.message


def test_a_file_that_changed_since_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    source = source_of(path)
    path.write_bytes(b"x = 'precious'\n")
    refused(path, source, "x = 2\n", "TFM903")


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_failure_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    path = tmp_path / "x.py"
    source = source_of(path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if fails == "fsync" else (Path, "replace")), fail)
    assert "No space left on device" in refused(path, source, "x = 2\n", "TFM903").message


def test_readers_never_see_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.py"
    source = source_of(path)
    seen: list[bytes] = []
    real = Path.replace

    def look(self: Path, target: Path) -> Path:
        seen.extend([path.read_bytes(), self.read_bytes()])
        assert self.parent == path.parent, "another file system could not be replaced in one step"
        return real(self, target)

    monkeypatch.setattr(Path, "replace", look)
    assert write(source, "x = 2\n") is None
    assert seen == [b"x = 1\n", b"x = 2\n"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_read_only_files_are_left(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    source = source_of(path)
    path.chmod(0o444)
    refused(path, source, "x = 2\n", "TFM903")


def test_read_only_files_are_left_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.py"
    source = source_of(path)
    monkeypatch.setattr(writing.os, "access", lambda *_: False)
    assert "read-only" in refused(path, source, "x = 2\n", "TFM903").message
