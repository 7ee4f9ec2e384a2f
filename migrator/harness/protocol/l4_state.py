"""L4: the same gradients, and after the first updates the same weights and the same optimizer state."""

from __future__ import annotations

from collections.abc import Mapping

from migrator.harness.protocol import causes, judging, l1_variables, measurements
from migrator.harness.protocol.measurements import GRADIENT, SLOT, STATE, Measurements, Others
from migrator.harness.protocol.results import Control, LevelResult, Reason, Status
from migrator.harness.protocol.tolerance import LAST_STATE_STEP, UPDATE, Tolerance
from migrator.harness.recording import Recording

ID, TITLE = "L4", "Same gradients, weights and optimizer state"


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
    """All early tensors of `other` (a recording of the migrated program) against the original's.

    Within a step come the gradients from the last variable to the first, then the slots and then the weights from
    the first to the last, where the variables stand as the original created them.
    """
    ours = early(original)
    theirs: Others = {**early(other, to_original), **measurements.gone(other, ours)}
    if _summed(original, other):
        ours = {key: value for key, value in ours.items() if key[0].family != GRADIENT}
        theirs = {key: value for key, value in theirs.items() if key[0].family != GRADIENT}
    if other.carried:  # what their sums come to shows in the weights
        ours = {key: value for key, value in ours.items() if key[0].slot != l1_variables.SUM}
    # A loop also keeps the weights that it evaluates, after steps of which the other program may have kept none.
    kept = {step for quantity, step in ours if quantity.family != GRADIENT}
    return judging.judge(
        ours,
        {
            key: value
            for key, value in theirs.items()
            if (key[0].family == GRADIENT or key[1] in kept)
            and (key[0].slot != l1_variables.AVERAGE or key in ours)  # see there
        },
        limits,
        original,
    )


def _summed(original: Recording, other: Recording) -> bool:
    """Whether the gradients of several batches are applied together, in a branch of a condition, where the migrated
    program's cannot be recorded; or it moves its weights by hand, and what its tape gave is not what it applies. What
    they do to sums and weights is compared all the same.
    """
    gone = any(family == GRADIENT for family, *_ in other.apart or ())
    return (original.conditional or other.by_hand) and not gone and not any(other.gradients.values())


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
    mistake: str,
    *,
    control_factor: float = 1.01,
) -> LevelResult:
    """Compares every gradient, weight and slot at every recorded step up to 10; the original's steps must all
    be there.

    `control` is the migrated program run again with a `mistake`: a learning rate `control_factor` times its
    own; None if that run could not be made.
    """
    found = compare(original, migrated, to_original, limits)
    seen = None if control is None else compare(original, control, to_original, limits)
    visible = None if seen is None else seen.where(lambda f: f.is_value and f.quantity.family in (STATE, SLOT))
    verdict = Control.of(
        mistake, visible is not None and bool(visible.outside), None if seen is None else seen.strongest()
    )
    notes = []
    if seen is not None and verdict.detected and _unmoved(seen):
        notes.append("the control could not be seen in " + ", ".join(_unmoved(seen)))
    families = {f.quantity.family for f in found.findings if f.outcome.original is not None}
    if GRADIENT not in families:
        summed = _summed(original, migrated)
        told = "those of single batches were not compared" if summed else "none were recorded"
        notes.append(f"gradients: {told}; the weights after each update stand for them")
    missing = "no weights were recorded after an update" if STATE not in families else None
    missing = missing or _wholly_missing(original, migrated)
    if missing:
        return LevelResult(ID, TITLE, Status.INCONCLUSIVE, missing, Reason.MISSING_VALUES, control=verdict)
    steps = measurements.steps_of(early(original))
    count = len({f.quantity for f in found.findings})
    return judging.outcome(
        ID,
        TITLE,
        found,
        agrees=f"{count} tensors after steps {', '.join(map(str, steps))} agree",
        nothing="nothing was recorded after an update",
        control=verdict,
        control_ran=control is not None,
        stable=limits.stable(UPDATE),
        divergences=lambda outside: causes.divergences(causes.evidence(original, migrated, to_original), outside),
        notes=notes,
        excluded=judging.smallest_error(visible, limits.c[UPDATE], control_factor),
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
        if kind == "gradients" and _summed(original, migrated):
            continue
        if (left - right) or (kind == "gradients" and right - left):
            return (
                f"{kind} were recorded after steps {sorted(left)} of the original and {sorted(right)} of the "
                "migrated program"
            )
    return None
