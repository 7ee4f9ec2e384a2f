"""The mistakes, as edits of the text of a Keras training script."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class UnchangedError(AssertionError):
    """A mutator claimed to apply and left the text as it was: a test built on it would prove nothing."""


@dataclass(frozen=True)
class Mutant:
    """One mistake. `expected_level` is the first level that must say DIFFERENT.

    `edit` returns the changed text, or None where the script has nothing to make this mistake in, or where
    the mistake could not be seen (half a batch of one example).
    """

    id: str
    description: str
    expected_level: str
    edit: Callable[[str], str | None]


def apply(mutant: Mutant, text: str) -> str | None:
    """The script with the mistake, or None if it does not apply. Raises UnchangedError if nothing changed."""
    changed = mutant.edit(text)
    if changed is None:
        return None
    if changed == text:
        raise UnchangedError(f"the mutant {mutant.id} left the script as it was")
    ast.parse(changed)
    return changed


def applicable(text: str) -> tuple[tuple[Mutant, str], ...]:
    """The mutants that apply to a script, with the changed texts."""
    changed = ((mutant, apply(mutant, text)) for mutant in MUTANTS)
    return tuple((mutant, result) for mutant, result in changed if result is not None)


_NUMBER = r"[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?"


def _keyword(text: str, name: str, change: Callable[[float], float]) -> str | None:
    """Changes every literal value of the keyword argument `name`."""
    pattern = re.compile(rf"\b{name}=({_NUMBER})")
    if not pattern.search(text):
        return None
    return pattern.sub(lambda match: f"{name}={change(float(match[1]))!r}", text)


def _closing(text: str, opening: int) -> int:
    """The place of the bracket that closes the one at `opening`. The text is Python without brackets in
    strings.
    """
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


def _calls(text: str, pattern: str) -> Sequence[tuple[int, int]]:
    """(place of the opening bracket, of the closing one) of every call whose callee ends at a match of
    `pattern`.
    """
    openings = [match.end() - 1 for match in re.finditer(pattern + r"\(", text)]
    return [(opening, _closing(text, opening)) for opening in openings]


def _with_argument(text: str, opening: int, closing: int, argument: str) -> str:
    inside = text[opening + 1 : closing].strip()
    separator = "" if not inside else " " if inside.endswith(",") else ", "
    return text[:closing] + separator + argument + text[closing:]


def _summed(text: str) -> str | None:
    calls = _calls(text, r"\bkeras\.losses\.[A-Z]\w+")
    batches = _batch_calls(text)
    if not calls or "reduction=" in text or not batches or batches[0][2] == "1":
        return None
    return _with_argument(text, *calls[0], 'reduction="sum"')


def _batch_calls(text: str) -> list[tuple[int, int, str]]:
    """The calls of Dataset.batch: opening, closing, and the text of the batch size."""
    found = []
    for opening, closing in _calls(text, r"\.batch"):
        size = text[opening + 1 : closing].split(",")[0].strip()
        if size:
            found.append((opening, closing, size))
    return found


def _half_batch(text: str) -> str | None:
    batches = _batch_calls(text)
    if not batches or batches[0][2] == "1":
        return None
    opening, closing, size = batches[0]
    return text[: opening + 1] + text[opening + 1 : closing].replace(size, f"({size}) // 2", 1) + text[closing:]


def _without_last_batch(text: str) -> str | None:
    batches = _batch_calls(text)
    if not batches:
        return None
    opening, closing, size = batches[0]
    line = text.rfind("\n", 0, opening) + 1
    repeat = text.rfind(".repeat(", line, opening)
    if repeat >= 0:
        # Repeated before it is batched: the last batch of an epoch is its last examples.
        return f"{text[:repeat]}.apply(lambda d: d.take(d.cardinality() - ({size}))){text[repeat:]}"
    return f"{text[: closing + 1]}.apply(lambda d: d.take(d.cardinality() - 1)){text[closing + 1 :]}"


def _without_regularizers(text: str) -> str | None:
    pattern = re.compile(r",?\s*\b(?:kernel|bias|activity)_regularizer=")
    changed, found = text, pattern.search(text)
    if found is None:
        return None
    while found is not None:
        end, depth = found.end(), 0
        while depth or changed[end] not in ",)":
            depth += (changed[end] in "([{") - (changed[end] in ")]}")
            end += 1
        changed = changed[: found.start()] + changed[end:]
        found = pattern.search(changed)
    return re.sub(r"\(\s*,\s*", "(", changed)


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "learning-rate",
        "the learning rate is 1% higher",
        "L0b",
        lambda text: _keyword(text, "learning_rate", lambda rate: rate * 1.01),
    ),
    Mutant(
        "epsilon",
        "the optimizer keeps Keras' default epsilon of 1e-7",
        "L0b",
        lambda text: _keyword(text, "epsilon", lambda _: 1e-7),
    ),
    Mutant("sum-for-mean", "the loss is summed over the batch instead of averaged", "L3", _summed),
    Mutant("batch-split", "the batch is divided between replicas instead of given to each", "L0b", _half_batch),
    Mutant("dropped-regularizer", "the regularisers are left out", "L0b", _without_regularizers),
    Mutant("dropped-last-batch", "the last batch of an epoch is dropped", "L2", _without_last_batch),
    Mutant(
        # Not exactly zero, which would divide a zero gradient by zero and be a crash instead of a mistake.
        "missing-accumulator",
        "the accumulator starts at (nearly) zero instead of TF1's initial value",
        "L0b",
        lambda text: _keyword(text, "initial_accumulator_value", lambda _: 1e-6),
    ),
)
