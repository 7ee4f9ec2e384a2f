"""L6 on series whose error is known: losses that depend on rate times step alone, so that another rate is another
speed, with noise of a chosen size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import l6_power
from migrator.harness.protocol import l6_asynchronous as l6
from migrator.harness.protocol.results import AsyncEvidence, LevelResult, Reason, Status

STEPS = 400
QUIET = 0.002
Curve = Callable[[np.ndarray, float], np.ndarray]


def falling(steps: np.ndarray, rate: float) -> np.ndarray:
    return 0.3 + 1.0 / (1.0 + rate * steps / 30.0)


def converging(steps: np.ndarray, rate: float) -> np.ndarray:
    """Nothing is left of the rate's effect in the second half."""
    return 0.3 + np.exp(-rate * steps / 20.0)


def make(
    k: int = 8,
    migrated: float | Curve = 1.0,
    *,
    again: float = 1.0,
    noise: float = QUIET,
    curve: Curve = falling,
    steps: int = STEPS,
    seed: int = 0,
) -> list[l6.Seed]:
    """`migrated` is the factor of its learning rate, or the curve that it follows instead."""
    random = np.random.default_rng(seed)
    at = np.arange(1, steps + 1)

    def run(offset: float, rate: float, follow: Curve = curve) -> np.ndarray:
        # Neighbouring losses are off together, as they are when the weights are.
        slow = np.convolve(random.normal(size=steps + 19), np.ones(20) / math.sqrt(20), "valid")
        return offset + follow(at, rate) + noise * (slow + random.normal(size=steps))

    seeds = []
    for _ in range(k):
        offset = 0.1 * random.normal()
        theirs = run(offset, migrated) if isinstance(migrated, float) else run(offset, 1.0, migrated)
        seeds.append(l6.Seed(run(offset, 1.0), run(offset, again), run(offset, 1.2), run(offset, 0.8), theirs))
    return seeds


def fair(k: int, **shares: dict[str, int]) -> list[dict[str, dict[str, int]]]:
    half = {"chief:0": STEPS // 2 + 3, "worker:0": STEPS // 2 - 3}
    return [{name: shares.get(name, half) for name in l6.RUNS} for _ in range(k)]


def judge(seeds: list[l6.Seed], promised: float = 0.05) -> tuple[LevelResult, AsyncEvidence | None]:
    return l6.judge(seeds, fair(len(seeds)), promised)


def evidence_of(seeds: list[l6.Seed], promised: float = 0.05) -> tuple[LevelResult, AsyncEvidence]:
    level, evidence = judge(seeds, promised)
    assert evidence is not None, level.summary
    return level, evidence


def change(seed: l6.Seed, run: str, edit: Callable[[np.ndarray], np.ndarray]) -> l6.Seed:
    return replace(seed, **{run: edit(np.array(getattr(seed, run)))})


# -- what it should say ------------------------------------------------------------------------------------------


def test_the_same_training_is_equivalent() -> None:
    level, evidence = evidence_of(make())
    assert (level.id, level.status, level.reason, level.differences) == ("L6", Status.EQUIVALENT, None, ())
    assert level.control is not None and level.control.detected
    assert evidence.control_estimate == pytest.approx(math.log(1.2), rel=0.1)
    assert -evidence.margin < evidence.ci90[0] < evidence.estimate < evidence.ci90[1] < evidence.margin
    assert evidence.margin == pytest.approx(0.9 * math.log(1.05))
    assert evidence.p_equivalent < 0.05 < evidence.p_different
    assert evidence.seeds_needed is None
    assert evidence.estimate == pytest.approx(np.mean(evidence.per_seed)) and len(evidence.per_seed) == evidence.k == 8
    assert level.ratio is not None and level.tolerance is not None and level.ratio <= level.tolerance


def test_windows_cover_the_run_and_double() -> None:
    _, evidence = evidence_of(make())
    assert [(w.first_step, w.last_step) for w in evidence.windows] == [
        (1, 13), (14, 25), (26, 50), (51, 100), (101, 200), (201, 400)
    ]  # fmt: skip
    assert all(w.passed for w in evidence.windows if w.sensitive)
    assert any(w.sensitive for w in evidence.windows)


@pytest.mark.parametrize("rate", [1.05, 0.95, 1.2, 0.8])
def test_another_rate_is_different_and_told_in_its_own_unit(rate: float) -> None:
    level, evidence = evidence_of(make(migrated=rate))
    assert (level.status, level.reason) == (Status.DIFFERENT, Reason.VALUE_DIFFERS), level.summary
    assert evidence.estimate == pytest.approx(math.log(rate), rel=0.15)
    assert evidence.p_different < 0.01 and evidence.p_equivalent > 0.05
    assert level.excluded is None
    (first,) = level.differences
    assert isinstance(first.original, float) and isinstance(first.migrated, float)
    assert (first.migrated < first.original) == (rate > 1.0)


def test_a_rate_one_per_cent_off_is_within_the_promise_and_said_not_to_be_excluded() -> None:
    level, evidence = evidence_of(make(migrated=1.01))
    assert level.status is Status.EQUIVALENT
    assert level.excluded is not None and level.excluded.startswith("an error like a learning rate ")
    shown = float(level.excluded.split("rate ")[1].split("%")[0])
    assert shown >= 100 * math.expm1(max(map(abs, evidence.ci90)) / 0.9) > 1.0
    assert shown <= 5.0
    assert "; 1% is not" in level.excluded or "; 2% is not" in level.excluded


def test_a_better_promise_needs_more_seeds_and_those_named_suffice() -> None:
    noise = 0.02
    level, evidence = evidence_of(make(5, noise=noise))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.INSUFFICIENT_SEEDS), level.summary
    assert evidence.seeds_needed is not None and evidence.seeds_needed > 5
    assert f"needs about {evidence.seeds_needed} seeds" in level.summary
    # The spread of five seeds is itself uncertain, hence twice the number.
    more, _ = judge(make(2 * evidence.seeds_needed, noise=noise, seed=1))
    assert more.status is Status.EQUIVALENT, more.summary


