"""TensorFlow 2 programs on the replicas of a MirroredStrategy, and on the mesh that they become: the same training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.proving import Servers, losses, record
from tests.fixture_cases import load_cases
from tests.rules.test_mirrored_mesh import FIT, LOOP, migrated

pytestmark = pytest.mark.tensorflow

CASES = {case.name: case for case in load_cases()}
COLUMNS = ("dense.kernel=unsharded,model", "dense.bias=model")


@dataclass(frozen=True)
class Program:
    """A program on two replicas, its mesh, and what each device of it has of the first variables."""

    text: str
    mesh: str = ""
    layouts: tuple[str, ...] = ()
    devices: int = 2
    parts: tuple[tuple[int, ...], ...] = ()


PROGRAMS = {
    "fit, of a model that is built by its data": Program(FIT.replace(", input_shape=(6,)", "")),
    "a loop that was emitted": Program(
        CASES["custom_loop"].migrated.read_text(encoding="utf-8"), "model=2", COLUMNS, parts=((6, 4), (4,))
    ),
    "a loop, with a divided kernel": Program(LOOP, "model=2", COLUMNS, parts=((6, 4), (4,))),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_replicas_and_mesh(program: Program, servers: Servers, tmp_path: Path) -> None:
    """Losses, metrics and weights; the last one's last batch is one that replicas and mesh do not divide."""
    new, _ = migrated(program.text, mesh=program.mesh, layouts=program.layouts)
    for name, text in (("original", program.text), ("migrated", new)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    first = record(servers[1], "migrated", tmp_path / "original.py", tmp_path / "one", None, 2)
    np.savez(tmp_path / "initial.npz", **first.initial)  # type: ignore[arg-type]
    initial, devices = tmp_path / "initial.npz", program.devices
    second = record(servers[1], "migrated", tmp_path / "migrated.py", tmp_path / "two", initial, devices)
    np.testing.assert_allclose(losses(second), losses(first), rtol=1e-5)
    assert len(losses(first)) >= 5
    for step in (1, 5):
        for name, value in first.states[step].items():
            np.testing.assert_allclose(second.states[step][name], value, rtol=1e-4, atol=1e-6)
    assert len(first.evaluations) == len(second.evaluations) >= 1
    for before, after in zip(first.evaluations, second.evaluations, strict=True):
        assert before.results and after.results
        for name in set(before.results) & set(after.results):
            assert after.results[name] == pytest.approx(before.results[name], rel=1e-5), name
    shown = json.loads(next((tmp_path / "two" / "record").glob("*/program.json")).read_text(encoding="utf-8"))
    shapes = [one["device_shapes"] for one in shown["variables"]]
    assert shapes[: len(program.parts)] == [[list(part)] * devices for part in program.parts]
