"""Running one program once: interpreters, run folders, plans, recordings."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from migrator.harness import printed, summaries
from migrator.harness.case import Case, counterpart, parameter_servers, training_tasks
from migrator.harness.cluster import ClusterShape, ForkServer, Launch, Runner, RunOutcome
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.recording import Recording, RecordingError, UnrecordedTraining, evaluation_weights, read
from migrator.harness.room import Room
from migrator.harness.versions import OriginalRuns

#: Files of a model_dir that are larger hold weights; what tells which checkpoints there are is small.
_LARGE = 1 << 20


@dataclass(frozen=True)
class Progress:
    """Where the session is: `stage` names it, `done` of `total` runs of it are over."""

    stage: str
    done: int
    total: int


OnProgress = Callable[[Progress], None]

#: Of what the generators of numbers are seeded in the runs whose data are compared. What a program reads by chance is
#: the same in both then, if both draw in the same order; that it is chance is seen in runs that are not seeded.
GENERATORS = 1


@dataclass(frozen=True)
class Run:
    """One run of one program: what the cluster says of it and what it recorded (None: nothing usable).

    `unrecorded`: it trained, but in a way whose steps are not recorded. `late`: how it failed when its training was
    over, which is recorded all the same; None if it did not. `stalled`: why it was made twice: a first time it stopped
    making progress; None if it was made once.
    """

    role: str
    program: str
    outcome: RunOutcome
    recording: Recording | None
    complaint: str | None = None
    unrecorded: bool = False
    late: str | None = None
    stalled: str | None = None

    @property
    def record_dir(self) -> Path:
        """The folder that the tasks wrote their records to."""
        return self.outcome.run_dir / "record"

    @property
    def failed(self) -> bool:
        """Whether nothing usable was recorded, since a task failed or for another reason."""
        return self.recording is None


@dataclass(frozen=True)
class Session:
    """Two interpreters with TensorFlow loaded, and a folder for the runs. Made by `open_session`."""

    original: Runner
    migrated: Runner
    folder: Path
    _counter: Iterator[int]
    _tensorflow2: Callable[[], Runner]
    _tensorflow115: Callable[[], Runner]
    #: What is known of interpreters, by these, that need not start for it.
    described: dict[Runner, dict[str, Any]] = field(default_factory=dict)

    def server(self, case: Case, program: str) -> Runner:
        """The interpreter that runs a case's "original" or "migrated" script."""
        if program == "migrated" and not case.both_original:
            return self.migrated
        if case.original_runs is OriginalRuns.FIRST_KERAS2:
            return self._tensorflow2()
        if case.original_runs is OriginalRuns.TENSORFLOW115:
            return self._tensorflow115()
        return self.migrated if case.original_runs is OriginalRuns.AS_MIGRATED else self.original

    def describe(self, case: Case, program: str) -> dict[str, Any]:
        """See Runner.describe; an interpreter of which that is known need not start for it."""
        server = self.server(case, program)
        return self.described.get(server) or server.describe()

    def new_folder(self, role: str) -> Path:
        """A fresh folder for a run, named after what it is for."""
        path = self.folder / f"{next(self._counter):03d}-{role.replace(' ', '-')}"
        path.mkdir()
        return path


def _count() -> Iterator[int]:
    return itertools.count(1)  # runs of the two programs start from two threads; a generator would refuse one


@contextmanager
def open_session(
    original_python: Path | None = None,
    migrated_python: Path | None = None,
    keras: int = 2,
    runner: str = "local",
    gpu: bool = False,
    first_python: Callable[[], Path | None] | None = None,
) -> Iterator[Session]:
    """Starts the migrated program's interpreter, and has that of the original ready to start when it is needed; ends
    them, and removes every file of the runs, at the end of the block. `keras` is the generation of Keras that the
    migrated program runs on. An interpreter for originals of TensorFlow 2 is started with the first of them, and so is
    that of `first_python` for originals that need TensorFlow 1.15 itself. `runner` is "local" or "ray"; with `gpu`
    programs have GPUs.

    Without arguments the interpreters are those of harness.environments (made if need be).
    """
    from migrator.harness import environments

    pythons = (
        original_python or environments.original_python(),
        migrated_python or environments.migrated_python(),
    )
    waiting = {"waits": True} if runner == "local" else {}
    with (
        tempfile.TemporaryDirectory(prefix="tf-migrate-verify-") as folder,
        _runners(runner) as make,
        make(pythons[0], "original", folder=Path(folder), gpu=gpu, **waiting) as original,
        make(pythons[1], "migrated", folder=Path(folder), keras=keras, gpu=gpu) as migrated,
        ExitStack() as stack,
    ):

        @cache
        def tensorflow2() -> Runner:
            return stack.enter_context(make(pythons[0], "migrated", folder=Path(folder), gpu=gpu))

        @cache
        def tensorflow115() -> Runner:
            own = os.environ.get(environments.original_specification().variable)
            # What the user names for originals runs all of them.
            python = None if own else (first_python or environments.first_python)()
            return (
                original
                if python is None
                else stack.enter_context(make(python, "original", folder=Path(folder), gpu=gpu))
            )

        yield Session(original, migrated, Path(folder), _count(), tensorflow2, tensorflow115)


