"""What a difference looks like: likely causes, each with the numbers that speak for it.

Every pattern is looked for in the two recordings alone. A pattern counts only if it explains the difference
element by element (EXPLAINED of it is left at most), so that a cause that is named has been checked on every
number there is; what is not explained gets the possibilities of its kind (_POSSIBLE), marked as such by having no
numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from migrator.harness.protocol import judging, measurements
from migrator.harness.protocol.compare import Array
from migrator.harness.protocol.judging import Finding
from migrator.harness.protocol.measurements import (
    ACTIVATION,
    GRADIENT,
    LOSS,
    REGULARIZATION,
    SLOT,
    STATE,
    Measurements,
    Quantity,
)
from migrator.harness.protocol.results import Divergence
from migrator.harness.recording import Recording, SourceLine, Variable

Doubles = NDArray[np.float64]
# (weight, sentence): the greater the weight, the more of the difference the pattern explains by itself.
Cause = tuple[float, str]

# A pattern must explain all of a difference but this part (in the Euclidean norm).
EXPLAINED = 0.05
# Two numbers that ought to be the same factor (a batch size, say) may differ by so much of it.
SAME_FACTOR = 1e-3
# Sorting and permuting is not tried on larger tensors, nor are more findings than these explained.
LARGE = 1_000_000
EXPLAINED_FINDINGS = 10

CERTAIN, STRONG, LIKELY, POSSIBLE = 1.0, 0.8, 0.6, 0.4

_POSSIBLE: Mapping[str, tuple[str, ...]] = {
    ACTIVATION: ("another layer default: activation, padding, epsilon, training mode", "another pairing of variables"),
    REGULARIZATION: ("a regulariser is missing, added or scaled by two",),
    LOSS: (
        "the loss is reduced another way (sum, mean, or mean over non-zero weights)",
        "a regulariser is missing, doubled or scaled by two",
        "another forward pass: activation, layer default, training mode",
        "variables of the same shape that were created in another order and so paired wrongly: give a --name-map",
    ),
    GRADIENT: ("another loss or reduction", "a regulariser or a clipping that only one program has"),
    STATE: (
        "another learning rate or optimizer coefficient",
        "an update that is not an optimizer's (moving averages)",
        "from step 2 only: state that one program updates lazily",
    ),
    SLOT: ("another initial value of the slot", "another decay coefficient", "lazy against dense slot updates"),
}
_LATER_LOSS = ("step 1 agrees and this one does not: the backward pass, the optimizer, the data or the learning rate",)


@dataclass(frozen=True)
class Evidence:
    """Both recordings, and everything measured in them under the original's names."""

    original: Recording
    migrated: Recording
    to_original: Mapping[str, str]
    ours: Measurements
    theirs: Measurements

    @property
    def tasks(self) -> dict[str, str]:
        """The original's trainers by position."""
        return {str(i): task for i, task in enumerate(measurements.trainers(self.original))}

    @property
    def variables(self) -> dict[str, Variable]:
        """The original's variables by name."""
        return {variable.name: variable for variable in self.original.variables}


def evidence(original: Recording, migrated: Recording, to_original: Mapping[str, str]) -> Evidence:
    """The evidence that two recordings hold; `to_original` renames the migrated program's variables."""
    return Evidence(
        original,
        migrated,
        to_original,
        measurements.everything(original),
        measurements.everything(migrated, to_original),
    )


def ranked(
    original: Recording, migrated: Recording, found: Finding | Divergence, to_original: Mapping[str, str]
) -> tuple[str, ...]:
    """Likely causes of one difference, the best supported first. Empty for what no level measures."""
    given = evidence(original, migrated, to_original)
    if isinstance(found, Finding):
        return explain(given, found.quantity, found.step)
    for quantity, step in given.ours.keys() | given.theirs.keys():
        if step == found.step and str(quantity) == found.tensor:
            return explain(given, quantity, step)
    return ()


def explain(given: Evidence, quantity: Quantity, step: int) -> tuple[str, ...]:
    """As `ranked`, for a quantity at a step."""
    a, b = given.ours.get((quantity, step)), given.theirs.get((quantity, step))
    found: list[Cause] = []
    if _comparable(a, b):
        assert a is not None and b is not None
        look = _LOOK[quantity.family]
        found = sorted(
            (
                *_counting(given, step),
                *look(given, quantity, step, _doubles(a), _doubles(b)),
                *_timing(given, quantity, step),
            ),
            key=lambda cause: -cause[0],
        )
    texts = tuple(dict.fromkeys(text for _, text in found))
    possible = _LATER_LOSS if quantity.family == LOSS and step > 1 else _POSSIBLE[quantity.family]
    return texts if any(weight >= LIKELY for weight, _ in found) else (*texts, *possible)


