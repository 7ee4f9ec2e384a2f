"""L7: the same metrics, of the same weights and of each program's own training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from migrator.harness.protocol import compare
from migrator.harness.protocol.compare import Kind
from migrator.harness.protocol.results import Control, Divergence, LevelResult, Reason, Status, counted
from migrator.harness.protocol.tolerance import EPS, FORWARD, OF_ONE, TRAJECTORY, Tolerance, ratio
from migrator.harness.recording import LOSS_OF_BATCHES, LOSS_OF_EXAMPLES, Evaluation, Recording

ID, TITLE = "L7", "Same evaluation"
CONTROL = "the migrated program's metrics of its initial weights"
SAME, DIFFERS, MISSING, NOT_JUDGED = "same", "different", "missing", "not judged"
# Counted by the training and not measured by the evaluation, and what the recorder adds to the results.
_NO_METRICS = frozenset({"global_step", LOSS_OF_BATCHES, LOSS_OF_EXAMPLES})
_LOSS = "loss"


@dataclass(frozen=True)
class MetricRow:
    """One metric of one evaluation of the original, for the report.

    `same_weights` is the migrated program's value with the original's weights of that step, `own_weights` that of
    its own training at that step; None where there is none. The ratios are in noise floors, and `status` ("same",
    "different", "missing", "not judged") is of the worse of the two.
    """

    metric: str
    step: int | None
    original: float
    same_weights: float | None
    own_weights: float | None
    same_ratio: float | None
    own_ratio: float | None
    status: str


@dataclass(frozen=True)
class _Pair:
    """A value of the original and one of the migrated program, with the floor between them (nan: none).

    `own`: of each program's own training, and not of the same weights.
    """

    metric: str
    own: bool
    evaluation: Evaluation
    original: float
    migrated: float | None
    floor: float
    accepted: float

    @property
    def outcome(self) -> compare.Comparison:
        other = None if self.migrated is None else np.asarray(self.migrated, np.float64)
        return compare.compare(np.asarray(self.original, np.float64), other)

    @property
    def ratio(self) -> float | None:
        found = self.outcome
        if found.kind is Kind.VALUE:
            return ratio(found.absolute, self.floor)
        return None if found.kind is Kind.MISSING else math.inf

    @property
    def status(self) -> str:
        found = self.ratio
        if found is None:
            return MISSING
        if math.isnan(found):
            return NOT_JUDGED
        return DIFFERS if found > self.accepted else SAME


def metrics(evaluation: Evaluation) -> dict[str, float]:
    """The metrics of an evaluation; the global step is none."""
    return {name: value for name, value in evaluation.results.items() if name not in _NO_METRICS}


def _occurrences(evaluations: Sequence[Evaluation], steps: Sequence[int | None]) -> list[tuple[int, int] | None]:
    """(step, how many of this step came before): two data sets may be evaluated at one step."""
    seen: dict[int, int] = {}
    keys: list[tuple[int, int] | None] = []
    for step in steps:
        if step is None:
            keys.append(None)
            continue
        keys.append((step, seen.get(step, 0)))
        seen[step] = seen.get(step, 0) + 1
    return keys


def _by_step(evaluations: Sequence[Evaluation]) -> dict[tuple[int, int], Evaluation]:
    keys = _occurrences(evaluations, [e.step for e in evaluations])
    return {key: e for key, e in zip(keys, evaluations, strict=True) if key is not None}


def _same_weights(original: Recording, migrated: Recording) -> list[tuple[Evaluation, Evaluation]]:
    """Each evaluation of the migrated program that was repeated with the original's weights of a step, behind the
    original's own evaluation of that step.
    """
    ours = _by_step(original.evaluations)
    repeated = [e for e in migrated.evaluations if e.same_weights is not None]
    keys = _occurrences(repeated, [e.weights_step for e in repeated])
    pairs: dict[tuple[int, int], tuple[Evaluation, Evaluation]] = {}
    for key, other in zip(keys, repeated, strict=True):
        if key is None:
            continue
        # Several evaluations of the migrated program may have been given the weights of one step: the first counts.
        step, number = key
        mine = ours.get((step, number)) if _repeats(ours, step) else ours.get((step, 0))
        if mine is not None:
            pairs.setdefault((step, number if _repeats(ours, step) else 0), (mine, other))
    return list(pairs.values())


def _repeats(evaluations: Mapping[tuple[int, int], Evaluation], step: int) -> bool:
    return (step, 1) in evaluations


def _own(original: Recording, migrated: Recording) -> list[tuple[Evaluation, Evaluation]]:
    """The evaluations of both programs' own training, paired by step; in order if the steps are not known."""
    if any(e.step is None for e in (*original.evaluations, *migrated.evaluations)):
        return list(zip(original.evaluations, migrated.evaluations, strict=False))
    ours, theirs = _by_step(original.evaluations), _by_step(migrated.evaluations)
    return [(ours[key], theirs[key]) for key in ours if key in theirs]


