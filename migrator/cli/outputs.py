"""What becomes of a report once it is there: the options for it, the baseline, and what is printed."""

from __future__ import annotations

import functools
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from migrator.full_disk import full_disk
from migrator.report.outcome import ExitCode

if TYPE_CHECKING:
    from migrator.harness.report import Report

_FILE = click.Path(dir_okay=False, path_type=Path)
#: Width of what is printed where there is no terminal that has one.
_WIDTH = 120

github_option = click.option(
    "--github/--no-github",
    default=None,
    help="Print GitHub's workflow commands and write the step summary. Default: on in GitHub Actions.",
)


@dataclass
class Outputs:
    """The options of `verify` that are about its report. `baseline` is the content of `against`."""

    save_baseline: Path | None
    against: Path | None
    reason: str | None
    inconclusive: str
    github: bool | None
    baseline: dict[str, Any] | None = field(default=None, init=False)

    @property
    def warn_inconclusive(self) -> bool:
        """Whether INCONCLUSIVE is only to be warned of."""
        return self.inconclusive == "warn"

    def check(self) -> None:
        """Reads the baseline, and refuses what cannot be done, before anything runs. Raises click.UsageError."""
        from migrator.harness.report import baseline

        if self.reason is not None and self.against is None:
            raise click.UsageError("--reason requires --against, the baseline whose changes it accepts")
        if self.reason is not None and not self.reason.strip():
            raise click.UsageError("--reason is empty")
        if self.save_baseline is not None and self.against is not None:
            raise click.UsageError("--save-baseline and --against exclude each other; --reason replaces a baseline")
        if self.save_baseline is not None and self.save_baseline.exists():
            raise click.UsageError(
                f"{self.save_baseline} exists; to replace a baseline, use --against {self.save_baseline} --reason TEXT"
            )
        if self.against is not None:
            try:
                self.baseline = baseline.load(self.against)
            except baseline.BaselineError as error:
                raise click.UsageError(str(error)) from error

    def finish(self, report: Report, folder: Path) -> int:
        """Compares with the baseline, writes the report and the baseline, prints; returns the exit code."""
        from migrator.harness.report import baseline, exit_code, write

        if self.against is not None and self.baseline is not None:
            report = baseline.compared(report, self.against, self.baseline, self.reason)
        try:
            paths = write(report, folder)
        except OSError as error:
            # What took minutes to find out is shown at least.
            present(report, {}, self.github, warn_inconclusive=self.warn_inconclusive)
            why = full_disk(error) or error.strerror
            click.echo(f"Error: the report cannot be written to {folder}: {why}", err=True)
            return int(ExitCode.FAILED)
        try:
            if self.save_baseline is not None:
                baseline.save(self.save_baseline, baseline.of(report))
            elif self.against is not None and report.document["baseline"]["accepted"]:
                baseline.save(self.against, baseline.of(report, self.reason))
        except OSError as error:
            click.echo(f"Error: the baseline cannot be written: {full_disk(error) or error}", err=True)
            present(report, paths, self.github, warn_inconclusive=self.warn_inconclusive)
            return int(ExitCode.FAILED)
        present(report, paths, self.github, warn_inconclusive=self.warn_inconclusive)
        return exit_code(report, warn_inconclusive=self.warn_inconclusive)


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of `Outputs`, and passes them on as its argument `outputs`."""

    @click.option("--save-baseline", type=_FILE, help="Save the results in a new file, for --against.")
    @click.option("--against", type=_FILE, help="Compare with a baseline; regressions fail, with exit code 1.")
    @click.option("--reason", metavar="TEXT", help="With --against: accept the changes, and replace the baseline.")
    @click.option(
        "--inconclusive",
        type=click.Choice(["fail", "warn"]),
        default="fail",
        show_default=True,
        help="Whether INCONCLUSIVE ends with exit code 3 or, still printed, with 0.",
    )
    @github_option
    @functools.wraps(command)
    def wrapper(
        save_baseline: Path | None,
        against: Path | None,
        reason: str | None,
        inconclusive: str,
        github: bool | None,
        **arguments: Any,
    ) -> None:
        command(outputs=Outputs(save_baseline, against, reason, inconclusive, github), **arguments)

    return wrapper


def present(report: Report, paths: Mapping[str, Path], github: bool | None, *, warn_inconclusive: bool = False) -> None:
    """Prints the report, and what GitHub reads if that is wanted (None: if this runs there)."""
    from rich.console import Console

    from migrator.harness.report import github as actions
    from migrator.harness.report import terminal

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    if not (actions.wanted(os.environ) if github is None else github):
        terminal.show(report, console, paths)
        return
    # What the programs said is printed too, and must not be taken for an order to the runner.
    token = uuid.uuid4().hex
    click.echo(f"::stop-commands::{token}")
    terminal.show(report, console, paths)
    click.echo(f"::{token}::")
    actions.publish(report, os.environ, click.echo, warn_inconclusive=warn_inconclusive)
