"""``tf-migrate environments``: make the interpreters that ``verify`` runs the two programs with."""

from __future__ import annotations

import click

from migrator.cli.extras import verify_extra
from migrator.report.outcome import ExitCode


@click.command(short_help="Create the TensorFlow environments that verify needs.")
def command() -> None:
    """Make the environments of the original and the migrated program, and print their interpreters.

    Where a Python 3.7 is found, one with TensorFlow 1.15.5 is made, too, for originals that use tf.contrib. Name it in
    TF_MIGRATE_ORIGINAL_PYTHON to run all originals on it.

    What is there already is not made again. They are kept in the user's cache and shared by all runs.
    TF_MIGRATE_ORIGINAL_PYTHON and TF_MIGRATE_MIGRATED_PYTHON name other interpreters to use instead.
    """
    with verify_extra():
        from migrator.harness.environments import EnvironmentNotReady, first_python, migrated_python, original_python
    try:
        click.echo(f"original  {original_python(_say)}")
        click.echo(f"migrated  {migrated_python(_say)}")
    except EnvironmentNotReady as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(int(ExitCode.FAILED)) from error
    try:
        first = first_python(_say)
    except EnvironmentNotReady as error:
        click.echo(f"Note: {error}", err=True)
        return
    if first is None:
        click.echo("Note: no Python 3.7 was found, so no environment with TensorFlow 1.15.5 is created.", err=True)
    else:
        click.echo(f"1.15.5    {first}")


def _say(line: str) -> None:
    click.echo(line, err=True)
