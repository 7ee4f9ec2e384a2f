"""Which variables a train_op moves whatever its data are. Without TensorFlow; test_recording_runs.py has a training."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
with patch.object(sys, "path", [str(INSIDE), *sys.path]):
    import step_hook  # type: ignore[import-not-found]


class Graph:
    """Operations by their names."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}

    def get_operation_by_name(self, name: str) -> Any:
        return self.named[name]

    def add(self, kind: str, name: str, *inputs: Any, after: tuple[Any, ...] = ()) -> Any:
        operation = SimpleNamespace(type=kind, name=name, graph=self, control_inputs=[one.op for one in after])
        operation.inputs = list(inputs)
        self.named[name] = operation
        return SimpleNamespace(op=operation, graph=self)


class Variable:
    """One of a graph, whose handle is a tensor of it; or one outside, whose handle has no operation."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle


def part(variable: Variable) -> Any:
    return SimpleNamespace(copies=[variable])


def test_what_waits_for_no_data_is_ahead_of_them() -> None:
    graph = Graph()
    weight, drift, mean = (graph.add("VarHandleOp", name) for name in ("weight", "drift", "mean"))
    batch = graph.add("IteratorGetNext", "next")
    parts = [part(Variable(one)) for one in (weight, drift, mean)]
    moved = [
        graph.add("AssignSubVariableOp", "train", weight, graph.add("Mul", "gradient", batch)),
        graph.add("AssignVariableOp", "drifts", drift, graph.add("ReadVariableOp", "read", drift)),
        # Its number is no number of the data, but it waits for them.
        graph.add("AssignVariableOp", "means", mean, graph.add("Const", "one"), after=(batch,)),
    ]
    train = graph.add("NoOp", "train_op", after=tuple(moved))
    assert step_hook.ahead_of_data(train, parts) == [parts[1]]
    assert step_hook.ahead_of_data(moved[0], parts) == []


def test_of_variables_outside_of_graphs_nothing_is_said() -> None:
    graph = Graph()
    stands_for_it = graph.add("Placeholder", "capture")
    moved = graph.add("AssignVariableOp", "drifts", stands_for_it, graph.add("Const", "one"))
    assert step_hook.ahead_of_data(moved, [part(Variable(SimpleNamespace()))]) == []


def test_a_train_op_outside_of_graphs_tells_nothing() -> None:
    assert step_hook.ahead_of_data(None, []) == []
    assert step_hook.ahead_of_data(Variable(SimpleNamespace()), [part(Variable(SimpleNamespace()))]) == []
