"""Counts of steps in variables of a loop's own, as single steps start from them. Without TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


class Variable:
    def __init__(self, value: float, rank: int = 0, number: bool = True) -> None:
        self.value = value
        self.shape = SimpleNamespace(rank=rank)
        self.dtype = SimpleNamespace(is_integer=False, is_floating=number)

    def numpy(self) -> float:
        return self.value

    def assign(self, value: float) -> None:
        self.value = value


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(INSIDE))
    import own_counts

    return own_counts.OwnCounts()


def test_what_grows_by_one_with_the_first_step_counts(counts: Any) -> None:
    count, later, loss, scale, table, text = (
        Variable(5.0),
        Variable(0.0),
        Variable(0.0),
        Variable(1.0),
        Variable(0.0, rank=1),
        Variable(0.0, number=False),
    )
    counts.note([count, loss, scale, table, text])
    counts.note([count])  # traced once more
    for one in (count, table, text):
        one.value += 1
    loss.value += 0.7
    counts.start_from(200)
    assert (count.value, later.value, loss.value, scale.value, table.value) == (204.0, 0.0, 0.7, 1.0, 1.0)
    count.value += 1
    counts.start_from(3)
    assert count.value == 7.0
