"""From level results to one of four verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.harness.protocol.results import Divergence, LevelResult, Reason, Status, counted

TITLES = {
    "L0": "Both programs run",
    "L0b": "Same settings",
    "L1": "Same variables",
    "L2": "Same data",
    "L3": "Same loss before any update",
    "L4": "Same gradients, weights and optimizer state",
    "L4b": "Same single steps",
    "L5": "Same loss at every step",
    "L5s": "Same training by several trainers in a fixed order",
    "L6": "Same asynchronous behaviour",
    "L7": "Same evaluation",
    "L8": "Same artefacts",
    "L9": "Steps that compile for a TPU",
}
ORDER = tuple(TITLES)
REQUIRED = ("L0", "L0b", "L1", "L2", "L3", "L4", "L5")
_WORST_FIRST = (Status.FAILED, Status.DIFFERENT, Status.INCONCLUSIVE)


@dataclass(frozen=True)
class Verdict:
    """`status` is one of EQUIVALENT, DIFFERENT, INCONCLUSIVE, FAILED; `level` is the level that decided it,
    if any.
    """

    status: Status
    sentence: str
    level: str | None = None
    reason: Reason | None = None
    divergence: Divergence | None = None


def not_run(level: str, because: str) -> LevelResult:
    """A level that was not reached, because an earlier one already decided."""
    return LevelResult(level, TITLES[level], Status.NOT_EXERCISED, f"not run: {because}", Reason.STOPPED_EARLIER)


def complete(levels: Sequence[LevelResult], required: Sequence[str] = REQUIRED) -> tuple[LevelResult, ...]:
    """The levels in order; those required and absent are added as not run."""
    given = {level.id: level for level in levels}
    decided = next((level.id for level in levels if level.status in (Status.FAILED, Status.DIFFERENT)), None)
    because = f"{decided} decided the verdict" if decided else "an earlier level left nothing to compare"
    return tuple(given.get(name) or not_run(name, because) for name in ORDER if name in given or name in required)


def decide(levels: Sequence[LevelResult], required: Sequence[str] = REQUIRED) -> Verdict:
    """The worst status of the levels, in the order FAILED, DIFFERENT, INCONCLUSIVE, EQUIVALENT.

    EQUIVALENT needs every required level to say so itself: a level that is absent, or that was not exercised
    for another reason than an earlier decision, makes the comparison inconclusive.
    """
    by_id = {level.id: level for level in levels}
    for status in _WORST_FIRST:
        for level in levels:
            if level.status is status:
                first = level.differences[0] if level.differences else None
                return Verdict(
                    status,
                    f"{level.id} ({level.title.lower()}): {level.summary}",
                    level.id,
                    level.reason,
                    first,
                )
    for name in required:
        found = by_id.get(name)
        if found is None or found.status is not Status.EQUIVALENT:
            return Verdict(
                Status.INCONCLUSIVE,
                f"{name} ({TITLES[name].lower()}) was not exercised",
                name,
                Reason.MISSING_VALUES,
            )
    return Verdict(Status.EQUIVALENT, _equivalent(by_id))


def _agreement(level: LevelResult) -> str:
    if level.ratio is None or level.tolerance is None:
        return "as far as they were measured"
    if level.ratio == 0.0:
        return "bit for bit"
    return f"within {level.ratio:.2g} noise floors (accepted: {level.tolerance:.3g})"


def _equivalent(levels: dict[str, LevelResult]) -> str:
    l4, l5 = levels["L4"], levels["L5"]
    steps = counted(l5.horizon_step or 0, "step")
    sentence = f"weights and optimizer state agree {_agreement(l4)}, and the losses of {steps} agree {_agreement(l5)}"
    in_order, seeds, evaluation = levels.get("L5s"), levels.get("L6"), levels.get("L7")
    if in_order is not None:
        sentence += f"; the losses of several trainers in a fixed order agree {_agreement(in_order)}"
    if seeds is not None and seeds.status is Status.EQUIVALENT and seeds.excluded:
        sentence += f"; running freely, {seeds.excluded}"
    if evaluation is not None and evaluation.status is Status.EQUIVALENT:
        sentence += "; the evaluations agree too"
    artefacts = levels.get("L8")
    if artefacts is not None and artefacts.status is Status.EQUIVALENT:
        sentence += f"; {artefacts.summary}"
    control = l4.control
    if control is not None and control.ratio is not None:
        sentence += f"; {control.mistake or control.name} stands out by {control.ratio:.3g} noise floors"
    return sentence
