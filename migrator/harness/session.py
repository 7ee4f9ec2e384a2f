"""Runs both programs and judges them: the original once and in replicates, the migrated one on its weights
and data.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from migrator.harness.cluster import ClusterShape, ForkServer, ForkServerError, Launch, RunOutcome
from migrator.harness.protocol import l0_runs, l2_data, ladder, name_map, tolerance, verdict
from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.recording import Recording, RecordingError, read, read_batch
from migrator.harness.report.document import Report, RunSummary, build

STATE_STEPS = (1, 2, 10)


class CaseError(ValueError):
    """What was asked for cannot be run at all: a missing script, a malformed cluster, a wrong name map."""


@dataclass(frozen=True)
class Case:
    """Two programs and how to run them.

    `both_original`: the "migrated" script is an original too, run by the original's interpreter (the null
    test of the harness: a program against itself must be EQUIVALENT). `steps` limits both trainings (None: as
    long as they run by themselves). `names` maps original variable names to migrated ones where creation
    order does not do. Times are seconds for one run of one program. `report_dir` is only named in the
    report's command line; writing the report is the caller's.
    """

    original: Path
    migrated: Path
    args: tuple[str, ...] = ()
    shape: ClusterShape = field(default_factory=ClusterShape)
    steps: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    report_dir: Path | None = None
    both_original: bool = False
    ready_timeout: float = 120.0
    stall_timeout: float = 60.0
    total_timeout: float = 600.0


@dataclass(frozen=True)
class Progress:
    """Where the session is: `stage` names it, `done` of `total` runs of it are over."""

    stage: str
    done: int
    total: int


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Run:
    """One run of one program: what the cluster says of it and what it recorded (None: nothing usable)."""

    role: str
    program: str
    outcome: RunOutcome
    recording: Recording | None
    complaint: str | None = None

    @property
    def record_dir(self) -> Path:
        return self.outcome.run_dir / "record"

    @property
    def failed(self) -> bool:
        """Whether a task failed, or nothing usable was recorded."""
        return self.outcome.failure is not None or self.recording is None


@dataclass(frozen=True)
class OriginalEvidence:
    """Everything about the original that does not depend on the migrated program; good for many of those.

    `main` is the run that everything is compared with, `free` the run of the whole asynchronous cluster where
    one was asked for. `replicates` are empty until they are needed. `random_order`: two runs read different
    batches.
    """

    main: Run
    repeat: Run | None
    free: Run | None
    replicates: tuple[Run, ...] = ()
    random_order: bool = False

    @property
    def failed_run(self) -> Run | None:
        """The first run of the original that failed."""
        runs = (self.main, self.repeat, self.free, *self.replicates)
        return next((run for run in runs if run is not None and run.failed), None)


@dataclass(frozen=True)
class Session:
    """Two interpreters with TensorFlow loaded, and a folder for the runs. Made by `open_session`."""

    original: ForkServer
    migrated: ForkServer
    folder: Path
    _counter: Iterator[int]

    def server(self, program: str) -> ForkServer:
        """The interpreter for "original" or "migrated"."""
        return self.original if program == "original" else self.migrated

    def new_folder(self, role: str) -> Path:
        """A fresh folder for a run, named after what it is for."""
        path = self.folder / f"{next(self._counter):03d}-{role.replace(' ', '-')}"
        path.mkdir()
        return path


def _count() -> Iterator[int]:
    return itertools.count(1)  # runs of the two programs start from two threads; a generator would refuse one


@contextmanager
def open_session(original_python: Path | None = None, migrated_python: Path | None = None) -> Iterator[Session]:
    """Starts both interpreters at once; ends them, and removes every file of the runs, at the end of the
    block.

    Without arguments the interpreters are those of harness.environments (made if need be).
    """
    from migrator.harness import environments

    pythons = (
        original_python or environments.original_python(),
        migrated_python or environments.migrated_python(),
    )
    with (
        tempfile.TemporaryDirectory(prefix="tf-migrate-verify-") as folder,
        ForkServer(pythons[0], "original", folder=Path(folder)) as original,
        ForkServer(pythons[1], "migrated", folder=Path(folder)) as migrated,
    ):
        yield Session(original, migrated, Path(folder), _count())


def make_case(original: Path, migrated: Path, *, cluster: str = "", **options: Any) -> Case:
    """A checked Case; `cluster` as in "chief=1,worker=2,ps=2", `options` the other fields. CaseError."""
    try:
        shape = ClusterShape.parse(cluster)
    except ValueError as error:
        raise CaseError(f"cluster: {error}") from None
    case = Case(Path(original), Path(migrated), shape=shape, **options)
    check(case)
    return case


def check(case: Case) -> None:
    """Raises CaseError, with one sentence, for what can be known to be wrong before anything runs."""
    for program, path in (("original", case.original), ("migrated", case.migrated)):
        if not path.exists():
            raise CaseError(f"the {program} script {path} does not exist")
        if not path.is_file():
            raise CaseError(f"the {program} script {path} is not a file")
        try:
            compile(path.read_bytes(), str(path), "exec")
        except (SyntaxError, ValueError) as error:
            raise CaseError(f"the {program} script {path} is not Python: {error}") from None
    if case.steps is not None and case.steps < 1:
        raise CaseError(f"steps must be at least 1, not {case.steps}")
    if case.shape.counts and not case.shape.trainers():
        raise CaseError(f"the cluster {case.shape} has no task that trains")
    if case.report_dir is not None:
        wanted = case.report_dir.absolute()
        place = next(folder for folder in (wanted, *wanted.parents) if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK):
            raise CaseError(f"no report can be written to {case.report_dir}: {place} is not a folder to write in")


# -- clusters ------------------------------------------------------------------------------------------------


def parameter_servers(shape: ClusterShape) -> bool:
    return shape.count("ps") > 0


def counterpart(shape: ClusterShape) -> ClusterShape:
    """The migrated program's cluster for an original's.

    A TF1 chief trains beside its workers and a TF2 coordinator does not: with parameter servers the migrated
    cluster has one worker for each trainer of the original.
    """
    if not parameter_servers(shape):
        return shape
    counts = {"chief": 1, "worker": len(shape.trainers()), "ps": shape.count("ps")}
    if shape.count("evaluator"):
        counts["evaluator"] = shape.count("evaluator")
    return ClusterShape(tuple(counts.items()))


def one_trainer(shape: ClusterShape) -> ClusterShape:
    """The cluster on which an asynchronous program is repeatable: one trainer, the same servers, no
    evaluator.
    """
    if not parameter_servers(shape):
        return shape
    leader = "master" if shape.count("master") else "chief"
    return ClusterShape(((leader, 1), ("ps", shape.count("ps"))))


def training_tasks(shape: ClusterShape, program: str) -> tuple[str, ...]:
    """The tasks that train, chief first."""
    tasks = [str(task) for task in shape.trainers()]
    if program == "migrated" and parameter_servers(shape):
        tasks = [task for task in tasks if task.startswith("worker:")]
    return tuple(tasks)


def asynchronous(shape: ClusterShape) -> bool:
    return parameter_servers(shape) and len(shape.trainers()) > 1


# -- runs ----------------------------------------------------------------------------------------------------


def _migrated_kind(case: Case) -> str:
    return "original" if case.both_original else "migrated"


def _counterpart(case: Case, shape: ClusterShape) -> ClusterShape:
    return shape if case.both_original else counterpart(shape)


def run_program(session: Session, case: Case, program: str, role: str, shape: ClusterShape, **plan: Any) -> Run:
    """One run; `plan` overrides keys of the plan that inside/ obeys."""
    kind = "original" if program == "original" else _migrated_kind(case)
    run_dir = session.new_folder(role)
    launch = Launch(
        kind,
        (case.original if program == "original" else case.migrated).absolute(),
        case.args,
        shape,
        run_dir,
        plan={
            "program": kind,
            "record": str(run_dir / "record"),
            "model_dir": str(run_dir / "model"),
            "trainers": list(training_tasks(shape, kind)),
            "steps": case.steps,
            "state_steps": list(STATE_STEPS),
            "initial": None,
            "ulp_seed": None,
            "learning_rate_factor": 1.0,
            "replay": None,
            "record_batches": True,
            "pin_dropout": True,
            "evaluate": False,
            **plan,
        },
        ready_timeout=case.ready_timeout,
        stall_timeout=case.stall_timeout,
        total_timeout=case.total_timeout,
    )
    outcome = session.server(kind).run(launch)
    if outcome.failure is not None:
        return Run(role, program, outcome, None, outcome.failure.message)
    try:
        return Run(role, program, outcome, replace(read(run_dir / "record"), program=program))
    except RecordingError as error:
        return Run(role, program, outcome, None, str(error))


def _initial(session: Session, recording: Recording, rename: Mapping[str, str] | None) -> str:
    """A file of the original's initial weights under the names of the program that will load them."""
    values = {(rename or {}).get(name, name): value for name, value in recording.initial.items()}
    path = session.new_folder("initial") / "initial.npz"
    # A variable may be called "file", which is a parameter of np.savez.
    with path.open("wb") as handle:
        np.savez(handle, **values)  # type: ignore[arg-type]
    return str(path)


