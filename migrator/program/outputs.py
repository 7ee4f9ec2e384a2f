"""What the output that a loss reads is, asked of the evaluated model_fn."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator.ir.values import Value
from migrator.program.model_function import ModelFunction
from migrator.program.parsed import Blocked
from migrator.program.train_body import TrainBody
from migrator.program.trained import Trained
from migrator.query import axes


def answers_in_columns(function: ModelFunction) -> bool:
    """Whether the output that the loss reads surely ends in an axis of one entry."""
    return _asked(function, lambda ran: axes.is_column(ran.value(function.output)))


def keeps_examples(function: ModelFunction) -> bool:
    """Whether the output that the loss reads has one row for each example, as far as its reshapes say."""
    return not _asked(function, lambda ran: axes.joins_axes(ran.machine, ran.value(function.output)))


def meets_labels_as_it_is(function: ModelFunction, node: cst.BaseExpression) -> bool:
    """Whether labels and output have the axes that they come with where `node`, of a loss, is computed of both."""

    def asked(ran: Trained) -> bool:
        labels, output = function.parameters.labels, ran.value(function.output)
        given = ran.parameters.get(labels or "")

        def is_output(value: Value) -> bool:
            return value is output or (value.site is not None and value.site.node is function.output)

        return given is not None and axes.meet_as_they_come(ran.machine, ran.value(node), given, is_output)

    return _asked(function, asked)


def _asked(function: ModelFunction, question: Callable[[Trained], bool]) -> bool:
    body = TrainBody(function.file, function.node, function.statements, frozenset(), lambda name: -1)
    try:
        with Trained(body) as ran:
            return question(ran)
    except Blocked:
        return False


__all__ = ["answers_in_columns", "keeps_examples", "meets_labels_as_it_is"]
