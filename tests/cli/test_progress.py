"""What is seen of a long run while it lasts."""

from __future__ import annotations

import io

import pytest

from migrator.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seen(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, soon: float = -1.0, wanted: bool = True) -> str:
    """What comes out while a half of four files is done, where a bar waits for `soon` seconds."""
    monkeypatch.setattr(progress, "_SOON", soon)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress.bar("looking at files", wanted) as advance:
        advance(1, 4)
        advance(2, 4)
    return stream.getvalue()


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    said = seen(monkeypatch, Terminal())
    assert "looking at files" in said and "50%" in said
    assert said.endswith("\x1b[2K"), "the bar is gone when all is done"


def test_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, io.StringIO()) == "", "a log"
    assert seen(monkeypatch, Terminal(), wanted=False) == "", "--quiet"
    assert seen(monkeypatch, Terminal(), soon=60.0) == "", "what is done at once"
