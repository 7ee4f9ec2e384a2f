"""Which of several variables of the same shape is which, by what flows through them.

Variables that could be taken for each other get the same values in both programs. Then it does not matter for what a
step computes which is which; but each gets a gradient of its own, by which it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from migrator.harness.protocol.name_map import NameMap
from migrator.harness.recording import Array, Recording

#: What two programs of the same arithmetic are apart in a gradient is far less, as a share of its greatest number.
AGREE = 1e-3


def classes(original: Recording, names: NameMap) -> tuple[tuple[str, ...], ...]:
    """The original's variables that have the same shape, type and trainability as others, class by class."""
    paired = names.to_migrated()
    found: dict[tuple[tuple[int, ...], str, bool], list[str]] = {}
    for variable in original.variables:
        if variable.name in paired:
            found.setdefault((variable.shape, variable.dtype, variable.trainable), []).append(variable.name)
    return tuple(tuple(members) for members in found.values() if len(members) > 1)


def alike(values: Mapping[str, Array], of: Sequence[Sequence[str]]) -> dict[str, Array]:
    """The values, with those of the first member in all members of each class."""
    made = dict(values)
    for members in of:
        made |= {name: values[members[0]] for name in members if members[0] in values}
    return made


def first_losses_agree(original: Recording, migrated: Recording) -> bool:
    """Whether the first losses are the same but for rounding."""
    ours, theirs = (next((s.loss for s in one.steps if s.number == 1), np.nan) for one in (original, migrated))
    return bool(np.isfinite(ours) and np.isfinite(theirs) and abs(ours - theirs) <= AGREE * abs(ours))


def _shown(recording: Recording, name: str) -> Array | None:
    """The gradient of a variable in the first step; what it is after that step where it has none."""
    gradient = recording.gradients.get(1, {}).get(name)
    return recording.states.get(1, {}).get(name) if gradient is None else gradient


def by_flow(original: Recording, migrated: Recording, names: NameMap, of: Sequence[Sequence[str]]) -> NameMap:
    """The map with the members of each class paired by what they show in a step of both programs from `alike` values.

    It stays as it is where that does not tell: the programs differ then, or show nothing.
    """
    paired = names.to_migrated()
    for members in of:
        theirs = [paired[name] for name in members]
        left = [_shown(original, name) for name in members]
        right = [_shown(migrated, name) for name in theirs]
        if any(one is None for one in (*left, *right)):
            continue
        cost = np.asarray([[_distance(a, b) for b in right] for a in left])
        rows, columns = linear_sum_assignment(cost)
        if cost[rows, columns].max() > AGREE or cost[rows, columns].sum() >= np.trace(cost):
            continue
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
            paired[members[i]] = theirs[j]
    pairs = tuple(paired.items())
    if pairs == names.pairs:
        return names
    return replace(names, pairs=pairs, how=f"{names.how}, and by what flows through those of the same shape")


def _distance(a: Array | None, b: Array | None) -> float:
    assert a is not None and b is not None
    if a.shape != b.shape or a.size == 0:
        return 1e9
    scale = max(float(np.max(np.abs(a))), float(np.max(np.abs(b))))
    if scale == 0.0:
        return 0.0
    gap = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)))) / scale
    return gap if np.isfinite(gap) else 1e9
