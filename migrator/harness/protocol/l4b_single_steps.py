"""L4b: single steps from the same weights, slots and count of steps, wherever in a training that may be.

A step that both programs take from the same point has no history: neither chaos nor the spread of replicates decides
about it. On batches and with weights that are far greater than those of the training a branch may be taken that the
data never took; there only what is grossly apart is a difference, because formulas that agree may round apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from migrator.harness.protocol import causes, compare, judging, l1_variables, measurements, tolerance
from migrator.harness.protocol.judging import Finding, Judgement
from migrator.harness.protocol.measurements import GRADIENT, LOSS, SLOT, Measurements, Others, Quantity
from migrator.harness.protocol.results import Control, LevelResult, Reason, Status
from migrator.harness.recording import Array, Recording

T = TypeVar("T")
ID, TITLE = "L4b", "Same single steps"
#: Under stress, the share of the greatest value that a number has to be off to be another branch and not rounding.
GROSS = 1e-3


@dataclass(frozen=True)
class Taken:
    """The step that a step of the run was: its number in the training, and what was made greater.

    `apart`: weights were made greater, and the slots of the optimizer were not. The update then says nothing, since
    an optimizer may compute weights of its slots alone (Ftrl), all of them or those that the batch has a part in.
    """

    number: int
    stress: str = ""
    apart: bool = False


def not_tried(why: str) -> LevelResult:
    """The level where no single steps could be compared; it decides nothing then."""
    return LevelResult(ID, TITLE, Status.NOT_EXERCISED, why, Reason.NOT_EXERCISED)


def _table(recording: Recording, taken: Sequence[Taken], rename: Mapping[str, str] | None = None) -> Measurements:
    """Losses, gradients, weights and slots in use, by the place of the step in the run."""
    used = l1_variables.slots_in_use(recording)
    names = rename or {}
    in_use = {(names.get(variable, variable), slot) for variable, slots in used.items() for slot in slots}
    table = {**measurements.losses(recording), **measurements.tensors(recording, rename)}
    return {
        (quantity, step): value
        for (quantity, step), value in table.items()
        if step <= len(taken) and (quantity.family != SLOT or (quantity.name, quantity.slot) in in_use)
    }


def _usable(tables: Sequence[Measurements], taken: Sequence[Taken]) -> set[int]:
    """The places whose numbers can be compared: under stress only those where all of some tables are finite."""
    broken = {step for table in tables for (_, step), value in table.items() if not compare.finite(value)}
    return {place for place, one in enumerate(taken, start=1) if place not in broken or not one.stress}


def _sizes(table: Measurements, stressed: set[int]) -> dict[Quantity, float]:
    """The greatest absolute value that each quantity of floats has in the steps that are not under stress."""
    sizes: dict[Quantity, float] = {}
    for (quantity, step), value in table.items():
        if step not in stressed and value.dtype.kind == "f":
            sizes[quantity] = max(sizes.get(quantity, 0.0), compare.greatest(value))
    return sizes


def _gross(finding: Finding, value: Array, ordinary: float) -> bool:
    """Whether a difference is more than formulas that agree may come to far out.

    `ordinary` is how great the quantity is where nothing is stressed: behind a saturated gate a gradient is zero, or
    what rounding leaves of it, and which of the two hangs on the processor's instructions.
    """
    if not finding.is_value:
        return True
    scale = compare.greatest(value) if value.dtype.kind == "f" else 1.0
    return finding.outcome.absolute > GROSS * max(scale, ordinary)


@dataclass(frozen=True)
class Part:
    """What some of the single steps have shown, without their tensors.

    `ordinary` are their numbers in the training and `tried` what was greater in the others, where they could be
    compared; `worst` is the worst finding without stress, `different` the result where one is outside. `control` says
    whether the control was seen, `branches` what is to be said about numbers that only one program compares with.
    """

    ordinary: tuple[int, ...]
    tried: tuple[str, ...]
    worst: Finding | None
    control: Control
    notes: tuple[str, ...]
    branches: tuple[str, ...] = ()
    different: LevelResult | None = None
    strictly: bool = False
    """Whether no number is further apart than one rounding takes it, so that more replicates would change nothing."""
    outside: frozenset[int] = frozenset()
    """The places of the steps that differ."""
    judged: frozenset[int] = frozenset()
    """The places of all steps that could be compared."""

    @property
    def few_differ(self) -> bool:
        """Whether most of the steps agree, or no other was compared: then those that do not may lie on an edge."""
        return bool(self.outside) and (2 * len(self.outside) < len(self.judged) or len(self.judged) == 1)

    @property
    def far_inside(self) -> bool:
        """Whether nothing differs, and floors half as great, which more replicates may show, would not change that."""
        most = tolerance.MINIMUM_C / tolerance.OF_ONE
        return self.different is None and (self.worst is None or self.worst.ratio <= most)


def compared(
    originals: Sequence[Recording],
    migrated: Sequence[Recording],
    taken: Sequence[Taken],
    starts: Mapping[int, Mapping[str, Array]],
    to_original: Mapping[str, str],
    *,
    versions_differ: bool,
    added: Mapping[str, float] | None = None,
    without: Collection[int] = (),
) -> Part | None:
    """Compares the single steps of `originals` (the run, then replicates) and `migrated` (the run, then the control
    where there is one); None if both programs recorded none of them.

    `taken` says what the steps of the runs were, `starts` which weights each began with; `added` as for the tolerance.
    Steps at the places `without` are left out: they lie on an edge (see `on_an_edge`), which is said.
    """
    ours, theirs, wrong = originals[0], migrated[0], migrated[1] if len(migrated) > 1 else None
    count = min(max((step.number for step in one.steps), default=0) for one in (*originals, *migrated))
    taken = taken[:count]
    table, other = _table(ours, taken), _table(theirs, taken, to_original)
    control: Others = {}
    if wrong is not None:
        control = {**_table(wrong, taken, to_original), **measurements.gone(wrong, table)}
    # Where sums of half precision come near its greatest number, the order of their terms decides which is finite.
    steps = _usable([table, other] if ours.halves else [table], taken) - set(without)
    families = [{(key[0].family, key[1]) for key in one} for one in (table, other)]
    common = families[0] & families[1]  # what only one of two recorders writes is no finding about a program

    def cut(one: Mapping[tuple[Quantity, int], T]) -> dict[tuple[Quantity, int], T]:
        kept = {k: v for k, v in one.items() if k[1] in steps and (k[0].family, k[1]) in common}
        return {k: v for k, v in kept.items() if k[0].family in (LOSS, GRADIENT) or not taken[k[1] - 1].apart}

    table, other, control = cut(table), cut(other), cut(control)
    if not any(quantity.family == LOSS for quantity, _ in table):
        return None
    limits = tolerance.derive(ours, originals[1:], versions_differ=versions_differ, starts=starts, added=added)
    found = judging.judge(table, other, limits, ours)
    seen = judging.judge(table if wrong is not None else {}, control, limits, ours)
    stressed = {place for place, one in enumerate(taken, start=1) if one.stress}
    plain = found.where(lambda f: f.step not in stressed and not f.unjudged)
    sizes, nothing = _sizes(table, stressed), np.zeros(())

    def gross(one: Finding) -> bool:
        return _gross(one, table.get((one.quantity, one.step), nothing), sizes.get(one.quantity, 0.0))

    beyond = found.where(lambda f: f.step in stressed and f.outside and gross(f))
    outside = (*plain.outside, *beyond.outside)
    ordinary = [one.number for place, one in enumerate(taken, start=1) if place in steps and not one.stress]
    tried = [one.stress for place, one in enumerate(taken, start=1) if place in steps and one.stress]
    visible = [place for place in steps - stressed if any(f.outside for f in seen.findings if f.step == place)]
    verdict = Control.of(
        tolerance.control_mistake(ours), bool(visible), seen.where(lambda f: f.step not in stressed).strongest()
    )
    notes = _notes(found, taken, steps | set(without), stressed, bool(ours.halves))
    notes += [_edge(taken[place - 1]) for place in sorted(without)]
    different = _different(outside, taken, ours, theirs, to_original, verdict, notes) if outside else None
    said = branches(ours, theirs, bool(tried))
    bare = tolerance.derive(ours, (), versions_differ=versions_differ, starts=starts, added=added)
    apart = judging.judge(table, other, bare, ours).where(
        lambda f: f.unjudged or (f.outside and (f.step not in stressed or gross(f)))
    )
    strictly = (verdict.detected or wrong is None) and not (outside or apart.findings or found.unjudged)
    far = frozenset(finding.step for finding in outside)
    judged = frozenset(step for _, step in table)
    return Part(
        tuple(ordinary), tuple(tried), plain.worst, verdict, tuple(notes), said, different, strictly, far, judged
    )


def judge(parts: Sequence[Part]) -> LevelResult:
    """The level, of all single steps together: the first part that differs, else what all of them say."""
    if not parts:
        return not_tried("no step was taken that both programs recorded")
    different = next((part.different for part in parts if part.different is not None), None)
    strongest = max((one.control.ratio for one in parts if one.control.ratio is not None), default=None)
    verdict = replace(parts[0].control, detected=any(part.control.detected for part in parts), ratio=strongest)
    if different is not None:
        return replace(different, control=verdict)
    ordinary = {number for part in parts for number in part.ordinary}
    tried = list(dict.fromkeys(stress for part in parts for stress in part.tried))
    worst = max((part.worst for part in parts if part.worst is not None), key=_how_far, default=None)
    status, reason = Status.EQUIVALENT, None
    summary = f"single steps {_listed(ordinary)} agree" + (f" {judging.agreement(worst)}" if worst is not None else "")
    notes = dict.fromkeys(note for part in parts for note in (*part.notes, *part.branches))
    if tried:
        summary += f", and so do steps with {', with '.join(tried)}"
    if not verdict.detected:
        status, reason = Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED
        summary = f"this workload cannot show the error: {verdict.name} stays inside the tolerance too"
    return LevelResult(
        ID,
        TITLE,
        status,
        summary,
        reason,
        None if worst is None else worst.outcome.absolute,
        None if worst is None else worst.floor,
        None if worst is None else worst.accepted,
        None if worst is None else worst.ratio,
        verdict,
        notes=tuple(notes),
    )


def unsteady(part: Part, where: str) -> Part:
    """A part that differs, where the original does not repeat its own steps: nobody knows which of its runs counts."""
    assert part.different is not None
    said = f"the original does not repeat its own single steps from the same weights on the same batches: {where}"
    cause = "gradients that nothing waits for may see weights that another update has changed already"
    notes = (*part.different.notes, f"{part.different.summary}; {cause}")
    level = replace(
        part.different,
        status=Status.INCONCLUSIVE,
        reason=Reason.NONDETERMINISTIC_ORIGINAL,
        summary=said,
        differences=(),
        notes=notes,
    )
    return replace(part, different=level)


#: How far weights are moved, the same in both programs, to look beside a step that differs: many units in the last
#: place, and next to nothing otherwise.
BESIDE = 1e-5
#: How often, and in how many of these the programs have to agree.
LOOKS, ENOUGH = 3, 2


def on_an_edge(looks: Part | None, places: Sequence[Sequence[int]]) -> bool:
    """Whether steps that differ lie where rounding alone decides: a relu is open or shut, one of two equal numbers is
    the greatest. `looks` are the same steps from weights beside theirs, those of each at the `places`: what programs do
    otherwise they do there too, and nowhere else does rounding decide the same.
    """
    if looks is None or any(place not in looks.judged for several in places for place in several):
        return False
    return all(sum(place not in looks.outside for place in several) >= ENOUGH for several in places)


def _edge(taken: Taken) -> str:
    where = f" with {taken.stress}" if taken.stress else ""
    return (
        f"single step {taken.number}{where}: rounding decides a branch there, as whether a relu is open; "
        f"with weights moved by {BESIDE:g} of themselves both programs agree"
    )


def _how_far(finding: Finding) -> float:
    return math.inf if math.isnan(finding.ratio) else finding.ratio


def _listed(steps: Iterable[int]) -> str:
    return ", ".join(str(step) for step in sorted(steps))


def branches(original: Recording, migrated: Recording, tried: bool) -> tuple[str, ...]:
    """What is to be said about numbers that only one of the two programs compares with, as in a clip or a `where`."""
    if original.thresholds is None or migrated.thresholds is None:
        return ()
    said = []
    for which, own, other in (("original", original, migrated), ("migrated program", migrated, original)):
        known = other.thresholds or ()
        alone = [one for one in own.thresholds or () if not any(np.isclose(one, two, rtol=1e-6) for two in known)]
        if alone:
            end = "steps on stressed batches agree all the same" if tried else "no stressed batch was tried"
            said.append(f"only the {which} compares numbers with {', '.join(f'{one:g}' for one in alone)}: {end}")
    return tuple(said)


def _notes(
    found: Judgement, taken: Sequence[Taken], steps: set[int], stressed: set[int], halves: bool = False
) -> list[str]:
    notes = []
    left = [one.stress for place, one in enumerate(taken, start=1) if one.stress and place not in steps]
    if left:
        whose = "numbers of one program" if halves else "the original's own numbers"
        notes.append(f"with {', with '.join(left)} {whose} are not finite")
    unmeasured = sorted({taken[f.step - 1].number for f in found.unjudged if f.step not in stressed})
    if unmeasured:
        notes.append(f"single steps {_listed(unmeasured)}: some numbers have no noise floor")
    return notes


def _different(
    outside: Sequence[Finding],
    taken: Sequence[Taken],
    ours: Recording,
    theirs: Recording,
    rename: Mapping[str, str],
    control: Control,
    notes: Sequence[str],
) -> LevelResult:
    first = outside[0]
    what = taken[first.step - 1]
    numbered = [replace(f, step=taken[f.step - 1].number) for f in outside]
    place = f", with {what.stress}, where the data never was" if what.stress else ""
    divergences = causes.divergences(causes.evidence(ours, theirs, rename), numbered[: judging.LISTED])
    return LevelResult(
        ID,
        TITLE,
        Status.DIFFERENT,
        f"from the same weights{place}: {judging.described(numbered[0])}",
        Reason.VALUE_DIFFERS,
        first.outcome.absolute,
        first.floor,
        first.accepted,
        first.ratio,
        control,
        differences=tuple(divergences),
        notes=tuple(notes),
    )
