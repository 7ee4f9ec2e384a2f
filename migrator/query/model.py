"""What a model_fn builds: its loss, its metrics, and how a step of training is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.ir.machine import Machine, present
from migrator.ir.program import Graph
from migrator.ir.values import Constant, Either, Operation, Value, alternatives, is_nothing
from migrator.query.gradients import Changed, Flows, Kind

SPECS: dict[str, tuple[str, ...]] = {
    "tf.estimator.EstimatorSpec": ("mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs"),
    "tf.estimator.tpu.TPUEstimatorSpec": ("mode", "predictions", "loss", "train_op", "eval_metrics", "export_outputs"),
    "tf.contrib.tpu.TPUEstimatorSpec": ("mode", "predictions", "loss", "train_op", "eval_metrics", "export_outputs"),
}
_WRAPPERS = ("CrossShardOptimizer", "SyncReplicasOptimizer", "DistributedOptimizer", "MovingAverageOptimizer")
_SAME = ("tf.identity", "tf.group", "tf.tuple")


@dataclass(frozen=True)
class Clipping:
    """How gradients are clipped: the argument of a Keras optimizer, and its value."""

    argument: str
    value: Value


@dataclass(frozen=True)
class Step:
    """A step of training.

    `optimizer` is the call that makes the optimizer, `wrappers` are the calls around it (the outermost first), `loss`
    is what is minimized, and `counted` the global step that is given. `updates` says that the update operations of the
    graph run with it.
    """

    optimizer: Operation
    wrappers: tuple[Operation, ...]
    loss: Value | None
    counted: Value | None
    clipping: Clipping | None
    updates: bool


@dataclass(frozen=True)
class Unread:
    """What a question has no answer for: the value that it came to, and why that is none."""

    value: Value
    reason: str


def specs(graph: Graph) -> list[Operation]:
    """The EstimatorSpecs that a graph may return."""
    return [one for one in alternatives(graph.result) if isinstance(one, Operation) and one.symbol in SPECS]


def given(spec: Operation, name: str) -> Value | None:
    """What an EstimatorSpec is given for a parameter."""
    parameters = SPECS[spec.symbol]
    return spec.argument(parameters.index(name) if name in parameters else None, name)


def losses(graph: Graph) -> list[Value]:
    """What a graph reports as its loss, by the specs that it may return."""
    found = [given(spec, "loss") for spec in specs(graph)]
    return [one for one in found if one is not None]


def metrics(machine: Machine, graph: Graph) -> dict[str, Value] | None:
    """The metrics of a graph, by name; None where these are not known."""
    found: dict[str, Value] = {}
    for spec in specs(graph):
        if given(spec, "eval_metrics") is not None:
            return None  # a function that a TPUEstimator calls later
        table = given(spec, "eval_metric_ops")
        entries = machine.entries_of(table) if table is not None else None
        if is_nothing(table):
            continue
        if entries is None or entries.more:
            return None
        for key, value in entries.items.values():
            if not isinstance(key, Constant):
                return None
            found[str(key.value)] = present(value)
    return found


def symbols_of(machine: Machine, value: Value) -> set[str]:
    """The symbols whose calls make what a value may be, None left out; "" for what no call makes."""
    if isinstance(value, Either):
        return symbols_of(machine, value.then) | symbols_of(machine, value.otherwise)
    if is_nothing(value):
        return set()
    if not isinstance(value, Operation):
        return {""}
    entries = machine.entries_of(value.args[0]) if value.symbol == "getitem" and value.args else None
    if entries is None or entries.more:
        return {value.symbol}
    return set().union(*(symbols_of(machine, present(one)) for _, one in entries.items.values()))


def steps(machine: Machine, graph: Graph) -> list[Step | Unread]:
    """The steps of training that a graph may make: one for each spec, and each way that a condition leaves open."""
    found: list[Step | Unread] = []
    for spec in specs(graph):
        value = given(spec, "train_op")
        if value is not None:
            found += [_step(machine, one, False) for one in alternatives(value)]
    return found


def _step(machine: Machine, value: Value, updates: bool) -> Step | Unread:
    if not isinstance(value, Operation):
        return Unread(value, "no operation")
    updates = updates or _runs_updates(machine, value.scopes)
    if value.symbol == ".minimize":
        return _of_optimizer(machine, value, value.argument(1, "loss"), value.argument(2, "global_step"), None, updates)
    if value.symbol == ".apply_gradients":
        pairs = value.argument(1, "grads_and_vars")
        flows = Flows(machine, lambda _: False)
        try:
            flow = flows.applied(pairs)
        except Changed as problem:
            return Unread(value, problem.message)
        if flow is None or flow.kind is not Kind.PAIR:
            return Unread(value, "its gradients are changed in an unsupported way")
        clipping = Clipping(flow.clips[0].argument, flow.clips[0].limit) if flow.clips else None
        counted = value.argument(2, "global_step")
        return _of_optimizer(machine, value, flow.loss, counted, clipping, updates)
    if value.symbol in _SAME:
        found = [
            _step(machine, one, updates or _mentions_updates(machine, value)) for one in _operations(machine, value)
        ]
        made = [one for one in found if isinstance(one, Step)]
        return made[0] if len(made) == 1 else Unread(value, "not one step of training")
    return Unread(value, f"`{value.symbol}` is not a supported training step")


def _of_optimizer(
    machine: Machine,
    value: Operation,
    loss: Value | None,
    counted: Value | None,
    clipping: Clipping | None,
    updates: bool,
) -> Step | Unread:
    optimizer, wrappers = value.args[0], []
    while isinstance(optimizer, Operation) and optimizer.symbol.endswith(_WRAPPERS) and optimizer.argument(0, "opt"):
        wrappers.append(optimizer)
        optimizer = optimizer.argument(0, "opt", "optimizer") or optimizer
    if isinstance(optimizer, Either):
        return Unread(optimizer, "one of several optimizers")
    if not isinstance(optimizer, Operation) or not optimizer.symbol.endswith("Optimizer"):
        return Unread(optimizer, "not a supported optimizer")
    return Step(optimizer, tuple(wrappers), loss, counted, clipping, updates)


def _operations(machine: Machine, value: Operation) -> list[Operation]:
    """The operations that one groups."""
    found: list[Operation] = []
    for one in value.args:
        inner = machine.elements(one)
        found += [each for each in (inner if inner is not None else [one]) if isinstance(each, Operation)]
    return found


def _runs_updates(machine: Machine, scopes: Sequence[Value]) -> bool:
    """Whether one of some scopes runs the update operations of the graph first."""
    named = [one for one in scopes if isinstance(one, Operation) and one.symbol.endswith("control_dependencies")]
    return any(_mentions_updates(machine, one) for one in named)


def _mentions_updates(machine: Machine, value: Value, deep: int = 4) -> bool:
    if not isinstance(value, Operation) or deep == 0:
        inner = machine.elements(value) if deep else None
        return any(_mentions_updates(machine, one, deep - 1) for one in inner or ())
    if value.symbol == "tf.get_collection":
        key = value.argument(0, "key")
        return getattr(key, "name", getattr(key, "value", "")) in ("tf.GraphKeys.UPDATE_OPS", "update_ops")
    if value.symbol not in (
        "tf.control_dependencies",
        ".control_dependencies",
        "tf.group",
        "getitem",
        "element",
        "list",
    ):
        return False
    return any(_mentions_updates(machine, one, deep - 1) for one in value.args)


__all__ = ["Clipping", "Step", "Unread", "given", "losses", "metrics", "specs", "steps", "symbols_of"]
