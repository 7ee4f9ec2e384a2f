"""The seeds of shuffles: what is told of them, and which are the same in both programs. Without TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def shuffles(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    import shuffles

    yield shuffles
    for name in ("shuffles", "parts"):
        sys.modules.pop(name, None)


def test_a_shuffle_with_a_seed_is_in_one_order_whatever_the_seed_of_the_program(shuffles: Any) -> None:
    """An Estimator's RunConfig gives its graphs the seed 1, and Keras none."""
    tf = SimpleNamespace(constant=lambda value, dtype: value, int64="int64")
    in_estimator, in_keras = shuffles.of_its_own(tf, (1, 7), 7), shuffles.of_its_own(tf, (87654321, 7), 7)
    assert in_estimator == in_keras == (87654321, 7)
    assert shuffles.of_its_own(tf, (1, 8), 8) != in_keras


def test_a_shuffle_without_one_is_left_to_the_program(shuffles: Any) -> None:
    tf = SimpleNamespace(constant=lambda value, dtype: value, int64="int64")
    assert shuffles.of_its_own(tf, (1, 3), None) == (1, 3)