@pytest.mark.parametrize("k", [0, 1, 2])
def test_fewer_than_three_seeds_show_nothing(k: int) -> None:
    level, evidence = judge(make(k))
    assert (level.status, level.reason, evidence) == (Status.INCONCLUSIVE, Reason.INSUFFICIENT_SEEDS, None)
    assert "needs about 8" in level.summary


def test_a_program_that_repeats_itself_bit_for_bit_is_judged_without_noise() -> None:
    level, evidence = evidence_of(make(noise=0.0))
    assert level.status is Status.EQUIVALENT
    assert evidence.ci90 == pytest.approx((0.0, 0.0), abs=1e-9)
    assert level.excluded == "an error like a learning rate 0.01% off is excluded"
    rounded, _ = judge([change(s, "migrated", lambda x: x.astype(np.float32)) for s in make(noise=0.0)])
    assert rounded.status is Status.EQUIVALENT
    assert judge(make(migrated=1.05, noise=0.0))[0].status is Status.DIFFERENT


@pytest.mark.parametrize(("factor", "status"), [(1 + 3e-7, Status.EQUIVALENT), (1 + 1e-4, Status.DIFFERENT)])
def test_rounding_is_no_difference_where_there_is_no_other_noise(factor: float, status: Status) -> None:
    def constant_later(at: np.ndarray, rate: float) -> np.ndarray:
        return np.where(at > 50, 0.3, converging(at, rate))

    seeds = [change(s, "migrated", lambda x: factor * x) for s in make(curve=constant_later, noise=0.0)]
    level, evidence = evidence_of(seeds)
    assert math.isnan(evidence.windows[-1].estimate), "the rate must have no effect in the last window"
    assert level.status is status


# -- errors that are not like another rate -----------------------------------------------------------------------


def test_a_difference_where_the_rate_has_no_effect_is_not_passed_over() -> None:
    def ends_higher(at: np.ndarray, rate: float) -> np.ndarray:
        return converging(at, rate) + 0.01 * (at > STEPS / 2)

    level, evidence = evidence_of(make(migrated=ends_higher, curve=converging))
    assert max(map(abs, evidence.ci90)) < evidence.margin, "all windows together must not have seen it"
    assert not evidence.windows[-1].sensitive
    assert level.status is Status.DIFFERENT
    assert "steps 201 to 400 depart by themselves" in level.summary
    assert level.differences[0].step == 201
    assert judge(make(curve=converging))[0].status is Status.EQUIVALENT