def with_training_of(migrated: Recording, replayed: Recording) -> Recording:
    """The recording with the results, and what was printed, of the training that read the original's batches; the rest
    as it was.
    """
    migrated = replace(migrated, printed=replayed.printed, printed_whole=replayed.printed_whole)
    if any(e.step is None for e in (*migrated.evaluations, *replayed.evaluations)):
        return migrated
    theirs = _by_step(replayed.evaluations)
    evaluations = tuple(
        replace(evaluation, results=theirs[key].results)
        for key, evaluation in _by_step(migrated.evaluations).items()
        if key in theirs
    )
    return replace(migrated, evaluations=evaluations)


def _spreads(original: Recording, replicates: Sequence[Recording]) -> dict[tuple[int, str], float]:
    """For each evaluation of the original (by position) and metric how far the replicates' values are from it.

    Only where at least two replicates evaluated at that step, or the only one, which counts OF_ONE times.
    """
    needed = min(2, len(replicates))
    factor = OF_ONE if len(replicates) == 1 else 1.0
    found: dict[tuple[int, str], list[float]] = {}
    places = {id(evaluation): place for place, evaluation in enumerate(original.evaluations)}
    for replicate in replicates:
        for mine, other in _own(original, replicate):
            for name, value in metrics(mine).items():
                if name in other.results:
                    found.setdefault((places[id(mine)], name), []).append(abs(other.results[name] - value))
    return {key: factor * max(gaps) for key, gaps in found.items() if len(gaps) >= needed}


def _noise(original: Recording) -> dict[str, float]:
    """For each metric how far the original's own moves when its weights move by one ulp, in any of its evaluations."""
    found: dict[str, float] = {}
    for evaluation in original.evaluations:
        for name, value in metrics(evaluation).items():
            gaps = [abs(moved[name] - value) for moved in evaluation.nudged if name in moved]
            finite = [gap for gap in gaps if math.isfinite(gap)]
            found[name] = max([found.get(name, 0.0), *finite])
    return found


def _comparable(values: Mapping[str, float], name: str, limits: Tolerance, original: Evaluation) -> float | None:
    """A migrated program's metric as the original would report it.

    Keras reports its loss as the mean over examples, Estimator as that of the batches. Where the reported loss is
    indeed the mean over examples, the mean over the same batches is what can be compared; unless the original is a
    Keras program, too.
    """
    reported = values.get(name)
    if name != _LOSS or not _mean_of_examples(values, limits) or _mean_of_examples(original.results, limits):
        return reported
    return values[LOSS_OF_BATCHES]


def _mean_of_examples(values: Mapping[str, float], limits: Tolerance) -> bool:
    """Whether the reported loss of an evaluation is the mean over its examples, and that over its batches is known."""
    reported, of_examples = values.get(_LOSS), values.get(LOSS_OF_EXAMPLES)
    if reported is None or of_examples is None or LOSS_OF_BATCHES not in values:
        return False
    return abs(reported - of_examples) <= limits.c[FORWARD] * _rounding(reported, limits)


def _rounding(value: float, limits: Tolerance) -> float:
    """What float32 arithmetic allows for a metric: a few roundings of it, and of the sums behind it."""
    return EPS * (4.0 + math.sqrt(limits.terms)) * abs(value)


@dataclass(frozen=True)
class _Comparison:
    same: tuple[_Pair, ...]
    own: tuple[_Pair, ...]
    control: tuple[_Pair, ...]


def _compare(
    original: Recording,
    migrated: Recording,
    limits: Tolerance,
    replicates: Sequence[Recording],
    metric_names: Mapping[str, str],
) -> _Comparison:
    return _pairs(original, migrated, limits, _spreads(original, replicates), metric_names)


