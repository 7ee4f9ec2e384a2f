"""Runs both programs and judges them: the original once and in replicates, the migrated one on its weights
and data.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from migrator.harness import compiling, exports, kept, points, resuming
from migrator.harness.case import (
    Case,
    CaseError,
    asynchronous,
    check,
    counterpart,
    make_case,
    one_trainer,
    parameter_servers,
    training_tasks,
)
from migrator.harness.cluster import ForkServerError
from migrator.harness.gathered import Findings
from migrator.harness.migrated import MigratedEvidence, probe, run_in_order, run_migrated, shown_by
from migrator.harness.mutants import BY_ID, MUTANTS, Family
from migrator.harness.mutants.bench import try_mutants
from migrator.harness.mutants.killing import MISSED
from migrator.harness.original import (
    OriginalEvidence,
    collect_original,
    evaluates,
    known,
    record_main,
    record_original,
    with_exact_repeat,
    with_order,
    with_repeat,
    with_replicates,
)
from migrator.harness.protocol import (
    l0_runs,
    l0b_configuration,
    l2_data,
    l6_asynchronous,
    l7_evaluation,
    l8_artefacts,
    ladder,
    name_map,
    origins,
    tolerance,
    verdict,
)
from migrator.harness.protocol.results import Artefact, LevelResult, MutantOutcome, Reason, Status, counted
from migrator.harness.recording import Recording
from migrator.harness.report.document import Report
from migrator.harness.runs import (
    OnProgress,
    Progress,
    Run,
    Session,
    one_interpreter,
    open_session,
    recording_of,
)
from migrator.harness.seeds import run_seeds
from migrator.harness.telling import report_of, required_levels


def failure(run: Run) -> LevelResult:
    """L0 for a run that left nothing to compare."""
    message = run.complaint or "it left no recording"
    cause = run.outcome.failure
    if run.role not in ("original", "migrated"):
        message = f"{message} (run: {run.role})"
    if run.unrecorded:
        return l0_runs.unrecorded(run.program, message)
    if cause is not None and cause.kind == "timeout":
        return l0_runs.timed_out(run.program, message, cause.tail)
    return l0_runs.failed(run.program, message, () if cause is None else cause.tail)


def _failed(findings: Findings, run: Run) -> Findings:
    return replace(findings, levels=(failure(run),))


# -- stages --------------------------------------------------------------------------------------------------


def _run_beside(
    session: Session,
    case: Case,
    progress: OnProgress,
    evidence: OriginalEvidence,
    first: Run | None,
    versions_differ: bool,
) -> tuple[MigratedEvidence, OriginalEvidence, bool, points.Ahead | None]:
    """Runs the migrated program against the evidence; beside it, if local, the first replicate, where that was not made
    yet, and beside its known-bad versions the others, or the original's single steps. The flag says whether one
    replicate is enough as far as the two programs go.
    """
    stop = threading.Event()
    begun: list[Future[OriginalEvidence]] = []
    single: list[Future[points.Ahead | None]] = []
    enough: list[bool] = []
    # Two clusters at once would only get in each other's way, and a server makes one run at a time; two local programs
    # in two interpreters have a core each, and their weights have to fit into memory.
    beside = not case.shape.counts and not one_interpreter(case) and case.room.whole
    with ThreadPoolExecutor(1) as pool:
        repeated: Callable[[], OriginalEvidence] | None = None
        if evidence.repeat is None and beside:
            begun.append(pool.submit(with_repeat, session, case, evidence, progress))
            repeated = begun[0].result
        elif evidence.repeat is None:
            evidence = with_repeat(session, case, evidence, progress)
            if evidence.failed_run is not None:
                return MigratedEvidence(probe=first), evidence, False, None

        def begin(found: MigratedEvidence) -> None:
            known_now = begun[0].result() if begun else evidence
            enough.append(_one_is_enough(case, known_now, found, versions_differ))
            if beside:
                count = 1 if enough[0] else tolerance.REPLICATES
                begun.append(pool.submit(with_replicates, session, case, known_now, progress, stop, count))
            if beside and enough[0] and not (_differ_without_numbers(found.levels) or case.brief or case.both_original):
                # The original's interpreter has nothing else to do, and these will probably be asked for.
                single.append(pool.submit(points.ahead, session, case, known_now, found))

        try:
            found = run_migrated(session, case, progress, evidence, first, begin, repeated)
        except BaseException as error:
            stop.set()
            # Leaving the block waits for the thread, which waits for a training. An interrupted user does not.
            if isinstance(error, KeyboardInterrupt):
                session.original.close()
            raise
        steps = single[-1].result() if single else None
        return found, begun[-1].result() if begun else evidence, any(enough), steps


def _one_is_enough(case: Case, evidence: OriginalEvidence, found: MigratedEvidence, versions_differ: bool) -> bool:
    """Whether more replicates could not change what is said of the two programs."""
    # Mistakes that are tried are judged by the spread: those inside it are none that the workload could show.
    if case.all_mutants:
        return False
    return _differ_without_numbers(found.levels) or _agree_strictly(case, evidence, found, versions_differ)


def _differ_without_numbers(levels: Sequence[LevelResult]) -> bool:
    """Whether settings, variables or data differ (L0b to L2): numbers are compared to show what comes of it."""
    return any(level.status is Status.DIFFERENT for level in levels)


def _agree_strictly(case: Case, evidence: OriginalEvidence, found: MigratedEvidence, versions_differ: bool) -> bool:
    """Whether the two trainings, step by step, and their evaluations are no further apart than one rounding takes any
    number. How far many roundings take the original apart cannot change what is said of them then.
    """
    original, migrated, names = evidence.main.recording, recording_of(found.compared), found.names
    if original is None or migrated is None or names is None:
        return False
    if _not_comparable(original, migrated, names, whole=True) is not None:
        return False
    strict = tolerance.derive(original, (), versions_differ=versions_differ, added=found.terms.weights.added)
    if not ladder.agree_strictly(original, migrated, names, strict, turns=False):
        return False
    pair = _evaluated(case, evidence, found)
    return pair is None or not evaluates(case) or l7_evaluation.agrees_strictly(*pair, strict)


def _not_comparable(original: Recording, other: Recording, names: name_map.NameMap, whole: bool) -> str | None:
    """Why a run does not stand on the original's weights and batches, although it was asked to."""
    same = l2_data.same_sequences if whole else l2_data.same_beginning
    if not same(original, other):
        return "the migrated program did not train on the original's batches although they were replayed to it"
    rename = names.to_original()
    loaded = {rename.get(name, name): value for name, value in other.initial.items()}
    model = set(names.to_migrated())  # a hook may have variables too, which no Keras program has
    for name, value in original.initial.items():
        if name in model and (name not in loaded or not np.array_equal(loaded[name], value)):
            return f"the migrated program did not start from the original's value of {name}"
    return None


