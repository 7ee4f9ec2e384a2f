"""Tries known-bad versions of a migrated program that was found to be equivalent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from migrator.harness import examples
from migrator.harness.case import one_trainer, parameter_servers, training_tasks
from migrator.harness.gathered import Findings
from migrator.harness.migrated import evaluation_plan
from migrator.harness.mutants.catalogue import Family, Mutant
from migrator.harness.mutants.killing import NOT_EXERCISED, Run, Unmutated, kill
from migrator.harness.original import evaluates
from migrator.harness.protocol import l2_data, l7_evaluation, l8_artefacts, ladder
from migrator.harness.protocol.results import LevelResult, MutantOutcome, Status
from migrator.harness.recording import Recording, beginning
from migrator.harness.runs import (
    OnProgress,
    Progress,
    Session,
    migrated_shape,
    recording_of,
    run_program,
)
from migrator.harness.runs import Run as ProgramRun


def try_mutants(
    session: Session, findings: Findings, mutants: Sequence[Mutant], progress: OnProgress
) -> tuple[MutantOutcome, ...]:
    """What becomes of each mutant, judged by L0 to L5, L7 and L8 on the evidence of a comparison.

    `findings` are those of a comparison in this session that ran all its levels; ValueError if there are none to
    judge by. On parameter servers the cluster is the one with one trainer. A long training is tried in its first
    steps, as many as the noise floor was measured for.
    """
    bench = _Bench(session, findings)
    outcomes = []
    for done, mutant in enumerate(mutants):
        progress(Progress("mutants", done, len(mutants)))
        outcomes.append(bench.outcome(mutant))
    progress(Progress("mutants", len(mutants), len(mutants)))
    return tuple(outcomes)


class _Bench:
    """The comparison that a mutant takes the migrated program's place in."""

    def __init__(self, session: Session, findings: Findings) -> None:
        self._session = session
        self._findings = findings
        evidence, found = findings.original, findings.migrated
        ready = evidence.main.recording, found.names, found.main, found.compared, findings.limits
        if any(part is None for part in ready):
            raise ValueError("the comparison ended before its numbers were judged: there is nothing to judge by")
        self._limited = evidence.limited
        self._original = evidence.main.recording
        if self._limited and self._original is not None and evidence.replicate_limit is not None:
            self._original = beginning(self._original, evidence.replicate_limit)
        self._goods: dict[bool, Recording | None] = {}
        self._shape = migrated_shape(findings.case, one_trainer(findings.case.shape))
        self._evaluation: dict[str, Any] = {}
        if evaluates(findings.case) and not self._limited and found.names is not None and found.names.complete:
            self._evaluation = evaluation_plan(session, evidence, found.names, found.terms)

    def outcome(self, mutant: Mutant) -> MutantOutcome:
        """Runs and judges one mutant."""
        # In a random order the program's own data is for mistakes in the data; all else would drown in the order.
        random = self._findings.migrated.replayed or self._findings.original.random_order
        replay = random and mutant.family is not Family.DATA
        good = self._good(replay)
        if good is None:
            detail = "the program itself failed when it was run once more"
            return MutantOutcome(mutant.id, mutant.description, mutant.expected_level, NOT_EXERCISED, detail=detail)
        run = self._runner(f"mutant {mutant.id}", replay)
        plan = {"mutant": mutant.plan}
        return kill(
            mutant,
            lambda extra: run(**extra),
            lambda made: self._judge(made, lambda: run(**plan)),
            Unmutated(good, self._findings.levels),
        )

    def _good(self, replay: bool) -> Recording | None:
        """The program without a mistake, under the plan that the mutants run under; None if that run failed."""
        if replay not in self._goods:
            run = self._findings.migrated.main
            # The replay that was compared evaluated nothing.
            if self._limited or replay or run is None:
                run = self._runner("migrated without a mutant", replay)()
            self._goods[replay] = run.recording
        return self._goods[replay]

    def _runner(self, role: str, replay: bool) -> Callable[..., ProgramRun]:
        evidence, found = self._findings.original, self._findings.migrated
        replayed = found.terms.replay(self._session, evidence.main.record_dir) if replay else None
        own = {**self._evaluation, "replay": replayed}

        def run(**plan: Any) -> ProgramRun:
            made = run_program(
                self._session,
                self._findings.case,
                "migrated",
                role,
                self._shape,
                **{"initial": found.initial, "steps": evidence.replicate_limit, **own, **plan},
            )
            return found.terms.of(made)

        return run

    def _judge(self, made: Run, again: Callable[[], ProgramRun]) -> tuple[LevelResult, ...]:
        """The levels of a mutant's run; `again` repeats it, to tell a fixed order of the data from a random one."""
        case, evidence, found = self._findings.case, self._findings.original, self._findings.migrated
        original, migrated, limits = self._original, made.recording, self._findings.limits
        assert isinstance(made, ProgramRun) and migrated is not None
        assert original is not None and found.names is not None and limits is not None
        random = evidence.random_order or l2_data.seeded_by_chance(original, migrated)
        base = ladder.foundation(
            original,
            migrated,
            found.names,
            training_tasks(one_trainer(case.shape)),
            training_tasks(self._shape),
            random_order=random,
            examples=examples.read(evidence, made, found.terms, random=True)[0] if random else None,
            parameter_servers=parameter_servers(self._shape),
        )
        levels = base.levels
        if evidence.random_order and base.comparable and not base.same_order:
            repeated = again().recording
            if repeated is not None and l2_data.same_sequences(migrated, repeated):
                levels = tuple(l2_data.fixed_order(level) if level.id == l2_data.ID else level for level in levels)
        if not base.comparable or any(level.status is Status.DIFFERENT for level in levels):
            return levels
        if base.same_order:
            control, bad = recording_of(found.control), found.sentinel_recordings
            levels += ladder.numbers(original, migrated, control, bad, found.names, limits)
        if self._evaluation and levels[-1].status is not Status.DIFFERENT:
            replicates = evidence.replicate_recordings
            levels += (l7_evaluation.judge(original, migrated, limits, replicates=replicates),)
            if levels[-1].status is not Status.DIFFERENT:
                levels += (l8_artefacts.judge(original, migrated, limits).level,)
        return levels
