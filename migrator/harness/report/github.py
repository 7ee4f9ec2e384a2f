"""The report for GitHub Actions: annotations at lines of the migrated program, and a summary of the step.

GitHub shows at most ten annotations of a kind for each step, so the nine worst places are sent, and one line that
says the verdict and how many more there are.
"""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from migrator.harness.report.baseline import regressed
from migrator.harness.report.document import Report
from migrator.harness.report.evidence import Document
from migrator.harness.report.html import ICONS, mutant_sentence
from migrator.harness.report.numbers import exact, finite, number
from migrator.harness.report.texts import clean, relative, short

WORST = 9
#: GitHub refuses a longer summary of a step, in bytes.
SUMMARY_LIMIT = 1024 * 1024
_CUT = "\n\n… cut here: GitHub takes no longer summary.\n"
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_SPECIAL = re.compile(r"[!-'*:<>?@\[-`{-~]")


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether this runs in GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def workflow_command(kind: str, message: str, **properties: object) -> str:
    """One line that GitHub reads as an order, with everything escaped that would end a field."""

    def escaped(value: object) -> str:
        return clean(str(value)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    def field(value: object) -> str:
        return escaped(value).replace(":", "%3A").replace(",", "%2C")

    fields = ",".join(f"{key}={field(value)}" for key, value in properties.items() if value is not None)
    return f"::{kind}{' ' if fields else ''}{fields}::{escaped(message)}"


def _differences(document: Document) -> list[tuple[str, int, Document]]:
    """The worst difference at each line of the migrated program that is to blame for one: level, how many, which."""
    by_line: dict[tuple[str, int], list[tuple[str, Document]]] = {}
    for level in document["levels"]:
        if level["status"] != "DIFFERENT":
            continue
        for difference in level["differences"]:
            line = difference["migrated_source"]
            if line is not None:
                by_line.setdefault((line["path"], line["line"]), []).append((level["id"], difference))
    worst = [(*max(found, key=lambda item: _size(item[1])), len(found)) for found in by_line.values()]
    return [(level, count, item) for level, item, count in sorted(worst, key=lambda item: -_size(item[1]))]


def _size(difference: Document) -> float:
    """How bad a difference is: a wrong setting, or a number that is none, is worse than any ratio."""
    ratio = finite(difference["ratio"])
    return math.inf if ratio is None else ratio


def _said(difference: Document, count: int) -> str:
    text = f"{difference['tensor']}: {exact(difference['original'])} in the original, "
    text += f"{exact(difference['migrated'])} here"
    if difference["ratio"] is not None:
        text += f" ({number(difference['ratio'])} noise floors)"
    if difference["causes"]:
        text += f"\nLook at: {difference['causes'][0]}"
    return text + (f"\n{count - 1} more of this line" if count > 1 else "")


def _failed_at(document: Document) -> tuple[str, int] | None:
    """The innermost line of the failed script itself in the traceback that it left."""
    error = document["error"]
    if error is None:
        return None
    script = document["inputs"][error["program"]]["path"]
    frames = [match for line in error["tail"] for match in _FRAME.findall(line)]
    lines = [int(line) for path, line in frames if os.path.realpath(path) == os.path.realpath(script)]
    return (script, lines[-1]) if lines else None


def commands(report: Report, workspace: Path, *, warn_inconclusive: bool = False) -> list[str]:
    """The workflow commands, at most ten. Files outside the workspace are named in the text only."""
    document = report.document
    verdict = document["verdict"]
    bad = verdict != "EQUIVALENT" or regressed(document)
    warn = verdict == "INCONCLUSIVE" and warn_inconclusive and not regressed(document)
    kind = "warning" if warn else "error" if bad else "notice"
    found = _differences(document)
    lines = []
    for level, count, difference in found[:WORST]:
        place = difference["migrated_source"]
        file = relative(place["path"], workspace)
        title = f"tf-migrate {level}: DIFFERENT"
        said = _said(difference, count)
        if file is None:
            lines.append(workflow_command(kind, f"{place['path']}:{place['line']}: {said}", title=title))
        else:
            lines.append(workflow_command(kind, said, file=file, line=place["line"], title=title))
    more = f" ({len(found) - WORST} more places)" if len(found) > WORST else ""
    at = _failed_at(document)
    file = None if at is None else relative(at[0], workspace)
    message = document["summary"] + more
    if regressed(document):
        message += f"\nChanged since the baseline {document['baseline']['file']}"
    title = f"tf-migrate: {verdict}"
    line = at[1] if at is not None and file is not None else None
    return [*lines, workflow_command(kind, message, file=file, line=line, title=title)]


def _md(value: object) -> str:
    """Text that Markdown takes literally, on one line."""
    flat = " ".join(clean(str(value)).split())
    return _SPECIAL.sub(lambda match: f"&#{ord(match.group())};", flat)


def _pre(text: str) -> str:
    return f"<pre>{html.escape(clean(text))}</pre>"


def _level_rows(document: Document) -> Iterator[str]:
    yield "| Level | | Ratio | Accepted | Found |"
    yield "|---|---|---:|---:|---|"
    for level in document["levels"]:
        state = f"{ICONS[level['status']]} {level['status'].replace('_', ' ')}"
        cells = (f"{level['id']} {level['title']}", state, number(level["ratio"]), number(level["tolerance"]))
        yield "| " + " | ".join(map(_md, (*cells, level["summary"]))) + " |"


def _divergence_lines(first: Document) -> Iterator[str]:
    index = f"[{', '.join(map(str, first['index']))}]" if first["index"] else ""
    step = f", step {first['step']}" if first["step"] else ""
    yield f"### Where they part first\n\n{_md(first['tensor'] + index + step)}: "
    yield f"{_md(exact(first['original']))} against {_md(exact(first['migrated']))}\n"
    for program in ("original", "migrated"):
        line = first[f"{program}_source"]
        if line is not None:
            yield _pre(f"{line['path']}:{line['line']}  {line['text'].strip()}") + "\n"
    yield from (f"1. {_md(cause)}" for cause in first["causes"])


def _blocks(document: Document) -> Iterator[str]:
    verdict = document["verdict"]
    yield f"## {ICONS[verdict]} {verdict}\n\n{_md(document['headline'])}."
    yield _pre(document["command"])
    if document["remedy"] is not None:
        remedy = document["remedy"]
        yield f"### What would settle it\n\n{_md(remedy['found'])}\n\nRuled out: {_md(remedy['ruled_out'])}"
        if remedy["command"] is not None:
            yield _pre(remedy["command"])
    if document["error"] is not None:
        yield f"### What failed\n\n{_md(document['error']['task'])}: {_md(document['error']['message'])}"
        yield _pre("\n".join(document["error"]["tail"]))
    if document["first_divergence"] is not None:
        yield "\n".join(_divergence_lines(document["first_divergence"]))
    if document["baseline"] is not None and document["baseline"]["changes"]:
        rows = [
            f"| {_md(c['what'])} | {_md(short(exact(c['before'])))} | {_md(short(exact(c['after'])))} |"
            for c in document["baseline"]["changes"]
        ]
        reason = document["baseline"]["reason"]
        head = "accepted: " + _md(reason) if reason else "not accepted" if regressed(document) else "no reason needed"
        yield "\n".join([f"### Since the baseline ({head})\n", "| What | Before | Now |", "|---|---|---|", *rows])
    yield "\n".join(_level_rows(document))
    if document["mutants"]:
        yield _md(mutant_sentence(document["mutants"]))
    yield "### What was not shown\n\n" + "\n".join(f"- {_md(line)}" for line in document["not_shown"])


def summary(report: Report, limit: int = SUMMARY_LIMIT) -> str:
    """The summary of the step in Markdown, of at most `limit` bytes."""
    text = "\n\n".join(_blocks(report.document)) + "\n"
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    room = limit - len(_CUT.encode("utf-8"))
    return data[:room].decode("utf-8", "ignore") + _CUT if room > 0 else ""


def publish(
    report: Report,
    environment: Mapping[str, str],
    say: Callable[[str], object],
    *,
    warn_inconclusive: bool = False,
) -> None:
    """Says the annotations and appends the summary to the file that GitHub names, as far as it has room."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or Path.cwd())
    for line in commands(report, workspace, warn_inconclusive=warn_inconclusive):
        say(line)
    name = environment.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    path = Path(name)
    try:
        used = path.stat().st_size if path.exists() else 0
        with path.open("a", encoding="utf-8") as file:
            file.write(summary(report, SUMMARY_LIMIT - used))
    except OSError as error:
        say(workflow_command("warning", f"the summary of the step cannot be written: {error}", title="tf-migrate"))
