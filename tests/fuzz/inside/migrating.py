"""Migrates programs with the tool that PYTHONPATH names: a list of programs as JSON in, what became of each out.

A program is a dictionary of files by name. Each is migrated as a project of its own, in the style that the first
argument names; a second one, `bridge`, says that it may become a bridge where that is blocked.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode


def migrated(texts: dict[str, str], options: Options) -> dict[str, Any]:
    """What the command would make of the program: its texts and the codes of its findings."""
    sources = [decode(Path(name), text.encode()) for name, text in texts.items()]
    assert all(isinstance(source, Source) for source in sources)
    try:
        results = migrate(sources, options)  # type: ignore[arg-type]
    except Exception:
        return {"texts": texts, "codes": [], "refusals": [], "failure": traceback.format_exc()}
    found = [finding for result in results for finding in result.findings]
    blocking = [f for f in found if f.severity in (Severity.MANUAL, Severity.ERROR)]
    return {
        "texts": {str(result.source.path): result.text for result in results},
        "codes": sorted({finding.code for finding in found}),
        "refusals": [f"{finding.code}:{finding.line} {finding.message}" for finding in blocking],
        "failure": "",
    }


if __name__ == "__main__":
    asked = Options(style=sys.argv[1], bridge=sys.argv[2:] == ["bridge"])
    json.dump([migrated(texts, asked) for texts in json.load(sys.stdin)], sys.stdout)
