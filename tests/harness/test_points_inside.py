"""The values of a point reach every variable of a TensorFlow 1 program, on replicas too. Without TensorFlow."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
MODULES = ("points", "capture", "keras_variables", "parts", "record_mesh", "own_optimizers", "v1_optimizers", "tracing")


class Eager:
    """What `EagerTensor` is to points.py."""


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    ops = ModuleType("tensorflow.python.framework.ops")
    ops.EagerTensor = Eager  # type: ignore[attr-defined]
    for name in ("tensorflow", "tensorflow.python", "tensorflow.python.framework"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework.ops", ops)
    import points

    yield points
    for name in MODULES:
        sys.modules.pop(name, None)


def of_graph(name: str, shape: tuple[int, ...] = (2,)) -> Any:
    """A variable of a graph: it is set by its initializer, whose second input is fed."""
    return SimpleNamespace(
        op=SimpleNamespace(name=name),
        dtype=SimpleNamespace(as_numpy_dtype=np.float32),
        initializer=SimpleNamespace(inputs=["handle", f"{name}/value"]),
        value=np.zeros(shape, np.float32),
    )


def mirrored(*copies: Any) -> Any:
    """What a strategy makes of them: it has no initializer of its own in a finalized graph."""
    return SimpleNamespace(values=tuple(copies), dtype=copies[0].dtype)


class Session:
    def __init__(self, *variables: Any) -> None:
        self.by_input = {one.initializer.inputs[1]: one for one in variables}

    def run(self, operation: Any, feed: dict[str, Any]) -> None:
        for key, value in feed.items():
            self.by_input[key].value = value


def test_every_replica_gets_weights_slots_and_the_step(points: Any, tmp_path: Path) -> None:
    weights = [of_graph("w"), of_graph("w/replica_1")]
    slots = [of_graph("w/Momentum"), of_graph("w/Momentum/replica_1")]
    steps = [of_graph("step", ()), of_graph("step/replica_1", ())]
    everything = [mirrored(*each) for each in (weights, slots, steps)]
    graph = SimpleNamespace(get_collection=lambda _: everything)
    tf = SimpleNamespace(
        GraphKeys=SimpleNamespace(GLOBAL_VARIABLES="variables"),
        train=SimpleNamespace(get_global_step=lambda _: everything[2]),
        init_scope=contextlib.nullcontext,
    )
    import parts

    part = parts.Part("w", weights[0], [0], [2], [2], "float32", True)
    part.copies = weights
    np.savez(tmp_path / "weights.npz", w=np.array([1, 2], np.float32))
    np.savez(tmp_path / "slots.npz", **{"w|momentum": np.array([3, 4], np.float32)})
    point = {"step": 500_001, "weights": str(tmp_path / "weights.npz"), "slots": str(tmp_path / "slots.npz")}
    given = points.Points({"points": [point, point]})
    capture = SimpleNamespace(graph=graph, applied=[])
    session = Session(*weights, *slots, *steps)
    # Of a slot only the variable of the first replica is known.
    points.of_session(tf, point, 1, given, session, capture, [part], {"momentum": ([part], [slots[0]])})
    assert [one.value.tolist() for one in weights] == [[1, 2]] * 2
    assert [one.value.tolist() for one in slots] == [[3, 4]] * 2
    assert [int(one.value) for one in steps] == [500_000] * 2


def test_eager_variables_of_a_support_file_are_assigned(points: Any, tmp_path: Path) -> None:
    class Variable:
        def __init__(self) -> None:
            self.dtype = SimpleNamespace(as_numpy_dtype=np.float32)
            self.handle, self.value = Eager(), None

        def assign(self, value: Any) -> None:
            self.value = value

    copies = [Variable(), Variable()]
    step = Variable()
    import parts

    part = parts.Part("w", copies[0], [0], [1], [1], "float32", True)
    part.copies = copies
    np.savez(tmp_path / "weights.npz", w=np.array([7], np.float32))
    np.savez(tmp_path / "slots.npz")
    point = {"step": 3, "weights": str(tmp_path / "weights.npz"), "slots": str(tmp_path / "slots.npz")}
    tf = SimpleNamespace(
        GraphKeys=SimpleNamespace(GLOBAL_VARIABLES="variables"),
        train=SimpleNamespace(get_global_step=lambda _: step),
        init_scope=contextlib.nullcontext,
    )
    capture = SimpleNamespace(graph=SimpleNamespace(get_collection=lambda _: []), applied=[])
    points.of_session(tf, point, 1, points.Points({"points": [point] * 2}), None, capture, [part], {})
    assert [one.value.tolist() for one in copies] == [[7], [7]] and int(step.value) == 2


def test_a_step_of_a_point_draws_what_it_drew_in_the_training(points: Any) -> None:
    """By how many steps came before it, wherever in the run of single steps it is."""
    given = points.Points({"points": [{"step": 1}, {"step": 2}, {"step": 400}, {"step": 400}]})
    assert [given.before(place) for place in range(4)] == [0, 1, 399, 399]
    assert [points.Points({}).before(place) for place in range(3)] == [0, 1, 2]
    numpy = SimpleNamespace(gather=np.take, constant=np.array, int64=np.int64, minimum=np.minimum)
    assert [int(given.before_tensor(numpy, place)) for place in range(5)] == [0, 1, 399, 399, 399]
    assert points.Points({}).before_tensor(numpy, 7) == 7