def sources(given: Evidence, quantity: Quantity) -> tuple[SourceLine | None, SourceLine | None]:
    """The lines of the two programs that made a quantity: its variable's, else the optimizer's or the loss's."""
    to_migrated = {ours: theirs for theirs, ours in given.to_original.items()}
    names = quantity.variable, to_migrated.get(quantity.variable, quantity.variable)
    fallback = "optimizer" if quantity.family in (STATE, SLOT) else "loss"
    found = []
    for recording, name in zip((given.original, given.migrated), names, strict=True):
        lines = recording.sources
        found.append(lines.get(f"variable:{name}") or lines.get(fallback))
    return found[0], found[1]


def divergences(given: Evidence, findings: Sequence[Finding]) -> tuple[Divergence, ...]:
    """The findings for the report, with source lines; the first EXPLAINED_FINDINGS with causes."""
    result = []
    for place, finding in enumerate(findings):
        texts = explain(given, finding.quantity, finding.step) if place < EXPLAINED_FINDINGS else ()
        lines = sources(given, finding.quantity)
        result.append(
            replace(judging.divergence(finding, texts, given.tasks), original_source=lines[0], migrated_source=lines[1])
        )
    return tuple(result)


# -- numbers --------------------------------------------------------------------------------------------------


def _comparable(a: Array | None, b: Array | None) -> bool:
    return (
        a is not None
        and b is not None
        and a.shape == b.shape
        and a.size > 0
        and all(np.issubdtype(x.dtype, np.floating) and bool(np.all(np.isfinite(x))) for x in (a, b))
    )


def _say(weight: float, sentence: str) -> Cause:
    return weight, sentence


def _doubles(value: Array) -> Doubles:
    return value.astype(np.float64)


def _norm(value: Doubles) -> float:
    return float(np.linalg.norm(value.reshape(-1)))


def _explained(difference: Doubles, model: Doubles) -> bool:
    size = _norm(difference)
    return size > 0.0 and _norm(difference - model) <= EXPLAINED * size


def _factor(a: Doubles, b: Doubles) -> float | None:
    """The f with b = f*a in every element, if there is one and it is not 1."""
    square = float(np.sum(a * a))
    if square == 0.0:
        return None
    f = float(np.sum(a * b)) / square
    return f if _explained(b - a, (f - 1.0) * a) else None


def _same(a: float, b: float, within: float = SAME_FACTOR) -> bool:
    return abs(a - b) <= within * max(abs(a), abs(b))


def _number(value: float) -> str:
    return f"{value:.4g}"


def _setting(recording: Recording, key: str) -> float | None:
    value = recording.optimizer.settings.get(key) if recording.optimizer is not None else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _rate(recording: Recording, step: int) -> float | None:
    return next((s.learning_rate for s in recording.steps if s.number == step), None)


def _batch_size(recording: Recording, position: str, step: int) -> int | None:
    tasks = measurements.trainers(recording)
    task = tasks[int(position)] if position.isdigit() and int(position) < len(tasks) else None
    return next((b.size for b in recording.batches if b.step == step and b.task == task), None)


def _outputs(recording: Recording) -> int:
    """How many numbers the labels of one example have."""
    for batch in recording.batches:
        for path, _, shape, _ in batch.components:
            if path.split("/")[0] == "labels" and shape and shape[0] == batch.size:
                return math.prod(shape[1:])
    return 1


def _sum_for_mean(given: Evidence, f: float, position: str, step: int, what: str) -> Iterator[Cause]:
    """Factors that come from counting: examples, replicas, trainers, outputs."""
    size = _batch_size(given.original, position, step)
    if size is not None and size > 1:
        outputs = _outputs(given.original)
        counts = {size: "examples", size * outputs: "numbers in its labels"} if outputs > 1 else {size: "examples"}
        for count, counted in counts.items():
            if _same(f, count):
                yield _say(
                    CERTAIN,
                    f"{what} is {_number(f)} times the original's, and the batch has {count} {counted}: "
                    + ("summed instead of averaged"),
                )
            elif _same(f, 1.0 / count):
                yield _say(
                    CERTAIN,
                    f"{what} is 1/{count} of the original's, and the batch has {count} {counted}: "
                    + ("averaged instead of summed, or averaged twice"),
                )
        if outputs > 1 and _same(f, 1.0 / outputs):
            yield _say(
                STRONG,
                f"{what} is 1/{outputs} of the original's, and each example has {outputs} outputs: "
                + ("the last axis is averaged first, where the original sums it"),
            )
    for count, counted in ((given.original.replicas, "replicas"), (len(given.tasks), "trainers")):
        if count > 1 and (_same(f, count) or _same(f, 1.0 / count)):
            times = _number(f) + " times" if f > 1 else f"1/{count} of"
            yield _say(
                STRONG, f"{what} is {times} the original's, and there are {count} {counted}: scaled by their number"
            )


