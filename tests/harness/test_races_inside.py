"""Updates that nothing keeps from running before a gradient that is still to be taken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module as a training process has it: among its siblings, under plain names."""
    monkeypatch.syspath_prepend(str(INSIDE))
    import races  # type: ignore[import-not-found]

    yield races
    sys.modules.pop("races", None)


class Graph:
    """Operations in the order in which they were made."""

    def __init__(self) -> None:
        self.made: list[Operation] = []

    def get_operations(self) -> list[Operation]:
        return self.made

    def add(self, kind: str, *inputs: Tensor, after: tuple[Operation, ...] = (), name: str = "") -> Tensor:
        return Operation(self, kind, inputs, after, name).outputs[0]


class Operation:
    def __init__(
        self, graph: Graph, kind: str, inputs: tuple[Tensor, ...], after: tuple[Operation, ...], name: str
    ) -> None:
        self.graph, self.type, self.inputs, self.control_inputs, self.name = graph, kind, inputs, after, name
        self.outputs = [Tensor(self)]
        graph.made.append(self)
        self.name = name or f"{kind}_{len(graph.made)}"
        for one in inputs:
            one.used.append(self)

    def _get_control_flow_context(self) -> None:
        return None

    def _add_control_inputs(self, others: list[Operation]) -> None:
        self.control_inputs += tuple(others)


class Tensor:
    def __init__(self, op: Operation) -> None:
        self.op, self.graph = op, op.graph
        self.used: list[Operation] = []

    def consumers(self) -> list[Operation]:
        return self.used


def network(kind: str, waits: bool = False) -> list[tuple[Any, Any]]:
    """Two layers: the gradient of the first one's weight reads the second one's, whose own does not."""
    graph = Graph()
    first, second = (graph.add(kind, name=name) for name in ("first", "second"))
    hidden = graph.add("MatMul", graph.add("Identity", first))
    read = graph.add("Identity", second)
    loss = graph.add("MatMul", hidden, read)
    of_second = graph.add("MatMul", hidden, loss)
    of_first = graph.add("MatMul", loss, read)
    if waits:
        group = graph.add("NoOp", after=(of_first.op, of_second.op)).op
        of_first, of_second = (graph.add("Identity", one, after=(group,)) for one in (of_first, of_second))
    return [(of_first, first), (of_second, second), (None, first)]


def test_a_weight_that_another_gradient_still_reads(races: ModuleType) -> None:
    assert races.racing(network("VariableV2")) == ["second"]


def test_gradients_that_wait_for_all_others(races: ModuleType) -> None:
    assert races.racing(network("VariableV2", waits=True)) == []


def test_a_variable_that_is_read_once_and_for_all(races: ModuleType) -> None:
    assert races.racing(network("VarHandleOp")) == []


def test_a_single_weight_has_no_other(races: ModuleType) -> None:
    assert races.racing(network("VariableV2")[:1]) == []


def counting(kind: str = "VariableV2", waits: bool = False) -> tuple[Operation, Tensor, Operation, Operation]:
    """A step counted beside an update: the train_op, the count, what reads it for the rate, the change."""
    graph = Graph()
    step, weight = graph.add(kind, name="global_step"), graph.add(kind, name="weight")
    handle = kind == "VarHandleOp"
    read, assign = ("ReadVariableOp", "AssignVariableOp") if handle else ("Identity", "Assign")
    first = graph.add(read, step)
    rate = graph.add("Cast", first)
    graph.add(assign, step)  # the initializer, which no step runs
    update = graph.add("AssignSub", weight, graph.add("Mul", rate)).op
    raised = graph.add("AddV2", graph.add(read, step))
    change = graph.add(assign, step, raised, after=(update,) if waits else ()).op
    return graph.add("NoOp", after=(update, change)).op, step, (first if handle else rate).op, change


@pytest.mark.parametrize("kind", ["VariableV2", "VarHandleOp"])
def test_a_step_that_is_counted_before_its_rate_is_read(races: ModuleType, kind: str) -> None:
    train, step, reader, change = counting(kind)
    assert races.count_last(train, step)
    assert change.control_inputs == (reader,)
    assert not races.count_last(train, step)  # nothing is left to chance now


@pytest.mark.parametrize("kind", ["VariableV2", "VarHandleOp"])
def test_a_step_that_is_counted_last(races: ModuleType, kind: str) -> None:
    train, step, _, change = counting(kind, waits=True)
    before = change.control_inputs
    assert not races.count_last(train, step)
    assert change.control_inputs == before


def test_a_training_without_a_count(races: ModuleType) -> None:
    assert not races.count_last(counting()[0], None)
    bridged = SimpleNamespace(op=SimpleNamespace(type="VarHandleOp", graph=counting()[0].graph))
    assert not races.count_last(counting()[0], bridged)


def test_what_reads_the_count_that_is_raised_waits_already(races: ModuleType) -> None:
    graph = Graph()
    step = graph.add("VariableV2", name="global_step")
    change = graph.add("AssignAdd", step).op
    rate = graph.add("Cast", graph.add("Identity", step, after=(change,)))
    train = graph.add("NoOp", rate, after=(change,)).op
    assert not races.count_last(train, step)
