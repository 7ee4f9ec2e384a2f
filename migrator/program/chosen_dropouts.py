"""Dropouts that a condition on the mode chooses, said in one expression: `dropout(net) if training else net`.

`if mode == TRAIN: hidden = dropout(net) else: hidden = net`, and `hidden = net` with the `if` below it, are what rules
read of a dropout in its one form.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.names.bindings import names_changed
from migrator.program.calls import calls_in, functions_in, parameters_of
from migrator.program.modes import ModeNames
from migrator.program.parsed import ParsedFile, names_in
from migrator.program.reductions import Edits, applied
from migrator.rules.dropout import is_training_dropout

_MODE = "mode"  # an Estimator gives it by this name


def with_chosen_dropouts(file: ParsedFile) -> ParsedFile:
    """The file with such conditions in model_fns, and in functions that are told the mode, as expressions."""
    if "ModeKeys" not in file.bare or _MODE not in file.bare:
        return file
    edits = Edits()
    for function in functions_in(file.module):
        told = any(one.name.value == _MODE for one in parameters_of(function))
        if told and isinstance(function.body, cst.IndentedBlock):
            names = ModeNames(file.imports, _MODE, functions=file.functions)
            _read(file, function.body.body, names, edits)
    return applied(file, edits) if edits.lines else file


def _read(
    file: ParsedFile, body: Sequence[cst.BaseStatement | cst.BaseSmallStatement], names: ModeNames, edits: Edits
) -> None:
    """Reads the conditions of a block, and of those that `with` puts around some of its lines."""
    for at, statement in enumerate(body):
        if isinstance(statement, cst.With):
            _read(file, statement.body.body, names, edits)
        elif isinstance(statement, cst.If) and names.when(statement.test) is not None:
            _choice(file, body[:at], statement, edits)
        names = names.after(statement)


def _choice(
    file: ParsedFile,
    before: Sequence[cst.BaseStatement | cst.BaseSmallStatement],
    statement: cst.If,
    edits: Edits,
) -> None:
    taken = _given(statement.body.body)
    if taken is None:
        return
    name, value = taken
    gone: cst.SimpleStatementLine | None = None
    if isinstance(statement.orelse, cst.Else):
        other = _given(statement.orelse.body.body)
    elif statement.orelse is None:
        gone = _last(before, name)
        other = _given([gone]) if gone is not None else None
    else:
        return
    if other is None or other[0] != name or name in names_in(statement.test) or file.may_have_comment(statement.body):
        return
    instead = other[1]
    if gone is not None and (file.may_have_comment(gone) or gone in edits.lines):
        return
    if gone is not None and names_in(instead) & _touched(before[before.index(gone) + 1 :]):
        return  # it would be another value below
    if statement.orelse is not None and file.may_have_comment(statement.orelse):
        return
    if not _is_choice(file, value, instead):
        return
    chosen = cst.IfExp(test=statement.test, body=value, orelse=instead)
    line = cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(cst.Name(name))], chosen)], leading_lines=statement.leading_lines
    )
    edits.lines[statement] = [line]
    if gone is not None:
        edits.lines[gone] = []


def _is_choice(file: ParsedFile, value: cst.BaseExpression, instead: cst.BaseExpression) -> bool:
    """Whether one of two values is a dropout of the other."""
    return any(is_training_dropout(one, other, file.imports) for one, other in ((value, instead), (instead, value)))


def _given(body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> tuple[str, cst.BaseExpression] | None:
    """The name that a block of one line gives a value, and the value."""
    line = body[0] if len(body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    return (target.value, small.value) if isinstance(target, cst.Name) else None


def _touched(lines: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> set[str]:
    """The names whose values some lines change, or ask for something: `params.update(...)`."""
    asked = [call.func.value for line in lines for call in calls_in(line) if isinstance(call.func, cst.Attribute)]
    return names_changed(lines) | {one.value for one in asked if isinstance(one, cst.Name)}


def _last(before: Sequence[cst.BaseStatement | cst.BaseSmallStatement], name: str) -> cst.SimpleStatementLine | None:
    """The line that gave a name its value, where nothing between it and the end of some lines speaks of the name."""
    for statement in reversed(before):
        if isinstance(statement, cst.SimpleStatementLine) and name in names_changed((statement,)):
            return statement
        if name in names_in(statement):
            return None
    return None


__all__ = ["with_chosen_dropouts"]