def _with_numbers(
    session: Session,
    findings: Findings,
    progress: OnProgress,
    versions_differ: bool,
    one_may_do: bool,
    ahead: points.Ahead | None = None,
) -> Findings:
    """L3 to L5, with as many replicates as they need, and L4b, of which the original's runs may be made already. For
    many weights one replicate may do in any case.
    """
    case, base = findings.case, findings
    decided = one_may_do and _differ_without_numbers(base.levels)
    for count in (1, tolerance.REPLICATES) if one_may_do or not case.room.whole else (tolerance.REPLICATES,):
        evidence = with_replicates(session, case, findings.original, progress, count=count)
        if evidence.failed_run is not None:
            return _failed(replace(base, original=evidence), evidence.failed_run)
        findings = _judged(replace(base, original=evidence), versions_differ)
        levels = findings.levels[len(base.levels) :]
        agreed = _shown(findings, levels) and (one_may_do or _far_inside(levels))
        if len(evidence.replicates) > 1 or decided or agreed:
            break
    if not findings.settled and not case.both_original and not _spoiled(findings):
        findings = _with_single_steps(session, findings, versions_differ, ahead)
    return _with_cause_of_noise(session, findings)


def _spoiled(findings: Findings) -> bool:
    level = findings.level("L3")
    return level is not None and level.reason is Reason.DATA_NOT_REPLAYABLE


def _shown(findings: Findings, levels: Sequence[LevelResult]) -> bool:
    """Whether all numbers agree and each known-bad version of the migrated program was seen in them."""
    agreed = all(level.status is Status.EQUIVALENT for level in levels)
    return agreed and all(one.status != MISSED or BY_ID[one.id].family is Family.DATA for one in findings.mutants)


