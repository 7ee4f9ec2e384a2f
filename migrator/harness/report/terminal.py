"""The report on a terminal: what is running now, then the ladder, the verdict and where the files are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from migrator.harness.report.document import Report
from migrator.harness.report.html import ICONS, number

STYLES = {
    "EQUIVALENT": "bold green",
    "DIFFERENT": "bold red",
    "INCONCLUSIVE": "bold yellow",
    "FAILED": "bold magenta",
    "NOT_EXERCISED": "dim",
    "NOT_APPLICABLE": "dim",
}
_STAGES = {
    "interpreters": "starting both TensorFlow versions",
    "original": "running the original",
    "replicates": "measuring its noise floor",
    "migrated": "running the migrated program",
}
_CELLS = 20


class Stage(Protocol):
    """Where a session is; what session.verify passes to its progress callback."""

    @property
    def stage(self) -> str:
        """A key of the stages."""

    @property
    def done(self) -> int:
        """Runs that are over."""

    @property
    def total(self) -> int:
        """Runs that the stage has."""


class LiveProgress:
    """Shows the stages of a session while the `with` block lasts, if `console` is a terminal; else stays
    silent.

    Call it with each progress value, from any thread.
    """

    def __init__(self, console: Console) -> None:
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> LiveProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, stage: Stage) -> None:
        """Show that `stage.done` of `stage.total` runs of the stage are over."""
        if stage.stage not in self._tasks:
            label = _STAGES.get(stage.stage, stage.stage)
            self._tasks[stage.stage] = self._bars.add_task(label, total=stage.total)
        self._bars.update(self._tasks[stage.stage], completed=stage.done, total=stage.total)


def _finite(value: Any) -> float | None:
    if value == "Infinity":
        return 1e6
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _bar(level: Mapping[str, Any]) -> Text:
    """The ratio to the floor on a logarithmic bar; | is what is accepted, ◆ the known-bad control."""

    def cell(value: float) -> int:
        share = (math.log10(min(max(value, 1e-2), 1e6)) + 2) / 8
        return min(_CELLS - 1, int(share * _CELLS))

    ratio = _finite(level["ratio"])
    if ratio is None:
        return Text("")
    cells = ["━"] * (cell(ratio) + 1) if ratio > 0 else []
    cells += ["·"] * (_CELLS - len(cells))
    marks = [(_finite(level["tolerance"]), "|")]
    if level["control"] is not None:
        marks.append((_finite(level["control"]["ratio"]), "◆"))
    for value, mark in marks:
        if value is not None:
            cells[cell(value)] = mark
    return Text("".join(cells))


def ladder(report: Report) -> Table:
    """The levels as a table: verdict, ratio to the floor, what each one found."""
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    table.add_column("")
    table.add_column("level", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("floor · accepted | control ◆", no_wrap=True)
    table.add_column("found", ratio=1)
    for level in report.document["levels"]:
        style = STYLES[level["status"]]
        table.add_row(
            Text(level["id"], "bold"),
            Text(f"{ICONS[level['status']]} {level['status'].replace('_', ' ')}", style),
            number(level["ratio"], 2) if level["ratio"] is not None else "",
            _bar(level),
            Text(level["summary"]),
        )
    return table


def show(report: Report, console: Console, paths: Mapping[str, Path] | None = None) -> None:
    """Prints the ladder, what failed or first differs, the verdict and the paths of the report."""
    document = report.document
    console.print(ladder(report))
    console.print()
    error = document["error"]
    if error is not None:
        console.print(Text(f"last lines of {error['task']} ({error['run']}):", "bold"))
        for line in error["tail"]:
            console.print(Text(f"  {line}", "dim"))
        console.print()
    first = document["first_divergence"]
    if first is not None:
        place = "".join(
            [
                f"[{', '.join(map(str, first['index']))}]" if first["index"] else "",
                f", step {first['step']}" if first["step"] else "",
                f", {first['task']}" if first["task"] else "",
            ]
        )
        console.print(
            Text(f"{first['tensor']}{place}: {number(first['original'], 9)} against {number(first['migrated'], 9)}")
        )
        for cause in first["causes"]:
            console.print(Text(f"  look at: {cause}", "dim"))
        console.print()
    icon = ICONS[document["verdict"]]
    console.print(
        Text.assemble((f"{icon} {document['verdict']}", STYLES[document["verdict"]]), ": ", document["summary"], ".")
    )
    if document["verdict"] == "EQUIVALENT":
        for line in document["not_shown"]:
            console.print(Text(f"Not shown: {line}.", "dim"))
    for kind in ("html", "json", "junit"):
        if paths is not None and kind in paths:
            console.print(Text(f"{kind:>6}  {paths[kind]}"), soft_wrap=True)