# -- time -----------------------------------------------------------------------------------------------------


def _counting(given: Evidence, step: int) -> Iterator[Cause]:
    """A count of steps that the migrated program's optimizer is ahead with: it corrects its moments by that count, and
    schedules follow it.
    """
    steps = given.migrated.steps
    if len({one.task for one in steps}) != 1:
        return  # workers count together
    first = next((one.counted for one in steps if one.number == 1), None)
    for one in steps:
        ahead = 0 if first is None or one.counted is None else one.counted - first - (one.number - 1)
        if one.number <= step and 0 < ahead < one.number:
            count = one.number - 1 + ahead
            yield _say(
                STRONG,
                f"before step {one.number} the migrated program's optimizer has counted {count} steps: `fit` counts "
                "one that it does not take where a generator ends without steps_per_epoch",
            )
            return


def _timing(given: Evidence, quantity: Quantity, step: int) -> Iterator[Cause]:
    """What happens in the training at the step, or just before the step, at which something first differs."""
    if step < 2 or quantity.family not in (LOSS, STATE):
        return
    position = quantity.name if quantity.family == LOSS else "0"
    task = given.tasks.get(position)
    batches = {b.step: b for b in given.original.batches if b.task == task}
    full = max((b.size for b in batches.values()), default=0)
    for place in (step, step - 1):
        if place in batches and batches[place].size < full:
            yield _say(
                LIKELY,
                f"batch {place} has {batches[place].size} examples and a full one {full}: a partial batch, divided "
                "by another number or dropped",
            )
            break
    first = batches.get(1)
    again = next((n for n in sorted(batches) if n > 1 and first and batches[n].digest == first.digest), None)
    if again is not None and again > 2 and (step - 1) % (again - 1) <= 1 and step >= again:
        epoch = (step - 1) // (again - 1) + 1
        yield _say(POSSIBLE, f"step {step} follows the beginning of epoch {epoch} (of {again - 1} batches)")
    rates = {s.number: s.learning_rate for s in given.original.steps if s.task == task}
    for place in (step, step - 1):
        now, before = rates.get(place), rates.get(place - 1)
        if now is not None and before is not None and now != before:
            constant = rates.get(place - 1) == rates.get(place - 2, before)
            yield _say(
                LIKELY if constant else POSSIBLE,
                f"the learning rate goes from {before:.6g} to {now:.6g} at step {place}: the schedule",
            )
            break


# -- losses ---------------------------------------------------------------------------------------------------


def _loss(given: Evidence, quantity: Quantity, step: int, a: Doubles, b: Doubles) -> Iterator[Cause]:
    ours, theirs = float(a), float(b)
    difference = theirs - ours
    terms = (given.original.regularization or 0.0, given.migrated.regularization or 0.0) if step == 1 else (0.0, 0.0)
    owner, term = ("original", terms[0]) if terms[0] else ("migrated program", terms[1])
    for times, meaning in (
        (-1.0, "the migrated loss leaves it out"),
        (1.0, "the migrated loss adds it once more than the original's"),
        (-0.5, "half of it is missing: TF1's l2_regularizer(s) is Keras' L2(s/2)"),
        (0.5, "half of it is added once more"),
    ):
        if term and _same(difference, times * term, 0.01):
            yield _say(
                CERTAIN,
                f"the loss differs by {_number(difference)}, which is {times:g} times the {owner}'s regularisation of "
                f"{_number(term)}: {meaning}",
            )
    for removed in dict.fromkeys(((0.0, 0.0), terms)):
        left, right = ours - removed[0], theirs - removed[1]
        if not left:
            continue
        what = "the loss without its regularisation" if any(removed) else "the loss"
        yield from _sum_for_mean(given, right / left, quantity.name, step, what)
        size, full = _batch_size(given.original, quantity.name, step), _batch_size(given.original, quantity.name, 1)
        if size and full and size < full:
            for f, how in ((size / full, "divided by the full size"), (full / size, "not divided by the full size")):
                if _same(right / left, f):
                    yield _say(
                        CERTAIN,
                        f"{what} is {_number(f)} times the original's at a batch of {size} examples where a full "
                        f"one has {full}: {how}",
                    )
        if _same(right / left, 2.0) or _same(right / left, 0.5):
            yield _say(
                LIKELY, f"{what} is {right / left:.6g} times the original's: a factor of two, as in tf.nn.l2_loss"
            )


