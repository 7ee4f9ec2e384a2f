"""What the original program shows about itself: its run, its data's order, its noise. Good for many comparisons."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from migrator.harness import budget, spared
from migrator.harness.case import Case, asynchronous, one_trainer, without_evaluator
from migrator.harness.protocol import l2_data, tolerance
from migrator.harness.recording import Recording
from migrator.harness.room import room_of
from migrator.harness.runs import GENERATORS, OnProgress, Progress, Run, Session, distinct, run_program, weights_file

EXTRA_RUNS = tolerance.REPLICATES + 2


@dataclass(frozen=True)
class OriginalEvidence:
    """Everything about the original that does not depend on the migrated program.

    `main` is the run that everything is compared with, `free` the run of the whole asynchronous cluster where
    one was asked for, `repeat` the first replicate. `random_order`: two runs read different batches. `replicates`
    and `in_order` (the runs of the whole asynchronous cluster in a fixed order: the first as it is, the others
    replicates) are empty until they are needed; so is `exact`, a second run from the very same values. `step_limit`
    limits the runs that are compared, `replicate_limit` those that only measure (None: by themselves). `initial` names
    the file of the initial weights of `main`. `probed` is a run of a migrated program that was compared with it before:
    the next one probably has the same variables. `in_step`: parameter servers make the trainers of this program wait
    for each other, so that the whole cluster is compared step by step (see `known`).
    """

    main: Run
    repeat: Run | None
    free: Run | None
    replicates: tuple[Run, ...] = ()
    in_order: tuple[Run, ...] = ()
    exact: Run | None = None
    random_order: bool = False
    step_limit: int | None = None
    replicate_limit: int | None = None
    initial: str | None = None
    in_step: bool = False
    probed: Run | None = None

    @property
    def limited(self) -> bool:
        """Whether the runs that only measure are ended before those that are compared."""
        return self.replicate_limit != self.step_limit

    @property
    def replicate_recordings(self) -> list[Recording]:
        """What the replicates recorded."""
        return [run.recording for run in self.replicates if run.recording is not None]

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run once, in the order of the report."""
        return distinct((self.main, self.free, self.repeat, *self.replicates, *self.in_order, self.exact))

    @property
    def failed_run(self) -> Run | None:
        """The first run of the original that failed."""
        return next((run for run in self.runs if run.failed), None)


def known(case: Case, main: Run) -> Case:
    """The case, when its original has shown whether its trainers wait for each other although there are servers, how
    many weights it has, which batch an eager loop begins with, and whether it trains several models, or Keras some
    before.
    """
    if main.recording is None:
        return case
    shape = replace(case.shape, in_step=True) if main.recording.in_step else case.shape
    first = main.recording.first_batch, case.first_batches[1]
    apart = case.apart or main.recording.other_trainings > 0
    case = replace(case, before=main.recording.before)
    requests, summing = (main.recording.requests, case.requests[1]), case.summing or main.recording.conditional
    case = replace(case, shape=shape, room=room_of(main.recording), first_batches=first, apart=apart)
    return replace(case, requests=requests, summing=summing)


def to_be_made_again(case: Case, run: Run, place: int) -> bool:
    """Whether a run of the original (`place` 0) or of the migrated program (1) has made its first step twice, and has
    told of its data what lets the next run make it once.
    """
    found = run.recording
    return found is not None and found.twice and found.first_batch not in (None, case.first_batches[place])


def _replicate(session: Session, case: Case, evidence: OriginalEvidence, number: int, replay: bool) -> Run:
    recording = evidence.main.recording
    assert recording is not None
    return run_program(
        session,
        case,
        "original",
        f"original replicate {number + 1}",
        one_trainer(case.shape),
        initial=evidence.initial,
        replay=str(evidence.main.record_dir) if replay else None,
        steps=evidence.replicate_limit,
        evaluate=evaluates(case),
        # Of the first it is also asked which examples it read.
        keep_batches=number == 0,
        **tolerance.replicate_plans(recording.optimizer)[number],
    )