def _far_inside(levels: Sequence[LevelResult]) -> bool:
    """Whether floors half as great, which is what further replicates may show, would change nothing."""
    return all(level.ratio is None or level.ratio <= tolerance.MINIMUM_C / tolerance.OF_ONE for level in levels)


def _limits(evidence: OriginalEvidence, found: MigratedEvidence, versions_differ: bool) -> tolerance.Tolerance:
    original = evidence.main.recording
    assert original is not None
    return tolerance.derive(
        original,
        evidence.replicate_recordings,
        versions_differ=versions_differ,
        limited=evidence.limited,
        added=found.terms.weights.added,
    )


def _judged(findings: Findings, versions_differ: bool) -> Findings:
    """L3 to L5, from recordings that are all there."""
    evidence, found = findings.original, findings.migrated
    original = evidence.main.recording
    assert original is not None and found.names is not None
    assert found.compared is not None and found.compared.recording is not None
    limits = _limits(evidence, found, versions_differ)
    findings = replace(findings, limits=limits)
    migrated, control = found.compared.recording, recording_of(found.control)
    problem = _not_comparable(original, migrated, found.names, whole=True)
    if problem is not None:
        # Judged by L3, whose question it spoils; L4 and L5 follow from it.
        level = LevelResult("L3", verdict.TITLES["L3"], Status.INCONCLUSIVE, problem, Reason.DATA_NOT_REPLAYABLE)
        return replace(findings, levels=(*findings.levels, level))
    if control is not None and _not_comparable(original, control, found.names, whole=False) is not None:
        control = None
    bad = found.sentinel_recordings
    levels = ladder.numbers(original, migrated, control, bad, found.names, limits)
    outcomes = ladder.sentinels(original, migrated, control, bad, found.names, limits, findings.level("L2"))
    return replace(findings, levels=(*findings.levels, *levels), mutants=outcomes)


def _with_single_steps(
    session: Session, findings: Findings, versions_differ: bool, ahead: points.Ahead | None
) -> Findings:
    """L4b; where it agrees, noise that grew in the training leaves nothing open."""
    evidence, found = findings.original, findings.migrated
    level, runs = points.judge(session, findings.case, evidence, found, versions_differ=versions_differ, made=ahead)
    levels = findings.levels
    if level.status is Status.EQUIVALENT:
        levels = tuple(_by_single_steps(one) if one.id in ("L4", "L5") else one for one in levels)
    place = next((n for n, one in enumerate(levels) if one.id == "L5"), len(levels))
    levels = (*levels[:place], level, *levels[place:])
    # What could not be tried decides nothing, and is no failure of the programs.
    ran = tuple(run for run in runs if run.outcome.failure is None)
    return replace(findings, levels=levels, extra_runs=(*findings.extra_runs, *ran))


def _by_single_steps(level: LevelResult) -> LevelResult:
    """A level that noise left open, decided by single steps that agree."""
    if level.status is not Status.INCONCLUSIVE:
        return level
    if level.reason not in (Reason.ENVIRONMENT_UNSTABLE, Reason.CONTROL_NOT_DETECTED):
        return level
    note = f"{level.summary}; the single steps of L4b decide"
    summary = "nothing differs beyond the noise of the training; single steps agree (L4b)"
    return replace(level, status=Status.EQUIVALENT, reason=None, summary=summary, notes=(*level.notes, note))


def _with_cause_of_noise(session: Session, findings: Findings) -> Findings:
    """If the noise hides everything: looks whether the original repeats itself at all, and says so."""
    suspects = (Reason.ENVIRONMENT_UNSTABLE, Reason.CONTROL_NOT_DETECTED)
    noisy = [level for level in findings.levels if level.id in ("L3", "L4", "L5") and level.reason in suspects]
    if not noisy or findings.settled:
        return findings
    evidence = with_exact_repeat(session, findings.case, findings.original)
    findings = replace(findings, original=evidence)
    main = evidence.main.recording
    exact = recording_of(evidence.exact)
    if main is None or exact is None:
        return findings
    where = tolerance.unrepeated(main, exact)
    if where is None:
        return findings
    level = replace(
        noisy[0],
        status=Status.INCONCLUSIVE,
        reason=Reason.NONDETERMINISTIC_ORIGINAL,
        summary=f"the original does not repeat itself from the same weights on the same batches: {where}",
    )
    return replace(findings, levels=tuple(level if one.id == level.id else one for one in findings.levels))


