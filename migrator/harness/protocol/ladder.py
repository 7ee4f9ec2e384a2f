"""The levels in order, cheapest first: L0 to L2 always in full, L3 to L5 until the first one that says
DIFFERENT; and the known-bad versions of every run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from migrator.harness.mutants import BY_ID, SENTINELS, Family, Mutant
from migrator.harness.protocol import (
    judging,
    l0_runs,
    l0b_configuration,
    l1_variables,
    l2_data,
    l3_forward,
    l4_state,
    l5_trajectory,
    measurements,
    tolerance,
)
from migrator.harness.protocol.measurements import Measurements, Others
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.protocol.results import Control, LevelResult, MutantOutcome, Reason, Status
from migrator.harness.protocol.tolerance import Tolerance
from migrator.harness.protocol.verdict import TITLES
from migrator.harness.recording import Array, Recording

#: The sentinels that are run; the learning rate is the control run, and the data that of the original.
SUM_FOR_MEAN, UPDATES_MISSING = "sum-for-mean", "update-ops-missing"
RUN_SENTINELS = (SUM_FOR_MEAN, UPDATES_MISSING)

OwnInitial = tuple[Mapping[str, Array], Mapping[str, Array]]


@dataclass(frozen=True)
class Foundation:
    """L0 to L2, and what they mean for the runs that follow."""

    levels: tuple[LevelResult, ...]
    same_order: bool
    comparable: bool
    """Whether L3 to L5 make sense: nothing failed or differed, and the weights can be carried over."""


def _timed(judge: Callable[[], LevelResult]) -> LevelResult:
    started = time.perf_counter()
    return replace(judge(), seconds=time.perf_counter() - started)


def foundation(
    original: Recording,
    migrated: Recording,
    names: NameMap,
    original_trainers: Sequence[str],
    migrated_trainers: Sequence[str],
    *,
    random_order: bool = False,
    examples: l2_data.Read | None = None,
    unread: Sequence[str] = (),
    parameter_servers: bool = False,
    own_initial: OwnInitial | None = None,
    drawn: OwnInitial = ({}, {}),
    regrouped: frozenset[str] = frozenset(),
) -> Foundation:
    """L0, L0b, L1 and L2 from a run of each program on its own data. All four are always reported.

    `examples` are those that each program read, `unread` the components of the migrated program's batches that hold
    nothing of what the original reads.
    `own_initial` are the values that the two programs start from by themselves, each in its own names, and `drawn`
    further draws of them, along a first axis. `regrouped` are variables that the migrated program keeps in another
    form.
    """
    runs = _timed(lambda: l0_runs.judge(original, migrated, original_trainers, migrated_trainers))
    if runs.status is Status.FAILED:
        return Foundation((runs,), same_order=False, comparable=False)
    started = time.perf_counter()
    data = l2_data.judge(
        original,
        migrated,
        random_order=random_order,
        examples=examples,
        unread=unread,
    )
    data_level = replace(data.level, seconds=time.perf_counter() - started)
    levels = (
        runs,
        _timed(lambda: l0b_configuration.judge(original, migrated)),
        _timed(
            lambda: l1_variables.judge(
                original,
                migrated,
                names,
                parameter_servers=parameter_servers,
                own_initial=own_initial,
                drawn=drawn,
                regrouped=regrouped,
            )
        ),
        data_level,
    )
    comparable = (
        all(level.status is not Status.DIFFERENT for level in levels)
        and levels[0].status is Status.EQUIVALENT
        and names.complete
    )
    return Foundation(levels, data.same_order, comparable)


def numbers(
    original: Recording,
    migrated: Recording,
    control: Recording | None,
    bad: Mapping[str, Recording],
    names: NameMap,
    limits: Tolerance,
) -> tuple[LevelResult, ...]:
    """L3, L4 and L5 of a migrated run that started from the original's weights and read the original's
    batches.

    `bad` are the recordings of the run sentinels. Stops after the first level that says DIFFERENT: what follows is
    its consequence.
    """
    rename = names.to_original()
    wrong, factor = tolerance.control_mistake(original), tolerance.control_factor(original)
    seen = {name: run for name, run in bad.items() if not unobservable(run, migrated)}
    summed = _first_steps(original, seen.get(SUM_FOR_MEAN), rename, limits)
    updates = _first_steps(original, seen.get(UPDATES_MISSING), rename, limits)
    judges: tuple[Callable[[], LevelResult], ...] = (
        lambda: l3_forward.judge(original, migrated, limits, rename, control=_as_control(summed, SUM_FOR_MEAN)),
        lambda: _both_controls(
            l4_state.judge(original, migrated, control, rename, limits, wrong, control_factor=factor),
            _as_control(updates, UPDATES_MISSING),
        ),
        lambda: l5_trajectory.judge(original, migrated, control, rename, limits, wrong, control_factor=factor),
    )
    levels: list[LevelResult] = []
    for judge in judges:
        levels.append(_timed(judge))
        if levels[-1].status is Status.DIFFERENT:
            break
    return tuple(levels)


def _both_controls(level: LevelResult, other: Control | None) -> LevelResult:
    """The level, if its second control was seen too."""
    if other is None or other.detected or level.status is not Status.EQUIVALENT:
        return level
    return replace(
        level,
        status=Status.INCONCLUSIVE,
        reason=Reason.CONTROL_NOT_DETECTED,
        summary=f"this workload cannot show the error: {other.name} stays inside the tolerance",
    )


def agree_strictly(original: Recording, migrated: Recording, names: NameMap, limits: Tolerance, *, turns: bool) -> bool:
    """Whether every number that L3 to L5 (or with `turns` L5s) compare is there on both sides and inside the limits, at
    all steps; also where no horizon reaches.

    With limits of rounding alone this is so for programs whose spread need not be known: wider floors change nothing.
    """
    rename = names.to_original()
    found = [
        l4_state.compare(original, migrated, rename, limits),
        l5_trajectory.compare(original, migrated, rename, limits, turns=turns),
    ]
    if any(one.outside or one.unjudged or not one.findings for one in found):
        return False
    return turns or l3_forward.agrees(original, migrated, limits, rename)


# -- sentinels -----------------------------------------------------------------------------------------------


def unobservable(bad: Recording, good: Recording) -> bool:
    """Whether a known-bad version's run is, bit for bit, that of the good one: a sum over one example is its mean."""

    if bad.unmoved is not None:
        return bad.unmoved

    def numbers_of(recording: Recording) -> Measurements:
        return _beginning(measurements.everything(recording), max((step.number for step in bad.steps), default=0))

    ours, theirs = numbers_of(good), numbers_of(bad)
    return ours.keys() == theirs.keys() and all(
        value.dtype == theirs[key].dtype and value.tobytes() == theirs[key].tobytes() for key, value in ours.items()
    )


