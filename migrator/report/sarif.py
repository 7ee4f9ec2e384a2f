"""An outcome as SARIF 2.1.0, which code scanning reads."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from migrator import __version__
from migrator.findings import Finding, Severity
from migrator.report.outcome import Outcome
from migrator.report.pages import rule_urls

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.MIGRATED: "none", Severity.REVIEW: "note", Severity.MANUAL: "warning", Severity.ERROR: "error"}


def to_sarif(outcome: Outcome) -> str:
    """Returns one SARIF log with one run, ASCII only, with a final newline."""
    codes = sorted({finding.code for finding in outcome.findings})
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "tf-migrate", "semanticVersion": __version__, "rules": _rules(codes)}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": int(outcome.exit_code) < 2, "exitCode": int(outcome.exit_code)}],
        "properties": {"programs": dict(outcome.programs)},
        "results": _results(outcome, {code: index for index, code in enumerate(codes)}),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rules(codes: list[str]) -> list[dict[str, Any]]:
    from migrator.rules.catalogue import all_rules

    pages = {rule.code: rule for rule in all_rules()}
    urls = rule_urls(codes, here=False)  # a log is read on other machines; the whole page is in it as `help`
    found = []
    for code in codes:
        rule: dict[str, Any] = {"id": code}
        if code in pages:
            page = pages[code]
            rule["shortDescription"] = {"text": page.title}
            rule["help"] = {"text": page.text.strip(), "markdown": page.page()}
            rule["defaultConfiguration"] = {"level": _LEVELS[page.severity]}
        if code in urls:
            rule["helpUri"] = urls[code]
        found.append(rule)
    return found


def _results(outcome: Outcome, indexes: Mapping[str, int]) -> list[dict[str, Any]]:
    seen: Counter[tuple[str, str, str]] = Counter()
    results = []
    for finding in outcome.findings:
        key = finding.path, finding.code, finding.message
        seen[key] += 1
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": indexes[finding.code],
            "level": _LEVELS[finding.severity],
            "message": {"text": finding.message},
            "locations": [_location(finding)],
            "partialFingerprints": {"tfMigrate/v1": _fingerprint(finding, seen[key])},
        }
        if finding.severity is Severity.MIGRATED:
            result["kind"] = "pass"
        results.append(result)
    return results


def _location(finding: Finding) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(finding.path)}
    found: dict[str, Any] = {"physicalLocation": place}
    if finding.cell:
        # Lines of a cell are not lines of the file.
        name = f"cell {finding.cell}, line {finding.line}, column {finding.column}"
        found["logicalLocations"] = [{"name": name, "fullyQualifiedName": finding.place, "kind": "element"}]
    else:
        place["region"] = {"startLine": finding.line, "startColumn": finding.column}
    return found


def _artifact(path: str) -> dict[str, Any]:
    if PurePath(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(PurePath(path).as_posix()), "uriBaseId": "%SRCROOT%"}


def _fingerprint(finding: Finding, number: int) -> str:
    """What stays when a finding moves: its file, code and message, and which of these it is."""
    words = "\0".join((PurePath(finding.path).as_posix(), finding.code, finding.message, str(number)))
    return hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:32]
