"""The ``tf-migrate`` command. Everything that talks to the terminal is in here."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Runs ``tf-migrate`` with the arguments of the process and ends the process with its exit code."""
    from migrator.cli.program import program

    for stream in (sys.stdout, sys.stderr):
        # A file name, or a line of a user's program, may hold what the terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    program(prog_name="tf-migrate")
