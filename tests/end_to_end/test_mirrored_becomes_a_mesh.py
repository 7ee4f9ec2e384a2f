"""TensorFlow 2 programs on the replicas of a MirroredStrategy, and on the mesh that they become: the same training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.proving import Servers, losses, record
from tests.rules.test_mirrored_mesh import FIT, LOOP, migrated

pytestmark = pytest.mark.tensorflow

EMITTED = (Path(__file__).parents[2] / "fixtures" / "custom_loop" / "migrated.py").read_text(encoding="utf-8")
BY_DATA = FIT.replace(", input_shape=(6,)", "")  # a model that is built by its data
COLUMNS = ("dense.kernel=unsharded,model", "dense.bias=model")


@pytest.mark.parametrize(
    ("text", "mesh", "layouts"),
    [(BY_DATA, "", ()), (LOOP, "model=2", COLUMNS), (EMITTED, "model=2", COLUMNS)],
    ids=["fit", "a loop, with a divided kernel", "a loop that was emitted"],
)
def test_replicas_and_mesh(text: str, mesh: str, layouts: tuple[str, ...], servers: Servers, tmp_path: Path) -> None:
    """Losses, metrics and weights on two devices; the loop ends with a batch that they do not divide."""
    new, _ = migrated(text, mesh=mesh, layouts=layouts)
    for name, program in (("original", text), ("migrated", new)):
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    first = record(servers[1], "migrated", tmp_path / "original.py", tmp_path / "one", None, 2)
    np.savez(tmp_path / "initial.npz", **first.initial)  # type: ignore[arg-type]
    second = record(servers[1], "migrated", tmp_path / "migrated.py", tmp_path / "two", tmp_path / "initial.npz", 2)
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
    if mesh:
        shown = json.loads(next((tmp_path / "two" / "record").glob("*/program.json")).read_text(encoding="utf-8"))
        assert [one["device_shapes"] for one in shown["variables"][:2]] == [[[6, 4]] * 2, [[4]] * 2]
