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
