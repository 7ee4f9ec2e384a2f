"""The noise floor of a program, measured by running it again with its inputs moved by one unit in the last
place.

Nothing here is a chosen relative error. What is chosen, and why: equivalence.md §2.2 measured the factor
between a replicate that was held out and the floor of the others at 1.0 to 1.8, so that c = 4 times the worst
one is 4 to 8; MINIMUM_C keeps the upper end when the held-out replicates happen to be quiet. Measured with
this code, TF 2.15.1 against 2.21 on one machine, correct migrations of the repository's eight fixtures and a
300-step Adam run: first losses agree bit for bit but for a convolutional classifier (0.045 floors); Adagrad
and SGD programs of dense layers agree bit for bit throughout, the others within 0.25 floors (state) and 0.36
(losses). c was 8 in all of them, and a learning rate 1 % higher stood 168 (Adam) to 3.4e4 (Adagrad) floors out.

Between two TensorFlow releases the floor of a sum of n terms is sqrt(n) * eps * max|value| where the replicates show
less. Measured from the same weights (benchmarks/version_floor.py, the table is in docs/verifying.md), in that unit:
the same program on true 1.15.5 against 2.15.1 up to 0.36, in trajectories of small sums up to 0.81; Keras against
Estimator, on 2.15.1 and on 2.21, up to 0.15, and 4.6 behind a batch normalisation, whose division by a small standard
deviation magnifies what its replicates show as well.

In half precision the replicates tell all: what is cast to it is moved by one unit of its last place there (see
inside/halves.py). Whether a program computes in it at all is a setting (L0b), since its floor is far above what the
other format shows.

Six replicates tell how far rounding may take a training apart. Where two programs are no further apart than one
rounding takes any of their numbers (`derive` without replicates), the answer cannot change what is said of them, and
one replicate is enough: it says whether the original repeats itself and how far out a known-bad version stands.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from migrator.harness.protocol import compare
from migrator.harness.protocol.measurements import (
    ACTIVATION,
    GRADIENT,
    LOSS,
    REGULARIZATION,
    SLOT,
    STATE,
    Measurements,
    Quantity,
    everything,
    gone,
)
from migrator.harness.recording import Optimizer, Recording

EPS = float(np.finfo(np.float32).eps)
REPLICATES = 6
MINIMUM_C = 8.0
HELD_OUT_FACTOR = 4.0
#: A single replicate counts as much: others stand up to 1.8 times as far out (see above).
OF_ONE = 2.0
# A held-out replicate this many floors away says that the machine, not the program, sets the noise.
UNSTABLE = 16.0
LAST_STATE_STEP = 10

FORWARD, UPDATE, TRAJECTORY = "forward", "update", "trajectory"
#: What the control multiplies the learning rate by: an error that has to be seen. In half precision a rounding alone is
#: 0.1 % (float16) or 0.8 % (bfloat16) of a gradient, so that an error of 1 % of a step is inside eight of them.
CONTROL_FACTOR, HALF_CONTROL_FACTOR = 1.01, 1.1


@dataclass(frozen=True)
class Tolerance:
    """What each level may call noise.

    `floors` holds the absolute noise floor of every quantity at every recorded step (inf where a replicate
    was unusable: such a quantity can be called neither equal nor different). `c` is the greatest accepted
    ratio of a difference to its floor, for each of FORWARD (step 1), UPDATE (gradients and state up to step
    10) and TRAJECTORY (losses and later state), and `held_out` the ratios that it was derived from, one per
    replicate; none where there are fewer than two.
    """

    floors: Mapping[tuple[Quantity, int], float]
    c: Mapping[str, float]
    held_out: Mapping[str, tuple[float, ...]]
    replicates: int
    kappa: float
    terms: int
    versions_differ: bool

    def stable(self, part: str) -> bool:
        """Whether the replicates agree well enough about this part to give a floor."""
        return all(ratio <= UNSTABLE for ratio in self.held_out[part])


def control_factor(original: Recording) -> float:
    """By how much the control's learning rate is higher than that of a program with this original."""
    return HALF_CONTROL_FACTOR if original.halves else CONTROL_FACTOR


