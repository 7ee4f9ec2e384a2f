"""The report as one JSON document; everything that a person or a machine reads is rendered from it."""

from __future__ import annotations

import datetime
import hashlib
import math
import os
import platform
import shlex
import signal
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from migrator.harness.cluster import RunOutcome, Write
from migrator.harness.protocol import grade as grades
from migrator.harness.protocol import judging, l0b_configuration, l4_state, measurements
from migrator.harness.protocol.measurements import LOSS, Quantity
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.protocol.results import (
    Artefact,
    AsyncEvidence,
    LevelResult,
    MutantOutcome,
    Randomness,
    Remedy,
    Status,
    counted,
)
from migrator.harness.protocol.tolerance import EPS, OF_ONE, TRAJECTORY, Tolerance
from migrator.harness.protocol.verdict import Verdict
from migrator.harness.recording import Recording
from migrator.harness.report import evidence
from migrator.harness.report.evidence import Document, EvaluationRow

SCHEMA_VERSION = 3


@dataclass(frozen=True)
class Report:
    """A verdict with its reasons. `document` conforms to schema.json; non-finite numbers are text in it."""

    document: Document

    @property
    def status(self) -> Status:
        """The verdict."""
        return Status(self.document["verdict"])

    @property
    def summary(self) -> str:
        """The verdict's one sentence."""
        return str(self.document["summary"])


@dataclass(frozen=True)
class RunSummary:
    """One run for the report: what it was for, and what the cluster says about its processes."""

    role: str
    program: str
    outcome: RunOutcome


