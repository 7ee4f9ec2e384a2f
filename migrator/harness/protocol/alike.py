"""Which rows of numbers of two programs are the same but for rounding.

Two versions of TensorFlow divide by 255 with results that are one unit in the last place apart. Rows are compared pair
by pair, never by cells that values are rounded to: on the edge of a cell two neighbours would be told apart. A row of
the one program is that of at most one row of the other, as far as that can be had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from migrator.harness.recording import Array

#: How far rounding takes numbers apart that were computed in float32, as a share of their own size or of the usual one
#: of their column, whichever is greater.
ROUNDING = 4 * float(np.finfo(np.float32).eps)
# The same of numbers that have more digits than float32.
_ROUNDING_OF_DOUBLES = 16 * float(np.finfo(np.float64).eps)
# Of the rows that may be alike, by a number that is made of each, so many are looked at.
_NEAREST = 64
# Rows that are looked at to make room for one.
_MOVED = 1000


def columns(value: Array) -> Array:
    """The usual size of the numbers of each column, of rows along the first axis: what nine in ten of those that are
    not zero do not exceed, 0 where all are. The greatest would not do: beside one of 1e7, 0.4 is no rounding of 0. Nor
    would the median: log(1 + x) - 0.5 of TensorFlow 1.15 and 2.21 are further apart than four units of it.
    """
    flat = value.reshape(len(value), -1)
    if not flat.size:
        return np.zeros(flat.shape[1])
    return np.concatenate([_usual(part) for part in np.array_split(flat, flat.size // 10_000_000 + 1, axis=1)])


def _usual(flat: Array) -> Array:
    size = np.abs(flat.astype(np.float64))
    size[~np.isfinite(size) | (size == 0)] = np.inf
    size.sort(axis=0)
    count = np.sum(np.isfinite(size), axis=0)
    usual = np.take_along_axis(size, np.maximum(count - 1, 0)[None] * 9 // 10, axis=0)[0]
    return np.where(count > 0, usual, 0.0)


def rounding(value: Array) -> Array:
    """How far rounding takes apart the numbers of each column of what the original read, as a share of their size:
    what has more digits than float32 was not computed in it.
    """
    flat = value.reshape(len(value), -1)
    if flat.dtype != np.float64:
        return np.full(flat.shape[1], ROUNDING)
    with np.errstate(over="ignore"):
        short = (flat == flat.astype(np.float32)) | ~np.isfinite(flat)
    return np.where(short.all(axis=0), ROUNDING, _ROUNDING_OF_DOUBLES)


@dataclass(frozen=True)
class _Limits:
    """The usual sizes of columns, and the share of a number that is rounding in each."""

    sizes: Array
    share: Array

    @classmethod
    def of(cls, value: Array) -> _Limits:
        return cls(columns(value), rounding(value))


def pairs(ours: Array, theirs: Array) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """For each row of `theirs` the row of `ours` that it is, -1 where it is none; and what else it may be.

    Both are of shape (rows, numbers) and finite. No row of `ours` is given twice, and as many are given as can be.
    """
    return _pairs(ours, theirs, _Limits.of(ours))


def _pairs(ours: Array, theirs: Array, limits: _Limits) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    near = _neighbours(ours, theirs, limits)
    places: dict[bytes, list[int]] = {}
    for place, row in enumerate(ours):
        places.setdefault(row.tobytes(), []).append(place)
    taken = [-1] * len(ours)
    found = [-1] * len(theirs)
    for place, row in enumerate(theirs):
        own = places.get(row.tobytes())
        if own:
            found[place] = own.pop()
            taken[found[place]] = place
    for place in range(len(theirs)):
        if found[place] < 0:
            _take(place, near, found, taken)
    return tuple(found), tuple(near(place) if one < 0 else () for place, one in enumerate(found))


def _take(place: int, near: Callable[[int], tuple[int, ...]], found: list[int], taken: list[int]) -> None:
    """Finds a row for one of theirs, others moving to another of their neighbours if that makes room."""
    came: dict[int, int] = {}
    waiting = [place]
    while waiting and len(came) < _MOVED:
        one = waiting.pop(0)
        for row in near(one):
            if row in came:
                continue
            came[row] = one
            if taken[row] >= 0:
                waiting.append(taken[row])
                continue
            while True:  # back along the way
                mover = came[row]
                left = found[mover]
                found[mover], taken[row] = row, mover
                if mover == place:
                    return
                row = left


def _neighbours(ours: Array, theirs: Array, limits_of: _Limits) -> Callable[[int], tuple[int, ...]]:
    """Which rows of `ours` a row of `theirs` may be, the nearest first."""
    sizes, share = limits_of.sizes, limits_of.share
    limits = sizes * share
    counted = limits > 0
    weights = np.random.RandomState(0).uniform(0.5, 1.0, int(counted.sum()))
    signs = np.random.RandomState(1).choice([-1.0, 1.0], len(weights))

    def along(rows: Array) -> Array:
        """Of each row a number; those of rows that are alike are no further apart than `width`."""
        made = [
            (one[:, counted].astype(np.float64) / limits[counted]) @ (weights * signs)
            for one in np.array_split(rows, max(1, rows.size // 10_000_000 + 1))
        ]
        return np.concatenate(made) if made else np.zeros(0)

    own, other = along(ours), along(theirs)
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    inexact = 1e-12 * float(np.max(np.abs(own), initial=0.0))
    known: dict[int, tuple[int, ...]] = {}

    def near(place: int) -> tuple[int, ...]:
        if place not in known:
            row = theirs[place].astype(np.float64)
            allowed = share * np.maximum(np.abs(row), sizes)
            width = float((allowed[counted] / limits[counted]) @ weights) * (1.0 + 1e-6) + inexact
            low, high = np.searchsorted(ordered, [other[place] - width, other[place] + width])
            within = order[low:high]
            if len(within) > _NEAREST:
                within = within[np.argsort(np.abs(own[within] - other[place]), kind="stable")[:_NEAREST]]
            apart = np.abs(ours[within].astype(np.float64) - row)
            alike = within[np.all(apart <= allowed, axis=1)]
            far = np.abs(own[alike] - other[place])
            known[place] = tuple(int(row) for row in alike[np.argsort(far, kind="stable")])
        return known[place]

    return near


@dataclass(frozen=True)
class Example:
    """An example: a digest of what has to be equal, and its other numbers in a row."""

    exact: bytes
    numbers: Array


def example(components: Mapping[str, Array]) -> Example:
    """One example of its components by path, each without the axis of the batch: numbers that are not whole may be
    rounded otherwise, all else has to be equal, and so have types and shapes.
    """
    digest, numbers = hashlib.sha256(), []
    for path, value in sorted(components.items()):
        digest.update(f"{path} {value.dtype} {value.shape}".encode())
        if value.dtype.kind == "f":
            flat = value.reshape(-1)
            finite = np.isfinite(flat)
            if not finite.all():
                digest.update(np.where(finite, 0.0, flat.astype(np.float64)).tobytes())
                flat = np.where(finite, flat, 0)
            numbers.append(flat)
        else:
            digest.update(repr(value.tolist()).encode() if value.dtype == object else value.tobytes())
    row = np.concatenate(numbers) if numbers else np.zeros(0, np.float32)
    return Example(digest.digest(), row)


Names = Mapping[str, str]


def names(ours: Mapping[str, Example], theirs: Mapping[str, Example]) -> tuple[Names, Names]:
    """Other names for examples of either program, such that those that are the same but for rounding have one name.

    Names of `theirs` become such of `ours`; what is left on either side, and is like an example that has found its own,
    has the name of that. What keeps its name is not in the answer.
    """
    of_ours: dict[str, str] = {}
    of_theirs: dict[str, str] = {}
    groups: dict[tuple[bytes, int], tuple[list[str], list[str]]] = {}
    for side, table in enumerate((ours, theirs)):
        for name, one in table.items():
            groups.setdefault((one.exact, len(one.numbers)), ([], []))[side].append(name)
    limits: dict[int, _Limits] = {}  # of all examples: those that have one label may be few
    for (_, count), (left, right) in groups.items():
        if not left or not right or set(left) == set(right):
            continue
        a, b = (np.stack([table[name].numbers for name in side]) for table, side in ((ours, left), (theirs, right)))
        if count not in limits:
            limits[count] = _Limits.of(np.stack([one.numbers for one in ours.values() if len(one.numbers) == count]))
        found, others = _pairs(a, b, limits[count])
        for name, row, more in zip(right, found, others, strict=True):
            place = row if row >= 0 else next(iter(more), -1)
            if place >= 0 and left[place] != name:
                of_theirs[name] = left[place]
        of_ours.update({left[row]: left[other] for row, other in _left(a, b, found, limits[count])})
    return of_ours, of_theirs


def _left(ours: Array, theirs: Array, found: Sequence[int], limits: _Limits) -> list[tuple[int, int]]:
    """Rows of `ours` that are found for none of theirs, each with the row that is found for one that it is like."""
    taken = {row for row in found if row >= 0}
    free = [row for row in range(len(ours)) if row not in taken]
    rows = [place for place, row in enumerate(found) if row >= 0]
    if not free or not rows:
        return []
    near = _neighbours(theirs[rows], ours[free], limits)
    return [(row, found[rows[near(number)[0]]]) for number, row in enumerate(free) if near(number)]