def _with_order(session: Session, findings: Findings, progress: OnProgress, versions_differ: bool) -> Findings:
    """L5s: the whole asynchronous cluster with its trainers in a fixed order."""
    case, found = findings.case, findings.migrated
    levels, level = findings.levels, None
    for count in (1, tolerance.REPLICATES):
        evidence = with_order(session, case, findings.original, progress, count)
        findings = replace(findings, original=evidence)
        failed = next((run for run in evidence.in_order if run.failed), None)
        if failed is not None:
            return replace(findings, levels=(*levels, ladder.not_in_order(failed.complaint)))
        if found.in_order is None:
            found = run_in_order(session, case, progress, evidence, found)
            findings = replace(findings, migrated=found)
        assert found.in_order is not None and found.names is not None
        original, *replicates = [run.recording for run in evidence.in_order if run.recording is not None]
        migrated, control = found.in_order.recording, recording_of(found.in_order_control)
        if migrated is None:
            return replace(findings, levels=(*levels, ladder.not_in_order(found.in_order.complaint)))
        level = ladder.in_order(
            original,
            replicates,
            migrated,
            control,
            found.names,
            versions_differ=versions_differ,
            limited=evidence.limited,
        )
        findings = replace(findings, levels=(*levels, level))
        strict = tolerance.derive(original, (), versions_differ=versions_differ)
        if len(replicates) > 1 or (
            level.status is Status.EQUIVALENT
            and ladder.agree_strictly(original, migrated, found.names, strict, turns=True)
        ):
            break
    return findings


def _evaluated(case: Case, evidence: OriginalEvidence, found: MigratedEvidence) -> tuple[Recording, Recording] | None:
    """The recordings of the runs in which evaluation was looked at; None where one of them is not there."""
    local = evaluates(case)
    runs = (evidence.main, found.main) if local else (evidence.free, found.free)
    ours, theirs = map(recording_of, runs)
    if ours is None or theirs is None:
        return None
    if local and found.replayed and found.compared is not None and found.compared.recording is not None:
        # Left to itself the migrated program read its data in another order: its training is another one.
        theirs = l7_evaluation.with_training_of(theirs, found.compared.recording)
    return ours, theirs


def _with_all_replicates(session: Session, findings: Findings, progress: OnProgress, versions_differ: bool) -> Findings:
    """The noise of all replicates, where that of one is not enough; the findings have failed if one of them did."""
    evidence = with_replicates(session, findings.case, findings.original, progress)
    if evidence.failed_run is not None:
        return _failed(replace(findings, original=evidence), evidence.failed_run)
    return replace(findings, original=evidence, limits=_limits(evidence, findings.migrated, versions_differ))


def _with_evaluation(session: Session, findings: Findings, progress: OnProgress, versions_differ: bool) -> Findings:
    """L7, from the runs in which evaluation was looked at."""
    judged = _evaluation_judged(findings)
    level = judged.level(l7_evaluation.ID)
    if level is None or level.status is not Status.DIFFERENT or len(findings.original.replicates) != 1:
        return judged
    findings = _with_all_replicates(session, findings, progress, versions_differ)
    return findings if findings.original.failed_run is not None else _evaluation_judged(findings)


def _evaluation_judged(findings: Findings) -> Findings:
    pair = _evaluated(findings.case, findings.original, findings.migrated)
    if pair is None or findings.limits is None:
        return findings
    if findings.case.both_original:
        summary = "an original cannot be given the weights of another run to evaluate"
        level = LevelResult(l7_evaluation.ID, l7_evaluation.TITLE, Status.NOT_APPLICABLE, summary)
        return replace(findings, levels=(*findings.levels, level))
    # In a free cluster the two trainings part by chance, and no replicate says how far.
    replicates = findings.original.replicate_recordings if evaluates(findings.case) else []
    level = l7_evaluation.judge(*pair, findings.limits, replicates=replicates)
    rows = l7_evaluation.rows(*pair, findings.limits, replicates=replicates) if pair[0].evaluations else ()
    return replace(findings, levels=(*findings.levels, level), evaluations=rows)