def plain(value: Any) -> Any:
    """The value as JSON can hold it: tuples as lists, non-finite floats as "NaN", "Infinity", "-Infinity"; text
    as UTF-8 can.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return value
    if isinstance(value, str):
        # Half a surrogate pair, from a path or an argument that is not UTF-8, could be written nowhere.
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _input(path: Path) -> Document:
    content = path.read_bytes() if path.is_file() else b""
    return {"path": str(path), "sha256": hashlib.sha256(content).hexdigest()}


def _exit(code: int | None, name: str | None) -> str:
    if name is not None:
        return name
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return "running" if code is None else str(code)


def _processes(runs: Sequence[RunSummary]) -> list[Document]:
    return [
        {
            "run": run.role,
            "program": run.program,
            "task": str(task.task),
            "pid": task.pid,
            "start": task.started,
            "end": task.ended,
            "exit": _exit(task.exit_code, task.signal),
            "by_launcher": task.ended_by_launcher,
            "max_rss": task.max_rss_bytes,
            "cpu_s": task.cpu_seconds,
            "tail": list(task.tail) if run.outcome.failure is not None else [],
        }
        for run in runs
        for task in run.outcome.tasks
    ]


def _writes(runs: Sequence[RunSummary]) -> list[Document]:
    """What the programs tried to change outside of their runs, what cannot be undone first.

    What one line did to several paths of a folder is told once: a name may hold the time, another in each run.
    """
    paths: dict[tuple[str, Write], list[str]] = {}
    for run in runs:
        for write in run.outcome.writes:
            kind = replace(write, path=str(Path(write.path).parent))
            of_kind = paths.setdefault((run.program, kind), [])
            if write.path not in of_kind:
                of_kind.append(write.path)
    order = ("refused", "deleted", "written", "made")
    found = sorted(paths.items(), key=lambda item: (item[0][0] != "original", order.index(item[0][1].what)))
    return [
        {
            "program": program,
            "code": kind.code,
            "path": of_kind[0],
            "what": kind.what,
            "where": kind.where,
            "count": len(of_kind),
            "said": replace(kind, path=of_kind[0]).said(program, len(of_kind) - 1),
        }
        for (program, kind), of_kind in found
    ]


def _error(runs: Sequence[RunSummary]) -> Document | None:
    for run in runs:
        failure = run.outcome.failure
        if failure is not None:
            return {
                "run": run.role,
                "program": run.program,
                "task": str(failure.task),
                "kind": failure.kind,
                "message": failure.message,
                "tail": list(failure.tail),
            }
    return None


def _series(role: str, recording: Recording | None) -> list[Document]:
    """The losses of every trainer; `trainer` is its position, the same on both sides."""
    if recording is None:
        return []
    return [
        {
            "role": role,
            "program": recording.program,
            "task": task,
            "trainer": position,
            "steps": [step.number for step in recording.steps if step.task == task],
            "values": [step.loss for step in recording.steps if step.task == task],
        }
        for position, task in enumerate(measurements.trainers(recording))
    ]


def _floor_series(original: Recording | None, limits: Tolerance | None) -> list[Document]:
    if original is None or limits is None:
        return []
    series = []
    for position, task in enumerate(measurements.trainers(original)):
        steps = [step.number for step in original.steps if step.task == task]
        quantity = Quantity(LOSS, str(position))
        series.append(
            {
                "role": "floor",
                "program": "original",
                "task": task,
                "trainer": position,
                "steps": steps,
                "values": [limits.floors.get((quantity, step), math.nan) for step in steps],
            }
        )
    return series


def _variables(
    original: Recording | None, migrated: Recording | None, names: NameMap | None, limits: Tolerance | None
) -> list[Document]:
    """The name map, worst first: each variable with its worst ratio over gradient, slots and weights up to
    step 10.
    """
    if original is None or names is None:
        return []
    worst: dict[str, judging.Finding] = {}
    if migrated is not None and limits is not None:
        compared = l4_state.compare(original, migrated, names.to_original(), limits)
        for finding in compared.findings:
            name = finding.quantity.name
            if name not in worst or not finding.ratio <= worst[name].ratio:
                worst[name] = finding
    rows = []
    renamed = names.to_migrated()
    for variable in original.variables:
        found = worst.get(variable.name)
        rows.append(
            {
                "original": variable.name,
                "migrated": renamed.get(variable.name),
                "shape": list(variable.shape),
                "dtype": variable.dtype,
                "trainable": variable.trainable,
                "shards": variable.shards,
                "ratio": None if found is None else found.ratio,
                "max_abs": None if found is None or not math.isfinite(found.ratio) else found.outcome.absolute,
                "where": None if found is None else f"{found.quantity}, step {found.step}",
                "status": "not compared" if found is None else "outside" if found.outside else "inside",
            }
        )
    rows += [
        {
            "original": None,
            "migrated": name,
            "shape": [],
            "dtype": "",
            "trainable": True,
            "shards": 1,
            "ratio": None,
            "max_abs": None,
            "where": None,
            "status": "not compared",
        }
        for name in names.only_migrated
    ]
    return sorted(
        rows,
        key=lambda row: -(math.inf if row["ratio"] is None or math.isnan(row["ratio"]) else row["ratio"]),
    )


def _data(original: Recording | None, migrated: Recording | None, replayed: bool, random_order: bool) -> Document:
    tasks = []
    for recording in (original, migrated):
        if recording is None:
            continue
        for task in measurements.trainers(recording):
            sizes = [batch.size for batch in recording.batches if batch.task == task]
            digest = hashlib.sha256("".join(b.digest for b in recording.batches if b.task == task).encode())
            tasks.append(
                {
                    "program": recording.program,
                    "task": task,
                    "batches": len(sizes),
                    "examples": sum(sizes),
                    "batch_size": max(sizes, default=0),
                    "partial": sum(size < max(sizes) for size in sizes) if sizes else 0,
                    "sha256": digest.hexdigest(),
                }
            )
    return {
        "per_task": tasks,
        "replayed": replayed,
        "random_order": random_order,
        "initial_sha256": None if original is None else _initial_digest(original),
    }


def _initial_digest(recording: Recording) -> str:
    """One digest of all initial weights: runs of a program without a seed differ in it."""
    digest = hashlib.sha256()
    for name in sorted(recording.initial):
        digest.update(name.encode() + b"\0" + recording.initial[name].tobytes())
    return digest.hexdigest()


def _optimizer(original: Recording | None, migrated: Recording | None) -> list[Document]:
    if original is None or migrated is None:
        return []
    return [
        {"field": name, "original": a, "migrated": b, "same": same}
        for name, a, b, same in l0b_configuration.optimizer_fields(original, migrated)
    ]


def _metric_noise(
    original: Recording | None, replicates: Sequence[Recording], limits: Tolerance | None
) -> dict[tuple[str, int | None], float]:
    """By metric and step, how far apart two runs of one program may be in it: c times the worst replicate, where
    at least two replicates evaluated, or the only one. Of several evaluations at one step the first counts.
    """
    if original is None or limits is None:
        return {}

    def first(recording: Recording) -> dict[tuple[str, int | None], float]:
        found: dict[tuple[str, int | None], float] = {}
        for evaluation in recording.evaluations:
            for name, value in evaluation.results.items():
                found.setdefault((name, evaluation.step), value)
        return found

    others = [first(replicate) for replicate in replicates]
    noise = {}
    for key, value in first(original).items():
        gaps = [abs(other[key] - value) for other in others if key in other]
        if len(gaps) > 1 or (gaps and limits.replicates == 1):
            factor = OF_ONE if limits.replicates == 1 else 1.0
            noise[key] = limits.c[TRAJECTORY] * max(factor * max(gaps), EPS * abs(value))
    return noise


def _tolerance(limits: Tolerance | None) -> Document | None:
    if limits is None:
        return None
    return {
        "replicates": limits.replicates,
        "kappa": limits.kappa,
        "terms": limits.terms,
        "versions_differ": limits.versions_differ,
        "parts": [{"part": part, "c": limits.c[part], "held_out": list(limits.held_out[part])} for part in limits.c],
    }


def _limits_of_data(original: Recording) -> list[str]:
    lines = []
    if original.dropout_rates:
        other = "that they draw them anew at each step" if not original.anew else "that each has a mask of its own"
        lines.append(
            f"dropout: both programs dropped the same features of every example in training; {other} was not compared"
        )
    if len({batch.size for batch in original.batches}) == 1:
        lines.append("partial batches: every batch had the same size")
    last = max((step.number for step in original.steps), default=0)
    lines.append(f"later training: the comparison ends after {last} steps")
    return lines


def _not_shown(
    levels: Sequence[LevelResult],
    case: Mapping[str, Any],
    original: Recording | None,
    migrated: Recording | None,
    verdict: Verdict,
    mutants: Sequence[MutantOutcome],
    began_anew: Sequence[Path],
    artefacts: Sequence[Artefact],
) -> list[str]:
    """What a reader must not take from the verdict. Never empty: no run shows everything."""
    passed = {level.id for level in levels if level.status is Status.EQUIVALENT}
    lines = [*evidence.limits_of_levels(levels), *evidence.limits_of_mutants(mutants)]
    if verdict.status is Status.EQUIVALENT:
        ruled_out = [f"{level.id}: {level.excluded}" for level in levels if level.excluded]
        lines.append(
            f"errors smaller than those that the levels rule out ({'; '.join(ruled_out)})"
            if ruled_out
            else "errors too small for the control: only a learning rate 1% off was shown to stand out"
        )
    if case["parameter_servers"] and not passed & {"L5s", "L6"}:
        lines.append(
            f"distribution: numbers are compared on one trainer ({case['compared_cluster']} against "
            f"{case['compared_migrated_cluster']}); with several, updates arrive in a random order"
        )
    if original is not None and original.own_workers > 1:
        lines.append(
            f"distribution: of the {original.own_workers} workers in the program's own process the first took all "
            "steps; with several, updates arrive in a random order"
        )
    if original is not None and original.racing:
        lines.append(
            f"changes of {', '.join(original.racing)} before the gradients or learning rates that read them, as the "
            "original may run: it was run with those first"
        )
    if original is not None:
        lines += _limits_of_data(original)
    if case.get("data_sample") is not None:
        lines.append(f"data: no evaluation took more than {case['data_sample']} batches (--data-sample)")
    lines += [f"resuming from the checkpoint in {path}: both programs started from scratch" for path in began_anew]
    if "L7" not in passed:
        lines.append("evaluation metrics: not compared")
    others = max((one.other_trainings for one in (original, migrated) if one is not None), default=0)
    if others and not any(one.name.startswith("training of model") for one in artefacts):
        lines.append(
            f"other models: {counted(others, 'more training')} of the script; only its first model is compared"
        )
    if migrated is not None and migrated.stand_in is not None:
        lines.append("TPUs: none was used; their numbers, limits and speed differ from a CPU's")
    shown = {one.name.partition(",")[0] for one in artefacts if one.status == "same"}
    shown |= {one.name for one in artefacts if one.status == "missing"}  # the level names them
    wanted = ("predictions", "exported model", "what checkpoints hold", "numbers of summaries")
    left = [name for name in wanted if not any(one.startswith(name) for one in shown)]
    if left:
        lines.append(f"{', '.join(left)}: not compared")
    lines.append(
        "initial values: every compared run started from the original's; of the migrated program's own at most the "
        "distributions were compared"
    )
    return lines


def _headline(verdict: Verdict, grade: grades.Grade | None) -> str:
    """The verdict in plain words."""
    if verdict.status is Status.EQUIVALENT and grade is not None and grade.steps:
        return grades.headline(grade)
    return verdict.sentence


def stand_ins(original: Recording | None, migrated: Recording | None) -> list[Document]:
    """What was put in the place of a TPU, by program; empty where none was asked for."""
    found = []
    for recording in (original, migrated):
        if recording is None or recording.stand_in is None:
            continue
        asked, cores = recording.stand_in.stands_for, recording.stand_in.cores
        whose = "the original's" if recording.program == "original" else "the migrated program's"
        if asked == "TPUEstimator":
            said = f"{whose} {asked} ran with use_tpu=False: on one CPU, with the global batch"
        else:  # a TensorFlow 2 program that is an original has one, too
            cpus = "one virtual CPU" if cores == 1 else f"{cores} virtual CPUs"
            said = f"{whose} {asked} was a stand-in, a MirroredStrategy over {cpus}; no TPU was there"
        found.append({"program": recording.program, "stands_for": asked, "cores": cores, "said": said})
    return found


def command_words(case: Mapping[str, Any]) -> list[str]:
    """The command line that asks for this comparison."""
    words = list(case.get("command") or ("tf-migrate", "verify", str(case["original"]), str(case["migrated"])))
    if case["cluster"]:
        words += ["--cluster", case["cluster"]]
    if case["steps"] is not None:
        words += ["--steps", str(case["steps"])]
    words += map(str, case.get("options", ()))
    if case["report_dir"] is not None:
        words += ["--report", case["report_dir"]]
    if case["args"]:
        words += ["--", *case["args"]]
    return words


def _environment(versions: Sequence[Mapping[str, Any]]) -> Document:
    return {
        "os": platform.platform(),
        "cpus": os.cpu_count() or 1,
        "original": {key: versions[0].get(key) for key in ("python", "tensorflow", "keras")},
        "migrated": {key: versions[1].get(key) for key in ("python", "tensorflow", "keras")},
    }


def build(
    *,
    levels: Sequence[LevelResult],
    verdict: Verdict,
    case: Mapping[str, Any],
    environments: Sequence[Mapping[str, Any]],
    started: float,
    seconds: float,
    original: Recording | None,
    migrated: Recording | None,
    control: Recording | None,
    replicates: Sequence[Recording],
    names: NameMap | None,
    limits: Tolerance | None,
    runs: Sequence[RunSummary],
    replayed: bool,
    random_order: bool,
    free: Sequence[Recording] = (),
    mutants: Sequence[MutantOutcome] = (),
    randomness: Sequence[Randomness] = (),
    remedy: Remedy | None = None,
    asynchronous: AsyncEvidence | None = None,
    seeds: Sequence[int] = (),
    evaluations: Sequence[EvaluationRow] = (),
    began_anew: Sequence[Path] = (),
    grade: grades.Grade | None = None,
    artefacts: Sequence[Artefact] = (),
) -> Report:
    """The document from what a session found.

    `case` holds the paths, cluster shapes and limits of the comparison, and under "options" further words of the
    command line that asked for it. `began_anew` are folders with checkpoints that the programs did not go on from.
    `seeds` are the numbers of the paired seeds of L6. The lines that divergences
    name are read from the users' files here.
    """
    from migrator import __version__

    first = verdict.divergence
    return Report(
        plain(
            {
                "schema_version": SCHEMA_VERSION,
                "tool": {"name": "tf-migrate", "version": __version__},
                "run_id": uuid.uuid4().hex,
                "started": datetime.datetime.fromtimestamp(started, datetime.timezone.utc).isoformat(),
                "duration_s": seconds,
                "verdict": verdict.status.value,
                "reason": None if verdict.reason is None else verdict.reason.value,
                "headline": _headline(verdict, grade),
                "summary": verdict.sentence,
                "grade": None if grade is None else {"said": grades.line(grade), **asdict(grade)},
                "decided_by": verdict.level,
                "command": shlex.join(command_words(case)),
                "inputs": {
                    "original": _input(case["original"]),
                    "migrated": _input(case["migrated"]),
                    "args": case["args"],
                    "steps": case["steps"],
                },
                "environment": _environment(environments),
                "stand_in": stand_ins(original, migrated),
                "cluster": {
                    "original": case["cluster"],
                    "migrated": case["migrated_cluster"],
                    "compared_original": case["compared_cluster"],
                    "compared_migrated": case["compared_migrated_cluster"],
                },
                "levels": [evidence.level(level) for level in levels],
                "first_divergence": None if first is None else {"level": verdict.level, **evidence.divergence(first)},
                "variables": _variables(original, migrated if limits else None, names, limits),
                "name_map": None if names is None else names.how,
                "optimizer": _optimizer(original, migrated),
                "data": _data(original, migrated, replayed, random_order),
                "series": [
                    *_series("original", original),
                    *_series("migrated", migrated),
                    *_series("control", control),
                    *_floor_series(original, limits),
                ],
                "participation": [
                    {"program": recording.program, "steps": recording.participation} for recording in free
                ],
                "tolerance": _tolerance(limits),
                "mutants": evidence.mutants(mutants),
                "randomness": evidence.randomness(randomness),
                "remedy": evidence.remedy(remedy),
                "asynchronous": evidence.asynchronous(asynchronous),
                "seeds": list(seeds),
                "evaluations": evidence.evaluations(evaluations, _metric_noise(original, replicates, limits)),
                "artefacts": [asdict(one) for one in artefacts],
                "baseline": None,
                "not_shown": [
                    *_not_shown(levels, case, original, migrated, verdict, mutants, began_anew, artefacts),
                    *(() if grade is None else grades.never_ran(grade)),
                ],
                "processes": _processes(runs),
                "runs": [
                    {
                        "role": run.role,
                        "program": run.program,
                        "seconds": run.outcome.seconds,
                        "failed": run.outcome.failure is not None,
                    }
                    for run in runs
                ],
                "error": _error(runs),
                "writes": _writes(runs),
            }
        )
    )