def control_mistake(original: Recording) -> str:
    """What is wrong in the control, in words."""
    return f"a learning rate {100 * (control_factor(original) - 1):.2g}% higher"


def part_of(quantity: Quantity, step: int) -> str:
    """Which of the three factors c judges this quantity."""
    if quantity.family in (LOSS, REGULARIZATION, ACTIVATION):
        return FORWARD if step == 1 else TRAJECTORY
    return UPDATE if step <= LAST_STATE_STEP else TRAJECTORY


def kappa(optimizer: Optimizer | None) -> float:
    """How much the optimizer's own coefficients magnify a rounding error: 500 for Adam with beta_2 = 0.999.

    The learning rate of replicate i is moved by kappa * eps, because a correct implementation may round 1 -
    beta once more or once less than the original (measured: without it a correct Keras Adam is flagged).
    """
    if optimizer is None:
        return 1.0
    if optimizer.others:
        return max(kappa(one) for one in (replace(optimizer, others=()), *optimizer.others))
    settings = optimizer.settings

    def number(key: str) -> float:
        value = settings.get(key)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0

    name = optimizer.name.lower()
    factors = [1.0]
    for key in ("momentum", "beta_1", "rho", "decay"):
        if key == "decay" and "rmsprop" not in name:
            continue
        if 0.0 < number(key) < 1.0:
            factors.append(1.0 / (1.0 - number(key)))
    if 0.0 < number("beta_2") < 1.0:
        factors.append(0.5 / (1.0 - number("beta_2")))
    return max(factors)


def replicate_plans(optimizer: Optimizer | None, count: int = REPLICATES) -> tuple[dict[str, float | int], ...]:
    """For each replicate the part of the plan that moves it: every initial weight, and what is cast to half precision,
    by one ulp, the rate by kappa*eps.
    """
    move = kappa(optimizer) * EPS
    return tuple(
        {"ulp_seed": i + 1, "learning_rate_factor": 1.0 + (move if i % 2 == 0 else -move)} for i in range(count)
    )


def reduction_terms(recording: Recording) -> int:
    """The longest sum of a forward or backward pass: over a batch, or over the inputs of a layer."""
    batches = [math.prod(shape) for batch in recording.batches[:64] for _, _, shape, _ in batch.components]
    fan_in = [math.prod(v.shape[:-1]) for v in recording.variables if len(v.shape) > 1]
    return int(max([1, *batches, *fan_in]))


def _slot_condition(quantity: Quantity, optimizer: Optimizer | None) -> float:
    """How much the slot's own decay coefficient magnifies a rounding error; 1 for what is no decaying slot.

    TF1 subtracts beta from 1 in float32 and Keras in double. That moves a second moment by 4.7e-5 of its
    value with beta_2 = 0.999 (measured, from step 1 on), and no replicate shows it: both have the same
    coefficients.
    """
    if quantity.family != SLOT or optimizer is None:
        return 1.0
    key = {"first_moment": "beta_1", "second_moment": "beta_2", "momentum": "momentum", "rms": "rho"}
    values = [one.settings.get(key.get(quantity.slot, "")) for one in (optimizer, *optimizer.others)]
    value = max((v for v in values if isinstance(v, float) and 0.0 < v < 1.0), default=None)
    if value is None:
        return 1.0
    return (0.5 if quantity.slot == "second_moment" else 1.0) / (1.0 - value)