def evaluates(case: Case) -> bool:
    """Whether evaluation is looked at in the runs that are compared; else in those of the free cluster, which has
    the evaluator.
    """
    return not asynchronous(case.shape)


def record_original(session: Session, case: Case, progress: OnProgress, *, repeat: bool = True) -> OriginalEvidence:
    """The original's own run, the free run of an asynchronous cluster, and the first replicate. Without `repeat` the
    last is left out, and the order of its batches is taken for a fixed one: see `with_repeat`.
    """
    several = asynchronous(case.shape)
    cluster = bool(case.shape.counts)
    total = _total(case)
    done = 0
    free, step_limit = None, case.steps
    if several:
        # First, because it tells how long the training is: the others are made to measure.
        progress(Progress("original", done, total))
        free = run_program(
            session, case, "original", "original free-running", case.shape, evaluate=True, evaluation_noise=True
        )
        done += 1
        if free.recording is None:
            return OriginalEvidence(free, None, free)
        if not free.recording.in_step:
            affordable = budget.affordable_steps(free.recording, EXTRA_RUNS, cluster=cluster)
            step_limit = budget.lesser(case.steps, affordable)
    progress(Progress("original", done, total))
    if free is not None and free.recording is not None and free.recording.in_step:
        # Its trainers wait for each other: nothing of this run was free, and it is the one to compare.
        main, free = replace(free, role="original"), None
    else:
        main = _compared_run(session, case, step_limit)
        if to_be_made_again(case, main, 0):
            case = known(case, main)
            main = _compared_run(session, case, step_limit)
    if main.recording is None:
        return OriginalEvidence(main, None, free)
    in_step = main.recording.in_step
    case = known(case, main)
    main = spared.within(main, case.room)
    assert main.recording is not None
    progress(Progress("original", done + 1, total))
    limit = budget.lesser(step_limit, budget.affordable_steps(main.recording, EXTRA_RUNS, cluster=cluster))
    initial = weights_file(session, main.recording.initial)
    evidence = OriginalEvidence(
        main, None, free, step_limit=step_limit, replicate_limit=limit, initial=initial, in_step=in_step
    )
    if not repeat:
        return evidence
    return with_repeat(session, case, evidence, progress)


def _total(case: Case) -> int:
    """The runs of an original by itself."""
    return 3 if asynchronous(case.shape) else 2


def with_repeat(session: Session, case: Case, evidence: OriginalEvidence, progress: OnProgress) -> OriginalEvidence:
    """Adds the first replicate, which tells whether two runs read the same; where they do not, the run to compare
    ends where it can be replayed to, and may be another one than before.
    """
    main = evidence.main
    if main.recording is None or evidence.repeat is not None:
        return evidence
    again = _replicate(session, case, evidence, 0, replay=False)
    progress(Progress("original", _total(case), _total(case)))
    same = l2_data.same_beginning if evidence.limited else l2_data.same_sequences
    random_order = again.recording is not None and not same(main.recording, again.recording)
    if not case.room.whole and not random_order:
        again = spared.measured(main.recording, again)
    else:
        again = spared.emptied(again, case.room)
    evidence = replace(evidence, repeat=again, random_order=random_order)
    kept = min((batch.step for batch in main.recording.batches if not batch.kept), default=None)
    if not random_order or kept is None:
        return evidence
    # What cannot be replayed cannot be compared either: once more, to the last batch that was kept.
    again = _compared_run(session, case, kept - 1)
    limit = budget.lesser(kept - 1, evidence.replicate_limit)
    evidence = replace(evidence, main=again, step_limit=kept - 1, replicate_limit=limit)
    if again.recording is None:
        return evidence
    return replace(evidence, initial=weights_file(session, again.recording.initial))


def _compared_run(session: Session, case: Case, steps: int | None) -> Run:
    """A run that everything may be compared with, from the original's own values, of so many steps at the most."""
    return run_program(
        session,
        case,
        "original",
        "original",
        one_trainer(case.shape),
        steps=steps,
        evaluate=evaluates(case),
        evaluation_noise=evaluates(case),
        draw_initial=True,
        generators=GENERATORS,
        lines=True,
    )


