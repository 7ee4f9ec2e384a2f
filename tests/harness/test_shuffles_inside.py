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


class _Options:
    deterministic: bool | None = None


class _Both:
    """A shuffle and a repetition in one."""

    def __init__(self, dataset: Any, buffer_size: int, count: int | None = None, seed: int | None = None) -> None:
        self.asked = ("both", buffer_size, count, seed)


class _Sloppy:
    def __init__(self, dataset: Any, map_func: Any, cycle_length: int, block_length: int, sloppy: bool) -> None:
        self.sloppy = sloppy


def modules(monkeypatch: pytest.MonkeyPatch, **given: Any) -> dict[str, Any]:
    """What datasets are made by in TensorFlow, where it is not."""
    made = {
        "tensorflow.python.data.experimental.ops.shuffle_ops": SimpleNamespace(
            _ShuffleAndRepeatDataset=type("Both", (_Both,), {"__init__": _Both.__init__})
        ),
        "tensorflow.python.data.ops.readers": SimpleNamespace(
            ParallelInterleaveDataset=type("Sloppy", (_Sloppy,), {"__init__": _Sloppy.__init__})
        ),
        **given,
    }
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


class _Data:
    """A dataset that notes how it is shuffled."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool | None = None, name: str = ""
    ) -> _Data:
        self.asked.append((buffer_size, seed, reshuffle_each_iteration, name))
        return self

    def repeat(self, count: int | None = None) -> _Data:
        self.asked.append(("repeat", count))
        return self

    def with_options(self, options: _Options) -> _Data:
        self.asked.append(("options", options.deterministic))
        return self

    def map(self, function: str, parallel: int | None = None, deterministic: bool | None = None) -> _Data:
        self.asked.append((function, parallel, deterministic))
        return self

    interleave = map


@pytest.mark.parametrize("one_order", [False, True])
def test_shuffles_are_given_a_seed_and_one_order(
    shuffles: Any, monkeypatch: pytest.MonkeyPatch, one_order: bool
) -> None:
    class Data(_Data):
        shuffle, with_options, map, interleave = _Data.shuffle, _Data.with_options, _Data.map, _Data.interleave

    tf = SimpleNamespace(constant=lambda value, dtype: value, int64="int64")
    seeds = SimpleNamespace(get_seed=lambda seed: (1, seed))
    modules(
        monkeypatch,
        **{
            "tensorflow": tf,
            "tensorflow.python.data.ops.dataset_ops": SimpleNamespace(DatasetV2=Data),
            "tensorflow.python.data.util.random_seed": seeds,
        },
    )
    shuffles.give_seed(5, one_order)
    assert seeds.get_seed(7) == (87654321, 7)
    data = Data()
    data.shuffle(8).shuffle(8, 3, True).shuffle(8, seed=4, reshuffle_each_iteration=True, name="a")
    again = (False, False, False) if one_order else (None, True, True)
    assert data.asked == [(8, 5, again[0], ""), (8, 3, again[1], ""), (8, 4, again[2], "a")]


def test_nothing_is_shuffled_where_data_are_to_stay_in_place(shuffles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a dataset, nor by a queue or what feeds it, nor by Keras."""

    class Data(_Data):
        shuffle, with_options, map, interleave = _Data.shuffle, _Data.with_options, _Data.map, _Data.interleave

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
    modules(
        monkeypatch,
        **{
            "tensorflow.python.data.ops.dataset_ops": SimpleNamespace(DatasetV2=Data),
            "tensorflow.python.ops.gen_data_flow_ops": queues,
            "tensorflow_estimator.python.estimator.inputs.queues.feeding_functions": SimpleNamespace(**feeders),
        },
    )
    shuffles.leave_in_place(SimpleNamespace(keras=SimpleNamespace(Model=Model)))
    data = Data()
    assert data.shuffle(8, seed=3) is data and data.asked == []
    asked = {"capacity": 9, "min_after_dequeue": 2, "seed": 1, "seed2": 2, "shared_name": "q"}
    assert queues.random_shuffle_queue_v2(["int"], shapes=[[]], **asked) == "in order"
    assert made == {"shapes": [[]], "capacity": 9, "shared_name": "q"}
    assert Feeder("x", random_start=True).begins == "at the first"
    assert Model().fit("x") is False


def test_threads_decide_no_order_where_shuffles_have_one_seed(shuffles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two programs that read the same in whatever order is ready first could not be compared."""

    class Data(_Data):
        shuffle, with_options, map, interleave = _Data.shuffle, _Data.with_options, _Data.map, _Data.interleave

    made = modules(monkeypatch)
    shuffles.in_order(Data)
    data, options = Data(), _Options()
    options.deterministic = False
    data.with_options(options).map("f", 4, False).interleave("g", deterministic=False).map("h", 2)
    assert data.asked == [("options", True), ("f", 4, None), ("g", None, None), ("h", 2, None)]
    readers = made["tensorflow.python.data.ops.readers"]
    assert readers.ParallelInterleaveDataset(data, "f", 2, 1, True).sloppy is False
    # In another order than what a program of TensorFlow 2 says in two calls, if it were one operation.
    data = Data()
    both = made["tensorflow.python.data.experimental.ops.shuffle_ops"]
    assert both._ShuffleAndRepeatDataset(data, 8, 3, seed=5) is data
    assert data.asked == [(8, 5, None, ""), ("repeat", 3)]


def test_a_shuffle_and_a_repetition_in_one_are_told(shuffles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Data(_Data):
        shuffle, repeat = _Data.shuffle, _Data.repeat

        def _inputs(self) -> list[Any]:
            return []

    made = modules(
        monkeypatch,
        **{
            "tensorflow.python.data.ops.dataset_ops": SimpleNamespace(DatasetV2=Data),
            "tensorflow.python.ops.gen_data_flow_ops": SimpleNamespace(random_shuffle_queue_v2=None),
        },
    )
    noted: list[list[Any]] = []
    tf = SimpleNamespace(Tensor=SimpleNamespace)
    tf.Tensor = type("Tensor", (), {})
    shuffles.install(tf, noted.append)
    both = made["tensorflow.python.data.experimental.ops.shuffle_ops"]._ShuffleAndRepeatDataset
    both(Data(), 8, 3, 5)
    both(Data().repeat(2), 8)
    assert noted == [[8, True, True, False, 5], [8, False, True, True, None]]


def test_shuffles_are_told_from_the_first_to_the_last(shuffles: Any) -> None:
    """As the graph of an Estimator tells them, which sees them made: files are shuffled before examples."""

    class Data:
        def __init__(self, before: list[Any], mark: list[Any] | None = None) -> None:
            self.before = before
            if mark is not None:
                setattr(self, shuffles.MARK, mark)

        def _inputs(self) -> list[Any]:
            return self.before

    tf = SimpleNamespace(data=SimpleNamespace(Dataset=Data))
    files, examples = [4, False, True, False, None], [64, False, True, False, None]
    data = Data([Data([Data([Data([])], files)])], examples)
    assert shuffles.of(tf, Data([data])) == [files, examples]
