"""report.json: the document itself, checked against its schema on the way out and on the way in."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema

from migrator.harness.report.document import SCHEMA_VERSION, Report


class ReportError(ValueError):
    """The document does not conform to the schema; the message says where and how."""


@cache
def _validator(schema: str) -> Any:
    text = resources.files(__package__).joinpath(schema).read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def complaint(document: object, schema: str = "schema.json") -> str | None:
    """The first place at which the document breaks the schema, in words; None if it conforms."""
    error = jsonschema.exceptions.best_match(_validator(schema).iter_errors(document))
    if error is None:
        return None
    place = "/".join(str(part) for part in error.absolute_path) or "the document"
    return f"{place}: {error.message}"


def validate(document: object) -> None:
    """Raises ReportError for the first place at which the document breaks the schema."""
    found = complaint(document)
    if found is not None:
        raise ReportError(found)


def render(report: Report) -> str:
    """The text of report.json. Raises ReportError rather than write something that no reader can rely on."""
    validate(report.document)
    return json.dumps(report.document, indent=1, allow_nan=False) + "\n"


def load(path: Path) -> Report:
    """The report in a file. Raises ReportError if it is none, or one of another version of the tool."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from None
    try:
        _check_version(document)
        validate(document)
    except ReportError as error:
        raise ReportError(f"{path} is not a report that can be rendered: {error}") from None
    return Report(document)


def _check_version(document: object) -> None:
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int) or version == SCHEMA_VERSION:
        return
    writer = "an older" if version < SCHEMA_VERSION else "a newer"
    raise ReportError(
        f"it was written by {writer} tf-migrate (schema_version {version}, this one reads {SCHEMA_VERSION}); "
        "run tf-migrate verify again"
    )