def _with_artefacts(session: Session, findings: Findings, progress: OnProgress, versions_differ: bool) -> Findings:
    """L8, from the runs in which evaluation was looked at."""
    evidence, found = findings.original, findings.migrated
    local = evaluates(findings.case)
    runs = (evidence.main, found.main) if local else (evidence.free, found.free)
    ours, theirs = map(recording_of, runs)
    if ours is None or theirs is None or findings.limits is None or findings.case.both_original:
        return findings
    served = None
    if ours.exports and theirs.exports and found.names is not None and evidence.initial is not None:
        assert runs[0] is not None and runs[1] is not None
        served = exports.ask(session, findings.case, runs[0], runs[1], found.names, evidence.initial)
    judged = l8_artefacts.judge(ours, theirs, findings.limits, served)
    if judged.level.status is Status.DIFFERENT and len(evidence.replicates) == 1:
        # c may be greater than it was taken for.
        findings = _with_all_replicates(session, findings, progress, versions_differ)
        evidence = findings.original
        if evidence.failed_run is not None:
            return findings
        assert findings.limits is not None
        judged = l8_artefacts.judge(ours, theirs, findings.limits, served)
    level, artefacts = judged.level, judged.artefacts
    resumed, more = resuming.judge(session, findings.case, evidence, found)
    if resumed:
        level, artefacts = l8_artefacts.with_further(level, resumed), (*artefacts, *resumed)
    extra = (*findings.extra_runs, *(run for run in more if run.outcome.failure is None and not run.failed))
    return replace(findings, levels=(*findings.levels, level), artefacts=artefacts, extra_runs=extra)


def _with_compiled(session: Session, findings: Findings) -> Findings:
    """L9, of a migrated program that asks for a TPU."""
    main = findings.migrated.main
    level = None if main is None else compiling.judge(session, findings.case, main)
    return findings if level is None else replace(findings, levels=(*findings.levels, level))


#: Models of one script that are compared with all that belongs to it, the first among them, unless all artefacts are
#: wanted: each takes as long as a verification. The others are, where they agree strictly in one run of each program.
_WHOLE_MODELS = 2
#: Models that are compared at all, unless all artefacts are wanted.
_MODELS = 12


def _with_other_models(session: Session, findings: Findings, progress: OnProgress) -> Findings:
    """The other models that both scripts train, compared one after another as the first one was; part of L8."""
    case, main = findings.case, findings.original.main.recording
    if case.training or case.both_original or main is None or not main.other_trainings:
        return findings
    made: list[Artefact] = []
    runs: tuple[Run, ...] = ()
    known_names = {} if findings.migrated.names is None else {0: findings.migrated.names}
    count = main.other_trainings + 1
    whole = resuming.asked_for(case)
    most = count if whole else min(count, _MODELS)
    compared = 1
    for place in range(1, most):
        other, agreed = _compared_model(session, findings, place, progress, brief=place >= _WHOLE_MODELS and not whole)
        runs += other.runs
        recorded = other.original.main.recording
        if recorded is None or recorded.training != place:
            break  # the same models were trained again, or in a way of which only the first is recorded
        compared = place + 1
        made.append(agreed or _other_model(place, other, findings, count))
        shown, names = other.migrated.shown, other.migrated.names
        if shown is not None and shown.training == place and names is not None:
            begun = origins.judge(place, recorded, shown, names, known_names)
            made += [] if begun is None else [begun]
            known_names[place] = names
        if any(one.status == l8_artefacts.DIFFERENT for one in made):
            break  # one that differs decides; to compare each of many others takes a verification
    if compared < count and not any(one.status == l8_artefacts.DIFFERENT for one in made):
        made.append(l8_artefacts.more_models(compared, count))
    level = l8_artefacts.with_further(findings.level(l8_artefacts.ID), made)
    levels = (*(one for one in findings.levels if one.id != l8_artefacts.ID), level)
    artefacts = tuple(one for one in findings.artefacts if one.name != l8_artefacts.OTHER_MODELS)
    return replace(findings, levels=levels, artefacts=(*artefacts, *made), extra_runs=(*findings.extra_runs, *runs))


def _compared_model(
    session: Session, first: Findings, place: int, progress: OnProgress, *, brief: bool
) -> tuple[Findings, Artefact | None]:
    """The comparison of a later model, and what is said of it where one run of each program was enough for that."""
    case = replace(first.case, training=place, first_batches=(None, None))
    if brief:
        found = _briefly(session, replace(case, brief=True), first, progress)
        if _agree_in_brief(found):
            said = "every number within one rounding, in one run of each program"
            return found, Artefact(l8_artefacts.model(place), l8_artefacts.SAME, said)
    return _compared(case, progress, session, None), None


