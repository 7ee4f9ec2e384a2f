"""What is to be compared: two programs, how they are run, and the clusters that follow from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrator.harness.cluster import ClusterShape
from migrator.harness.protocol import grade, verdict
from migrator.harness.protocol.l6_asynchronous import FEWEST_SEEDS
from migrator.harness.room import Room
from migrator.harness.versions import OriginalRuns, written_for

GREATEST_PROMISE = 0.15


class CaseError(ValueError):
    """What was asked for cannot be run at all: a missing script, a malformed cluster, a wrong name map."""


@dataclass(frozen=True)
class Case:
    """Two programs and how to run them.

    `both_original`: the "migrated" script is an original too, run by the original's interpreter (the null
    test of the harness: a program against itself must be EQUIVALENT). `steps` limits both trainings (None: as
    long as they run by themselves). `seeds` pairs of runs of the free asynchronous cluster are compared for L6 (0:
    none), which promises to exclude an error like a learning rate off by the share `promised`. `all_mutants`: every
    known-bad version is tried, not only the sentinels. `names` maps original variable names to migrated ones where
    creation order does not do. Times are seconds for one run of one program. `report_dir` and `options` (further
    words) are only named in the report's command line; writing the report is the caller's. The logs of runs that
    failed are copied to `log_dir`. `keras` is the generation of Keras that the migrated program runs on. `devices` is
    the number of virtual CPUs that the programs see, one for each replica of a MirroredStrategy without arguments, or
    for each of its GPUs. `original_devices` is that of the original alone, where `original_runs` says that it is a
    TensorFlow 2 program too. `tpu_cores` virtual CPUs stand in for a
    TPU, where the migrated program asks for one. `allow_writes`: the programs may change files outside of their runs.
    `required` names what has to be shown for EQUIVALENT beside what always has to (see protocol.grade.checked).
    `module` is the name of both scripts where they are run as `python -m` does; `folders` are the working directories
    of the original and of the migrated program (None: that of the tool), where such modules are looked up. Each
    process reads `stdin` from its beginning. `command` is the command line that asked for the comparison, up to its
    options, where it is not `tf-migrate verify ORIGINAL MIGRATED`. `kept`: what an earlier verification found out about
    the same original is used, and what this one does is kept on disk.
    `sample_steps` are steps to compare one by one beside those that are chosen, reached or not; `from_checkpoint` is
    the prefix of a checkpoint of the original, from which a step is compared too. `training` says which of the models
    that a script trains, one after another, is compared: 0 is the first. `data_sample` is the most batches of a data
    set that an evaluation takes (None: all); `steps` is no more than that then. `room` says what the recordings keep
    of the weights, once the original has shown how many there are. `time_alike`: dropouts drop the same features at
    each time step. `anew`: they drop others at each step of the training, the same ones in both programs. `one_order`:
    the shuffles of both programs have one seed, and give each pass the order of the first. `brief`: known-bad versions
    of the migrated program and replicates of the original are left out: only what agrees strictly is to be found.
    `first_batches` say of both programs which of the batches that they ask their data sets for an eager loop trains on
    first, once a run of theirs has shown it (None: not known, or no such loop). `apart`: the original trains several
    models, so that loops which train other variables are other trainings. `before`: how many models Keras fits before
    the Estimator of the original that is recorded; they are no trainings that are compared.
    """

    original: Path
    migrated: Path
    args: tuple[str, ...] = ()
    shape: ClusterShape = field(default_factory=ClusterShape)
    steps: int | None = None
    seeds: int = 0
    promised: float = 0.05
    all_mutants: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    report_dir: Path | None = None
    options: tuple[str, ...] = ()
    log_dir: Path | None = None
    both_original: bool = False
    original_runs: OriginalRuns = OriginalRuns.TENSORFLOW1
    devices: int = 1
    original_devices: int = 1
    keras: int = 2
    tpu_cores: int = 1
    ready_timeout: float = 120.0
    stall_timeout: float = 60.0
    total_timeout: float = 600.0
    allow_writes: bool = False
    module: str = ""
    folders: tuple[Path | None, Path | None] = (None, None)
    stdin: Path | None = None
    command: tuple[str, ...] = ()
    kept: bool = False
    sample_steps: tuple[int, ...] = ()
    from_checkpoint: Path | None = None
    required: tuple[str, ...] = ()
    training: int = 0
    data_sample: int | None = None
    room: Room = field(default_factory=Room)
    time_alike: bool = False
    anew: bool = True
    one_order: bool = False
    brief: bool = False
    first_batches: tuple[int | None, int | None] = (None, None)
    apart: bool = False
    summing: bool = False
    requests: tuple[int, int] = (1, 1)
    before: int = 0


def make_case(original: Path, migrated: Path, *, cluster: str = "", **options: Any) -> Case:
    """A checked Case; `cluster` as in "chief=1,worker=2,ps=2", `options` the other fields. CaseError.

    `original_runs` may also be a value of OriginalRuns, or "auto", the default: by the names that the original uses.
    A TensorFlow 2 program has the devices of the migrated one where `original_devices` are not given.
    """
    asked = options.get("original_runs", "auto")
    runs = options["original_runs"] = written_for(Path(original)) if asked == "auto" else OriginalRuns(asked)
    if not options.get("original_devices"):
        options["original_devices"] = 1 if runs.of_one else options.get("devices", 1)
    try:
        shape = ClusterShape.parse(cluster, coordinated=not runs.of_one)
    except ValueError as error:
        raise CaseError(f"cluster: {error}") from None
    if options.get("data_sample") is not None:
        options["steps"] = min(options.get("steps") or options["data_sample"], options["data_sample"])
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
    for folder in case.folders:
        if folder is not None and not folder.is_dir():
            raise CaseError(f"the folder {folder} to run a program in does not exist")
    if case.stdin is not None and not case.stdin.is_file():
        raise CaseError(f"there is no file {case.stdin} to read as stdin")
    if case.from_checkpoint is not None and not Path(f"{case.from_checkpoint}.index").is_file():
        raise CaseError(f"there is no checkpoint {case.from_checkpoint}: {case.from_checkpoint}.index does not exist")
    if case.steps is not None and case.steps < 1:
        raise CaseError(f"steps must be at least 1, not {case.steps}")
    if case.seeds and case.seeds < FEWEST_SEEDS:
        raise CaseError(f"an interval needs at least {FEWEST_SEEDS} seeds, not {case.seeds}")
    if not 0.0 < case.promised <= GREATEST_PROMISE:
        # The known-bad version of L6 is 20 % off, and has to stand out from what is promised.
        raise CaseError(f"the promise must be a share above 0 and at most {GREATEST_PROMISE}, not {case.promised:g}")
    for name in ("ready_timeout", "stall_timeout", "total_timeout"):
        if not getattr(case, name) > 0.0:
            raise CaseError(f"{name.replace('_', ' ')} must be positive, not {getattr(case, name):g} s")
    if min(case.devices, case.original_devices) < 1:
        raise CaseError("a program needs at least one device")
    if case.original_devices > 1 and case.original_runs.of_one:
        raise CaseError("an Estimator uses the devices of the migrated program: leave --original-devices out")
    if case.devices > 1 and case.shape.counts:
        raise CaseError("each task of a cluster has one device: leave --devices out, or --cluster")
    if case.keras == 3 and case.shape.count("ps"):
        raise CaseError("Keras 3 does not support parameter servers: leave --cluster out, or verify with --keras 2")
    if case.keras == 3 and case.all_mutants:
        raise CaseError("--full uses known-bad versions that exist for Keras 2 only")
    try:
        grade.checked(case.required, verdict.ORDER)
    except ValueError as error:
        raise CaseError(str(error)) from None
    if case.shape.counts and not case.shape.trainers():
        raise CaseError(f"the cluster {case.shape} has no task that trains")
    if case.report_dir is not None:
        wanted = case.report_dir.absolute()
        place = next(folder for folder in (wanted, *wanted.parents) if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK):
            raise CaseError(f"the report cannot be written to {case.report_dir}: {place} is not a writable folder")


def parameter_servers(shape: ClusterShape) -> bool:
    """Whether variables live on parameter servers, so that trainers do not wait for each other."""
    return shape.count("ps") > 0 and not shape.in_step


def counterpart(shape: ClusterShape) -> ClusterShape:
    """The migrated program's cluster for an original's.

    A TF1 chief trains beside its workers and a TF2 coordinator does not: with parameter servers the migrated
    cluster has one worker for each trainer of the original. Trainers that wait for each other (SyncReplicasOptimizer)
    become mirrored workers, which need no servers.
    """
    if shape.in_step:
        return ClusterShape(tuple((kind, count) for kind, count in shape.counts if kind != "ps"))
    if not parameter_servers(shape) or shape.coordinated:
        return shape
    counts = {"chief": 1, "worker": len(shape.trainers()), "ps": shape.count("ps")}
    if shape.count("evaluator"):
        counts["evaluator"] = shape.count("evaluator")
    return ClusterShape(tuple(counts.items()), coordinated=True)


def one_trainer(shape: ClusterShape) -> ClusterShape:
    """The cluster on which an asynchronous program is repeatable: one trainer, the same servers, no
    evaluator.
    """
    if not parameter_servers(shape):
        return shape
    if shape.coordinated:
        return replace(shape, counts=(("chief", 1), ("worker", 1), ("ps", shape.count("ps"))))
    leader = "master" if shape.count("master") else "chief"
    return ClusterShape(((leader, 1), ("ps", shape.count("ps"))))


def training_tasks(shape: ClusterShape) -> tuple[str, ...]:
    """The tasks that train, chief first."""
    return tuple(str(task) for task in shape.trainers())


def without_evaluator(shape: ClusterShape) -> ClusterShape:
    """The same cluster without the task that only watches."""
    return replace(shape, counts=tuple((kind, count) for kind, count in shape.counts if kind != "evaluator"))


def asynchronous(shape: ClusterShape) -> bool:
    """Whether several trainers update the same variables in no fixed order."""
    return parameter_servers(shape) and len(shape.trainers()) > 1
