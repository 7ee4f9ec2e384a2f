"""L0: both programs ran to their end, every trainer took part, every loss is a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from migrator.harness.protocol.results import Divergence, LevelResult, Reason, Status
from migrator.harness.recording import Recording

ID, TITLE = "L0", "Both programs run"


def failed(program: str, message: str, tail: Sequence[str] = ()) -> LevelResult:
    """The level's result when a process of `program` failed or left no recording."""
    return LevelResult(
        ID,
        TITLE,
        Status.FAILED,
        f"the {program} program failed: {message}",
        Reason.PROGRAM_FAILED,
        notes=tuple(tail),
    )


def failed_late(level: LevelResult, original: str | None, migrated: str | None) -> LevelResult:
    """Adds to L0 how the programs failed when their trainings were over (None: they did not).

    What only the migrated program fails at is its failure, although its training was judged. The original's is told.
    """
    told = [
        f"the {program} program failed after its training, which was judged: {message}"
        for program, message in (("original", original), ("migrated", migrated))
        if message is not None
    ]
    level = replace(level, notes=(*level.notes, *told))
    if migrated is None or original is not None or level.status is not Status.EQUIVALENT:
        return level
    return replace(level, status=Status.FAILED, reason=Reason.PROGRAM_FAILED, summary=told[-1])


def timed_out(program: str, message: str, tail: Sequence[str] = ()) -> LevelResult:
    """The level's result when a run was ended because it took longer than was allowed: no word on the program."""
    return LevelResult(
        ID,
        TITLE,
        Status.INCONCLUSIVE,
        f"the {program} program did not end in time: {message}",
        Reason.TIMEOUT,
        notes=tuple(tail),
    )


def unrecorded(program: str, message: str) -> LevelResult:
    """The level's result when a program runs and trains, but where its steps cannot be seen."""
    return LevelResult(
        ID,
        TITLE,
        Status.INCONCLUSIVE,
        f"the {program} program runs, but its training cannot be compared: {message}",
        Reason.DATA_NOT_REPLAYABLE,
    )


def _first_non_finite(recording: Recording) -> Divergence | None:
    for step in recording.steps:
        if not math.isfinite(step.loss):
            ours = recording.program == "original"
            return Divergence(
                "loss",
                step.loss if ours else None,
                None if ours else step.loss,
                step=step.number,
                task=step.task,
                causes=("the training diverges, or a division by zero or the logarithm of zero",),
            )
    return None


# With fewer steps than this for each trainer, one that takes none is chance and not a defect of the set-up.
FEW_STEPS = 20


def under_way(trainers: int) -> int:
    """How many steps more than it was told to a cluster of asynchronous Estimators may take.

    When the last step is counted, each other trainer is in a step of its own, and takes one more, because its
    StopAtStepHook sees the count that this one read at its start (1504 steps of 1500 were seen with three trainers).
    """
    return 2 * max(trainers - 1, 0)


def free_cluster(
    level: LevelResult,
    original: Recording,
    migrated: Recording,
    original_trainers: Sequence[str],
    migrated_trainers: Sequence[str],
) -> LevelResult:
    """Adds to L0 what the free-running cluster of several asynchronous trainers showed.

    Steps go to whichever trainer is free, so that a declared trainer without a step is only a note as long as
    there were few steps to go round. A task that trains without being declared is a difference, and so are
    totals further apart than the steps that can be under way when the last one is counted.
    """
    notes, status, reason, summary = list(level.notes), level.status, level.reason, level.summary
    shares = []
    for recording, declared in ((original, original_trainers), (migrated, migrated_trainers)):
        counts = recording.participation
        shares.append(f"{recording.program} " + ", ".join(f"{task} {counts.get(task, 0)}" for task in declared))
        idle = [task for task in declared if not counts.get(task)]
        if idle:
            note = f"{recording.program} {', '.join(idle)} took none of {sum(counts.values())} steps"
            notes.append(f"participation: {note}")
        if status is not Status.EQUIVALENT:
            continue
        found = _first_non_finite(recording)
        if found is not None:
            status, reason = Status.INCONCLUSIVE, Reason.NON_FINITE
            summary = f"the {recording.program} program's loss is not finite in the free-running cluster"
        elif idle and sum(counts.values()) >= FEW_STEPS * len(declared):
            status, reason, summary = Status.INCONCLUSIVE, Reason.DEGENERATE_PARTICIPATION, note
        elif _undeclared(recording, declared):
            status, reason = _undeclared_status(recording), Reason.DEGENERATE_PARTICIPATION
            summary = _undeclared_summary(recording, declared) + " in the free-running cluster"
    evaluated = len(original.evaluations), len(migrated.evaluations)
    if bool(evaluated[0]) != bool(evaluated[1]):
        notes.append(
            f"evaluation: in the free-running cluster the original evaluated {evaluated[0]} times, "
            f"the migrated program {evaluated[1]} times"
        )
    totals = [sum(recording.participation.values()) for recording in (original, migrated)]
    if status is Status.EQUIVALENT and abs(totals[0] - totals[1]) > under_way(len(original_trainers)):
        status, reason = Status.DIFFERENT, Reason.DATA_DIFFERS
        summary = f"the free-running cluster took {totals[0]} steps in the original and {totals[1]} in the migrated"
        summary += " program (" + "; ".join(shares) + ")"
        first = Divergence(
            "steps of all trainers of the free-running cluster",
            float(totals[0]),
            float(totals[1]),
            causes=("steps_per_epoch of a coordinator counts the steps of all workers together",),
        )
        level = replace(level, differences=(first, *level.differences))
    if status is Status.EQUIVALENT:
        summary += "; steps in the free-running cluster: " + "; ".join(shares)
    return replace(level, status=status, reason=reason, summary=summary, notes=tuple(notes))