def _pairs(
    original: Recording,
    migrated: Recording,
    limits: Tolerance,
    spreads: Mapping[tuple[int, str], float],
    metric_names: Mapping[str, str],
) -> _Comparison:
    noise = _noise(original)
    places = {id(evaluation): place for place, evaluation in enumerate(original.evaluations)}

    def pairs(both: Sequence[tuple[Evaluation, Evaluation]], which: str, part: str) -> Iterator[_Pair]:
        for mine, other in both:
            values = {"same": other.same_weights, "control": other.control, "own": other.results}[which]
            if values is None:
                continue
            for name, value in metrics(mine).items():
                # A trained replicate has other weights: it says nothing about the same ones.
                spread = spreads.get((places[id(mine)], name)) if which == "own" else noise.get(name, 0.0)
                floor = math.nan if spread is None else max(_rounding(value, limits), spread)
                found = _comparable(values, metric_names.get(name, name), limits, mine)
                yield _Pair(name, which == "own", mine, value, found, floor, limits.c[part])

    repeated = _same_weights(original, migrated)
    same = tuple(pairs(repeated, "same", FORWARD))
    return _Comparison(
        same,
        _without_flips(same, tuple(pairs(_own(original, migrated), "own", TRAJECTORY)), limits),
        tuple(pairs(repeated, "control", FORWARD)),
    )


def _without_flips(same: Sequence[_Pair], own: Sequence[_Pair], limits: Tolerance) -> tuple[_Pair, ...]:
    """The pairs of own trainings, with no floor where a metric counts examples and no replicate counted another number.

    How far one example moves such a metric is not known then. It is left to the evaluation of the same weights, which
    has to agree, as has another metric of the same training that does move.
    """
    agreed = {
        metric for metric in {p.metric for p in same} if all(p.status == SAME for p in same if p.metric == metric)
    }
    moves = {
        id(p.evaluation)
        for p in own
        if p.status == SAME and p.floor > _rounding(p.original, limits) and p.metric in agreed
    }
    return tuple(
        replace(p, floor=math.nan)
        if p.status == DIFFERS
        and p.metric in agreed
        and p.outcome.kind is Kind.VALUE
        and p.floor <= _rounding(p.original, limits)
        and id(p.evaluation) in moves
        else p
        for p in own
    )


def agrees_strictly(original: Recording, migrated: Recording, limits: Tolerance) -> bool:
    """Whether the metrics of each program's own training that both have are no further apart than rounding, and those
    of the same weights inside the limits: no spread of the trainings is needed then. Arguments as for `judge`.
    """
    spreads = dict.fromkeys(
        ((place, name) for place, one in enumerate(original.evaluations) for name in metrics(one)), 0.0
    )
    names = _paired(original, migrated, limits, {})
    found = _pairs(original, migrated, limits, spreads, names)
    return all(pair.status in (SAME, MISSING) for pair in (*found.same, *found.own))


_WORST = (DIFFERS, MISSING, NOT_JUDGED, SAME)


def rows(
    original: Recording,
    migrated: Recording,
    limits: Tolerance,
    *,
    replicates: Sequence[Recording] = (),
    metric_names: Mapping[str, str] | None = None,
) -> tuple[MetricRow, ...]:
    """Every metric of every evaluation of the original beside the migrated program's. Arguments as for `judge`."""
    found = _compare(original, migrated, limits, replicates, _paired(original, migrated, limits, metric_names or {}))
    same = {(id(p.evaluation), p.metric): p for p in found.same}
    own = {(id(p.evaluation), p.metric): p for p in found.own}
    table: list[MetricRow] = []
    for evaluation in original.evaluations:
        for name, value in metrics(evaluation).items():
            pairs = same.get((id(evaluation), name)), own.get((id(evaluation), name))
            values = [None if p is None else p.migrated for p in pairs]
            ratios = [None if p is None else p.ratio for p in pairs]
            statuses = {p.status for p in pairs if p is not None}
            status = next((s for s in _WORST if s in statuses), MISSING)
            table.append(MetricRow(name, evaluation.step, value, values[0], values[1], ratios[0], ratios[1], status))
    return tuple(table)


