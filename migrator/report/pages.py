"""Where the page of a rule is found on the web."""

from __future__ import annotations

import os

VARIABLE = "TF_MIGRATE_DOCS"


def rule_url(code: str) -> str | None:
    """The address of a rule's page; None where the variable TF_MIGRATE_DOCS does not say where the documentation is."""
    base = os.environ.get(VARIABLE, "").strip()
    return f"{base.rstrip('/')}/rules/{code}.html" if base.startswith(("https://", "http://")) else None
