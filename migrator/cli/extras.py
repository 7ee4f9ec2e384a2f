"""One clear message when the part of the tool that runs programs is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from migrator.report.outcome import ExitCode


class MissingExtra(click.ClickException):
    """The packages of the ``verify`` extra are missing."""

    exit_code = int(ExitCode.FAILED)

    def __init__(self, module: str) -> None:
        super().__init__(f"{module} is not installed, which this command needs: pip install 'tf-migrate[verify]'")


@contextmanager
def verify_extra() -> Iterator[None]:
    """Turns a failed import of a package into `MissingExtra`; one of our own modules raises as usual."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = error.name or ""
        if not name or name.split(".")[0] == "migrator":
            raise
        raise MissingExtra(name) from error