def judge(
    original: Recording,
    migrated: Recording,
    limits: Tolerance,
    *,
    replicates: Sequence[Recording] = (),
    metric_names: Mapping[str, str] | None = None,
) -> LevelResult:
    """Compares the metrics (a) of the original's weights, evaluated by both programs, and (b) of each one's own
    training.

    (a) may differ by rounding alone, or as far as the original's metrics move with its weights moved by one ulp
    (`Evaluation.nudged`); (b) by what the `replicates` (recordings of the original moved by one ulp before training,
    with their evaluations) show at that step, and is not judged without replicates, or where only one of several has
    evaluated. The control is the
    migrated evaluation of the run's initial weights, of which at least one metric must differ.
    `metric_names` gives the migrated name of a metric of the original where it has another; metrics of another name
    are found by their values, too.
    """
    problem = _not_evaluated(original, migrated)
    if problem is not None:
        return problem
    names = _paired(original, migrated, limits, metric_names or {})
    found = _compare(original, migrated, limits, replicates, names)
    control = Control(
        CONTROL,
        any(p.status == DIFFERS for p in found.control),
        max((p.ratio for p in found.control if p.ratio is not None and not math.isnan(p.ratio)), default=None),
    )
    renamed = sorted(set(names) - set(metric_names or {}))
    as_told = tuple(f"{name} is the migrated program's {names[name]}" for name in renamed)
    notes = (*as_told, *_notes(original, migrated, found, names))
    judged = [*found.same, *(p for p in found.own if p.status != NOT_JUDGED)]
    numbers = [p for p in judged if p.ratio is not None]
    worst = max(numbers, key=lambda p: p.ratio or 0.0, default=None)
    result = LevelResult(ID, TITLE, Status.EQUIVALENT, _agreement(found, worst), control=control, notes=notes)
    if worst is not None:
        result = replace(
            result,
            statistic=worst.outcome.absolute,
            floor=worst.floor,
            tolerance=worst.accepted,
            ratio=worst.ratio,
        )

    def inconclusive(reason: Reason, summary: str) -> LevelResult:
        return replace(result, status=Status.INCONCLUSIVE, reason=reason, summary=summary)

    broken = next((p for p in judged if not math.isfinite(p.original)), None)
    if broken is not None:
        return inconclusive(
            Reason.NON_FINITE, f"the original's own {broken.metric} is {broken.original} at step {_step(broken)}"
        )
    different = [p for p in judged if p.status == DIFFERS]
    if different:
        first = different[0]
        which = "of its own training" if first.own else "of the same weights"
        return replace(
            result,
            status=Status.DIFFERENT,
            reason=Reason.VALUE_DIFFERS,
            summary=f"{first.metric} {which} of step {_step(first)} is {first.migrated:.9g}, and {first.original:.9g} "
            f"in the original: {first.ratio:.3g} noise floors apart (accepted: {first.accepted:.3g})"
            + (f"; {len(different) - 1} more" if len(different) > 1 else ""),
            differences=tuple(_divergence(p, found, original, migrated) for p in different),
        )
    if not found.same:
        told = next((f": {e.note}" for e in migrated.evaluations if e.note), "")
        return inconclusive(
            Reason.MISSING_VALUES, f"the migrated program did not evaluate the original's weights of any step{told}"
        )
    absent = sorted({p.metric for p in judged if p.status == MISSING} - _left_out(found, migrated, names))
    if absent:
        return inconclusive(Reason.MISSING_VALUES, f"only the original has {', '.join(absent)}")
    if not control.detected:
        summary = (
            f"this workload cannot show the error: {CONTROL} are those of the trained ones"
            if found.control
            else f"the control could not be run: {CONTROL}"
        )
        return inconclusive(Reason.CONTROL_NOT_DETECTED, summary)
    return result


def _not_evaluated(original: Recording, migrated: Recording) -> LevelResult | None:
    if not original.evaluations:
        notes: tuple[str, ...] = ()
        if migrated.evaluations:
            notes = (
                f"the migrated program evaluates {len(migrated.evaluations)} time(s), and the original never does",
            )
        return LevelResult(ID, TITLE, Status.NOT_APPLICABLE, "the original never evaluates", notes=notes)
    if not migrated.evaluations:
        count = len(original.evaluations)
        # What a program computes of its predictions is not seen as an evaluation.
        told = None
        if migrated.loop:
            told = f"the original evaluates {count} time(s); no evaluation of the migrated program's own loop was seen"
        elif migrated.predictions and _prints_metrics(original, migrated):
            told = (
                f"the original evaluates {count} time(s); the migrated program predicts, and prints the metrics that "
                "the original reports: how it comes by them was not seen"
            )
        if told is not None:
            return LevelResult(ID, TITLE, Status.NOT_EXERCISED, told, Reason.NOT_EXERCISED)
        first = Divergence("evaluations", float(count), 0.0, causes=("evaluate() or validation_data was left out",))
        return LevelResult(
            ID,
            TITLE,
            Status.DIFFERENT,
            f"the original evaluates {count} time(s), and the migrated program never does",
            Reason.SETTING_DIFFERS,
            differences=(first,),
        )
    return None


