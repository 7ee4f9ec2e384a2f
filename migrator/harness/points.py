"""Steps judged one at a time: both programs take single steps from the same weights, slots and count of steps.

The points are the start, what the original had come to at the steps where its weights were recorded, the steps where
its learning rate changes (also steps that no run reaches: the count is set to them), and batches and weights so great
that branches are taken which the data never took. Nothing of the training between them is run, so that the cost does
not grow with it, and nothing that grew in it (rounding, chaos) is part of what is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from migrator.harness import checkpoints, spared
from migrator.harness.case import Case, one_trainer
from migrator.harness.migrated import MigratedEvidence
from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol import l4b_single_steps, tolerance
from migrator.harness.protocol.l1_variables import AVERAGE
from migrator.harness.protocol.results import LevelResult, Status
from migrator.harness.recording import Array, Batch, Recording, RecordingError, chosen_batches, read_batch
from migrator.harness.room import BYTES, bytes_of
from migrator.harness.runs import (
    Run,
    Session,
    migrated_shape,
    one_interpreter,
    recording_of,
    run_program,
    weights_file,
)

#: Replicates of the original from each point, moved by one unit in the last place. One is enough where no number is
#: further apart than one rounding takes it.
REPLICATES = 3
#: What is greater than in the training, where there is room for all points: of features and labels as far as they are
#: floats. A feature of 1e-6 is where an epsilon is no longer next to nothing, great weights behind great features are
#: behind what limits a layer's output.
_STRESSES: tuple[Mapping[str, float], ...] = (
    {"weights": 10.0},
    {"weights": 100.0},
    {"features": 30.0},
    {"features": 1000.0},
    {"features": 1e-6},
    {"features": 30.0, "weights": 100.0},
    {"labels": 30.0},
    {"labels": 1000.0},
)
#: And where each point takes a run of its own.
_FEW_STRESSES: tuple[Mapping[str, float], ...] = (
    {"features": 1000.0, "labels": 1000.0},
    {"features": 30.0, "weights": 100.0},
    {"features": 1e-6},
)
#: The points where the rate changes, of those that a run reached and of those that stand in its graph.
_CHANGES = 4
_FAR = 10
# Trainings whose losses are this close, as shares, are in the same place.
_TOGETHER = 1e-3


@dataclass(frozen=True)
class Point:
    """One step: its number, the recorded step whose weights and slots it starts from (0: the start of the training),
    the batch of each trainer, and by what the features, the labels and the weights are multiplied to stress it. With
    `beside` it starts from weights that are moved a little, in another way for each number.
    """

    step: int
    state: int
    batches: tuple[Batch, ...]
    features: float = 1.0
    labels: float = 1.0
    weights: float = 1.0
    beside: int = 0

    @property
    def stress(self) -> str:
        """What is greater than in the training, in words; empty where nothing is."""
        parts = (("features", self.features), ("labels", self.labels), ("weights", self.weights))
        return " and ".join(f"{what} times {factor:g}" for what, factor in parts if factor != 1.0)

    def change(self, path: str, value: Array) -> Array:
        """A component of the batch as this point has it."""
        factor = self.labels if path.startswith("labels") else self.features
        if factor == 1.0 or value.dtype.kind != "f":
            return value
        return np.multiply(value, factor, dtype=value.dtype)


def choose(
    original: Recording,
    asked: Sequence[int] = (),
    *,
    scaled: bool = True,
    classes: bool = False,
    few: bool = False,
) -> tuple[Point, ...]:
    """The points of a training; empty where its weights or batches were not recorded. `asked` are more steps; `scaled`
    says whether the migrated program can be given batches with greater numbers, `classes` whether the labels are
    numbers of classes, of which there are no greater ones. `few`: several things are made greater at once.
    """
    by_step: dict[int, tuple[Batch, ...]] = {}
    for batch in original.batches:
        if batch.kept:
            by_step[batch.step] = (*by_step.get(batch.step, ()), batch)
    kept = [batches for batches in by_step.values() if len(batches) == len(original.participation)]
    states = sorted(step for step in original.states if original.states[step] and step in original.slots)
    if not kept or not states:
        return ()
    by_step = {batches[0].step: batches for batches in kept}
    found: dict[int, Point] = {}

    def add(step: int, state: int, features: float = 1.0, labels: float = 1.0, weights: float = 1.0) -> None:
        if step not in found:
            batches = by_step.get(step, kept[(step - 1) % len(kept)])
            found[step] = Point(step, state, batches, features, labels, weights)

    def state_before(step: int) -> int:
        return max((one for one in states if one < step), default=states[0])

    add(1, 0)
    # The last first: a program that goes on as it is, whatever it is given, does not repeat the step behind it.
    for state in reversed(states):
        add(state + 1, state)
    last = max((step.number for step in original.steps), default=1)
    rates = {step.number: step.learning_rate for step in original.steps}
    changes = [n for n in rates if n > 1 and rates[n] != rates.get(n - 1)]
    for step in changes if len(changes) <= _CHANGES else changes[:: -(-len(changes) // _CHANGES)]:
        add(step, state_before(step))
    far = [one + place for one in original.rate_constants[:_CHANGES] for place in (1, 2)]
    for step in (*asked, *far, _FAR * last):
        add(step, state_before(step))
    middle = [state for state in states if state <= tolerance.LAST_STATE_STEP][-1:] or states[:1]
    unused = iter(range(3, 10_000))
    float_features, float_labels = (scaled and _floats(kept[0][0], root) for root in ("features", "labels"))
    possible = {"features": float_features, "labels": float_labels and not classes, "weights": True}
    tried: list[dict[str, float]] = []
    for stress in _FEW_STRESSES if few else _STRESSES:
        left = {what: factor for what, factor in stress.items() if possible[what]}
        if left and left not in tried and (few or left == stress):
            tried.append(left)
    for stress in tried:
        step = next(n for n in unused if n not in found and n not in changes)
        add(step, middle[0], **stress)
    return tuple(found.values())


def labels_are_classes(record_dir: Path, batches: Sequence[Batch]) -> bool:
    """Whether all labels that are floats are -1, 0 or 1: a loss may count on it, as that of a hinge does."""
    kept = [batch for batch in batches if batch.kept and _floats(batch, "labels")]
    found = (
        bool(np.isin(value, (-1.0, 0.0, 1.0)).all())
        for batch in kept
        for path, value in read_batch(record_dir, batch).items()
        if path.startswith("labels") and value.dtype.kind == "f"
    )
    return bool(kept) and all(found)


def _floats(batch: Batch, root: str) -> bool:
    return any(path.startswith(root) and dtype.startswith("float") for path, dtype, _, _ in batch.components)


def _stressed(values: Mapping[str, Array], point: Point) -> dict[str, Array]:
    made = dict(values)
    if point.weights != 1.0:
        made = {
            name: (value * value.dtype.type(point.weights) if value.ndim > 1 and value.dtype.kind == "f" else value)
            for name, value in made.items()
        }
    return {name: _moved(name, value, point.beside) for name, value in made.items()} if point.beside else made


def _moved(name: str, value: Array, seed: int) -> Array:
    """Weights, each moved by another small share of itself."""
    if value.dtype.kind != "f":
        return value
    random = np.random.default_rng([seed, *name.encode()])
    moved = value * (1.0 + l4b_single_steps.BESIDE * random.uniform(-1.0, 1.0, value.shape))
    return np.asarray(moved, value.dtype)


def _files(
    session: Session,
    points: Sequence[Point],
    original: Recording,
    form: Callable[[Mapping[str, Array], bool], Any],
    as_variables: Callable[[Mapping[str, Array], str], Mapping[str, Array]] = lambda values, kind: {},
    kinds_of_slots: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The points for a plan; `form` puts the original's values (weights or not) in the form of the program, and
    `as_variables` slots of a kind in that of variables of its own, where it keeps them so. `kinds_of_slots` are the
    original's by the names that the program has for them.
    """
    theirs = {ours: one for one, ours in (kinds_of_slots or {}).items()}
    made: list[dict[str, Any]] = []
    known: dict[tuple[int, float, int], dict[str, Any]] = {}
    for point in points:
        if point.state == 0:
            made.append({"step": point.step, "weights": None, "slots": None})
            continue
        start = point.state, point.weights, point.beside
        if start in known:
            made.append({**known[start], "step": point.step})
            continue
        weights = form(_stressed(original.states[point.state], point), True)
        slots: dict[str, Array] = {}
        kinds = dict.fromkeys(slot for _, slot in original.slots[point.state])
        for kind in kinds:
            own = {name: value for (name, slot), value in original.slots[point.state].items() if slot == kind}
            variables = as_variables(own, kind)
            if variables:
                weights |= variables
                continue
            slots |= {f"{name}|{theirs.get(kind, kind)}": value for name, value in form(own, kind == AVERAGE).items()}
        paths = weights_file(session, weights), weights_file(session, slots)
        made.append({"step": point.step, "weights": paths[0], "slots": paths[1]})
        known[start] = made[-1]
    return made