def _versions_differ(session: Session, case: Case) -> bool:
    """Whether sums may add their terms in another order: in other releases, or on another number of replicas."""
    releases = [session.describe(case, program)["tensorflow"] for program in ("original", "migrated")]
    return case.devices != case.original_devices or releases[0] != releases[1]


def _briefly(session: Session, case: Case, first: Findings, progress: OnProgress) -> Findings:
    """One run of each program for a later model, and the levels that it shows; none where that was not enough."""
    with ThreadPoolExecutor(1) as pool:
        later = None if case.shape.counts or one_interpreter(case) else pool.submit(probe, session, case)
        # Whether its data come in a random order takes a second run to see, unless those of the first model did not.
        evidence = record_original(session, case, progress, repeat=first.original.random_order)
        probed = None if later is None else later.result()
    findings = Findings(case, evidence, MigratedEvidence(probe=probed))
    if evidence.failed_run is not None or evidence.main.recording is None:
        return findings
    case = known(case, evidence.main)
    found = run_migrated(session, case, progress, evidence, probed)
    findings = replace(findings, case=shown_by(case, found.main), migrated=found)
    if found.failed is not None or found.compared is None:
        return findings
    if any(level.status not in (Status.EQUIVALENT, Status.NOT_APPLICABLE) for level in found.levels):
        return findings
    differ = _versions_differ(session, case)
    pair = _evaluated(case, evidence, found)
    if pair is None or not _agree_strictly(case, evidence, found, differ):
        return findings
    strict = tolerance.derive(evidence.main.recording, (), versions_differ=differ, added=found.terms.weights.added)
    return replace(findings, levels=(*found.levels, l8_artefacts.judge(*pair, strict).level))


def _agree_in_brief(findings: Findings) -> bool:
    allowed = (Status.EQUIVALENT, Status.NOT_APPLICABLE, Status.NOT_EXERCISED)
    return bool(findings.levels) and all(level.status in allowed for level in findings.levels)


def _other_model(place: int, findings: Findings, first: Findings, count: int) -> Artefact:
    """What the comparison of a later model has come to; `count` are those that the original trains."""
    name = l8_artefacts.model(place)
    required = required_levels(findings.case)
    decided = verdict.decide(verdict.complete(findings.levels, required), required)
    migrated = findings.migrated.shown
    shown = migrated or recording_of(first.migrated.main)
    if migrated is None or migrated.training != place:
        if shown is not None and (shown.loops_apart or not shown.loop) and shown.other_trainings < place:
            trained = counted(shown.other_trainings + 1, "model")
            said = f"the original trains {count} models, and the migrated program {trained}"
            return Artefact(name, l8_artefacts.DIFFERENT, said)
        if migrated is not None:
            said = "the migrated program trains no such model, or in a way of which only the first is recorded"
            return Artefact(name, l8_artefacts.MISSING, said)
    status = {Status.EQUIVALENT: l8_artefacts.SAME, Status.DIFFERENT: l8_artefacts.DIFFERENT}
    return Artefact(name, status.get(decided.status, l8_artefacts.NOT_COMPARED), decided.sentence)


def _with_seeds(session: Session, findings: Findings, progress: OnProgress) -> Findings:
    """L6: paired seeds of the free asynchronous cluster."""
    case, found = findings.case, findings.migrated
    original = findings.original.main.recording
    assert original is not None and found.names is not None
    names = found.names
    made = run_seeds(session, case, progress, original.initial, lambda drawn: found.terms.initial(drawn, names))
    findings = replace(findings, extra_runs=(*findings.extra_runs, *made.runs))
    if made.failed is not None:
        return _failed(findings, made.failed)
    level, shown = l6_asynchronous.judge(made.seeds, made.participation, case.promised)
    return replace(findings, levels=(*findings.levels, level), asynchronous=shown)


def _not_among(sentinels: Sequence[MutantOutcome], tried: Sequence[MutantOutcome]) -> list[MutantOutcome]:
    ids = {outcome.id for outcome in tried}
    return [outcome for outcome in sentinels if outcome.id not in ids]


