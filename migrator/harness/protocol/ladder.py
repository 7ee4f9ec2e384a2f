"""The levels in order, cheapest first: L0 to L2 always in full, L3 to L5 until the first one that says
DIFFERENT.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from migrator.harness.protocol import (
    l0_runs,
    l0b_configuration,
    l1_variables,
    l2_data,
    l3_forward,
    l4_state,
    l5_trajectory,
)
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.protocol.results import LevelResult, Status
from migrator.harness.protocol.tolerance import Tolerance
from migrator.harness.recording import Recording

CONTROL_FACTOR = 1.01
CONTROL = "the migrated program with a learning rate 1% higher"


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
    examples: tuple[frozenset[str], frozenset[str]] | None = None,
    parameter_servers: bool = False,
) -> Foundation:
    """L0, L0b, L1 and L2 from a run of each program on its own data. All four are always reported."""
    runs = _timed(lambda: l0_runs.judge(original, migrated, original_trainers, migrated_trainers))
    if runs.status is Status.FAILED:
        return Foundation((runs,), same_order=False, comparable=False)
    started = time.perf_counter()
    data = l2_data.judge(original, migrated, random_order=random_order, examples=examples)
    data_level = replace(data.level, seconds=time.perf_counter() - started)
    levels = (
        runs,
        _timed(lambda: l0b_configuration.judge(original, migrated)),
        _timed(lambda: l1_variables.judge(original, migrated, names, parameter_servers=parameter_servers)),
        data_level,
    )
    comparable = (
        all(level.status is not Status.DIFFERENT for level in levels)
        and levels[0].status is Status.EQUIVALENT
        and names.complete
    )
    return Foundation(levels, data.same_order, comparable)


def numbers(
    original: Recording, migrated: Recording, control: Recording | None, names: NameMap, limits: Tolerance
) -> tuple[LevelResult, ...]:
    """L3, L4 and L5 of a migrated run that started from the original's weights and read the original's
    batches.

    Stops after the first level that says DIFFERENT: what follows is its consequence.
    """
    rename = names.to_original()
    judges: tuple[Callable[[], LevelResult], ...] = (
        lambda: l3_forward.judge(original, migrated, limits),
        lambda: l4_state.judge(original, migrated, control, rename, limits, CONTROL),
        lambda: l5_trajectory.judge(original, migrated, control, rename, limits, CONTROL),
    )
    levels: list[LevelResult] = []
    for judge in judges:
        levels.append(_timed(judge))
        if levels[-1].status is Status.DIFFERENT:
            break
    return tuple(levels)
