"""The comparator: nothing absent, non-finite, reshaped, permuted or scaled may pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.harness.protocol import judging
from migrator.harness.protocol.compare import BLOCK, Kind, compare, ulp_distance
from migrator.harness.protocol.measurements import STATE, Quantity
from migrator.harness.protocol.tolerance import EPS, FORWARD, TRAJECTORY, UPDATE, Tolerance

KEY = (Quantity(STATE, "w"), 1)


def test_numbers_whose_difference_no_float_holds_are_no_equal_ones() -> None:
    found = compare(np.float64([1.0, 1e308]), np.float64([1.0, -1e308]))
    assert (found.kind, found.absolute, found.index) == (Kind.VALUE, float("inf"), (1,))


def test_integers_are_the_same_or_not() -> None:
    for value in (np.int64([2**62, 2**62 + 1]), np.array([True, False])):
        other = value.copy()
        other[1] = value[0]
        assert compare(value, value.copy()).absolute == 0.0
        assert (compare(value, other).absolute, compare(value, other).index) == (1.0, (1,))


def passes(original: object, migrated: object) -> bool:
    """Whether a difference would pass for noise, with a floor of some ulps of the largest element."""
    a = None if original is None else np.asarray(original)
    b = None if migrated is None else np.asarray(migrated)
    reference = a if a is not None and a.size else np.ones(1, np.float32)
    with np.errstate(all="ignore"):
        scale = float(np.nanmax(np.abs(np.where(np.isfinite(reference), reference, 1)).astype(np.float64)))
    c = dict.fromkeys((FORWARD, UPDATE, TRAJECTORY), 8.0)
    limits = Tolerance({KEY: 4 * EPS * scale}, c, dict.fromkeys(c, (1.0,)), 6, 1.0, 1, True)
    ours = {} if a is None else {KEY: a}
    theirs = {} if b is None else {KEY: b}
    found = judging.judge(ours, theirs, limits)
    return bool(found.findings) and not found.outside and not found.unjudged


SQUARE = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
HUGE = SQUARE.copy()
HUGE[2, 1] = 3e38
NANS = SQUARE.copy()
NANS[1, 1] = np.nan
INFINITE = SQUARE.copy()
INFINITE[0, 3] = np.inf

NEVER = {
    "nan on both sides": (NANS, NANS),
    "nan in the original": (NANS, SQUARE),
    "nan in the migrated": (SQUARE, NANS),
    "infinity on both sides": (INFINITE, INFINITE),
    "original short": (SQUARE[:3], SQUARE),
    "migrated short": (SQUARE, SQUARE[:3]),
    "permuted rows": (SQUARE, SQUARE[[1, 0, 2, 3]]),
    "transposed square": (SQUARE, SQUARE.T),
    "scaled by two": (SQUARE, SQUARE * 2),
    "negated": (SQUARE, -SQUARE),
    "empty": (SQUARE[:0], SQUARE[:0]),
    "empty against full": (SQUARE[:0], SQUARE),
    "one huge element": (SQUARE, HUGE),
    "broadcastable row": (np.ones((4, 4), np.float32), np.ones((1, 4), np.float32)),
    "broadcastable scalar": (np.ones(4, np.float32), np.float32(1)),
    "missing in the original": (None, SQUARE),
    "missing in the migrated": (SQUARE, None),
    "missing in both": (None, None),
    "other dtype": (SQUARE, SQUARE.astype(np.float64)),
    "integers off by one": (np.array([2**30]), np.array([2**30 + 1])),
    "other booleans": (np.array([True, False]), np.array([True, True])),
    "zeros against ones": (np.zeros(3, np.float32), np.ones(3, np.float32)),
    "zeros against a denormal": (np.zeros(3, np.float32), np.full(3, 1e-42, np.float32)),
}


@pytest.mark.parametrize("case", NEVER.values(), ids=NEVER.keys())
def test_what_may_never_pass(case: tuple[object, object]) -> None:
    assert not passes(*case)


@pytest.mark.parametrize("value", [SQUARE, HUGE, np.zeros(3, np.float32), np.float32(2.5), np.array([1, 2])])
def test_a_value_passes_against_itself_and_against_its_neighbour(value: np.ndarray) -> None:
    assert passes(value, value.copy())
    if np.issubdtype(np.asarray(value).dtype, np.floating) and np.any(value):
        assert passes(value, np.nextafter(value, np.float32(0)))


finite = st.floats(min_value=-1e6, max_value=1e6, width=32)
matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(finite, min_size=n * n, max_size=n * n).map(
        lambda values: np.array(values, np.float32).reshape(n, n)
    )
)


@given(matrices)
def test_identity_passes_and_every_visible_change_does_not(value: np.ndarray) -> None:
    assert passes(value, value)
    scale = float(np.max(np.abs(value)))
    for changed in (value.T, value[::-1], value * np.float32(2), np.zeros_like(value)):
        gap = float(np.max(np.abs(value.astype(np.float64) - changed)))
        assert passes(value, changed) == (gap <= 32 * EPS * scale)


@given(matrices, st.data())
def test_one_bad_element_anywhere_is_found(value: np.ndarray, data: st.DataObject) -> None:
    index = data.draw(st.tuples(*(st.integers(0, n - 1) for n in value.shape)))
    changed = value.copy()
    changed[index] += np.float32(1e-3) * max(np.float32(1), np.max(np.abs(value)))
    outcome = compare(value, changed)
    assert outcome.kind is Kind.VALUE
    assert outcome.index == index
    assert not passes(value, changed)
    for bad in (np.nan, np.inf, -np.inf):
        changed[index] = bad
        assert compare(value, changed).kind is Kind.NON_FINITE
        assert not passes(value, changed)
        assert not passes(changed, changed)


@settings(deadline=None)
@given(finite, st.integers(0, 1000))
def test_ulp_distance_counts_float32_numbers(value: float, steps: int) -> None:
    moved = np.float32(value)
    for _ in range(steps):
        moved = np.nextafter(moved, np.float32(np.inf))
    assert ulp_distance(value, float(moved)) == steps
    assert ulp_distance(float(moved), value) == steps


def test_ulp_distance_of_no_number_is_none() -> None:
    assert ulp_distance(float("nan"), 1.0) is None
    assert ulp_distance(1.0, float("inf")) is None


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, BLOCK + 7])
def test_a_tensor_of_several_blocks_is_compared_whole(place: int) -> None:
    ours = np.zeros((2, BLOCK // 2 + 4), np.float32)
    theirs = ours.copy()
    theirs.reshape(-1)[place] = 3.0
    index = tuple(int(i) for i in np.unravel_index(place, ours.shape))
    found = compare(ours, theirs)
    assert (found.kind, found.absolute, found.index, found.migrated) == (Kind.VALUE, 3.0, index, 3.0)
    theirs.reshape(-1)[place] = np.nan
    assert (compare(ours, theirs).kind, compare(ours, theirs).index) == (Kind.NON_FINITE, index)