# How far a printed metric may be off, as a share: it is that of another training of as many steps, and is rounded.
_AS_PRINTED = 1e-4


def _prints_metrics(original: Recording, migrated: Recording) -> bool:
    """Whether the migrated program prints each metric that the original was asked for (a loss it is not asked for)."""
    wanted = {
        value
        for evaluation in original.evaluations
        for name, value in metrics(evaluation).items()
        if name != _LOSS and name not in evaluation.unasked
    }
    return bool(wanted) and all(
        any(abs(one - value) <= _AS_PRINTED * abs(value) for one in migrated.printed) for value in wanted
    )


def _step(pair: _Pair) -> str:
    return "?" if pair.evaluation.step is None else str(pair.evaluation.step)


def _agreement(found: _Comparison, worst: _Pair | None) -> str:
    names = sorted({p.metric for p in found.same})
    own = [p for p in found.own if p.status == SAME]
    told = (
        ""
        if worst is None or worst.ratio is None
        else " bit for bit"
        if worst.ratio == 0.0
        else f" within {worst.ratio:.2g} noise floors (accepted: {worst.accepted:.3g})"
    )
    summary = f"{', '.join(names)} of the same weights agree{told}"
    if own:
        steps = len({p.evaluation.step for p in own})
        summary += f", and so do those of each program's own training in {counted(steps, 'evaluation')}"
    return summary


def _paired(original: Recording, migrated: Recording, limits: Tolerance, given: Mapping[str, str]) -> Mapping[str, str]:
    """The migrated names of metrics that have another there, `given` and found: those that only one program has, with
    the same value of the same weights wherever both evaluate, or else those that end in the original's name.
    """
    both, noise = _same_weights(original, migrated), _noise(original)
    ours = [name for mine, _ in both[:1] for name in metrics(mine) if name not in given]
    theirs = {name for _, other in both for name in other.same_weights or {}} - _NO_METRICS
    names, free = dict(given), sorted(theirs - set(ours) - set(given.values()))
    accepted = limits.c[FORWARD]

    def alike(name: str, other: str) -> bool:
        found = [(mine.results.get(name), (one.same_weights or {}).get(other)) for mine, one in both]
        return all(
            a is not None and b is not None and abs(a - b) <= accepted * max(_rounding(a, limits), noise.get(name, 0.0))
            for a, b in found
        )

    # Keras puts the name of the output before those of its metrics, and loops what they evaluate.
    called = {name: [one for one in free if one.endswith(f"_{name}") and name != _LOSS] for name in ours}
    for name in ours:
        if name not in theirs:
            by_name = called[name] if len(called[name]) == 1 else []
            other = next((one for one in (*by_name, *free) if one in free and alike(name, one)), None)
            other = other or next((one for one in by_name if one in free), None)
            if other is not None:
                names[name] = other
                free.remove(other)
    return names


def _left_out(found: _Comparison, migrated: Recording, names: Mapping[str, str]) -> set[str]:
    """Metrics that Estimator reports whether the program asks or not, which need not be evaluated if another agrees.

    Those of a premade Estimator; the loss of any other where a loop of the program's own evaluates nothing but the
    other metrics of the original: with a number more it may mean the loss.
    """
    agree = {p.metric for p in found.same if p.status == SAME}
    unasked = {name for p in found.same for name in p.evaluation.unasked}
    known = {names.get(p.metric, p.metric) for p in found.same}
    more = {name for e in migrated.evaluations for name in metrics(e)} - known
    if not agree:
        return set()
    return (unasked - {_LOSS}) | ({_LOSS} if migrated.loop and not more else set())


