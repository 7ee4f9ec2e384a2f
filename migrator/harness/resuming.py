"""A kill and a resume: both programs are ended in the middle, without a warning, and started again in their folders;
once as they are, and once with another learning rate, as after an edit of the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.harness import budget
from migrator.harness.case import Case
from migrator.harness.migrated import MigratedEvidence
from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol import l8_effects
from migrator.harness.protocol.results import Artefact
from migrator.harness.runs import Run, Session, run_again, run_program

NAME = "going on after a kill"
RATE_NAME = "going on with another learning rate"
#: What the learning rate is multiplied by, exact in any floating point.
_EDITED = 0.5
#: Rates this close, as shares, are the same.
_SAME_RATE = 1e-5
#: What edited_rate.py writes.
EDITED_FILE = "edited_rate.json"
#: Losses this close, as shares, are those of one training.
_TOGETHER = 1e-3


def asked_for(case: Case) -> bool:
    """Whether up to six more runs are wanted."""
    return not case.shape.counts and not case.both_original and ("artefacts" in case.required or case.all_mutants)


def judge(
    session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence
) -> tuple[tuple[Artefact, ...], tuple[Run, ...]]:
    """What became of it, and the runs that it took. Nothing where the original leaves no checkpoint to go on from."""
    original = evidence.main.recording
    if original is None or not asked_for(case):
        return (), ()
    last = budget.total_steps(original)
    saved = [step for step in l8_effects.saved(original) if step < last]
    if not saved:
        return (), ()
    steps = saved[0] + 1
    plan: dict[str, Any] = {"state_steps": [], "keep_batches": False}
    killed: list[Run] = []
    again: list[Run] = []
    runs: list[Run] = []
    for program, initial in (("original", evidence.initial), ("migrated", found.initial)):
        role = f"{program} killed"
        killed.append(run_program(session, case, program, role, case.shape, initial=initial, kill_after=steps, **plan))
        runs.append(killed[-1])
        if killed[-1].failed:
            return (Artefact(NAME, l8_effects.NOT_COMPARED, f"{role}: {killed[-1].complaint}"),), tuple(runs)
        role = f"{program} started again"
        again.append(run_again(session, case, killed[-1], role, **plan))
        runs.append(again[-1])
        if again[-1].outcome.failure is not None:
            return (Artefact(NAME, l8_effects.NOT_COMPARED, f"{role}: {again[-1].complaint}"),), tuple(runs)
    random = evidence.random_order or found.replayed
    resumed = compared(_losses(again[0]), _losses(again[1]), last, random=random)
    if resumed is None or resumed.status == l8_effects.MISSING:
        return (() if resumed is None else (resumed,)), tuple(runs)
    edited: list[Run] = []
    for one in killed:
        role = f"{one.program} started again with another rate"
        edited.append(run_again(session, case, one, role, edited_rate=_EDITED, **plan))
        runs.append(edited[-1])
        if edited[-1].failed:
            failed = Artefact(RATE_NAME, l8_effects.NOT_COMPARED, f"{role}: {edited[-1].complaint}")
            return (resumed, failed), tuple(runs)
    before, after = ([_rates(one) for one in some] for some in (again, edited))
    rated = compared_rates((before[0], after[0]), (before[1], after[1]), taken=_was_edited(edited[1]))
    return tuple(one for one in (resumed, rated) if one is not None), tuple(runs)


def _losses(run: Run) -> list[float]:
    """Those of a program that was started again; none where it found its training over."""
    return [] if run.recording is None else [step.loss for step in run.recording.steps]


def _rates(run: Run) -> list[float | None]:
    return [] if run.recording is None else [step.learning_rate for step in run.recording.steps]


def _was_edited(run: Run) -> bool:
    """Whether an optimizer of Keras was made with the other rate."""
    return any(run.record_dir.rglob(EDITED_FILE))


Rates = Sequence[float | None]


def compared_rates(ours: tuple[Rates, Rates], theirs: tuple[Rates, Rates], *, taken: bool) -> Artefact | None:
    """What two programs did that were started again as they were, and with another learning rate: `ours` and `theirs`
    are the rates of their steps then, each time. `taken` says whether the migrated program's optimizer was given the
    other one. None where the original's own rates are no other ones.
    """
    (before, after), (plain, edited) = ours, theirs
    if _alike(before, after) or None in after:
        return None
    if _alike(plain, edited) and not taken:
        said = "the learning rate of the migrated program could not be changed from outside"
        return Artefact(RATE_NAME, l8_effects.NOT_COMPARED, said)
    if _alike(after, edited):
        return Artefact(RATE_NAME, l8_effects.SAME, f"both take it, for {len(after)} steps")
    begun = "after a kill the original continues with its new learning rate"
    if _alike(plain, edited):
        said = "the migrated program with the one of its checkpoint"
        return Artefact(RATE_NAME, l8_effects.DIFFERENT, f"{begun}; {said}")
    place = next((n for n, (a, b) in enumerate(zip(after, edited, strict=False)) if not _alike((a,), (b,))), 0)
    shown = [
        f"{rates[place]:g}" if place < len(rates) and rates[place] is not None else "none" for rates in (after, edited)
    ]
    said = f"that of its step {place + 1} is {shown[0]} then, and {shown[1]} in the migrated program"
    return Artefact(RATE_NAME, l8_effects.DIFFERENT, f"{begun}; {said}")


def _alike(ours: Rates, theirs: Rates) -> bool:
    return len(ours) == len(theirs) and all(
        a == b if a is None or b is None else abs(a - b) <= _SAME_RATE * max(abs(a), abs(b))
        for a, b in zip(ours, theirs, strict=True)
    )


def compared(ours: list[float], theirs: list[float], last: int, *, random: bool) -> Artefact | None:
    """What two programs did that were started again: `ours` and `theirs` are the losses of their steps, of `last` that
    a whole training has. With a `random` order of the data losses say nothing.
    """
    if len(ours) == last:
        return None  # it begins anew by itself
    begun = f"after a kill the original resumes at step {last - len(ours)}"
    if len(theirs) == last:
        return Artefact(NAME, l8_effects.MISSING, f"{begun}, but the migrated program starts from scratch")
    if len(theirs) != len(ours):
        other = f"the migrated program takes {len(theirs)} steps more, where the original takes {len(ours)}"
        return Artefact(NAME, l8_effects.MISSING, f"{begun}; {other}")
    place = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if _apart(a, b)), None)
    if place is None or random:
        return Artefact(NAME, l8_effects.SAME, f"both resume at step {last - len(ours)}, for {len(ours)} steps")
    said = (
        f"the loss of its step {place + 1} is {ours[place]:.6g} then, and {theirs[place]:.6g} in the migrated program"
    )
    return Artefact(NAME, l8_effects.DIFFERENT, f"{begun}; {said}")


def _apart(a: float, b: float) -> bool:
    return not abs(a - b) <= _TOGETHER * max(abs(a), abs(b))
