"""L8: what a training leaves behind: predictions, example by example, and SavedModels, asked with the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from migrator.harness.protocol import l8_effects
from migrator.harness.protocol.results import Artefact, Control, Divergence, LevelResult, Reason, Status, counted
from migrator.harness.protocol.tolerance import EPS, FORWARD, Tolerance, ratio
from migrator.harness.recording import Array, Prediction, Recording

ID, TITLE = "L8", "Same artefacts"
CONTROL = "the migrated program's predictions with its initial weights"
OTHER_MODELS = "trainings of other models"
SAME, DIFFERENT, MISSING, NOT_COMPARED = "same", "different", "missing", "not compared"


@dataclass(frozen=True)
class Artefacts:
    """L8 with every artefact that it looked at, the original's first."""

    level: LevelResult
    artefacts: tuple[Artefact, ...]


@dataclass(frozen=True)
class Served:
    """What came of asking the SavedModels of both programs.

    `weights` and `signatures` are those of the original's and the migrated program's. `answers` by signature are what
    both say to the same request. `unasked` by signature is why it was not asked: text, or the inputs of both sides,
    which are not the same.
    """

    weights: tuple[Mapping[str, Array], Mapping[str, Array]]
    signatures: tuple[tuple[str, ...], tuple[str, ...]]
    answers: Mapping[str, Prediction]
    unasked: Mapping[str, str | tuple[tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True)
class _Call:
    """Outputs of both programs for the same examples; None of the migrated one where there are none, and why."""

    title: str
    original: Prediction
    migrated: Prediction | None
    why: str = ""
    #: What one row is, and the name of a single output.
    noun: str = "prediction"


@dataclass(frozen=True)
class _Pair:
    """One output of one call: the original's, and the migrated program's for the same examples and weights."""

    call: _Call
    output: str
    original: Array
    migrated: Array
    floor: float
    loose: Array
    """Per example, whether rounding alone changes a value that does not round: a class on the border of two."""

    @property
    def exact(self) -> bool:
        return not np.issubdtype(self.original.dtype, np.floating)

    @property
    def gaps(self) -> Array:
        """How far apart each element is; of what does not round, 1 where it is another."""
        if self.exact or not np.issubdtype(self.migrated.dtype, np.number):
            differ = np.asarray(self.original != self.migrated, np.float64)
            differ[self.loose] = 0.0
            return differ
        ours, theirs = self.original.astype(np.float64), self.migrated.astype(np.float64)
        both = np.isfinite(ours) & np.isfinite(theirs)
        return np.where(both, np.abs(ours - theirs), np.where(ours == theirs, 0.0, math.inf))

    @property
    def ratio(self) -> float:
        return ratio(float(np.max(self.gaps)), 0.0 if self.exact else self.floor)

    @property
    def name(self) -> str:
        return f"{self.call.noun} {self.output!r}" if self.output else self.call.noun


def _flat(value: Array) -> Array:
    """One row for each example, whatever the shape of what is predicted for it."""
    return value.reshape(len(value), -1)


def _comparable(a: Array, b: Array) -> bool:
    """Whether numbers, or texts, of one size stand for each example. [n] and [n, 1] say the same."""
    text = a.dtype.kind == "S", b.dtype.kind == "S"
    return len(a) > 0 and len(b) > 0 and text[0] == text[1] and _flat(a).shape[1] == _flat(b).shape[1]


def _pair(call: _Call, name: str, other: Array, limits: Tolerance) -> _Pair:
    ours = call.original
    value = ours.outputs[name]
    count = min(len(value), len(other))
    mine, theirs = _flat(value[:count]), _flat(other[:count])
    moved = [_flat(one[name][:count]) for one in ours.nudged if name in one and len(one[name]) >= count]
    loose = np.zeros(len(mine), bool)
    floor = 0.0
    if np.issubdtype(mine.dtype, np.floating):
        values = mine.astype(np.float64)
        scale = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
        gaps = [np.abs(one.astype(np.float64) - values) for one in moved]
        noise = [float(np.max(gap[np.isfinite(gap)], initial=0.0)) for gap in gaps]
        floor = max([EPS * (4.0 + math.sqrt(limits.terms)) * scale, *noise])
    else:
        for one in moved:
            loose |= np.any(one != mine, axis=1)
    return _Pair(call, name, mine, theirs, floor, loose)


def _pairs(call: _Call, theirs: Mapping[str, Array], limits: Tolerance) -> Iterator[tuple[_Pair, str]]:
    """Outputs of one name; then those that are left, where they hold the same numbers, or where each side has one. Each
    with what the migrated program calls it.
    """
    ours = call.original
    named = [name for name in ours.outputs if name in theirs and _comparable(ours.outputs[name], theirs[name])]
    for name in named:
        yield _pair(call, name, theirs[name], limits), name
    left = [name for name in ours.outputs if name not in named]
    others = [name for name in theirs if name not in named]
    for name in list(left):
        for other in others:
            if not _comparable(ours.outputs[name], theirs[other]):
                continue
            found = _pair(call, name, theirs[other], limits)
            if found.ratio <= limits.c[FORWARD] or len(left) == len(others) == 1:
                left.remove(name)
                others.remove(other)
                yield found, other
                break


def _predicted(original: Recording, migrated: Recording) -> list[_Call]:
    """Calls in their order; only the first of each where one program predicts more often than the other."""
    several = len(original.predictions) == len(migrated.predictions)
    found = []
    for place, mine in enumerate(original.predictions):
        title = f"predictions of call {place + 1}" if len(original.predictions) > 1 else "predictions"
        other = migrated.predictions[place] if several or (place == 0 and migrated.predictions) else None
        nothing = "the migrated program predicts nothing" if not migrated.predictions else "no such call"
        found.append(_Call(title, mine, other, f"{nothing} in Model.predict or predict_on_batch"))
    return found


_Way = Callable[[Array, int], Array]


def _softmax(value: Array) -> Array:
    powers = np.exp(value - np.max(value, axis=1, keepdims=True))
    shares: Array = powers / np.sum(powers, axis=1, keepdims=True)
    return shares


def _sigmoid(value: Array) -> Array:
    share: Array = 1.0 / (1.0 + np.exp(-value))
    return share


def _first(value: Array, count: int) -> Array:
    places: Array = np.argsort(-value, axis=1, kind="stable")[:, :count]
    return places


#: What programs make of the outputs of a model before they give them away, by its name; rows of float64, and how many
#: numbers an example has in the end.
_WAYS: dict[str, _Way] = {
    "softmax": lambda value, count: _softmax(value),
    "sigmoid": lambda value, count: _sigmoid(value),
    "exp": lambda value, count: np.exp(value),
    "the first places": _first,
    "the greatest": lambda value, count: np.take_along_axis(value, _first(value, count), 1),
    "the greatest of softmax": lambda value, count: np.take_along_axis(_softmax(value), _first(value, count), 1),
    "whether above 0": lambda value, count: value > 0.0,
    "whether above 0.5": lambda value, count: value > 0.5,
    "both shares": lambda value, count: np.concatenate([1.0 - _sigmoid(value), _sigmoid(value)], axis=1),
}


def _computed(call: _Call, limits: Tolerance) -> list[tuple[_Pair, _Pair | None]]:
    """The outputs of the original, if usual functions make all its numbers of the migrated program's outputs, with
    those of the control: a program may compute them behind `Model.predict`. Else none.
    """
    ours, theirs = call.original, call.migrated
    assert theirs is not None and theirs.same_weights is not None
    found: list[tuple[_Pair, _Pair | None]] = []
    for name, value in ours.outputs.items():
        count = _flat(value).shape[1] if len(value) else 0
        for source, raw in theirs.same_weights.items():
            if raw.dtype.kind != "f" or not count or value.dtype.kind == "S":
                continue
            for way in _WAYS.values():
                with np.errstate(over="ignore"):
                    made = way(_flat(raw).astype(np.float64), count)
                    start = (theirs.control or {}).get(source)
                    control = None if start is None else way(_flat(start).astype(np.float64), count)
                made = made.astype(value.dtype)
                if made.shape[1:] != (count,):
                    continue
                pair = _pair(call, name, made, limits)
                if pair.ratio <= limits.c[FORWARD]:
                    wrong = None if control is None else _pair(call, name, control.astype(value.dtype), limits)
                    found.append((pair, wrong))
                    break
            else:
                continue
            break
    numbers = sum(value.dtype.kind != "S" for value in ours.outputs.values())
    return found if len(found) == numbers else []


@dataclass(frozen=True)
class _Printed:
    """Both programs, for what they printed."""

    original: Recording
    migrated: Recording


#: Of the numbers that a program predicts and prints, the share that is found again, and how far it may be off.
_PRINTED, _OFF = 0.9, 1e-3


def _share_printed(prediction: Prediction, printed: Sequence[float]) -> float | None:
    """The share of a call's numbers that stand among those printed; None where it has no numbers with a point."""
    values = [value.reshape(-1) for value in prediction.outputs.values() if value.dtype.kind == "f"]
    if not values or not printed:
        return None if not values else 0.0
    wanted, known = np.concatenate(values).astype(np.float64), np.asarray(printed, np.float64)
    place = np.clip(np.searchsorted(known, wanted), 1, max(len(known) - 1, 1))
    near = np.minimum(np.abs(known[place - 1] - wanted), np.abs(known[np.minimum(place, len(known) - 1)] - wanted))
    return float(np.mean(near <= _OFF * np.abs(wanted) + EPS))


#: Classes that a program predicts and prints are known by so many examples in a row. So many other numbers may be
#: printed beside those of an example, which are no more than so many; and the share of each class that is to be found
#: again, of those with few examples together.
_IN_A_ROW, _BESIDE, _WIDEST, _AGAIN, _FEW = 16, 8, 8, 0.95, 5


def _rows(wanted: Array, whole: Array, apart: int) -> Array:
    """What is printed in the places of rows of whole numbers, for each place of the first number: those of each row are
    `apart` numbers behind those of the row before.
    """
    count, width = wanted.shape
    places = max(0, len(whole) - (count - 1) * apart - width + 1)
    rows: Array = whole[np.arange(places)[:, None, None] + np.arange(count)[:, None] * apart + np.arange(width)]
    return rows


def _printed_rows(wanted: Array, whole: Array) -> int:
    """How many rows, one for each example, are printed one after the other from the first on; 0 where too few."""
    first = wanted[:_IN_A_ROW]
    if len(first) < _IN_A_ROW or len(np.unique(first)) < 2 or wanted.shape[1] > _WIDEST:
        return 0
    longest = 0
    for apart in range(wanted.shape[1], wanted.shape[1] + _BESIDE + 1):
        for place in np.flatnonzero(np.all(_rows(first, whole, apart) == first, axis=(1, 2))):
            behind = whole[place:]
            count = min(len(wanted), (len(behind) - wanted.shape[1]) // apart + 1)
            same = np.all(_rows(wanted[:count], behind, apart)[0] == wanted[:count], axis=1)
            longest = max(longest, count if np.all(same) else int(np.argmin(same)))
    return longest


def _share_again(wanted: Array, whole: Array) -> float | None:
    """The share of the rows of all examples that is printed in their order, each class counting the same; None where
    nothing of the kind is printed: numbers near those of the classes, as many in a row. The same one again and again is
    something else that each line has, unless nothing is printed in between.
    """
    _, kinds, counts = np.unique(wanted[:, 0], return_inverse=True, return_counts=True)
    kinds = np.where(counts[kinds] < _FEW, -1, kinds)
    of_each = [(kinds == one) / np.sum(kinds == one) for one in np.unique(kinds)]
    weights = np.sum(of_each, axis=0) / len(of_each)
    shares: list[float] = []
    for apart in range(wanted.shape[1], wanted.shape[1] + _BESIDE + 1):
        rows = _rows(wanted, whole, apart)
        near = np.all((rows >= wanted.min() - 1) & (rows <= wanted.max() + 1), axis=(1, 2))
        if apart > wanted.shape[1]:
            near &= np.any(rows != rows[:, :1], axis=(1, 2))
        shares += list(np.all(rows[near] == wanted, axis=2) @ weights)
    return max(shares, default=None)


def _classes_printed(prediction: Prediction, name: str, printed: _Printed) -> str:
    """What became of an output of whole numbers that is none of the migrated program's, where the original prints it;
    "" where it does not, or no such numbers are seen to be printed by the migrated program.
    """
    value = prediction.outputs[name]
    if value.dtype.kind not in "iub" or not len(value):
        return ""
    wanted = _flat(value).astype(np.int64)
    ours, theirs = (
        np.asarray(one, np.int64) for one in (printed.original.printed_whole, printed.migrated.printed_whole)
    )
    count = _printed_rows(wanted, ours)
    share = _share_again(wanted[:count], theirs) if count else None
    return "" if share is None else SAME if share >= _AGAIN else DIFFERENT


def _prints_others(name: str) -> str:
    return f"the original prints the {name} that it predicts, and the migrated program prints other numbers"


def _of_computed(call: _Call, made: Sequence[_Pair], printed: _Printed) -> Iterator[Artefact]:
    """What became of a call none of whose outputs is one of the migrated program's, by what can be computed of these
    and by what both programs printed.
    """
    mine, other = call.original, call.migrated
    assert other is not None and other.same_weights is not None
    if not made:
        yield Artefact(call.title, DIFFERENT, _no_counterpart(mine, other.same_weights))
        return
    own, theirs = (_share_printed(mine, one.printed) for one in (printed.original, printed.migrated))
    names = ", ".join(sorted(pair.output or "the output" for pair in made))
    if own is not None and own >= _PRINTED and (theirs or 0.0) < _PRINTED:
        detail = "the original prints what it predicts, and the migrated program prints other numbers"
        yield Artefact(call.title, DIFFERENT, detail)
        return
    classes = {pair.output: _classes_printed(mine, pair.output, printed) for pair in made}
    for name, became in classes.items():
        if became == DIFFERENT:
            yield Artefact(call.title, DIFFERENT, _prints_others(name or "output"))
            return
    seen = (
        "both print the same"
        if SAME in classes.values() or (own is not None and own >= _PRINTED)
        else "what the program makes of them is not seen"
    )
    yield Artefact(
        call.title,
        SAME,
        f"{names} can be computed of what the migrated program predicts; {seen}",
        max(pair.ratio for pair in made),
    )
    for name in sorted(set(mine.outputs) - {pair.output for pair in made}):
        yield Artefact(f"{call.title}: {name}", MISSING, "the migrated program has no such output")


def _compared(
    calls: Sequence[_Call], limits: Tolerance, printed: _Printed
) -> tuple[list[_Pair], list[_Pair], list[Artefact]]:
    """The pairs of the same weights, those of the control, and what became of each call of the original."""
    pairs: list[_Pair] = []
    control: list[_Pair] = []
    found: list[Artefact] = []
    for call in calls:
        title, mine, other = call.title, call.original, call.migrated
        if other is None:
            found.append(Artefact(title, MISSING, call.why))
            continue
        if other.same_weights is None:
            told = other.note or "it was given no weights of the original"
            found.append(Artefact(title, NOT_COMPARED, f"not computed with the original's weights: {told}"))
            continue
        paired = list(_pairs(call, other.same_weights, limits))
        here = [pair for pair, _ in paired]
        pairs += here
        start = other.control or {}
        control += [_pair(call, pair.output, start[name], limits) for pair, name in paired if name in start]
        seen = {pair.output for pair in here}
        absent = sorted(set(mine.outputs) - seen)
        if not here:
            made = _computed(call, limits)
            pairs += [pair for pair, _ in made]
            control += [pair for _, pair in made if pair is not None]
            found += _of_computed(call, [pair for pair, _ in made], printed)
            continue
        worst = max(here, key=lambda pair: pair.ratio)
        bad = worst.ratio > limits.c[FORWARD]
        examples = max(len(pair.original) for pair in here)
        found.append(
            Artefact(
                title,
                DIFFERENT if bad else SAME,
                f"{', '.join(sorted(seen)) or 'the output'} of {examples} examples"
                + (f"; only the original has {', '.join(absent)}" if absent else ""),
                worst.ratio,
            )
        )
        for name in absent:
            became = _classes_printed(mine, name, printed) if call.noun == _Call.noun else ""
            said = {DIFFERENT: _prints_others(name), SAME: "both programs print it"}
            detail = said.get(became, "the migrated program has no such output")
            found.append(Artefact(f"{title}: {name}", became or MISSING, detail))
        if call.noun != _Call.noun:  # those who ask a signature read its answer by these names
            for pair, name in paired:
                if name != pair.output:
                    found.append(Artefact(f"{title}: {pair.output}", MISSING, f"its answer has {name} for it"))
    return pairs, control, found


def _exported(original: Recording, migrated: Recording, served: Served | None) -> tuple[list[_Call], list[Artefact]]:
    """The signatures of the exported models that were asked, and what became of all else that belongs to them."""
    if not original.exports:
        return [], []
    if not migrated.exports:
        return [], [Artefact("exported model", MISSING, "the migrated program writes no SavedModel")]
    if served is None:
        return [], [Artefact("exported model", NOT_COMPARED, "it could not be loaded, or was too large to keep")]
    calls = []
    found = [_weights(original, migrated, served)]
    for key in served.signatures[0]:
        title, unasked = f"exported model, signature {key}", served.unasked.get(key)
        if key not in served.signatures[1]:
            others = ", ".join(served.signatures[1]) or "none"
            status = DIFFERENT if key == _DEFAULT else MISSING
            found.append(Artefact(title, status, f"the migrated program's model has no such signature, but {others}"))
        elif isinstance(unasked, tuple):
            sides = [", ".join(side) or "nothing" for side in unasked]
            found.append(Artefact(title, DIFFERENT, f"it takes {sides[0]} in the original and {sides[1]} in the other"))
        elif key not in served.answers:
            found.append(Artefact(title, NOT_COMPARED, str(unasked or "it was not asked")))
        else:
            answer = served.answers[key]
            calls.append(_Call(title, answer, answer, noun=f"output of signature {key}"))
    return calls, found


_DEFAULT = "serving_default"


def _weights(original: Recording, migrated: Recording, served: Served) -> Artefact:
    """Whether the exported weights are those that each training ended with."""
    title = "exported weights"
    trained = [recording.states.get(max(recording.states, default=0), {}) for recording in (original, migrated)]
    known = [sorted(end.keys() & side.keys()) for end, side in zip(trained, served.weights, strict=True)]
    moved = [
        [name for name in names if not np.array_equal(end[name], side[name])]
        for names, end, side in zip(known, trained, served.weights, strict=True)
    ]
    if not known[0] or not known[1] or moved[0]:
        return Artefact(title, NOT_COMPARED, "the original's are not those that its training ended with, or not known")
    if moved[1]:
        names = ", ".join(moved[1][:3]) + (f" and {len(moved[1]) - 3} more" if len(moved[1]) > 3 else "")
        detail = f"the model that the migrated program exports has other weights than its training ended with: {names}"
        return Artefact(title, DIFFERENT, detail)
    return Artefact(title, SAME, f"{len(known[1])} variables as training ended with them")


def _no_counterpart(mine: Prediction, theirs: Mapping[str, Array]) -> str:
    sides = [", ".join(sorted(repr(name) for name in side)) or "nothing" for side in (mine.outputs, theirs)]
    return f"no output of the migrated program ({sides[1]}) has the values of one of the original's ({sides[0]})"


def judge(original: Recording, migrated: Recording, limits: Tolerance, served: Served | None = None) -> Artefacts:
    """Compares what both programs predict, and what their exported models say, with the original's weights.

    It may differ by rounding alone, or as far as the original's own predictions move with its weights moved by one
    ulp. The control is what the migrated program predicts with the weights that its run began with. What only the
    original leaves behind is an artefact that is missing; the level says so and judges the rest. What happens at other
    steps (checkpoints, evaluations, exports), other tags of summaries and callbacks that never acted are named and
    decide nothing. `served` is what the SavedModels of both said, where both have any.
    """
    exported, left = _exported(original, migrated, served)
    pairs, bad, artefacts = _compared(
        [*_predicted(original, migrated), *exported], limits, _Printed(original, migrated)
    )
    artefacts += left
    level = _judged(pairs, bad, artefacts, limits.c[FORWARD])
    others = l8_effects.compare(original, migrated)
    if original.other_trainings:
        others.append(more_models(1, original.other_trainings + 1))
    return Artefacts(replace(level, notes=(*level.notes, *_absent(others))), (*artefacts, *others))


def model(place: int) -> str:
    """The name of a model that a script trains, as an artefact; 1 is the second."""
    return f"training of model {place + 1}"


def _of_models(artefacts: Sequence[Artefact]) -> bool:
    return any(one.name.startswith("training of model") for one in artefacts)


def more_models(compared: int, count: int) -> Artefact:
    """For a script that trains `count` models, more than were compared."""
    said = f"only the first {counted(compared, 'model')}" if compared > 1 else "only the first model"
    return Artefact(OTHER_MODELS, NOT_COMPARED, f"{said} of {count} that the script trains are compared")


def with_further(level: LevelResult | None, models: Sequence[Artefact]) -> LevelResult:
    """L8 with what took further runs to see (other models of the script, a kill and a resume): what differs makes it
    differ.
    """
    level = level or LevelResult(ID, TITLE, Status.NOT_APPLICABLE, "the original predicts and exports nothing")
    notes = tuple(note for note in level.notes if not note.startswith(f"{OTHER_MODELS}:") or not _of_models(models))
    level = replace(level, notes=(*notes, *_absent(models)))
    wrong = next((one for one in models if one.status == DIFFERENT), None)
    if wrong is not None and level.status is not Status.DIFFERENT:
        return replace(
            level,
            status=Status.DIFFERENT,
            reason=Reason.VALUE_DIFFERS,
            summary=f"{wrong.name}: {wrong.detail}",
            differences=tuple(
                Divergence(one.name, None, None, causes=(one.detail,)) for one in models if one.status == DIFFERENT
            ),
        )
    same = [one.name for one in models if one.status == SAME]
    if not same or level.status is Status.DIFFERENT:
        return level
    told = f"{', '.join(same)}: the same"
    if level.status is Status.NOT_APPLICABLE:
        # Each of them was judged with controls of its own.
        return replace(level, status=Status.EQUIVALENT, summary=told, control=None)
    return replace(level, summary=f"{level.summary}; {told}")


def _absent(artefacts: Sequence[Artefact]) -> tuple[str, ...]:
    """What is to be said of artefacts that could not be found the same."""
    return tuple(
        f"{one.name}: {one.status}, {one.detail}" for one in artefacts if one.status in (MISSING, NOT_COMPARED)
    )


def _judged(pairs: list[_Pair], bad: list[_Pair], artefacts: list[Artefact], accepted: float) -> LevelResult:
    control = Control(
        CONTROL,
        any(pair.ratio > accepted for pair in bad),
        max((pair.ratio for pair in bad if math.isfinite(pair.ratio)), default=None),
    )
    result = LevelResult(ID, TITLE, Status.EQUIVALENT, "", control=control, notes=_absent(artefacts))
    if not artefacts:
        return LevelResult(ID, TITLE, Status.NOT_APPLICABLE, "the original predicts and exports nothing")
    wrong = next((one for one in artefacts if one.status == DIFFERENT), None)
    if not pairs and wrong is None:
        names = ", ".join(one.name for one in artefacts if one.status != SAME)
        summary = f"nothing could be compared: {names}" if names else "the exported model has no signature to be asked"
        return replace(result, status=Status.NOT_EXERCISED, reason=Reason.MISSING_VALUES, summary=summary)
    outside = [pair for pair in pairs if pair.ratio > accepted]
    worst = max(pairs, key=lambda pair: pair.ratio, default=None)
    if worst is not None:
        gap = float(np.max(worst.gaps))
        result = replace(result, statistic=gap, floor=worst.floor, tolerance=accepted, ratio=worst.ratio)
    broken = next((pair for pair in pairs if not pair.exact and np.any(np.isnan(pair.original))), None)
    if broken is not None:
        summary = f"the original itself has no number for {broken.name} of some examples"
        return replace(result, status=Status.INCONCLUSIVE, reason=Reason.NON_FINITE, summary=summary)
    if wrong is not None:
        several = sum(one.status == DIFFERENT for one in artefacts)
        summary = _apart(outside[0], accepted) if outside else f"{wrong.name}: {wrong.detail}"
        divergences = [_divergence(pair) for pair in outside]
        divergences += [
            Divergence(one.name, None, None, causes=(one.detail,))
            for one in artefacts
            if one.status == DIFFERENT and all(pair.call.title != one.name for pair in outside)
        ]
        return replace(
            result,
            status=Status.DIFFERENT,
            reason=Reason.VALUE_DIFFERS,
            summary=summary + (f"; {several} artefacts differ" if several > 1 else ""),
            differences=tuple(divergences),
        )
    if not control.detected:
        summary = f"this workload cannot show the error: {CONTROL} are those of the trained ones"
        return replace(result, status=Status.INCONCLUSIVE, reason=Reason.CONTROL_NOT_DETECTED, summary=summary)
    agree = "bit for bit" if result.ratio == 0.0 else f"within {result.ratio:.2g} noise floors"
    names = ", ".join(one.name for one in artefacts if one.status == SAME)
    examples = sum({pair.call.title: len(pair.original) for pair in pairs}.values())
    summary = f"{names} agree with the same weights {agree}, in {examples} examples"
    return replace(result, summary=summary)


def _worst(pair: _Pair) -> tuple[int, int]:
    example, element = np.unravel_index(int(np.argmax(pair.gaps)), pair.gaps.shape)
    return int(example), int(element)


def _shown(value: np.generic) -> float | str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else float(value)


def _apart(pair: _Pair, accepted: float) -> str:
    place = _worst(pair)
    ours, theirs = _shown(pair.original[place]), _shown(pair.migrated[place])
    told = [f"{one:.9g}" if isinstance(one, float) else repr(one) for one in (ours, theirs)]
    apart = "" if pair.exact else f", {pair.ratio:.3g} noise floors apart (accepted: {accepted:.3g})"
    wrong = int(np.sum(np.any(pair.gaps > (0.0 if pair.exact else accepted * pair.floor), axis=1)))
    return (
        f"{pair.name} of example {place[0] + 1} is {told[0]} in the original and, with the same weights, {told[1]} in "
        f"the migrated program{apart}; {wrong} of {len(pair.original)} examples differ"
    )


def _divergence(pair: _Pair) -> Divergence:
    place = _worst(pair)
    gap = float(pair.gaps[place])
    return Divergence(
        pair.name,
        _shown(pair.original[place]),
        _shown(pair.migrated[place]),
        step=pair.call.original.step,
        index=place,
        absolute=None if pair.exact else gap,
        ratio=pair.ratio,
        causes=_causes(pair),
    )


def _causes(pair: _Pair) -> tuple[str, ...]:
    causes = []
    if not pair.exact:
        ours, theirs = pair.original.astype(np.float64), pair.migrated.astype(np.float64)
        with np.errstate(all="ignore"):
            factors = (theirs / ours)[np.abs(ours) > 1e-3]
        if factors.size and np.ptp(factors) < 1e-4 * abs(float(np.mean(factors))):
            causes.append(f"every value is {float(np.mean(factors)):.6g} times the original's: a factor is missing")
        ordered = np.argsort(ours[:, 0]), np.argsort(theirs[:, 0])
        if np.allclose(ours[ordered[0]], theirs[ordered[1]], rtol=1e-5):
            causes.append("the values are the same in another order: the data that is predicted is shuffled")
    causes.append("layers in training mode (dropout, batch normalisation), another threshold, or other features")
    return tuple(causes)