def set_rates(migrated: Recording | None) -> dict[int, float]:
    """The learning rate of each step, where a callback or a loop of the program sets it: no count of steps tells it.
    Empty where the optimizer knows its rate.
    """
    if migrated is None or migrated.optimizer is None or migrated.optimizer.settings.get("learning_rate") is None:
        return {}
    rates = {step.number: step.learning_rate for step in migrated.steps if step.learning_rate is not None}
    return rates if len(set(rates.values())) > 1 else {}


def _repeats(
    original: Recording,
    known: Recording | None,
    made: Recording | None,
    points: Sequence[Point],
    own: Collection[str] = (),
) -> bool:
    """Whether single steps of a program are those of its training, wherever that was where the original was, and have
    its learning rates; where these are not known, weights have moved alike. So have slots of its `own` kinds, which
    variables of the program are: averages of weights whose decay comes of a count that it keeps itself, say.

    Where they are not, the program did not start from what it was given, or does more in a step than its state tells,
    and its single steps say nothing about it.
    """
    if known is None or made is None:
        return True
    first, losses = ({step.number: step.loss for step in one.steps} for one in (original, known))
    single = {step.number: step.loss for step in made.steps}
    rates, taken = ({step.number: step.learning_rate for step in one.steps} for one in (known, made))
    for place, point in enumerate(points, start=1):
        there, here = rates.get(point.step), taken.get(place)
        if there is not None and here is not None and not abs(here - there) <= _TOGETHER * abs(there):
            return False
        known_there = point.step in first and point.step in losses and place in single
        if point.stress or point.beside or point.state != point.step - 1 or not known_there:
            continue
        together = abs(losses[point.step] - first[point.step]) <= _TOGETHER * abs(first[point.step])
        if together and not abs(single[place] - losses[point.step]) <= 10 * _TOGETHER * abs(losses[point.step]):
            return False
        if together and (there is None or here is None) and not _same_moves(known, made, point, place):
            return False
        if together and not _same_slots(known.slots.get(point.step, {}), made.slots.get(place, {}), own):
            return False
    return True


