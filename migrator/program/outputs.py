"""What the output that a loss reads is, asked of the evaluated model_fn."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator.ir.values import Operation, Table, Value, alternatives
from migrator.program.model_function import ModelFunction
from migrator.program.modes import PREDICT, TRAIN
from migrator.program.parsed import Blocked, Project
from migrator.program.train_body import TrainBody
from migrator.program.trained import Trained, others_named
from migrator.query import axes


def answers_in_columns(function: ModelFunction) -> bool:
    """Whether the output that the loss reads surely ends in an axis of one entry."""
    return _asked(function, lambda ran: axes.last_axis(ran.value(function.output)) == 1)


def keeps_examples(function: ModelFunction) -> bool:
    """Whether the output that the loss reads has one row for each example, as far as its reshapes say."""
    return not _asked(function, lambda ran: axes.joins_axes(ran.machine, ran.value(function.output)))


def predicts_dicts(function: ModelFunction, project: Project) -> bool:
    """Whether one prediction is a dict of values."""
    node = function.predictions
    if node is None or isinstance(node, (cst.Dict, cst.DictComp)):
        return node is not None

    def is_dict(ran: Trained) -> bool:
        value = ran.value(node)
        return any(isinstance(one, Table) or _makes_dict(one) for one in alternatives(value))

    return _asked(function, is_dict, PREDICT, project)


def _makes_dict(value: Value) -> bool:
    """Whether a value is what a function of Python makes that makes dicts."""
    made = value.symbol.rpartition(".")[2] if isinstance(value, Operation) else ""
    return made in ("dict", "OrderedDict", "_asdict")


def is_the_same_of_columns(function: ModelFunction, node: cst.BaseExpression, of_columns: bool) -> bool:
    """Whether `node`, of a loss, is the same where Keras makes labels of one number for each example a column.

    With `of_columns` it is told so that it compares example by example.
    """

    def asked(ran: Trained) -> bool:
        labels, output = function.parameters.labels, ran.value(function.output)
        given = ran.parameters.get(labels or "")

        def is_output(value: Value) -> bool:
            return value is output or (value.site is not None and value.site.node is function.output)

        may_be_column = not of_columns and axes.last_axis(output) in (None, 1)
        return given is not None and axes.same_of_columns(ran.machine, ran.value(node), given, is_output, may_be_column)

    return _asked(function, asked)


def _asked(
    function: ModelFunction, question: Callable[[Trained], bool], mode: str = TRAIN, project: Project | None = None
) -> bool:
    body = TrainBody(function.file, function.node, function.statements, frozenset(), lambda name: -1, project)
    try:
        with Trained(body, others_named(body), mode=mode) as ran:
            return question(ran)
    except Blocked:
        return False


__all__ = ["answers_in_columns", "is_the_same_of_columns", "keeps_examples", "predicts_dicts"]
