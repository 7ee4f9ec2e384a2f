"""The parts of the document that are one kind of evidence each, as JSON can hold them."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from migrator.harness.protocol.results import (
    AsyncEvidence,
    Control,
    Divergence,
    LevelResult,
    MutantOutcome,
    Randomness,
    Remedy,
    Status,
)
from migrator.harness.recording import SourceLine

Document = dict[str, Any]
#: Longest source line that a report shows, in characters.
LONGEST_LINE = 300


@dataclass(frozen=True)
class EvaluationRow:
    """One metric of one evaluation (L7).

    `original` and `own_weights` are what the two programs say of the weights that each trained itself,
    `same_weights` what the migrated program says of the original's. `ratio` is the difference between `original`
    and `same_weights` in noise floors, `own_ratio` that between `original` and `own_weights`. `status` is "inside",
    "outside" or "not compared".
    """

    metric: str
    original: float | None
    same_weights: float | None
    own_weights: float | None
    ratio: float | None
    status: str
    step: int | None = None
    own_ratio: float | None = None


def source(line: SourceLine | None) -> Document | None:
    """A place in a user's file with the text of its line, read now; the text is empty where it cannot be read."""
    if line is None:
        return None
    linecache.checkcache(line.path)
    text = linecache.getline(line.path, line.line).rstrip()
    return {"path": line.path, "line": line.line, "text": text[:LONGEST_LINE]}


def divergence(found: Divergence) -> Document:
    """A place where the programs part."""
    return {
        "tensor": found.tensor,
        "step": found.step,
        "task": found.task,
        "index": None if found.index is None else list(found.index),
        "original": found.original,
        "migrated": found.migrated,
        "abs": found.absolute,
        "rel": found.relative,
        "ulp": found.ulp,
        "ratio": found.ratio,
        "causes": list(found.causes),
        "original_source": source(found.original_source),
        "migrated_source": source(found.migrated_source),
    }


def level(result: LevelResult) -> Document:
    """What one level found."""
    return {
        "id": result.id,
        "title": result.title,
        "status": result.status.value,
        "summary": result.summary,
        "reason_code": None if result.reason is None else result.reason.value,
        "statistic": result.statistic,
        "floor": result.floor,
        "tolerance": result.tolerance,
        "ratio": result.ratio,
        "control": _control(result.control),
        "horizon_step": result.horizon_step,
        "differences": [divergence(d) for d in result.differences],
        "notes": list(result.notes),
        "duration_s": result.seconds,
        "excluded": result.excluded,
    }


def _control(control: Control | None) -> Document | None:
    return None if control is None else {"name": control.name, "detected": control.detected, "ratio": control.ratio}


def mutants(outcomes: Sequence[MutantOutcome]) -> list[Document]:
    """The known-bad versions, those that were missed first: they limit what the verdict means."""
    worst_first = ("missed", "not_exercised", "killed", "not_applicable")
    return [
        {
            "id": outcome.id,
            "description": outcome.description,
            "expected_level": outcome.expected_level,
            "status": outcome.status,
            "killed_at": outcome.killed_at,
            "ratio": outcome.ratio,
            "detail": outcome.detail,
            "duration_s": outcome.seconds,
        }
        for outcome in sorted(outcomes, key=lambda outcome: worst_first.index(outcome.status))
    ]


def randomness(sources: Sequence[Randomness]) -> list[Document]:
    """What was done about each source of randomness."""
    return [asdict(item) for item in sources]


def remedy(found: Remedy | None) -> Document | None:
    """What settles an inconclusive or failed verdict."""
    return None if found is None else asdict(found)


def evaluations(rows: Sequence[EvaluationRow], noise: Mapping[tuple[str, int | None], float]) -> list[Document]:
    """The metrics of the evaluations, in the order given; `noise` is by metric and step how far apart two runs of
    one program may be in it.
    """
    return [{**asdict(row), "noise": noise.get((row.metric, row.step))} for row in rows]


def asynchronous(evidence: AsyncEvidence | None) -> Document | None:
    """What the paired seeds of the free cluster showed."""
    if evidence is None:
        return None
    return {
        "k": evidence.k,
        "steps": evidence.steps,
        "promised": evidence.promised,
        "margin": evidence.margin,
        "estimate": evidence.estimate,
        "ci90": list(evidence.ci90),
        "p_equivalent": evidence.p_equivalent,
        "p_different": evidence.p_different,
        "windows": [
            {
                "first_step": window.first_step,
                "last_step": window.last_step,
                "estimate": window.estimate,
                "ci90": list(window.ci90),
                "sensitive": window.sensitive,
                "passed": window.passed,
            }
            for window in evidence.windows
        ],
        "null": {"estimate": evidence.null_estimate, "ci90": list(evidence.null_ci90)},
        "control_estimate": evidence.control_estimate,
        "seeds_needed": evidence.seeds_needed,
        "per_seed": list(evidence.per_seed),
    }


def limits_of_levels(levels: Iterable[LevelResult]) -> list[str]:
    """What the levels say they could not show, and the levels that did not run, those for the same reason together."""
    lines = []
    not_run: dict[str, list[str]] = {}
    for result in levels:
        if result.status is not Status.FAILED:
            lines += [f"{result.id}: {note}" for note in result.notes]
        if result.status is Status.NOT_EXERCISED:
            not_run.setdefault(result.summary, []).append(result.id)
    return lines + [f"{', '.join(names)}: {summary}" for summary, names in not_run.items()]


def limits_of_mutants(outcomes: Iterable[MutantOutcome]) -> list[str]:
    """Known-bad versions that nothing noticed: an error of that kind would go unnoticed too."""
    words = {"missed": "took effect and no level noticed", "not_exercised": "cannot show on this workload"}
    return [
        f"{outcome.description} ({outcome.id}): this known-bad change {words[outcome.status]}"
        + (f"; {outcome.detail}" if outcome.detail else "")
        for outcome in outcomes
        if outcome.status in words
    ]
