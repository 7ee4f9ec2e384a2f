"""Reports of every kind, made from the numpy trainer and from hand-written evidence, without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numpy_programs import Program, migrated_of, run

from migrator.harness.cluster import LOCAL, ClusterShape, Failure, RunOutcome, TaskOutcome
from migrator.harness.cluster.tasks import Task
from migrator.harness.protocol import l0_runs, ladder, name_map, tolerance, verdict
from migrator.harness.protocol.results import (
    AsyncEvidence,
    AsyncWindow,
    LevelResult,
    MutantOutcome,
    Randomness,
    Reason,
    Remedy,
    Status,
)
from migrator.harness.recording import Evaluation, Recording, SourceLine
from migrator.harness.report.document import Report, RunSummary, build
from migrator.harness.report.evidence import EvaluationRow

Made = TypeVar("Made")

KINDS = ("EQUIVALENT", "DIFFERENT", "INCONCLUSIVE", "FAILED")
ORIGINAL = Program(steps=20)
VERSIONS = (
    {"python": "3.11.7", "tensorflow": "2.15.1", "keras": "2.15.0"},
    {"python": "3.11.7", "tensorflow": "2.21.0", "keras": None},
)
HERE = str(Path(__file__))

MUTANTS = (
    MutantOutcome("lr_1.01", "learning rate 1 % higher", "L4", "killed", "L4", 4928.0, "", 2.5),
    MutantOutcome("drop_last", "last batch of an epoch dropped", "L2", "killed", "L2", None, "", 2.1),
    MutantOutcome("no_updates", "moving averages never updated", "L4", "not_applicable", detail="no such layer"),
    MutantOutcome("clip", "gradients clipped at 5", "L4", "not_exercised", detail="no gradient is that long"),
    MutantOutcome("sum_for_mean", "sum instead of mean in the loss", "L3", "missed", seconds=2.0),
)
RANDOMNESS = (
    Randomness("initial weights", "pinned", "the original's, carried over by name"),
    Randomness("batches", "replayed", "the original's, bit for bit"),
    Randomness("dropout", "excluded", "switched off in both programs"),
    Randomness("order of the updates", "free", "several trainers; compared over paired seeds"),
)
EVALUATIONS = (
    EvaluationRow("accuracy", 0.8125, 0.8125, 0.8125, 0.0, "inside", 20, 0.0),
    EvaluationRow("average_loss", 0.43125, 0.43125004, 0.4313, 0.4, "inside", 20, 1.1),
    EvaluationRow("auc", 0.9, None, None, None, "not compared"),
)
#: How far the metrics of the replicates are from the original's.
SPREAD = {"accuracy": 0.0, "average_loss": 1e-5}
REMEDY = Remedy(
    "the 90 % interval of the error in learning rate, -2.1 % to +7.9 %, is wider than ±4.5 %",
    "an error of more than 8 % is excluded; one of 5 % is not",
    "tf-migrate verify original.py migrated.py --cluster chief=1,worker=2,ps=2 --seeds 14",
)
ASYNC = AsyncEvidence(
    k=8,
    steps=1000,
    promised=0.05,
    margin=0.0439,
    estimate=0.028,
    ci90=(-0.021, 0.076),
    p_equivalent=0.21,
    p_different=0.18,
    windows=(
        AsyncWindow(1, 31, 0.11, (-0.22, 0.41), False, False),
        AsyncWindow(32, 62, 0.055, (-0.02, 0.13), True, False),
        AsyncWindow(63, 125, 0.012, (-0.03, 0.04), True, True),
        AsyncWindow(126, 250, 0.01, (-0.028, 0.039), True, True),
        AsyncWindow(251, 500, -0.004, (-0.03, 0.022), True, True),
        AsyncWindow(501, 1000, 0.002, (-0.031, 0.035), True, True),
    ),
    null_estimate=0.008,
    null_ci90=(-0.012, 0.03),
    control_estimate=0.178,
    seeds_needed=14,
    per_seed=(0.01, 0.05, -0.03, 0.12, 0.02, 0.04, -0.01, 0.024),
)


def _task(task: Task, start: float, end: float, *, pid: int, code: int = 0, by_launcher: bool = False) -> TaskOutcome:
    folder = Path("/nowhere")
    tail = ("INFO:tensorflow:<last> line", "\x1b[31mred\x1b[0m & done")
    return TaskOutcome(
        task=task,
        pid=pid,
        started=start,
        ended=end,
        exit_code=None if by_launcher else code,
        signal="SIGTERM" if by_launcher else None,
        ended_by_launcher=by_launcher,
        max_rss_bytes=300_000_000,
        cpu_seconds=1.5,
        stdout=folder / "out",
        stderr=folder / "err",
        tail=tail,
    )


def _runs(shape: ClusterShape, failure: Failure | None) -> tuple[RunSummary, ...]:
    made = []
    roles = (
        ["original", *(f"replicate {i + 1}" for i in range(6)), "migrated"]
        if failure is None
        else ["original", "migrated"]
    )
    for number, role in enumerate(roles):
        start = 1_700_000_000.0 + 4.0 * number
        failed = failure is not None and role == "migrated"
        tasks = shape.tasks() if shape.counts else (LOCAL,)
        outcomes = tuple(
            _task(
                task,
                start + 0.1 * i,
                start + 3.5 - 0.05 * i,
                pid=4711 + 10 * number + i,
                code=int(failed and failure is not None and task == failure.task),
                by_launcher=task.type == "ps",
            )
            for i, task in enumerate(tasks)
        )
        program = "migrated" if role == "migrated" else "original"
        made.append(RunSummary(role, program, RunOutcome(Path("/nowhere"), outcomes, failure if failed else None, 3.5)))
    return tuple(made)


def _with_sources(levels: Sequence[LevelResult]) -> tuple[LevelResult, ...]:
    """The levels with lines of this file as the sources of their differences."""
    return tuple(
        replace(
            level,
            differences=tuple(
                replace(d, original_source=SourceLine(HERE, 3), migrated_source=SourceLine(HERE, 5))
                for d in level.differences
            ),
        )
        for level in levels
    )


def make(kind: str, *, steps: int = ORIGINAL.steps, rich: bool = False, **changes: Any) -> Report:
    """A report whose verdict is `kind`. `rich`: of a cluster, with every kind of evidence; `changes` go to build."""
    program = replace(ORIGINAL, steps=steps)
    original = run(program)
    mistake: dict[str, object] = {"loss_scale": "sum"} if kind == "DIFFERENT" else {}
    migrated = run(migrated_of(program, float64_sums=rich, **mistake))
    control = None
    if kind != "INCONCLUSIVE" or rich:
        control = run(migrated_of(program, float64_sums=rich, **mistake), learning_rate_factor=tolerance.CONTROL_FACTOR)
    names = name_map.build(original.variables, migrated.variables)
    replicates = [
        run(program, ulp_seed=int(p["ulp_seed"]), learning_rate_factor=p["learning_rate_factor"])
        for p in tolerance.replicate_plans(original.optimizer)
    ]
    limits = tolerance.derive(original, replicates)
    original = _evaluated(original, 0.0)
    replicates = [_evaluated(replicate, (-1.0) ** i) for i, replicate in enumerate(replicates)]
    shape = ClusterShape.parse("chief=1,worker=2,ps=2") if rich else ClusterShape()
    failure = None
    if kind == "FAILED":
        task = shape.tasks()[1] if rich else LOCAL
        frame = f'  File "{HERE}", line 7, in <module>'
        failure = Failure(task, "exit", "exit code 1", ("Traceback", frame, "ValueError: <no> & never"))
    if failure is not None:
        levels: tuple[LevelResult, ...] = (l0_runs.failed("migrated", failure.message, failure.tail),)
    else:
        base = ladder.foundation(original, migrated, names, ["local:0"], ["local:0"])
        levels = (*base.levels, *ladder.numbers(original, migrated, control, {}, names, limits))
    if rich and failure is None:
        levels = (*levels, *_late_levels(kind))
    levels = verdict.complete(_with_sources(levels))
    evidence: dict[str, Any] = {}
    if rich and failure is None:
        evidence = {
            "mutants": MUTANTS,
            "randomness": RANDOMNESS,
            "evaluations": EVALUATIONS,
            "remedy": REMEDY if kind == "INCONCLUSIVE" else None,
            "asynchronous": ASYNC if kind == "INCONCLUSIVE" else None,
            "seeds": tuple(range(8)) if kind == "INCONCLUSIVE" else (),
        }
    return build(
        levels=levels,
        verdict=verdict.decide(levels),
        case={
            "original": Path(HERE),
            "migrated": Path(HERE) if rich else Path("/no/<such> file.py"),
            "args": ["--x", "a b"],
            "cluster": str(shape),
            "migrated_cluster": "chief=1,worker=3,ps=2" if rich else str(shape),
            "compared_cluster": "chief=1,ps=2" if rich else str(shape),
            "compared_migrated_cluster": "chief=1,worker=1,ps=2" if rich else str(shape),
            "parameter_servers": rich,
            "steps": steps,
            "report_dir": "out",
        },
        environments=VERSIONS,
        started=1_700_000_000.0,
        seconds=212.5 if rich else 12.5,
        original=original,
        migrated=None if failure else migrated,
        control=control,
        replicates=replicates,
        names=names,
        limits=None if failure else limits,
        replayed=False,
        random_order=False,
        **{"runs": _runs(shape, failure), **evidence, **changes},
    )


@cache
def _made(kind: str, rich: bool, steps: int) -> Report:
    return make(kind, rich=rich, steps=steps)


class Lazy(Mapping[str, Made]):
    """What a function makes of some names, each when it is first asked for: collecting tests makes none."""

    def __init__(self, names: Sequence[str], make: Callable[[str], Made]) -> None:
        self.names = names
        self.make = cache(make)

    def __getitem__(self, name: str) -> Made:
        return self.make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def reports(*, steps: int = ORIGINAL.steps, rich: bool = False) -> Lazy[Report]:
    """A report of each kind, the same one for all tests that ask."""
    return Lazy(KINDS, lambda kind: _made(kind, rich, steps))


def _evaluated(recording: Recording, moved: float) -> Recording:
    values = {"accuracy": 0.8125, "average_loss": 0.43125}
    results = {name: value + moved * SPREAD[name] for name, value in values.items()}
    return replace(recording, evaluations=(Evaluation("local:0", 20, results),))


def _late_levels(kind: str) -> tuple[LevelResult, ...]:
    if kind == "INCONCLUSIVE":
        return (
            LevelResult(
                "L6",
                verdict.TITLES["L6"],
                Status.INCONCLUSIVE,
                "8 paired seeds: the error in learning rate is +2.8 %, between -2.1 % and +7.9 %",
                Reason.INSUFFICIENT_SEEDS,
                excluded="an error of more than 8 %",
                seconds=612.0,
            ),
        )
    return (
        LevelResult(
            "L7",
            verdict.TITLES["L7"],
            Status.EQUIVALENT,
            "2 of 3 metrics of 1 evaluation agree",
            ratio=0.4,
            tolerance=8.0,
            floor=1e-7,
            statistic=4e-8,
            excluded="a metric off by more than 8e-7",
            notes=("auc was not compared: the migrated program has no such metric",),
        ),
    )