def _rounding(
    value: compare.Array, start: compare.Array | None, *, own: float, spread: float, condition: float
) -> float:
    """The least floor that the arithmetic of its format (float32, where that is no coarser) itself allows for this
    value, whatever the replicates show.

    A stored weight is rounded on the scale of the weight (`own` times); only what training added to it since
    `start` has gone through the reductions, so only that part is multiplied by `spread` (sqrt(n) for
    different kernels, else 1) and by `condition`.
    """
    if not np.issubdtype(value.dtype, np.floating) or value.size == 0:
        return 0.0
    scale = compare.greatest(value)
    if not math.isfinite(scale):
        return math.inf
    moved = scale
    if start is not None and start.shape == value.shape:
        moved, _ = compare.greatest_difference(value, start)
    return max(EPS, float(np.finfo(value.dtype).eps)) * (own * scale + max(spread, condition) * moved)


Starts = Mapping[int, Mapping[str, compare.Array]]


def _idle(table: Measurements, spread: float) -> dict[tuple[str, int], float]:
    """The variables whose whole gradient is zero up to rounding in a step, and how far rounding may move it.

    It is a sum of terms that cancel each other (a bias before a batch normalization), or comes through a gate that is
    shut. What is left of the terms hangs on the processor's instructions: nothing here, 1e-16 there. It is judged by
    the greatest gradient of the step.
    """
    sizes = {
        (quantity.name, step): compare.greatest(value)
        for (quantity, step), value in table.items()
        if quantity.family == GRADIENT and value.dtype.kind == "f"
    }
    greatest: dict[int, float] = {}
    for (_, step), size in sizes.items():
        greatest[step] = max(greatest.get(step, 0.0), size)
    limits = {key: EPS * spread * greatest[key[1]] for key in sizes}
    return {key: limits[key] for key, size in sizes.items() if size <= limits[key] < math.inf}


#: Slots that add up squares of gradients.
_SQUARES = ("second_moment", "accumulator", "rms")


def _least(
    original: Recording,
    table: Measurements,
    spread: float,
    starts: Starts | None = None,
    added: Mapping[str, float] | None = None,
) -> dict[tuple[Quantity, int], float]:
    least = {}
    idle = _idle(table, spread)
    for (quantity, step), value in table.items():
        before = original.initial if starts is None else starts.get(step, original.initial)
        least[quantity, step] = _rounding(
            value,
            before.get(quantity.name) if quantity.family == STATE else None,
            own=4.0 if step <= 1 or quantity.family in (LOSS, GRADIENT) else 1.0,
            spread=spread,
            condition=_slot_condition(quantity, original.optimizer),
        )
        if quantity.family == STATE and added:
            least[quantity, step] += EPS * added.get(quantity.name, 0.0)
        if quantity.family in (GRADIENT, SLOT, STATE) and (quantity.name, step) in idle:
            noise = idle[quantity.name, step]
            least[quantity, step] = max(least[quantity, step], noise**2 if quantity.slot in _SQUARES else noise)
    return least


def distances(original: Measurements, other: Measurements) -> dict[tuple[Quantity, int], float]:
    """How far apart each quantity is that both have, inf where it cannot be compared."""
    found = {}
    for key in original.keys() & other.keys():
        outcome = compare.compare(original[key], other[key])
        found[key] = outcome.absolute if outcome.kind is compare.Kind.VALUE else math.inf
    return found


def _differences(
    original: Measurements, other: Recording
) -> tuple[dict[tuple[Quantity, int], float], set[tuple[Quantity, int]]]:
    """How far apart each quantity is, inf where it cannot be compared; and which ones the other has."""
    known = {key: one.absolute for key, one in gone(other, original).items()} | distances(original, everything(other))
    return {key: known.get(key, math.inf) for key in original}, set(known)


def _running(
    least: Mapping[tuple[Quantity, int], float],
    noises: Sequence[Mapping[tuple[Quantity, int], float]],
    apart: bool = False,
) -> dict[tuple[Quantity, int], float]:
    """Floors: the worst of the replicates and of rounding, never falling from one step to the next unless steps are
    taken `apart` from each other.
    """
    if apart:
        return {key: max([value, *(noise[key] for noise in noises)]) for key, value in least.items()}
    floors: dict[tuple[Quantity, int], float] = {}
    worst: dict[Quantity, float] = {}
    for key in sorted(least, key=lambda item: item[1]):
        quantity, _ = key
        worst[quantity] = max(worst.get(quantity, 0.0), least[key], *(noise[key] for noise in noises))
        floors[key] = worst[quantity]
    return floors


