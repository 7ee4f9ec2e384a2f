"""L4: the same gradients, and after the first updates the same weights and the same optimizer state."""

from __future__ import annotations

from collections.abc import Mapping

from migrator.harness.protocol import judging, l1_variables, measurements
from migrator.harness.protocol.measurements import GRADIENT, SLOT, STATE, Measurements
from migrator.harness.protocol.results import Control, Divergence, LevelResult, Reason, Status
from migrator.harness.protocol.tolerance import LAST_STATE_STEP, UPDATE, Tolerance
from migrator.harness.recording import Recording

ID, TITLE = "L4", "Same gradients, weights and optimizer state"
_CAUSES = {
    GRADIENT: ("another loss or reduction", "a regulariser or a clipping that only one program has"),
    STATE: (
        "another learning rate or optimizer coefficient",
        "an update that is not an optimizer's (moving averages)",
        "from step 2 only: state that one program updates lazily",
    ),
    SLOT: (
        "another initial value of the slot",
        "another decay coefficient",
        "lazy against dense slot updates",
    ),
}


def early(recording: Recording, to_original: Mapping[str, str] | None = None) -> Measurements:
    """Gradients, weights and the slots in use up to step 10, in the original's names."""
    used = l1_variables.slots_in_use(recording)
    rename = to_original or {}
    in_use = {(rename.get(variable, variable), slot) for variable, slots in used.items() for slot in slots}
    return {
        (quantity, step): value
        for (quantity, step), value in measurements.tensors(recording, to_original).items()
        if step <= LAST_STATE_STEP and (quantity.family != SLOT or (quantity.name, quantity.slot) in in_use)
    }


def compare(
    original: Recording, other: Recording, to_original: Mapping[str, str], limits: Tolerance
) -> judging.Judgement:
    """All early tensors of `other` (a recording of the migrated program) against the original's."""
    return judging.judge(early(original), early(other, to_original), limits)


def _unmoved(judgement: judging.Judgement) -> tuple[str, ...]:
    """The weights in which the control stayed inside the tolerance at every step."""
    best: dict[str, bool] = {}
    for finding in judgement.findings:
        if finding.quantity.family == STATE:
            best[finding.quantity.name] = best.get(finding.quantity.name, False) or finding.outside
    return tuple(name for name, seen in best.items() if not seen)


def judge(
    original: Recording,
    migrated: Recording,
    control: Recording | None,
    to_original: Mapping[str, str],
    limits: Tolerance,
    control_name: str,
) -> LevelResult:
    """Compares every gradient, weight and slot at every recorded step up to 10; the original's steps must all
    be there.

    `control` is the migrated program run again as `control_name` says; None if that run could not be made.
    """
    found = compare(original, migrated, to_original, limits)
    seen = None if control is None else compare(original, control, to_original, limits)
    detected = seen is not None and any(
        f.outside and f.outcome.kind.value == "value" and f.quantity.family in (STATE, SLOT) for f in seen.findings
    )
    verdict = Control(control_name, detected, None if seen is None else seen.ratio)
    notes = []
    if seen is not None and detected and _unmoved(seen):
        notes.append("the control could not be seen in " + ", ".join(_unmoved(seen)))
    families = {f.quantity.family for f in found.findings if f.outcome.original is not None}
    if GRADIENT not in families:
        notes.append("gradients: none were recorded; the weights after each update stand for them")
    if STATE not in families:
        return LevelResult(
            ID,
            TITLE,
            Status.INCONCLUSIVE,
            "no weights were recorded after an update",
            Reason.MISSING_VALUES,
            control=verdict,
        )
    missing_side = _wholly_missing(original, migrated)
    if missing_side:
        return LevelResult(
            ID,
            TITLE,
            Status.INCONCLUSIVE,
            missing_side,
            Reason.MISSING_VALUES,
            control=verdict,
        )
    worst = found.worst
    assert worst is not None
    steps = measurements.steps_of(early(original))
    count = len({f.quantity for f in found.findings})
    status, reason, summary = (
        Status.EQUIVALENT,
        None,
        (
            f"{count} tensors after steps {', '.join(map(str, steps))} agree {judging.agreement(worst)}"
            + (f", the worst being {worst.quantity} after step {worst.step}" if worst.ratio else "")
        ),
    )
    differences: tuple[Divergence, ...] = ()
    if found.outside:
        first = found.outside[0]
        status, reason = Status.DIFFERENT, Reason.VALUE_DIFFERS
        differences = tuple(judging.divergence(f, _CAUSES[f.quantity.family]) for f in found.outside[:50])
        summary = (
            f"{first.quantity} differs at step {first.step}: "
            + (
                f"{first.ratio:.3g} noise floors apart (accepted: {first.accepted:.3g})"
                if first.outcome.kind.value == "value"
                else first.outcome.detail
            )
            + (f"; {len(found.outside) - 1} more" if len(found.outside) > 1 else "")
        )
    elif found.unjudged or not limits.stable(UPDATE):
        status, reason = Status.INCONCLUSIVE, Reason.ENVIRONMENT_UNSTABLE
        summary = "the original's own replicates disagree too much to give a noise floor"
    elif not detected:
        status, reason = Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED
        summary = (
            f"the control could not be run: {control_name}"
            if control is None
            else f"this workload cannot show the error: {control_name} stays inside the tolerance too"
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
        differences=differences,
        notes=tuple(notes),
    )


def _wholly_missing(original: Recording, migrated: Recording) -> str | None:
    """A sentence if one recorder wrote nothing at all of a kind or of a step: that is no finding about the
    program.
    """
    for kind, ours, theirs in (
        ("weights", original.states, migrated.states),
        ("gradients", original.gradients, migrated.gradients),
    ):
        left = {step for step, values in ours.items() if step <= LAST_STATE_STEP and values}
        right = {step for step, values in theirs.items() if step <= LAST_STATE_STEP and values}
        if left != right:
            return (
                f"{kind} were recorded after steps {sorted(left)} of the original and {sorted(right)} of the "
                "migrated program"
            )
    return None
