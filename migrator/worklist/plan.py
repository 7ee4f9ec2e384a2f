"""How much is left, what opens most, and what the estimate of the effort is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from migrator.findings import Finding
from migrator.worklist.programs import FORMS, Program, Reason, says_what_to_write

#: Minutes of a person who knows the program. Rules of thumb: nobody has measured them.
READ = {"native": 10, "bridge": 5}
REVIEW, REASON, PLACE = 5, 30, 5
_MOST_REASONS = 40  # of which three are chosen
_MOST_CHOSEN = 3


@dataclass(frozen=True)
class Opening:
    """Some reasons, and the programs that nothing else is known to block."""

    reasons: tuple[Reason, ...]
    programs: tuple[Program, ...]


@dataclass(frozen=True)
class Effort:
    """One part of the estimate: what is done, how often, and how many minutes that takes."""

    what: str
    count: int
    minutes: int


def counts(programs: Iterable[Program]) -> dict[str, int]:
    """How many programs there are of each form."""
    found = Counter(program.form for program in programs)
    return {form: found[form] for form in FORMS}


def by_reason(programs: Sequence[Program]) -> list[tuple[Reason, list[Program], int]]:
    """Each reason, the programs that it blocks, and how many of them it alone blocks; the most frequent ones first."""
    found: dict[Reason, list[Program]] = {}
    for program in programs:
        for reason in program.reasons:
            found.setdefault(reason, []).append(program)
    alone = Counter(reason for program in programs if len(program.reasons) == 1 for reason in program.reasons)
    return sorted(
        ((reason, some, alone[reason]) for reason, some in found.items()),
        key=lambda one: (-len(one[1]), -one[2], one[0]),
    )


def openings(programs: Sequence[Program]) -> list[Opening]:
    """The one reason, the two and the three whose end opens most programs; no more of them than open more."""
    blocked = [program for program in programs if program.reasons and len(program.reasons) <= _MOST_CHOSEN]
    often = Counter(reason for program in blocked for reason in program.reasons)
    reasons = [reason for reason, _ in sorted(often.items(), key=lambda one: (-one[1], one[0]))[:_MOST_REASONS]]
    found: list[Opening] = []
    for size in range(1, min(_MOST_CHOSEN, len(reasons)) + 1):
        best: Opening | None = None
        for chosen in combinations(reasons, size):
            opened = tuple(program for program in blocked if program.reasons <= set(chosen))
            if best is None or len(opened) > len(best.programs):
                best = Opening(chosen, opened)
        if best is not None and best.programs and (not found or len(best.programs) > len(found[-1].programs)):
            found.append(best)
    return found


def efforts(programs: Sequence[Program]) -> list[Effort]:
    """What the estimate is made of. What several programs share is counted once."""
    forms = counts(programs)
    reviews = {_key(one) for program in programs for one in program.reviews}
    places = {_key(one): reason for program in programs for reason, some in program.blocking for one in some}
    reasons = {
        reason for program in programs for reason, some in program.blocking if not all(map(says_what_to_write, some))
    }
    parts = [
        Effort("read the change of a native program", forms["native"], READ["native"]),
        Effort("read the change of a bridged program", forms["bridge"], READ["bridge"]),
        Effort("look at a finding for review", len(reviews), REVIEW),
        Effort("find a replacement for something that blocks programs", len(reasons), REASON),
        Effort("change a line that blocks a program", len(places), PLACE),
    ]
    return [Effort(one.what, one.count, one.count * one.minutes) for one in parts if one.count]


def _key(finding: Finding) -> tuple[str, int, int, int, str]:
    return finding.path, finding.cell, finding.line, finding.column, finding.code


def duration(minutes: int) -> str:
    """Minutes in words, no more exact than they are: "40 minutes", "about 3 hours", "about 6 days of 6 hours"."""
    if minutes < 90:
        return f"{minutes} minutes"
    hours = round(minutes / 60)
    if hours <= 12:
        return f"about {hours} hours"
    return f"about {round(hours / 6)} days of 6 hours"