def test_errors_that_cancel_over_the_run_are_not_equivalent() -> None:
    def early_fast(at: np.ndarray, rate: float) -> np.ndarray:
        return falling(at, rate * np.where(at < 60, 1.1, 0.87))

    level, evidence = evidence_of(make(migrated=early_fast))
    signs = {w.estimate > 0 for w in evidence.windows if w.sensitive and not w.passed}
    assert signs == {True, False}, "this series must have errors of both signs"
    assert level.status is Status.DIFFERENT


def test_a_window_noisier_than_the_null_promised_keeps_it_open() -> None:
    seeds = [
        change(s, "migrated", lambda x, sign=(-1) ** i: x + sign * 0.05 * (np.arange(STEPS) < 12))
        for i, s in enumerate(make())
    ]
    level, evidence = evidence_of(seeds)
    assert max(map(abs, evidence.ci90)) < evidence.margin, "all windows together must not have seen it"
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.INSUFFICIENT_SEEDS)
    assert "steps 1 to 13 by themselves do not fit" in level.summary
    # The spread of the whole would do with fewer than 8.
    assert evidence.seeds_needed == 16
    assert level.excluded is not None


# -- what keeps it from saying anything --------------------------------------------------------------------------


@pytest.mark.parametrize("migrated", [1.0, 1.2])
def test_an_original_that_differs_from_itself_settles_nothing(migrated: float) -> None:
    level, evidence = evidence_of(make(migrated=migrated, again=1.1))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.ENVIRONMENT_UNSTABLE)
    assert abs(evidence.null_estimate) > evidence.margin
    assert level.excluded is None and level.differences == ()


def test_a_rate_without_effect_is_no_control() -> None:
    flat = make(curve=lambda at, rate: np.full(len(at), 0.5), noise=0.0)
    level, evidence = judge(flat)
    assert (level.status, level.reason, evidence) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED, None)
    noisy, _ = judge(make(12, curve=lambda at, rate: np.full(len(at), 0.5), noise=0.01))
    assert noisy.status is Status.INCONCLUSIVE


def test_a_promise_as_wide_as_the_control_is_not_kept() -> None:
    level, evidence = evidence_of(make(), promised=0.3)
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED)
    assert level.control is not None and not level.control.detected
    assert evidence.control_estimate < evidence.margin
    assert level.excluded is None


@pytest.mark.parametrize("run", l6.RUNS)
def test_one_trainer_with_nearly_all_steps_is_degenerate(run: str) -> None:
    shares = fair(8)
    shares[5][run] = {"chief:0": 361, "worker:0": 39}
    level, evidence = l6.judge(make(), shares)
    assert (level.status, level.reason, evidence) == (Status.INCONCLUSIVE, Reason.DEGENERATE_PARTICIPATION, None)
    assert f"{run!r} of seed 6" in level.summary and "361 of 400" in level.summary
    shares[5][run] = {"chief:0": 360, "worker:0": 40}
    assert l6.judge(make(), shares)[0].status is Status.EQUIVALENT


@pytest.mark.parametrize("counts", [{}, {"chief:0": 0, "worker:0": 0}])
def test_unrecorded_participation_never_passes(counts: dict[str, int]) -> None:
    level, _ = l6.judge(make(), fair(8, again=counts))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.MISSING_VALUES)


def test_a_single_trainer_is_degenerate() -> None:
    level, _ = l6.judge(make(), fair(8, migrated={"chief:0": STEPS}))
    assert level.reason is Reason.DEGENERATE_PARTICIPATION


def test_steps_shared_out_differently_are_noted() -> None:
    level, _ = l6.judge(make(), fair(8, migrated={"chief:0": 280, "worker:0": 120}))
    assert any("51% of the steps in the original and 70%" in note for note in level.notes)
    assert not any("participation" in note for note in judge(make())[0].notes)


