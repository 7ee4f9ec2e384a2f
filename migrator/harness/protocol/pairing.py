"""Which of several variables of the same shape is which, by what flows through them.

Variables that could be taken for each other get the same values in both programs. Then it does not matter for what a
step computes which is which; but each gets a gradient of its own, by which it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from migrator.harness.protocol.name_map import NameMap
from migrator.harness.recording import Array, Recording

#: What two programs of the same arithmetic are apart in a gradient is far less, as a share of its greatest number.
AGREE = 1e-3


def _assigned(cost: Array) -> tuple[Array, Array]:
    """The rows and columns of the assignment that costs the least."""
    from scipy.optimize import linear_sum_assignment  # few comparisons need it, and it takes long to import

    rows, columns = linear_sum_assignment(cost)
    return rows, columns


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
        rows, columns = _assigned(cost)
        if cost[rows, columns].max() > AGREE or cost[rows, columns].sum() >= np.trace(cost):
            continue
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
            paired[members[i]] = theirs[j]
    pairs = tuple(paired.items())
    if pairs == names.pairs:
        return names
    return replace(names, pairs=pairs, how=f"{names.how}, and by what flows through those of the same shape")


# -- rows ----------------------------------------------------------------------------------------------------

#: Rows of one weight that are compared each with each other.
_MOST_ROWS = 2000


def tables(original: Recording, names: NameMap, regrouped: Iterable[str]) -> tuple[str, ...]:
    """The original's weights whose rows may stand in another order: kernels and embeddings, a row for each input."""
    known = names.to_migrated().keys() - set(regrouped)
    return tuple(
        one.name
        for one in original.variables
        if one.name in known and one.trainable and len(one.shape) == 2 and 1 < one.shape[0] <= _MOST_ROWS
    )


def with_like_rows(values: Mapping[str, Array], of: Iterable[str]) -> dict[str, Array]:
    """The values, with the mean of its rows in each row of some weights: then it does not matter for what a step
    computes which input is which, and each row gets the gradient of its own input.
    """
    like = {name: np.broadcast_to(values[name].mean(axis=0), values[name].shape).copy() for name in of}
    return {**values, **{name: value.astype(values[name].dtype) for name, value in like.items()}}


def orders(
    original: Recording, migrated: Recording, names: NameMap, of: Sequence[str]
) -> dict[str, npt.NDArray[np.int64]]:
    """By the original's name, for each row of the migrated program's weight which row of the original's it is, where
    that is another order; by the gradients of the same steps of both programs from weights `with_like_rows`.

    Empty where a weight has no such order: the programs differ in more.
    """
    paired, found = names.to_migrated(), {}
    for name in of:
        both = [gradients_of(original, name), gradients_of(migrated, paired[name])]
        if both[0] is None or both[1] is None or both[0].shape != both[1].shape:
            return {}
        scale = max(float(np.max(np.abs(one), initial=0.0)) for one in both if one is not None)
        if scale == 0.0 or np.max(np.abs(both[0] - both[1])) <= AGREE * scale:
            continue
        cost = np.stack([np.max(np.abs(both[1] - row), axis=1) for row in both[0]]) / scale
        count = len(cost)
        near = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) / count
        rows, columns = _assigned(cost + 1e-3 * AGREE * near)  # what has no gradient stays where it is
        if cost[rows, columns].max() > AGREE:
            return {}
        order = np.empty(count, np.int64)
        order[columns] = rows
        found[name] = order
    return found


def more_rows(original: Array, migrated: Array) -> npt.NDArray[np.int64] | None:
    """For each row of a migrated weight, which has more of them, which row of the original's it is, -1 for none, by the
    gradients of both (a row for each row); None where no order makes them the same. Rows that have no gradient stand
    beside those that have one.
    """
    more = len(migrated) - len(original)
    scale = max(float(np.max(np.abs(one), initial=0.0)) for one in (original, migrated))
    if scale == 0.0 or more < 0:
        return None
    order = np.full(len(migrated), -1, np.int64)
    for start in range(more, -1, -1):
        rest = np.delete(migrated, np.s_[start : start + len(original)], axis=0)
        gap = np.max(np.abs(migrated[start : start + len(original)] - original))
        if max(gap, np.max(np.abs(rest), initial=0.0)) <= AGREE * scale:
            order[start : start + len(original)] = np.arange(len(original))
            return order
    cost = np.stack([np.max(np.abs(migrated - row), axis=1) for row in original]) / scale
    rows, columns = _assigned(cost)
    order[columns] = rows
    if cost[rows, columns].max() > AGREE or np.max(np.abs(migrated[order < 0])) > AGREE * scale:
        return None
    return order


def gradients_of(recording: Recording, name: str) -> Array | None:
    """The gradients of a weight in all steps, beside each other."""
    steps = [gradients[name].astype(np.float64) for gradients in recording.gradients.values() if name in gradients]
    steps = [one for one in steps if np.isfinite(one).all()]
    return np.concatenate(steps, axis=1) if steps else None


def _distance(a: Array | None, b: Array | None) -> float:
    assert a is not None and b is not None
    if a.shape != b.shape or a.size == 0:
        return 1e9
    scale = max(float(np.max(np.abs(a))), float(np.max(np.abs(b))))
    if scale == 0.0:
        return 0.0
    gap = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)))) / scale
    return gap if np.isfinite(gap) else 1e9
