"""The numbers that a run printed: what a program makes of its predictions is seen nowhere else."""

from __future__ import annotations

import json
import re
from collections import deque
from pathlib import Path

FILE = "printed.json"
#: No more of one log is read, from its end.
_LARGEST = 1 << 22
#: Whole numbers of one log that are kept, the last so many.
_MOST = 20_000
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d+\.\d*(?:[eE][-+]?\d+)?(?![\w.])")
_WHOLE = re.compile(rb"(?<![\w.])(?<![eE][-+])(?:[-+]?\d{1,18}(?!\.?\w|\.)|True\b|False\b)")


def keep(run_dir: Path) -> None:
    """Writes the numbers that the tasks of a run printed beside its records, to stay when its other files are gone:
    those with a point each once, and those without one, truth among them, as they were printed.
    """
    found: set[float] = set()
    whole: list[int] = []
    for path in sorted((run_dir / "tasks").rglob("stdout.log")):
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _LARGEST))
            text = stream.read()
        found.update(map(float, _NUMBER.findall(text)))
        told = deque((match.group() for match in _WHOLE.finditer(text)), maxlen=_MOST)
        whole += [int(one == b"True") if one in (b"True", b"False") else int(one) for one in told]
    record = run_dir / "record"
    if (found or whole) and record.is_dir():  # else nothing was recorded, which is for others to say
        (record / FILE).write_text(json.dumps({"points": sorted(found), "whole": whole}))
