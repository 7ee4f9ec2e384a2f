"""An outcome as commands of GitHub workflows, which show findings beside the lines of a pull request."""

from __future__ import annotations

from migrator.findings import Finding, Severity
from migrator.report.outcome import Outcome, programs_in_words
from migrator.report.pages import rule_urls

_COMMANDS = {Severity.REVIEW: "notice", Severity.MANUAL: "warning", Severity.ERROR: "error"}


def to_github(outcome: Outcome) -> str:
    """Returns a line for each finding that is not about what was carried over, and one that counts the programs."""
    shown = [finding for finding in outcome.findings if finding.severity in _COMMANDS]
    urls = rule_urls((finding.code for finding in shown), here=False)
    lines = [_command(finding, urls.get(finding.code)) for finding in shown]
    programs = programs_in_words(outcome.programs)
    if programs:
        lines.append(f"::notice title=tf-migrate::{_data(programs)}")
    return "".join(f"{line}\n" for line in lines)


def _command(finding: Finding, url: str | None) -> str:
    # Lines of a cell are not lines of the file.
    place = "" if finding.cell else f",line={finding.line},col={finding.column}"
    title = _property(f"tf-migrate {finding.code}")
    message = f"cell {finding.cell}, line {finding.line}: {finding.message}" if finding.cell else finding.message
    message += f" ({url})" if url is not None else ""
    return f"::{_COMMANDS[finding.severity]} file={_property(finding.path)}{place},title={title}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
