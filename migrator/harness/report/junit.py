"""The report as JUnit XML, one case per level. INCONCLUSIVE is an error: CI systems show a skip as green."""

from __future__ import annotations

import re

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from migrator.harness.report.document import Report
from migrator.harness.report.evidence import Document

#: What XML 1.0 cannot hold, not even escaped: programs print such characters.
_FORBIDDEN = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_xml(value: object) -> str:
    """The text of a value without what XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", str(value))


def _case(level: Document, pair: str, error: Document | None) -> TestCase:
    case = TestCase(as_xml(level["title"]), classname=f"{pair}.{level['id']}", time=level["duration_s"])
    known = [line for found in level["differences"] if (line := found["migrated_source"]) is not None]
    if known:
        case._elem.set("file", as_xml(known[0]["path"]))
        case._elem.set("line", str(known[0]["line"]))
    status, summary = level["status"], as_xml(level["summary"])
    if status == "DIFFERENT":
        case.result = [Failure(summary, "different")]
    elif status == "FAILED":
        case.result = [Error(summary, "failed")]
    elif status == "INCONCLUSIVE":
        case.result = [Error(summary, "inconclusive")]
    elif status in ("NOT_EXERCISED", "NOT_APPLICABLE"):
        reason = level["reason_code"] or status.lower()
        case.result = [Skipped(summary, reason)]
    lines = [level["summary"], *level["notes"]]
    if level["excluded"]:
        lines.append(f"ruled out: {level['excluded']}")
    if status == "FAILED" and error is not None:
        lines += error["tail"]
    case.system_out = as_xml("\n".join(lines))
    return case


def _baseline_case(baseline: Document, pair: str) -> TestCase:
    case = TestCase("Same as the baseline", classname=f"{pair}.baseline")
    lines = [f"{c['what']}: {c['before']} -> {c['after']}" for c in baseline["changes"]]
    counting = sum(c["counts"] for c in baseline["changes"])
    if counting and not baseline["accepted"]:
        case.result = [Failure(f"{counting} changes since {as_xml(baseline['file'])}", "baseline")]
    if baseline["accepted"]:
        lines.append(f"accepted: {baseline['reason']}")
    case.system_out = as_xml("\n".join(lines))
    return case


def _properties(document: Document) -> list[tuple[str, object]]:
    named = [(key, document[key]) for key in ("verdict", "reason", "headline", "summary", "command")]
    if document["grade"] is not None:
        named.append(("grade", document["grade"]["said"]))
    for level in document["levels"]:
        named += [(f"{level['id']}.{key}", level[key]) for key in ("ratio", "floor", "tolerance")]
        if level["control"] is not None:
            named.append((f"{level['id']}.control", level["control"]["ratio"]))
    if document["asynchronous"] is not None:
        named += [(f"L6.{key}", document["asynchronous"][key]) for key in ("k", "estimate", "margin")]
    if document["mutants"]:
        for status in ("killed", "missed"):
            named.append((f"mutants.{status}", sum(x["status"] == status for x in document["mutants"])))
    return [(name, value) for name, value in named if value is not None]


def render(report: Report) -> str:
    """The XML text, one suite for the pair of programs."""
    document = report.document
    paths = [as_xml(document["inputs"][program]["path"]) for program in ("original", "migrated")]
    suite = TestSuite(f"{paths[0]} against {paths[1]}")
    suite.timestamp = document["started"]
    for name, value in _properties(document):
        suite.add_property(name, as_xml(value))
    # Several reports of one CI run are shown together: a level is that of this pair.
    pair = as_xml(".".join(document["inputs"]["migrated"]["path"].rpartition(".py")[0].strip("/").split("/")))
    for level in document["levels"]:
        suite.add_testcase(_case(level, pair, document["error"]))
    if document["baseline"] is not None:
        suite.add_testcase(_baseline_case(document["baseline"], pair))
    xml = JUnitXml("tf-migrate verify")
    xml.add_testsuite(suite)
    # The levels only judge: most of the time went into the runs before them.
    for part in (suite, xml):
        part.time = document["duration_s"]
    text = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode("utf-8") if isinstance(text, bytes) else str(text)
