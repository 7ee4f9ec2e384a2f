"""L4b on recordings of single steps, and which points are chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_programs import Program, initial_values, migrated_of, moved_by_one_ulp, names, run

from migrator.harness import points
from migrator.harness.case import Case
from migrator.harness.cluster import ClusterShape
from migrator.harness.protocol import l4b_single_steps, name_map, pairing, weight_map
from migrator.harness.protocol.results import Control, LevelResult, Reason, Status
from migrator.harness.recording import Recording

MOMENTUM = Program(optimizer="momentum", steps=1)
RENAMED = dict(zip(names("migrated").values(), names("original").values(), strict=True))
STRESS = "features times 1000"


def joined(*steps: Recording) -> Recording:
    """Recordings of one step each as those of one run."""
    first = steps[0]
    return replace(
        first,
        steps=tuple(replace(one.steps[0], number=place) for place, one in enumerate(steps, start=1)),
        states={place: one.states[1] for place, one in enumerate(steps, start=1)},
        slots={place: one.slots[1] for place, one in enumerate(steps, start=1)},
        gradients={place: one.gradients[1] for place, one in enumerate(steps, start=1)},
    )


def judged(far: Program, near: Program = MOMENTUM, **changes: Any) -> LevelResult:
    """What `part_of` comes to."""
    return l4b_single_steps.judge([part_of(far, near, **changes)])


def part_of(
    far: Program,
    near: Program = MOMENTUM,
    stress: str = "",
    share: float = 0.0,
    apart: bool = False,
    bias: tuple[float, float] | None = None,
    replicates: int = 3,
    halves: tuple[str, ...] | None = None,
    without: tuple[int, ...] = (),
) -> l4b_single_steps.Part:
    """A start that agrees, then a step in which the migrated program is `far`, its loss off by a share.

    `bias` is what the gradients of a bias are in that step: in the original and in the migrated program.
    """
    starts = [initial_values(7), initial_values(8)]

    def of(programs: tuple[Program, Program], seed: int | None = None, factor: float = 1.0) -> Recording:
        values = [one if seed is None else moved_by_one_ulp(one, seed) for one in starts]
        pairs = zip(programs, values, strict=True)
        return joined(*(run(program, initial=value, learning_rate_factor=factor) for program, value in pairs))

    originals = [of((near, near)), *(of((near, near), seed) for seed in range(1, replicates + 1))]
    wrong = [of((migrated_of(near), far)), of((migrated_of(near), far), factor=1.01)]
    if share:
        last = replace(wrong[0].steps[1], loss=wrong[0].steps[1].loss * (1 + share))
        wrong[0] = replace(wrong[0], steps=(wrong[0].steps[0], last))
    if bias is not None:
        key = names("original")["b1"]
        for recordings, value, name in ((originals, bias[0], key), (wrong, bias[1], names("migrated")["b1"])):
            for one in recordings:
                one.gradients[2][name] = np.full_like(one.gradients[2][name], value)
    originals[0] = replace(originals[0], halves=halves)
    taken = [l4b_single_steps.Taken(1), l4b_single_steps.Taken(500_000, stress, apart)]
    weights = {1: originals[0].initial, 2: {names("original")[key]: value for key, value in starts[1].items()}}
    part = l4b_single_steps.compared(originals, wrong, taken, weights, RENAMED, versions_differ=True, without=without)
    assert part is not None
    return part


def test_steps_that_agree() -> None:
    level = judged(migrated_of(MOMENTUM, float64_sums=True))
    assert level.status is Status.EQUIVALENT and "1, 500000 agree" in level.summary
    assert level.control is not None and level.control.detected


def test_whether_one_replicate_is_enough() -> None:
    good = part_of(migrated_of(MOMENTUM, float64_sums=True), replicates=1)
    assert good.strictly and good.control.detected
    assert good.different is None and not l4b_single_steps.judge([good]).notes
    assert part_of(migrated_of(MOMENTUM), stress=STRESS, share=1e-4, replicates=1).strictly  # nothing gross
    for changes in ({"share": 1e-4}, {"share": 1e-2, "stress": STRESS}, {"bias": (0.5, 0.0)}):
        assert not part_of(migrated_of(MOMENTUM), replicates=1, **changes).strictly, changes
    assert not part_of(migrated_of(MOMENTUM, learning_rate=0.0501), replicates=1).strictly
    idle = replace(MOMENTUM, learning_rate=0.0)
    assert not part_of(migrated_of(idle), idle, replicates=1).strictly


def test_an_original_that_does_not_repeat_its_single_steps_shows_no_difference() -> None:
    part = part_of(migrated_of(MOMENTUM, learning_rate=0.0501))
    level = l4b_single_steps.judge([l4b_single_steps.unsteady(part, "gradient of b1 of step 1 moves by 0.02")])
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.NONDETERMINISTIC_ORIGINAL)
    assert "moves by 0.02" in level.summary and not level.differences
    assert part.different is not None and any(part.different.summary in note for note in level.notes)


def test_a_rate_that_is_off_far_out_is_named_at_its_step() -> None:
    level = judged(migrated_of(MOMENTUM, learning_rate=0.0501))
    assert level.status is Status.DIFFERENT
    assert {one.step for one in level.differences} == {500_000}


def test_a_branch_that_only_stress_takes() -> None:
    level = judged(migrated_of(MOMENTUM, activation="relu"), stress=STRESS)
    assert level.status is Status.DIFFERENT and STRESS in level.summary


def test_under_stress_only_what_is_grossly_apart_is_a_difference() -> None:
    assert judged(migrated_of(MOMENTUM), stress=STRESS, share=1e-4).status is Status.EQUIVALENT
    assert judged(migrated_of(MOMENTUM), share=1e-4).status is Status.DIFFERENT
    assert judged(migrated_of(MOMENTUM), stress=STRESS, share=1e-2).status is Status.DIFFERENT


def test_what_rounding_leaves_of_a_saturated_gradient_is_no_difference() -> None:
    assert judged(migrated_of(MOMENTUM), stress=STRESS, bias=(0.0, -1.4e-16)).status is Status.EQUIVALENT
    assert judged(migrated_of(MOMENTUM), stress=STRESS, bias=(-1.4e-16, 0.0)).status is Status.EQUIVALENT
    assert judged(migrated_of(MOMENTUM), stress=STRESS, bias=(0.5, 0.0)).status is Status.DIFFERENT


def test_a_sum_of_half_precision_that_overflows_in_one_program_alone_says_nothing() -> None:
    overflow: dict[str, Any] = {"stress": STRESS, "bias": (6e4, np.inf)}
    assert judged(migrated_of(MOMENTUM), **overflow).status is Status.DIFFERENT
    level = judged(migrated_of(MOMENTUM), **overflow, halves=("float16",))
    assert level.status is Status.EQUIVALENT
    assert level.notes == (f"with {STRESS} numbers of one program are not finite",)
    without = judged(migrated_of(MOMENTUM), bias=(6e4, np.inf), halves=("float16",))
    assert without.status is Status.DIFFERENT  # where the data was


def test_the_update_of_weights_that_were_made_greater_than_their_slots_says_nothing() -> None:
    other = migrated_of(MOMENTUM, learning_rate=0.5)
    assert judged(other, stress=STRESS).status is Status.DIFFERENT
    assert judged(other, stress=STRESS, apart=True).status is Status.EQUIVALENT
    assert judged(migrated_of(MOMENTUM, activation="relu"), stress=STRESS, apart=True).status is Status.DIFFERENT


def test_a_rate_of_zero_shows_nothing() -> None:
    idle = replace(MOMENTUM, learning_rate=0.0)
    level = judged(migrated_of(idle), idle)
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED)


def test_points_are_where_weights_were_kept_and_where_the_rate_changes() -> None:
    recording = run(Program(optimizer="momentum", steps=30, rate_at_step=(20, 0.01)))
    recording = replace(recording, rate_constants=(500_000,))
    chosen = {one.step: one for one in points.choose(recording, (12_345,)) if not one.stress}
    assert sorted(chosen) == [1, 2, 3, 11, 20, 31, 300, 12_345, 500_001, 500_002]
    assert chosen[20].state == 10 and chosen[12_345].state == 30 and chosen[1].state == 0
    stressed = [one for one in points.choose(recording) if one.stress]
    assert {one.stress for one in stressed} >= {"features times 1000", "labels times 30", "weights times 10"}
    assert not {one.step for one in stressed} & set(chosen)


def test_a_program_that_goes_on_whatever_it_is_given_is_seen() -> None:
    recording = run(Program(optimizer="momentum", steps=8))
    chosen = [one for one in points.choose(recording) if not one.stress]
    assert sorted(one.step for one in chosen) == [1, 2, 3, 9, 80]
    loss = {step.number: step.loss for step in recording.steps}
    # A step that the training never took has a loss that nothing is known about.
    given = [replace(recording.steps[0], number=n, loss=loss.get(one.step, 1.0)) for n, one in enumerate(chosen, 1)]
    assert points._repeats(recording, recording, replace(recording, steps=tuple(given)), chosen)
    own = recording.steps[: len(chosen)]
    assert not points._repeats(recording, recording, replace(recording, steps=own), chosen)


def test_rates_that_a_program_sets_itself_are_known_of_its_own_steps() -> None:
    recording = run(Program(optimizer="momentum", steps=6, rate_at_step=(4, 0.01)))
    assert recording.optimizer is not None
    by_count = replace(recording.optimizer, settings={**recording.optimizer.settings, "learning_rate": None})
    given = replace(recording.optimizer, settings={**recording.optimizer.settings, "learning_rate": 0.1})
    assert points.set_rates(replace(recording, optimizer=by_count)) == {}
    rates = points.set_rates(replace(recording, optimizer=given))
    assert rates == {step.number: step.learning_rate for step in recording.steps} and len(set(rates.values())) == 2
    assert points.set_rates(replace(run(Program(steps=6)), optimizer=given)) == {}  # a rate that stays
    # Where the rates of its steps are not those of its training, its single steps say nothing.
    chosen = [one for one in points.choose(recording) if one.step in rates]
    single = [replace(recording.steps[one.step - 1], number=n) for n, one in enumerate(chosen, 1)]
    assert points._repeats(recording, recording, replace(recording, steps=tuple(single)), chosen)
    single[-1] = replace(single[-1], learning_rate=0.2)
    assert not points._repeats(recording, recording, replace(recording, steps=tuple(single)), chosen)


def test_averages_by_a_count_of_the_programs_own_are_no_single_steps() -> None:
    recording = run(Program(optimizer="momentum", steps=8))
    chosen = [one for one in points.choose(recording) if not one.stress and one.step <= 8]
    place = next(n for n, one in enumerate(chosen, 1) if one.step == 2)
    key = next(iter(recording.slots[2]))
    steps = tuple(replace(recording.steps[one.step - 1], number=n) for n, one in enumerate(chosen, 1))
    kept = recording.slots[2][key]
    same, apart = (
        replace(recording, steps=steps, slots={place: {**recording.slots[2], key: value}})
        for value in (kept, 1.1 * kept)
    )
    assert points._repeats(recording, recording, same, chosen, {key[1]})
    assert not points._repeats(recording, recording, apart, chosen, {key[1]})
    assert points._repeats(recording, recording, apart, chosen)  # a slot of the optimizer: the levels judge it


def test_steps_whose_rate_is_not_known_are_those_that_move_the_weights_alike() -> None:
    """A loop that counts its steps in Python takes single steps with other counts."""
    recording = run(Program(optimizer="momentum", steps=8))
    blind = replace(recording, steps=tuple(replace(one, learning_rate=None) for one in recording.steps))
    chosen = [one for one in points.choose(recording) if not one.stress and one.step <= 8]
    place = next(n for n, one in enumerate(chosen, 1) if one.step == 2)
    steps = tuple(replace(blind.steps[one.step - 1], number=n) for n, one in enumerate(chosen, 1))
    before, after = recording.states[1], recording.states[2]
    further = {name: before[name] + 1.05 * (value - before[name]) for name, value in after.items()}
    for states, repeats in ((after, True), (further, False)):
        single = replace(blind, steps=steps, states={place: states})
        assert points._repeats(recording, blind, single, chosen) is repeats
    rated = replace(
        recording, steps=tuple(replace(recording.steps[one.step - 1], number=n) for n, one in enumerate(chosen, 1))
    )
    assert points._repeats(recording, recording, replace(rated, states={place: further}), chosen)  # L4b judges it


def test_a_stressed_point_changes_float_numbers_only() -> None:
    recording = run(Program(steps=2))
    point = points.Point(4, 1, recording.batches[:1], features=30.0)
    np.testing.assert_array_equal(point.change("features", np.ones(3, np.float32)), np.full(3, 30, np.float32))
    np.testing.assert_array_equal(point.change("labels", np.ones(3, np.float32)), np.ones(3))
    np.testing.assert_array_equal(point.change("features", np.ones(3, np.int64)), np.ones(3))


def test_labels_that_name_classes_have_no_greater_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = run(Program(steps=8))
    plain = {one.stress for one in points.choose(recording)}
    assert any("labels" in stress for stress in plain)
    assert {one.stress for one in points.choose(recording, classes=True)} == {s for s in plain if "labels" not in s}
    for values, classes in (([0.0, 1.0], True), ([-1.0, 1.0], True), ([0.0, 0.5], False), ([2.0], False)):
        batch = {"labels": np.float32(values), "features": np.float32([7.0])}
        monkeypatch.setattr(points, "read_batch", lambda *_, batch=batch: batch)
        assert points.labels_are_classes(tmp_path, recording.batches) is classes
    # Integers are not scaled at all, and need not be read.
    monkeypatch.delattr(points, "read_batch")
    whole = [
        replace(one, components=tuple((path, "int64", shape, digest) for path, _, shape, digest in one.components))
        for one in recording.batches
    ]
    assert not points.labels_are_classes(tmp_path, whole)


def test_nothing_recorded_leaves_no_points() -> None:
    recording = run(Program(steps=2))
    assert points.choose(replace(recording, states={}, slots={})) == ()
    kept = tuple(replace(one, kept=False) for one in recording.batches)
    assert points.choose(replace(recording, batches=kept)) == ()


def test_a_point_has_the_batches_of_all_trainers() -> None:
    recording = run(Program(steps=4))
    others = tuple(replace(one, task="worker:1") for one in recording.batches)
    both = replace(recording, batches=recording.batches + others, participation={"local:0": 4, "worker:1": 4})
    chosen = points.choose(both)
    assert chosen and all([one.task for one in point.batches] == ["local:0", "worker:1"] for point in chosen)
    assert all(len({one.step for one in point.batches}) == 1 for point in chosen)
    # Where one of them was not kept, the batches of that step are no step.
    assert points.choose(replace(both, batches=recording.batches)) == ()


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [({}, False), ({"sample_steps": (500,)}, True), ({"all_mutants": True}, True), ({"required": ("L4b",)}, True)],
)
def test_on_clusters_single_steps_are_taken_where_they_are_asked_for(asked: dict[str, Any], wanted: bool) -> None:
    assert points.asked_for(Case(Path("a.py"), Path("b.py"), shape=ClusterShape.parse("worker=2"), **asked)) is wanted


class TestPairing:
    """Variables of the same shape are told by their gradients from the same values."""

    def recordings(self, *, wrong: bool = False) -> tuple[Recording, Recording, name_map.NameMap]:
        ours = run(Program(steps=1))
        gradient = ours.gradients[1]["dense/bias"]
        first, second = gradient, gradient[::-1].copy()
        variables = tuple(replace(ours.variables[1], name=name, order=n) for n, name in enumerate(("a", "b")))
        left = replace(ours, variables=variables, gradients={1: {"a": first, "b": second}})
        right = {"x": second, "y": first * (3 if wrong else 1)}
        names_of = name_map.NameMap((("a", "x"), ("b", "y")), "creation order")
        return left, replace(left, gradients={1: right}), names_of

    def test_they_change_places_where_their_gradients_say_so(self) -> None:
        ours, theirs, known = self.recordings()
        of = pairing.classes(ours, known)
        assert of == (("a", "b"),)
        assert pairing.by_flow(ours, theirs, known, of).to_migrated() == {"a": "y", "b": "x"}

    def test_gradients_that_agree_nowhere_change_nothing(self) -> None:
        ours, theirs, known = self.recordings(wrong=True)
        assert pairing.by_flow(ours, theirs, known, (("a", "b"),)) is known

    def rows(self, *, wrong: bool = False) -> tuple[Recording, Recording, name_map.NameMap]:
        """A kernel of five inputs, the last two of which the data never have, in two programs."""
        ours = run(Program(steps=1))
        kernel = replace(ours.variables[0], name="k", shape=(5, 2))
        seen = [
            np.float32([[1, 2], [3, 4], [0, 0], [0, 0], [0, 1]]),
            np.float32([[0, 0], [3, 5], [0, 0], [0, 0], [7, 8]]),
        ]
        order = [4, 2, 0, 1, 3]
        left = replace(ours, variables=(kernel,), gradients={n: {"k": one} for n, one in enumerate(seen, 1)})
        right = {n: {"x": one[order] * (2 if wrong else 1)} for n, one in enumerate(seen, 1)}
        theirs = replace(left, variables=(replace(kernel, name="x"),), gradients=right)
        return left, theirs, name_map.NameMap((("k", "x"),), "creation order")

    def test_rows_in_another_order_are_told_by_their_gradients(self) -> None:
        ours, theirs, known = self.rows()
        of = pairing.tables(ours, known, ())
        assert of == ("k",) and pairing.tables(ours, known, ("k",)) == ()
        found = pairing.orders(ours, theirs, known, of)
        order = found["k"].tolist()
        assert sorted(order) == [0, 1, 2, 3, 4] and (order[0], order[2], order[3]) == (4, 0, 1)
        weights = weight_map.WeightMap().with_rows([(ours.variables[0], theirs.variables[0])], found)
        values = {"k": np.arange(10, dtype=np.float32).reshape(5, 2)}
        made = weights.initial(values, {"k": "x"})
        np.testing.assert_array_equal(made["x"], values["k"][order])
        back = weights.translate(replace(theirs, gradients={1: {"x": values["k"][order]}}))
        np.testing.assert_array_equal(back.gradients[1]["x"], values["k"])
        assert weights.told() == ("k: its rows in another order in x",)

    def test_rows_that_agree_stay_and_other_gradients_are_no_order(self) -> None:
        ours, theirs, known = self.rows(wrong=True)
        assert pairing.orders(ours, theirs, known, ("k",)) == {}
        same = replace(theirs, gradients={n: {"x": one["k"]} for n, one in ours.gradients.items()})
        assert pairing.orders(ours, same, known, ("k",)) == {}

    @pytest.mark.parametrize(
        ("order", "wanted"),
        [
            ([-1, 0, 1, 2, 3, 4], [-1, 0, 1, 2, 3, 4]),  # StringLookup: the unknown word first
            ([0, 1, 2, 3, 4, -1], [0, 1, 2, 3, 4, -1]),
            ([-1, -1, 0, 1, 2, 3, 4], [-1, -1, 0, 1, 2, 3, 4]),
            ([4, -1, 0, 1], None),  # no row for each of the original's
            ([4, 1, -1, 0, 2, 3], [4, 1, -1, 0, 2, 3]),
        ],
    )
    def test_rows_that_only_the_migrated_program_has(self, order: list[int], wanted: list[int] | None) -> None:
        gradients = np.float32([[1, 2, 0, 0], [3, 4, 3, 5], [0, 1, 0, 0], [2, 0, 0, 2], [0, 1, 7, 8]])
        theirs = np.stack([gradients[row] if row >= 0 else np.zeros(4, np.float32) for row in order])
        found = pairing.more_rows(gradients, theirs)
        assert (None if found is None else found.tolist()) == wanted
        # One of them is used: that is another program.
        theirs[order.index(-1)] = 3.0
        assert pairing.more_rows(gradients, theirs) is None
        assert pairing.more_rows(0 * gradients, 0 * theirs) is None

    def test_like_rows_are_the_mean_of_all(self) -> None:
        made = pairing.with_like_rows({"k": np.float32([[1, 2], [3, 6]]), "b": np.ones(2)}, ["k"])
        assert made["k"].tolist() == [[2, 4], [2, 4]] and made["k"].dtype == np.float32 and made["b"].tolist() == [1, 1]

    def test_members_of_a_class_get_the_same_values(self) -> None:
        made = pairing.alike({"a": np.ones(2), "b": np.zeros(2), "c": np.zeros(1)}, [("a", "b")])
        assert made["b"].tolist() == [1, 1] and made["c"].tolist() == [0]


def test_a_rate_that_python_counts_for_tells_of_no_single_step() -> None:
    """Nothing tells a program by hand which step it takes, unless it keeps the count in a variable."""
    constant = run(Program(steps=12))
    falling = replace(constant, steps=tuple(replace(one, learning_rate=0.1 / one.number) for one in constant.steps))
    by_hand = replace(constant, steps=tuple(replace(one, learning_rate=None) for one in constant.steps))
    assert points._counts_elsewhere(falling, by_hand)
    assert not points._counts_elsewhere(constant, by_hand)
    assert not points._counts_elsewhere(falling, replace(by_hand, own_counts=1))
    assert not points._counts_elsewhere(falling, falling)


class TestEdges:
    """A step that differs where rounding decides whether a relu is open, and steps that differ everywhere."""

    LOOKS = (points.Point(1, 0, ()), *(points.Point(3, 2, (), beside=look) for look in (1, 2, 3)))

    def part(self, *outside: int, judged: int = 4) -> l4b_single_steps.Part:
        control = Control("", True, 9.0)
        far, every = frozenset(outside), frozenset(range(1, judged + 1))
        return l4b_single_steps.Part((1, 3), (), None, control, (), outside=far, judged=every)

    def test_beside_an_edge_the_programs_agree(self) -> None:
        places = [[2, 3, 4]]
        assert l4b_single_steps.on_an_edge(self.part(), places)
        assert l4b_single_steps.on_an_edge(self.part(3), places)  # another edge
        assert not l4b_single_steps.on_an_edge(self.part(2, 3), places)
        assert not l4b_single_steps.on_an_edge(self.part(2, 3, 4), places)
        assert not l4b_single_steps.on_an_edge(self.part(judged=3), places)  # a step that was not taken
        assert not l4b_single_steps.on_an_edge(None, places)

    def test_which_steps_are_looked_at_once_more(self) -> None:
        taken = [points.Point(1, 0, ()), points.Point(3, 2, ()), points.Point(11, 10, ()), points.Point(61, 10, ())]
        looks = points._looks(taken, self.part(2))
        assert looks == self.LOOKS
        assert points._looks(taken, self.part(2, 3)) == ()  # a difference that shows in as many as do not
        assert points._looks(taken, self.part(1)) == ()  # of its own start the program has values itself
        assert points._looks(looks, self.part(2)) == ()  # once

    def test_weights_beside_others_are_the_same_in_both_programs(self) -> None:
        values = {"w": np.linspace(-2, 2, 101, dtype=np.float32), "count": np.arange(3)}
        once, again, other = (points._stressed(values, self.LOOKS[place]) for place in (1, 1, 2))
        assert np.array_equal(once["w"], again["w"]) and np.array_equal(once["count"], values["count"])
        assert not np.array_equal(once["w"], other["w"])
        moved = np.abs(once["w"] - values["w"])
        assert once["w"].dtype == np.float32 and 0 < moved.max() <= 2.1 * l4b_single_steps.BESIDE
        assert points._stressed(values, self.LOOKS[0])["w"] is values["w"]

    def test_a_step_on_an_edge_is_left_out_and_said(self) -> None:
        far = part_of(Program(optimizer="momentum", steps=1, learning_rate=0.2))
        assert far.different is not None and (far.outside, far.judged) == (frozenset({2}), frozenset({1, 2}))
        assert not far.few_differ
        level = judged(Program(optimizer="momentum", steps=1, learning_rate=0.2), without=(2,))
        assert level.status is Status.EQUIVALENT
        assert level.summary.startswith("single steps 1 agree")
        assert [note for note in level.notes if "rounding decides a branch there" in note]
