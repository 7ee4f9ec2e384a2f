"""Writing: the new text whole, or the old file as it was."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.findings import Finding, Severity
from migrator.source import writing
from migrator.source.reading import Source, read
from migrator.source.writing import write, write_all


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
    message = refused(path, source, "x = 2\n", "TFM903").message
    assert message.startswith(("the disk is full (No space left on device)", "cannot write the file: the disk is full"))


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


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_changes_no_file_of_any_program(small: Path) -> None:
    sources = [source_of(small / f"{name}.py", b"x = 1\n") for name in "abc"]
    long = "x = 2  # " + "long " * 8_000 + "\n"
    found = write_all([(sources[0], "x = 2\n"), (sources[1], long), (sources[2], long)])
    for source, finding in zip(sources, found, strict=True):
        assert finding is not None and finding.path == str(source.path)
        assert finding.message == (
            "the disk is full (No space left on device): there is no room for the new c.py in "
            f"{small}; no file was changed"
        )
        assert source.path.read_bytes() == b"x = 1\n"
    assert sorted(os.listdir(small)) == ["a.py", "b.py", "c.py"]
    assert write_all([(sources[0], "x = 2\n"), (sources[1], long)]) == [None, None]


def test_an_interrupt_leaves_every_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [source_of(tmp_path / name) for name in ("a.py", "b.py")]
    synced: list[int] = []

    def interrupt(handle: int) -> None:
        synced.append(handle)
        if len(synced) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_all([(source, "x = 2\n") for source in sources])
    assert [source.path.read_bytes() for source in sources] == [b"x = 1\n"] * 2
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


def test_other_reasons_concern_one_file_only(tmp_path: Path) -> None:
    sources = [source_of(tmp_path / name) for name in ("a.py", "b.py")]
    sources[0].path.write_bytes(b"x = 'precious'\n")
    found = write_all([(source, "x = 2\n") for source in sources])
    assert found[0] is not None and found[1] is None
    assert sources[1].path.read_bytes() == b"x = 2\n"
