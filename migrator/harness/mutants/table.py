"""The kill table in a terminal: a row for each mutant, a column for each case."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from migrator.harness.mutants.killing import KILLED, MISSED, NOT_APPLICABLE, NOT_EXERCISED, KillTable
from migrator.harness.protocol.results import MutantOutcome


def render(table: KillTable) -> Table:
    """What became of every mutant in every case, with totals by case."""
    shown = Table(show_edge=False, pad_edge=False, header_style="bold")
    shown.add_column("mutant", no_wrap=True)
    shown.add_column("level", no_wrap=True)
    for number, _ in enumerate(table.cases, start=1):
        shown.add_column(str(number), justify="center", no_wrap=True)
    shown.add_row("as it is", "", *(_alarm(kills.false_alarm) for kills in table.cases), end_section=True)
    for mutant in table.mutants:
        cells = [_cell(table.outcome(kills.case, mutant.id)) for kills in table.cases]
        shown.add_row(mutant.id, mutant.expected_level, *cells)
    shown.add_section()
    for status, title in ((KILLED, "killed"), (MISSED, "missed")):
        counts = [sum(outcome.status == status for outcome in kills.outcomes) for kills in table.cases]
        shown.add_row(title, "", *map(str, counts))
    return shown


def _alarm(alarm: bool) -> Text:
    return Text("ALARM", "bold red") if alarm else Text("ok", "green")


def _cell(outcome: MutantOutcome | None) -> Text:
    if outcome is None:
        return Text("")
    if outcome.status == KILLED:
        return Text(outcome.killed_at or "", "green")
    return {
        MISSED: Text("MISSED", "bold red"),
        NOT_EXERCISED: Text("·", "yellow"),
        NOT_APPLICABLE: Text("-", "dim"),
    }[outcome.status]


def show(table: KillTable, console: Console) -> None:
    """Prints the table, what its marks and numbers mean, and whatever was missed."""
    console.print(render(table))
    console.print()
    for number, kills in enumerate(table.cases, start=1):
        console.print(Text(f"{number:2} {kills.case}: {kills.unmutated.value}, {kills.seconds:.0f} s"))
    marks = (
        "ok: EQUIVALENT as it is.",
        "L0 to L8: the level that said DIFFERENT.",
        "·: cannot show in this case.",
        "-: nothing there to make the mistake in.",
    )
    console.print(Text("  ".join(marks), "dim"))
    for kills in table.cases:
        if kills.false_alarm:
            console.print(Text(f"False alarm: {kills.case}: {kills.summary}", "bold red"))
        for outcome in kills.outcomes:
            if outcome.status == MISSED:
                text = f"Missed in {kills.case}: {outcome.description} ({outcome.id}); {outcome.detail}"
                console.print(Text(text, "red"))
    if table.never_killed:
        console.print(Text(f"Never shown by any of these cases: {', '.join(table.never_killed)}", "yellow"))
    totals = f"{table.count(KILLED)} killed, {table.count(MISSED)} missed, {len(table.false_alarms)} false alarm(s)"
    console.print(Text(totals, "bold green" if table.passed else "bold red"))