# -- series that are not whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("run", l6.RUNS)
def test_a_loss_that_is_no_number_never_passes(run: str, bad: float) -> None:
    seeds = make()
    seeds[3] = change(seeds[3], run, lambda x: np.concatenate([x[:99], [bad], x[100:]]))
    level, evidence = judge(seeds)
    assert level.status is (Status.DIFFERENT if run == "migrated" else Status.INCONCLUSIVE)
    assert (level.reason, evidence) == (Reason.NON_FINITE, None)
    assert "step 100" in level.summary and "seed 4" in level.summary


@pytest.mark.parametrize("cut", [3, 100, STEPS])
@pytest.mark.parametrize("run", l6.RUNS)
def test_a_short_series_never_passes(run: str, cut: int) -> None:
    seeds = make()
    seeds[2] = change(seeds[2], run, lambda x: x[: len(x) - cut])
    level, evidence = judge(seeds)
    assert level.status is (Status.DIFFERENT if run == "migrated" else Status.INCONCLUSIVE)
    assert (level.reason, evidence) == (Reason.MISSING_VALUES, None)


def test_a_migrated_program_that_goes_on_is_different() -> None:
    seeds = [change(s, "migrated", lambda x: np.concatenate([x, x[-3:]])) for s in make()]
    assert judge(seeds)[0].status is Status.DIFFERENT


@pytest.mark.parametrize("run", l6.RUNS)
def test_the_steps_under_way_at_the_end_may_be_missing(run: str) -> None:
    seeds = make()
    seeds[2] = change(seeds[2], run, lambda x: x[:-2])
    level, evidence = evidence_of(seeds)
    assert level.status is Status.EQUIVALENT
    assert evidence.steps == STEPS - 2


def test_runs_of_a_few_steps_never_pass() -> None:
    assert judge(make(steps=31))[0].reason is Reason.MISSING_VALUES
    assert judge(make(steps=32))[1] is not None


@pytest.mark.parametrize("promised", [0.0, -0.05, 1.0, math.nan])
def test_a_promise_must_be_one(promised: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        judge(make(), promised)


def test_every_seed_has_its_participation() -> None:
    with pytest.raises(ValueError, match="8 seeds and the participation of 7"):
        l6.judge(make(), fair(7))


def test_series_are_flat() -> None:
    with pytest.raises(ValueError, match="'slower'"):
        judge([change(s, "slower", lambda x: x[:, None]) for s in make()])


# -- properties --------------------------------------------------------------------------------------------------

SOME = make(6, migrated=1.02, noise=0.01, seed=3)


def _status(found: tuple[LevelResult, AsyncEvidence | None]) -> tuple[Any, ...]:
    level, evidence = found
    assert evidence is not None
    return level.status, level.reason, [(w.sensitive, w.passed) for w in evidence.windows]


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-10.0, 10.0))
def test_the_unit_and_the_origin_of_the_loss_do_not_matter(scale: float, shift: float) -> None:
    moved = [l6.Seed(*(scale * (np.array(getattr(s, run)) + shift) for run in l6.RUNS)) for s in SOME]
    assert _status(judge(moved)) == _status(judge(SOME))
    assert evidence_of(moved)[1].estimate == pytest.approx(evidence_of(SOME)[1].estimate, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(6)))
def test_the_order_of_the_seeds_does_not_matter(order: list[int]) -> None:
    found = evidence_of([SOME[i] for i in order])[1]
    expected = evidence_of(SOME)[1]
    assert found.estimate == pytest.approx(expected.estimate)
    assert found.null_ci90 == pytest.approx(expected.null_ci90)
    assert found.per_seed == pytest.approx([expected.per_seed[i] for i in order])


@settings(max_examples=40, deadline=None)
@given(
    run=st.sampled_from(l6.RUNS),
    row=st.integers(0, 5),
    step=st.integers(0, STEPS - 1),
    bad=st.sampled_from([math.nan, math.inf, -math.inf]),
)
def test_no_place_hides_a_loss_that_is_no_number(run: str, row: int, step: int, bad: float) -> None:
    seeds = list(SOME)
    seeds[row] = change(seeds[row], run, lambda x: np.where(np.arange(STEPS) == step, bad, x))
    level, evidence = judge(seeds)
    assert level.status is not Status.EQUIVALENT and evidence is None


