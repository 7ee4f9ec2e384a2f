"""Summaries are read from event files without TensorFlow."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from migrator.harness import summaries


def number(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(0x80 | value & 0x7F)
        value >>= 7
    return bytes([*made, value])


def message(field: int, content: bytes) -> bytes:
    return number(field << 3 | 2) + number(len(content)) + content


ONE = b"\x15\x00\x00\x80?"


def event(step: int, *tags: str, value: bytes = ONE) -> bytes:
    values = b"".join(message(1, message(1, tag.encode()) + value) for tag in tags)
    content = b"\x09" + struct.pack("<d", 1.5e9) + number(2 << 3) + number(step) + message(5, values)
    return struct.pack("<QI", len(content), 0) + content + struct.pack("<I", 0)


def kept(run_dir: Path) -> dict[str, list[list[float | None]]]:
    (run_dir / "record").mkdir(exist_ok=True)
    summaries.keep(run_dir)
    path = run_dir / "record" / summaries.FILE
    return json.loads(path.read_text()) if path.exists() else {}


def test_tags_and_steps(tmp_path: Path) -> None:
    folder = tmp_path / "model" / "logs"
    folder.mkdir(parents=True)
    whole = event(0, "norm") + event(300, "norm", "gates")
    (folder / "events.out.tfevents.1.host").write_bytes(whole + event(400, "norm")[:-9])  # its writer was ended
    (folder / "model.ckpt-300.index").write_bytes(b"no events")
    assert kept(tmp_path) == {"norm": [[0, 1.0], [300, 1.0]], "gates": [[300, 1.0]]}


def tensor(dtype: int, *others: bytes) -> bytes:
    """A Summary.Value's tensor: dtype, then other fields."""
    return message(8, number(1 << 3) + number(dtype) + b"".join(others))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ONE, 1.0),
        (number(2 << 3 | 5) + struct.pack("<f", float("nan")), None),
        # As TensorFlow 2 writes them: the content as bytes, or in lists of floats and doubles; a shape without sizes.
        (tensor(1, message(2, b""), message(4, struct.pack("<f", 0.25))), 0.25),
        (tensor(2, message(4, struct.pack("<d", 0.1))), 0.1),
        (tensor(1, message(5, struct.pack("<f", 0.5))), 0.5),
        (tensor(1, number(5 << 3 | 5) + struct.pack("<f", 0.5)), 0.5),
        # No numbers: a vector, two floats, text, an image.
        (tensor(1, message(2, message(2, number(1 << 3) + number(1))), message(4, struct.pack("<f", 0.25))), None),
        (tensor(1, message(4, struct.pack("<2f", 0.25, 1.0))), None),
        (tensor(7, message(8, b"text")), None),
        (message(4, b"image"), None),
    ],
)
def test_numbers(tmp_path: Path, value: bytes, expected: float | None) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "events.out.tfevents.1.host").write_bytes(event(3, "norm", value=value))
    assert kept(tmp_path) == {"norm": [[3, expected]]}


def test_evaluations_are_left_out(tmp_path: Path) -> None:
    for name in ("eval", "eval_test", "validation"):
        (tmp_path / "model" / name).mkdir(parents=True)
        (tmp_path / "model" / name / "events.out.tfevents.1.host").write_bytes(event(5, "accuracy"))
    assert kept(tmp_path) == {}