def record_main(session: Session, case: Case, evidence: OriginalEvidence) -> Run:
    """The run that everything is compared with, once more, from the same values."""
    return run_program(
        session,
        case,
        "original",
        "original again",
        one_trainer(case.shape),
        initial=evidence.initial,
        steps=evidence.step_limit,
    )


def with_replicates(
    session: Session,
    case: Case,
    evidence: OriginalEvidence,
    progress: OnProgress,
    stop: threading.Event | None = None,
    count: int = tolerance.REPLICATES,
) -> OriginalEvidence:
    """Adds the replicates that are missing to `count`. Ends early on `stop`."""
    if len(evidence.replicates) >= count or evidence.failed_run is not None or evidence.repeat is None:
        return evidence
    original = evidence.main.recording
    assert original is not None
    replicates = list(evidence.replicates)
    if not replicates and not evidence.random_order:
        replicates.append(spared.measured(original, evidence.repeat))
    while len(replicates) < count:
        if stop is not None and stop.is_set():
            break
        progress(Progress("replicates", len(replicates), count))
        run = spared.measured(original, _replicate(session, case, evidence, len(replicates), evidence.random_order))
        replicates.append(run)
        if run.failed:
            break
    progress(Progress("replicates", len(replicates), count))
    repeat = evidence.repeat if evidence.random_order else replicates[0]
    return replace(evidence, repeat=repeat, replicates=tuple(replicates))


def with_exact_repeat(session: Session, case: Case, evidence: OriginalEvidence) -> OriginalEvidence:
    """Adds a run of the original from its own initial values on its own batches, with nothing moved."""
    if evidence.exact is not None or evidence.main.recording is None:
        return evidence
    exact = run_program(
        session,
        case,
        "original",
        "original exact repeat",
        one_trainer(case.shape),
        initial=evidence.initial,
        replay=str(evidence.main.record_dir) if evidence.random_order else None,
        steps=evidence.replicate_limit,
    )
    return replace(evidence, exact=exact)


def with_order(
    session: Session,
    case: Case,
    evidence: OriginalEvidence,
    progress: OnProgress,
    count: int = tolerance.REPLICATES,
) -> OriginalEvidence:
    """Adds the run of the whole asynchronous cluster in a fixed order, and what is missing to `count` replicates."""
    main = evidence.main.recording
    total = count + 1
    if len(evidence.in_order) >= total or main is None:
        return evidence
    shape = without_evaluator(case.shape)
    runs = list(evidence.in_order)
    progress(Progress("order", len(runs), total))
    if not runs:
        first = run_program(
            session,
            case,
            "original",
            "original in order",
            shape,
            initial=evidence.initial,
            turns=True,
            steps=evidence.step_limit,
        )
        runs.append(first)
    first = runs[0]
    for number, plan in list(enumerate(tolerance.replicate_plans(main.optimizer)))[len(runs) - 1 : count]:
        if runs[-1].failed:
            break
        progress(Progress("order", number + 1, total))
        runs.append(
            run_program(
                session,
                case,
                "original",
                f"original in order, replicate {number + 1}",
                shape,
                initial=evidence.initial,
                turns=True,
                replay=str(first.record_dir) if evidence.random_order else None,
                steps=evidence.replicate_limit,
                keep_batches=False,
                **plan,
            )
        )
    progress(Progress("order", total, total))
    return replace(evidence, in_order=tuple(runs))


def collect_original(
    session: Session, case: Case, progress: OnProgress, replicates: int = tolerance.REPLICATES
) -> OriginalEvidence:
    """All evidence about the original that every comparison needs, to be used for several migrated programs. With fewer
    `replicates` a comparison that needs more runs the others.
    """
    evidence = record_original(session, case, progress)
    case = known(case, evidence.main)
    evidence = with_replicates(session, case, evidence, progress, count=replicates)
    if asynchronous(case.shape) and evidence.failed_run is None:
        evidence = with_order(session, case, evidence, progress, replicates)
    return evidence
