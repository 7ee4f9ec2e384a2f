"""report.json: the document itself, checked against its schema on the way out and on the way in."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema

from migrator.harness.report.document import Report


class ReportError(ValueError):
    """The document does not conform to the schema; the message says where and how."""


@cache
def _validator() -> Any:
    schema = json.loads(resources.files(__package__).joinpath("schema.json").read_text("utf-8"))
    return jsonschema.Draft202012Validator(schema)


def validate(document: object) -> None:
    """Raises ReportError for the first place at which the document breaks the schema."""
    error = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "the document"
        raise ReportError(f"{place}: {error.message}")


def render(report: Report) -> str:
    """The text of report.json. Raises ReportError rather than write something that no reader can rely on."""
    validate(report.document)
    return json.dumps(report.document, indent=1, allow_nan=False) + "\n"


def load(path: Path) -> Report:
    """The report in a file. Raises ReportError if it is none."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from None
    validate(document)
    return Report(document)