def _replicate(session: Session, case: Case, number: int, evidence: Run, replay: bool) -> Run:
    assert evidence.recording is not None
    plan = tolerance.replicate_plans(evidence.recording.optimizer)[number]
    return run_program(
        session,
        case,
        "original",
        f"original replicate {number + 1}",
        one_trainer(case.shape),
        initial=_initial(session, evidence.recording, None),
        replay=str(evidence.record_dir) if replay else None,
        **plan,
    )


def record_original(session: Session, case: Case, progress: OnProgress) -> OriginalEvidence:
    """The original's own run, the free run of an asynchronous cluster, and the first replicate."""
    free_too = asynchronous(case.shape)
    total = 3 if free_too else 2
    progress(Progress("original", 0, total))
    main = run_program(session, case, "original", "original", one_trainer(case.shape))
    if main.recording is None:
        return OriginalEvidence(main, None, None)
    progress(Progress("original", 1, total))
    free = None
    if free_too:
        free = run_program(session, case, "original", "original free-running", case.shape, evaluate=True)
        progress(Progress("original", 2, total))
        if free.failed:
            return OriginalEvidence(main, None, free)
    repeat = _replicate(session, case, 0, main, replay=False)
    progress(Progress("original", total, total))
    random_order = repeat.recording is not None and not l2_data.same_sequences(main.recording, repeat.recording)
    return OriginalEvidence(main, repeat, free, random_order=random_order)


