"""The summaries that a run wrote for TensorBoard: which tags, at which steps. Needs no TensorFlow."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

from migrator.harness.protobuf import fields

FILE = "summaries.json"
#: Folders of evaluations, of Estimators and of Keras' TensorBoard callback; metrics are compared by themselves.
_EVALUATIONS = ("eval", "validation")
#: No more of one file is read: images and histograms may be large.
_LARGEST = 1 << 28


def keep(run_dir: Path) -> None:
    """Writes the tags of a run's training beside its records, to stay when its other files are gone."""
    found: dict[str, set[int]] = {}
    for path in sorted((run_dir / "model").rglob("*.tfevents.*")):
        if not any(part.startswith(_EVALUATIONS) for part in path.parent.relative_to(run_dir).parts[-1:]):
            for tag, step in _read(path):
                found.setdefault(tag, set()).add(step)
    if found:
        (run_dir / "record" / FILE).write_text(json.dumps({tag: sorted(steps) for tag, steps in found.items()}))


def _read(path: Path) -> Iterator[tuple[str, int]]:
    """(tag, step) of each summary in a file; what a program that ended left half written is left out."""
    try:
        for event in _records(path):
            entries = list(fields(event))
            step = next((value for number, value in entries if number == 2 and isinstance(value, int)), 0)
            for number, value in entries:
                if number == 5 and isinstance(value, bytes):
                    yield from ((tag, step) for tag in _tags(value))
    except (OSError, ValueError, IndexError, struct.error):
        return


def _records(path: Path) -> Iterator[bytes]:
    """The records of a TFRecord file: a length, its checksum, the content, its checksum."""
    with path.open("rb") as stream:
        while len(head := stream.read(12)) == 12 and stream.tell() < _LARGEST:
            (size,) = struct.unpack("<Q", head[:8])
            content = stream.read(size)
            if len(content) < size:
                return
            stream.read(4)
            yield content


def _tags(summary: bytes) -> Iterator[str]:
    for number, value in fields(summary):
        if number == 1 and isinstance(value, bytes):
            for key, tag in fields(value):
                if key == 1 and isinstance(tag, bytes):
                    yield tag.decode("utf-8", "replace")
