"""The runs behind L6: the free asynchronous cluster again and again, in pairs that start alike."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from migrator.harness.case import Case, training_tasks, without_evaluator
from migrator.harness.protocol import l6_asynchronous
from migrator.harness.recording import Recording
from migrator.harness.runs import (
    OnProgress,
    Progress,
    Run,
    Session,
    migrated_shape,
    run_program,
    weights_file,
)

#: The five runs of one seed: which program, and the factor on its learning rate.
ARMS: Mapping[str, tuple[str, float]] = {
    "original": ("original", 1.0),
    "again": ("original", 1.0),
    "faster": ("original", 1.2),
    "slower": ("original", 0.8),
    "migrated": ("migrated", 1.0),
}


@dataclass(frozen=True)
class PairedSeeds:
    """The losses of the seeds, who took the steps in each, all runs, and the one that failed (None: all are good)."""

    seeds: tuple[l6_asynchronous.Seed, ...]
    participation: tuple[l6_asynchronous.Participation, ...]
    runs: tuple[Run, ...]
    failed: Run | None = None


def losses_in_order(recording: Recording) -> np.ndarray:
    """The losses of all trainers together, in the order in which the steps ended."""
    return np.asarray([step.loss for step in sorted(recording.steps, key=lambda step: step.time)], np.float64)


def another_draw(values: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Other initial values of the same distribution: the elements of each float array of two or more axes in another
    order, which depends on the seed and the array's name. Seed 0 leaves all as they are.
    """
    result = {}
    for name, value in values.items():
        if seed and value.ndim >= 2 and np.issubdtype(value.dtype, np.floating):
            generator = np.random.RandomState([seed, zlib.crc32(name.encode("utf-8"))])
            value = generator.permutation(value.reshape(-1)).reshape(value.shape)
        result[name] = value
    return result


def run_seeds(
    session: Session,
    case: Case,
    progress: OnProgress,
    values: Mapping[str, np.ndarray],
    theirs: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]],
) -> PairedSeeds:
    """Runs all seeds; ends at the first run that fails.

    `values` are the original's initial weights: seed 0 starts from them, each other one from another draw, which is
    made once for both programs, whatever they call their variables: `theirs` puts it into the migrated program's. The
    runs of a seed come in a random order, because a machine that gets busier would else look like a difference.
    """
    shapes = {"original": without_evaluator(case.shape)}
    shapes["migrated"] = migrated_shape(case, shapes["original"])
    declared = {
        "original": training_tasks(shapes["original"]),
        "migrated": training_tasks(shapes["migrated"]),
    }
    order = random.Random(0)
    seeds: list[l6_asynchronous.Seed] = []
    participation: list[l6_asynchronous.Participation] = []
    runs: list[Run] = []
    total = case.seeds * len(ARMS)
    for number in range(case.seeds):
        drawn = another_draw(values, number)
        initial = {
            "original": weights_file(session, drawn),
            "migrated": weights_file(session, theirs(drawn)),
        }
        losses: dict[str, Any] = {}
        shares: dict[str, Mapping[str, int]] = {}
        for arm in order.sample(list(ARMS), len(ARMS)):
            program, factor = ARMS[arm]
            progress(Progress("seeds", len(runs), total))
            run = run_program(
                session,
                case,
                program,
                f"seed {number + 1} {arm}",
                shapes[program],
                initial=initial[program],
                learning_rate_factor=factor,
                state_steps=[],
                record_batches=False,
            )
            runs.append(run)
            if run.recording is None:
                return PairedSeeds(tuple(seeds), tuple(participation), tuple(runs), run)
            losses[arm] = losses_in_order(run.recording)
            shares[arm] = {task: run.recording.participation.get(task, 0) for task in declared[program]}
        seeds.append(l6_asynchronous.Seed(**losses))
        participation.append(shares)
    progress(Progress("seeds", total, total))
    return PairedSeeds(tuple(seeds), tuple(participation), tuple(runs))