def _regularization(given: Evidence, quantity: Quantity, step: int, a: Doubles, b: Doubles) -> Iterator[Cause]:
    ours, theirs = float(a), float(b)
    if theirs == 0.0:
        yield _say(
            CERTAIN, f"the original's loss contains a regularisation of {_number(ours)}, the migrated one's none"
        )
    elif ours == 0.0:
        yield _say(CERTAIN, f"the migrated loss contains a regularisation of {_number(theirs)}, the original's none")
    elif _same(theirs, 2 * ours) or _same(ours, 2 * theirs):
        yield _say(
            CERTAIN,
            f"the regularisation is {theirs / ours:.6g} times the original's: "
            f"TF1's l2_regularizer(s) is Keras' L2(s/2)",
        )
    else:
        yield _say(LIKELY, f"the regularisation is {_number(theirs / ours)} times the original's")


# -- tensors --------------------------------------------------------------------------------------------------


def _permuted(a: Doubles, b: Doubles) -> Iterator[Cause]:
    """The same numbers at other places."""
    if a.size < 2 or a.size > LARGE:
        return
    scale = float(np.max(np.abs(a))) or 1.0

    def close(x: Doubles, y: Doubles) -> bool:
        return bool(np.max(np.abs(x - y)) <= 1e-5 * scale)

    if close(a, b) or not close(np.sort(a, axis=None), np.sort(b, axis=None)):
        return
    if a.ndim >= 2 and a.shape[-1] == a.shape[-2] and close(np.swapaxes(a, -1, -2), b):
        yield _say(CERTAIN, f"the same {a.size} values with rows and columns exchanged: transposed")
        return
    for blocks, cell in ((4, "LSTM"), (3, "GRU")):
        if a.shape[-1] % blocks == 0 and a.shape[-1] > blocks:
            pieces = np.split(a, blocks, axis=-1)
            for order in itertools.permutations(range(blocks)):
                if close(np.concatenate([pieces[i] for i in order], axis=-1), b):
                    yield _say(
                        CERTAIN,
                        f"the same {a.size} values with the {blocks} blocks of columns in the order "
                        f"{', '.join(str(i + 1) for i in order)}: the gates of an {cell} in another order",
                    )
                    return
    if a.ndim >= 2 and a.shape[0] > 1:
        rows = a.reshape(len(a), -1), b.reshape(len(b), -1)
        if close(*(side[np.argsort(side[:, 0], kind="stable")] for side in rows)):
            moved = int(np.sum(np.max(np.abs(rows[0] - rows[1]), axis=1) > 1e-5 * scale))
            yield _say(CERTAIN, f"the same rows in another order ({moved} of {len(a)} stand elsewhere)")
            return
    yield _say(STRONG, f"the same {a.size} values at other places: permuted or reshaped another way")


def _twin(given: Evidence, quantity: Quantity, step: int, b: Doubles) -> Iterator[Cause]:
    """Whether the migrated value is the original's of another variable of the same shape."""
    for (other, at), value in given.ours.items():
        if at != step or other == quantity or (other.family, other.slot) != (quantity.family, quantity.slot):
            continue
        if value.shape == b.shape and np.any(value) and np.any(b):
            scale = float(np.max(np.abs(value)))
            if float(np.max(np.abs(_doubles(value) - b))) <= 1e-5 * scale:
                yield _say(CERTAIN, f"it equals the original's {other}: the two are paired wrongly, give a --name-map")
                return


_FUNCTIONS: tuple[tuple[str, Callable[[Doubles], Doubles]], ...] = (
    ("no activation", lambda x: x),
    ("relu", lambda x: np.maximum(x, 0.0)),
    ("tanh", np.tanh),
    ("sigmoid", lambda x: 1.0 / (1.0 + np.exp(-np.clip(x, -500.0, 500.0)))),
    ("softmax", lambda x: _softmax(x)),
)


def _before(x: Doubles) -> Iterator[tuple[str, Doubles]]:
    """What may have gone into an activation function to give x."""
    yield "no activation", x
    if np.all(np.abs(x) < 1.0):
        yield "tanh", np.arctanh(x)
    if np.all((x > 0.0) & (x < 1.0)):
        yield "sigmoid", np.log(x / (1.0 - x))


def _nonlinear(a: Doubles, b: Doubles) -> Iterator[Cause]:
    """Whether the two are different activation functions of the same numbers."""
    sides = ("original's", a), ("migrated program's", b)
    for (mine, value), (other, result) in (sides, sides[::-1]):
        for inner, x in _before(value):
            for outer, function in _FUNCTIONS:
                if outer != inner and _explained(result - value, function(x) - value):
                    yield _say(
                        STRONG, f"the {other} is {outer} and the {mine} {inner} of the same numbers: another activation"
                    )
                    return


def _softmax(x: Doubles) -> Doubles:
    if x.ndim == 0:
        return x
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    shares: Doubles = powers / np.sum(powers, axis=-1, keepdims=True)
    return shares