@contextmanager
def _runners(runner: str) -> Iterator[Callable[..., Runner]]:
    if runner == "local":
        yield ForkServer
        return
    from migrator.harness.cluster.on_ray import ray_runners

    with ray_runners() as make:
        yield make


def program_of(original_runs: OriginalRuns) -> str:
    """What kind of program an original is to the code inside: "original", or "migrated" if TensorFlow 2 runs it."""
    return "original" if original_runs.of_one else "migrated"


def one_interpreter(case: Case) -> bool:
    """Whether one interpreter runs both programs, one after another."""
    return case.both_original or case.original_runs is OriginalRuns.AS_MIGRATED


def migrated_shape(case: Case, shape: ClusterShape) -> ClusterShape:
    """The migrated program's cluster for one of the original's."""
    return shape if case.both_original else counterpart(shape)


#: Of runs whose shuffles are to be alike, with a rare seed: each pass has the order of the first.
SHUFFLE_SEED = 20261125
IN_ONE_ORDER: Mapping[str, Any] = {"shuffle_seed": SHUFFLE_SEED, "one_order": True}


def plan_for(kind: str, run_dir: Path, shape: ClusterShape, **changes: Any) -> dict[str, Any]:
    """The plan of a run of an "original" or "migrated" program: nothing moved, nothing replayed, all recorded but
    evaluations; `changes` are put in its place.
    """
    return {
        "program": kind,
        "record": str(run_dir / "record"),
        "model_dir": str(run_dir / "model"),
        "trainers": list(training_tasks(shape)),
        "steps": None,
        "only_training": False,
        "state_steps": list(Room.state_steps),
        "initial": None,
        "draw_initial": False,
        "generators": None,
        "ulp_seed": None,
        "learning_rate_factor": 1.0,
        "edited_rate": None,
        "replay": None,
        "record_batches": True,
        "keep_batches": True,
        "pin_dropout": True,
        "anew": not parameter_servers(shape),
        "shuffle_seed": None,
        "one_order": False,
        "in_place": False,
        "evaluate": False,
        "evaluate_weights": None,
        "evaluation_control": False,
        "evaluation_noise": False,
        "predict_weights": None,
        "turns": False,
        "tpu_cores": None,
        "devices": 1,
        "points": None,
        "lines": False,
        "data_sample": None,
        "training": 0,
        "before": 0,
        "apart": False,
        "first_batch": None,
        "requests": 1,
        "summing": False,
        "kill_after": None,
        "mutant": None,
        **changes,
    }


def distinct(runs: Iterable[Run | None]) -> tuple[Run, ...]:
    """The runs that there are, each once, in their order."""
    found: list[Run] = []
    for run in runs:
        if run is not None and run not in found:
            found.append(run)
    return tuple(found)


def began_anew(runs: Iterable[Run]) -> tuple[Path, ...]:
    """The users' folders with checkpoints that programs would have gone on from, had they not got folders of the run.

    A folder that the program had deleted before is none of them.
    """
    found: list[Path] = []
    for run in runs:
        place = run.outcome.run_dir.absolute() / "model"
        gone = [Path(write.path) for write in run.outcome.writes if write.what == "deleted"]
        for state in sorted(place.rglob("checkpoint")):
            real = Path(os.sep, state.parent.relative_to(place))
            deleted = any(path in (real, *real.parents) for path in gone)
            if (real / "checkpoint").is_file() and not deleted and real not in found:
                found.append(real)
    return tuple(found)


def recording_of(run: Run | None) -> Recording | None:
    """What a run recorded; None where there was no run."""
    return None if run is None else run.recording


def run_program(session: Session, case: Case, program: str, role: str, shape: ClusterShape, **plan: Any) -> Run:
    """One run; `plan` overrides keys of the plan that inside/ obeys."""
    return _run(session, case, program, role, shape, plan)


def run_again(session: Session, case: Case, earlier: Run, role: str, **plan: Any) -> Run:
    """A run of the same program that finds the checkpoints which an earlier run left behind."""
    return _run(session, case, earlier.program, role, case.shape, plan, earlier)


