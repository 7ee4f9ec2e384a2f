"""Which input functions give data without an end: `fit` and `evaluate` are told their steps for those.

An input function is evaluated as it would run, through the functions that it calls and that make it, with the arguments
that are known (`repeat` under `if training:`). What is not known may end.
"""

from __future__ import annotations

import libcst as cst

from migrator.ir.machine import Arguments
from migrator.ir.program import Graph, Program, called, parameters_of, takes_any
from migrator.ir.values import Constant, Function, Method, Object, Partial, Value
from migrator.program.known import program_of, values_at
from migrator.program.parsed import Project
from migrator.program.training import TrainingProgram
from migrator.query.inputs import endless, endless_arrays

#: What Estimators and strategies give an input function that has such a parameter, beside the mode: values of the run.
_GIVEN = ("params", "config", "input_context", "labels_shape")


def never_end(project: Project, program: TrainingProgram, given: cst.BaseExpression | None, mode: str) -> bool:
    """Whether the data of the input function that a training is given (or what has that `mode`) surely have no end."""
    evaluated, values = _values(project, program, given)
    graphs = [None if endless_arrays(value) else _called(evaluated, value, mode) for value in values]
    return bool(values) and all(graph is None or endless(evaluated.evaluator, graph.result) for graph in graphs)


def functions_behind(
    project: Project, program: TrainingProgram, given: cst.BaseExpression | None, mode: str
) -> set[cst.CSTNode]:
    """The functions that make the data of an input function, as far as they are known."""
    evaluated, values = _values(project, program, given)
    graphs = [_called(evaluated, value, mode) for value in values if not endless_arrays(value)]
    return {node for graph in graphs for node in graph.entered}


def _values(
    project: Project, program: TrainingProgram, given: cst.BaseExpression | None
) -> tuple[Program, list[Value]]:
    """What an argument of a call is, each time that the call is made."""
    evaluated = program_of(program.file, project.files)
    return evaluated, values_at(evaluated, given)


def _called(program: Program, value: Value, mode: str) -> Graph:
    """What an input function gives, with what it asks for by the names of its parameters."""
    machine = program.evaluator
    if isinstance(value, Object):
        value = machine.attribute(value, "__call__", value.site or machine.nowhere)
    if not isinstance(value, (Function, Method, Partial)):
        return Graph(mode, value, (), value)
    known = parameters_of(value)
    unknown = {name: machine.operation(None, "parameter", value, Constant(None, name)) for name in _GIVEN}
    named = {name: one for name, one in {**unknown, "mode": Constant(None, mode)}.items() if name in known}
    more = machine.operation(None, "parameter", value) if takes_any(value) else None
    return called(machine, mode, value, Arguments((), named, None, more))
