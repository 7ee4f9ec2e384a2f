"""The numbers that a run printed: what a program makes of its predictions is seen nowhere else."""

from __future__ import annotations

import json
import re
from pathlib import Path

FILE = "printed.json"
#: No more of one log is read, from its end.
_LARGEST = 1 << 22
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d+\.\d*(?:[eE][-+]?\d+)?(?![\w.])")


def keep(run_dir: Path) -> None:
    """Writes the numbers with a point that the tasks of a run printed beside its records, each once, to stay when its
    other files are gone.
    """
    found: set[float] = set()
    for path in sorted((run_dir / "tasks").rglob("stdout.log")):
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _LARGEST))
            found.update(map(float, _NUMBER.findall(stream.read())))
    if found:
        (run_dir / "record" / FILE).write_text(json.dumps(sorted(found)))
