"""An outcome as JUnit XML: a case for each file, which fails by what stands in the way; programs are counted beside."""

from __future__ import annotations

import re
from collections.abc import Iterable

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from migrator.findings import Severity
from migrator.report.outcome import FileOutcome, Outcome

#: What XML 1.0 cannot hold, not even escaped: a file's name may.
_FORBIDDEN = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(outcome: Outcome) -> str:
    """Returns the XML, with a final newline."""
    suite = TestSuite("tf-migrate")
    for form, number in outcome.programs.items():
        suite.add_property(f"programs.{form}", str(number))
    suite.add_testcases([_case(file, outcome) for file in outcome.files])
    document = JUnitXml("tf-migrate")
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    text = document.tostring()  # type: ignore[no-untyped-call]
    return str(text.decode("utf-8")).rstrip("\n") + "\n"


def _case(file: FileOutcome, outcome: Outcome) -> TestCase:
    case = TestCase(_text(file.path), classname="tf-migrate")
    standing = [one for one in file.findings if one.severity in (Severity.MANUAL, Severity.ERROR)]
    if standing:
        # One result for each case, as its readers count them: the worst finding names it, all are in it.
        worst = next((one for one in standing if one.severity is Severity.ERROR), standing[0])
        more = f" (and {len(standing) - 1} more)" if len(standing) > 1 else ""
        kind = Error if worst.severity is Severity.ERROR else Failure
        result = kind(_text(f"{worst.code} {worst.message}{more}"), worst.code)
        result.text = _lines(map(str, standing))
        case.result = [result]
    elif outcome.check and file.changed and file.path not in outcome.tolerated:
        case.result = [Failure("the file would be migrated", "would-migrate")]
    told = _lines(str(finding) for finding in file.findings if finding.severity is Severity.REVIEW)
    if told:
        case.system_out = told
    return case


def _lines(found: Iterable[str]) -> str:
    return _text("\n".join(found))


def _text(value: str) -> str:
    return _FORBIDDEN.sub("\ufffd", value)