def ratio(difference: float, floor: float) -> float:
    """Difference in floors. Zero against a zero floor is 0; a floor that could not be measured gives nan."""
    if not math.isfinite(floor):
        return math.nan
    if difference == 0.0:
        return 0.0
    return difference / floor if floor > 0.0 else math.inf


def derive(
    original: Recording,
    replicates: Sequence[Recording],
    *,
    versions_differ: bool = True,
    limited: bool = False,
    starts: Starts | None = None,
    added: Mapping[str, float] | None = None,
) -> Tolerance:
    """The tolerance that the original's own noise gives.

    `replicates` are recordings of the original run from its own initial values on its own batches, moved as
    replicate_plans says. They are `limited` if they were ended on purpose before the original's last step: what
    none of them has then gets no floor. With `versions_differ` (two TensorFlow releases) a sum of n terms may be
    added up in another order, hence eps*sqrt(n) on what went through such sums. Without replicates the floors are those
    of rounding alone, which no others are below; one replicate counts OF_ONE times. Either way c is MINIMUM_C then.
    `starts` are the weights that each step began with, where each is taken by itself: one has no part in the noise of
    another then. `added` says by how much the migrated program's numbers of some weights are greater: a bias of 0.001
    that is stored as 1.001 is rounded as 1.001 is.
    """
    table = everything(original)
    terms = reduction_terms(original)
    spread = math.sqrt(terms) if versions_differ else 1.0
    least = _least(original, table, spread, starts, added)
    apart = starts is not None
    # One replicate after the other: all together would be many times the weights of the program.
    found = [_differences(table, replicate) for replicate in replicates]
    if limited:
        least = {key: value for key, value in least.items() if any(key in keys for _, keys in found)}
    factor = OF_ONE if len(replicates) == 1 else 1.0
    noises = [{key: factor * noise[key] for key in least} for noise, _ in found]

    held_out: dict[str, list[float]] = {FORWARD: [], UPDATE: [], TRAJECTORY: []}
    for i, noise in enumerate(noises if len(noises) > 1 else ()):
        others = _running(least, noises[:i] + noises[i + 1 :], apart)
        worst = dict.fromkeys(held_out, 0.0)
        for (quantity, step), difference in noise.items():
            part = part_of(quantity, step)
            apart_by = ratio(difference, others[quantity, step])
            worst[part] = max(worst[part], math.inf if math.isnan(apart_by) else apart_by)
        for part, value in worst.items():
            held_out[part].append(value)
    return Tolerance(
        floors=_running(least, noises, apart),
        c={
            part: max(MINIMUM_C, HELD_OUT_FACTOR * min(max(ratios, default=0.0), UNSTABLE))
            for part, ratios in held_out.items()
        },
        held_out={part: tuple(ratios) for part, ratios in held_out.items()},
        replicates=len(replicates),
        kappa=kappa(original.optimizer),
        terms=terms,
        versions_differ=versions_differ,
    )


def unrepeated(original: Recording, again: Recording, steps: Container[int] = (1, 2)) -> str | None:
    """Where a second run of the original, with nothing moved, does not repeat the first one; None if it does.

    Of a training only the first two steps: later on, rounding of a reduction that adds up in another order each time
    may have grown to any size.
    """
    table = {key: value for key, value in everything(original).items() if key[1] in steps}
    least = _least(original, table, math.sqrt(reduction_terms(original)))
    found, _ = _differences(table, again)
    for key in sorted(table, key=lambda item: (item[1], item[0].family != LOSS, item[0])):
        if found[key] > UNSTABLE * least[key]:
            quantity, step = key
            return f"{quantity} of step {step} moves by {found[key]:.3g}, where rounding moves it by {least[key]:.3g}"
    return None
