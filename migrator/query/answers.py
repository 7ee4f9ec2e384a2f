"""What is known of a program, as plain data that does not depend on how the program is written."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.ir.machine import Machine
from migrator.ir.program import Estimator, Graph, Program
from migrator.ir.values import Constant, Operation, Symbol, Value
from migrator.query.model import Step, Unread, losses, metrics, steps


@dataclass(frozen=True)
class TrainStep:
    """How an Estimator is trained: symbols, and the numbers that are known."""

    optimizer: str
    wrappers: tuple[str, ...]
    clipping: str
    minimizes_the_loss: bool
    counted: bool
    updates: bool


@dataclass(frozen=True)
class Model:
    """An Estimator: the symbol that makes it, what is done with it, and what its model_fn builds in each mode."""

    symbol: str
    uses: tuple[str, ...]
    inputs: tuple[tuple[str, ...], ...]
    operations: tuple[tuple[str, tuple[str, ...]], ...]
    steps: tuple[TrainStep | str, ...]
    losses: tuple[str, ...]
    metrics: tuple[str, ...] | None


def answers(program: Program) -> list[Model]:
    """What is known of each Estimator of a program."""
    return [_model(program.evaluator, one) for one in program.estimators]


def _model(machine: Machine, estimator: Estimator) -> Model:
    train, evaluate = estimator.graphs.get("train"), estimator.graphs.get("eval")
    made = [] if train is None else steps(machine, train)
    found = [_of_step(train, one) for one in made if train is not None]
    known = metrics(machine, evaluate) if evaluate is not None else {}
    return Model(
        estimator.operation.symbol,
        tuple(use.method for use in estimator.uses),
        tuple(_symbols(graph) for use in estimator.uses for graph in use.inputs.values()),
        tuple((mode, _symbols(graph)) for mode, graph in sorted(estimator.graphs.items())),
        tuple(found),
        tuple(_named(one) for one in losses(train)) if train is not None else (),
        tuple(sorted(known)) if known is not None else None,
    )


def _of_step(graph: Graph, step: Step | Unread) -> TrainStep | str:
    if isinstance(step, Unread):
        return step.reason
    return TrainStep(
        step.optimizer.symbol,
        tuple(one.symbol for one in step.wrappers),
        step.clipping.argument if step.clipping is not None else "",
        any(step.loss is one for one in losses(graph)),
        step.counted is not None and not (isinstance(step.counted, Constant) and step.counted.value is None),
        step.updates,
    )


def _symbols(graph: Graph) -> tuple[str, ...]:
    """The symbols of TensorFlow that a graph calls, in order."""
    return tuple(effect.operation.symbol for effect in graph.effects if effect.operation.symbol.startswith("tf."))


def _named(value: Value) -> str:
    if isinstance(value, Operation):
        return value.symbol
    return value.name if isinstance(value, Symbol) else type(value).__name__


__all__ = ["Model", "TrainStep", "answers"]
