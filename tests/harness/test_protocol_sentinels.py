"""The known-bad versions of every run, floors of replicates that were ended early, and originals that do not repeat."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import ladder, name_map, tolerance
from migrator.harness.protocol.measurements import LOSS, STATE
from migrator.harness.protocol.results import Control, LevelResult, MutantOutcome, Reason, Status
from migrator.harness.recording import Recording, beginning

ORIGINAL = Program()
MIGRATED = migrated_of(ORIGINAL)
# Rounds its sums in another order: another program in its last bits, and inside every tolerance.
BARELY = migrated_of(ORIGINAL, float64_sums=True)
DATA = LevelResult("L2", "Same data", Status.EQUIVALENT, "same", control=Control("without the last", True))


def replicates(program: Program, steps: int | None = None) -> list[Recording]:
    shorter = program if steps is None else replace(program, steps=steps)
    return [
        run(shorter, ulp_seed=plan["ulp_seed"], learning_rate_factor=plan["learning_rate_factor"])  # type: ignore[arg-type]
        for plan in tolerance.replicate_plans(run(program).optimizer)
    ]


def bad(program: Program, changed: int = 1) -> Recording:
    """A sentinel's short run."""
    return replace(run(replace(program, steps=2)), mutation=changed)


def outcomes(runs: dict[str, Recording], control: Recording | None = None) -> dict[str, MutantOutcome]:
    ours = run(ORIGINAL)
    names = name_map.build(ours.variables, run(MIGRATED).variables)
    limits = tolerance.derive(ours, replicates(ORIGINAL))
    found = ladder.sentinels(ours, run(MIGRATED), control, runs, names, limits, DATA)
    assert len(found) == 4
    return {outcome.id: outcome for outcome in found}


class TestSentinels:
    def test_a_summed_loss_is_killed_by_the_first_loss(self) -> None:
        found = outcomes({ladder.SUM_FOR_MEAN: bad(migrated_of(ORIGINAL, loss_scale="sum"))})[ladder.SUM_FOR_MEAN]
        assert (found.status, found.killed_at) == ("killed", "L3")
        assert found.ratio is not None and found.ratio > 1000

    def test_another_rate_is_killed_by_the_first_update(self) -> None:
        control = run(MIGRATED, learning_rate_factor=tolerance.CONTROL_FACTOR)
        found = outcomes({}, control)["learning-rate-x1.01"]
        assert (found.status, found.killed_at) == ("killed", "L4")

    def test_the_data_is_judged_by_the_control_of_l2(self) -> None:
        assert outcomes({})["last-batch-dropped"].killed_at == "L2"

    def test_what_changed_a_little_is_missed_and_never_killed(self) -> None:
        assert outcomes({ladder.SUM_FOR_MEAN: bad(BARELY)})[ladder.SUM_FOR_MEAN].status == "missed"

    def test_what_changed_no_number_is_not_exercised(self) -> None:
        assert outcomes({ladder.SUM_FOR_MEAN: bad(MIGRATED)})[ladder.SUM_FOR_MEAN].status == "not_exercised"

    def test_a_sentinel_that_changed_no_number_leaves_its_level_another_control(self) -> None:
        ours, theirs = run(ORIGINAL), run(MIGRATED)
        control = run(MIGRATED, learning_rate_factor=tolerance.CONTROL_FACTOR)
        names = name_map.build(ours.variables, theirs.variables)
        limits = tolerance.derive(ours, replicates(ORIGINAL))
        levels = ladder.numbers(ours, theirs, control, {ladder.SUM_FOR_MEAN: bad(MIGRATED)}, names, limits)
        assert {level.status for level in levels} == {Status.EQUIVALENT}

    def test_nothing_to_change_is_not_applicable(self) -> None:
        found = outcomes({ladder.UPDATES_MISSING: bad(MIGRATED, changed=0)})
        assert found[ladder.UPDATES_MISSING].status == "not_applicable"

    def test_updates_of_averages_are_left_out_only_where_there_are_averages(self) -> None:
        without = run(MIGRATED)
        assert ladder.run_sentinels(without) == (ladder.SUM_FOR_MEAN,)
        average = replace(without.variables[0], name="moving_mean", trainable=False)
        with_averages = replace(without, variables=(*without.variables, average))
        assert ladder.run_sentinels(with_averages) == ladder.RUN_SENTINELS
        ours = run(ORIGINAL)
        names = name_map.build(ours.variables, without.variables)
        limits = tolerance.derive(ours, replicates(ORIGINAL))
        for recording, status in ((without, "not_applicable"), (with_averages, "not_exercised")):
            found = {one.id: one for one in ladder.sentinels(ours, recording, None, {}, names, limits, DATA)}
            assert (found[ladder.UPDATES_MISSING].status, found[ladder.SUM_FOR_MEAN].status) == (
                status,
                "not_exercised",
            )

    def test_a_run_that_failed_shows_nothing(self) -> None:
        found = outcomes({})
        assert {found[name].status for name in (ladder.SUM_FOR_MEAN, "learning-rate-x1.01")} == {"not_exercised"}

    def test_a_level_whose_sentinel_was_not_caught_is_inconclusive(self) -> None:
        ours, theirs = run(ORIGINAL), run(MIGRATED)
        control = run(MIGRATED, learning_rate_factor=tolerance.CONTROL_FACTOR)
        names = name_map.build(ours.variables, theirs.variables)
        limits = tolerance.derive(ours, replicates(ORIGINAL))
        for name, level in ((ladder.SUM_FOR_MEAN, "L3"), (ladder.UPDATES_MISSING, "L4")):
            levels = ladder.numbers(ours, theirs, control, {name: bad(BARELY)}, names, limits)
            statuses = {one.id: (one.status, one.reason) for one in levels}
            assert statuses.pop(level) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED)
            assert {status for status, _ in statuses.values()} == {Status.EQUIVALENT}