def _not_asked_for() -> LevelResult:
    return LevelResult(
        "L6",
        verdict.TITLES["L6"],
        Status.NOT_EXERCISED,
        "not asked for: --full compares paired seeds of the free-running cluster; L1 to L5 were judged on a "
        "cluster with one trainer, L5s on several in a fixed order",
        Reason.NOT_EXERCISED,
    )


# -- the whole -----------------------------------------------------------------------------------------------


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
        with open_session(keras=case.keras) as opened:
            return verify(case, progress, session=opened)
    started = time.time()
    clock = time.monotonic()
    key = kept.key_of(case, session) if case.kept and evidence is None else None
    before = None if key is None else kept.description(key)
    server = session.server(case, "original")
    # Of a cluster what was kept may be all that is needed: the interpreter starts where it is not. Single steps of one
    # process (L4b) are taken from states that the comparison chooses.
    if before is None or not case.shape.counts:
        server.begin()
    if before is not None:
        session.described.setdefault(server, before)
    # What the judging of initial values needs, and a second to import it: time that the interpreters take anyway.
    threading.Thread(target=importlib.import_module, args=("scipy.stats",), daemon=True).start()
    versions = session.describe(case, "original"), session.describe(case, "migrated")
    progress(Progress("interpreters", 1, 1))
    findings = compare(case, progress, session, evidence, key)
    if case.log_dir is not None:
        for run in findings.runs:
            if run.outcome.failure is not None or run.failed:
                with contextlib.suppress(OSError):  # on a full disk the verdict counts more than they do
                    run.outcome.keep_logs(case.log_dir, run.role.replace(" ", "-").replace(",", ""))
    return report_of(findings, versions, started, time.monotonic() - clock)


def compare(
    case: Case,
    progress: OnProgress,
    session: Session,
    evidence: OriginalEvidence | None = None,
    key: str | None = None,
) -> Findings:
    """All runs and all levels that make sense, cheapest first; what follows a difference is not run. `key` is that of
    `kept.key_of`, where it is known.
    """
    if evidence is not None or not case.kept:
        return _with_late_failures(_compared_alike(case, progress, session, evidence))
    key = key or kept.key_of(case, session)
    evidence = kept.load(key, case, session)
    findings = _with_late_failures(_compared_alike(case, progress, session, evidence))
    if evidence is not None and not _equivalent(findings):
        # The data may have changed since, which nothing else tells.
        again = record_main(session, known(case, evidence.main), evidence)
        if not kept.reads_the_same(evidence, again):
            kept.forget(key)
            findings = _with_late_failures(_compared_alike(case, progress, session, None))
    # Many weights are not kept: they would take more room than what they save is worth.
    new = evidence is None or findings.original is not evidence
    asked = findings.case
    as_asked = asked.anew and not (asked.time_alike or asked.one_order)
    if new and known(case, findings.original.main).room.whole and as_asked:
        evidence = replace(findings.original, probed=findings.migrated.plain_probe or findings.original.probed)
        kept.save(key, case, evidence, session.describe(case, "original"))
    return findings


def _equivalent(findings: Findings) -> bool:
    required = required_levels(findings.case)
    return verdict.decide(verdict.complete(findings.levels, required), required).status is Status.EQUIVALENT


def _with_late_failures(findings: Findings) -> Findings:
    """What failed after a training that was judged, and which runs were made twice, in L0."""
    stalled = [f"{run.role}: run twice, since at first {run.stalled}" for run in findings.runs if run.stalled]
    if stalled:
        levels = [
            replace(one, notes=(*one.notes, *stalled)) if one.id == l0_runs.ID else one for one in findings.levels
        ]
        findings = replace(findings, levels=tuple(levels))
    migrated = findings.migrated.main or findings.migrated.probe
    late = findings.original.main.late, None if migrated is None else migrated.late
    if late == (None, None) or any(
        level.id == l0_runs.ID and level.status is Status.FAILED for level in findings.levels
    ):
        return findings
    levels = [l0_runs.failed_late(one, *late) if one.id == l0_runs.ID else one for one in findings.levels]
    return replace(findings, levels=tuple(levels))


