"""A kill and a resume: both programs are ended in the middle, without a warning, and started again in their folders."""

from __future__ import annotations

from typing import Any

from migrator.harness import budget
from migrator.harness.case import Case
from migrator.harness.migrated import MigratedEvidence
from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol import l8_effects
from migrator.harness.protocol.results import Artefact
from migrator.harness.runs import Run, Session, run_again, run_program

NAME = "going on after a kill"
#: Losses this close, as shares, are those of one training.
_TOGETHER = 1e-3


def asked_for(case: Case) -> bool:
    """Whether four more runs are wanted."""
    return not case.shape.counts and not case.both_original and ("artefacts" in case.required or case.all_mutants)


def judge(
    session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence
) -> tuple[Artefact | None, tuple[Run, ...]]:
    """What became of it, and the runs that it took. None where the original leaves no checkpoint to go on from."""
    original = evidence.main.recording
    if original is None or not asked_for(case):
        return None, ()
    last = budget.total_steps(original)
    saved = [step for step in l8_effects.saved(original) if step < last]
    if not saved:
        return None, ()
    steps = saved[0] + 1
    plan: dict[str, Any] = {"state_steps": [], "keep_batches": False}
    again: list[Run] = []
    runs: list[Run] = []
    for program, initial in (("original", evidence.initial), ("migrated", found.initial)):
        role = f"{program} killed"
        killed = run_program(session, case, program, role, case.shape, initial=initial, kill_after=steps, **plan)
        runs.append(killed)
        if killed.failed:
            return Artefact(NAME, l8_effects.NOT_COMPARED, f"{role}: {killed.complaint}"), tuple(runs)
        role = f"{program} started again"
        again.append(run_again(session, case, killed, role, **plan))
        runs.append(again[-1])
        if again[-1].outcome.failure is not None:
            return Artefact(NAME, l8_effects.NOT_COMPARED, f"{role}: {again[-1].complaint}"), tuple(runs)
    random = evidence.random_order or found.replayed
    return compared(_losses(again[0]), _losses(again[1]), last, random=random), tuple(runs)


def _losses(run: Run) -> list[float]:
    """Those of a program that was started again; none where it found its training over."""
    return [] if run.recording is None else [step.loss for step in run.recording.steps]


def compared(ours: list[float], theirs: list[float], last: int, *, random: bool) -> Artefact | None:
    """What two programs did that were started again: `ours` and `theirs` are the losses of their steps, of `last` that
    a whole training has. With a `random` order of the data losses say nothing.
    """
    if len(ours) == last:
        return None  # it begins anew by itself
    begun = f"after a kill the original goes on from step {last - len(ours)}"
    if len(theirs) == last:
        return Artefact(NAME, l8_effects.MISSING, f"{begun}, and the migrated program begins anew")
    if len(theirs) != len(ours):
        other = f"the migrated program takes {len(theirs)} steps more, where the original takes {len(ours)}"
        return Artefact(NAME, l8_effects.MISSING, f"{begun}; {other}")
    place = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if _apart(a, b)), None)
    if place is None or random:
        return Artefact(NAME, l8_effects.SAME, f"both go on from step {last - len(ours)}, for {len(ours)} steps")
    said = (
        f"the loss of its step {place + 1} is {ours[place]:.6g} then, and {theirs[place]:.6g} in the migrated program"
    )
    return Artefact(NAME, l8_effects.DIFFERENT, f"{begun}; {said}")


def _apart(a: float, b: float) -> bool:
    return not abs(a - b) <= _TOGETHER * max(abs(a), abs(b))
