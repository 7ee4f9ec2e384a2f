"""Keras models of a program's own under a strategy: whether the model can be made in the scope of the new one."""

from __future__ import annotations

import libcst as cst

from migrator.program.calls import calls_in
from migrator.program.parsed import Blocked, Project
from migrator.program.ready_scopes import Scoped, scoped_model
from migrator.program.region import reach
from migrator.program.scopes import path_to, rebound
from migrator.program.training import TrainingProgram
from migrator.targets.choosing import OwnStrategy, own_strategy
from migrator.targets.target import Target

_LATE = "which the model is made in the scope of: move this before the model"


def into_scope(project: Project, program: TrainingProgram, strategy: Target) -> Scoped:
    """The statements that go into the strategy's scope. Raises Blocked (TFM704, TFM727).

    The strategy comes before them, with all that it reads.
    """
    own = own_strategy(program) if program.config.get("train_distribute") is not None else None
    own = own if own is not None and own.target is strategy else None
    if own is not None and own.choice is not None:
        message = "the strategy is chosen when the program runs, and the model was made apart from it: make it one"
        raise Blocked("TFM727", own.call, message)
    scoped = scoped_model(project, program, own.name if own is not None and own.elsewhere else None)
    if not scoped.runs:
        return scoped
    if own is not None:
        _check_own(program, own, scoped.first)
    for setting, place in [
        *((one, program.place.call) for one in program.session.first),
        *((one, line) for line, made in program.session.lines.items() for one in made),
    ]:
        if setting.value is not None:
            _check_unchanged(program, setting.value, scoped.first, place)
    if strategy.reads_cluster:
        _check_cluster(project, program, scoped.first)
    return scoped


def _check_own(program: TrainingProgram, own: OwnStrategy, first: cst.BaseStatement) -> None:
    """Refuses a strategy that cannot be made before the model."""
    at = program.file.position
    if own.elsewhere and own.line is not None and at(own.line) > at(first):
        raise Blocked("TFM727", own.call, f"`{own.name}` is made behind the model and read for more, {_LATE}")
    _check_unchanged(program, own.call, first, own.line or own.call)


def _check_unchanged(
    program: TrainingProgram, node: cst.BaseExpression, first: cst.BaseStatement, place: cst.CSTNode
) -> None:
    """Refuses what an expression reads and is not the same before the model as it was at its place."""
    at = program.file.position
    since, until = (first, place) if at(first) < at(place) else (place, first)
    changed = rebound(program.file, program.scope, node, since, until)
    if changed is not None:
        raise Blocked("TFM727", changed[1], f"`{changed[0]}` tells of the strategy, {_LATE}")


def _check_cluster(project: Project, program: TrainingProgram, first: cst.BaseStatement) -> None:
    """Refuses a TF_CONFIG that is written when the model is made already."""
    at, file = program.file.position, program.file
    path = path_to(program.scope, program.place.call)
    for node in path:
        for statement in node.body if isinstance(node, cst.Module | cst.IndentedBlock) else ():
            if isinstance(statement, cst.FunctionDef | cst.ClassDef) or any(statement is one for one in path):
                continue
            if not at(first) <= at(statement) < at(program.place.call):
                continue
            called = [file.code(statement)]
            for call in calls_in(statement):
                function = project.function(file, call.func)
                if function is not None:
                    called += [where.code(one) for one, where in reach(project, *function).items()]
            if any("TF_CONFIG" in text for text in called):
                raise Blocked("TFM727", statement, f"TF_CONFIG tells of the strategy, {_LATE}")
