"""The report as JUnit XML, one case per level. INCONCLUSIVE is an error: CI systems show a skip as green."""

from __future__ import annotations

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from migrator.harness.report.document import Document, Report


def _case(level: Document, error: Document | None) -> TestCase:
    case = TestCase(level["title"], classname=level["id"], time=level["duration_s"])
    status, summary = level["status"], level["summary"]
    if status == "DIFFERENT":
        case.result = [Failure(summary, "different")]
    elif status == "FAILED":
        case.result = [Error(summary, "failed")]
    elif status == "INCONCLUSIVE":
        case.result = [Error(summary, "inconclusive")]
    elif status in ("NOT_EXERCISED", "NOT_APPLICABLE"):
        case.result = [Skipped(summary)]
    lines = [summary, *level["notes"]]
    if status == "FAILED" and error is not None:
        lines += error["tail"]
    case.system_out = "\n".join(lines)
    return case


def render(report: Report) -> str:
    """The XML text, one suite for the pair of programs."""
    document = report.document
    suite = TestSuite(f"{document['inputs']['original']['path']} against {document['inputs']['migrated']['path']}")
    suite.timestamp = document["started"]
    suite.add_property("verdict", document["verdict"])
    suite.add_property("summary", document["summary"])
    suite.add_property("command", document["command"])
    for level in document["levels"]:
        suite.add_testcase(_case(level, document["error"]))
        for key in ("ratio", "floor", "tolerance"):
            if level[key] is not None:
                suite.add_property(f"{level['id']}.{key}", str(level[key]))
    xml = JUnitXml("tf-migrate verify")
    xml.add_testsuite(suite)
    text = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode("utf-8") if isinstance(text, bytes) else str(text)