def _activation(given: Evidence, quantity: Quantity, step: int, a: Doubles, b: Doubles) -> Iterator[Cause]:
    yield from _permuted(a, b)
    yield from _nonlinear(a, b)
    if a.ndim >= 2 and len(a) > 1:
        offset = np.mean(b - a, axis=tuple(range(a.ndim - 1)))
        if _explained(b - a, np.broadcast_to(offset, a.shape)):
            yield _say(STRONG, f"every row is off by the same {offset.size} numbers: a bias, or what initialises it")
    dropped = np.mean((b == 0) & (a != 0)), np.mean((a == 0) & (b != 0))
    if min(dropped) > 0.05:
        yield _say(
            LIKELY, f"{dropped[0]:.0%} of the elements are zero in the migrated program only: another dropout mask"
        )
    f = _factor(a, b)
    if f is not None and f != 0.0:
        yield _say(STRONG, f"it is {_number(f)} times the original's in every element: an input or a weight is scaled")


def _gradient(given: Evidence, quantity: Quantity, step: int, a: Doubles, b: Doubles) -> Iterator[Cause]:
    yield from _permuted(a, b)
    yield from _twin(given, quantity, step, b)
    if not np.any(b):
        yield _say(
            CERTAIN, "the migrated program's gradient is zero everywhere: a stopped gradient, or a frozen variable"
        )
        return
    if not np.any(a):
        yield _say(
            STRONG, "the original's gradient is zero everywhere, and the migrated program's is not: it trains more"
        )
    f = _factor(a, b)
    if f is not None:
        yield from _sum_for_mean(given, f, "0", step, "the gradient")
        everywhere = _gradient_factors(given, step)
        alike = [g for g in everywhere if g is not None and _same(f, g, 0.01)]
        norms = [
            math.sqrt(sum(_norm(_doubles(v)) ** 2 for (q, at), v in t.items() if q.family == GRADIENT and at == step))
            for t in (given.ours, given.theirs)
        ]
        if len(alike) == len(everywhere) > 1:
            smaller = min(norms)
            if _round(smaller):
                who = "migrated program" if norms[1] < norms[0] else "original"
                yield _say(
                    CERTAIN,
                    f"all {len(alike)} gradients are {_number(f)} times the original's, and the global norm of the "
                    f"{who}'s is {_number(smaller)} (the other's is {_number(max(norms))}): clipped by global norm",
                )
            yield _say(LIKELY, f"all {len(alike)} gradients are {_number(f)} times the original's: the loss is scaled")
        else:
            if _round(_norm(b)) and f < 1:
                yield _say(
                    STRONG, f"it is {_number(f)} times the original's and its norm is {_number(_norm(b))}: clipped"
                )
            yield _say(LIKELY, f"it is {_number(f)} times the original's in every element")
    before = _weights_before(given, quantity.name, step)
    if before is not None and before[0].shape == a.shape and np.any(before[0]):
        weight = before[0]
        strength = float(np.sum(weight * (b - a)) / np.sum(weight * weight))
        if _explained(b - a, strength * weight):
            yield _say(
                CERTAIN,
                f"it differs by {_number(strength)} times the weight itself: an L2 regulariser of "
                f"{_number(abs(strength) / 2)} that the {'original' if strength > 0 else 'migrated program'} lacks",
            )
        elif np.any(np.sign(weight)):
            strength = float(np.mean((b - a) * np.sign(weight)))
            if _explained(b - a, strength * np.sign(weight)):
                yield _say(
                    CERTAIN,
                    f"it differs by {_number(strength)} times the sign of the weight: an L1 regulariser that "
                    f"the {'original' if strength > 0 else 'migrated program'} lacks",
                )
    top = float(np.max(np.abs(b)))
    if top < float(np.max(np.abs(a))) and _round(top) and _explained(b - a, np.clip(a, -top, top) - a):
        clipped = int(np.sum(np.abs(a) > top))
        yield _say(CERTAIN, f"{clipped} of {a.size} elements are cut at {_number(top)}: clipped by value")


def _round(value: float) -> bool:
    """Whether a number is one that a person would write: two significant digits."""
    return value > 0 and _same(value, float(f"{value:.1e}"), 2e-5)


def _gradient_factors(given: Evidence, step: int) -> list[float | None]:
    found = []
    for (quantity, at), value in given.ours.items():
        other = given.theirs.get((quantity, at))
        if quantity.family == GRADIENT and at == step and _comparable(value, other) and np.any(value):
            assert other is not None
            found.append(_factor(_doubles(value), _doubles(other)))
    return found


