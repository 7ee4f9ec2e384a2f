"""What a run tried to change outside of its own folder, and what became of that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

#: The file of a task that names the lines of the program that were about to change something.
NOTES = "writes.jsonl"  # as inside/guard.py, which cannot be imported here, has it

What = Literal["made", "written", "deleted", "refused"]
_SAID: Mapping[What, str] = {
    "made": "made {}",
    "written": "changed {}",
    "deleted": "deleted {}",
    "refused": "was refused to change {}",
}


@dataclass(frozen=True)
class Write:
    """A file or folder that stayed as it was. `where` is the line of the program, "file.py:12", if it is known."""

    path: str
    what: What
    where: str | None = None

    @property
    def code(self) -> str:
        """What consumers of the report may switch on: "write_kept" or "write_refused"."""
        return "write_refused" if self.what == "refused" else "write_kept"

    def said(self, program: str, more: int = 0) -> str:
        """One clause on what the original or migrated `program` did, to this path and `more` others beside it."""
        line = self.where or "no line of it: TensorFlow or another process"
        others = f" and {more} more in {Path(self.path).parent}" if more else ""
        return f"the {program} program ({line}) {_SAID[self.what].format(self.path)}{others}"


def found_in(tasks: Path, changes: Iterable[Mapping[str, Any]]) -> tuple[Write, ...]:
    """What the notes in the tasks' folders and the `changes` that a view saw come to, each path once."""
    notes = [note for path in sorted(tasks.glob(f"*/{NOTES}")) for note in _notes(path)]
    kept = [Write(change["path"], change["what"], _line_of(change["path"], notes)) for change in changes]
    refused: dict[str, Write] = {}
    for note in notes:
        if note["what"] == "refused":
            refused.setdefault(note["path"], Write(note["path"], "refused", note["where"]))
    return (*kept, *refused.values())


def _notes(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text("utf-8", "replace").splitlines()
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:  # the task was ended in the middle of it
            continue
    return found


def _line_of(path: str, notes: Sequence[Mapping[str, Any]]) -> str | None:
    """The line that changed `path` itself; else what is below it; else, of a note for all of a folder, a neighbour."""
    place = Path(path)
    known = [(Path(note["path"]), str(note["where"])) for note in notes if note["where"] is not None]
    itself = [where for other, where in known if other == place]
    below = [where for other, where in known if place in other.parents]
    near = [where for other, where in known if other.parent == place.parent or other in place.parents]
    return next(iter((*itself, *below, *near)), None)