class TestLimitedReplicates:
    def test_steps_that_no_replicate_reached_have_no_floor(self) -> None:
        limits = tolerance.derive(run(ORIGINAL), replicates(ORIGINAL, steps=14), limited=True)
        losses = [step for quantity, step in limits.floors if quantity.family == LOSS]
        assert max(losses) == 14
        assert all(math.isfinite(floor) for floor in limits.floors.values())
        assert limits.stable(tolerance.TRAJECTORY)
        assert {step for quantity, step in limits.floors if quantity.family == STATE} == {1, 2, 10}

    def test_a_replicate_that_ended_early_by_itself_is_no_measure(self) -> None:
        limits = tolerance.derive(run(ORIGINAL), replicates(ORIGINAL, steps=14))
        assert not limits.stable(tolerance.TRAJECTORY)
        assert any(math.isinf(floor) for floor in limits.floors.values())

    def test_one_of_several_that_ended_early_is_no_measure_either(self) -> None:
        several = [*replicates(ORIGINAL)[:5], *replicates(ORIGINAL, steps=14)[:1]]
        assert not tolerance.derive(run(ORIGINAL), several, limited=True).stable(tolerance.TRAJECTORY)

    def test_the_beginning_of_a_recording_is_that_of_a_shorter_run(self) -> None:
        whole, short = beginning(run(ORIGINAL), 10), run(replace(ORIGINAL, steps=10))
        assert [step.loss for step in whole.steps] == [step.loss for step in short.steps]
        assert whole.participation == short.participation
        assert set(whole.states) == set(short.states) == {1, 2, 10}


class TestRepeating:
    def test_an_original_that_repeats_itself(self) -> None:
        assert tolerance.unrepeated(run(ORIGINAL), run(ORIGINAL)) is None

    def test_rounding_is_no_randomness(self) -> None:
        assert tolerance.unrepeated(run(ORIGINAL), run(replace(ORIGINAL, float64_sums=True))) is None

    def test_later_steps_may_part(self) -> None:
        ours = run(ORIGINAL)
        later = replace(ours, steps=tuple(replace(s, loss=s.loss + (s.number > 2)) for s in ours.steps))
        assert tolerance.unrepeated(ours, later) is None

    def test_single_steps_are_asked_for_by_their_places(self) -> None:
        ours = run(ORIGINAL)
        later = replace(ours, steps=tuple(replace(s, loss=s.loss + (s.number == 5)) for s in ours.steps))
        assert tolerance.unrepeated(ours, later, {1, 2, 4}) is None
        assert "of step 5" in (tolerance.unrepeated(ours, later, {1, 5}) or "")

    @pytest.mark.parametrize("step", [1, 2])
    def test_the_first_thing_that_moves_is_named(self, step: int) -> None:
        ours = run(ORIGINAL)
        noisy = replace(
            ours, steps=tuple(replace(s, loss=s.loss * (1.001 if s.number == step else 1.0)) for s in ours.steps)
        )
        found = tolerance.unrepeated(ours, noisy)
        assert found is not None and f"loss of trainer 0 of step {step}" in found

    def test_a_missing_number_does_not_repeat(self) -> None:
        ours = run(ORIGINAL)
        states = {1: {name: value for name, value in ours.states[1].items() if np.ndim(value) > 1}}
        assert tolerance.unrepeated(ours, replace(ours, states={**ours.states, **states})) is not None
