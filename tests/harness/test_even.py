"""The random numbers of training steps: evenly spread, and decided by the place in an example and by the step."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(INSIDE))
    import even

    yield even
    for name in ("even", "parts"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 64, 1000])
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.8])
def test_a_dropout_drops_its_share(even, count: int, rate: float) -> None:  # type: ignore[no-untyped-def]
    numbers = even.numbers(count)
    assert numbers.shape == (count,) and np.all((numbers >= 0.0) & (numbers < 1.0))
    dropped = int(np.sum(numbers < rate))
    assert abs(dropped - rate * count) <= 2.0
    assert dropped < count  # something is always left to be trained


@pytest.mark.parametrize("kind", ["uniform", "log_uniform"])
@pytest.mark.parametrize("unique", [True, False])
def test_sampled_classes_are_of_their_distribution(even, kind: str, unique: bool) -> None:  # type: ignore[no-untyped-def]
    most, count = 50, 8
    every = np.arange(most)[None]
    often = np.zeros(most)
    reckoned = np.zeros(most)
    for step in range(1000):
        sampled, of_all, of_sampled = even.candidates(kind, every, count, unique, most, step)
        assert sampled.shape == (count,) and len(set(sampled)) == (count if unique else len(set(sampled)))
        assert np.array_equal(of_all[0][sampled], of_sampled)
        np.add.at(often, sampled, 1.0)
        reckoned += of_all[0]
    # What TensorFlow reckons is what comes of many steps, but for the class that a set has last.
    assert np.allclose(often, reckoned, atol=5 * np.sqrt(reckoned.max()), rtol=0.1 if unique else 0.0)
    again = even.candidates(kind, every, count, unique, most, 3)
    assert all(
        np.array_equal(a, b) for a, b in zip(again, even.candidates(kind, every, count, unique, most, 3), strict=True)
    )
    assert not np.array_equal(again[0], even.candidates(kind, every, count, unique, most, 4)[0])
