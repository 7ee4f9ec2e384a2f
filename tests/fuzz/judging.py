"""What came of a program: the same numbers, a refusal with a code, other numbers, or a crash."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tests.fuzz.programs import EVALUATED, MARK
from tests.fuzz.sides import Migration, Run

#: The finding that says that the loss of an evaluation is that of examples, where TensorFlow 1 had that of batches.
LOSS_OF_EXAMPLES = "TFM303"
# One float32 program in two TensorFlow versions parts by 1e-6 over so few steps; a wrong formula by far more.
_CLOSE = 1e-4
# A number that is no part of a name: 0.5 of `np.float32(0.5)`, but not its 32.
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)\b")


class Kind(Enum):
    """The outcomes. The last three are failures: of the tool, or of the fuzzer, which made no valid program.

    A program is noisy whose original does not repeat itself: TensorFlow 1 updates a variable while the gradients of
    others still read it, where `tf.gradients` computed them.
    """

    SAME = "same"
    REFUSED = "refused"
    NOISY = "noisy"
    DIFFERENT = "DIFFERENT"
    CRASHED = "CRASHED"
    INVALID = "INVALID"


@dataclass(frozen=True)
class Outcome:
    """What came of a program, and why."""

    kind: Kind
    reasons: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether this must not be."""
        return self.kind not in (Kind.SAME, Kind.REFUSED, Kind.NOISY)


def before_running(texts: Mapping[str, str], migration: Migration) -> Outcome | None:
    """The outcome, if the migration alone says it."""
    if migration.failure:
        return Outcome(Kind.CRASHED, ("the tool itself: " + migration.failure.strip().splitlines()[-1],))
    if migration.refusals:
        return Outcome(Kind.REFUSED, migration.refusals)
    if dict(migration.texts) == dict(texts):
        return Outcome(Kind.DIFFERENT, ("a program of TensorFlow 1 was left as it was without a word",))
    return None


def after_running(original: Run, migrated: Run, codes: Collection[str] = (), *, printed_only: bool = False) -> Outcome:
    """The outcome of a program of which both sides were run, after findings of these codes.

    `printed_only`: the models of a bridge are not looked into; what it prints of them is compared.
    """
    if original.error:
        return Outcome(Kind.INVALID, (f"the original itself fails: {original.error}",))
    if migrated.error:
        return Outcome(Kind.CRASHED, (migrated.error,))
    told = LOSS_OF_EXAMPLES in codes
    if printed_only:
        found = tuple(_of_lines(_lines(original), _lines(migrated), told))
    else:
        found = tuple(differences(original, migrated, told_loss=told))
    return Outcome(Kind.DIFFERENT, found) if found else Outcome(Kind.SAME)


def differences(original: Run, migrated: Run, *, told_loss: bool = False) -> Iterator[str]:
    """What the migrated program did otherwise: lines printed, steps, weights, evaluations.

    `told_loss`: the user was told that evaluations report another mean of the loss, so that number may differ.
    """
    yield from _of_lines(_lines(original), _lines(migrated), told_loss)
    if original.steps != migrated.steps:
        yield f"steps: {list(original.steps)} in the original, {list(migrated.steps)} now"
    for at, (before, after) in enumerate(zip(original.weights, migrated.weights, strict=False)):
        for difference in _of_weights(before, after):
            yield f"weights of model {at}: {difference}"
    if len(original.weights) != len(migrated.weights):
        yield f"models trained: {len(original.weights)} in the original, {len(migrated.weights)} now"
    if len(original.evaluations) != len(migrated.evaluations):
        yield f"evaluations: {len(original.evaluations)} in the original, {len(migrated.evaluations)} now"
        return
    for at, (first, second) in enumerate(zip(original.evaluations, migrated.evaluations, strict=True)):
        for name in first:
            if name == "global_step" or (name == "loss" and told_loss):
                continue
            if name not in second:
                yield f"evaluation {at}: {name} is gone; there are {', '.join(second)}"
            elif _apart(first[name], second[name]) > _CLOSE:
                yield f"evaluation {at}: {name} was {first[name]} and is {second[name]}"


def _lines(run: Run) -> list[str]:
    return [line for line in run.output.splitlines() if line.startswith(MARK)]


def _of_lines(before: Sequence[str], after: Sequence[str], told_loss: bool) -> Iterator[str]:
    if len(before) != len(after):
        yield f"{len(before)} lines were printed, {len(after)} are now: {before[-1:]} {after[-1:]}"
        return
    for first, second in zip(before, after, strict=True):
        numbers = _NUMBER.findall(first), _NUMBER.findall(second)
        words = _NUMBER.sub("", first).split()[:2], _NUMBER.sub("", second).split()[:2]
        told = told_loss and first.startswith(EVALUATED)
        pairs = list(zip(*numbers, strict=False))[1 if told else 0 :]
        same = len(numbers[0]) == len(numbers[1]) and all(_apart(float(x), float(y)) <= _CLOSE for x, y in pairs)
        if words[0][:1] != words[1][:1] or not same:
            yield f"printed: {first!r} became {second!r}"


def _of_weights(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    """By shape, the nearest first: names are others on both sides."""
    left = {name: np.asarray(value, float) for name, value in before.items()}
    for name, value in after.items():
        now = np.asarray(value, float)
        apart = {other: _apart(was, now) for other, was in left.items() if was.shape == now.shape}
        if not apart:
            yield f"{name} has no counterpart of its shape {now.shape}"
            continue
        nearest = min(apart, key=lambda other: apart[other])
        del left[nearest]
        if apart[nearest] > _CLOSE:
            yield f"{name} is {apart[nearest]:.1e} away from {nearest}"
    for name, was in left.items():
        if not _untrained(was):
            yield f"{name} {was.shape} is gone, which the original trained"


def _untrained(value: np.ndarray) -> bool:
    """Whether a variable still has the value that it began with: nothing depended on it."""
    from tests.fuzz.inside.running import pattern

    return bool(np.all(value == 0) or np.all(value == 1) or np.array_equal(value, pattern(value.shape)))


def _apart(before: object, after: object) -> float:
    """The largest difference in terms of the largest value."""
    first, second = np.atleast_1d(np.asarray(before, float)), np.atleast_1d(np.asarray(after, float))
    if first.shape != second.shape:
        return float("inf")
    if not first.size or np.array_equal(first, second, equal_nan=True):
        return 0.0
    apart = np.max(np.abs(first - second)) / max(float(np.max(np.abs(first))), 1e-2)
    return float("inf") if np.isnan(apart) else float(apart)
