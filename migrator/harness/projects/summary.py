"""One page for all programs of a project: a document, and JSON, HTML, JUnit XML and text rendered from it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from junitparser import Attr, Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from rich.console import Console
from rich.table import Table
from rich.text import Text

from migrator.harness.private import make_folder, write_text
from migrator.harness.projects.running import ORDER, SKIPPED, Result, place_of
from migrator.harness.protocol.results import Status
from migrator.harness.report.document import plain
from migrator.harness.report.evidence import Document
from migrator.harness.report.html import ICONS, asset
from migrator.harness.report.json_report import ReportError, complaint
from migrator.harness.report.junit import as_xml
from migrator.harness.report.numbers import exact, seconds
from migrator.harness.report.terminal import STYLES
from migrator.harness.report.texts import clean
from migrator.harness.report.writing import EXIT_CODES

SCHEMA, SCHEMA_VERSION = "project.schema.json", 1
NAMES = {"json": "project.json", "html": "project.html", "junit": "project.xml"}
_LAST, _LAST_SCHEMA = "last.json", "project-last.schema.json"
_ICONS = {**ICONS, SKIPPED: "–"}
#: A program that takes this much longer or less than last time is told of.
_SLOWER = 1.25


def document(
    results: Sequence[Result],
    *,
    root: Path,
    revision: str,
    commit: str | None,
    shard: str | None,
    started: float,
    duration: float,
    last: Mapping[str, Document],
) -> Document:
    """The document on all results, sorted by name; `last` is what `load_last` gave."""
    from migrator import __version__

    programs = [_program(one, last.get(one.program.name), bool(last)) for one in _sorted(results)]
    made: Document = plain(
        {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "tf-migrate", "version": __version__},
            "project": str(root),
            "revision": revision,
            "commit": commit,
            "shard": shard,
            "started": datetime.datetime.fromtimestamp(started, datetime.timezone.utc).isoformat(),
            "duration_s": duration,
            "verdict": worst([one["status"] for one in programs]),
            "counts": {status: sum(one["status"] == status for one in programs) for status in ORDER},
            "last": max((one["started"] for one in last.values()), default=None),
            "programs": programs,
        }
    )
    return made


def worst(statuses: Sequence[str]) -> str:
    """The worst of some verdicts; SKIPPED where there are none."""
    return next((status for status in ORDER if status in statuses), SKIPPED)


def exit_code(made: Document, *, warn_inconclusive: bool = False) -> int:
    """The exit code of the worst verdict; 0 where nothing was to be verified."""
    if made["verdict"] == SKIPPED:
        return 0
    status = Status(made["verdict"])
    return 0 if status is Status.INCONCLUSIVE and warn_inconclusive else EXIT_CODES[status]


def load_last(folder: Path) -> dict[str, Document]:
    """What each program came to when it was verified last, in any run that was written to a folder:
    {name: {"status", "seconds", "started"}}. Empty where nothing can be read.
    """
    try:
        found = json.loads((folder / _LAST).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if complaint(found, _LAST_SCHEMA) is None else {}


def write(made: Document, folder: Path, last: Mapping[str, Document]) -> dict[str, Path]:
    """Writes project.json, project.html and project.xml, and what the next run compares with.

    Returns the paths of the first three by kind. Raises OSError.
    """
    found = complaint(made, SCHEMA)
    if found is not None:
        raise ReportError(found)
    texts = {
        "json": json.dumps(made, indent=1, allow_nan=False) + "\n",
        "html": _html(made),
        "junit": _junit(made),
    }
    make_folder(folder)
    for kind, text in texts.items():
        write_text(folder / NAMES[kind], text)
    ran = [one for one in made["programs"] if one["status"] != SKIPPED]
    now = {one["name"]: {"status": one["status"], "seconds": one["seconds"], "started": made["started"]} for one in ran}
    write_text(folder / _LAST, json.dumps({**last, **now}, indent=1) + "\n")
    return {kind: folder / name for kind, name in NAMES.items()}


def show(made: Document, console: Console, paths: Mapping[str, Path]) -> None:
    """Prints a table of the programs, the verdict of all, and where the page is."""
    if made["programs"]:
        console.print(_table(made))
        console.print()
    console.print(Text(sentence(made), STYLES.get(made["verdict"], "")))
    for kind in ("html", "json", "junit"):
        if kind in paths:
            console.print(Text(f"{kind:<6}{paths[kind]}", "dim"), soft_wrap=True)


def _table(made: Document) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "program", "cluster", "time", "what was found"):
        table.add_column(heading, overflow="fold")
    for one in made["programs"]:
        style = STYLES.get(one["status"], "dim")
        said = " ".join(filter(None, [one["first_difference"] or one["summary"], _bracketed(one["trend"]["said"])]))
        table.add_row(
            Text(f"{_ICONS[one['status']]} {one['status']}", style),
            Text(clean(one["name"])),
            Text(one["cluster"] or "–"),
            Text(seconds(one["seconds"]) if one["seconds"] else "–"),
            Text(clean(said)),
        )
    return table


def sentence(made: Document) -> str:
    """How many programs came out how."""
    told = [f"{count} {status}" for status, count in made["counts"].items() if count]
    part = f" (part {made['shard']})" if made["shard"] else ""
    if not told:
        return (
            f"No program{part} differs from {made['revision']}: nothing to verify. "
            "If the migration is committed, name the revision before it with --base."
        )
    return f"{', '.join(told)}{part}, against {made['revision']}."


def _bracketed(text: str) -> str:
    return f"({text})" if text else ""


def _sorted(results: Sequence[Result]) -> list[Result]:
    return sorted(results, key=lambda one: one.program.name)


def _program(result: Result, before: Document | None, compared: bool) -> Document:
    report = None if result.report is None else result.report.document
    steps = [max(one["steps"], default=0) for one in (report or {}).get("series", []) if one["role"] == "original"]
    return {
        "name": result.program.name,
        "script": result.program.script.as_posix(),
        "module": result.program.module or None,
        "cluster": result.program.settings.cluster if report is None else report["cluster"]["original"],
        "status": result.status,
        "summary": result.summary or "nothing is said",
        "grade": None if report is None else _grade(report),
        "first_difference": None if report is None else _difference(report),
        "steps": max(steps, default=None),
        "seconds": result.seconds,
        "command": None if report is None else report["command"],
        "report": None if report is None else (place_of(result.program) / "report.html").as_posix(),
        "trend": _trend(result, before, compared),
    }


def _grade(report: Document) -> str | None:
    """The strength of a verdict in a line, where the report has one."""
    grade = report.get("grade")
    if isinstance(grade, dict):
        grade = grade.get("line") or grade.get("said")
    return grade if isinstance(grade, str) else None


def _difference(report: Document) -> str | None:
    """The first place at which the programs part, in words."""
    found = report["first_divergence"]
    if found is None:
        return None
    place = f", step {found['step']}" if found["step"] else ""
    task = f", {found['task']}" if found["task"] else ""
    values = (
        f": {exact(found['original'])} against {exact(found['migrated'])}"
        if found["original"] is not None and found["migrated"] is not None
        else ""
    )
    line = found["migrated_source"]
    where = f" ({line['path']}:{line['line']})" if line else ""
    return f"{found['level']} {found['tensor']}{place}{task}{values}{where}"


def _trend(result: Result, before: Document | None, compared: bool) -> Document:
    """What changed since the last run: `change` is new, same, better or worse; empty where nothing can be said."""
    if before is None:
        return {
            "change": "new" if compared else "",
            "was": None,
            "was_seconds": None,
            "said": "new" if compared else "",
        }
    if result.status == SKIPPED:
        return {"change": "", "was": before["status"], "was_seconds": before["seconds"], "said": ""}
    now, then = ORDER.index(result.status), ORDER.index(before["status"])
    change = "same" if now == then else "better" if now > then else "worse"
    told = [] if change == "same" else [f"was {before['status']}"]
    old = before["seconds"]
    if old and result.seconds and not 1 / _SLOWER < result.seconds / old < _SLOWER:
        told.append(f"{seconds(old)} last time")
    return {"change": change, "was": before["status"], "was_seconds": old, "said": ", ".join(told)}


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("migrator.harness.projects", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters.update(seconds=seconds)
    return environment.get_template("project.html.jinja")


def _html(made: Document) -> str:
    (style, style_hash), (script, script_hash) = asset("report.css"), asset("report.js")
    return _template().render(
        r=made,
        icons=_ICONS,
        sentence=sentence(made),
        style=style,
        style_hash=style_hash,
        script=script,
        script_hash=script_hash,
    )


class _Case(TestCase):
    """A test case that names its file, as CI systems read it."""

    file = Attr("file")
    line = Attr("line")


def _junit(made: Document) -> str:
    suite = TestSuite("tf-migrate verify")
    suite.timestamp = made["started"]
    for key in ("project", "revision", "commit", "shard"):
        if made[key] is not None:
            suite.add_property(key, as_xml(made[key]))
    for one in made["programs"]:
        case: Any = _Case(as_xml(one["name"]), classname=as_xml(f"verify.{one['name']}"), time=one["seconds"])
        case.file, case.line = as_xml(one["script"]), "1"
        said = as_xml(one["first_difference"] or one["summary"])
        kind = one["status"].lower()
        results = {"DIFFERENT": Failure, "FAILED": Error, "INCONCLUSIVE": Error, SKIPPED: Skipped}
        if one["status"] in results:
            case.result = [results[one["status"]](said, kind)]
        case.system_out = as_xml(
            "\n".join(filter(None, [one["summary"], one["grade"], one["trend"]["said"], one["command"]]))
        )
        suite.add_testcase(case)
    xml = JUnitXml("tf-migrate verify")
    xml.add_testsuite(suite)
    text = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode("utf-8") if isinstance(text, bytes) else str(text)
