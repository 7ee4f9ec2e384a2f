"""What a name stands for where a call reads it: the lines before it that made that, one after the other.

`optimizer = Adam(0.1)`, `optimizer = clip_gradients_by_norm(optimizer, 5.0)`, `DNNClassifier(optimizer=optimizer)` say
one expression. It is one where nothing else reads what the lines make: these go, and the expression stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.names.bindings import owns, value_given
from migrator.program.parsed import ParsedFile, name_nodes
from migrator.program.scopes import bindings, path_to, rebound

_LOOPS = (cst.For, cst.While)
_FUNCTIONS = (cst.FunctionDef, cst.Lambda)


@dataclass(frozen=True)
class MadeBefore:
    """The expression that a name stands for, and the lines that made it, which nothing else reads."""

    value: cst.BaseExpression
    lines: tuple[cst.SimpleStatementLine, ...]


def made_before(
    file: ParsedFile,
    name: cst.Name,
    call: cst.Call,
    joins: Callable[[cst.BaseExpression], bool],
    serves_many: Callable[[cst.BaseExpression], bool] = lambda value: False,
) -> MadeBefore | None:
    """What a name that a call reads stands for; None where that is not one expression, or others read it too.

    Arguments of the expression that are names are followed as well, where what they stand for `joins` it. The call may
    read the name several times if the value `serves_many`.
    """
    around = path_to(file.module, name)
    functions = [one for one in around if isinstance(one, _FUNCTIONS)]
    scope = next((one for one in reversed(functions) if owns(one, name.value)), file.module)
    if isinstance(scope, cst.Lambda) or (scope is file.module and functions):
        return None  # a function reads what its caller may have changed in between
    found = _line(scope, around[around.index(scope) :], name.value)
    if found is None:
        return None
    line, value = found
    if rebound(file, scope, value, line, call) is not None:
        return None
    readers = {*name_nodes(call)} if serves_many(value) else {name}
    if not _is_read_by_these_alone(file, scope, readers, line, name.value):
        return None
    lines = [line]
    if isinstance(value, cst.Call):
        args = list(value.args)
        for at, arg in enumerate(args):
            inner = made_before(file, arg.value, value, joins) if isinstance(arg.value, cst.Name) else None
            if inner is not None and joins(inner.value):
                if rebound(file, scope, inner.value, inner.lines[-1], call) is not None:
                    return None
                args[at] = arg.with_changes(value=inner.value)
                lines = [*inner.lines, *lines]
        if len(lines) > 1:
            value = value.with_changes(args=args)
    return MadeBefore(value, tuple(lines))


def _line(
    scope: cst.CSTNode, path: Sequence[cst.CSTNode], name: str
) -> tuple[cst.SimpleStatementLine, cst.BaseExpression] | None:
    """The last line before a place that gives a name its value, whatever way the program gets to the place."""
    for depth in range(len(path) - 2, -1, -1):
        block, inside = path[depth], path[depth + 1]
        if isinstance(block, _LOOPS) and any(known == name for known, _ in bindings(block)):
            return None  # an earlier round may have given it, too
        if not isinstance(block, (cst.Module, cst.IndentedBlock)):
            continue
        at = next(index for index, statement in enumerate(block.body) if statement is inside)
        for statement in reversed(block.body[:at]):
            bound = [node for known, node in bindings(statement) if known == name]
            if isinstance(statement, cst.FunctionDef) or not bound:
                continue
            if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1 or len(bound) != 1:
                return None
            small = statement.body[0]
            if not isinstance(small, (cst.Assign, cst.AnnAssign)) or bound[0] is not _target(statement):
                return None
            value = value_given(statement, bound[0])
            return None if value is None else (statement, value)
    return None


def _target(line: cst.SimpleStatementLine) -> cst.CSTNode | None:
    small = line.body[0]
    if isinstance(small, cst.Assign):
        return small.targets[0].target if len(small.targets) == 1 else None
    return small.target if isinstance(small, cst.AnnAssign) else None


def _is_read_by_these_alone(
    file: ParsedFile, scope: cst.CSTNode, readers: set[cst.Name], line: cst.SimpleStatementLine, name: str
) -> bool:
    """Whether nothing but some mentions of a name can read what a line gives it.

    Others may stand before the line, behind the next that gives the name a value, or in another branch of a condition.
    """
    above = path_to(scope, line)
    if any(isinstance(one, _LOOPS) for one in above):
        return False
    begin = file.range(line)[1]
    block = above[-2].body if isinstance(above[-2], (cst.Module, cst.IndentedBlock)) else ()
    later = [one for one in block if file.range(one)[0] >= begin and isinstance(one, cst.SimpleStatementLine)]
    ends = (file.range(one)[1] for one in later if any(known == name for known, _ in bindings(one)))
    end = next(ends, len(file.text) + 1)
    for node in name_nodes(scope):
        if node.value != name or node in readers or isinstance(file.parents.get(node), cst.AssignTarget):
            continue
        around = path_to(scope, node)
        inner = [one for one in around[1:] if isinstance(one, _FUNCTIONS)]
        if any(owns(one, name) for one in inner):
            continue
        if inner:
            return False
        if begin <= file.range(node)[0] < end and not _excludes(above, around):
            return False
    return True


def _excludes(first: Sequence[cst.CSTNode], second: Sequence[cst.CSTNode]) -> bool:
    """Whether two places stand in different branches of one condition."""
    for at, node in enumerate(first):
        if at + 1 < min(len(first), len(second)) and node is second[at] and isinstance(node, cst.If):
            branches = (node.body, node.orelse)
            ours, theirs = first[at + 1], second[at + 1]
            if ours is not theirs and any(ours is b for b in branches) and any(theirs is b for b in branches):
                return True
    return False


__all__ = ["MadeBefore", "made_before"]
