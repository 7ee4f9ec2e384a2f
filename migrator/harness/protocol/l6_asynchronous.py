"""L6: the same training in a free-running cluster, as far as paired seeds can show.

Trainers that run freely never take the same steps twice, so nothing here can agree number by number. For each seed
the original runs twice, once with its learning rate 20 % higher and once 20 % lower, and the migrated program once,
all from the same initial weights and data. Window by window the mean loss of the migrated program is compared with
the mean of the two equal runs, and the difference is told in the unit that matters: how wrong would the original's
learning rate have to be to do this? The runs with the other rates calibrate that unit and are the control; the two
equal runs give the noise.

Two choices were measured (benchmarks/l6_power.py, 2 trainers, 1000 steps). Windows with hard ends put a batch that
comes a step later into another window; ends that fade in and out halve the noise (0.0159 to 0.0081 in ln(rate) for
one seed), which is worth four times the seeds. And the weights of the windows come from the difference of the two
equal runs: the migrated program is compared with their mean, which is independent of it, so that weights from the same
seeds do not flatter (one seed's spread 0.0085 against 0.0086 on seeds not used, k = 8). They would flatter the
null (0.0075 against 0.0094, and 0.0063 against 0.0118 for k = 3), so the null of each seed is weighted by the
others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from migrator.harness.protocol import tolerance
from migrator.harness.protocol.l0_runs import under_way
from migrator.harness.protocol.results import (
    AsyncEvidence,
    AsyncWindow,
    Control,
    Divergence,
    LevelResult,
    Reason,
    Status,
)

ID, TITLE = "L6", "Same asynchronous behaviour"
Array = npt.NDArray[np.float64]
# Name of the run ("original", "again", ...) -> steps that each task took in it.
Participation = Mapping[str, Mapping[str, int]]

FASTER, SLOWER = 1.2, 0.8
CONTROL_NAME = "the original with a learning rate 20% higher"
RECOMMENDED_SEEDS = 8
# Two seeds leave one degree of freedom: the interval would reach 6.3 standard errors to either side.
FEWEST_SEEDS = 3
FEWEST_STEPS = 32
GREATEST_SHARE = 0.9
# One trainer at work instead of two reads like a rate 8 to 15 % higher (equivalence.md §2.4), a share of 1 instead of
# 0.5: a tenth of share is an error of one to three per cent.
UNEVEN_SHARES = 0.1
# The effect of a rate is not quite straight. Without this factor, false verdicts of equivalence at the margin rose to
# 23 % (equivalence.md §2.4).
CURVATURE = 0.9
# Two one-sided tests at 5 % are the same as a 90 % interval inside the margin.
CONFIDENCE = 0.95
SIGNIFICANT = 0.01
POWER = 0.9
# A window has to pass only if it would with this probability were there no difference, the noise being as the null
# shows it. Several windows have to pass at once: with 0.9, a good migration at k = 8 was INCONCLUSIVE in 12 % of cases.
SENSITIVE = 0.99
_CAUSES = (
    "another effective learning rate: momentum, reduction, scaling of the rate with the number of trainers",
    "another batch size, data order or regulariser",
    "another number of trainers really at work, or gradients of another age",
)


@dataclass(frozen=True)
class Seed:
    """The losses of five runs from the same initial weights and data, each in the order of the global step with the
    steps of all trainers merged. `faster` and `slower` are the original with its learning rate times 1.2 and 0.8.
    """

    original: npt.ArrayLike
    again: npt.ArrayLike
    faster: npt.ArrayLike
    slower: npt.ArrayLike
    migrated: npt.ArrayLike


RUNS = ("original", "again", "faster", "slower", "migrated")


@dataclass(frozen=True)
class _Comparison:
    """One program against the original. `values` are the errors in ln(rate), one per seed; `departing` are the
    positions of windows whose difference is no chance and does not fit inside the margin, the plainest first.
    """

    values: Array
    estimate: float
    half: float
    p_equivalent: float
    p_different: float
    windows: tuple[AsyncWindow, ...]
    departing: tuple[int, ...]
    status: Status

    @property
    def ci90(self) -> tuple[float, float]:
        return self.estimate - self.half, self.estimate + self.half

    @property
    def spread(self) -> float:
        return float(np.std(self.values, ddof=1))


def judge(
    seeds: Sequence[Seed], participation: Sequence[Participation], promised: float = 0.05
) -> tuple[LevelResult, AsyncEvidence | None]:
    """Judges the migrated program from paired seeds; the evidence is None if it does not come to a comparison.

    `participation` holds, for each seed, the steps that each task took in each of the five runs. `promised` is
    the relative error of the learning rate that EQUIVALENT excludes. EQUIVALENT needs the 90 % interval of the
    error inside ±0.9 ln(1 + promised), for all windows weighed together and for every window that is sensitive;
    the same must hold of the original against itself, and the interval of the control must lie beyond the margin.
    Raises ValueError unless 0 < promised < 1, there is one participation per seed and each series is flat.
    """
    if not 0.0 < promised < 1.0:
        raise ValueError(f"the promised error has to lie between 0 and 1, not {promised}")
    if len(participation) != len(seeds):
        raise ValueError(f"{len(seeds)} seeds and the participation of {len(participation)}")
    k = len(seeds)
    if k < FEWEST_SEEDS:
        summary = f"{k} seed{'' if k == 1 else 's'} cannot show how much runs differ by chance"
        return _inconclusive(Reason.INSUFFICIENT_SEEDS, f"{summary}: needs about {RECOMMENDED_SEEDS}"), None
    series = [_series(seed) for seed in seeds]
    unfit = _unfit(series, participation)
    if unfit is not None:
        return unfit, None
    steps = min(len(losses) for runs in series for losses in runs.values())
    table = np.stack([[runs[name][:steps] for runs in series] for name in RUNS])
    means = dict(zip(RUNS, table @ _windows(steps).T, strict=True))
    found = _compare_all(means, steps, margin_of(promised))
    if found is None:
        summary = f"{CONTROL_NAME} trains no differently, so that no error could be seen either"
        return _inconclusive(Reason.CONTROL_NOT_DETECTED, summary, Control(CONTROL_NAME, False)), None
    level, evidence = _conclude(*found, means, steps, promised)
    return replace(level, notes=(*level.notes, *_uneven(participation))), evidence


def margin_of(promised: float) -> float:
    """The bound on an error in ln(rate) that keeps a promise such as 0.05 (a rate 5 % off)."""
    return CURVATURE * math.log1p(promised)


def edges(steps: int) -> tuple[int, ...]:
    """Where windows begin and end, in steps done: 0, n/32, n/16, n/8, n/4, n/2, n."""
    return (0, *(math.ceil(steps / 2**halvings) for halvings in range(5, -1, -1)))


def power(k: int, spread: float, margin: float) -> float:
    """The probability that k seeds show equivalence if there is no difference at all. `spread` is the true
    standard deviation of one seed's error.
    """
    return 1.0 if spread == 0.0 else _pass_probability(k, margin * math.sqrt(k) / spread, np.ones(1))


def seeds_needed(spread: float, margin: float) -> int | None:
    """The fewest seeds that show equivalence with 90 % probability if there is no difference; None if more than
    1000 are needed. `spread` is the standard deviation of one seed's error.
    """
    low, high = FEWEST_SEEDS - 1, FEWEST_SEEDS
    while power(high, spread, margin) < POWER:
        low, high = high, 2 * high
        if low >= 1000:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, spread, margin) >= POWER else (middle, high)
    return high if high <= 1000 else None


def _series(seed: Seed) -> dict[str, Array]:
    found = {name: np.asarray(getattr(seed, name), dtype=np.float64) for name in RUNS}
    for name, losses in found.items():
        if losses.ndim != 1:
            raise ValueError(f"the losses of the run {name!r} have the shape {losses.shape}")
    return found


def _finite(losses: Array) -> npt.NDArray[np.bool_]:
    """Whether each loss is a number that the programs could have computed: their losses are float32."""
    return np.abs(losses) <= float(np.finfo(np.float32).max)


def _inconclusive(reason: Reason, summary: str, control: Control | None = None) -> LevelResult:
    return LevelResult(ID, TITLE, Status.INCONCLUSIVE, summary, reason, control=control)


def _unfit(series: Sequence[Mapping[str, Array]], participation: Sequence[Participation]) -> LevelResult | None:
    """Why these runs cannot be compared, or already differ; None if they can be.

    The original's runs come first: if they are broken, nothing can be said about the migrated program.
    """
    trainers = max((len(counts) for runs in participation for counts in runs.values()), default=0)
    for position, runs in enumerate(participation, 1):
        for name in RUNS:
            counts = runs.get(name, {})
            total = sum(counts.values())
            if total <= 0:
                return _inconclusive(
                    Reason.MISSING_VALUES, f"who took the steps of the run {name!r} of seed {position} was not recorded"
                )
            task = max(counts, key=lambda task: counts[task])
            if counts[task] > GREATEST_SHARE * total:
                summary = f"{task} took {counts[task]} of {total} steps in the run {name!r} of seed {position}"
                return _inconclusive(Reason.DEGENERATE_PARTICIPATION, summary)
    ours = [(position, name, runs[name]) for position, runs in enumerate(series, 1) for name in RUNS[:-1]]
    theirs = [(position, "migrated", runs["migrated"]) for position, runs in enumerate(series, 1)]
    lengths = [len(losses) for _, _, losses in ours]
    if max(lengths) - min(lengths) > under_way(trainers):
        position, name, losses = min(ours, key=lambda run: len(run[2]))
        summary = f"the run {name!r} of seed {position} has {len(losses)} losses, another run {max(lengths)}"
        return _inconclusive(Reason.MISSING_VALUES, summary)
    if min(lengths) < FEWEST_STEPS:
        return _inconclusive(
            Reason.MISSING_VALUES, f"runs of {min(lengths)} steps are too short: needs at least {FEWEST_STEPS}"
        )
    for position, name, losses in ours:
        if not np.all(_finite(losses)):
            step = int(np.argmin(_finite(losses))) + 1
            summary = f"the loss of the run {name!r} of seed {position} is not finite at step {step}"
            return _inconclusive(Reason.NON_FINITE, summary)
    for position, _, losses in theirs:
        other = len(series[position - 1]["original"])
        if abs(len(losses) - other) > under_way(trainers) or len(losses) < FEWEST_STEPS:
            summary = f"seed {position}: the original took {other} steps and the migrated program {len(losses)}"
            first = Divergence("steps of all trainers", float(other), float(len(losses)))
            return LevelResult(ID, TITLE, Status.DIFFERENT, summary, Reason.MISSING_VALUES, differences=(first,))
    for position, _, losses in theirs:
        if not np.all(_finite(losses)):
            step = int(np.argmin(_finite(losses))) + 1
            summary = f"the migrated program's loss is not finite at step {step} of seed {position}"
            reference = series[position - 1]["original"]
            first = Divergence(
                "loss",
                float(reference[step - 1]) if step <= len(reference) else None,
                float(losses[step - 1]),
                step=step,
                causes=("training that diverges, or a division by zero or the logarithm of zero", *_CAUSES[:1]),
            )
            return LevelResult(ID, TITLE, Status.DIFFERENT, summary, Reason.NON_FINITE, differences=(first,))
    return None


@lru_cache(maxsize=8)
def _windows(steps: int) -> Array:
    """For each window the weight of each step, with the sum 1.

    A window fades in from half its beginning to twice its beginning and out likewise around its end, straight in
    ln(step); the last one fades out over the last quarter of the run.
    """
    bounds = [steps / 2**halvings for halvings in range(5, -1, -1)]
    at = np.arange(steps) + 0.5
    rows = []
    for position, end in enumerate(bounds):
        rise = np.ones(steps) if position == 0 else np.clip((np.log2(at / bounds[position - 1]) + 1.0) / 2.0, 0.0, 1.0)
        fall = (1.0 - np.log2(at / end)) / 2.0 if end < steps else (steps - at) / (steps / 4)
        row = rise * np.clip(fall, 0.0, 1.0)
        rows.append(row / np.sum(row))
    return np.array(rows)


def _stats() -> Any:
    """scipy.stats, which takes as long to import as all else that only some verifications need."""
    from scipy import stats

    return stats


@lru_cache(maxsize=1024)
def _t(k: int) -> float:
    return float(_stats().t.ppf(CONFIDENCE, k - 1))


@lru_cache(maxsize=1024)
def _spread_ratios(k: int) -> Array:
    """Measured standard deviation of k seeds over the true one, at evenly spaced probabilities."""
    probabilities = (np.arange(200) + 0.5) / 200
    return np.sqrt(np.asarray(_stats().chi2.ppf(probabilities, k - 1), dtype=np.float64) / (k - 1))


def _pass_probability(k: int, room: float, noise: Array) -> float:
    """The probability that the interval from k seeds lies inside the margin, if there is no difference.

    `room` is the margin in standard errors as they were assumed, `noise` the assumed over the true one: [1] if it is
    known, else one value for each possibility.
    """
    left = room * noise[:, None] - _t(k) * _spread_ratios(k)
    return float(np.mean(np.maximum(0.0, 2.0 * np.asarray(_stats().norm.cdf(left)) - 1.0)))


@lru_cache(maxsize=1024)
def _sensitive_room(k: int) -> float:
    """How many standard errors, as k seeds of the null show them, the margin has to measure in a sensitive window."""
    low, high = 1.0, 1e6
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _pass_probability(k, middle, _spread_ratios(k)) >= SENSITIVE else (middle, high)
    return high


def _mean_and_half(values: Array) -> tuple[Array, Array]:
    """Mean over the seeds (first axis) and half the width of its 90 % interval."""
    k = len(values)
    return np.mean(values, axis=0), _t(k) * np.std(values, axis=0, ddof=1) / math.sqrt(k)


def _p_values(mean: Array, half: Array, margin: float | Array, k: int) -> tuple[Array, Array]:
    """The p values of "the error is at least the margin" (two one-sided t tests) and "there is no error" (t test)."""
    error, size = half / _t(k), np.abs(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(error > 0.0, (margin - size) / error, np.where(size < margin, np.inf, -np.inf))
        apart = np.where(error > 0.0, size / error, np.where(size > 0.0, np.inf, 0.0))
    return np.asarray(_stats().t.sf(inside, k - 1)), 2.0 * np.asarray(_stats().t.sf(apart, k - 1))


@dataclass(frozen=True)
class _Filter:
    """What the original's own runs say about the windows.

    `gain` is the change of the loss for a change of 1 in ln(rate), nan where it cannot be told from none. The product
    of `weights` and the differences of a program is its error in ln(rate); `held_out` are the weights of each seed
    from the other seeds alone. `noise` is the standard deviation, seed by seed, of the null, `rounding` what float32
    losses of this size may differ by in any case.
    """

    gain: Array
    weights: Array
    held_out: Array
    noise: Array
    rounding: Array


def _filter(means: Mapping[str, Array]) -> _Filter | None:
    """None if the other learning rates change nothing: then there is no unit to measure in."""
    gains = (means["faster"] - means["slower"]) / math.log(FASTER / SLOWER)
    null = means["again"] - means["original"]
    k = len(null)
    # A program that repeats itself bit for bit has no noise but that of rounding.
    rounding = np.maximum(tolerance.EPS * np.mean(np.abs(means["original"]), axis=0), float(np.finfo(np.float32).tiny))

    def weigh(gain: Array, squares: Array) -> Array:
        matched = gain / (squares + rounding**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(matched / np.sum(matched * gain, axis=-1, keepdims=True), dtype=np.float64)

    others = np.sum(gains, axis=0) - gains, np.sum(null**2, axis=0) - null**2
    weights = weigh(np.mean(gains, axis=0), np.mean(null**2, axis=0))
    held_out = weigh(others[0] / (k - 1), np.maximum(others[1], 0.0) / (k - 1))
    if not (np.all(np.isfinite(weights)) and np.all(np.isfinite(held_out))):
        return None
    gain, reach = _mean_and_half(gains)
    visible = np.where(np.abs(gain) > reach, gain, np.nan)
    return _Filter(visible, weights, held_out, np.std(null, axis=0, ddof=1), rounding)


def _compare(
    differences: Array, weights: Array, known: _Filter, expected: float, margin: float, bounds: Sequence[int]
) -> _Comparison:
    """Judges one program from its differences to the original, in losses, seeds by windows.

    `expected` is the standard deviation of one seed's difference, over that of the null, if there is only noise.
    """
    k = len(differences)
    values = np.sum(weights * differences, axis=1)
    estimate, half = (float(number) for number in _mean_and_half(values))
    inside, apart = (float(p) for p in _p_values(np.array(estimate), np.array(half), margin, k))

    mean, reach = _mean_and_half(differences)
    allowed = margin * np.abs(known.gain)
    passed = np.abs(mean) + reach < allowed
    sensitive = allowed * math.sqrt(k) >= _sensitive_room(k) * expected * known.noise
    window_inside, window_apart = _p_values(mean, reach, allowed, k)
    # Where the rate has no effect there is no margin, but there is chance: a Bonferroni level for all windows together.
    departing = (
        ~passed & (window_apart < SIGNIFICANT / len(mean)) & (np.abs(mean) > tolerance.MINIMUM_C * known.rounding)
    )

    if abs(estimate) + half < margin and not np.any(sensitive & ~passed) and not np.any(departing):
        status = Status.EQUIVALENT
    elif apart < SIGNIFICANT or np.any(departing):
        status = Status.DIFFERENT
    else:
        status = Status.INCONCLUSIVE
    windows = []
    for position, gain in enumerate(known.gain):
        center, width = float(mean[position] / gain), float(reach[position] / abs(gain))
        windows.append(
            AsyncWindow(
                bounds[position] + 1,
                bounds[position + 1],
                center,
                (center - width, center + width),
                bool(sensitive[position]),
                bool(passed[position]),
            )
        )
    return _Comparison(
        values,
        estimate,
        half,
        max([inside, *(float(p) for p in window_inside[sensitive])]),
        apart,
        tuple(windows),
        tuple(int(position) for position in np.argsort(window_apart) if departing[position]),
        status,
    )


def _compare_all(
    means: Mapping[str, Array], steps: int, margin: float
) -> tuple[_Comparison, _Comparison, _Comparison] | None:
    """The original against itself, the control and the migrated program; None if there is no unit to measure in."""
    known = _filter(means)
    if known is None:
        return None
    bounds = edges(steps)
    null = _compare(means["again"] - means["original"], known.held_out, known, 1.0, margin, bounds)
    # The mean of two equal runs is the better reference, and independent of their difference.
    reference = (means["original"] + means["again"]) / 2.0
    expected = math.sqrt(0.75)
    control = _compare(means["faster"] - reference, known.weights, known, expected, margin, bounds)
    migrated = _compare(means["migrated"] - reference, known.weights, known, expected, margin, bounds)
    return null, control, migrated


def _conclude(
    null: _Comparison,
    control: _Comparison,
    migrated: _Comparison,
    means: Mapping[str, Array],
    steps: int,
    promised: float,
) -> tuple[LevelResult, AsyncEvidence]:
    k, margin = len(migrated.values), margin_of(promised)
    detected = control.ci90[0] > margin
    status, reason, needed, what = migrated.status, None, None, _reading(migrated)
    summary = f"{k} paired seeds of {steps} steps: {what}"
    notes = [*_too_noisy(migrated)]
    if null.status is not Status.EQUIVALENT:
        status, needed = Status.INCONCLUSIVE, _seeds_for(null, margin)
        outside = null.status is Status.DIFFERENT or abs(null.estimate) >= margin or needed is None
        reason = Reason.ENVIRONMENT_UNSTABLE if outside else Reason.INSUFFICIENT_SEEDS
        summary = f"{k} paired seeds of {steps} steps cannot show that the original equals itself: {_reading(null)}"
        summary += "; needs " + _about(needed)
        notes.append(f"the migrated program reads {what}")
    elif not detected:
        status, reason = Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED
        summary = f"this workload cannot show the error: {CONTROL_NAME} reads {_reading(control)}"
    elif status is Status.DIFFERENT:
        reason = Reason.VALUE_DIFFERS
        if migrated.departing and migrated.p_different >= SIGNIFICANT:
            window = migrated.windows[migrated.departing[0]]
            summary += f"; steps {window.first_step} to {window.last_step} depart by themselves"
    elif status is Status.INCONCLUSIVE:
        reason, needed = Reason.INSUFFICIENT_SEEDS, _seeds_for(migrated, margin)
        failing = next((w for w in migrated.windows if w.sensitive and not w.passed), None)
        if abs(migrated.estimate) + migrated.half < margin and failing is not None:
            summary += f", but steps {failing.first_step} to {failing.last_step} by themselves do not fit"
        summary += "; needs " + _about(needed)
    usable = null.status is Status.EQUIVALENT and detected and migrated.status is not Status.DIFFERENT
    result = LevelResult(
        ID,
        TITLE,
        status,
        summary,
        reason,
        statistic=abs(migrated.estimate),
        floor=migrated.half,
        tolerance=max(0.0, tolerance.ratio(margin - migrated.half, migrated.half)),
        ratio=tolerance.ratio(abs(migrated.estimate), migrated.half),
        control=Control(CONTROL_NAME, detected, tolerance.ratio(control.estimate, migrated.half)),
        horizon_step=steps,
        differences=(_divergence(migrated, means),) if status is Status.DIFFERENT else (),
        notes=tuple(notes),
        excluded=_excluded(migrated) if usable else None,
    )
    evidence = AsyncEvidence(
        k=k,
        steps=steps,
        promised=promised,
        margin=margin,
        estimate=migrated.estimate,
        ci90=migrated.ci90,
        p_equivalent=migrated.p_equivalent,
        p_different=migrated.p_different,
        windows=migrated.windows,
        null_estimate=null.estimate,
        null_ci90=null.ci90,
        control_estimate=control.estimate,
        seeds_needed=needed,
        per_seed=tuple(float(value) for value in migrated.values),
    )
    return result, evidence


def _seeds_for(found: _Comparison, margin: float) -> int | None:
    """The seeds with which this comparison would probably come out; at least twice those it had if the spread says
    that they should have sufficed, because then it is the estimate that is in doubt.
    """
    k = len(found.values)
    needed = seeds_needed(found.spread, margin)
    return None if needed is None else needed if needed > k else 2 * k


def _about(seeds: int | None) -> str:
    return "more than 1000 seeds" if seeds is None else f"about {seeds} seeds"


def _per_cent(error: float) -> str:
    """The relative error of the rate that an error in ln(rate) stands for."""
    if error > math.log(2.0):
        return "more than +100%"
    return "less than -50%" if error < -math.log(2.0) else f"{100 * math.expm1(error):+.2g}%"


def _reading(found: _Comparison) -> str:
    low, high = found.ci90
    return (
        f"as if the learning rate were {_per_cent(found.estimate)} off "
        f"(90% interval {_per_cent(low)} to {_per_cent(high)}, p of no difference {found.p_different:.2g})"
    )


def _excluded(found: _Comparison) -> str | None:
    """The smallest error of the learning rate that these runs would have called outside, and a round one below it."""
    error = 100 * math.expm1(max(map(abs, found.ci90)) / CURVATURE) if found.half < 1.0 else math.inf
    if error > 100.0:
        return None
    # Rounded up, so that what is printed is excluded.
    digits = max(0, 1 - math.floor(math.log10(max(error, 0.01))))
    shown = max(math.ceil(error * 10**digits) / 10**digits, 0.01)
    smaller = max(
        (number for number in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if number < error), default=0
    )
    sentence = f"an error like a learning rate {shown:.4g}% off is excluded"
    return f"{sentence}; {smaller:g}% is not" if smaller else sentence


def _too_noisy(found: _Comparison) -> tuple[str, ...]:
    blind = [f"{w.first_step} to {w.last_step}" for w in found.windows if not w.sensitive]
    return (f"steps {', '.join(blind)}: too noisy to be judged by themselves",) if blind else ()


def _uneven(participation: Sequence[Participation]) -> tuple[str, ...]:
    """A note if the two programs share their steps out differently: that alone reads as another learning rate."""

    def greatest(name: str) -> float:
        return float(np.mean([max(runs[name].values()) / sum(runs[name].values()) for runs in participation]))

    ours, theirs = greatest("original"), greatest("migrated")
    if abs(ours - theirs) <= UNEVEN_SHARES:
        return ()
    return (
        f"participation: the busiest trainer took {ours:.0%} of the steps in the original and {theirs:.0%} in the "
        "migrated program, which by itself reads as another learning rate",
    )


def _divergence(found: _Comparison, means: Mapping[str, Array]) -> Divergence:
    """The mean loss of the window that departs most plainly."""
    reference = (means["original"] + means["again"]) / 2.0
    mean, reach = _mean_and_half(means["migrated"] - reference)
    with np.errstate(divide="ignore", invalid="ignore"):
        standing_out = np.nan_to_num(np.abs(mean) / reach, nan=0.0, posinf=np.inf)
    worst = found.departing[0] if found.departing else int(np.argmax(standing_out))
    ours, theirs = float(np.mean(reference[:, worst])), float(np.mean(means["migrated"][:, worst]))
    window = found.windows[worst]
    return Divergence(
        f"mean loss of steps {window.first_step} to {window.last_step}",
        ours,
        theirs,
        step=window.first_step,
        absolute=abs(theirs - ours),
        relative=abs(theirs - ours) / abs(ours) if ours else None,
        ratio=float(standing_out[worst]),
        causes=_CAUSES,
    )
