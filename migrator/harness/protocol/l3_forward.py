"""L3: from the same weights and the same first batch, the same loss and the same regularisation."""

from __future__ import annotations

import numpy as np

from migrator.harness.protocol import judging, measurements
from migrator.harness.protocol.compare import Kind
from migrator.harness.protocol.measurements import LOSS, Measurements, Quantity
from migrator.harness.protocol.results import Control, LevelResult, Reason, Status
from migrator.harness.protocol.tolerance import FORWARD, Tolerance
from migrator.harness.recording import Recording

ID, TITLE = "L3", "Same loss before any update"
_CAUSES = (
    "the loss is reduced another way (sum, mean, or mean over non-zero weights)",
    "a regulariser is missing, doubled or scaled by two",
    "another forward pass: activation, layer default, training mode",
    "variables of the same shape that were created in another order and so paired wrongly: give a --name-map",
)


def _first(recording: Recording) -> Measurements:
    table = {**measurements.losses(recording), **measurements.regularization(recording)}
    return {key: value for key, value in table.items() if key[1] == 1}


def _summed(recording: Recording) -> Measurements | None:
    """What the original would have reported had it summed over the examples, or None for batches of one."""
    sizes = {
        str(i): next((b.size for b in recording.batches if b.task == task and b.step == 1), 1)
        for i, task in enumerate(measurements.trainers(recording))
    }
    if not sizes or max(sizes.values()) <= 1:
        return None
    fixed = recording.regularization or 0.0
    return {
        (quantity, step): np.asarray((float(value) - fixed) * sizes[quantity.name] + fixed, np.float32)
        for (quantity, step), value in _first(recording).items()
        if quantity.family == LOSS
    }


def _later(recording: Recording) -> Measurements:
    """The losses of step 2 in the place of those of step 1."""
    return {(quantity, 1): value for (quantity, step), value in measurements.losses(recording).items() if step == 2}


def _control(original: Recording, limits: Tolerance) -> tuple[Control, tuple[str, ...]]:
    ours = {key: value for key, value in _first(original).items() if key[0].family == LOSS}
    summed = _summed(original)
    if summed is not None:
        seen = judging.judge(ours, summed, limits)
        return Control("the original's loss summed instead of averaged", bool(seen.outside), seen.ratio), ()
    note = "sum and mean of a loss cannot be told apart: every first batch has one example"
    later = _later(original)
    if set(later) != set(ours):
        return Control("the original's own loss one step later", False), (note,)
    seen = judging.judge(ours, later, limits)
    return Control("the original's own loss one step later", bool(seen.outside), seen.ratio), (note,)


def judge(original: Recording, migrated: Recording, limits: Tolerance) -> LevelResult:
    """Both ran from the original's initial weights on the original's first batch.

    The control is computed from the original's record: its first loss multiplied by the batch size as a sum
    would be; with batches of one example (where a sum is a mean), the original's loss of step 2 in its place.
    """
    control, notes = _control(original, limits)
    ours, theirs = _first(original), _first(migrated)
    regular = Quantity("regularization", "total"), 1
    if (regular in ours) != (regular in theirs) and not (original.regularizers or migrated.regularizers):
        # One recorder wrote nothing and the other wrote zero for a loss without regularisation.
        ours, theirs = ({k: v for k, v in table.items() if k != regular} for table in (ours, theirs))
    found = judging.judge(ours, theirs, limits)
    worst = found.worst
    if worst is None:
        return LevelResult(
            ID,
            TITLE,
            Status.INCONCLUSIVE,
            "no first loss was recorded",
            Reason.MISSING_VALUES,
            control=control,
        )
    status, reason = Status.EQUIVALENT, None
    summary = f"the first loss agrees {judging.agreement(worst)}"
    if found.outside:
        first = found.outside[0]
        if first.outcome.kind is Kind.MISSING:
            status, reason = Status.INCONCLUSIVE, Reason.MISSING_VALUES
            summary = f"{first.quantity}: {first.outcome.detail}"
        elif first.outcome.kind is not Kind.VALUE:
            status, reason = Status.DIFFERENT, Reason.VALUE_DIFFERS
            summary = f"{first.quantity} at step 1: {first.outcome.detail}"
        else:
            status, reason = Status.DIFFERENT, Reason.VALUE_DIFFERS
            summary = (
                f"{first.quantity} at step 1: {first.outcome.original:.9g} against "
                f"{first.outcome.migrated:.9g}, {first.ratio:.3g} noise floors apart "
                f"(accepted: {first.accepted:.3g})"
            )
    elif found.unjudged or not limits.stable(FORWARD):
        status, reason = Status.INCONCLUSIVE, Reason.ENVIRONMENT_UNSTABLE
        summary = "the original's own replicates disagree too much to give a noise floor"
    elif not control.detected:
        status, reason = Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED
        summary = f"this workload cannot show the error: {control.name} stays inside the tolerance"
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
        control,
        differences=tuple(judging.divergence(f, _CAUSES, _tasks(original)) for f in found.outside),
        notes=notes,
    )


def _tasks(recording: Recording) -> dict[str, str]:
    return {str(i): task for i, task in enumerate(measurements.trainers(recording))}
