"""What a command says of its progress: a bar where there is a terminal, lines or nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from migrator.harness.runs import OnProgress, Progress


_SOON = 1.0  # seconds


def line_per_stage(prefix: str) -> OnProgress:
    """Returns a callback that gives each stage one line on stderr, behind `prefix`, for logs."""
    seen: set[str] = set()

    def say(progress: Progress) -> None:
        if progress.stage not in seen:
            seen.add(progress.stage)
            click.echo(f"{prefix}: {progress.stage} ({progress.total} runs)", err=True)

    return say


@contextlib.contextmanager
def bar(what: str, wanted: bool) -> Iterator[Callable[[int, int], None]]:
    """A callback that is told how much is done of how much, and shows it on stderr if that is a terminal.

    Nothing is shown of what is done within a second.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    shown: list[Bar] = []
    began = time.monotonic()

    def advance(done: int, total: int) -> None:
        if not shown and time.monotonic() - began > _SOON and done < total:
            from rich.console import Console
            from rich.progress import Progress as Bar

            shown.append(Bar(console=Console(stderr=True), transient=True))
            shown[0].add_task(what, total=total)
            shown[0].start()
        if shown:
            shown[0].update(shown[0].task_ids[0], completed=done, total=total)

    try:
        yield advance
    finally:
        for one in shown:
            one.stop()
