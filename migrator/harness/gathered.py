"""What a comparison has come to so far."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.harness.case import Case
from migrator.harness.migrated import MigratedEvidence
from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol import l7_evaluation, tolerance
from migrator.harness.protocol.results import Artefact, AsyncEvidence, LevelResult, MutantOutcome, Status
from migrator.harness.runs import Run


@dataclass(frozen=True)
class Findings:
    """Everything that a comparison has come to, for the report."""

    case: Case
    original: OriginalEvidence
    migrated: MigratedEvidence
    levels: tuple[LevelResult, ...] = ()
    limits: tolerance.Tolerance | None = None
    mutants: tuple[MutantOutcome, ...] = ()
    evaluations: tuple[l7_evaluation.MetricRow, ...] = ()
    artefacts: tuple[Artefact, ...] = ()
    asynchronous: AsyncEvidence | None = None
    extra_runs: tuple[Run, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether a level has already said that the programs failed or differ."""
        return any(level.status in (Status.FAILED, Status.DIFFERENT) for level in self.levels)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run of both programs, in the order of the report."""
        return (*self.original.runs, *self.migrated.runs, *self.extra_runs)

    def level(self, name: str) -> LevelResult | None:
        """The result of one level, if it was judged."""
        return next((level for level in self.levels if level.id == name), None)


__all__ = ["Findings"]
