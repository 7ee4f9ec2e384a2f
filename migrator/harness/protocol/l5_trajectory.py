"""L5: the same loss at every step, as far as rounding noise lets anyone see."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from migrator.harness.protocol import judging, measurements
from migrator.harness.protocol.compare import Kind
from migrator.harness.protocol.measurements import LOSS, STATE, Measurements
from migrator.harness.protocol.results import Control, Divergence, LevelResult, Reason, Status
from migrator.harness.protocol.tolerance import LAST_STATE_STEP, TRAJECTORY, Tolerance
from migrator.harness.recording import Recording

ID, TITLE = "L5", "Same loss at every step"
# A step is trusted while a learning rate 1 % higher stands out from the noise by this factor (equivalence.md
# §2.2).
VISIBLE = 10.0
_CAUSES = (
    "first at step 1: the forward pass; at step 2: the backward pass or the optimizer",
    "first at the end of an epoch: the data or a partial batch",
    "first where the learning rate changes: the schedule",
)


def late(recording: Recording, to_original: Mapping[str, str] | None = None) -> Measurements:
    """Every loss, and the weights recorded after step 10."""
    weights = {
        (quantity, step): value
        for (quantity, step), value in measurements.tensors(recording, to_original).items()
        if quantity.family == STATE and step > LAST_STATE_STEP
    }
    return {**measurements.losses(recording), **weights}


def _weight_steps(table: Measurements) -> set[int]:
    return {step for quantity, step in table if quantity.family == STATE}


def _without_weights(table: Measurements, steps: Sequence[int]) -> Measurements:
    return {key: value for key, value in table.items() if key[0].family != STATE or key[1] not in steps}


def horizon(judgement: judging.Judgement) -> int:
    """The last step at which the control's loss is at least VISIBLE floors from the original's; 0 if there is
    none.
    """
    seen = [
        f.step
        for f in judgement.findings
        if f.quantity.family == LOSS and f.outcome.kind is Kind.VALUE and f.ratio >= VISIBLE
    ]
    return max(seen, default=0)


def judge(
    original: Recording,
    migrated: Recording,
    control: Recording | None,
    to_original: Mapping[str, str],
    limits: Tolerance,
    control_name: str,
) -> LevelResult:
    """Compares losses step by step and trainer by trainer, and later weights, within the trusted horizon.

    The horizon is the last step at which `control` (the migrated program with a moved learning rate) is still
    VISIBLE floors away. A difference beyond it is not charged to the migrated program, nor passed as equal.
    """
    table, other = late(original), late(migrated, to_original)
    last = max(measurements.steps_of(table), default=0)
    one_sided = sorted(_weight_steps(table) ^ _weight_steps(other))
    table, other = _without_weights(table, one_sided), _without_weights(other, one_sided)
    found = judging.judge(table, other, limits)
    seen = None if control is None else judging.judge(table, late(control, to_original), limits)
    trusted = 0 if seen is None else horizon(seen)
    detected = seen is not None and any(
        f.outside and f.outcome.kind is Kind.VALUE and f.quantity.family == LOSS and f.step <= trusted
        for f in seen.findings
    )
    verdict = Control(
        control_name,
        detected,
        None if seen is None else max((f.ratio for f in seen.findings if f.quantity.family == LOSS), default=None),
    )
    # Something that is absent or no number stays a finding however far out it is.
    outside = [f for f in found.outside if f.step <= max(trusted, 1) or f.outcome.kind is not Kind.VALUE]
    beyond = [f for f in found.outside if f.step > max(trusted, 1) and f.outcome.kind is Kind.VALUE]
    inside = [f for f in found.findings if f.step <= max(trusted, 1)]
    worst = max(inside, key=lambda f: math.inf if math.isnan(f.ratio) else f.ratio, default=None)
    if worst is None:
        return LevelResult(
            ID, TITLE, Status.INCONCLUSIVE, "no loss was recorded", Reason.MISSING_VALUES, control=verdict
        )
    notes = (
        []
        if trusted >= last
        else [f"steps {trusted + 1} to {last}: there a rate 1% higher cannot be told from rounding noise"]
    )
    notes += [f"weights after step {step}: only one of the two programs recorded them" for step in one_sided]
    differences: tuple[Divergence, ...] = ()
    status, reason, summary = (
        Status.EQUIVALENT,
        None,
        (
            f"losses of {trusted} of {last} steps agree {judging.agreement(worst)}"
            + (f", worst at step {worst.step}" if worst.ratio else "")
        ),
    )
    if outside:
        first = outside[0]
        status, reason = Status.DIFFERENT, Reason.VALUE_DIFFERS
        tasks = {str(i): task for i, task in enumerate(measurements.trainers(original))}
        differences = tuple(judging.divergence(f, _CAUSES, tasks) for f in outside[:50])
        what = f"{first.ratio:.3g} noise floors apart" if first.outcome.kind is Kind.VALUE else first.outcome.detail
        summary = f"{first.quantity} first differs at step {first.step}: {what} (accepted: {first.accepted:.3g})"
        if first.outcome.kind is Kind.MISSING and first.outcome.original is None and first.step > last:
            summary = f"the migrated program goes on after step {last}, where the original ends"
    elif not detected:
        status, reason = Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED
        summary = (
            f"the control could not be run: {control_name}"
            if control is None
            else f"this workload cannot show the error: {control_name} leaves the losses inside the tolerance"
        )
    elif any(f.unjudged for f in inside) or not limits.stable(TRAJECTORY):
        status, reason = Status.INCONCLUSIVE, Reason.ENVIRONMENT_UNSTABLE
        summary = "the original's own replicates disagree too much to give a noise floor"
    elif beyond:
        status, reason = Status.INCONCLUSIVE, Reason.BEYOND_TRUSTED_HORIZON
        summary = (
            f"equal to step {trusted}; {beyond[0].quantity} of step {beyond[0].step} is "
            f"{beyond[0].ratio:.3g} noise floors apart, where a difference can no longer be told from noise"
        )
    return LevelResult(
        ID,
        TITLE,
        status,
        summary,
        reason,
        worst.outcome.absolute,
        worst.floor,
        worst.accepted,
        worst.ratio,
        verdict,
        trusted,
        differences,
        tuple(notes),
    )