def _notes(original: Recording, migrated: Recording, found: _Comparison, names: Mapping[str, str]) -> tuple[str, ...]:
    notes = []
    steps = [[e.step for e in r.evaluations if e.step is not None] for r in (original, migrated)]
    if steps[0] != steps[1]:
        shown = [", ".join(map(str, side)) or "unknown steps" for side in steps]
        notes.append(f"the original evaluates at {shown[0]}, the migrated program at {shown[1]}")
    known = {names.get(name, name) for e in original.evaluations for name in metrics(e)}
    extra = sorted({name for e in migrated.evaluations for name in metrics(e)} - known)
    if extra:
        notes.append(f"metrics that only the migrated program has: {', '.join(extra)}")
    missing = {p.metric for p in found.same if p.status == MISSING} & _left_out(found, migrated, names)
    if missing:
        listed = ", ".join(sorted(missing))
        notes.append(f"only the original has {listed}, which Estimator reports without being asked")
    of_keras = any(LOSS_OF_BATCHES in evaluation.results for evaluation in original.evaluations)
    for evaluation in () if of_keras else migrated.evaluations:
        reported, of_batches = evaluation.results.get(_LOSS), evaluation.results.get(LOSS_OF_BATCHES)
        if reported is None or of_batches is None or abs(reported - of_batches) <= 1e-4 * abs(of_batches):
            continue
        notes.append(
            f"Keras reports a loss of {reported:.6g}, the mean over examples; compared is the mean of the batches, "
            f"{of_batches:.6g}, which is what Estimator reports: they differ because the last batch is partial"
        )
        break
    unjudged = [p for p in found.own if p.status == NOT_JUDGED]
    flips = [p for p in unjudged if _judged_beside(found, p)]
    for pair in flips:
        notes.append(
            f"{pair.metric} of its own training of step {_step(pair)} is {pair.migrated:.9g}, and {pair.original:.9g} "
            "in the original; of the same weights they agree, and no replicate moved it: how far one example moves it "
            "is not known"
        )
    if len(unjudged) > len(flips) or not found.own:
        notes.append(
            "metrics of each program's own training: "
            + ("not judged, because fewer than two replicates evaluated there" if found.own else "no common step")
        )
    return tuple(notes)


def _judged_beside(found: _Comparison, pair: _Pair) -> bool:
    """Whether another metric of the same evaluation of its own training was judged."""
    return any(p.evaluation is pair.evaluation and p.status in (SAME, DIFFERS) for p in found.own)


def _divergence(pair: _Pair, found: _Comparison, original: Recording, migrated: Recording) -> Divergence:
    outcome = pair.outcome
    return Divergence(
        pair.metric + (" of its own training" if pair.own else ""),
        pair.original,
        pair.migrated,
        step=pair.evaluation.step,
        task=pair.evaluation.task,
        absolute=outcome.absolute if outcome.kind is Kind.VALUE else None,
        relative=outcome.absolute / abs(pair.original) if pair.original and outcome.kind is Kind.VALUE else None,
        ulp=None if pair.migrated is None else compare.ulp_distance(pair.original, pair.migrated),
        ratio=pair.ratio,
        causes=_causes(pair, found, original, migrated),
        original_source=original.sources.get("loss") if pair.metric == _LOSS else None,
        migrated_source=migrated.sources.get("loss") if pair.metric == _LOSS else None,
    )


def _causes(pair: _Pair, found: _Comparison, original: Recording, migrated: Recording) -> tuple[str, ...]:
    if pair.migrated is None or not math.isfinite(pair.migrated):
        return ("the migrated program's metric is no number",)
    if pair.own:
        same = [p for p in found.same if p.metric == pair.metric]
        if same and all(p.status == SAME for p in same):
            return ("the metric itself agrees on the same weights: the trainings part, or another step is evaluated",)
    causes = []
    others = [p for p in (found.same or found.own) if p.metric != _LOSS]
    if pair.metric == _LOSS:
        if others and all(p.status == SAME for p in others):
            causes.append(
                f"only the loss differs ({counted(len({p.metric for p in others}), 'other metric')} judged the same): "
                "TF1's evaluate() averages the batches and Keras' the examples, which is another number if the last "
                "batch is partial"
            )
        else:
            causes.append(
                "TF1's evaluate() averages the batches and Keras' the examples: another number if the last batch is "
                "partial"
            )
        for owner, recording in (("original", original), ("migrated program", migrated)):
            term = recording.regularization
            if term:
                causes.append(f"one of the two adds its regularisation ({term:.4g} at step 1 in the {owner})")
                break
    lowered = pair.metric.lower()
    if "auc" in lowered:
        causes.append("another summation or number of thresholds (TF1: 200, trapezoidal), or streaming across calls")
    if _same_share(pair):
        causes.append(f"it is {pair.migrated / pair.original:.6g} times the original's: summed or averaged another way")
    causes.append("other evaluation data (steps, batch size, shuffling, drop_remainder), or layers in training mode")
    return tuple(causes)


def _same_share(pair: _Pair) -> bool:
    if not pair.original or pair.migrated is None:
        return False
    share = pair.migrated / pair.original
    return share > 0 and any(abs(x - round(x)) < 1e-4 and round(x) > 1 for x in (share, 1.0 / share))