def _counts_elsewhere(original: Recording, known: Recording | None) -> bool:
    """Whether a program may have its rate of a count that a single step cannot be given: the original's changes,
    and of the program neither a rate nor a count is known.
    """
    if known is None or known.own_counts or any(step.learning_rate is not None for step in known.steps):
        return False
    return len({step.learning_rate for step in original.steps}) > 1


def _same_moves(training: Recording, single: Recording, point: Point, place: int) -> bool:
    """Whether a step of a training has moved the weights as the same step by itself has, from the same state."""
    before = training.states.get(point.state) if point.state else training.initial
    after, alone = training.states.get(point.step), single.states.get(place)
    if before is None or after is None or alone is None:
        return True
    for name, value in after.items():
        if name in before and name in alone and value.dtype.kind == "f":
            moved = float(np.max(np.abs(value - before[name]), initial=0.0))
            rounding = 10 * tolerance.EPS * float(np.max(np.abs(value), initial=0.0))
            if not float(np.max(np.abs(value - alone[name]), initial=0.0)) <= 10 * _TOGETHER * moved + rounding:
                return False
    return True


def _same_slots(
    training: Mapping[tuple[str, str], Array], single: Mapping[tuple[str, str], Array], kinds: Collection[str]
) -> bool:
    """Whether slots of these kinds are the same behind a step of the training and behind the same step by itself."""
    for key, value in training.items():
        if key[1] in kinds and key in single and value.dtype.kind == "f":
            apart = float(np.max(np.abs(value - single[key]), initial=0.0))
            if not apart <= 10 * _TOGETHER * float(np.max(np.abs(value), initial=0.0)):
                return False
    return True


