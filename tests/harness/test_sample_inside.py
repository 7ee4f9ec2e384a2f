"""Evaluations of no more than the first batches of a data set. Without TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    import sample

    yield sample
    for name in ("sample", "parts"):
        sys.modules.pop(name, None)


class Data:
    """A stand-in for a data set."""

    element_spec = ()

    def __init__(self, taken: int | None = None) -> None:
        self.taken = taken

    def take(self, count: int) -> Data:
        return Data(count)

    def __iter__(self) -> Iterator[int | None]:
        return iter([self.taken])


def estimator() -> Any:
    class Estimator:
        def evaluate(self, input_fn: Any, steps: int | None = None, hooks: Any = None) -> Any:
            return input_fn, steps, hooks

        def _call_input_fn(self, input_fn: Any, mode: str, input_context: Any = None) -> Any:
            return input_fn()

    return Estimator


def model() -> Any:
    class Model:
        def fit(
            self, x: Any = None, batch_size: Any = None, validation_data: Any = None, validation_steps: Any = None
        ) -> Any:
            return x, validation_data, validation_steps

        def evaluate(
            self, x: Any = None, y: Any = None, batch_size: Any = None, steps: Any = None, **kwargs: Any
        ) -> Any:
            return x, y, steps, kwargs

        def predict(self, x: Any, batch_size: Any = None, steps: Any = None) -> Any:
            return x, steps

    return Model


@pytest.mark.parametrize(("asked", "taken"), [(None, 5), (100, 5), (3, 3)])
def test_an_estimator_takes_so_many_steps_at_most(sample: Any, asked: int | None, taken: int) -> None:
    kind = estimator()
    sample.watch_estimator(kind, 5, lambda found: isinstance(found, Data))
    assert kind().evaluate("data", asked) == ("data", taken, None)
    assert kind().evaluate(input_fn="data", steps=asked, hooks=[1]) == ("data", taken, [1])


def test_an_estimator_predicts_so_many_batches_of_a_dataset_at_most(sample: Any) -> None:
    kind = estimator()
    sample.watch_estimator(kind, 5, lambda found: isinstance(found, Data))
    assert [kind()._call_input_fn(Data, mode).taken for mode in ("infer", "train", "eval")] == [5, None, None]
    assert kind()._call_input_fn(lambda: "tensors", "infer") == "tensors"


@pytest.mark.parametrize(("asked", "taken"), [(None, 5), (100, 5), (3, 3)])
def test_keras_takes_so_many_batches_of_a_dataset_at_most(sample: Any, asked: int | None, taken: int) -> None:
    kind, data = model(), Data()
    sample.watch_keras(kind, 5)
    assert kind().evaluate(data, steps=asked) == (data, None, taken, {})
    assert kind().evaluate(x=data, steps=asked, verbose=0) == (data, None, taken, {"verbose": 0})
    assert kind().predict(data, steps=asked) == (data, taken)
    assert kind().fit("x", validation_data=data, validation_steps=asked) == ("x", data, taken)
    assert kind().fit("x", validation_steps=asked) == ("x", None, asked)


def test_keras_takes_so_many_batches_of_arrays_at_most(sample: Any) -> None:
    """A number of steps would be another batch size of arrays."""
    kind = model()
    sample.watch_keras(kind, 5)
    x, y = np.arange(1000), np.arange(1000) * 2
    found = kind().evaluate({"x": x}, [y], batch_size=3)
    assert found[2] is None and found[0]["x"].tolist() == x[:15].tolist() and found[1][0].tolist() == y[:15].tolist()
    assert len(kind().predict(x)[0]) == 5 * 32 and kind().predict(x, steps=2)[0] is x
    _, validation, steps = kind().fit(x, batch_size=2, validation_data=(x, y, None))
    assert steps is None and [one if one is None else len(one) for one in validation] == [10, 10, None]


def test_a_loop_goes_over_so_many_batches_at_most_when_training_is_over(sample: Any) -> None:
    kind = type("Kind", (Data,), {})
    done = [False]
    sample.watch_loops(kind, 5, lambda: done[0])
    assert list(kind()) == [None]
    done[0] = True
    assert list(kind()) == [5]


def test_without_a_plan_nothing_is_touched(sample: Any) -> None:
    sample.install(None, {"data_sample": None}, "original", None)
