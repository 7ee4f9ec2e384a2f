"""The numbers that programs draw for their data. Without TensorFlow."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
TASKS = [{"type": "worker", "index": index} for index in (0, 1)]


@pytest.fixture
def generators(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    for name in ("randint", "randrange", "seed"):
        monkeypatch.setattr(random, name, getattr(random, name))
    states = random.getstate(), np.random.get_state()
    import generators

    yield generators
    random.setstate(states[0])
    np.random.set_state(states[1])
    for name in ("generators", "parts"):
        sys.modules.pop(name, None)


def drawn(generators: Any, plan: dict[str, Any]) -> tuple[float, float, int]:
    generators.install(plan)
    return random.random(), float(np.random.normal()), random.randint(1, 10**9)


def test_tasks_draw_the_same_in_two_programs_and_their_own_each(generators: Any) -> None:
    first, second = ({"generators": 1, "task": task} for task in TASKS)
    assert drawn(generators, first) == drawn(generators, first)
    assert drawn(generators, first) != drawn(generators, second)
    assert drawn(generators, first) != drawn(generators, {**first, "generators": 2})


def test_without_a_number_they_are_left_alone(generators: Any) -> None:
    plan = {"generators": None, "task": TASKS[0]}
    assert drawn(generators, plan) != drawn(generators, plan)
    random.seed(7)
    expected = random.random()
    random.seed(7)
    assert drawn(generators, plan)[0] == expected, "a program that sets a seed draws of it"


def test_what_keras_draws_is_no_number_of_the_program(generators: Any) -> None:
    def of(module: str) -> Any:
        return eval("lambda random: random.randint(1, 10**9)", {"__name__": module})

    generators.install({"generators": None})
    for library, apart in (("tf_keras.src.backend", True), ("keras.src.random.seed_generator", True), ("mine", False)):
        random.seed(7)
        expected = random.random()
        random.seed(7)
        of(library)(random)
        assert (random.random() == expected) is apart, library
    generators.install({"generators": 1, "task": TASKS[0]})
    first = of("tf_keras.src.backend")(random)
    generators.install({"generators": 1, "task": TASKS[0]})
    assert of("tf_keras.src.backend")(random) == first, "the same initial values each time"


def test_random_operations_in_functions_of_datasets_and_in_initial_values_get_seeds(
    generators: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = SimpleNamespace(get_seed=lambda op_seed=None: (None if op_seed is None else 87654321, op_seed))

    class Wrapper:
        def __init__(self, function: Any) -> None:
            self.made = function()

    class Dataset:
        def map(self, function: Any, num_parallel_calls: int | None = None, name: str = "") -> tuple[Any, str]:
            return num_parallel_calls, name

    class First(Dataset):
        """The one of TensorFlow 1, which has another for its own."""

    class Variable:
        def __init__(self, initial: Any) -> None:
            self.initial = self._init_from_args(initial)

        def _init_from_args(self, initial_value: Any) -> Any:
            return initial_value() if callable(initial_value) else initial_value

    modules = {
        "tensorflow.python.data.ops.dataset_ops": SimpleNamespace(DatasetV1=First, DatasetV2=Dataset),
        "tensorflow.python.data.ops.structured_function": SimpleNamespace(StructuredFunctionWrapper=Wrapper),
        "tensorflow.python.framework.random_seed": seeds,
        "tensorflow.python.ops.resource_variable_ops": SimpleNamespace(ResourceVariable=Variable),
    }

    def import_module(name: str) -> Any:
        if name not in modules:
            raise ImportError(name)
        return modules[name]

    monkeypatch.setattr(generators, "importlib", SimpleNamespace(import_module=import_module))
    generators.install({"generators": 1, "task": TASKS[0]})
    number, first = Wrapper(lambda: seeds.get_seed()).made
    assert first == 1
    assert Wrapper(lambda: [seeds.get_seed(), seeds.get_seed(None)]).made == [(number, 1), (number, 2)]
    assert Wrapper(lambda: seeds.get_seed(5)).made == (87654321, 5), "the program's own"
    assert seeds.get_seed() == (None, None), "not in the function of a dataset"
    one, other, own = Variable(seeds.get_seed).initial, Variable(seeds.get_seed).initial, Variable(lambda: 5).initial
    assert one[0] == other[0] == number and own == 5 and one != other and one[1] > 1000
    assert Variable(lambda: seeds.get_seed(5)).initial == (87654321, 5), "the program's own"
    assert Variable(lambda: Wrapper(seeds.get_seed).made).initial == (number, 1), "the function of a dataset within"
    # Calls side by side would draw in any order.
    assert First().map(abs, 8, name="a") == Dataset().map(abs, num_parallel_calls=8, name="a") == (None, "a")
    # What a graph draws for a variable before it is made, and only that: `tf.Variable(2 * tf.random_normal([3]))`.
    draw, fixed, other_draw = _operation(seed=0, seed2=0), _operation(seed=0, seed2=5), _operation(seed=0, seed2=0)
    value = SimpleNamespace(graph="graph", op=_operation(draw, fixed, _operation()))
    monkeypatch.setattr(generators, "_set", lambda operation, name, number: operation.seeds.update({name: number}))
    assert Variable(value).initial is value
    assert draw.seeds["seed"] == number and draw.seeds["seed2"] > 1000
    assert fixed.seeds == {"seed": 0, "seed2": 5} and other_draw.seeds == {"seed": 0, "seed2": 0}


def _operation(*inputs: Any, **seeds: int) -> Any:
    """One of a graph; an attribute is read by `get_attr`."""
    made = _Operation()
    made.inputs = [SimpleNamespace(op=one) for one in inputs]
    made.op_def = SimpleNamespace(attr=[SimpleNamespace(name=name) for name in seeds])
    made.seeds, made.get_attr = seeds, seeds.__getitem__
    return made


class _Operation(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


@pytest.mark.parametrize(("module", "apart"), [("tensorflow_estimator.inputs.queues", True), ("mine", False)])
def test_what_feeds_a_queue_does_not_seed_the_generator_of_the_program(
    generators: Any, module: str, apart: bool
) -> None:
    """`numpy_input_fn` calls random.seed(None), and draws where it begins."""
    generators.install({"generators": None})
    random.seed(7)
    expected = random.random()
    random.seed(7)
    feed = eval("lambda random: (random.seed(None), random.randrange(9))", {"__name__": module})
    feed(random)
    assert (random.random() == expected) is apart