def asked_for(case: Case) -> bool:
    """Whether single steps are worth six more runs of a cluster."""
    return bool(
        case.sample_steps
        or case.from_checkpoint is not None
        or case.all_mutants
        or l4b_single_steps.ID in case.required
    )


@dataclass(frozen=True)
class Ahead:
    """The original's runs of single steps, made before it is known whether they are needed: of these points, from the
    batches in this record folder.
    """

    points: tuple[Point, ...]
    batches: Path
    runs: tuple[Run, ...]


def ahead(session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence) -> Ahead | None:
    """The original's single steps, as `judge` would take them first; None where it would not, or one at a time."""
    try:
        original, points, _ = _planned(session, case, evidence, found)
        some = next(divided(points, original))
        batches = _batches_of(session, evidence, some)
        runs = _of_original(session, case, evidence, original, some, batches, (), 1, of_start=True)
    except (RecordingError, _NotTried):
        return None
    return Ahead(some, batches, tuple(runs))


def _planned(
    session: Session, case: Case, evidence: OriginalEvidence, found: MigratedEvidence
) -> tuple[Recording, tuple[Point, ...], dict[int, float]]:
    """The recording that single steps start from, the points, and what the migrated program sets (see set_rates).

    Raises _NotTried where they say nothing.
    """
    original = evidence.main.recording
    if original is None or found.names is None or original.in_step:
        raise _NotTried("steps one at a time are not taken with a SyncReplicasOptimizer", ())
    if case.shape.counts and not asked_for(case):
        raise _NotTried("on a cluster single steps are taken where they are asked for", ())
    if case.from_checkpoint is not None:
        try:
            original = checkpoints.with_checkpoint(session, original, case.from_checkpoint)
        except checkpoints.NoState as error:
            raise _NotTried(str(error), ()) from None
    points = choose(
        original,
        case.sample_steps,
        scaled=all(one.known for one in found.terms.data),
        classes=labels_are_classes(evidence.main.record_dir, original.batches),
        few=not case.room.whole,
    )
    rates = set_rates(recording_of(found.compared))
    if rates:  # what the program would do behind its last step, only the program knows
        points = tuple(point for point in points if point.step in rates)
    if not points:
        raise _NotTried("no weights and batches of the original were recorded to start from", ())
    return original, points, rates


def judge(
    session: Session,
    case: Case,
    evidence: OriginalEvidence,
    found: MigratedEvidence,
    *,
    versions_differ: bool,
    made: Ahead | None = None,
) -> tuple[LevelResult, tuple[Run, ...]]:
    """L4b, and the runs that it took; those `made` ahead are not made again."""
    try:
        original, points, rates = _planned(session, case, evidence, found)
    except _NotTried as error:
        return l4b_single_steps.not_tried(str(error)), ()
    runs: tuple[Run, ...] = ()
    parts: list[l4b_single_steps.Part] = []
    for some in divided(points, original):
        try:
            part, took = _compared(
                session,
                case,
                evidence,
                found,
                original,
                some,
                rates,
                versions_differ,
                first=not runs,
                ahead=made if made is not None and not runs and made.points == some else None,
            )
        except RecordingError as error:
            return l4b_single_steps.not_tried(str(error)), runs
        except _NotTried as error:
            return l4b_single_steps.not_tried(str(error)), (*runs, *error.runs)
        runs = (*runs, *took)
        if part is not None:
            parts.append(part)
            if part.different is not None:
                break
    return l4b_single_steps.judge(parts), runs


class _NotTried(Exception):
    """Single steps say nothing; the message says why. `runs` were made for them."""

    def __init__(self, why: str, runs: tuple[Run, ...]) -> None:
        super().__init__(why)
        self.runs = runs


