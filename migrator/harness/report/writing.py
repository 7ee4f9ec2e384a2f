"""Writing a report into a folder, reading it back, and the exit code that stands for it."""

from __future__ import annotations

from pathlib import Path

from migrator.harness.private import make_folder, write_text
from migrator.harness.protocol.results import Status
from migrator.harness.report import html, json_report, junit
from migrator.harness.report.baseline import regressed
from migrator.harness.report.document import Report

EXIT_CODES = {Status.EQUIVALENT: 0, Status.DIFFERENT: 1, Status.INCONCLUSIVE: 3, Status.FAILED: 4}
_NAMES = {"json": "report.json", "html": "report.html", "junit": "report.xml"}


def exit_code(report: Report, *, warn_inconclusive: bool = False) -> int:
    """0 EQUIVALENT, 1 DIFFERENT or worse than the baseline, 3 INCONCLUSIVE (0 if that is only to be warned of),
    4 FAILED (2 is wrong usage, which leaves no report).
    """
    code = EXIT_CODES[report.status]
    if report.status is Status.INCONCLUSIVE and warn_inconclusive:
        code = 0
    return 1 if code == 0 and regressed(report.document) else code


def write(report: Report, folder: Path) -> dict[str, Path]:
    """Writes report.json, report.html and report.xml into `folder` (made if need be) and returns their paths
    by kind. What is new is its owner's alone.

    Everything is rendered before anything is written, so that a folder never holds half a report. Raises OSError.
    """
    texts = {"json": json_report.render(report), "html": html.render(report), "junit": junit.render(report)}
    make_folder(folder)
    paths = {}
    for kind, text in texts.items():
        path = folder / _NAMES[kind]
        write_text(path, text)
        paths[kind] = path
    return paths


def load(path: Path) -> Report:
    """The report of a folder or of a report.json. Raises json_report.ReportError if there is none."""
    return json_report.load(path / _NAMES["json"] if path.is_dir() else path)
