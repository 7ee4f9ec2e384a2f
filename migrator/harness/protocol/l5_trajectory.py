"""L5: the same loss at every step, as far as rounding noise lets anyone see. L5s asks the same of several
trainers that step in a fixed order.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from migrator.harness.protocol import causes, judging, measurements
from migrator.harness.protocol.judging import Finding, Judgement
from migrator.harness.protocol.measurements import LOSS, STATE, Measurements, Others, Quantity
from migrator.harness.protocol.results import Control, LevelResult
from migrator.harness.protocol.tolerance import LAST_STATE_STEP, TRAJECTORY, Tolerance
from migrator.harness.recording import Recording

ID, TITLE = "L5", "Same loss at every step"
# A step is trusted while a learning rate 1 % higher stands out from the noise by this factor (equivalence.md
# §2.2).
VISIBLE = 10.0


def late(
    recording: Recording, to_original: Mapping[str, str] | None = None, *, after: int = LAST_STATE_STEP
) -> Measurements:
    """Every loss, and the weights recorded after step `after`."""
    weights = {
        (quantity, step): value
        for (quantity, step), value in measurements.tensors(recording, to_original).items()
        if quantity.family == STATE and step > after
    }
    return {**measurements.losses(recording), **weights}


def _weight_steps(table: Measurements) -> set[int]:
    return {step for quantity, step in table if quantity.family == STATE}


def _without_weights(table: Measurements, steps: Sequence[int]) -> Measurements:
    return {key: value for key, value in table.items() if key[0].family != STATE or key[1] not in steps}


def clock(recording: Recording, turns: bool) -> Callable[[Quantity, int], int]:
    """Which global step a quantity of a step belongs to.

    Trainers that work in turns count their own steps, and weights are recorded at global ones: the k-th step of
    trainer i of n is the global step (k-1)*n + i + 1. Otherwise all trainers take a step together.
    """
    count = len(measurements.trainers(recording))
    if not turns or count < 2:
        return lambda quantity, step: step
    return lambda quantity, step: (step - 1) * count + int(quantity.name) + 1 if quantity.family == LOSS else step


def horizon(judgement: Judgement, when: Callable[[Quantity, int], int] = lambda quantity, step: step) -> int:
    """The last step at which the control's loss is at least VISIBLE floors from the original's; 0 if there is
    none.
    """
    seen = [
        when(f.quantity, f.step)
        for f in judgement.findings
        if f.quantity.family == LOSS and f.is_value and f.ratio >= VISIBLE
    ]
    return max(seen, default=0)


def _measured(table: Measurements, limits: Tolerance, when: Callable[[Quantity, int], int]) -> int:
    """The last step up to which every loss has a noise floor."""
    steps = {when(*key): True for key in table if key[0].family == LOSS}
    for quantity, step in table:
        if quantity.family == LOSS and not math.isfinite(limits.floors.get((quantity, step), math.inf)):
            steps[when(quantity, step)] = False
    last = 0
    for step in sorted(steps):
        if not steps[step]:
            break
        last = step
    return last


def _expected_floor(limits: Tolerance, quantity: Quantity, step: int) -> float:
    """The floor of a loss at a step that no replicate reached, if noise goes on growing as it last did.

    Straight on in the logarithm, from the middle and the end of what was measured; noise grows more slowly than
    that in general, so the expected floor is rather too high.
    """
    known = sorted(s for (q, s), floor in limits.floors.items() if q == quantity and 0.0 < floor < math.inf)
    if len(known) < 2:
        return math.inf
    middle, end = known[len(known) // 2 - 1], known[-1]
    low, high = limits.floors[quantity, middle], limits.floors[quantity, end]
    growth = math.log(high / low) * (step - end) / (end - middle)
    return high * math.exp(min(growth, 700.0))


def _beyond(
    found: Judgement, trusted: int, limits: Tolerance, when: Callable[[Quantity, int], int]
) -> tuple[Finding, float] | None:
    """The first difference that was seen after the trusted steps, and its size in (expected) floors.

    Where there is a floor, one outside the tolerance. Where there is none, a loss further from the original's than
    VISIBLE tolerances of the floor that one has to expect there.
    """
    for f in found.findings:
        if when(f.quantity, f.step) <= trusted or not f.is_value:
            continue
        if f.outside:
            return f, f.ratio
        if f.unjudged and f.quantity.family == LOSS:
            ratio = f.outcome.absolute / _expected_floor(limits, f.quantity, f.step)
            if ratio > VISIBLE * f.accepted:
                return f, ratio
    return None


#: Where noise hides single losses, means of so many of them still tell: losses are apart all along where the mean of
#: their differences is SHIFTED times what those vary by, this share of the losses, and this share of their range.
BLOCK, SHIFTED, OF_LOSS, OF_RANGE = 20, 3.0, 0.05, 0.005


def _shifted(found: Judgement, trusted: int, when: Callable[[Quantity, int], int]) -> str | None:
    """Where the losses of all steps of a stretch that cannot be judged are apart in one direction, which noise does not
    do: it moves weights about, and what comes of it differs from batch to batch.
    """
    rows = [f for f in found.findings if f.is_value and f.quantity.family == LOSS]
    finite = [f for f in rows if isinstance(f.outcome.original, float) and isinstance(f.outcome.migrated, float)]
    for name in sorted({f.quantity.name for f in finite}):
        mine = [f for f in finite if f.quantity.name == name]
        ours = [float(f.outcome.original or 0.0) for f in mine]
        span = max(ours) - min(ours)
        later = [f for f in mine if when(f.quantity, f.step) > trusted]
        size = max(BLOCK, len(later) // 10)
        for start in range(0, len(later) - size + 1, size):
            block = later[start : start + size]
            losses = [float(f.outcome.original or 0.0) for f in block]
            differences = [float(f.outcome.migrated or 0.0) - loss for f, loss in zip(block, losses, strict=True)]
            mean = abs(statistics.fmean(differences))
            level = statistics.fmean(map(abs, losses))
            if mean > max(SHIFTED * statistics.pstdev(differences), OF_LOSS * level, OF_RANGE * span):
                return f"{_span(block[0].step, block[-1].step)}: all losses are about {mean:.3g} apart, of {level:.3g}"
    return None


def _greatest(found: Judgement) -> Finding | None:
    return max(
        (f for f in found.findings if f.is_value and f.unjudged and f.quantity.family == LOSS),
        key=lambda f: f.outcome.absolute,
        default=None,
    )


def compare(
    original: Recording, other: Recording, to_original: Mapping[str, str], limits: Tolerance, *, turns: bool = False
) -> Judgement:
    """All losses and late weights of `other` (a recording of the migrated program) against the original's."""
    after = 0 if turns else LAST_STATE_STEP
    table, theirs = late(original, after=after), late(other, to_original, after=after)
    return _compared(table, theirs, _one_sided(table, theirs), limits, original)