def with_replicates(
    session: Session,
    case: Case,
    evidence: OriginalEvidence,
    progress: OnProgress,
    stop: threading.Event | None = None,
) -> OriginalEvidence:
    """Adds the replicates that the noise floor needs, unless they are there. Ends early on `stop`."""
    if evidence.replicates or evidence.failed_run is not None or evidence.repeat is None:
        return evidence
    replicates = [] if evidence.random_order else [evidence.repeat]
    while len(replicates) < tolerance.REPLICATES:
        if stop is not None and stop.is_set():
            return evidence
        progress(Progress("replicates", len(replicates), tolerance.REPLICATES))
        run = _replicate(session, case, len(replicates), evidence.main, evidence.random_order)
        replicates.append(run)
        if run.failed:
            break
    progress(Progress("replicates", len(replicates), tolerance.REPLICATES))
    return replace(evidence, replicates=tuple(replicates))


def collect_original(session: Session, case: Case, progress: OnProgress) -> OriginalEvidence:
    """All evidence about the original at once, to be used for several migrated programs."""
    return with_replicates(session, case, record_original(session, case, progress), progress)


# -- judging -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Findings:
    """What a comparison has led to so far."""

    levels: tuple[LevelResult, ...]
    runs: tuple[Run, ...]
    names: name_map.NameMap | None = None
    limits: tolerance.Tolerance | None = None
    compared: Run | None = None
    control: Run | None = None
    replayed: bool = False


