"""The report on a terminal: what is running now, then the ladder, the verdict and where the files are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from migrator.harness.report import charts
from migrator.harness.report.baseline import regressed
from migrator.harness.report.document import Report
from migrator.harness.report.evidence import Document
from migrator.harness.report.html import ICONS, mutant_sentence
from migrator.harness.report.numbers import exact, finite, number
from migrator.harness.report.texts import clean, short, shown

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
    "order": "running the original's trainers in a fixed order",
    "migrated in order": "running the migrated trainers in that order",
    "seeds": "running the free cluster over paired seeds",
}
#: Columns of a terminal below which the bars are shorter, and how many cells they have then and else.
_NARROW, _FEW_CELLS, _CELLS = 100, 12, 20
_MOST_CHANGES = 10
#: Cells of a curve of losses, at least and at most, what stands beside it, and the trainers that have one.
_LEAST_CURVE, _MOST_CURVE, _BESIDE_CURVE, _MOST_TRAINERS = 20, 160, 44, 4
_HEIGHTS = "▁▂▃▄▅▆▇█"
_MOST_WRITES = 6


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


def _line(text: str, style: str = "") -> Text:
    """A line of the report, without orders to the terminal that a program may have put into it."""
    return Text(clean(text), style)


def _bar(level: Document, count: int) -> Text:
    """The ratio to the floor on a logarithmic bar; | is what is accepted, ◆ the known-bad control."""

    def cell(place: float) -> int:
        return min(count - 1, int(place / 100 * count))

    at = charts.bar(level["ratio"])
    if at is None:
        return Text("")
    cells = ["━"] * (cell(at) + 1) if level["ratio"] else []
    cells += ["·"] * (count - len(cells))
    marks = [(charts.bar(level["tolerance"]), "|")]
    if level["control"] is not None:
        marks.append((charts.bar(level["control"]["ratio"]), "◆"))
    for place, mark in marks:
        if place is not None:
            cells[cell(place)] = mark
    return Text("".join(cells))


def ladder(report: Report, width: int = 120) -> Table:
    """The levels as a table: verdict, ratio to the floor, what each one found. `width` is that of the terminal."""
    count = _FEW_CELLS if width < _NARROW else _CELLS
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    table.add_column("")
    table.add_column("level", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("floors |ok ◆bad" if count < _CELLS else "floors, | ok, ◆ bad", no_wrap=True)
    table.add_column("found", ratio=1)
    for level in report.document["levels"]:
        style = STYLES[level["status"]]
        table.add_row(
            Text(level["id"], "bold"),
            Text(f"{ICONS[level['status']]} {level['status'].replace('_', ' ')}", style),
            number(level["ratio"], 2) if level["ratio"] is not None else "",
            _bar(level, count),
            _line(level["summary"]),
        )
    return table


def curve(values: Sequence[float], low: float, high: float, cells: int) -> str:
    """The values as a line of bars between `low` and `high`, the mean of several where there are more than cells; a
    space where there is no number.
    """
    bars = []
    for cell in range(min(cells, len(values))):
        first, end = (place * len(values) // min(cells, len(values)) for place in (cell, cell + 1))
        known = [value for value in values[first:end] if math.isfinite(value)]
        if not known:
            bars.append(" ")
            continue
        share = (sum(known) / len(known) - low) / (high - low) if high > low else 0.0
        bars.append(_HEIGHTS[min(len(_HEIGHTS) - 1, max(0, int(share * len(_HEIGHTS))))])
    return "".join(bars)


def _losses(document: Document, width: int) -> Iterator[Text]:
    """The losses of both programs, trainer by trainer, one line under the other."""
    series = [one for one in document["series"] if one["role"] in ("original", "migrated")]
    trainers = sorted({one["trainer"] for one in series})
    cells = max(_LEAST_CURVE, min(_MOST_CURVE, width - _BESIDE_CURVE))
    for trainer in trainers[:_MOST_TRAINERS]:
        both = [one for one in series if one["trainer"] == trainer]
        values = [[finite(value) for value in one["values"]] for one in both]
        known = [value for of_one in values for value in of_one if value is not None]
        for one, of_one in zip(both, values, strict=True):
            if not of_one or not known:
                continue
            line = curve([math.nan if x is None else x for x in of_one], min(known), max(known), cells)
            ends = f"{number(one['values'][0]):>9} ", f" {number(one['values'][-1])}"
            where = f" {one['task']}" if len(trainers) > 1 else ""
            yield _line(f"{one['role'] + where:>{20 if where else 8}}{ends[0]}{line}{ends[1]}")
    if len(trainers) > _MOST_TRAINERS:
        yield _line(f"and {len(trainers) - _MOST_TRAINERS} more trainers, in report.html", "dim")


def _failure(error: Document) -> Iterator[Text]:
    yield _line(f"last lines of {error['task']} ({error['run']}):", "bold")
    for line in error["tail"]:
        yield _line(f"  {line}", "dim")


def _divergence(first: Document) -> Iterator[Text]:
    place = "".join(
        [
            f"[{', '.join(map(str, first['index']))}]" if first["index"] else "",
            f", step {first['step']}" if first["step"] else "",
            f", {first['task']}" if first["task"] else "",
        ]
    )
    original, migrated = (exact(first[program]) for program in ("original", "migrated"))
    yield _line(f"{first['tensor']}{place}: {original} against {migrated}")
    for program in ("original", "migrated"):
        line = first[f"{program}_source"]
        if line is not None:
            where = f"{shown(line['path'])}:{line['line']}"
            yield Text.assemble(f"  {program:>8}  ", (clean(where), "bold"))
            yield _line(f"            {line['text'].strip()}")
    for cause in first["causes"]:
        yield _line(f"  look at: {cause}", "dim")


def _baseline(document: Document) -> Iterator[Text]:
    found = document["baseline"]
    if regressed(document):
        yield _line(f"Changed since the baseline {found['file']}:", "bold red")
    elif found["accepted"]:
        yield _line(f"Changed since the baseline {found['file']}, accepted: {found['reason']}", "bold")
    else:
        yield _line(f"As the baseline {found['file']} says.", "dim")
    for change in found["changes"][:_MOST_CHANGES]:
        before, after = (short(exact(change[side])) for side in ("before", "after"))
        line = f"  {change['what']}: {before} → {after}"
        yield _line(line, "" if change["counts"] else "dim")
    if len(found["changes"]) > _MOST_CHANGES:
        yield _line(f"  and {len(found['changes']) - _MOST_CHANGES} more", "dim")


def _mutants(mutants: list[Document]) -> Iterator[Text]:
    yield _line(mutant_sentence(mutants))
    for mutant in mutants:
        if mutant["status"] == "missed":
            yield _line(f"  missed: {mutant['description']} ({mutant['id']})", "yellow")


def _remedy(remedy: Document) -> Iterator[Text]:
    yield _line(f"Found: {remedy['found']}")
    yield _line(f"Ruled out: {remedy['ruled_out']}")
    if remedy["command"] is not None:
        yield _line("To settle it:")


def show(report: Report, console: Console, paths: Mapping[str, Path] | None = None) -> None:
    """Prints the verdict, the losses, the ladder, what failed or first differs, what settles it, and the report's
    paths.
    """
    document = report.document
    icon, style = ICONS[document["verdict"]], STYLES[document["verdict"]]
    console.print(Text.assemble((f"{icon} {document['verdict']}", style), ": ", clean(document["headline"]), "."))
    for line in _losses(document, console.width):
        console.print(line, soft_wrap=True)
    if document["grade"] is not None and document["verdict"] != "FAILED":
        console.print(_line(f"Grade: {document['grade']['said']}."))
    console.print()
    console.print(ladder(report, console.width))
    parts: list[Iterator[Text]] = []
    if document["error"] is not None:
        parts.append(_failure(document["error"]))
    if document["first_divergence"] is not None:
        parts.append(_divergence(document["first_divergence"]))
    if document["baseline"] is not None:
        parts.append(_baseline(document))
    if document["mutants"]:
        parts.append(_mutants(document["mutants"]))
    for part in parts:
        console.print()
        for line in part:
            console.print(line)
    console.print()
    if document["headline"] != document["summary"]:
        console.print(_line(f"{document['summary'][:1].upper()}{document['summary'][1:]}."))
    written = document["writes"]
    for one in written[:_MOST_WRITES]:
        console.print(_line(f"Kept out of your folders: {one['said']}.", "yellow"), soft_wrap=True)
    if len(written) > _MOST_WRITES:
        console.print(_line(f"And {len(written) - _MOST_WRITES} more, in report.json.", "yellow"))
    for one in document["stand_in"]:
        console.print(_line(f"Stand-in: {one['said']}.", "yellow"))
    if document["remedy"] is not None:
        for line in _remedy(document["remedy"]):
            console.print(line)
        if document["remedy"]["command"] is not None:
            # Not wrapped, so that it can be copied in one piece.
            console.print(_line(f"  {document['remedy']['command']}", "bold"), soft_wrap=True)
    if document["verdict"] == "EQUIVALENT":
        for text in document["not_shown"]:
            console.print(_line(f"Not shown: {text}.", "dim"))
    for kind in ("html", "json", "junit"):
        if paths is not None and kind in paths:
            console.print(_line(f"{kind:>6}  {paths[kind]}"), soft_wrap=True)
