"""One clear message when the part of the tool that runs programs is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from migrator.report.outcome import ExitCode


class MissingExtra(click.ClickException):
    """The packages of an extra are missing."""

    exit_code = int(ExitCode.FAILED)

    def __init__(self, module: str, extra: str = "verify") -> None:
        super().__init__(f"{module} is not installed, which this command needs: pip install 'tf-migrate[{extra}]'")


class CannotRunHere(click.ClickException):
    """Programs cannot be run by this Python, or on this system."""

    exit_code = int(ExitCode.FAILED)


@contextmanager
def verify_extra() -> Iterator[None]:
    """Turns a failed import of a package into `MissingExtra`; one of our own modules raises as usual.

    `CannotRunHere` on Windows and on Python 3.9, which only the codemod knows.
    """
    if sys.platform == "win32":
        raise CannotRunHere("programs run on Linux only; on Windows use WSL")
    if sys.version_info < (3, 10):
        raise CannotRunHere("this command needs Python 3.10 or newer; on Python 3.9 only migrating works")
    try:
        yield
    except ModuleNotFoundError as error:
        name = error.name or ""
        if not name or name.split(".")[0] == "migrator":
            raise
        raise MissingExtra(name) from error
