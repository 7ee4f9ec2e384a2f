"""What the output that a loss reads is, asked of the evaluated model_fn."""

from __future__ import annotations

from collections.abc import Callable

from migrator.ir.evaluate import Evaluator
from migrator.ir.values import Value
from migrator.program.model_function import ModelFunction
from migrator.program.parsed import Blocked
from migrator.program.train_body import TrainBody
from migrator.program.trained import Trained
from migrator.query import axes


def answers_in_columns(function: ModelFunction) -> bool:
    """Whether the output that the loss reads surely ends in an axis of one entry."""
    return _asked(function, lambda _, value: axes.is_column(value))


def keeps_examples(function: ModelFunction) -> bool:
    """Whether the output that the loss reads has one row for each example, as far as its reshapes say."""
    return not _asked(function, axes.joins_axes)


def _asked(function: ModelFunction, question: Callable[[Evaluator, Value], bool]) -> bool:
    body = TrainBody(function.file, function.node, function.statements, frozenset(), lambda name: -1)
    try:
        with Trained(body) as ran:
            return question(ran.machine, ran.value(function.output))
    except Blocked:
        return False


__all__ = ["answers_in_columns", "keeps_examples"]