def _weights_before(given: Evidence, name: str, step: int) -> tuple[Doubles, Doubles] | None:
    """The weights before a step in both programs, if they were recorded there."""
    if step == 1:
        theirs = {given.to_original.get(key, key): value for key, value in given.migrated.initial.items()}
        pair = given.original.initial.get(name), theirs.get(name)
    else:
        pair = given.ours.get((Quantity(STATE, name), step - 1)), given.theirs.get((Quantity(STATE, name), step - 1))
    if pair[0] is None or pair[1] is None or not _comparable(*pair):
        return None
    return _doubles(pair[0]), _doubles(pair[1])


def _rows(a: Doubles, b: Doubles, before: tuple[Doubles, Doubles], what: str) -> Iterator[Cause]:
    """Rows that only one of the two programs touched in this step."""
    if a.ndim < 2 or len(a) < 2 or before[0].shape != a.shape:
        return
    axes = tuple(range(1, a.ndim))
    gap = np.max(np.abs(b - a), axis=axes)
    differs = gap > 0.01 * float(np.max(gap))
    touched = tuple(np.any(now != then, axis=axes) for now, then in zip((a, b), before, strict=True))
    count = int(np.sum(differs))
    if count == len(a) and np.all(touched[0] == touched[1]):
        return
    if not np.any(differs & touched[0]):
        zeroed = np.all(b[differs] == 0.0) and np.any(a[differs] != 0.0)
        yield _say(
            CERTAIN,
            f"the {count} rows of {what} that differ (of {len(a)}) are rows that the original left alone in "
            "this step: " + ("they were set to zero" if zeroed else "a dense update where the original's is lazy"),
        )
    elif not np.any(differs & touched[1]):
        yield _say(
            CERTAIN,
            f"the {count} rows of {what} that differ (of {len(a)}) are rows that the migrated program left "
            "alone in this step: a lazy update where the original's is dense, or rows that are masked",
        )
    elif count == 1 and differs[0]:
        yield _say(STRONG, f"only row 0 of {what} differs: an index that is masked, padding or out of the vocabulary")
    elif count < len(a):
        yield _say(POSSIBLE, f"{count} of {len(a)} rows of {what} differ")


def _state(given: Evidence, quantity: Quantity, step: int, a: Doubles, b: Doubles) -> Iterator[Cause]:
    variable = given.variables.get(quantity.name)
    before = _weights_before(given, quantity.name, step)
    if before is not None and before[0].shape != a.shape:
        before = None
    if variable is not None and not variable.trainable:
        yield from _moving(given, quantity, step, a, b, before)
        return
    yield from _permuted(a, b)
    if before is None:
        return
    moves = a - before[0], b - before[1]
    if not np.any(moves[1]) and np.any(moves[0]):
        yield _say(CERTAIN, "the migrated program's value did not move in this step: it is not trained")
        return
    if not np.any(moves[0]) and np.any(moves[1]):
        yield _say(CERTAIN, "the original's value did not move in this step, and the migrated program's did")
    yield from _twin_move(given, quantity, step, before[0], moves[1])
    yield from _rows(a, b, before, quantity.name)
    f = _factor(*moves)
    if f is not None:
        yield from _rate_off(given, quantity, step, f)
    change = moves[1] - moves[0]
    if np.any(before[0]):
        decay = float(np.sum(before[0] * change) / np.sum(before[0] ** 2))
        if f is None and _explained(change, decay * before[0]):
            yield _say(STRONG, f"the update differs by {_number(decay)} times the weight itself: weight decay")
    yield from _epsilon(given, quantity, step, moves)


def _twin_move(given: Evidence, quantity: Quantity, step: int, before: Doubles, move: Doubles) -> Iterator[Cause]:
    for other in given.variables.values():
        key = Quantity(STATE, other.name)
        if other.name == quantity.name or other.shape != move.shape or (key, step) not in given.ours:
            continue
        start = _weights_before(given, other.name, step)
        if start is None or not np.any(move):
            continue
        theirs = _doubles(given.ours[key, step]) - start[0]
        if float(np.max(np.abs(theirs - move))) <= 1e-4 * float(np.max(np.abs(move))):
            yield _say(
                CERTAIN, f"it moved as the original's {other.name} did: the two are paired wrongly, give a --name-map"
            )
            return