def _one_sided(table: Measurements, other: Measurements) -> list[int]:
    """The steps whose weights only one of two programs has."""
    return sorted(_weight_steps(table) ^ _weight_steps(other))


def _compared(
    table: Measurements, other: Measurements, one_sided: list[int], limits: Tolerance, original: Recording
) -> Judgement:
    return judging.judge(_without_weights(table, one_sided), _without_weights(other, one_sided), limits, original)


def judge(
    original: Recording,
    migrated: Recording,
    control: Recording | None,
    to_original: Mapping[str, str],
    limits: Tolerance,
    mistake: str,
    *,
    level_id: str = ID,
    title: str = TITLE,
    turns: bool = False,
    control_factor: float = 1.01,
) -> LevelResult:
    """Compares losses step by step and trainer by trainer, and weights, within the trusted horizon.

    The horizon is the last step at which `control` (the migrated program with `control_factor` times its learning
    rate) is still VISIBLE floors away, and not after the last step that has a noise floor: the control and the
    replicates may end before the training does. A difference beyond the horizon is not charged to the migrated
    program, nor passed as equal; what cannot be judged there is a note.

    With `turns` (L5s) the trainers step one after another: steps are then global ones, and the weights of every
    recorded step are compared, because no L4 has seen this run. Otherwise those after step 10, where L4 ends.
    """
    when = clock(original, turns)
    after = 0 if turns else LAST_STATE_STEP
    table, other = late(original, after=after), late(migrated, to_original, after=after)
    last = max((when(*key) for key in table), default=0)
    one_sided = _one_sided(table, other)
    found = _in_time(_compared(table, other, one_sided, limits, original), when)
    table = _without_weights(table, one_sided)
    seen = None
    if control is not None:
        wrong: Others = {**late(control, to_original, after=after), **measurements.gone(control, table)}
        seen = judging.judge(table, wrong, limits, original)
    measured = _measured(table, limits, when)
    trusted = 0 if seen is None else min(horizon(seen, when), measured)
    visible = (
        None
        if seen is None
        else seen.where(lambda f: f.is_value and f.quantity.family == LOSS and when(f.quantity, f.step) <= trusted)
    )
    verdict = Control.of(
        mistake,
        visible is not None and bool(visible.outside),
        None if seen is None else seen.where(lambda f: f.quantity.family == LOSS).strongest(),
    )
    vouched = max(trusted, 1)
    # Something that is absent or no number stays a finding however far out it is. The first step has a floor in
    # any case, and is judged even if the control could not be seen anywhere.
    inside = found.where(lambda f: when(f.quantity, f.step) <= vouched or (f.outside and not f.is_value))
    later = _beyond(found, vouched, limits, when)
    beyond = None
    if later is not None:
        f, ratio = later
        beyond = (
            f"equal to step {trusted}; {f.quantity} of step {f.step} is {ratio:.3g} noise floors apart, where a "
            "difference can no longer be told from noise"
        )
    shifted = None if later is not None else _shifted(found, vouched, when)
    if shifted is not None:
        beyond = f"equal to step {trusted}; {shifted}, more than noise moves the losses of one batch and the next"
    return judging.outcome(
        level_id,
        title,
        inside,
        agrees=f"losses of {trusted} of {last} steps agree",
        nothing="no loss was recorded",
        control=verdict,
        control_ran=control is not None,
        stable=limits.stable(TRAJECTORY),
        divergences=lambda outside: causes.divergences(causes.evidence(original, migrated, to_original), outside),
        beyond=beyond,
        horizon_step=trusted,
        notes=_notes(found, trusted, measured, last, one_sided, when, 100 * (control_factor - 1)),
        excluded=judging.smallest_error(visible, limits.c[TRAJECTORY], control_factor),
    )