def _compared_alike(case: Case, progress: OnProgress, session: Session, evidence: OriginalEvidence | None) -> Findings:
    """The comparison; once more where the first loss differs and dropouts may draw the same in another way."""
    findings = _compared(case, progress, session, evidence)
    original, migrated, level = findings.original.main.recording, findings.migrated.shown, findings.level("L3")
    if original is not None and migrated is not None and case.anew and _drawn_apart(original, migrated):
        return _compared_alike(replace(case, anew=False), progress, session, None)
    if findings.migrated.of_its_batches and not case.one_order:
        again = _compared_alike(replace(case, one_order=True), progress, session, None)
        data = again.level(l2_data.ID)
        return findings if data is None or data.status is not Status.EQUIVALENT else _of_one_order(again, data)
    if level is None or level.status is not Status.DIFFERENT or original is None or migrated is None:
        return findings
    if case.both_original or not l0b_configuration.may_draw_alike(original, migrated):
        return findings
    again = _compared(replace(case, time_alike=True), progress, session, None)
    level = again.level("L3")
    if level is None or level.status is Status.DIFFERENT:
        return findings
    note = (
        "dropout is drawn per time step in one program, and once for all steps in the other: in both it was "
        "made to drop the same features at each"
    )
    levels = (replace(one, notes=(*one.notes, note)) if one.id == level.id else one for one in again.levels)
    return replace(again, levels=tuple(levels))


def _of_one_order(findings: Findings, data: LevelResult) -> Findings:
    """With what is to be said of the order that both programs were given."""
    note = (
        "the migrated program reads another order of the same shuffles: both programs had one seed, and in "
        "each pass over the data the order of the first"
    )
    level = replace(data, notes=(*data.notes, note))
    return replace(findings, levels=tuple(level if one.id == data.id else one for one in findings.levels))


def _drawn_apart(original: Recording, migrated: Recording) -> bool:
    """Whether masks and noise differ from step to step in one program alone: a mesh of devices has them at each step
    the same, since no operation there can ask which step it is.
    """
    draws = [bool(one.steps and (one.dropout_rates or one.draws)) for one in (original, migrated)]
    return all(draws) and original.anew is not migrated.anew


def _compared(case: Case, progress: OnProgress, session: Session, evidence: OriginalEvidence | None) -> Findings:
    first = None
    if evidence is None:
        if case.shape.counts or one_interpreter(case):
            evidence = record_original(session, case, progress)
        else:
            with ThreadPoolExecutor(1) as pool:
                later = pool.submit(probe, session, case)
                evidence = record_original(session, case, progress, repeat=False)
                first = later.result()
    case = known(case, evidence.main)
    findings = Findings(case, evidence, MigratedEvidence(probe=first))
    if evidence.failed_run is not None:
        return _failed(findings, evidence.failed_run)
    versions_differ = _versions_differ(session, case)
    found, evidence, one_may_do, ahead = _run_beside(session, case, progress, evidence, first, versions_differ)
    if evidence.failed_run is not None:
        return _failed(replace(findings, original=evidence), evidence.failed_run)
    case = shown_by(case, found.main)
    findings = replace(findings, case=case, original=evidence, migrated=found, levels=found.levels)
    if found.failed is not None:
        return _failed(findings, found.failed)
    if found.compared is not None:
        findings = _with_numbers(session, findings, progress, versions_differ, one_may_do, ahead)
        if asynchronous(case.shape) and not findings.settled:
            findings = _with_order(session, findings, progress, versions_differ)
        if not findings.settled:
            findings = _with_evaluation(session, findings, progress, versions_differ)
        if not findings.settled:
            findings = _with_artefacts(session, findings, progress, versions_differ)
        if not findings.settled:
            findings = _with_compiled(session, findings)
        if not findings.settled:
            findings = _with_other_models(session, findings, progress)
        if case.seeds and asynchronous(case.shape) and not findings.settled:
            findings = _with_seeds(session, findings, progress)
        if case.all_mutants and not findings.settled and findings.limits is not None:
            tried = try_mutants(session, findings, MUTANTS, progress)
            findings = replace(findings, mutants=(*_not_among(findings.mutants, tried), *tried))
    if asynchronous(case.shape) and not case.seeds and not findings.settled:
        findings = replace(findings, levels=(*findings.levels, _not_asked_for()))
    return findings


__all__ = [
    "Case",
    "CaseError",
    "Findings",
    "ForkServerError",
    "OriginalEvidence",
    "Progress",
    "Session",
    "asynchronous",
    "check",
    "collect_original",
    "compare",
    "counterpart",
    "make_case",
    "one_trainer",
    "open_session",
    "parameter_servers",
    "training_tasks",
    "verify",
]
