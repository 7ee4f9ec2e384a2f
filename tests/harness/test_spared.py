"""What is left of a replicate when its tensors are gone, and single steps that are taken in parts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, moved_by_one_ulp, names, run

from migrator.harness import points, spared
from migrator.harness.cluster import RunOutcome
from migrator.harness.protocol import l4b_single_steps, tolerance
from migrator.harness.protocol.results import Control, Status
from migrator.harness.recording import APART, Recording
from migrator.harness.runs import Run

ADAM = Program(optimizer="adam", learning_rate=0.01, epsilon=1e-8, steps=12)


def replicates() -> tuple[Recording, list[Recording]]:
    original = run(ADAM)
    start = {key: original.initial[name] for key, name in names("original").items()}
    return original, [run(ADAM, initial=moved_by_one_ulp(start, seed)) for seed in (1, 2, 3)]


def recorded(recording: Recording, folder: Path) -> Run:
    for name in ("states", "slots", "gradients", "steps"):
        (folder / "record" / "local-0" / name).mkdir(parents=True)
        (folder / "record" / "local-0" / name / "00000001.npz").write_bytes(b"weights")
    (folder / "record" / "summaries.json").write_text("{}")
    return Run("original replicate", "original", RunOutcome(folder, (), None, 1.0), recording)


def test_the_distances_of_a_replicate_give_the_same_tolerance(tmp_path: Path) -> None:
    original, others = replicates()
    short = [replace(one, states={1: one.states[1]}) for one in others]
    for number, several in enumerate((others, short)):
        whole = tolerance.derive(original, several, limited=True)
        made = [spared.measured(original, recorded(one, tmp_path / f"{number}-{n}")) for n, one in enumerate(several)]
        left = [one.recording for one in made if one.recording is not None]
        assert len(left) == 3 and not any(one.states or one.slots or one.gradients for one in left)
        assert tolerance.derive(original, left, limited=True) == whole


def test_the_tensors_are_gone_and_the_rest_stays(tmp_path: Path) -> None:
    original, others = replicates()
    made = spared.measured(original, recorded(others[0], tmp_path))
    task = tmp_path / "record" / "local-0"
    assert sorted(path.name for path in task.iterdir()) == [APART, "steps"]
    assert made.recording is not None and made.recording.steps == others[0].steps
    rows = {(family, name, slot, step): one for family, name, slot, step, one in json.loads((task / APART).read_text())}
    assert rows == made.recording.apart
    kernel = names("original")["k1"]
    expected = float(np.max(np.abs(original.states[10][kernel].astype(float) - others[0].states[10][kernel])))
    assert rows["state", kernel, "", 10] == expected > 0
    assert spared.measured(original, made) is made


def test_all_points_are_taken_at_once_if_there_is_room() -> None:
    recording = run(ADAM)
    chosen = points.choose(recording)
    assert list(points.divided(chosen, recording)) == [chosen]
    assert list(points.divided(chosen[:1], recording)) == [chosen[:1]]


@pytest.mark.parametrize("room", [0, 1, 3])
def test_each_part_begins_with_the_start(room: int) -> None:
    recording = run(ADAM)
    chosen = points.choose(recording)
    weights = spared.weights_of(recording)
    parts = list(points.divided(chosen, recording, (1 + room) * 18 * weights))  # Adam: 4 * (2 + 2) + 2
    assert all(part[0] == chosen[0] and 2 <= len(part) <= 1 + max(1, room) for part in parts)
    assert tuple(point for part in parts for point in part[1:]) == chosen[1:]


def part(*steps: int, seen: bool = True, wrong: Program | None = None) -> l4b_single_steps.Part:
    original, others = replicates()
    mapped = dict(zip(names("migrated").values(), names("original").values(), strict=True))
    migrated = [run(wrong or migrated_of(ADAM)), run(migrated_of(ADAM), learning_rate_factor=1.01 if seen else 1.0)]
    taken = [l4b_single_steps.Taken(step) for step in steps]
    starts = dict.fromkeys(range(1, 13), original.initial)
    found = l4b_single_steps.compared([original, *others], migrated, taken, starts, mapped, versions_differ=True)
    assert found is not None
    return found


def test_parts_are_one_level() -> None:
    level = l4b_single_steps.judge([part(1, 7), part(1, 500, seen=False)])
    assert level.status is Status.EQUIVALENT and "single steps 1, 7, 500 agree" in level.summary
    assert level.control is not None and level.control.detected
    assert l4b_single_steps.judge([part(1, 7, seen=False)]).status is Status.INCONCLUSIVE


def test_a_part_that_differs_decides() -> None:
    wrong = migrated_of(replace(ADAM, learning_rate=0.0101))
    level = l4b_single_steps.judge([part(1, 7), part(1, 500, wrong=wrong)])
    assert level.status is Status.DIFFERENT and level.differences[0].step == 1
    assert isinstance(level.control, Control) and level.control.detected
    assert l4b_single_steps.judge([]).status is Status.NOT_EXERCISED
