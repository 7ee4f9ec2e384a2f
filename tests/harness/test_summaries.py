"""Summaries are read from event files without TensorFlow."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from migrator.harness import summaries


def number(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(0x80 | value & 0x7F)
        value >>= 7
    return bytes([*made, value])


def message(field: int, content: bytes) -> bytes:
    return number(field << 3 | 2) + number(len(content)) + content


def event(step: int, *tags: str) -> bytes:
    values = b"".join(message(1, message(1, tag.encode()) + b"\x15\x00\x00\x80?") for tag in tags)
    content = b"\x09" + struct.pack("<d", 1.5e9) + number(2 << 3) + number(step) + message(5, values)
    return struct.pack("<QI", len(content), 0) + content + struct.pack("<I", 0)


def kept(run_dir: Path) -> dict[str, list[int]]:
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
    assert kept(tmp_path) == {"norm": [0, 300], "gates": [300]}


def test_evaluations_are_left_out(tmp_path: Path) -> None:
    for name in ("eval", "eval_test", "validation"):
        (tmp_path / "model" / name).mkdir(parents=True)
        (tmp_path / "model" / name / "events.out.tfevents.1.host").write_bytes(event(5, "accuracy"))
    assert kept(tmp_path) == {}
