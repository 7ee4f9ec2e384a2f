"""Baselines: what one verification found, kept in a small file, and what has changed since.

A change that makes things worse needs a reason to be accepted; then the reason, the old and the new are kept in
the report, and the caller replaces the file. What cannot be better or worse (another script, another version) is
named and needs none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from migrator.harness.report.document import Report
from migrator.harness.report.evidence import Document
from migrator.harness.report.json_report import complaint
from migrator.harness.report.numbers import finite

BASELINE_VERSION = 1
_SCHEMA = "baseline.schema.json"
#: From good to bad. A level that passed and is not there any more has become worse, too.
_VERDICTS = ("EQUIVALENT", "INCONCLUSIVE", "DIFFERENT", "FAILED")
_STATUSES = ("EQUIVALENT", "NOT_APPLICABLE", "NOT_EXERCISED", "INCONCLUSIVE", "DIFFERENT", "FAILED")
_ABSENT = "NOT_APPLICABLE"


class BaselineError(ValueError):
    """The file is no baseline; the message says why."""


@dataclass(frozen=True)
class Change:
    """One thing that is not as in the baseline. `counts`: it needs a reason to be accepted."""

    what: str
    before: float | str | None
    after: float | str | None
    counts: bool


def of(report: Report, reason: str | None = None) -> Document:
    """The baseline that this report makes; `reason` says why it replaces another one."""
    document = report.document
    return {
        "baseline_version": BASELINE_VERSION,
        "saved": document["started"],
        "tool": document["tool"]["version"],
        "reason": reason,
        "verdict": document["verdict"],
        "case": {
            "cluster": document["cluster"]["original"],
            "steps": document["inputs"]["steps"],
            "args": document["inputs"]["args"],
        },
        "scripts": {program: document["inputs"][program]["sha256"] for program in ("original", "migrated")},
        "versions": {
            f"{name} of the {program} program": version
            for program in ("original", "migrated")
            for name, version in document["environment"][program].items()
            if version is not None
        },
        "levels": {
            level["id"]: {key: level[key] for key in ("status", "ratio", "tolerance")} for level in document["levels"]
        },
        "initial_sha256": document["data"]["initial_sha256"],
        "random_order": document["data"]["random_order"],
        "data": {f"{task['program']} {task['task']}": task["sha256"] for task in document["data"]["per_task"]},
        "losses": dict(_losses(document)),
        "metrics": dict(_metrics(document)),
    }


def _product(factor: object, floor: object) -> float | None:
    known = finite(factor), finite(floor)
    return None if known[0] is None or known[1] is None else known[0] * known[1]


def _losses(document: Document) -> Iterator[tuple[str, Document]]:
    """The last loss of every trainer of both programs, with what is noise at that step."""
    parts = document["tolerance"]["parts"] if document["tolerance"] else []
    c = next((part["c"] for part in parts if part["part"] == "trajectory"), None)
    floors = {
        (series["trainer"], step): value
        for series in document["series"]
        if series["role"] == "floor"
        for step, value in zip(series["steps"], series["values"], strict=True)
    }
    for series in document["series"]:
        if series["role"] in ("original", "migrated") and series["steps"]:
            step = series["steps"][-1]
            name = f"loss of the {series['program']} program, {series['task']}, step {step}"
            accepted = _product(c, floors.get((series["trainer"], step)))
            yield name, {"value": series["values"][-1], "accepted": accepted}


def _metrics(document: Document) -> Iterator[tuple[str, Document]]:
    sides = {
        "original": "of the original program",
        "same_weights": "of the migrated program on the original's weights",
        "own_weights": "of the migrated program",
    }
    for row in document["evaluations"]:
        place = "" if row["step"] is None else f", step {row['step']}"
        for key, side in sides.items():
            yield f"{row['metric']} {side}{place}", {"value": row[key], "accepted": row["noise"]}


def load(path: Path) -> Document:
    """The baseline in a file. Raises BaselineError."""
    try:
        document: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BaselineError(f"{path} cannot be read: {error}") from None
    found = complaint(document, _SCHEMA)
    if found is not None:
        raise BaselineError(f"{path} is no baseline: {found}")
    assert isinstance(document, dict)
    return document


def save(path: Path, baseline: Document) -> None:
    """Writes the file at once or not at all. Raises OSError."""
    text = json.dumps(baseline, indent=1, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)


def changes(before: Document, after: Document) -> list[Change]:
    """What is not as it was, the changes that count first."""
    found = [
        *_verdict(before, after),
        *_levels(before["levels"], after["levels"]),
        *_case(before["case"], after["case"]),
        *_data(before, after),
        *_values(before, after),
        *_texts("SHA-256 of the {} program", before["scripts"], after["scripts"]),
        *_texts("{}", before["versions"], after["versions"]),
    ]
    return sorted(found, key=lambda change: not change.counts)


def _verdict(before: Document, after: Document) -> Iterator[Change]:
    old, new = before["verdict"], after["verdict"]
    if old != new:
        yield Change("verdict", old, new, _VERDICTS.index(new) > _VERDICTS.index(old))


def _levels(before: Mapping[str, Document], after: Mapping[str, Document]) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        was, now = (None if level is None else str(level["status"]) for level in (old, new))
        if was != now:
            worse = _STATUSES.index(now or _ABSENT) > _STATUSES.index(was or _ABSENT)
            yield Change(f"status of {name}", was, now, worse)
        if old is not None and new is not None and _inside(old) and not _inside(new):
            yield Change(f"ratio of {name} (accepted: {new['tolerance']})", old["ratio"], new["ratio"], True)


def _inside(level: Document) -> bool:
    ratio, tolerance = finite(level["ratio"]), finite(level["tolerance"])
    if level["ratio"] is None or tolerance is None:
        return True
    return ratio is not None and ratio <= tolerance


def _case(before: Document, after: Document) -> Iterator[Change]:
    names = {"cluster": "cluster", "steps": "limit of the steps", "args": "arguments of the scripts"}
    for key, name in names.items():
        if before[key] != after[key]:
            old, new = (value if key != "args" else " ".join(value) for value in (before[key], after[key]))
            yield Change(name, old, new, True)


def _data(before: Document, after: Document) -> Iterator[Change]:
    if before["random_order"] != after["random_order"]:
        words = {False: "the same in every run", True: "another one in every run"}
        yield Change("order of the data", words[before["random_order"]], words[after["random_order"]], True)
    if not before["random_order"] and not after["random_order"]:
        yield from _texts("SHA-256 of the batches of the {}", before["data"], after["data"], counts=True)
    if before["initial_sha256"] != after["initial_sha256"]:
        # Without a seed they are others in every run, which no one has to accept.
        what = "SHA-256 of the original's initial weights (losses and metrics are not compared)"
        yield Change(what, before["initial_sha256"], after["initial_sha256"], False)


def _repeatable(before: Document, after: Document) -> bool:
    """Whether both started from the same weights on the same batches, so that values can be compared."""
    keys = ("case", "data", "initial_sha256")
    return not after["random_order"] and all(before[key] == after[key] for key in keys)


def _values(before: Document, after: Document) -> Iterator[Change]:
    if not _repeatable(before, after):
        return
    for group in ("losses", "metrics"):
        for name in dict.fromkeys([*before[group], *after[group]]):
            old, new = before[group].get(name), after[group].get(name)
            if old is None or new is None:
                yield Change(name, None if old is None else old["value"], None if new is None else new["value"], True)
            elif old["value"] != new["value"]:
                yield from _value(name, old, new)


def _value(name: str, old: Document, new: Document) -> Iterator[Change]:
    """A number that changed: beyond the wider of the two bounds it counts; without a bound it is only named."""
    numbers = finite(old["value"]), finite(new["value"])
    if numbers[0] is None or numbers[1] is None:
        yield Change(name, old["value"], new["value"], True)
        return
    bounds = [bound for side in (old, new) if (bound := finite(side["accepted"])) is not None]
    if not bounds or abs(numbers[0] - numbers[1]) > max(bounds):
        yield Change(name, old["value"], new["value"], bool(bounds))


def _texts(what: str, before: Mapping[str, str], after: Mapping[str, str], *, counts: bool = False) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Change(what.format(name), before.get(name), after.get(name), counts)


def compared(report: Report, path: Path, before: Document, reason: str | None = None) -> Report:
    """The report with what changed since the baseline of that file, and with the reason that accepts it."""
    found = changes(before, of(report))
    accepted = reason is not None and bool(found)
    return Report(
        {
            **report.document,
            "baseline": {
                "file": str(path),
                "saved": before["saved"],
                "verdict": before["verdict"],
                "changes": [asdict(change) for change in found],
                "accepted": accepted,
                "reason": reason if accepted else None,
            },
        }
    )


def regressed(document: Document) -> bool:
    """Whether a change since the baseline counts and no reason was given for it."""
    found = document["baseline"]
    return found is not None and not found["accepted"] and any(change["counts"] for change in found["changes"])
