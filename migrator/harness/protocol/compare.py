"""Comparing one value with another so that nothing absent, non-finite or of another shape can pass."""

from __future__ import annotations

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


def _bad_index(values: Array) -> tuple[int, ...] | None:
    if not np.issubdtype(values.dtype, np.floating):
        return None
    bad = np.argwhere(~np.isfinite(values))
    return tuple(int(i) for i in bad[0]) if len(bad) else None


def compare(original: Array | None, migrated: Array | None) -> Comparison:
    """Compares two tensors element by element, without broadcasting and without casting between dtypes.

    A non-finite element on either side is a finding even when both sides hold the same one: equal NaNs show
    that both programs broke, not that they agree.
    """
    if original is None or migrated is None:
        sides = [name for name, value in (("original", original), ("migrated", migrated)) if value is None]
        return Comparison(Kind.MISSING, detail="missing in " + " and ".join(sides))
    if original.shape != migrated.shape:
        return Comparison(Kind.SHAPE, detail=f"shape {list(original.shape)} against {list(migrated.shape)}")
    if original.dtype != migrated.dtype:
        return Comparison(Kind.DTYPE, detail=f"dtype {original.dtype} against {migrated.dtype}")
    if original.size == 0:
        return Comparison(Kind.EMPTY, detail="no elements")
    for values in (original, migrated):
        index = _bad_index(values)
        if index is not None:
            return Comparison(
                Kind.NON_FINITE,
                index=index,
                original=float(original[index]),
                migrated=float(migrated[index]),
                detail="non-finite",
            )
    # Booleans have no difference in numpy, and int64 may not fit a float64: exact inequality decides for
    # both.
    if np.issubdtype(original.dtype, np.floating):
        difference = np.abs(original.astype(np.float64) - migrated.astype(np.float64))
    else:
        difference = (original != migrated).astype(np.float64)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(difference)), difference.shape))
    return Comparison(Kind.VALUE, float(difference[index]), index, float(original[index]), float(migrated[index]))


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
