"""What a finding says of a mistake of tf-migrate's own."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from migrator.findings import Finding, Severity

CODE = "TFM905"
_HERE = Path(__file__).parent


def message_of(error: Exception) -> str:
    """What a finding says of an error; the traceback is for those who ask for it by TF_MIGRATE_TRACEBACK."""
    if os.environ.get("TF_MIGRATE_TRACEBACK"):
        traceback.print_exception(error, file=sys.stderr)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _HERE in Path(frame.filename).parents]
    where = f" in {Path(frames[-1].filename).relative_to(_HERE)}:{frames[-1].lineno}" if frames else ""
    what = " ".join(f"{type(error).__name__}: {error}".split())[:160]
    return (
        f"internal error of tf-migrate ({what}{where}); this program was left as it was. Please report it, with the "
        "output of the same command under TF_MIGRATE_TRACEBACK=1"
    )


def in_file(path: Path, error: Exception) -> Finding:
    """The finding about a file that an error was met in."""
    return Finding(str(path), 1, 1, CODE, Severity.MANUAL, message_of(error))
