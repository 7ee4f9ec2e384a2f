"""What a command says of its progress where there is no terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from migrator.harness.runs import OnProgress, Progress


def line_per_stage(prefix: str) -> OnProgress:
    """Returns a callback that gives each stage one line on stderr, behind `prefix`, for logs."""
    seen: set[str] = set()

    def say(progress: Progress) -> None:
        if progress.stage not in seen:
            seen.add(progress.stage)
            click.echo(f"{prefix}: {progress.stage} ({progress.total} runs)", err=True)

    return say
