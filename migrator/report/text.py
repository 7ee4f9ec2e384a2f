"""An outcome as lines of text: coloured on a terminal, plain elsewhere, the same words in both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from migrator.findings import Finding, Severity
from migrator.report.outcome import FileOutcome, Outcome, count, programs_in_words

_STYLES = {
    Severity.MIGRATED: "green",
    Severity.REVIEW: "yellow",
    Severity.MANUAL: "bold red",
    Severity.ERROR: "bold red",
}


def print_text(outcome: Outcome, stream: TextIO, *, quiet: bool = False, verbose: bool = False) -> None:
    """Writes the findings, the files that changed and a summary to ``stream``.

    ``quiet`` leaves what stands in the way only: blocked programs and files that failed. ``verbose`` adds the
    findings on what was carried over.
    """
    findings = [finding for finding in outcome.findings if _is_shown(finding, quiet, verbose)]
    rest = [] if quiet else [*_changes(outcome), programs_in_words(outcome.programs), _summary(outcome)]
    if stream.isatty() and findings:
        _print_coloured(findings, stream)
    else:
        stream.writelines(f"{finding}\n" for finding in findings)
    stream.writelines(f"{line}\n" for line in rest if line)


def _is_shown(finding: Finding, quiet: bool, verbose: bool) -> bool:
    if finding.severity is Severity.MIGRATED:
        return verbose
    return not quiet or finding.severity is not Severity.REVIEW


def _changes(outcome: Outcome) -> Iterator[str]:
    for file in outcome.files:
        known = outcome.check and file.path in outcome.tolerated
        if file.changed and not known and not file.has(Severity.ERROR):
            yield f"{'would migrate' if outcome.dry else 'migrated'} {file.path}"


def _summary(outcome: Outcome) -> str:
    counts = count(outcome.files)
    accepted = sum(bool(file.accepted) and not _stands_out(file) for file in outcome.files)
    parts = [
        (counts["changed"], "would be migrated" if outcome.dry else "migrated"),
        (counts["blocked"], "blocked"),
        (counts["failed"], "failed"),
        (accepted, "accepted"),
        (counts["unchanged"] - accepted, "with nothing to do"),
    ]
    said = [f"{number} {what}" for number, what in parts if number]
    return f"{_files(len(outcome.files))}: {', '.join(said)}." if said else "No Python files or notebooks."


def _stands_out(file: FileOutcome) -> bool:
    return file.changed or file.has(Severity.MANUAL) or file.has(Severity.ERROR)


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _print_coloured(findings: list[Finding], stream: TextIO) -> None:
    # Imported here: rich costs as much as the whole start of the program, and pipes never need it.
    from rich.console import Console
    from rich.style import Style
    from rich.text import Text

    from migrator.report.pages import rule_urls

    urls = rule_urls((finding.code for finding in findings), here=True)
    console = Console(file=stream, soft_wrap=True, highlight=False)
    for finding in findings:
        line = Text(f"{finding.place}: ", style="bold")
        line.append(finding.code, style=Style.parse(_STYLES[finding.severity]) + Style(link=urls.get(finding.code)))
        line.append(f" {finding.message}", style="default")
        console.print(line)