def _in_time(judgement: Judgement, when: Callable[[Quantity, int], int]) -> Judgement:
    return Judgement(tuple(sorted(judgement.findings, key=lambda f: when(f.quantity, f.step))))


def _span(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _notes(
    found: Judgement,
    trusted: int,
    measured: int,
    last: int,
    one_sided: Sequence[int],
    when: Callable[[Quantity, int], int],
    higher: float,
) -> list[str]:
    notes = []
    if trusted < min(measured, last):
        end = min(measured, last)
        notes.append(f"{_span(trusted + 1, end)}: there a rate {higher:.2g}% higher cannot be told from rounding noise")
    if measured < last:
        note = f"{_span(measured + 1, last)}: no replicate went so far, so that there is no noise floor"
        greatest = _greatest(found)
        if greatest is not None and greatest.outcome.original:
            share = greatest.outcome.absolute / abs(greatest.outcome.original)
            note += f"; the losses are up to {share:.2g} of themselves apart there (step {greatest.step})"
        notes.append(note)
    unseen = sorted(
        {f.step for f in found.findings if f.quantity.family == STATE and when(f.quantity, f.step) > max(trusted, 1)}
    )
    notes += [f"weights after step {step}: beyond the steps that can be judged" for step in unseen]
    notes += [f"weights after step {step}: only one of the two programs recorded them" for step in one_sided]
    return notes