@settings(max_examples=40, deadline=None)
@given(offset=st.floats(0.02, 5.0), sign=st.sampled_from([-1.0, 1.0]), k=st.integers(6, 10))
def test_a_loss_that_is_off_throughout_is_different(offset: float, sign: float, k: int) -> None:
    seeds = [change(s, "migrated", lambda x: x + sign * offset) for s in make(k)]
    level, _ = judge(seeds)
    assert level.status is Status.DIFFERENT, level.summary


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(3, 8), noise=st.floats(0.0, 1.0), rate=st.floats(0.5, 2.0))
def test_equivalent_always_means_what_it_promises(seed: int, k: int, noise: float, rate: float) -> None:
    level, evidence = judge(make(k, migrated=rate, noise=noise, seed=seed, steps=64))
    if level.status is not Status.EQUIVALENT:
        assert level.reason is not None
        return
    assert evidence is not None
    assert max(map(abs, evidence.ci90)) < evidence.margin and max(map(abs, evidence.null_ci90)) < evidence.margin
    assert all(w.passed for w in evidence.windows if w.sensitive)
    assert level.control is not None and level.control.detected
    assert evidence.p_equivalent < 0.05
    assert level.excluded is not None and float(level.excluded.split("rate ")[1].split("%")[0]) <= 5.0


# -- how often ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spread", "promised", "reference"),
    [(0.02, 0.01, 55), (0.026, 0.01, 93), (0.02, 0.02, 15), (0.026, 0.02, 25), (0.02, 0.05, 4), (0.026, 0.05, 6)],
)
def test_seeds_needed_are_those_of_the_reference(spread: float, promised: float, reference: int) -> None:
    margin = l6.margin_of(promised)
    needed = l6.seeds_needed(spread, margin)
    assert needed is not None and abs(needed - reference) <= 1
    assert l6.power(needed, spread, margin) >= 0.9 > l6.power(needed - 1, spread, margin)


def test_no_number_of_seeds_makes_up_for_any_noise() -> None:
    assert l6.seeds_needed(1.0, l6.margin_of(0.05)) is None
    assert l6.seeds_needed(0.0, l6.margin_of(0.05)) == 3


def test_power_is_that_of_drawn_seeds() -> None:
    random, margin, k, spread = np.random.default_rng(0), l6.margin_of(0.05), 5, 0.03
    drawn = spread * random.normal(size=(20_000, k))
    half = 2.1318 * drawn.std(axis=1, ddof=1) / math.sqrt(k)
    assert l6.power(k, spread, margin) == pytest.approx(np.mean(np.abs(drawn.mean(axis=1)) + half < margin), abs=0.01)


def test_what_is_the_same_is_hardly_ever_called_different() -> None:
    found = [judge(make(5, noise=0.01, seed=seed))[0].status for seed in range(100)]
    assert found.count(Status.DIFFERENT) <= 4
    assert found.count(Status.INCONCLUSIVE) >= 15, "too quiet to tempt it"


def test_the_null_is_no_quieter_for_few_seeds_than_for_many() -> None:
    """Weights that were made from the very null they judge would halve it."""

    def spread_of_one_seed(k: int, draws: int) -> float:
        nulls = [evidence_of(make(k, noise=0.004, seed=seed))[1].null_estimate for seed in range(draws)]
        return math.sqrt(k * np.mean(np.square(nulls)))

    assert spread_of_one_seed(3, 120) > 0.9 * spread_of_one_seed(16, 40)


def test_simulated_asynchronous_training_is_judged_as_it_should_be() -> None:
    world = l6_power.World.make(runs=40, steps=200, trainers=2, variation=0.5, learning_rate=0.2, seed=1)
    conditions = {name: l6_power.MIGRATED[name] for name in ("same", "lr 5%", "lr 20%")}
    runs = l6_power.simulate(world, 200, np.random.default_rng(2), conditions)
    found = {name: l6_power.verdicts(runs, name, 200, 8, 50, np.random.default_rng(3)) for name in conditions}
    assert found["same"]["EQUIVALENT"] >= 45 and found["same"]["DIFFERENT"] <= 2
    for name in ("lr 5%", "lr 20%"):
        assert found[name]["EQUIVALENT"] == 0 and found[name]["DIFFERENT"] >= 45
