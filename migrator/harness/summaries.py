"""The summaries that a run wrote for TensorBoard: which tags, at which steps, and the numbers. Needs no TensorFlow."""

from __future__ import annotations

import json
import math
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
    """Writes {tag: [[step, number or null]]} of a run's training beside its records, to stay when its other files are
    gone. Only scalars that are finite have a number.
    """
    found: dict[str, dict[int, float | None]] = {}
    for path in sorted((run_dir / "model").rglob("*.tfevents.*")):
        if not any(part.startswith(_EVALUATIONS) for part in path.parent.relative_to(run_dir).parts[-1:]):
            for tag, step, number in _read(path):
                found.setdefault(tag, {})[step] = number
    if found:
        content = {tag: sorted(steps.items()) for tag, steps in found.items()}
        (run_dir / "record" / FILE).write_text(json.dumps(content))


def _read(path: Path) -> Iterator[tuple[str, int, float | None]]:
    """(tag, step, number) of each summary in a file; what a program that ended left half written is left out."""
    try:
        for event in _records(path):
            entries = list(fields(event))
            step = next((value for number, value in entries if number == 2 and isinstance(value, int)), 0)
            for number, value in entries:
                if number == 5 and isinstance(value, bytes):
                    yield from ((tag, step, scalar) for tag, scalar in _values(value))
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


def _values(summary: bytes) -> Iterator[tuple[str, float | None]]:
    """(tag, number) of each value of a summary."""
    for number, value in fields(summary):
        if number != 1 or not isinstance(value, bytes):
            continue
        parts = dict(fields(value))
        tag, simple, tensor = parts.get(1), parts.get(2), parts.get(8)
        if isinstance(tag, bytes):
            scalar = None
            if isinstance(simple, int):
                scalar = float(struct.unpack("<f", struct.pack("<i", simple))[0])
            elif isinstance(tensor, bytes):
                scalar = _scalar(tensor)
            yield tag.decode("utf-8", "replace"), scalar if scalar is not None and math.isfinite(scalar) else None


#: By the number of a dtype: how a float is packed, and the field of a TensorProto that holds it where it is listed.
_FLOATS = {1: ("<f", 5), 2: ("<d", 6)}


def _scalar(tensor: bytes) -> float | None:
    """The number that a TensorProto of one float holds; None for any other tensor."""
    parts = dict(fields(tensor))
    dtype, shape, content = parts.get(1), parts.get(2, b""), parts.get(4)
    if dtype not in _FLOATS or shape != b"":
        return None
    assert isinstance(dtype, int)
    form, listed = _FLOATS[dtype]
    packed = content if isinstance(content, bytes) else parts.get(listed)
    if isinstance(packed, int):  # one that is listed alone, unpacked
        packed = struct.pack("<i" if form == "<f" else "<q", packed)
    if not isinstance(packed, bytes) or len(packed) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, packed)[0])
