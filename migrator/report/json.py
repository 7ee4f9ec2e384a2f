"""An outcome as JSON."""

from __future__ import annotations

import json
from typing import Any

from migrator import __version__
from migrator.findings import Finding
from migrator.report.outcome import Outcome, count
from migrator.report.pages import rule_urls

FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys may come at any time."""


def to_json(outcome: Outcome) -> str:
    """Returns one JSON object, ASCII only, with a final newline."""
    urls = rule_urls((finding.code for finding in outcome.findings), here=True)
    data: dict[str, Any] = {
        "format": FORMAT,
        "tool": {"name": "tf-migrate", "version": __version__},
        "exit_code": int(outcome.exit_code),
        "dry": outcome.dry,
        "summary": count(outcome.files),
        "programs": dict(outcome.programs),
        "files": [{"path": file.path, "changed": file.changed, "written": file.written} for file in outcome.files],
        "findings": [_finding(finding, urls.get(finding.code)) for finding in outcome.findings],
    }
    return json.dumps(data, indent=2) + "\n"


def _finding(finding: Finding, url: str | None) -> dict[str, Any]:
    return {
        "path": finding.path,
        **({"cell": finding.cell} if finding.cell else {}),
        "line": finding.line,
        "column": finding.column,
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "url": url,
    }
