"""Findings of notebooks: by the cell, and the line of it, in the place of a line of all code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from migrator.findings import Finding
from migrator.report.outcome import Outcome
from migrator.source.notebooks import Notebook

_LINES = re.compile(r"\blines? (\d+(?:(?:, | and )\d+)*)(?! more)\b")


def in_cells(outcome: Outcome, notebooks: Mapping[str, Notebook]) -> Outcome:
    """The outcome with the places in notebooks, by the paths that findings name, as a user sees them."""
    if not notebooks:
        return outcome
    files = []
    for file in outcome.files:
        found = (_in_cells(finding, notebooks) for finding in file.findings)
        files.append(replace(file, findings=tuple(sorted(found))))
    return replace(outcome, files=tuple(files))


def _in_cells(finding: Finding, notebooks: Mapping[str, Notebook]) -> Finding:
    message = finding.message
    for path, notebook in notebooks.items():
        if path in message:
            message = _with_places(message, path, notebook)
    own = notebooks.get(finding.path)
    if own is None or finding.cell:
        return replace(finding, message=message)
    message = _LINES.sub(lambda match: re.sub(r"\d+", lambda line: _shown(own, line[0]), match[1]), message)
    cell, line = own.place(finding.line)
    return replace(finding, cell=cell, line=line, message=message)


def _with_places(message: str, path: str, notebook: Notebook) -> str:
    return re.sub(
        rf"(?<![\w/.-]){re.escape(path)}:(\d+)", lambda match: f"{path}:{_shown(notebook, match[1])}", message
    )


def _shown(notebook: Notebook, line: str) -> str:
    cell, line_of_cell = notebook.place(int(line))
    return f"cell {cell}:{line_of_cell}"
