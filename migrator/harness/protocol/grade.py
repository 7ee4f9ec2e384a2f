"""How strong an EQUIVALENT is: how many steps, which levels and artefacts it vouches for, what it would have seen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from migrator.harness.protocol import measurements
from migrator.harness.protocol.results import Artefact, LevelResult, Status, counted
from migrator.harness.recording import Recording

STEPS, ARTEFACTS = "steps", "artefacts"


@dataclass(frozen=True)
class Grade:
    """What a verdict stands on.

    `steps` of `of_steps` are those whose losses it vouches for, on so many `trainers`. `apart` is the greatest relative
    difference of a loss among them (None: none was compared). `levels` said EQUIVALENT; `open` did not, although they
    have something to say about these programs. `sees` are the smallest errors that the levels would have found, and
    `modes` what of a program ran: "train", "evaluate", "predict". `artefacts` were found to be the same, `missing`
    could not be compared. `lines` say which lines of the programs' files ran, of the original and of the migrated
    program (None: not watched). `spared` says what was left out because of the number of weights, "" where nothing was.
    """

    steps: int
    of_steps: int
    trainers: int
    apart: float | None
    levels: tuple[str, ...]
    open: tuple[str, ...]
    sees: tuple[str, ...]
    modes: tuple[str, ...]
    artefacts: tuple[str, ...]
    missing: tuple[str, ...]
    lines: tuple[Covered | None, Covered | None] = (None, None)
    spared: str = ""


@dataclass(frozen=True)
class Covered:
    """`ran` of `of` lines of a program ran; `missed` are the others: "train.py:10-14". `taken` of its `branches` were
    taken.
    """

    ran: int
    of: int
    missed: tuple[str, ...]
    taken: int = 0
    branches: int = 0


def _covered(recording: Recording | None) -> Covered | None:
    if recording is None or not recording.lines:
        return None
    missed: list[str] = []
    for path, lines in sorted(recording.lines.items()):
        for ran, several in itertools.groupby(sorted(lines.of), key=lines.ran.__contains__):
            if not ran:
                some = list(several)
                span = f"{some[0]}" if some[0] == some[-1] else f"{some[0]}-{some[-1]}"
                missed.append(f"{PurePath(path).name}:{span}")
    every = recording.lines.values()
    count, taken = sum(len(lines.ran) for lines in every), sum(len(lines.taken) for lines in every)
    of, branches = sum(len(lines.of) for lines in every), sum(len(lines.branches) for lines in every)
    return Covered(count, of, tuple(missed), taken, branches)


def grade(
    levels: Sequence[LevelResult],
    artefacts: Sequence[Artefact],
    original: Recording | None,
    migrated: Recording | None,
    trainers: int = 1,
    whole: tuple[Recording | None, Recording | None] = (None, None),
    spared: str = "",
) -> Grade:
    """The grade of a comparison with these levels; the recordings are those that L5 judged, None where there are
    none. `whole` are the runs of both programs to their ends, whose lines were watched, and `spared` is as there.
    """
    passed = tuple(level.id for level in levels if level.status is Status.EQUIVALENT)
    judged = next((level for level in levels if level.id == "L5" and level.status is Status.EQUIVALENT), None)
    steps = (judged.horizon_step or 0) if judged is not None else 0
    modes: tuple[str, ...] = ()
    if original is not None:
        ran = (("train", original.steps), ("evaluate", original.evaluations), ("predict", original.predictions))
        modes = tuple(name for name, found in ran if found)
    return Grade(
        steps=steps,
        of_steps=0 if original is None else max((step.number for step in original.steps), default=0),
        trainers=trainers,
        apart=_apart(original, migrated, steps),
        levels=passed,
        open=tuple(
            level.id for level in levels if level.id not in passed and level.status is not Status.NOT_APPLICABLE
        ),
        sees=tuple(dict.fromkeys(level.excluded for level in levels if level.excluded)),
        modes=modes,
        artefacts=tuple(one.name for one in artefacts if one.status == "same"),
        missing=tuple(one.name for one in artefacts if one.status in ("missing", "not compared")),
        lines=(_covered(whole[0]), _covered(whole[1])),
        spared=spared,
    )


def _apart(original: Recording | None, migrated: Recording | None, steps: int) -> float | None:
    if original is None or migrated is None or not steps:
        return None
    ours, theirs = measurements.losses(original), measurements.losses(migrated)
    gaps = []
    for key in ours.keys() & theirs.keys():
        if key[1] <= steps:
            a, b = float(ours[key]), float(theirs[key])
            gaps.append(0.0 if a == b else abs(a - b) / max(abs(a), abs(b)))
    return max(gaps, default=None)


def headline(found: Grade) -> str:
    """What a user wants to know first, as a sentence without its full stop: "29 steps on 3 trainers: the losses agree
    to 7 digits, and the evaluations with the same weights agree too".
    """
    steps = counted(found.of_steps, "step")
    if found.of_steps != found.steps:
        steps = f"{found.steps} of {steps}"
    where = f" on {found.trainers} trainers" if found.trainers > 1 else ""
    sentence = f"{steps}{where}: the losses {_agreement(found.apart)}"
    others = ["evaluations"] if "L7" in found.levels else []
    for words, name in (("predictions", "predictions"), ("exported models", "exported model")):
        others += [words] if any(one.startswith(name) for one in found.artefacts) else []
    left = [name for name in found.missing if name.startswith("training") and "," not in name]
    models = f"; not every model that the script trains was compared: {', '.join(left)}" if left else ""
    if not others:
        return f"{sentence}{models}"
    listed = " and ".join([", ".join(others[:-1]), others[-1]] if len(others) > 1 else others)
    if found.apart is None:
        return f"{sentence}, but the {listed} with the same weights agree{models}"
    return f"{sentence}, and the {listed} with the same weights agree too{models}"


def _agreement(apart: float | None) -> str:
    if apart is None:
        return "were not compared"
    if apart == 0.0:
        return "are the same bit for bit"
    digits = math.floor(-math.log10(apart)) if 0.0 < apart < 1.0 else 0
    return f"agree to {digits} digit{'' if digits == 1 else 's'}" if digits else "agree within their noise"


def line(found: Grade) -> str:
    """The whole grade in one line."""
    told = [
        f"{found.steps} of {found.of_steps} steps",
        f"levels {', '.join(found.levels) or 'none'}" + (f" (not {', '.join(found.open)})" if found.open else ""),
        f"ran: {', '.join(found.modes) or 'nothing'}{_shares(found)}",
    ]
    if found.artefacts or found.missing:
        missing = f" (not {', '.join(found.missing)})" if found.missing else ""
        told.append(f"artefacts: {', '.join(found.artefacts) or 'none'}{missing}")
    told += [found.spared] if found.spared else []
    return "; ".join([*told, *found.sees[:1]])


def _shares(found: Grade) -> str:
    both = zip(("original", "migrated"), found.lines, strict=True)
    told = []
    for program, one in both:
        if one is not None:
            branches = f" and {one.taken} of {one.branches} branches" if one.branches else ""
            told.append(f"{100 * one.ran // max(one.of, 1)} % of the {program}'s lines{branches}")
    return "".join(f", {one}" for one in told)


#: Places with lines that did not run that are named.
_NAMED = 5


def never_ran(found: Grade) -> tuple[str, ...]:
    """What is to be said about lines that did not run, without full stops."""
    said = []
    for program, covered in zip(("the original", "the migrated program"), found.lines, strict=True):
        if covered is not None and covered.missed:
            named = ", ".join(covered.missed[:_NAMED])
            more = f" and {len(covered.missed) - _NAMED} more" if len(covered.missed) > _NAMED else ""
            said.append(f"lines of {program} that never ran: {named}{more}")
    return tuple(said)


def checked(words: Sequence[str], levels: Iterable[str]) -> tuple[str, ...]:
    """What a user requires, as `lacking` takes it: "steps", "steps=N", "artefacts", ids of levels, each alone or
    with others behind commas. ValueError.
    """
    known = {name.lower(): name for name in levels}
    found = []
    for word in ",".join(words).split(",") if words else ():
        name, equals, count = word.strip().partition("=")
        if name.lower() == STEPS and (not equals or (count.isdigit() and int(count) > 0)):
            found.append(STEPS + equals + count)
        elif name.lower() == ARTEFACTS and not equals:
            found.append(ARTEFACTS)
        elif name.lower() in known and not equals:
            found.append(known[name.lower()])
        else:
            choices = ", ".join(known.values())
            raise ValueError(f"{word!r} cannot be required: name steps, steps=N, artefacts, or a level ({choices})")
    return tuple(found)


def lacking(found: Grade, required: Sequence[str]) -> tuple[str, ...]:
    """What is required (see `checked`) and was not shown, in words."""
    missing = []
    for word in required:
        name, _, count = word.partition("=")
        if name == STEPS:
            wanted = int(count) if count else found.of_steps
            if found.steps < max(wanted, 1):
                missing.append(f"{wanted} steps (vouched for: {found.steps})")
        elif name == ARTEFACTS:
            missing += found.missing or (() if found.artefacts else ("an artefact to compare",))
        elif name not in found.levels:
            missing.append(f"level {name}")
    return tuple(missing)
