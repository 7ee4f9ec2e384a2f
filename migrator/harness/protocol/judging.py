"""Judging two tables of measurements against the noise floor: what L3, L4, L5 and L5s have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from migrator.harness.protocol import compare, tolerance
from migrator.harness.protocol.measurements import (
    ACTIVATION,
    GRADIENT,
    LOSS,
    REGULARIZATION,
    SLOT,
    STATE,
    Measurements,
    Others,
    Quantity,
    activations,
)
from migrator.harness.protocol.results import Control, Divergence, LevelResult, Reason, Status
from migrator.harness.recording import Recording

# Differences beyond these are counted in the summary and not listed.
LISTED = 50


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
    def is_value(self) -> bool:
        """Whether the two sides could be compared number by number."""
        return self.outcome.kind is compare.Kind.VALUE

    @property
    def outside(self) -> bool:
        """Shown to differ: a number beyond the tolerance, another shape or dtype, non-finite, or absent."""
        if self.is_value:
            return self.ratio > self.accepted
        return self.outcome.kind is not compare.Kind.EMPTY

    @property
    def unjudged(self) -> bool:
        """Neither shown equal nor shown different: nothing to compare, or no floor to compare with."""
        return self.outcome.kind is compare.Kind.EMPTY or (self.is_value and math.isnan(self.ratio))


@dataclass(frozen=True)
class Judgement:
    """All findings of one comparison, first step first, and within a step in the order of computation."""

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

    def where(self, keep: Callable[[Finding], bool]) -> Judgement:
        """The findings for which `keep` holds."""
        return Judgement(tuple(f for f in self.findings if keep(f)))

    def strongest(self) -> float | None:
        """The greatest ratio among findings that carry a number and a floor; None if there is none."""
        return max((f.ratio for f in self.findings if f.is_value and not math.isnan(f.ratio)), default=None)


_FAMILY_ORDER = {ACTIVATION: 0, REGULARIZATION: 1, LOSS: 2, GRADIENT: 3, SLOT: 4, STATE: 5}


def positions(recording: Recording | None) -> Callable[[Quantity], float]:
    """The place of a quantity among those of its family and step: the order in which a step computes them.

    Layer outputs come in call order, gradients in reverse creation order of the variables (as the backward pass
    makes them), slots and weights in creation order, losses by trainer. Unknown names come last.
    """
    if recording is None:
        return lambda quantity: 0.0
    created = {variable.name: variable.order for variable in recording.variables}
    called = {quantity.name: i for i, (quantity, _) in enumerate(activations(recording))}

    def position(quantity: Quantity) -> float:
        if quantity.family == LOSS:
            return float(quantity.name)
        if quantity.family == ACTIVATION:
            return called.get(quantity.name, math.inf)
        place = created.get(quantity.name, math.inf)
        return -place if quantity.family == GRADIENT and math.isfinite(place) else place

    return position


def judge(
    original: Measurements, other: Others, limits: tolerance.Tolerance, recording: Recording | None = None
) -> Judgement:
    """Compares every quantity that either side has; one that only one side has is outside whatever the
    tolerance.

    `recording` (the original's) gives the order of the findings within a step; without it that is by name.
    """
    position = positions(recording)
    findings = []
    for key in sorted(
        set(original) | set(other), key=lambda k: (k[1], _FAMILY_ORDER[k[0].family], position(k[0]), k[0])
    ):
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


def described(finding: Finding) -> str:
    """Where a finding differs, and by how much, as a sentence without its full stop."""
    outcome = finding.outcome
    place = f"{finding.quantity} differs at step {finding.step}: "
    if not finding.is_value:
        return place + outcome.detail
    return (
        f"{place}{outcome.original:.9g} against {outcome.migrated:.9g}, {finding.ratio:.3g} noise floors apart "
        f"(accepted: {finding.accepted:.3g})"
    )


def smallest_error(control: Judgement | None, accepted: float, factor: float) -> str | None:
    """The smallest error of the learning rate that a level rules out, in words; None if the control shows none.

    `control` judges a run with `factor` times the right rate, `accepted` is what passes for noise. To first order
    the effect of a small error is proportional to it, so if the control stands out by r floors, one of
    (factor-1)*accepted/r is the least that would have been seen.
    """
    strongest = None if control is None else control.strongest()
    if strongest is None or not math.isfinite(strongest) or strongest <= accepted:
        return None
    error = 100.0 * (factor - 1.0) * accepted / strongest
    return f"a learning rate {error:.2g} % off would have been seen"


def outcome(
    level_id: str,
    title: str,
    judged: Judgement,
    *,
    agrees: str,
    nothing: str,
    control: Control,
    control_ran: bool,
    stable: bool,
    divergences: Callable[[Sequence[Finding]], Sequence[Divergence]],
    beyond: str | None = None,
    horizon_step: int | None = None,
    notes: Iterable[str] = (),
    excluded: str | None = None,
) -> LevelResult:
    """The result of a level whose findings are `judged`.

    In this order: nothing compared (`nothing` says so) is INCONCLUSIVE; anything outside is DIFFERENT, and then
    `divergences` explains what is outside; a tensor without elements, INCONCLUSIVE; no floor, or replicates that
    are not `stable`, INCONCLUSIVE; a control that did not run or stayed inside, INCONCLUSIVE; a difference `beyond`
    the trusted steps (a sentence), INCONCLUSIVE; else EQUIVALENT, with a summary that begins with `agrees`.
    """
    worst = judged.worst
    if worst is None:
        return LevelResult(
            level_id, title, Status.INCONCLUSIVE, nothing, Reason.MISSING_VALUES, control=control, notes=tuple(notes)
        )
    status, reason = Status.EQUIVALENT, None
    differences: tuple[Divergence, ...] = ()
    summary = f"{agrees} {agreement(worst)}"
    if worst.ratio:
        summary += f", the worst being {worst.quantity} of step {worst.step}"
    outside = judged.outside
    if outside:
        status, reason = Status.DIFFERENT, Reason.VALUE_DIFFERS
        summary = described(outside[0]) + (
            f"; {len(outside) - 1} more, in order of computation" if len(outside) > 1 else ""
        )
        differences = tuple(divergences(outside[:LISTED]))
    elif any(f.outcome.kind is compare.Kind.EMPTY for f in judged.findings):
        first = next(f for f in judged.findings if f.outcome.kind is compare.Kind.EMPTY)
        status, reason = Status.INCONCLUSIVE, Reason.MISSING_VALUES
        summary = f"{first.quantity} of step {first.step} has no elements: there is nothing to compare"
    elif judged.unjudged or not stable:
        status, reason = Status.INCONCLUSIVE, Reason.ENVIRONMENT_UNSTABLE
        summary = "the original's own replicates disagree too much to give a noise floor"
    elif not control_ran:
        status, reason = Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED
        summary = f"the control could not be run: {control.name}"
    elif not control.detected:
        status, reason = Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED
        summary = f"this workload cannot show the error: {control.name} stays inside the tolerance too"
    elif beyond is not None:
        status, reason, summary = Status.INCONCLUSIVE, Reason.BEYOND_TRUSTED_HORIZON, beyond
    return LevelResult(
        level_id,
        title,
        status,
        summary,
        reason,
        worst.outcome.absolute,
        worst.floor,
        worst.accepted,
        worst.ratio,
        control,
        horizon_step,
        differences,
        tuple(notes),
        excluded=excluded if status is Status.EQUIVALENT else None,
    )


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
        task=(tasks or {}).get(finding.quantity.name) if finding.quantity.family == LOSS else None,
        index=outcome.index,
        absolute=outcome.absolute if outcome.kind is compare.Kind.VALUE else None,
        relative=relative,
        ulp=ulp,
        ratio=finding.ratio,
        causes=causes,
    )