def _rate_off(given: Evidence, quantity: Quantity, step: int, f: float) -> Iterator[Cause]:
    gradient = Quantity(GRADIENT, quantity.name), step
    ours, theirs = given.ours.get(gradient), given.theirs.get(gradient)
    if _comparable(ours, theirs):
        assert ours is not None and theirs is not None
        g = _factor(_doubles(ours), _doubles(theirs))
        if g is not None and _same(f, g, 0.01):
            yield _say(LIKELY, f"the update is {_number(f)} times the original's because its gradient is")
            return
    shared = [
        found
        for name, variable in given.variables.items()
        if variable.trainable and (found := _move_factor(given, name, step)) is not None
    ]
    alike = sum(_same(f, other, 0.01 * abs(f - 1.0) + 1e-6) for other in shared)
    rates = _rate(given.original, step), _rate(given.migrated, step)
    told = (
        ""
        if rates[0] is None
        else f"; the original's learning rate is {rates[0]:.6g}"
        + (f", {rates[0] * f:.6g} would do this" if f > 0 else "")
    )
    if alike > 1:
        yield _say(
            STRONG, f"the updates of {alike} variables are {f:.6g} times the original's: the learning rate{told}"
        )
    else:
        yield _say(
            LIKELY, f"the update is {f:.6g} times the original's in every element: a learning rate of its own{told}"
        )


def _move_factor(given: Evidence, name: str, step: int) -> float | None:
    before = _weights_before(given, name, step)
    key = Quantity(STATE, name), step
    ours, theirs = given.ours.get(key), given.theirs.get(key)
    if before is None or not _comparable(ours, theirs):
        return None
    assert ours is not None and theirs is not None
    return _factor(_doubles(ours) - before[0], _doubles(theirs) - before[1])


def _epsilon(given: Evidence, quantity: Quantity, step: int, moves: tuple[Doubles, Doubles]) -> Iterator[Cause]:
    """The epsilon of an update -r*n/(d + epsilon), from r*n*(1/move - 1/other move) in the elements that show it."""
    rate = _rate(given.original, step)
    numerator = _numerator(given, quantity.name, step)
    if rate is None or numerator is None or numerator.shape != moves[0].shape:
        return
    change = np.abs(moves[1] - moves[0])
    clear = (change >= 0.3 * float(np.max(change))) & (moves[0] != 0) & (moves[1] != 0)
    if int(np.sum(clear)) < 3:
        return
    shifts = -rate * numerator[clear] * (1.0 / moves[1][clear] - 1.0 / moves[0][clear])
    middle = float(np.median(shifts))
    if middle and float(np.max(np.abs(shifts - middle))) <= 0.3 * abs(middle):
        own = _setting(given.original, "epsilon")
        told = "" if own is None else f" ({own:.3g} in the original)"
        effect = float(np.max(change[clear] / np.abs(moves[0][clear])))
        yield _say(
            CERTAIN,
            f"the update is off as with an epsilon {abs(middle):.3g} {'larger' if middle > 0 else 'smaller'}"
            f"{told}: {len(shifts)} elements agree on it; it changes the update by up to {effect:.2g}",
        )


def _numerator(given: Evidence, name: str, step: int) -> Doubles | None:
    """What the optimizer divides by sqrt(slot) + epsilon, without the rate: of Adagrad and of Adam."""
    moment = given.ours.get((Quantity(SLOT, name, "first_moment"), step))
    betas = _setting(given.original, "beta_1"), _setting(given.original, "beta_2")
    if moment is not None and betas[0] is not None and betas[1] is not None and 0 < betas[0] < 1 and 0 < betas[1] < 1:
        return _doubles(moment) * math.sqrt(1.0 - betas[1] ** step) / (1.0 - betas[0] ** step)
    if (Quantity(SLOT, name, "accumulator"), step) in given.ours:
        gradient = given.ours.get((Quantity(GRADIENT, name), step))
        return None if gradient is None else _doubles(gradient)
    return None


def _moving(
    given: Evidence,
    quantity: Quantity,
    step: int,
    a: Doubles,
    b: Doubles,
    before: tuple[Doubles, Doubles] | None,
) -> Iterator[Cause]:
    """A variable that no optimizer moves: a moving average, mostly."""
    trained = [v for v in given.original.variables if v.trainable]
    agree = all(_close(given, Quantity(STATE, v.name), step) for v in trained)
    share = f"; the {len(trained)} trainable variables agree" if agree and trained else ""
    if before is None:
        yield _say(POSSIBLE, f"it is not trainable: a moving average{share}")
        return
    moves = a - before[0], b - before[1]
    if not np.any(moves[1]) and np.any(moves[0]):
        yield _say(CERTAIN, f"the moving average never moved in the migrated program: its update is missing{share}")
        return
    if not np.any(moves[0]) and np.any(moves[1]):
        yield _say(
            CERTAIN, f"the moving average moved in the migrated program only: the original leaves it alone{share}"
        )
        return
    f = _factor(*moves)
    if f is not None:
        yield _say(
            CERTAIN,
            f"the moving average moved {_number(f)} times as far in every element: another momentum (1 - momentum "
            f"is {_number(f)} times the original's){share}",
        )
        return
    if a.size >= 3 and float(np.std(moves[0])) > 0:
        slope, offset = np.polyfit(moves[0].reshape(-1), moves[1].reshape(-1), 1)
        if _explained(moves[1] - moves[0], (slope - 1.0) * moves[0] + offset):
            low = min(float(slope), 1.0 / float(slope)) if slope > 0 else 0.0
            if 0.0 < low < 1.0:
                yield _say(
                    STRONG,
                    f"the new values entering the moving average are {_number(float(slope))} times the original's, "
                    f"(n-1)/n for n = {1.0 / (1.0 - low):.4g}: one divides the variance by n and the other by n-1 "
                    f"(fused batch normalisation){share}",
                )
                return
    yield _say(POSSIBLE, f"it is not trainable: a moving average of other values{share}")