def _failure(runs: tuple[Run, ...], failed: Run) -> _Findings:
    message = failed.complaint or "it left no recording"
    tail: tuple[str, ...] = ()
    if failed.outcome.failure is not None:
        tail = failed.outcome.failure.tail
    if failed.role not in ("original", "migrated"):
        message = f"{message} (run: {failed.role})"
    return _Findings((l0_runs.failed(failed.program, message, tail),), runs)


def _build_names(original: Recording, migrated: Recording, user: Mapping[str, str]) -> name_map.NameMap:
    try:
        return name_map.build(original.variables, migrated.variables, user)
    except name_map.NameMapError as error:
        raise CaseError(str(error)) from None


def _judge(
    session: Session, case: Case, progress: OnProgress, evidence: OriginalEvidence, probe: Run | None
) -> tuple[_Findings, OriginalEvidence]:
    """Runs the migrated program against the evidence; beside it, if local, the missing replicates."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        # Two clusters at once would only get in each other's way, and a server makes one run at a time; two
        # local programs in two interpreters have a core each.
        later = None
        if not case.shape.counts and not case.both_original:
            later = pool.submit(with_replicates, session, case, evidence, progress, stop)
        try:
            found = _migrated_runs(session, case, progress, evidence, probe)
        except BaseException as error:
            stop.set()
            # Leaving the block waits for the thread, which waits for a training. An interrupted user does not.
            if not isinstance(error, Exception):
                session.original.close()
            raise
        if found.compared is None:
            stop.set()
        return found, evidence if later is None else later.result()


def _migrated_runs(
    session: Session, case: Case, progress: OnProgress, evidence: OriginalEvidence, probe: Run | None
) -> _Findings:
    """The migrated program's runs, as many as make sense, and L0 to L2."""
    original = evidence.main.recording
    failed = evidence.failed_run
    if failed is not None or original is None:
        return _failure((), failed or evidence.main)
    shape = _counterpart(case, one_trainer(case.shape))
    total = 3 + asynchronous(case.shape) + evidence.random_order
    if probe is None:
        progress(Progress("migrated", 0, total))
        probe = _probe(session, case)
    if probe.recording is None:
        return _failure((probe,), probe)
    names = _build_names(original, probe.recording, case.names)
    initial = _initial(session, original, names.to_migrated()) if names.complete else None
    progress(Progress("migrated", 1, total))
    main = run_program(session, case, "migrated", "migrated", shape, initial=initial)
    runs: tuple[Run, ...] = (probe, main)
    if main.recording is None:
        return _failure(runs, main)
    base = ladder.foundation(
        original,
        main.recording,
        names,
        training_tasks(one_trainer(case.shape), "original"),
        training_tasks(shape, _migrated_kind(case)),
        random_order=evidence.random_order,
        examples=(_examples(evidence.main), _examples(main)) if evidence.random_order else None,
        parameter_servers=parameter_servers(shape),
    )
    if evidence.random_order and base.comparable:
        again = run_program(session, case, "migrated", "migrated repeat", shape, initial=initial)
        runs += (again,)
        if again.recording is None:
            return _failure(runs, again)
        if l2_data.same_sequences(main.recording, again.recording):
            levels = [l2_data.fixed_order(level) if level.id == l2_data.ID else level for level in base.levels]
            base = replace(base, levels=tuple(levels))
    if evidence.free is not None and evidence.free.recording is not None:
        progress(Progress("migrated", 2, total))
        free = run_program(
            session, case, "migrated", "migrated free-running", _counterpart(case, case.shape), evaluate=True
        )
        runs += (free,)
        if free.recording is None:
            return _failure(runs, free)
        base = _with_free_cluster(case, base, evidence.free.recording, free.recording)
    found = _Findings(base.levels, runs, names)
    if not base.comparable:
        return found
    return _run_numbers(session, case, progress, evidence, found, base, main, initial, (total - 1, total))


