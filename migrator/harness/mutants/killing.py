"""Runs known-bad versions of a migrated program and says what became of each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from migrator.harness.mutants.catalogue import MUTANTS, Mutant
from migrator.harness.protocol.results import LevelResult, MutantOutcome, Status
from migrator.harness.protocol.tolerance import HELD_OUT_FACTOR
from migrator.harness.recording import Recording

KILLED, MISSED, NOT_EXERCISED, NOT_APPLICABLE = "killed", "missed", "not_exercised", "not_applicable"


class Run(Protocol):
    """One run of the migrated program; without a recording, `complaint` says why there is none."""

    @property
    def recording(self) -> Recording | None:
        """What the run recorded."""

    @property
    def complaint(self) -> str | None:
        """What went wrong."""


AnyRun = TypeVar("AnyRun", bound=Run)


@dataclass(frozen=True)
class Unmutated:
    """The migrated program as it is: what it recorded, under the plan that the mutants run under, and its levels."""

    recording: Recording
    levels: tuple[LevelResult, ...]


# What two runs of one program need not share: clocks, lines and folders say nothing about what was computed.
# What stands in a graph and not what comes of it is no number either.
_NOT_NUMBERS = frozenset(
    {"time", "cpu", "sources", "mutation", "exports", "effects", "thresholds", "rate_constants", "slot_variables"}
    | {"halves", "racing", "lines", "printed", "printed_whole", "apart"}
)
# What rounding moves. All else in a recording is exact.
_ROUNDED = frozenset(
    {"steps", "states", "slots", "raw_slots", "gradients", "activations", "regularization", "evaluations"}
)


def same_numbers(one: Any, other: Any, without: frozenset[str] = frozenset()) -> bool:
    """Whether two recordings agree in every bit of every number, setting and digest, fields `without` aside."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        left, right = np.asarray(one), np.asarray(other)
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and all(
            same_numbers(getattr(one, field.name), getattr(other, field.name))
            for field in fields(one)
            if field.name not in _NOT_NUMBERS | without
        )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_numbers(value, other[key]) for key, value in one.items())
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(same_numbers, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def kill(
    mutant: Mutant,
    run: Callable[[Mapping[str, Any]], AnyRun],
    judge: Callable[[AnyRun], Sequence[LevelResult]],
    unmutated: Unmutated,
) -> MutantOutcome:
    """Runs one mutant and judges it as the migrated program itself is judged.

    `run` takes additions to the plan; `judge` returns the levels of a run that has a recording, in their order.
    A crash is no kill: it says nothing about what the levels can see. Neither is INCONCLUSIVE, but nor is it a miss:
    the verdict would not have been EQUIVALENT.
    """
    started = time.monotonic()
    made = run({"mutant": mutant.plan})

    def outcome(status: str, detail: str, level: LevelResult | None = None) -> MutantOutcome:
        return MutantOutcome(
            id=mutant.id,
            description=mutant.description,
            expected_level=mutant.expected_level,
            status=status,
            killed_at=None if level is None else level.id,
            ratio=None if level is None else level.ratio,
            detail=detail,
            seconds=time.monotonic() - started,
        )

    found = made.recording
    if found is None:
        return outcome(NOT_EXERCISED, f"the changed program failed: {made.complaint or 'it left no recording'}")
    if found.mutation is None:
        raise ValueError(f"the run of the mutant {mutant.id} was not told of it")
    if found.mutation == 0:
        return outcome(NOT_APPLICABLE, "the program has nothing to make this mistake in")
    if same_numbers(found, unmutated.recording):
        return outcome(NOT_EXERCISED, "every recorded number is the same as without the mistake")
    levels = judge(made)
    for level in levels:
        if level.status is Status.DIFFERENT:
            return outcome(KILLED, level.summary, level)
    before = {level.id: level.status for level in unmutated.levels}
    for level in levels:
        undecided = level.status in (Status.INCONCLUSIVE, Status.FAILED)
        if undecided and before.get(level.id) is not level.status:
            return outcome(NOT_EXERCISED, f"{level.id} is {level.status.value} with it: {level.summary}")
    measured = [level for level in levels if level.ratio is not None]
    worst = max(measured, key=_ratio, default=None)
    if worst is None:
        return outcome(MISSED, "the numbers changed, and no level measures them")
    rounded = same_numbers(found, unmutated.recording, _ROUNDED) and _same_rates(found, unmutated.recording)
    evaluated = same_numbers(found.evaluations, unmutated.recording.evaluations)
    if rounded and (evaluated or any(level.id == "L7" for level in measured)) and all(map(_within_noise, measured)):
        return outcome(
            NOT_EXERCISED,
            f"the numbers move no further than rounding moves the original's own ({_ratio(worst):.3g} noise floors, "
            f"{worst.id})",
        )
    return outcome(MISSED, f"the numbers changed, at most to {_ratio(worst):.3g} noise floors ({worst.id})")


def _ratio(level: LevelResult) -> float:
    return level.ratio if level.ratio is not None and not math.isnan(level.ratio) else math.inf


def _within_noise(level: LevelResult) -> bool:
    """Whether a level's difference is one that replicates of the original show among themselves."""
    return level.tolerance is not None and _ratio(level) <= level.tolerance / HELD_OUT_FACTOR


def _same_rates(one: Recording, other: Recording) -> bool:
    return [(step.task, step.number, step.learning_rate) for step in one.steps] == [
        (step.task, step.number, step.learning_rate) for step in other.steps
    ]


@dataclass(frozen=True)
class CaseKills:
    """What became of the mutants in one case. `unmutated` is the verdict on the migrated program as it is, which
    has to be EQUIVALENT: anything else is a false alarm.
    """

    case: str
    unmutated: Status
    summary: str
    outcomes: tuple[MutantOutcome, ...]
    seconds: float = 0.0

    @property
    def false_alarm(self) -> bool:
        """Whether a good migration was not recognised."""
        return self.unmutated is not Status.EQUIVALENT


@dataclass(frozen=True)
class KillTable:
    """The outcomes of all cases of a self-test."""

    cases: tuple[CaseKills, ...]

    @property
    def mutants(self) -> tuple[MutantOutcome, ...]:
        """One outcome for each mutant that any case ran, in the order of the catalogue; for its texts."""
        found: dict[str, MutantOutcome] = {}
        for case in self.cases:
            for outcome in case.outcomes:
                found.setdefault(outcome.id, outcome)
        order = {mutant.id: place for place, mutant in enumerate(MUTANTS)}
        return tuple(sorted(found.values(), key=lambda outcome: order.get(outcome.id, len(order))))

    def outcome(self, case: str, mutant: str) -> MutantOutcome | None:
        """What became of a mutant in a case; None if it was not run there."""
        outcomes = (outcome for kills in self.cases if kills.case == case for outcome in kills.outcomes)
        return next((outcome for outcome in outcomes if outcome.id == mutant), None)

    def count(self, status: str) -> int:
        """How many runs of mutants had this outcome."""
        return sum(outcome.status == status for kills in self.cases for outcome in kills.outcomes)

    @property
    def false_alarms(self) -> tuple[str, ...]:
        """The cases whose good migration was not EQUIVALENT."""
        return tuple(kills.case for kills in self.cases if kills.false_alarm)

    @property
    def never_killed(self) -> tuple[str, ...]:
        """Mutants that no case killed."""
        killed = {outcome.id for kills in self.cases for outcome in kills.outcomes if outcome.status == KILLED}
        return tuple(outcome.id for outcome in self.mutants if outcome.id not in killed)

    @property
    def passed(self) -> bool:
        """Whether no mutant was missed and no good migration was taken for a bad one."""
        return not self.false_alarms and self.count(MISSED) == 0

    def document(self) -> dict[str, Any]:
        """The table as JSON-able data."""
        return {
            "schema_version": 1,
            "passed": self.passed,
            "totals": {status: self.count(status) for status in (KILLED, MISSED, NOT_EXERCISED, NOT_APPLICABLE)},
            "false_alarms": list(self.false_alarms),
            "never_killed": list(self.never_killed),
            "cases": [
                {
                    "case": kills.case,
                    "verdict": kills.unmutated.value,
                    "summary": kills.summary,
                    "duration_s": kills.seconds,
                    "mutants": [_described(outcome) for outcome in kills.outcomes],
                }
                for kills in self.cases
            ],
        }


def _described(outcome: MutantOutcome) -> dict[str, Any]:
    ratio = outcome.ratio
    return {
        "id": outcome.id,
        "description": outcome.description,
        "expected_level": outcome.expected_level,
        "status": outcome.status,
        "killed_at": outcome.killed_at,
        # JSON has no number for what is not finite.
        "ratio": ratio if ratio is None or math.isfinite(ratio) else str(ratio),
        "detail": outcome.detail,
        "duration_s": outcome.seconds,
    }
