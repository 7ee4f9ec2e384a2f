"""The migrated program's runs against the evidence about the original, and what its own data and settings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from migrator.harness import budget, examples, spared
from migrator.harness.case import (
    Case,
    CaseError,
    asynchronous,
    one_trainer,
    parameter_servers,
    training_tasks,
    without_evaluator,
)
from migrator.harness.mutants import SENTINELS, Mutant
from migrator.harness.original import OriginalEvidence, evaluates, to_be_made_again
from migrator.harness.protocol import l0_runs, l2_data, ladder, name_map, pairing, tolerance, weight_map
from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.recording import Array, Recording
from migrator.harness.runs import (
    GENERATORS,
    IN_ONE_ORDER,
    OnProgress,
    Progress,
    Run,
    Session,
    distinct,
    evaluation_files,
    migrated_shape,
    run_program,
    weights_file,
)
from migrator.harness.terms import Terms, applies_others, with_data

# Steps of runs that show whether two programs with a random order have the same pipeline.
_SEEDED_STEPS = 20

#: Steps that a sentinel needs which changes the first losses or the first update.
SENTINEL_STEPS = 2


@dataclass(frozen=True)
class MigratedEvidence:
    """What the migrated program's runs have led to so far.

    `levels` are L0 to L2. `main` started from the original's weights on its own data, `compared` is the run that
    L3 to L5 judge (`main`, or a replay of the original's batches), `control` the same with a learning rate 1 %
    higher, `sentinels` other known-bad versions by the name of the mutant. `in_order` and `in_order_control` are
    those of the whole asynchronous cluster. `failed` ended without a usable recording. `terms` is what was needed to
    put all recordings into the original's terms, in which they are here. `of_its_batches`: it makes of each batch
    what no other batches tell, and reads them in another order of the same shuffles.
    """

    levels: tuple[LevelResult, ...] = ()
    names: name_map.NameMap | None = None
    initial: str | None = None
    probe: Run | None = None
    main: Run | None = None
    repeat: Run | None = None
    free: Run | None = None
    compared: Run | None = None
    control: Run | None = None
    sentinels: Mapping[str, Run] = field(default_factory=dict)
    in_order: Run | None = None
    in_order_control: Run | None = None
    failed: Run | None = None
    terms: Terms = field(default_factory=Terms)
    of_its_batches: bool = False

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run once, in the order of the report."""
        return distinct(
            (
                self.probe,
                self.main,
                self.repeat,
                self.free,
                self.compared,
                self.control,
                *self.sentinels.values(),
                self.in_order,
                self.in_order_control,
                self.failed,
            )
        )

    @property
    def sentinel_recordings(self) -> dict[str, Recording]:
        """What the sentinels recorded, by the name of the mutant."""
        return {name: run.recording for name, run in self.sentinels.items() if run.recording is not None}

    @property
    def replayed(self) -> bool:
        """Whether the compared run read the original's batches instead of its own data."""
        return self.compared is not None and self.compared is not self.main

    @property
    def plain_probe(self) -> Run | None:
        """The run that told the variables, where these are kept in the form that the original keeps them in."""
        return self.probe if _plain(self.terms) else None

    @property
    def shown(self) -> Recording | None:
        """The recording for the report: the compared one, else the furthest that there is."""
        runs = (self.compared, self.main, self.probe)
        return next((run.recording for run in runs if run is not None and run.recording is not None), None)


def probe(session: Session, case: Case) -> Run:
    """One step of the migrated program from its own initial values, to learn the names of its variables."""
    shape = migrated_shape(case, one_trainer(case.shape))
    plan = {"steps": 1, "only_training": True, "state_steps": [], "record_batches": False, "draw_initial": True}
    return run_program(session, case, "migrated", "migrated probe", shape, **plan)


def shown_by(case: Case, run: Run | None) -> Case:
    """The case, when a run of the migrated program has shown which batch an eager loop begins with."""
    if run is None or run.recording is None:
        return case
    found = run.recording
    case = replace(case, first_batches=(case.first_batches[0], found.first_batch))
    return replace(case, requests=(case.requests[0], found.requests))


def _plain(terms: Terms) -> bool:
    """Whether weights are kept in the same form, one for one."""
    return terms.weights == weight_map.WeightMap()


def build_names(original: Recording, migrated: Recording, user: Mapping[str, str]) -> name_map.NameMap:
    """The map between the variables of the two programs; CaseError if what the user gave does not fit."""
    try:
        return name_map.build(original.variables, migrated.variables, user)
    except name_map.NameMapError as error:
        raise CaseError(str(error)) from None


def terms_of(original: Recording, migrated: Recording, user: Mapping[str, str]) -> Terms:
    """How the two programs keep the same weights, from the first run of each with its own initial values."""
    try:
        weights = weight_map.find(original.variables, migrated.variables, user)
        weights = weights.with_offsets(original.initial, migrated.initial)
        weights = weight_map.with_slots(original, migrated, weights, user)
        weights = weight_map.with_own(original.variables, migrated, weights, user)
    except name_map.NameMapError as error:
        raise CaseError(str(error)) from None
    return Terms(weights, own={name: migrated.initial[name] for name in weights.begin_as_made})


def evaluation_plan(
    session: Session, evidence: OriginalEvidence, names: name_map.NameMap, terms: Terms
) -> dict[str, Any]:
    """The part of a plan that has evaluations recorded, those of the original's weights and of initial ones too."""
    watched = evidence.main if evidence.free is None else evidence.free

    def theirs(values: Mapping[str, Array]) -> Mapping[str, Array]:
        return terms.initial(values, names)

    weights = evaluation_files(session, watched, names, theirs) if names.complete else []
    of_step = {one["step"]: one for one in weights}
    predicted = [] if watched.recording is None else [one.step for one in watched.recording.predictions]
    return {
        "evaluate": True,
        "evaluate_weights": weights,
        "evaluation_control": True,
        "predict_weights": [of_step[step] for step in predicted if step in of_step],
    }


def run_migrated(
    session: Session,
    case: Case,
    progress: OnProgress,
    evidence: OriginalEvidence,
    first: Run | None,
    on_compared: Callable[[MigratedEvidence], None] = lambda found: None,
    repeated: Callable[[], OriginalEvidence] | None = None,
) -> MigratedEvidence:
    """The migrated program's runs, as many as make sense, and L0 to L2. `first`: its probe, if made already;
    `on_compared` hears of the run that L3 to L5 judge before the known-bad versions of it are made. `repeated` waits
    for the evidence with the original's first replicate, which is being made; nothing more is run if it failed.
    """
    original = evidence.main.recording
    assert original is not None and evidence.failed_run is None
    shape = migrated_shape(case, one_trainer(case.shape))
    total = 3 + asynchronous(case.shape) + evidence.random_order
    progress(Progress("migrated", 0, total))
    # What was compared with this original before has probably the same variables: no run need tell them. The one that
    # is compared tells then whether that was so.
    guessed = evidence.probed if first is None and not case.names else None
    first = first or guessed or probe(session, case)
    if first.recording is not None and first.recording.before != case.before:
        guessed, first = None, probe(session, case)  # when it was made nobody knew what the original fits before
    if first.recording is not None and first.recording.loop and case.apart and not first.recording.loops_apart:
        guessed, first = None, probe(session, case)  # when it was made nobody knew that there are several models
    if first.recording is None:
        return MigratedEvidence(probe=first, failed=first)
    case = shown_by(case, first)
    terms = terms_of(original, first.recording, case.names)
    first = terms.of(spared.emptied(first, case.room))
    assert first.recording is not None
    names = build_names(original, first.recording, case.names)
    initial = weights_file(session, terms.initial(original.initial, names)) if names.complete else None
    found = MigratedEvidence(names=names, initial=initial, probe=first, terms=terms)
    progress(Progress("migrated", 1, total))
    evaluation = evaluation_plan(session, evidence, names, terms)

    def train() -> Run:
        plan = evaluation if evaluates(case) else {}
        steps = evidence.step_limit
        own = {"initial": found.initial, "steps": steps, "generators": GENERATORS, "lines": True}
        own["draw_initial"] = guessed is not None
        return run_program(session, case, "migrated", "migrated", shape, **{**own, **plan})

    main = train()
    if guessed is not None:
        told = None if to_be_made_again(case, main, 1) else _told(original, guessed, main, case)
        if told is None:  # what that other program showed is not said of this one
            anew = replace(case, first_batches=(case.first_batches[0], None), requests=(case.requests[0], 1))
            return run_migrated(session, anew, progress, replace(evidence, probed=None), None, on_compared)
        first, found = told, replace(found, probe=None)
    if repeated is not None:
        complete = repeated()
        if complete.main is not evidence.main:  # it was made once more, of less steps
            return run_migrated(session, case, progress, complete, first, on_compared)
        evidence, total = complete, total + complete.random_order
        if evidence.failed_run is not None:
            return replace(found, main=main)
    if main.recording is None:
        return replace(found, main=main, failed=main)
    raw, main = main, terms.of(main)
    assert main.recording is not None
    weights = weight_map.with_kinds(original, main.recording, terms.weights, names.to_original())
    if weights is not terms.weights:
        terms = replace(terms, weights=weights)
        main = terms.of(raw)
        assert main.recording is not None
    if applies_others(original, main.recording, names.to_original()):
        terms = replace(terms, without_gradients=True)
        main = terms.of(raw)
    short: tuple[Run, Run] | None = None
    alike = main.recording is not None and l2_data.may_shuffle_alike(original, main.recording)
    if alike and not case.one_order:
        ours, theirs = _short_runs(session, case, evidence, found.initial, "in one order", **IN_ONE_ORDER)
        short = (ours, terms.of(theirs)) if ours.recording is not None and theirs.recording is not None else None
    formed = with_data(terms, *(short or (evidence.main, main)), random_order=evidence.random_order)
    if short is None or all(one.known for one in formed.data):  # else it is known of the batches of these runs alone
        terms = formed
    elif any(one.of_batches for one in formed.data):
        found = replace(found, of_its_batches=True)
    terms = replace(terms, reference=evidence.main) if terms.data else terms
    main = terms.of(raw) if terms.data else main
    found = replace(found, main=main, terms=terms)
    repaired = paired_by_flow(session, case, evidence, found)
    if repaired is not names:
        names = repaired
        initial = weights_file(session, terms.initial(original.initial, names))
        found = replace(found, names=names, initial=initial)
        evaluation = evaluation_plan(session, evidence, names, terms)
        main = train()
        found = replace(found, main=main)
        if main.recording is None:
            return replace(found, failed=main)
        main = terms.of(main)
        found = replace(found, main=main)
    ordered = rows_by_flow(session, case, evidence, found)
    if ordered is not terms:
        terms = ordered
        initial = weights_file(session, terms.initial(original.initial, names))
        found = replace(found, terms=terms, initial=initial)
        evaluation = evaluation_plan(session, evidence, names, terms)
        main = train()
        found = replace(found, main=main)
        if main.recording is None:
            return replace(found, failed=main)
        main = terms.of(main)
        found = replace(found, main=main)
    assert main.recording is not None and first.recording is not None
    random = evidence.random_order or l2_data.seeded_by_chance(original, main.recording)
    in_order = None if random else _in_one_order(short, terms)
    random = random or in_order is not None
    read, unread = examples.read(evidence, main, terms, random=random)
    base = ladder.foundation(
        original,
        main.recording,
        names,
        training_tasks(one_trainer(case.shape)),
        training_tasks(shape),
        random_order=random,
        examples=read,
        unread=unread,
        parameter_servers=parameter_servers(shape),
        own_initial=(original.initial, first.recording.initial),
        drawn=(original.drawn, first.recording.drawn),
        regrouped=terms.weights.regrouped,
    )
    base = replace(base, levels=tuple(_with_notes(level, terms) for level in base.levels))
    if in_order is not None:
        levels = [l2_data.of_one_order(one, *in_order) or one if one.id == l2_data.ID else one for one in base.levels]
        base = replace(base, levels=tuple(levels))
    if evidence.random_order and base.comparable:
        again = terms.of(
            run_program(session, case, "migrated", "migrated repeat", shape, initial=initial, steps=evidence.step_limit)
        )
        found = replace(found, repeat=again)
        if again.recording is None:
            return replace(found, failed=again)
        found = replace(found, repeat=spared.emptied(again, case.room))
        if l2_data.same_sequences(main.recording, again.recording):
            levels = [l2_data.fixed_order(level) if level.id == l2_data.ID else level for level in base.levels]
            base = replace(base, levels=tuple(levels))
    base = _with_one_seed(session, case, evidence, found, base)
    if evidence.free is not None and evidence.free.recording is not None:
        progress(Progress("migrated", 2, total))
        free = run_program(
            session,
            case,
            "migrated",
            "migrated free-running",
            migrated_shape(case, case.shape),
            initial=initial,
            **evaluation,
        )
        free = terms.of(free, evidence.free)
        found = replace(found, free=free)
        if free.recording is None:
            return replace(found, failed=free)
        base = _with_free_cluster(case, base, evidence.free.recording, free.recording)
    found = replace(found, levels=base.levels)
    if not base.comparable:
        return found
    return _compared_runs(session, case, progress, evidence, found, base, total, on_compared)


def _told(original: Recording, guessed: Run, main: Run, case: Case) -> Run | None:
    """What a run of its own would have told of the migrated program, by a run that took its variables for those of
    another one; None where they are others, or begin in another way.
    """
    before, now = guessed.recording, main.recording
    if before is None or now is None or not now.steps or now.made is None or now.variables != before.variables:
        return None
    if (now.first_batch, now.requests) != (case.first_batches[1], case.requests[1]):
        return None
    recording = replace(now, initial=dict(now.made))
    return replace(main, recording=recording) if _plain(terms_of(original, recording, case.names)) else None


def _with_one_seed(
    session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence, base: ladder.Foundation
) -> ladder.Foundation:
    """L2 once more, of short runs whose shuffles have one seed or do nothing, where a random order has left it open."""
    at = next((i for i, level in enumerate(base.levels) if level.id == l2_data.ID), None)
    if at is None or not evidence.random_order or base.levels[at].reason is not Reason.NONDETERMINISTIC_ORIGINAL:
        return base
    original, main = evidence.main.recording, found.main
    assert original is not None and main is not None and main.recording is not None
    migrated = main.recording
    level, terms = base.levels[at], found.terms
    if not l2_data.queued(original, migrated):
        # TensorFlow 1.15 makes one operation of `shuffle` and `repeat`, whose passes of one seed have another order.
        ours, theirs = _short_runs(session, case, evidence, found.initial, "of one seed", **IN_ONE_ORDER)
        terms = _beside(found.terms, ours, theirs)
        mapped = terms.of(theirs, ours)
        if ours.recording is not None and mapped.recording is not None:
            level = l2_data.of_one_seed(level, ours.recording, mapped.recording)
    if level.reason is Reason.NONDETERMINISTIC_ORIGINAL and l2_data.order_by_nature(original, migrated):
        ours, theirs = _short_runs(session, case, evidence, found.initial, "in place", in_place=True)
        terms = _beside(found.terms, ours, theirs)
        mapped = terms.of(theirs, ours)
        if ours.recording is not None and mapped.recording is not None:
            level = l2_data.in_place(level, original, migrated, ours.recording, mapped.recording)
            again = None if found.repeat is None else found.repeat.recording
            if again is not None and l2_data.same_sequences(migrated, again):
                level = l2_data.fixed_order(level)
    level = replace(level, summary=_in_form(level.summary, terms))
    return replace(base, levels=tuple(level if i == at else one for i, one in enumerate(base.levels)))


def _beside(terms: Terms, ours: Run, theirs: Run) -> Terms:
    """The terms for a run of the migrated program that was made beside one of the original. That both hold the same but
    for rounding may show first where their batches have one order.
    """
    if terms.data or ours.recording is None or theirs.recording is None:
        return terms
    told = with_data(terms, ours, terms.of(theirs), random_order=False)
    return told if all(one.plain for one in told.data) else terms


def _short_runs(
    session: Session, case: Case, evidence: OriginalEvidence, initial: str | None, role: str, **plan: Any
) -> tuple[Run, Run]:
    """A few steps of both programs whose shuffles have one seed, or none at all, as the `plan` says."""
    plan |= {
        "steps": min(_SEEDED_STEPS, evidence.step_limit or _SEEDED_STEPS),
        "only_training": True,
    }
    shape = one_trainer(case.shape)
    ours = run_program(session, case, "original", f"original {role}", shape, initial=evidence.initial, **plan)
    theirs = run_program(
        session, case, "migrated", f"migrated {role}", migrated_shape(case, shape), initial=initial, **plan
    )
    return ours, theirs


def _in_one_order(short: tuple[Run, Run] | None, terms: Terms) -> tuple[Recording, Recording] | None:
    """What was recorded of runs in which each pass has the order of the first; None where they read other batches."""
    if short is None:
        return None
    ours, theirs = short[0].recording, terms.of(*short[::-1]).recording
    return (ours, theirs) if ours and theirs and l2_data.same_sequences(ours, theirs) else None


def paired_by_flow(
    session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence
) -> name_map.NameMap:
    """The map of names, changed where variables of the same shape were taken for each other: two runs of one step tell.

    They are made only where the first losses from the same weights are apart.
    """
    original, names = evidence.main.recording, found.names
    assert original is not None and names is not None and found.main is not None and found.main.recording is not None
    of = pairing.classes(original, names) if names.complete else ()
    if not of or case.names or parameter_servers(case.shape):
        return names
    migrated = found.main.recording
    replay = evidence.main.record_dir
    plan: dict[str, Any] = {"steps": 1, "only_training": True, "state_steps": [1]}
    shape = migrated_shape(case, one_trainer(case.shape))

    def one_step(role: str, values: Mapping[str, Array]) -> Recording | None:
        initial = weights_file(session, found.terms.initial(values, names))
        theirs = found.terms.replay(session, replay)
        made = run_program(session, case, "migrated", role, shape, initial=initial, replay=theirs, **plan)
        return found.terms.of(made).recording

    if evidence.random_order:
        first = one_step("migrated first step", original.initial)
        if first is None:
            return names
        migrated = first
    elif not l2_data.same_first_batches(original, migrated):
        return names
    if pairing.first_losses_agree(original, migrated):
        return names
    values = pairing.alike(original.initial, of)
    theirs = one_step("migrated pairing", values)
    initial = weights_file(session, values)
    ours = run_program(
        session,
        case,
        "original",
        "original pairing",
        one_trainer(case.shape),
        **{**plan, "initial": initial, "replay": str(replay)},
    ).recording
    return names if ours is None or theirs is None else pairing.by_flow(ours, theirs, names, of)


#: Steps whose gradients tell which row of a weight is which.
_ROW_STEPS = 8


def rows_by_flow(session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence) -> Terms:
    """The terms, with the order of rows in which the migrated program keeps weights of its own, where it concatenates
    its inputs in another order or numbers words otherwise, and which of its rows the original has not: two runs of a
    few steps tell.

    They are made only where the first losses from the same weights are apart, or where it has more rows.
    """
    original, names, terms = evidence.main.recording, found.names, found.terms
    assert original is not None and names is not None and found.main is not None
    of = pairing.tables(original, names, terms.weights.regrouped) if names.complete else ()
    more = terms.weights.with_more_rows if names.complete else ()
    migrated = found.main.recording
    if not (of or more) or migrated is None or parameter_servers(case.shape):
        return terms
    shape, replay = one_trainer(case.shape), evidence.main.record_dir
    theirs_of = migrated_shape(case, shape)
    again: dict[str, Any] = {"only_training": True, "replay": terms.replay(session, replay)}
    compared: Recording | None
    if more:
        compared = None
    elif evidence.random_order:
        first = run_program(
            session, case, "migrated", "migrated first step", theirs_of, initial=found.initial, steps=1, **again
        )
        compared = terms.of(first).recording
    else:
        compared = migrated if l2_data.same_first_batches(original, migrated) else None
    if not more and (compared is None or pairing.first_losses_agree(original, compared)):
        return terms
    values = pairing.with_like_rows(original.initial, (*of, *(group.original[0].name for group in more)))
    kept = [batch.step for batch in original.batches if batch.kept]
    steps = min(_ROW_STEPS, max(kept, default=1))
    plan: dict[str, Any] = {
        "steps": steps,
        "state_steps": list(range(1, steps + 1)),
        "learning_rate_factor": 0.0,
    }
    given = {"initial": weights_file(session, values), "replay": str(replay), "only_training": True}
    ours = run_program(session, case, "original", "original rows", shape, **plan, **given).recording
    own = weights_file(session, terms.initial(values, names))
    run = run_program(session, case, "migrated", "migrated rows", theirs_of, initial=own, **plan, **again)
    theirs = terms.of(run).recording
    if ours is None or theirs is None or run.recording is None:
        return terms
    orders = pairing.orders(ours, theirs, names, of)
    by_name = {one.name: one for one in migrated.variables}
    paired = names.to_migrated()
    pairs = [(one, by_name[paired[one.name]]) for one in original.variables if one.name in orders]
    for group in more:
        name = group.original[0].name
        both = pairing.gradients_of(ours, name), pairing.gradients_of(run.recording, group.migrated[0].name)
        order = None if both[0] is None or both[1] is None else pairing.more_rows(both[0], both[1])
        if order is not None:
            orders[name] = order
            pairs.append((group.original[0], group.migrated[0]))
    return replace(terms, weights=terms.weights.with_rows(pairs, orders)) if orders else terms


def _with_notes(level: LevelResult, terms: Terms) -> LevelResult:
    """L1 and L2 with what is to be said about the form of the weights and of the data."""
    if level.id == "L1":
        return replace(level, notes=(*level.notes, *terms.weights.told()))
    if level.id != l2_data.ID or not terms.said:
        return level
    return replace(level, summary=_in_form(level.summary, terms), notes=(*level.notes, *terms.said))


def _in_form(summary: str, terms: Terms) -> str:
    """What is said about equal batches, where they are so in another form, or but for rounding."""
    if not terms.data:
        return summary
    how = "but for rounding" if all(one.plain for one in terms.data) else "in another form"
    return summary.replace("are the same bit for bit", f"hold the same, {how},").replace(",;", ";").rstrip(",")


def _with_free_cluster(
    case: Case, base: ladder.Foundation, original: Recording, migrated: Recording
) -> ladder.Foundation:
    tasks = (
        training_tasks(case.shape),
        training_tasks(migrated_shape(case, case.shape)),
    )
    levels = list(base.levels)
    levels[0] = l0_runs.free_cluster(levels[0], original, migrated, *tasks)
    if base.same_order:
        levels[3] = l2_data.free_cluster(levels[3], original, migrated, list(zip(*tasks, strict=True)))
    comparable = base.comparable and all(level.status is not Status.DIFFERENT for level in levels)
    return replace(base, levels=tuple(levels), comparable=comparable)


def rerun(session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence) -> Callable[..., Run]:
    """How to train the migrated program once more as in the compared run: a function of role and plan."""
    assert evidence.main.recording is not None
    # Data that are read by chance were the same in the compared runs alone (GENERATORS).
    given = found.replayed or evidence.random_order
    replay = found.terms.replay(session, evidence.main.record_dir) if given else None
    # What a program does after its last step is of no use here, so it is told which one that is.
    last = None if case.shape.counts else budget.total_steps(evidence.main.recording)
    steps = budget.lesser(evidence.replicate_limit, last)

    def run(role: str, **plan: Any) -> Run:
        made = run_program(
            session,
            case,
            "migrated",
            role,
            migrated_shape(case, one_trainer(case.shape)),
            **{
                "initial": found.initial,
                "replay": replay,
                "steps": steps,
                "only_training": True,
                # What is told by its content has to be there.
                "keep_batches": bool(found.terms.data),
                **plan,
            },
        )
        return found.terms.of(made)

    return run


def _compared_runs(
    session: Session,
    case: Case,
    progress: OnProgress,
    evidence: OriginalEvidence,
    found: MigratedEvidence,
    base: ladder.Foundation,
    total: int,
    on_compared: Callable[[MigratedEvidence], None],
) -> MigratedEvidence:
    """The run that L3 to L5 judge (the one made already, or a replay), and the known-bad versions of it."""
    compared = found.main
    if not base.same_order:
        compared = run_program(
            session,
            case,
            "migrated",
            "migrated replay",
            migrated_shape(case, one_trainer(case.shape)),
            initial=found.initial,
            replay=found.terms.replay(session, evidence.main.record_dir),
            steps=evidence.step_limit,
            evaluate=evaluates(case),
        )
        compared = found.terms.of(compared)
    assert compared is not None
    found = replace(found, compared=compared)
    if compared.recording is None:
        return replace(found, failed=compared)
    on_compared(found)
    if case.brief:
        progress(Progress("migrated", total, total))
        return found
    progress(Progress("migrated", total - 1, total))
    again = rerun(session, case, evidence, found)

    def left_of(bad: Run, good: Run | None = None) -> Run:
        """A known-bad version as there is room for it."""
        original, names = evidence.main.recording, found.names
        if case.room.whole or original is None or names is None:
            return bad
        rename = names.to_original()
        return spared.sharing(original, spared.measured(original, bad, rename, good), rename)

    control = left_of(again("migrated control", learning_rate_factor=_control_factor(evidence)))
    sentinels = {
        mutant.id: left_of(again(f"migrated {mutant.id}", **sentinel_plan(mutant)), compared)
        for mutant in (() if case.both_original else run_ones(compared.recording))
    }
    progress(Progress("migrated", total, total))
    return replace(found, control=control, sentinels=sentinels)


def _control_factor(evidence: OriginalEvidence) -> float:
    recording = evidence.main.recording
    return tolerance.CONTROL_FACTOR if recording is None else tolerance.control_factor(recording)


def run_ones(migrated: Recording) -> tuple[Mutant, ...]:
    """The sentinels that need a run of their own. The others: the control run, and the original's own batches."""
    return tuple(mutant for mutant in SENTINELS if mutant.id in ladder.run_sentinels(migrated))


def sentinel_plan(mutant: Mutant) -> dict[str, Any]:
    """The plan of a sentinel's short run."""
    return {"mutant": mutant.plan, "steps": SENTINEL_STEPS, "state_steps": [1, 2]}


def run_in_order(
    session: Session, case: Case, progress: OnProgress, evidence: OriginalEvidence, found: MigratedEvidence
) -> MigratedEvidence:
    """Adds the runs of the whole asynchronous cluster in a fixed order: as it is, and with a rate 1 % higher."""
    first = evidence.in_order[0]
    shape = migrated_shape(case, without_evaluator(case.shape))
    common: dict[str, Any] = {
        "initial": found.initial,
        "turns": True,
        "replay": found.terms.replay(session, first.record_dir) if evidence.random_order else None,
    }
    progress(Progress("migrated in order", 0, 2))
    run = run_program(session, case, "migrated", "migrated in order", shape, steps=evidence.step_limit, **common)
    run = found.terms.of(run, first)
    found = replace(found, in_order=run)
    if run.recording is None:
        return replace(found, failed=run)
    progress(Progress("migrated in order", 1, 2))
    control = run_program(
        session,
        case,
        "migrated",
        "migrated in order, control",
        shape,
        steps=evidence.replicate_limit,
        learning_rate_factor=_control_factor(evidence),
        **common,
    )
    progress(Progress("migrated in order", 2, 2))
    return replace(found, in_order_control=found.terms.of(control, first))
