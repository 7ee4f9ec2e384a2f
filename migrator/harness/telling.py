"""From everything that a session found to the report: verdict, remedy, what was done about randomness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from migrator.harness import budget
from migrator.harness.case import Case, asynchronous, one_trainer, parameter_servers
from migrator.harness.gathered import Findings
from migrator.harness.protocol import grade, l2_data, l7_evaluation, remedies, verdict
from migrator.harness.protocol.results import LevelResult, Randomness, Reason, Remedy, Status
from migrator.harness.report.document import Report, RunSummary, build, command_words
from migrator.harness.report.evidence import EvaluationRow
from migrator.harness.runs import began_anew, migrated_shape, recording_of


def required_levels(case: Case) -> tuple[str, ...]:
    """The levels that an equivalent verdict cannot do without."""
    several = asynchronous(case.shape)
    return (*verdict.REQUIRED, *(("L5s",) if several else ()), *(("L6",) if several and case.seeds else ()))


def randomness(findings: Findings) -> tuple[Randomness, ...]:
    """What was done about each source of randomness, so that what is left is the programs' own difference."""
    original, migrated = findings.original.main.recording, findings.migrated.shown
    if original is None:
        return ()
    rows = [
        Randomness(
            "initial values",
            "pinned",
            "every compared run starts from the original's; the distributions of both programs' own are compared by L1",
        )
    ]
    if findings.original.random_order:
        how = "two runs of the original read it in another order"
        level = findings.level(l2_data.ID)
        if findings.migrated.replayed:
            treatment = "replayed"
        elif level is not None and level.status is Status.EQUIVALENT:
            # Of the compared runs: see runs.GENERATORS.
            treatment = "pinned"
            how += "; from the same seeds of Python's, NumPy's and the datasets' numbers both programs read the same"
        else:
            treatment = "free"
        rows.append(Randomness("order of the data", treatment, how))
    else:
        rows.append(Randomness("order of the data", "none", "two runs of the original read the same batches"))
    if original.dropout_rates or (migrated is not None and migrated.dropout_rates):
        rows.append(
            Randomness(
                "dropout",
                "pinned",
                "the same features are dropped in all examples of both programs; rates and places are compared by L0b",
            )
        )
    if asynchronous(findings.case.shape):
        rows.append(
            Randomness(
                "order of the trainers' steps",
                "pinned",
                "L3 to L5 on one trainer, L5s on all of them one after another; free only in L0 and L6",
            )
        )
    exact = findings.original.exact
    if exact is not None:
        rows.append(
            Randomness("the original itself", "free", "run twice with nothing moved, to see if it repeats itself")
        )
    return tuple(rows)


def report_of(findings: Findings, versions: Sequence[Mapping[str, Any]], started: float, seconds: float) -> Report:
    """The report on what was found; `versions` describe the two interpreters, times are in seconds."""
    case, original, migrated = findings.case, findings.original, findings.migrated
    required = required_levels(case)
    levels = verdict.complete(findings.levels, required)
    judged = _graded(findings, levels)
    decided = _with_requirements(verdict.decide(levels, required), judged, case)
    described = _described(case)
    return build(
        levels=levels,
        verdict=decided,
        case=described,
        environments=versions,
        started=started,
        seconds=seconds,
        original=original.main.recording,
        migrated=migrated.shown,
        control=recording_of(migrated.control),
        replicates=tuple(original.replicate_recordings),
        names=migrated.names,
        limits=findings.limits,
        runs=tuple(RunSummary(run.role, run.program, run.outcome) for run in findings.runs),
        began_anew=began_anew(findings.runs),
        replayed=migrated.replayed,
        random_order=original.random_order,
        free=tuple(
            run.recording for run in (original.free, migrated.free) if run is not None and run.recording is not None
        ),
        mutants=findings.mutants,
        randomness=randomness(findings),
        remedy=_remedy(findings, decided, levels, described),
        asynchronous=findings.asynchronous,
        seeds=tuple(range(1, case.seeds + 1)),
        evaluations=tuple(map(_evaluation_row, findings.evaluations)),
        grade=judged,
        artefacts=findings.artefacts,
    )


def _graded(findings: Findings, levels: Sequence[LevelResult]) -> grade.Grade:
    """How strong the verdict of these levels is."""
    case, original = findings.case, findings.original.main.recording
    compared = recording_of(findings.migrated.compared)
    in_order = any(level.id == "L5s" and level.status is Status.EQUIVALENT for level in levels)
    together = original is not None and len(original.participation) > 1
    trainers = len(case.shape.trainers()) if in_order or together else 1
    whole = original, recording_of(findings.migrated.main)
    return grade.grade(levels, findings.artefacts, original, compared, trainers, whole, _spared(findings))


def _spared(findings: Findings) -> str:
    """What a comparison of many weights does without, in words."""
    if findings.case.room.whole:
        return ""
    count = len(findings.original.replicates)
    noise = f"noise of {count} replicate{'' if count == 1 else 's'}"
    return f"many weights: {noise}, weights compared after the first step, the last and single ones"


def _with_requirements(decided: verdict.Verdict, judged: grade.Grade, case: Case) -> verdict.Verdict:
    """The verdict, which is no EQUIVALENT where the user requires more than was shown."""
    lacking = grade.lacking(judged, grade.checked(case.required, verdict.ORDER))
    if decided.status is not Status.EQUIVALENT or not lacking:
        return decided
    sentence = f"what was compared agrees, and what is required was not shown: {', '.join(lacking)}"
    return verdict.Verdict(Status.INCONCLUSIVE, sentence, None, Reason.REQUIRED_MISSING)


def _remedy(
    findings: Findings, decided: verdict.Verdict, levels: Sequence[LevelResult], described: Mapping[str, Any]
) -> Remedy | None:
    level = next((one for one in levels if one.id == decided.level), None)
    if decided.reason is Reason.REQUIRED_MISSING:
        level = LevelResult("--require", "", decided.status, decided.sentence, decided.reason)
    if decided.status not in (Status.INCONCLUSIVE, Status.FAILED) or level is None:
        return None
    original = findings.original.main.recording
    failed = findings.original.failed_run or findings.migrated.failed
    cause = None if failed is None else failed.outcome.failure
    context = remedies.Context(
        command_words(described),
        levels,
        steps=None if original is None else budget.total_steps(original),
        seeds=findings.case.seeds or None,
        timeout=findings.case.total_timeout,
        stall_timeout=findings.case.stall_timeout,
        failure="" if cause is None else cause.kind,
        asynchronous=findings.asynchronous,
    )
    return remedies.remedy(level, context)


def _evaluation_row(row: l7_evaluation.MetricRow) -> EvaluationRow:
    status = {"same": "inside", "different": "outside"}.get(row.status, "not compared")
    return EvaluationRow(
        row.metric,
        row.original,
        row.same_weights,
        row.own_weights,
        row.same_ratio,
        status,
        step=row.step,
        own_ratio=row.own_ratio,
    )


def _described(case: Case) -> dict[str, Any]:
    compared = one_trainer(case.shape)
    return {
        "original": case.original,
        "migrated": case.migrated,
        "args": list(case.args),
        "cluster": str(case.shape),
        "migrated_cluster": str(migrated_shape(case, case.shape)),
        "compared_cluster": str(compared),
        "compared_migrated_cluster": str(migrated_shape(case, compared)),
        "parameter_servers": parameter_servers(case.shape),
        "steps": case.steps,
        "data_sample": case.data_sample,
        "report_dir": None if case.report_dir is None else str(case.report_dir),
        "options": list(case.options),
        "command": list(case.command),
    }
