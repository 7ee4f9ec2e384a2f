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


class _Data:
    """A dataset that notes how it is shuffled."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool | None = None, name: str = ""
    ) -> _Data:
        self.asked.append((buffer_size, seed, reshuffle_each_iteration, name))
        return self


@pytest.mark.parametrize("one_order", [False, True])
def test_shuffles_are_given_a_seed_and_one_order(
    shuffles: Any, monkeypatch: pytest.MonkeyPatch, one_order: bool
) -> None:
    class Data(_Data):
        shuffle = _Data.shuffle

    tf = SimpleNamespace(constant=lambda value, dtype: value, int64="int64")
    seeds = SimpleNamespace(get_seed=lambda seed: (1, seed))
    for name, module in (
        ("tensorflow", tf),
        ("tensorflow.python.data.ops.dataset_ops", SimpleNamespace(DatasetV2=Data)),
        ("tensorflow.python.data.util.random_seed", seeds),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    shuffles.give_seed(5, one_order)
    assert seeds.get_seed(7) == (87654321, 7)
    data = Data()
    data.shuffle(8).shuffle(8, 3, True).shuffle(8, seed=4, reshuffle_each_iteration=True, name="a")
    again = (False, False, False) if one_order else (None, True, True)
    assert data.asked == [(8, 5, again[0], ""), (8, 3, again[1], ""), (8, 4, again[2], "a")]


def test_nothing_is_shuffled_where_data_are_to_stay_in_place(shuffles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a dataset, nor by a queue or what feeds it, nor by Keras."""

    class Data(_Data):
        shuffle = _Data.shuffle

    class Feeder:
        def __init__(self, array: str, random_start: bool = False) -> None:
            self.begins = "anywhere" if random_start else "at the first"

    class Model:
        def fit(self, x: str, shuffle: bool = True) -> bool:
            return shuffle

    made: dict[str, Any] = {}
    feeders = dict.fromkeys(("_ArrayFeedFn", "_OrderedDictNumpyFeedFn", "_PandasFeedFn", "_GeneratorFeedFn"), Feeder)
    queues = SimpleNamespace(
        random_shuffle_queue_v2=lambda component_types, **kwargs: "shuffled",
        fifo_queue_v2=lambda component_types, **kwargs: made.update(kwargs) or "in order",
    )
    for name, module in (
        ("tensorflow.python.data.ops.dataset_ops", SimpleNamespace(DatasetV2=Data)),
        ("tensorflow.python.ops.gen_data_flow_ops", queues),
        ("tensorflow_estimator.python.estimator.inputs.queues.feeding_functions", SimpleNamespace(**feeders)),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    shuffles.leave_in_place(SimpleNamespace(keras=SimpleNamespace(Model=Model)))
    data = Data()
    assert data.shuffle(8, seed=3) is data and data.asked == []
    asked = {"capacity": 9, "min_after_dequeue": 2, "seed": 1, "seed2": 2, "shared_name": "q"}
    assert queues.random_shuffle_queue_v2(["int"], shapes=[[]], **asked) == "in order"
    assert made == {"shapes": [[]], "capacity": 9, "shared_name": "q"}
    assert Feeder("x", random_start=True).begins == "at the first"
    assert Model().fit("x") is False
