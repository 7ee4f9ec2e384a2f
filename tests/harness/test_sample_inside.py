"""Evaluations of no more than the first batches of a data set. Without TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    import sample

    yield sample
    for name in ("sample", "parts"):
        sys.modules.pop(name, None)


def estimator() -> Any:
    class Estimator:
        def evaluate(self, input_fn: Any, steps: int | None = None, hooks: Any = None) -> Any:
            return input_fn, steps, hooks

    return Estimator


def model() -> Any:
    class Model:
        def fit(self, x: Any = None, validation_data: Any = None, validation_steps: int | None = None) -> Any:
            return x, validation_data, validation_steps

        def evaluate(self, x: Any = None, y: Any = None, steps: int | None = None, **kwargs: Any) -> Any:
            return x, y, steps, kwargs

    return Model


@pytest.mark.parametrize(("asked", "taken"), [(None, 5), (100, 5), (3, 3)])
def test_an_estimator_takes_so_many_steps_at_most(sample: Any, asked: int | None, taken: int) -> None:
    kind = estimator()
    sample.watch_estimator(kind, 5)
    assert kind().evaluate("data", asked) == ("data", taken, None)
    assert kind().evaluate(input_fn="data", steps=asked, hooks=[1]) == ("data", taken, [1])


@pytest.mark.parametrize(("asked", "taken"), [(None, 5), (100, 5), (3, 3)])
def test_keras_takes_so_many_batches_of_a_dataset_at_most(sample: Any, asked: int | None, taken: int) -> None:
    kind = model()
    sample.watch_keras(kind, lambda data: isinstance(data, str), 5)
    assert kind().evaluate("data", steps=asked) == ("data", None, taken, {})
    assert kind().evaluate(x="data", steps=asked, verbose=0) == ("data", None, taken, {"verbose": 0})
    assert kind().fit("x", validation_data="data", validation_steps=asked) == ("x", "data", taken)
    # A number of steps would be another batch size of arrays, and there may be nothing to validate with.
    assert kind().evaluate([1], [2], steps=asked) == ([1], [2], asked, {})
    assert kind().fit("x", validation_steps=asked) == ("x", None, asked)


def test_without_a_plan_nothing_is_touched(sample: Any) -> None:
    sample.install(None, {"data_sample": None}, "original")