def _beginning(table: Measurements, steps: int) -> Measurements:
    return {key: value for key, value in table.items() if key[1] <= steps}


def _first_steps(
    original: Recording, bad: Recording | None, rename: Mapping[str, str], limits: Tolerance
) -> judging.Judgement | None:
    """A known-bad version's short run against the same steps of the original; None if nothing in it was changed."""
    if bad is None or not bad.mutation or not bad.steps:
        return None
    steps = max(step.number for step in bad.steps)
    ours = {**measurements.losses(original), **measurements.regularization(original), **l4_state.early(original)}
    theirs: Others = {
        **measurements.losses(bad),
        **measurements.regularization(bad),
        **l4_state.early(bad, rename),
        **measurements.gone(bad, ours),
    }
    # What was recorded after a step that only one of the two had in its plan is no finding about the program.
    common = {(key[0].family, key[1]) for key in ours} & {(key[0].family, key[1]) for key in theirs}
    return judging.judge(
        {key: value for key, value in _beginning(ours, steps).items() if (key[0].family, key[1]) in common},
        {key: value for key, value in theirs.items() if key[1] <= steps and (key[0].family, key[1]) in common},
        limits,
        original,
    )


def _as_control(judgement: judging.Judgement | None, name: str) -> Control | None:
    if judgement is None:
        return None
    return Control(f"a run in which {BY_ID[name].description}", bool(judgement.outside), _finite(judgement.ratio))


def _finite(ratio: float | None) -> float | None:
    return None if ratio is None or math.isnan(ratio) else ratio


def run_sentinels(migrated: Recording) -> tuple[str, ...]:
    """Which of RUN_SENTINELS a program can have: moving averages are variables that no gradient moves."""
    averages = any(not variable.trainable for variable in migrated.variables)
    return RUN_SENTINELS if averages else tuple(name for name in RUN_SENTINELS if name != UPDATES_MISSING)