def _close(given: Evidence, quantity: Quantity, step: int) -> bool:
    a, b = given.ours.get((quantity, step)), given.theirs.get((quantity, step))
    if not _comparable(a, b):
        return False
    assert a is not None and b is not None
    return bool(np.max(np.abs(_doubles(a) - _doubles(b))) <= 1e-5 * max(float(np.max(np.abs(a))), 1e-30))


_COEFFICIENTS = {"momentum": "momentum", "first_moment": "beta_1", "second_moment": "beta_2", "rms": "rho"}


def _coefficient(given: Evidence, slot: str) -> tuple[str, float | None]:
    """The name and the original's value of the coefficient that a slot decays with."""
    key = _COEFFICIENTS.get(slot, "")
    if slot == "second_moment" and _setting(given.original, "beta_2") is None:
        key = "rho"
    return key, _setting(given.original, key)


def _slot(given: Evidence, quantity: Quantity, step: int, a: Doubles, b: Doubles) -> Iterator[Cause]:
    yield from _permuted(a, b)
    yield from _twin(given, quantity, step, b)
    key, decay = _coefficient(given, quantity.slot)
    difference = b - a
    offset = float(np.mean(difference))
    if a.size > 1 and offset and _explained(difference, np.full(a.shape, offset)):
        kept = decay**step if decay is not None else 1.0
        own = _setting(given.original, "initial_accumulator_value")
        start = offset / kept
        told = f" ({own:.6g} in the original)" if own is not None and quantity.slot == "accumulator" else ""
        if quantity.slot == "second_moment" and _same(start, -1.0, 0.01):
            told = " (TF1's RMSProp starts it at 1, Keras' at 0)"
        yield _say(
            CERTAIN,
            f"it differs by {_number(offset)} in every element: it started {_number(abs(start))} "
            f"{'higher' if start > 0 else 'lower'}{told}",
        )
    previous = Quantity(SLOT, quantity.name, quantity.slot), step - 1
    ours, theirs = given.ours.get(previous), given.theirs.get(previous)
    f = _factor(a, b)
    gradient = Quantity(GRADIENT, quantity.name), step
    gradients = given.ours.get(gradient), given.theirs.get(gradient)
    if f is not None and step == 1 and decay is not None and key != "momentum":
        other = 1.0 - f * (1.0 - decay)
        if 0.0 <= other < 1.0 and (not _comparable(*gradients) or _close(given, *gradient)):
            yield _say(CERTAIN, f"it is {_number(f)} times the original's: as with {key} = {other:.6g} for {decay:.6g}")
    if gradients[0] is not None and gradients[1] is not None and np.any(gradients[0]) and not np.any(gradients[1]):
        yield _say(STRONG, "its gradient is zero everywhere in the migrated program")
    if f is not None and _comparable(*gradients):
        assert gradients[0] is not None and gradients[1] is not None
        g = _factor(_doubles(gradients[0]), _doubles(gradients[1]))
        if g is not None and (_same(f, g, 0.01) or _same(f, g * g, 0.01)):
            yield _say(LIKELY, f"it is {_number(f)} times the original's because the gradient is {_number(g)} times it")
    if _comparable(ours, theirs):
        assert ours is not None and theirs is not None
        yield from _rows(a, b, (_doubles(ours), _doubles(theirs)), str(quantity))
        past = _doubles(ours)
        if key == "momentum" and decay is not None and np.any(past):
            shift = float(np.sum(past * difference) / np.sum(past * past))
            if _explained(difference, shift * past):
                yield _say(
                    CERTAIN,
                    f"it differs by {_number(shift)} times its value of step {step - 1}: as with a momentum of "
                    f"{decay + shift:.6g} for {decay:.6g}",
                )


_Look = Callable[[Evidence, Quantity, int, Doubles, Doubles], Iterator[Cause]]
_LOOK: Mapping[str, _Look] = {
    ACTIVATION: _activation,
    LOSS: _loss,
    REGULARIZATION: _regularization,
    GRADIENT: _gradient,
    STATE: _state,
    SLOT: _slot,
}