def divided(points: Sequence[Point], original: Recording, most: int = BYTES) -> Iterator[tuple[Point, ...]]:
    """The points, as many at a time as `most` bytes of weights, slots and gradients allow. Each run begins with the
    first, which is the start of the training.
    """
    weights, slots = bytes_of(original)
    # On disk at once: of each point weights and slots for both programs, and what four runs have recorded.
    count = max(1, most // max(4 * (2 * weights + slots) + 2 * (weights + slots), 1))
    first = max(2, count)
    yield tuple(points[:first])
    for start in range(first, len(points), count):
        yield (points[0], *points[start : start + count])


def _batches_of(session: Session, evidence: OriginalEvidence, points: Sequence[Point]) -> Path:
    """A record folder with the batches of some points, for replay."""
    folder = session.new_folder("points")
    return chosen_batches(evidence.main.record_dir, folder, [(one.batches, one.change) for one in points])


def _run(
    session: Session,
    case: Case,
    program: str,
    role: str,
    count: int,
    of_start: bool,
    **plan: Any,
) -> Run:
    """One run of `count` single steps. With `of_start` what the first point comes to is recorded, too."""
    shape = one_trainer(case.shape)
    return run_program(
        session,
        case,
        program,
        role,
        shape if program == "original" else migrated_shape(case, shape),
        **{
            "steps": count,
            # What the start comes to is known: L4 compares it, too.
            "state_steps": list(range(1 if of_start else 2, count + 1)),
            "only_training": True,
            "record_batches": False,
            "keep_batches": False,
            **plan,
        },
    )


def _of_original(
    session: Session,
    case: Case,
    evidence: OriginalEvidence,
    original: Recording,
    points: Sequence[Point],
    batches: Path,
    known: Sequence[Run],
    count: int,
    *,
    of_start: bool,
) -> list[Run]:
    """The original's run of some points, if it is not known, and what is missing to `count` replicates."""
    plans = tolerance.replicate_plans(original.optimizer, REPLICATES)
    given: dict[str, Any] = {"initial": evidence.initial, "replay": str(batches)}
    entries = [] if len(known) > count else _files(session, points, original, lambda values, weights: dict(values))
    given["points"] = entries
    made = list(known) or [_run(session, case, "original", "original single steps", len(points), of_start, **given)]
    while len(made) <= count and not made[-1].failed:
        main, number = made[0].recording, len(made)
        assert main is not None
        role = f"original single steps, replicate {number}"
        again = _run(session, case, "original", role, len(points), of_start, **given, **plans[number - 1])
        made.append(spared.measured(main, again))
    _remove(entries)
    return made


def _compared(
    session: Session,
    case: Case,
    evidence: OriginalEvidence,
    found: MigratedEvidence,
    original: Recording,
    points: Sequence[Point],
    rates: Mapping[int, float],
    versions_differ: bool,
    *,
    first: bool,
    ahead: Ahead | None = None,
) -> tuple[l4b_single_steps.Part | None, tuple[Run, ...]]:
    """What some points show (None: nothing that both programs recorded), and the runs that it took, whose tensors are
    gone. They are the `first` ones of a training, or others. `original` is the recording that the points start from,
    `rates` are what the migrated program sets (see set_rates), `ahead` what was made of these points before. Raises
    _NotTried, and RecordingError where a batch is gone.
    """
    names = found.names
    assert names is not None
    batches = _batches_of(session, evidence, points) if ahead is None else ahead.batches
    own = found.terms.own
    of_start = first and case.room.whole

    def theirs(values: Mapping[str, Array], weights: bool) -> dict[str, Array]:
        assert names is not None
        made = found.terms.weights.initial(values, names.to_migrated(), weights=weights)
        return {**own, **made} if weights else made

    # With many weights each run is made when it is needed. Whether the control is seen, the first points show then.
    counts, controlled = ((1, REPLICATES), True) if case.room.whole else ((0, 1, REPLICATES), first)

    def of_original(known: Sequence[Run], count: int) -> list[Run]:
        return _of_original(session, case, evidence, original, points, batches, known, count, of_start=of_start)

    def of_migrated() -> list[Run]:
        weights = found.terms.weights
        entries = _files(session, points, original, theirs, weights.slots_as_variables, weights.kinds)
        if rates:
            entries = [
                {**entry, "rate": rates[one.step], "rate_before": rates.get(one.step - 1, rates[one.step])}
                for entry, one in zip(entries, points, strict=True)
            ]
        given = {"initial": found.initial, "replay": found.terms.replay(session, batches), "points": entries}

        def run(role: str, **plan: Any) -> Run:
            return _run(session, case, "migrated", role, len(points), of_start, **given, **plan)

        made = [run("migrated single steps")]
        if not made[-1].failed and controlled:
            factor = tolerance.control_factor(original)
            made.append(run("migrated single steps, control", learning_rate_factor=factor))
        _remove(entries)
        return [found.terms.weights_of(one) for one in made]

    def whole(runs: tuple[Run, ...]) -> tuple[Run, ...]:
        failed = next((one for one in runs if one.failed), None)
        if failed is not None:
            raise _NotTried(f"a run of single steps failed ({failed.role}): {failed.complaint}", runs)
        return runs

    if ahead is not None:
        ours, others = list(ahead.runs), of_migrated()
    elif one_interpreter(case) or not case.room.whole:
        ours, others = of_original((), counts[0]), of_migrated()
    else:
        with ThreadPoolExecutor(1) as pool:
            later = pool.submit(of_original, (), counts[0])
            others = of_migrated()
            ours = later.result()
    whole((*ours, *others))
    rename, base = names.to_original(), ours[0].recording
    assert base is not None
    others[1:] = [spared.sharing(base, spared.measured(base, one, rename), rename) for one in others[1:]]
    runs = (*ours, *others)
    for program, known, made in (("original", evidence.main, ours[0]), ("migrated", found.compared, others[0])):
        kinds = {kind for _, _, kind in found.terms.weights.slots.values()} if program == "migrated" else set()
        if not _repeats(original, recording_of(known), recording_of(made), points, kinds):
            raise _NotTried(
                f"the {program} program does not repeat its own steps from the states of the original", runs
            )
        if _counts_elsewhere(original, recording_of(known)):
            raise _NotTried(
                f"nothing tells the {program} program, whose learning rate is not known, which step it takes", runs
            )
    starts = {place: original.states.get(one.state, original.initial) for place, one in enumerate(points, start=1)}

    def judged(without: Collection[int] = ()) -> l4b_single_steps.Part | None:
        assert names is not None
        return l4b_single_steps.compared(
            [one.recording for one in ours if one.recording is not None],
            [one.recording for one in others if one.recording is not None],
            [l4b_single_steps.Taken(one.step, one.stress, one.weights != 1.0) for one in points],
            starts,
            rename,
            versions_differ=versions_differ,
            added=found.terms.weights.added,
            without=without,
        )

    part = judged()
    for count in counts[1:]:
        if part is None or part.strictly or (count > 1 and not case.room.whole and part.far_inside):
            break
        ours = of_original(ours, count)
        runs = whole((*ours, *others))
        part = judged()
    if part is not None and part.different is not None and case.room.whole:
        (again,) = of_original((), 0)
        again = replace(again, role="original single steps, again")
        runs = whole((*runs, again))
        ordinary = {place for place, point in enumerate(points, start=1) if not point.stress}
        where = None if again.recording is None else tolerance.unrepeated(base, again.recording, ordinary)
        part = part if where is None else l4b_single_steps.unsteady(part, where)
    if part is not None and part.different is not None and part.different.status is Status.DIFFERENT:
        looks = _looks(points, part) if not base.halves else ()
        if looks:
            try:
                shown, made_beside = _compared(
                    session, case, evidence, found, original, looks, rates, versions_differ, first=False
                )
            except _NotTried as error:
                shown, made_beside = None, error.runs
            runs = (*runs, *made_beside)
            places = [
                [
                    number
                    for number, look in enumerate(looks, start=1)
                    if look.beside and _same_step(look, points[at - 1])
                ]
                for at in sorted(part.outside)
            ]
            if l4b_single_steps.on_an_edge(shown, places):
                part = judged(part.outside)
    return part, tuple(spared.bare(one) for one in runs)


def _looks(points: Sequence[Point], part: l4b_single_steps.Part) -> tuple[Point, ...]:
    """The start, and the points that differ, from several weights beside theirs; empty where that would say nothing."""
    differ = [points[place - 1] for place in sorted(part.outside)]
    if not part.few_differ or any(point.beside or point.state == 0 for point in differ):
        return ()
    beside = (replace(point, beside=look) for point in differ for look in range(1, l4b_single_steps.LOOKS + 1))
    return (points[0], *beside)


def _same_step(look: Point, point: Point) -> bool:
    return replace(look, beside=0) == point


def _remove(entries: Sequence[Mapping[str, Any]]) -> None:
    for path in {entry[name] for entry in entries for name in ("weights", "slots")} - {None}:
        Path(path).unlink(missing_ok=True)
