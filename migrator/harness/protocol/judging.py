"""Judging two tables of measurements against the noise floor: what L3, L4 and L5 have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from migrator.harness.protocol import compare, tolerance
from migrator.harness.protocol.measurements import Measurements, Quantity
from migrator.harness.protocol.results import Divergence


@dataclass(frozen=True)
class Finding:
    """One quantity at one step: how far apart, and in how many noise floors (nan: not to be judged)."""

    quantity: Quantity
    step: int
    outcome: compare.Comparison
    floor: float
    ratio: float
    accepted: float

    @property
    def outside(self) -> bool:
        """Shown to differ: a number beyond the tolerance, another shape or dtype, non-finite, or absent."""
        if self.outcome.kind is compare.Kind.VALUE:
            return self.ratio > self.accepted
        return self.outcome.kind is not compare.Kind.EMPTY

    @property
    def unjudged(self) -> bool:
        """Neither shown equal nor shown different: nothing to compare, or no floor to compare with."""
        return self.outcome.kind is compare.Kind.EMPTY or (
            self.outcome.kind is compare.Kind.VALUE and math.isnan(self.ratio)
        )


@dataclass(frozen=True)
class Judgement:
    """All findings of one comparison, in order of step, family and name."""

    findings: tuple[Finding, ...]

    @property
    def outside(self) -> tuple[Finding, ...]:
        """The findings that differ, first step first."""
        return tuple(f for f in self.findings if f.outside)

    @property
    def unjudged(self) -> tuple[Finding, ...]:
        """The findings that could not be judged."""
        return tuple(f for f in self.findings if f.unjudged)

    @property
    def worst(self) -> Finding | None:
        """The finding with the greatest ratio; one without a number counts as infinite."""
        return max(self.findings, key=lambda f: math.inf if math.isnan(f.ratio) else f.ratio, default=None)

    @property
    def ratio(self) -> float | None:
        """The ratio of the worst finding; None if nothing was compared."""
        return None if self.worst is None else self.worst.ratio


_FAMILY_ORDER = {"regularization": 0, "loss": 1, "gradient": 2, "slot": 3, "state": 4}


def judge(original: Measurements, other: Measurements, limits: tolerance.Tolerance) -> Judgement:
    """Compares every quantity that either side has; one that only one side has is outside whatever the
    tolerance.
    """
    findings = []
    for key in sorted(set(original) | set(other), key=lambda k: (k[1], _FAMILY_ORDER[k[0].family], k[0])):
        quantity, step = key
        outcome = compare.compare(original.get(key), other.get(key))
        floor = limits.floors.get(key, math.nan)
        if outcome.kind is compare.Kind.VALUE and not np.issubdtype(original[key].dtype, np.floating):
            floor = 0.0  # counters, identifiers and flags do not round
        ratio = tolerance.ratio(outcome.absolute, floor) if outcome.kind is compare.Kind.VALUE else math.inf
        findings.append(Finding(quantity, step, outcome, floor, ratio, limits.c[tolerance.part_of(quantity, step)]))
    return Judgement(tuple(findings))


def agreement(worst: Finding) -> str:
    """How well the worst finding agrees, as the end of a sentence."""
    if worst.ratio == 0.0:
        return "bit for bit"
    return f"within {worst.ratio:.2g} noise floors (accepted: {worst.accepted:.3g})"


def divergence(finding: Finding, causes: tuple[str, ...] = (), tasks: Mapping[str, str] | None = None) -> Divergence:
    """The finding in the words of a report. `tasks` names the trainer positions of the original."""
    outcome = finding.outcome
    original, migrated = outcome.original, outcome.migrated
    relative, ulp = None, None
    if original is not None and migrated is not None:
        relative = outcome.absolute / abs(original) if original else None
        ulp = compare.ulp_distance(original, migrated)
    if outcome.kind is not compare.Kind.VALUE:
        causes = (outcome.detail, *causes)
    return Divergence(
        tensor=str(finding.quantity),
        original=original,
        migrated=migrated,
        step=finding.step,
        task=(tasks or {}).get(finding.quantity.name) if finding.quantity.family == "loss" else None,
        index=outcome.index,
        absolute=outcome.absolute if outcome.kind is compare.Kind.VALUE else None,
        relative=relative,
        ulp=ulp,
        ratio=finding.ratio,
        causes=causes,
    )
