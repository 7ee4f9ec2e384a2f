"""What is left of a replicate when its tensors are gone, and single steps that are taken in parts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, moved_by_one_ulp, names, run

from migrator.harness import points, room, spared
from migrator.harness.cluster import RunOutcome
from migrator.harness.protocol import l4_state, l4b_single_steps, l5_trajectory, ladder, name_map, tolerance
from migrator.harness.protocol.results import Control, Status
from migrator.harness.recording import APART, Recording
from migrator.harness.runs import Run

ADAM = Program(optimizer="adam", learning_rate=0.01, epsilon=1e-8, steps=12)


def replicates() -> tuple[Recording, list[Recording]]:
    original = run(ADAM)
    start = {key: original.initial[name] for key, name in names("original").items()}
    return original, [run(ADAM, initial=moved_by_one_ulp(start, seed)) for seed in (1, 2, 3)]


def recorded(recording: Recording, folder: Path, task: str = "local-0") -> Run:
    (folder / "record" / "ready").mkdir(parents=True)
    for name in ("states", "slots", "gradients", "steps"):
        (folder / "record" / task / name).mkdir(parents=True)
        (folder / "record" / task / name / "00000001.npz").write_bytes(b"weights")
    (folder / "record" / "summaries.json").write_text("{}")
    return Run("original replicate", "original", RunOutcome(folder, (), None, 1.0), recording)


def test_the_distances_of_a_replicate_give_the_same_tolerance(tmp_path: Path) -> None:
    original, others = replicates()
    short = [replace(one, states={1: one.states[1]}) for one in others]
    for number, several in enumerate((others, short)):
        whole = tolerance.derive(original, several, limited=True)
        made = [spared.measured(original, recorded(one, tmp_path / f"{number}-{n}")) for n, one in enumerate(several)]
        left = [one.recording for one in made if one.recording is not None]
        assert len(left) == 3 and not any(one.states or one.slots or one.gradients or one.initial for one in left)
        assert tolerance.derive(original, left, limited=True) == whole


@pytest.mark.parametrize("name", ["local-0", "worker-0"])  # before and behind the folder "ready"
def test_the_tensors_are_gone_and_the_rest_stays(name: str, tmp_path: Path) -> None:
    original, others = replicates()
    run_of = recorded(others[0], tmp_path, name)
    task = tmp_path / "record" / name
    (task / "initial.npz").write_bytes(b"weights")
    made = spared.measured(original, run_of)
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


@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_part_begins_with_the_start(count: int) -> None:
    recording = run(ADAM)
    chosen = points.choose(recording)
    weights, slots = room.bytes_of(recording)
    assert slots == 2 * weights
    parts = list(points.divided(chosen, recording, count * 22 * weights))  # Adam: 4 * (2 + 2) + 2 * (1 + 2)
    assert all(part[0] == chosen[0] for part in parts)
    assert [len(part) for part in parts[:2]] == [max(2, count), 1 + max(1, count)]
    assert tuple(point for number, part in enumerate(parts) for point in part[number > 0 :]) == chosen


def test_a_program_with_many_weights_keeps_the_first_state_and_the_last(tmp_path: Path) -> None:
    original = run(ADAM)
    weights, slots = room.bytes_of(original)
    needed = 6 * (weights + 4 * (2 * weights + slots))
    assert room.room_of(original, 2 * needed) == room.Room()
    few = room.room_of(original, 2 * needed - 2)
    assert few.state_steps == (1,) and not few.whole
    made = recorded(original, tmp_path)
    folder = tmp_path / "record" / "local-0"
    for step in (2, 10, 12):
        (folder / "states" / f"{step:08d}.npz").write_bytes(b"weights")
    left = spared.within(made, few).recording
    assert left is not None and list(left.states) == list(left.slots) == list(left.gradients) == [1, 12]
    assert sorted(path.stem for path in (folder / "states").iterdir()) == ["00000001", "00000012"]
    assert spared.within(made, room.Room()) is made
    assert room.room_of(left, 2 * needed - 2) == few


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_distances_in_the_place_of_a_known_bad_version_say_the_same(factor: float, tmp_path: Path) -> None:
    original, others = replicates()
    mapped = dict(zip(names("migrated").values(), names("original").values(), strict=True))
    good, bad = run(migrated_of(ADAM)), replace(run(migrated_of(ADAM), learning_rate_factor=factor), mutation=1)
    limits = tolerance.derive(original, others)
    made = spared.measured(original, recorded(bad, tmp_path / "bad"), mapped, recorded(good, tmp_path / "good"))
    left = made.recording
    assert left is not None and not left.states and left.unmoved is (factor == 1.0)
    assert ladder.unobservable(left, good) == ladder.unobservable(bad, good)
    for level in (l4_state, l5_trajectory):
        whole, short = (level.judge(original, good, one, mapped, limits, "1 %") for one in (bad, left))
        assert whole == short and whole.control is not None and whole.control.detected == (factor != 1.0)
    known = name_map.build(original.variables, good.variables, {})
    outcomes = [
        ladder.sentinels(original, good, one, {ladder.SUM_FOR_MEAN: one}, known, limits, None) for one in (bad, left)
    ]
    assert outcomes[0] == outcomes[1]
    shared = spared.sharing(original, made, mapped).recording
    assert shared is not None and all(shared.initial[new] is original.initial[old] for new, old in mapped.items())


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


def test_a_part_without_a_control_or_replicates() -> None:
    original, others = replicates()
    mapped = dict(zip(names("migrated").values(), names("original").values(), strict=True))
    taken, starts = [l4b_single_steps.Taken(step) for step in (1, 7)], dict.fromkeys(range(1, 13), original.initial)

    def of(program: Program, originals: list[Recording]) -> l4b_single_steps.Part:
        found = l4b_single_steps.compared(originals, [run(program)], taken, starts, mapped, versions_differ=True)
        assert found is not None
        return found

    alike = of(migrated_of(ADAM), [original])
    assert alike.strictly and alike.far_inside and not alike.control.detected
    # What the first points have shown of the control counts for all.
    level = l4b_single_steps.judge([part(1, 7), alike])
    assert level.status is Status.EQUIVALENT and level.control is not None and level.control.detected
    wrong = migrated_of(replace(ADAM, learning_rate=0.0101))
    assert not of(wrong, [original]).strictly and not of(wrong, [original, others[0]]).far_inside


def test_few_stresses_make_several_things_greater_at_once() -> None:
    recording = run(ADAM)
    few = [one.stress for one in points.choose(recording, few=True) if one.stress]
    assert few == [
        "features times 1000 and labels times 1000",
        "features times 30 and weights times 100",
        "features times 1e-06",
    ]
    words = [one.stress for one in points.choose(recording, few=True, scaled=False) if one.stress]
    assert words == ["weights times 100"]
    assert len({one.stress for one in points.choose(recording)}) == 1 + 8


def test_a_part_that_differs_decides() -> None:
    wrong = migrated_of(replace(ADAM, learning_rate=0.0101))
    level = l4b_single_steps.judge([part(1, 7), part(1, 500, wrong=wrong)])
    assert level.status is Status.DIFFERENT and level.differences[0].step == 1
    assert isinstance(level.control, Control) and level.control.detected
    assert l4b_single_steps.judge([]).status is Status.NOT_EXERCISED