def sentinels(
    original: Recording,
    migrated: Recording,
    control: Recording | None,
    bad: Mapping[str, Recording],
    names: NameMap,
    limits: Tolerance,
    data: LevelResult | None,
) -> tuple[MutantOutcome, ...]:
    """What became of the four known-bad versions of every run; `data` is L2 with its control."""
    rename, possible = names.to_original(), run_sentinels(migrated)
    outcomes = []
    for mutant in SENTINELS:
        if mutant.id in RUN_SENTINELS:
            recording = bad.get(mutant.id)
            seen = _first_steps(original, recording, rename, limits)
            if mutant.id not in possible or (recording is not None and not recording.mutation):
                outcomes.append(_outcome(mutant, "not_applicable", "the program has nothing to make this mistake in"))
            elif recording is not None and unobservable(recording, migrated):
                outcomes.append(_outcome(mutant, "not_exercised", "every recorded number is the same as without it"))
            elif seen is None:
                outcomes.append(_outcome(mutant, "not_exercised", "its run left no recording"))
            else:
                outcomes.append(_seen(mutant, seen))
        elif mutant.family is Family.DATA:
            caught = data is not None and data.control is not None and data.control.detected
            outcome = _outcome(mutant, "killed" if caught else "missed", "judged on the original's own batches")
            outcomes.append(replace(outcome, killed_at="L2" if caught else None))
        elif control is None:
            outcomes.append(_outcome(mutant, "not_exercised", "its run left no recording"))
        else:
            outcomes.append(_seen(mutant, l4_state.compare(original, control, rename, limits)))
    return tuple(outcomes)


def _outcome(mutant: Mutant, status: str, detail: str) -> MutantOutcome:
    return MutantOutcome(mutant.id, mutant.description, mutant.expected_level, status, detail=detail)


def level_of(finding: judging.Finding) -> str:
    """The level whose question a finding answers."""
    family = finding.quantity.family
    if family in (measurements.GRADIENT, measurements.SLOT, measurements.STATE):
        return "L4" if finding.step <= tolerance.LAST_STATE_STEP else "L5"
    return "L3" if finding.step == 1 else "L5"


def _seen(mutant: Mutant, judgement: judging.Judgement) -> MutantOutcome:
    if not judgement.outside:
        return _outcome(mutant, "missed", "every number stays inside the tolerance")
    first = judgement.outside[0]
    return replace(
        _outcome(mutant, "killed", f"first seen in {first.quantity} at step {first.step}"),
        killed_at=level_of(first),
        ratio=_finite(judgement.ratio),
    )


# -- several trainers in a fixed order -----------------------------------------------------------------------


def not_in_order(complaint: str | None) -> LevelResult:
    """L5s when its runs could not be made."""
    return LevelResult(
        "L5s",
        TITLES["L5s"],
        Status.INCONCLUSIVE,
        f"a run in a fixed order failed: {complaint or 'it left no recording'}",
        Reason.DATA_NOT_REPLAYABLE,
    )


def in_order(
    original: Recording,
    replicates: Sequence[Recording],
    migrated: Recording,
    control: Recording | None,
    names: NameMap,
    *,
    versions_differ: bool,
    limited: bool,
) -> LevelResult:
    """L5s: the whole asynchronous cluster, its trainers taking steps one after another in both programs. Arguments as
    for `tolerance.derive`.
    """
    started = time.perf_counter()
    limits = tolerance.derive(original, replicates, versions_differ=versions_differ, limited=limited)
    rename = names.to_original()
    wrong, factor = tolerance.control_mistake(original), tolerance.control_factor(original)
    levels = (
        l4_state.judge(original, migrated, control, rename, limits, wrong, control_factor=factor),
        l5_trajectory.judge(
            original,
            migrated,
            control,
            rename,
            limits,
            wrong,
            control_factor=factor,
            level_id="L5s",
            title=TITLES["L5s"],
            turns=True,
        ),
    )
    worst = next(
        (level for status in (Status.DIFFERENT, Status.INCONCLUSIVE) for level in levels if level.status is status),
        levels[1],
    )
    shares = ", ".join(f"{task} {count}" for task, count in migrated.participation.items())
    return replace(
        worst,
        id="L5s",
        title=TITLES["L5s"],
        summary=f"{worst.summary} (steps in a fixed order: {shares})",
        seconds=time.perf_counter() - started,
    )
