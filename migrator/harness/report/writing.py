"""Writing a report into a folder, reading it back, and the exit code that stands for it."""

from __future__ import annotations

from pathlib import Path

from migrator.harness.protocol.results import Status
from migrator.harness.report import html, json_report, junit
from migrator.harness.report.document import Report

EXIT_CODES = {Status.EQUIVALENT: 0, Status.DIFFERENT: 1, Status.INCONCLUSIVE: 3, Status.FAILED: 4}


def exit_code(report: Report) -> int:
    """0 EQUIVALENT, 1 DIFFERENT, 3 INCONCLUSIVE, 4 FAILED (2 is wrong usage, which leaves no report)."""
    return EXIT_CODES[report.status]


def write(report: Report, folder: Path) -> dict[str, Path]:
    """Writes report.json, report.html and report.xml into `folder` (made if need be) and returns their paths
    by kind.

    Everything is rendered before anything is written, so that a folder never holds half a report.
    """
    texts = {
        "json": ("report.json", json_report.render(report)),
        "html": ("report.html", html.render(report)),
        "junit": ("report.xml", junit.render(report)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for kind, (name, text) in texts.items():
        path = folder / name
        partial = folder / f".{name}.partial"
        partial.write_text(text, "utf-8")
        partial.replace(path)
        paths[kind] = path
    return paths


def load(path: Path) -> Report:
    """The report of a folder or of a report.json. Raises json_report.ReportError if there is none."""
    return json_report.load(path / "report.json" if path.is_dir() else path)
