"""``tf-migrate selftest``: shows that ``verify`` sees known mistakes and takes no good migration for a bad one."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from migrator.cli.extras import verify_extra
from migrator.cli.progress import line_per_stage
from migrator.report.outcome import ExitCode

if TYPE_CHECKING:
    from migrator.harness.mutants import Mutant
    from migrator.harness.mutants.cases import SelfTestCase
    from migrator.harness.mutants.killing import CaseKills
    from migrator.harness.runs import OnProgress

BLIND = 5
"""Exit status: a mistake was missed, or a good migration was not recognised."""


@click.command(
    short_help="Show which known mistakes verify detects.",
    epilog="Exit code: 0 all detected, 2 wrong usage, 5 a mistake was missed or a good migration rejected.",
)
@click.argument("cases", nargs=-1)
@click.option(
    "--mutants",
    "words",
    multiple=True,
    metavar="NAME",
    help="Try these on every case: ids, families (optimizer, data, ...), sentinels, or all.",
)
@click.option("--list", "listed", is_flag=True, help="List the known mistakes, without running anything.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the table to this file.",
)
def command(cases: tuple[str, ...], words: tuple[str, ...], listed: bool, json_file: Path | None) -> None:
    """Make known mistakes in good migrations, and show which level of verify finds each.

    CASES are names of workloads of the package, or folders with original.py, migrated.py and case.toml. Left out,
    all workloads are run, and beside a checkout of the repository its fixtures.
    """
    from rich.console import Console

    with verify_extra():
        from migrator.harness.environments import EnvironmentNotReady
        from migrator.harness.mutants import MUTANTS, selftest, table
        from migrator.harness.mutants import cases as known
        from migrator.harness.private import write_text
        from migrator.harness.report.terminal import LiveProgress
        from migrator.harness.session import CaseError, ForkServerError
    if listed:
        for mutant in MUTANTS:
            click.echo(f"{mutant.id:26} {mutant.family.value:15} {mutant.expected_level:4} {mutant.description}")
        return
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise click.UsageError(f"--json: {json_file.parent} is not a folder")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that folders are cleared away
    try:
        chosen = known.find(cases) if cases else (*known.workloads(), *known.fixtures())
        mutants = _chosen(words)
        with LiveProgress(Console(stderr=True)) as live:
            if sys.stderr.isatty():
                result = selftest.run(chosen, _live(live), mutants)
            else:
                result = selftest.run(chosen, _plain, mutants, _finished)
    except (known.SelfTestCaseError, CaseError) as error:
        raise click.UsageError(str(error)) from error
    except (EnvironmentNotReady, ForkServerError) as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(int(ExitCode.FAILED)) from error
    if json_file is not None:
        write_text(json_file, json.dumps(result.document(), indent=1) + "\n")
    table.show(result, Console(width=None if sys.stdout.isatty() else 120))
    raise SystemExit(0 if result.passed else BLIND)


def _chosen(words: tuple[str, ...]) -> tuple[Mutant, ...] | None:
    from migrator.harness.mutants import MUTANTS, select

    if not words:
        return None
    try:
        return MUTANTS if "all" in words else select(words)
    except ValueError as error:
        raise click.UsageError(f"--mutants: {error}") from error


def _live(progress: OnProgress) -> Callable[[SelfTestCase], OnProgress]:
    from migrator.harness.runs import Progress

    def for_case(case: SelfTestCase) -> OnProgress:
        return lambda stage: progress(Progress(f"{case.name}: {stage.stage}", stage.done, stage.total))

    return for_case


def _plain(case: SelfTestCase) -> OnProgress:
    return line_per_stage(f"selftest: {case.name}")


def _finished(kills: CaseKills) -> None:
    """A line at the end of a case, so that a log that is cut short says something."""
    missed = sum(outcome.status == "missed" for outcome in kills.outcomes)
    killed = sum(outcome.status == "killed" for outcome in kills.outcomes)
    verdict = f"{kills.unmutated.value}, {killed} killed, {missed} missed"
    click.echo(f"selftest: {kills.case}: {verdict} ({kills.seconds:.0f} s)", err=True)
