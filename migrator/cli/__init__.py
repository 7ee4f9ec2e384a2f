"""The ``tf-migrate`` command. Everything that talks to the terminal is in here."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs ``tf-migrate`` with the arguments of the process and ends the process with its exit code.

    Ctrl-C ends it with 130 from here on, while modules are imported too; a full disk with 2, and its name.
    """
    try:
        _run()
    except KeyboardInterrupt:
        _end("Interrupted.", 130)
    except OSError as error:
        from migrator.full_disk import full_disk

        full = full_disk(error)
        if full is None:
            raise
        what = error.filename if isinstance(error.filename, str) else "the output"
        _end(f"Error: {full}: {what} could not be written.", 2)


def _run() -> None:
    import io

    from migrator.collecting import seldom_until_the_end

    seldom_until_the_end()
    from migrator.cli.program import program

    for stream in (sys.stdout, sys.stderr):
        # A file name, or a line of a user's program, may hold what the terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        program(prog_name="tf-migrate")
    finally:
        sys.stdout.flush()  # what is written only at the end of the process could fail without a word


def _end(message: str, code: int) -> None:
    """Ends the process; what could not be written is given up, or the interpreter would try once more."""
    import contextlib
    import os

    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with contextlib.suppress(OSError):
        print(message, file=sys.stderr, flush=True)
    raise SystemExit(code)
