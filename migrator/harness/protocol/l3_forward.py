"""L3: from the same weights and the same first batch, the same loss and the same regularisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from migrator.harness.protocol import causes, judging, measurements
from migrator.harness.protocol.compare import Kind
from migrator.harness.protocol.judging import Finding, Judgement
from migrator.harness.protocol.measurements import ACTIVATION, LOSS, Measurements, Quantity
from migrator.harness.protocol.results import Control, Divergence, LevelResult, Reason, Status
from migrator.harness.protocol.tolerance import FORWARD, Tolerance
from migrator.harness.recording import Recording

ID, TITLE = "L3", "Same loss before any update"
_REGULAR = Quantity("regularization", "total"), 1


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


def _outputs(
    original: Recording, migrated: Recording, to_original: Mapping[str, str], limits: Tolerance
) -> tuple[Judgement, tuple[str, ...]]:
    """The layer outputs that both programs recorded, in the original's call order, and notes on the others."""
    ours, theirs = measurements.activations(original), measurements.activations(migrated, to_original)
    notes = []
    if ours or theirs:
        for side, own, other in (("original", ours, theirs), ("migrated program", theirs, ours)):
            alone = [key[0].name for key in own if key not in other]
            if alone:
                listed = ", ".join(alone[:5]) + (f" and {len(alone) - 5} more" if len(alone) > 5 else "")
                notes.append(f"layer outputs that only the {side} recorded: of {listed}")
    shared = ours.keys() & theirs.keys()
    found = judging.judge({k: ours[k] for k in shared}, {k: theirs[k] for k in shared}, limits, original)
    unmeasured = sum(f.unjudged for f in found.findings)
    if unmeasured:
        notes.append(f"{unmeasured} layer outputs have no noise floor: no replicate recorded them")
    return found, tuple(notes)


def _decisive(original: Recording, migrated: Recording, limits: Tolerance) -> Judgement:
    """The first loss and the regularisation, as far as both programs have one."""
    ours, theirs = _first(original), _first(migrated)
    if not (original.regularizers and migrated.regularizers):
        # What one program adds to its loss by hand is a term of its own in the other: the loss tells.
        ours, theirs = ({k: v for k, v in table.items() if k != _REGULAR} for table in (ours, theirs))
    return judging.judge(ours, theirs, limits, original)


def agrees(original: Recording, migrated: Recording, limits: Tolerance, to_original: Mapping[str, str]) -> bool:
    """Whether all that decides is there and inside the limits, and so are the outputs that both programs recorded."""
    found = _decisive(original, migrated, limits)
    outputs, _ = _outputs(original, migrated, to_original, limits)
    return bool(found.findings) and not (found.outside or found.unjudged or outputs.unjudged)


def judge(
    original: Recording,
    migrated: Recording,
    limits: Tolerance,
    to_original: Mapping[str, str] | None = None,
    *,
    control: Control | None = None,
) -> LevelResult:
    """Both ran from the original's initial weights on the original's first batch.

    Loss and regularisation decide. The outputs of the layers, where both recorded them, say where a difference
    begins: the first of them that differs, in call order, is the first divergence. If the loss agrees, layer
    outputs that differ are a note: the two programs may cut the network into layers at other places (an activation
    inside the layer, or after it).

    Without a `control` (a run with a summed loss), one is computed from the original's record: its first loss
    multiplied by the batch size as a sum would be; with batches of one example (where a sum is a mean), the original's
    loss of step 2 in its place.
    """
    rename = to_original or {}
    control, notes = (control, ()) if control is not None else _control(original, limits)
    outputs, more = _outputs(original, migrated, rename, limits)
    notes += more
    found = _decisive(original, migrated, limits)
    if found.outside and all(f.quantity == _REGULAR[0] for f in found.outside):
        notes += (f"{judging.described(found.outside[0])}, yet the loss agrees: the rest is added to it by hand",)
        found = found.where(lambda f: not f.outside)

    def divergences(outside: Sequence[Finding]) -> Sequence[Divergence]:
        given = causes.evidence(original, migrated, rename)
        return causes.divergences(given, (*outputs.outside, *outside))

    result = judging.outcome(
        ID,
        TITLE,
        found,
        agrees="the first loss agrees",
        nothing="no first loss was recorded",
        control=control,
        control_ran=True,
        stable=limits.stable(FORWARD),
        divergences=divergences,
        notes=notes,
    )
    absent = next((f for f in found.outside if f.outcome.kind is Kind.MISSING), None)
    if absent is not None and absent is found.outside[0]:
        # A recorder that wrote no loss says nothing about the program.
        summary = f"{absent.quantity}: {absent.outcome.detail}"
        return replace(result, status=Status.INCONCLUSIVE, reason=Reason.MISSING_VALUES, summary=summary)
    compared = sum(f.is_value and not f.unjudged for f in outputs.findings)
    if result.status is Status.DIFFERENT:
        return _located(result, outputs, compared)
    if outputs.outside:
        return replace(result, notes=(*result.notes, _elsewhere(outputs)))
    if result.status is Status.EQUIVALENT and compared:
        return replace(result, summary=f"{result.summary}; the outputs of {compared} layers agree too")
    return result


def _located(result: LevelResult, outputs: Judgement, compared: int) -> LevelResult:
    """Adds to a loss that differs where the difference begins."""
    if outputs.outside:
        first = outputs.outside[0]
        before = sum(not f.outside for f in outputs.findings[: outputs.findings.index(first)])
        row = f", in row {first.outcome.index[0]}" if first.outcome.index else ""
        place = f"it begins in the {first.quantity}{row}, after {before} layers that agree"
    elif compared:
        place = f"the outputs of {compared} layers agree: it begins after them, in the loss itself"
    else:
        return result
    return replace(result, summary=f"{result.summary}; {place}")


def _elsewhere(outputs: Judgement) -> str:
    first = outputs.outside[0]
    assert first.quantity.family == ACTIVATION
    return (
        f"{judging.described(first)}, yet the loss agrees: the two programs cut the network into layers at other "
        "places, or this output does not reach the loss"
    )