def _undeclared(recording: Recording, declared: Sequence[str]) -> list[str]:
    return sorted({step.task for step in recording.steps} - set(declared))


def _undeclared_status(recording: Recording) -> Status:
    return Status.INCONCLUSIVE if recording.program == "original" else Status.DIFFERENT


def _undeclared_summary(recording: Recording, declared: Sequence[str]) -> str:
    task = _undeclared(recording, declared)[0]
    count = sum(step.task == task for step in recording.steps)
    return f"{task} of the {recording.program} program trained {count} steps, and its role is not to train"


def judge(
    original: Recording,
    migrated: Recording,
    original_trainers: Sequence[str],
    migrated_trainers: Sequence[str],
) -> LevelResult:
    """Both recordings exist, so nothing crashed: checks participation and finiteness.

    `original_trainers` and `migrated_trainers` are the tasks that the cluster declares as training
    ("chief:0").
    """
    for recording, declared in ((original, original_trainers), (migrated, migrated_trainers)):
        if not recording.steps:
            return failed(recording.program, "it ended without a training step")
        counts = {task: sum(step.task == task for step in recording.steps) for task in declared}
        idle = [task for task, count in counts.items() if count == 0]
        if idle:
            return LevelResult(
                ID,
                TITLE,
                Status.INCONCLUSIVE,
                f"in the {recording.program} program {', '.join(idle)} took no step",
                Reason.DEGENERATE_PARTICIPATION,
            )
        if _undeclared(recording, declared):
            return LevelResult(
                ID,
                TITLE,
                _undeclared_status(recording),
                _undeclared_summary(recording, declared),
                Reason.DEGENERATE_PARTICIPATION,
            )
    # The original first: if it is broken, nothing can be said about the other one.
    for recording, status in ((original, Status.INCONCLUSIVE), (migrated, Status.DIFFERENT)):
        found = _first_non_finite(recording)
        if found is not None:
            return LevelResult(
                ID,
                TITLE,
                status,
                f"the {recording.program} program's loss is not finite at step {found.step} of {found.task}",
                Reason.NON_FINITE,
                differences=(found,),
            )
    shares = ", ".join(
        f"{recording.program} {len(recording.steps)} steps in {len(recording.participation)} task(s)"
        for recording in (original, migrated)
    )
    summary = f"both ran to the end: {shares}; every loss is finite"
    return LevelResult(ID, TITLE, Status.EQUIVALENT, summary, notes=_races(original, migrated))


def _races(*recordings: Recording) -> tuple[str, ...]:
    """What was put in order that a program leaves to chance."""
    return tuple(
        (
            f"the {one.program} program makes changes that do not wait for each other: one of "
            f"{', '.join(one.racing)} may run before or after a gradient or a learning rate that reads it. The "
            "training that reads first was compared, as with `Optimizer.minimize` and a GradientTape; enforce it "
            "with tf.tuple(gradients), and with tf.control_dependencies([train_op]) around what counts the step"
        )
        for one in recordings
        if one.racing
    )