def _run(
    session: Session,
    case: Case,
    program: str,
    role: str,
    shape: ClusterShape,
    plan: Mapping[str, Any],
    continues: Run | None = None,
) -> Run:
    of_original = program == "original" or case.both_original
    kind = program_of(case.original_runs) if of_original else "migrated"
    devices = case.original_devices if program == "original" and kind == "migrated" else case.devices
    asked = {
        "steps": case.steps,
        "tpu_cores": case.tpu_cores,
        "devices": devices,
        "training": case.training,
        "before": case.before if program == "migrated" else 0,
        "apart": case.apart,
        "first_batch": case.first_batches[program == "migrated"],
        "requests": case.requests[program == "migrated"],
        "summing": case.summing and program == "migrated",
        "data_sample": case.data_sample,
        "state_steps": list(case.room.state_steps),
        "pin_dropout": "features" if case.time_alike else True,
        "anew": case.anew and not parameter_servers(shape),
        **(IN_ONE_ORDER if case.one_order else {}),
    }

    def launched() -> Launch:
        run_dir = session.new_folder(role)
        if continues is not None:
            shutil.copytree(continues.outcome.run_dir / "model", run_dir / "model")
        return Launch(
            kind,
            (case.original if program == "original" else case.migrated).absolute(),
            case.args,
            shape,
            run_dir,
            plan=plan_for(kind, run_dir, shape, **{**asked, **plan}),
            ready_timeout=case.ready_timeout,
            stall_timeout=case.stall_timeout,
            total_timeout=case.total_timeout,
            confine=not case.allow_writes,
            # A TensorFlow 2 program that is an original was written when Keras 2 was the only one.
            asks_for_keras=not of_original and case.keras == 2,
            module=case.module,
            cwd=case.folders[program == "migrated"],
            stdin=case.stdin,
        )

    launch = launched()
    outcome = session.server(case, program).run(launch)
    stalled = None
    if outcome.failure is not None and outcome.failure.kind == "stall":
        # Threads that wait for each other once, on a machine with much else to do, say nothing against a program yet.
        stalled = outcome.failure.message
        launch = launched()
        outcome = session.server(case, program).run(launch)
    made = _made(launch, outcome, role, program)
    if launch.plan["kill_after"] is None:  # else it is started again
        _without_checkpoints(launch.run_dir)
    return made if stalled is None else replace(made, stalled=stalled)


def _without_checkpoints(run_dir: Path) -> None:
    """Removes what a run that nobody goes on from has written of weights to its model_dir."""
    for path in (run_dir / "model").rglob("*"):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size > _LARGE:
                path.unlink()


def _made(launch: Launch, outcome: RunOutcome, role: str, program: str) -> Run:
    """What a run left behind."""
    late = _failed_late(launch, outcome)
    if outcome.failure is not None and late is None:
        return Run(role, program, outcome, None, outcome.failure.message)
    try:
        if launch.plan["evaluate"]:
            summaries.keep(launch.run_dir)
            printed.keep(launch.run_dir)
        recording = replace(read(launch.run_dir / "record"), program=program)
        return Run(role, program, outcome, recording, late=late)
    except RecordingError as error:
        return Run(role, program, outcome, None, str(error), isinstance(error, UnrecordedTraining))


def _failed_late(launch: Launch, outcome: RunOutcome) -> str | None:
    """How a program of one process failed when every call that trains had come to its end; None for any other end.

    Of calls of Estimators, of sessions with hooks and of Keras that is known: not of other loops of a program's own.
    """
    failure = outcome.failure
    if failure is None or failure.kind != "exit" or launch.shape.counts:
        return None
    folder = Path(launch.plan["record"]) / failure.task.folder
    try:
        begun, ended = (len((folder / name).read_text().splitlines()) for name in ("calls.jsonl", "ended.jsonl"))
    except OSError:
        return None
    return failure.message if begun == ended else None


def weights_file(session: Session, values: Mapping[str, np.ndarray], rename: Mapping[str, str] | None = None) -> str:
    """A file of weights, under the names of the program that will load them."""
    path = session.new_folder("weights") / "weights.npz"
    renamed = {(rename or {}).get(name, name): value for name, value in values.items()}
    # A variable may be called "file", which is a parameter of np.savez.
    with path.open("wb") as handle:
        np.savez(handle, **renamed)  # type: ignore[arg-type]
    return str(path)


def evaluation_files(
    session: Session, run: Run, names: NameMap, theirs: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
) -> list[dict[str, Any]]:
    """The weights that the original evaluated, for the migrated program to evaluate: [{"step", "path"}].

    Only evaluations whose checkpoint holds every variable of the map; `theirs` puts them into the form and under the
    names of the migrated program.
    """
    renamed, found = names.to_migrated(), []
    for step, path in sorted(evaluation_weights(run.record_dir).items()):
        with np.load(path) as archive:
            if set(renamed) <= set(archive.files):
                values = {name: archive[name] for name in renamed}
                found.append({"step": step, "path": weights_file(session, theirs(values))})
    return found
