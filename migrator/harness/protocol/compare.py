"""Comparing one value with another so that nothing absent, non-finite or of another shape can pass."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Kind(Enum):
    """What a comparison found. Only VALUE carries a number; all the others never pass, whatever the
    tolerance.
    """

    VALUE = "value"
    MISSING = "missing"
    SHAPE = "shape"
    DTYPE = "dtype"
    NON_FINITE = "non-finite"
    EMPTY = "empty"


@dataclass(frozen=True)
class Comparison:
    """The outcome for one tensor. `absolute` is the greatest absolute difference, found at `index`."""

    kind: Kind
    absolute: float = float("inf")
    index: tuple[int, ...] | None = None
    original: float | None = None
    migrated: float | None = None
    detail: str = ""


#: Numbers that are looked at together: a tensor of many millions is not copied to be compared.
BLOCK = 1 << 17


def blocks(*tensors: Array) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """The same numbers of tensors of one shape, one after the other: the place of the first, and they themselves.

    What was read of a file that is mapped is given back to the system when all were seen.
    """
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].size, BLOCK):
        yield start, tuple(one[start : start + BLOCK] for one in flat)
    for tensor in tensors:
        _give_back(tensor)


def _give_back(tensor: Any) -> None:
    while tensor is not None and not isinstance(tensor, np.memmap):
        tensor = getattr(tensor, "base", None)
    mapped = getattr(tensor, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def greatest(tensor: Array) -> float:
    """The greatest absolute value of a tensor of floats; 0 if it is empty, nan if a number is."""
    found = [max(abs(float(np.max(block))), abs(float(np.min(block)))) for _, (block,) in blocks(tensor)]
    return float(np.max(found)) if found else 0.0


def finite(tensor: Array) -> bool:
    """Whether all numbers of a tensor are finite; those that are no floats always are."""
    return tensor.dtype.kind != "f" or all(bool(np.all(np.isfinite(block))) for _, (block,) in blocks(tensor))


def _index(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(place, shape))


def _bad_index(values: Array) -> tuple[int, ...] | None:
    if not np.issubdtype(values.dtype, np.floating):
        return None
    for start, (block,) in blocks(values):
        bad = np.flatnonzero(~np.isfinite(block))
        if len(bad):
            return _index(start + int(bad[0]), values.shape)
    return None


def greatest_difference(a: Array, b: Array) -> tuple[float, int]:
    """The greatest absolute difference of two tensors of one shape and dtype that are not empty, and its place among
    all numbers; nan where a float of either is not finite. What are no floats are apart by 0 or 1.
    """
    floats = np.issubdtype(a.dtype, np.floating)
    # One room for all blocks, small enough to stay in the processor's cache.
    room = np.empty(min(a.size, BLOCK), np.float64)
    greatest, place = -1.0, 0
    for start, (one, other) in blocks(a, b):
        found = room[: one.size]
        if floats:
            np.subtract(one, other, out=found, dtype=np.float64)
            np.abs(found, out=found)
        else:
            # Booleans have no difference in numpy, and int64 may not fit a float64: exact inequality decides for both.
            np.not_equal(one, other, out=found, casting="unsafe")
        first = int(np.argmax(found))
        value = float(found[first])
        if not np.isfinite(value):
            return float("nan"), start + first
        if value > greatest:
            greatest, place = value, start + first
    return greatest, place


@dataclass(frozen=True)
class Distance:
    """How far a tensor that is gone was from the original's; inf where the two could not be compared."""

    absolute: float


def compare(original: Array | None, migrated: Array | Distance | None) -> Comparison:
    """Compares two tensors element by element, without broadcasting and without casting between dtypes.

    A non-finite element on either side is a finding even when both sides hold the same one: equal NaNs show
    that both programs broke, not that they agree.
    """
    if original is None or migrated is None:
        sides = [name for name, value in (("original", original), ("migrated", migrated)) if value is None]
        return Comparison(Kind.MISSING, detail="missing in " + " and ".join(sides))
    if isinstance(migrated, Distance):
        if np.isfinite(migrated.absolute):
            return Comparison(Kind.VALUE, migrated.absolute)
        return Comparison(Kind.NON_FINITE, detail="could not be compared")
    if original.shape != migrated.shape:
        return Comparison(Kind.SHAPE, detail=f"shape {list(original.shape)} against {list(migrated.shape)}")
    if original.dtype != migrated.dtype:
        return Comparison(Kind.DTYPE, detail=f"dtype {original.dtype} against {migrated.dtype}")
    if original.size == 0:
        return Comparison(Kind.EMPTY, detail="no elements")
    with np.errstate(invalid="ignore", over="ignore"):
        greatest, place = greatest_difference(original, migrated)
    for values in (original, migrated) if np.isnan(greatest) else ():
        bad = _bad_index(values)
        if bad is not None:
            return Comparison(
                Kind.NON_FINITE,
                index=bad,
                original=float(original[bad]),
                migrated=float(migrated[bad]),
                detail="non-finite",
            )
    if np.isnan(greatest):  # numbers of which no float64 holds the difference
        greatest = float("inf")
    index = _index(place, original.shape)
    return Comparison(Kind.VALUE, greatest, index, float(original[index]), float(migrated[index]))


def ulp_distance(a: float, b: float) -> int | None:
    """How many float32 numbers lie between the two, counted so that neighbours are 1 apart; None if
    non-finite.
    """
    if not (np.isfinite(a) and np.isfinite(b)):
        return None

    def ordered(value: float) -> int:
        bits = int(np.asarray(value, np.float32).view(np.int32))
        return bits if bits >= 0 else -(bits & 0x7FFFFFFF)

    with np.errstate(over="ignore"):
        return abs(ordered(a) - ordered(b))