def _examples(run: Run) -> frozenset[str]:
    """Digests of the distinct examples (rows of all components together) that a run trained on."""
    assert run.recording is not None
    found: set[str] = set()
    for batch in run.recording.batches:
        values = sorted(read_batch(run.record_dir, batch).items())
        for row in range(batch.size):
            digest = hashlib.sha256()
            for path, value in values:
                if value.shape[:1] == (batch.size,):
                    content = value[row : row + 1]
                    digest.update(path.encode())
                    digest.update(repr(content.tolist()).encode() if content.dtype == object else content.tobytes())
            found.add(digest.hexdigest())
    return frozenset(found)


def _probe(session: Session, case: Case) -> Run:
    """One step of the migrated program, to learn the names of its variables."""
    shape = _counterpart(case, one_trainer(case.shape))
    return run_program(
        session, case, "migrated", "migrated probe", shape, steps=1, state_steps=[], record_batches=False
    )


def _with_free_cluster(
    case: Case, base: ladder.Foundation, original: Recording, migrated: Recording
) -> ladder.Foundation:
    tasks = (
        training_tasks(case.shape, "original"),
        training_tasks(_counterpart(case, case.shape), _migrated_kind(case)),
    )
    levels = list(base.levels)
    levels[0] = l0_runs.free_cluster(levels[0], original, migrated, *tasks)
    if base.same_order:
        levels[3] = l2_data.free_cluster(levels[3], original, migrated, list(zip(*tasks, strict=True)))
    comparable = base.comparable and all(level.status is not Status.DIFFERENT for level in levels)
    return replace(base, levels=tuple(levels), comparable=comparable)


def _run_numbers(
    session: Session,
    case: Case,
    progress: OnProgress,
    evidence: OriginalEvidence,
    found: _Findings,
    base: ladder.Foundation,
    main: Run,
    initial: str | None,
    count: tuple[int, int],
) -> _Findings:
    """The run that L3 to L5 judge (the one made already, or a replay), and the control run."""
    shape = _counterpart(case, one_trainer(case.shape))
    replay = None if base.same_order else str(evidence.main.record_dir)
    compared, runs = main, found.runs
    if replay is not None:
        compared = run_program(session, case, "migrated", "migrated replay", shape, initial=initial, replay=replay)
        runs += (compared,)
        if compared.recording is None:
            return _failure(runs, compared)
    progress(Progress("migrated", *count))
    control = run_program(
        session,
        case,
        "migrated",
        "migrated control",
        shape,
        initial=initial,
        replay=replay,
        learning_rate_factor=ladder.CONTROL_FACTOR,
    )
    runs += (control,)
    progress(Progress("migrated", count[1], count[1]))
    return replace(found, runs=runs, compared=compared, control=control, replayed=replay is not None)


def _finish(found: _Findings, evidence: OriginalEvidence, versions_differ: bool) -> _Findings:
    """L3 to L5 from recordings that are all there."""
    failed = evidence.failed_run
    if failed is not None:
        return _failure(found.runs, failed)
    original = evidence.main.recording
    if found.compared is None or original is None:
        return found
    assert found.names is not None and found.compared.recording is not None
    limits = tolerance.derive(
        original,
        [run.recording for run in evidence.replicates if run.recording is not None],
        versions_differ=versions_differ,
    )
    migrated, control = found.compared.recording, found.control.recording if found.control else None
    problem = _not_comparable(original, migrated, found.names)
    if problem is not None:
        # Judged by L3, whose question it spoils; L4 and L5 follow from it.
        level = LevelResult("L3", verdict.TITLES["L3"], Status.INCONCLUSIVE, problem, Reason.DATA_NOT_REPLAYABLE)
        return replace(found, levels=(*found.levels, level), limits=limits)
    if control is not None and _not_comparable(original, control, found.names) is not None:
        control = None
    numbers = ladder.numbers(original, migrated, control, found.names, limits)
    return replace(found, levels=(*found.levels, *numbers), limits=limits)


def _not_comparable(original: Recording, other: Recording, names: name_map.NameMap) -> str | None:
    """Why a run does not stand on the original's weights and batches, although it was asked to."""
    if not l2_data.same_sequences(original, other):
        return "the migrated program did not train on the original's batches although they were replayed to it"
    rename = names.to_original()
    loaded = {rename.get(name, name): value for name, value in other.initial.items()}
    for name, value in original.initial.items():
        if name not in loaded or not np.array_equal(loaded[name], value):
            return f"the migrated program did not start from the original's value of {name}"
    return None


