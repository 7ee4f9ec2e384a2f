"""``tf-migrate report PATH``: show the report of an earlier verification again."""

from __future__ import annotations

from pathlib import Path

import click

from migrator.cli.extras import verify_extra
from migrator.cli.outputs import github_option, present
from migrator.report.outcome import ExitCode


@click.command(
    short_help="Show the report of an earlier verification again.",
    epilog="Exit code: 0 done, 2 wrong usage, or no readable report.",
)
@click.argument("path", type=click.Path(path_type=Path), metavar="FOLDER|REPORT.JSON")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the rendered files. Default: that of the report.",
)
@github_option
def command(path: Path, output: Path | None, github: bool | None) -> None:
    """Render report.html and report.xml (JUnit) from report.json once more, and print the report.

    Nothing runs. The exit code says whether it was rendered, not what the verdict is.
    """
    with verify_extra():
        from migrator.harness.report import load, write
        from migrator.harness.report.json_report import ReportError
    try:
        report = load(path)
        folder = path if path.is_dir() else path.parent
        paths = write(report, output or folder)
    except (ReportError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(int(ExitCode.FAILED)) from error
    present(report, paths, github)
