"""The self-test: every good migration must be EQUIVALENT, and no known-bad version of it may be."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from migrator.harness import session as sessions
from migrator.harness.mutants.bench import try_mutants
from migrator.harness.mutants.cases import SelfTestCase
from migrator.harness.mutants.catalogue import Mutant
from migrator.harness.mutants.killing import CaseKills, KillTable
from migrator.harness.protocol import verdict
from migrator.harness.protocol.results import Status
from migrator.harness.runs import OnProgress, Session
from migrator.harness.telling import required_levels

ForCase = Callable[[SelfTestCase], OnProgress]


def run(
    cases: Sequence[SelfTestCase],
    progress: ForCase,
    mutants: Sequence[Mutant] | None = None,
    finished: Callable[[CaseKills], None] = lambda _: None,
) -> KillTable:
    """Runs each case as it is, and, where that is EQUIVALENT, its mutants (or those given).

    `progress` gives what is told of the progress of one case, and `finished` is told of its end. Raises CaseError for
    a case that cannot be run, and ForkServerError if an interpreter cannot be started.
    """
    done = []
    with sessions.open_session() as session:
        for case in cases:
            done.append(_run_case(session, case, progress(case), case.mutants if mutants is None else mutants))
            finished(done[-1])
    return KillTable(tuple(done))


def _run_case(session: Session, case: SelfTestCase, progress: OnProgress, mutants: Sequence[Mutant]) -> CaseKills:
    started = time.monotonic()
    comparison = sessions.make_case(case.original, case.migrated, cluster=case.cluster, **case.options)
    # With all replicates: a mistake that stays inside their spread is none that the workload could show.
    evidence = sessions.collect_original(session, comparison, progress)
    findings = sessions.compare(comparison, progress, session, evidence)
    required = required_levels(findings.case)  # which knows of trainers that wait for each other
    decided = verdict.decide(verdict.complete(findings.levels, required), required)
    outcomes = try_mutants(session, findings, mutants, progress) if decided.status is Status.EQUIVALENT else ()
    return CaseKills(case.name, decided.status, decided.sentence, outcomes, time.monotonic() - started)