def verify(
    case: Case,
    progress: OnProgress = lambda _: None,
    *,
    session: Session | None = None,
    evidence: OriginalEvidence | None = None,
) -> Report:
    """Runs both programs, judges them and returns the report.

    `evidence` about the same original under the same case (from `collect_original`) is used instead of
    running the original again; it needs the `session` that it was made in. Raises CaseError for what cannot
    be run, and ForkServerError if an interpreter cannot be started. A program that fails is no exception but
    the verdict FAILED.
    """
    check(case)
    if session is None:
        if evidence is not None:
            raise ValueError("evidence belongs to the session that it was made in")
        progress(Progress("interpreters", 0, 1))
        with open_session() as opened:
            return verify(case, progress, session=opened)
    started = time.time()
    clock = time.monotonic()
    versions = session.original.describe(), session.server(_migrated_kind(case)).describe()
    progress(Progress("interpreters", 1, 1))
    probe = None
    if evidence is None:
        if case.shape.counts or case.both_original:
            evidence = record_original(session, case, progress)
        else:
            with ThreadPoolExecutor(1) as pool:
                later = pool.submit(_probe, session, case)
                evidence = record_original(session, case, progress)
                probe = later.result()
    found, evidence = _judge(session, case, progress, evidence, probe)
    if found.compared is not None:
        evidence = with_replicates(session, case, evidence, progress)
        found = _finish(found, evidence, versions[0]["tensorflow"] != versions[1]["tensorflow"])
    levels = found.levels
    if asynchronous(case.shape) and levels[0].status is not Status.FAILED:
        levels += (_async_level(),)
    levels = verdict.complete(levels)
    ours = tuple(run for run in (evidence.main, evidence.free, evidence.repeat, *evidence.replicates[1:]) if run)
    return build(
        levels=levels,
        verdict=verdict.decide(levels),
        case=_described(case),
        environments=versions,
        started=started,
        seconds=time.monotonic() - clock,
        original=evidence.main.recording,
        migrated=_shown(found),
        control=found.control.recording if found.control else None,
        replicates=tuple(run.recording for run in evidence.replicates if run.recording is not None),
        names=found.names,
        limits=found.limits,
        runs=tuple(RunSummary(run.role, run.program, run.outcome) for run in (*ours, *found.runs)),
        replayed=found.replayed,
        random_order=evidence.random_order,
        free=tuple(
            run.recording
            for run in (evidence.free, *found.runs)
            if run is not None and run.role.endswith("free-running") and run.recording is not None
        ),
    )


def _shown(found: _Findings) -> Recording | None:
    """The migrated recording that the report shows: the compared one, else the furthest that there is."""
    if found.compared is not None:
        return found.compared.recording
    return next((run.recording for run in reversed(found.runs) if run.recording is not None), None)


def _async_level() -> LevelResult:
    return LevelResult(
        "L6",
        verdict.TITLES["L6"],
        Status.NOT_EXERCISED,
        "not there yet: paired seeds of the asynchronous cluster are not run; L1 to L5 were judged on a "
        "cluster with one trainer",
        Reason.NOT_BUILT,
    )


def _described(case: Case) -> dict[str, Any]:
    return {
        "original": case.original,
        "migrated": case.migrated,
        "args": list(case.args),
        "cluster": str(case.shape),
        "migrated_cluster": str(_counterpart(case, case.shape)),
        "compared_cluster": str(one_trainer(case.shape)),
        "compared_migrated_cluster": str(_counterpart(case, one_trainer(case.shape))),
        "parameter_servers": parameter_servers(case.shape),
        "steps": case.steps,
        "report_dir": None if case.report_dir is None else str(case.report_dir),
    }


__all__ = [
    "Case",
    "CaseError",
    "ForkServerError",
    "OriginalEvidence",
    "Progress",
    "Session",
    "check",
    "collect_original",
    "make_case",
    "open_session",
    "verify",
]
