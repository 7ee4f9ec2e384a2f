"""Functions that choose by a constant what they make, folded for one call: `create_optimizer("tf1")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.pairing import equal_zip
from migrator.program.calls import bind, is_docstring, number, parameters_of, string
from migrator.program.parsed import Blocked, ParsedFile, name_nodes, names_in
from migrator.program.scopes import bindings, path_to
from migrator.program.spread import Edit, Written

_CODE = "TFM190"


@dataclass(frozen=True)
class Folded:
    """What one call of a function gives: an expression of it, and the branch that was taken (None: there is none)."""

    call: cst.Call
    function: cst.FunctionDef
    value: cst.BaseExpression
    branch: cst.If | None


def fold(file: ParsedFile, call: cst.Call) -> Folded | None:
    """What a call of a function of this file gives, where that is one expression which reads none of its parameters.

    None where the function does something else than to choose, by comparing parameters with literals, what it returns,
    and where a name of the expression may mean something else at the call than in the function.
    """
    function = file.functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
    bound = [s for s in file.module.body if isinstance(s, cst.FunctionDef) and s is not function]
    if function is None or function.decorators or any(s.name.value == function.name.value for s in bound):
        return None
    values = _values(function, call)
    if values is None:
        return None
    statements = list(function.body.body)
    if len(statements) > 1 and is_docstring(statements[0]):
        del statements[0]
    branch: cst.If | None = None
    if statements and isinstance(statements[0], cst.If):
        branch = _taken(statements[0], values)
        if branch is None:
            return None
        rest = [] if any(isinstance(small, cst.Return) for small in _smalls(branch.body.body)) else statements[1:]
        statements = [*branch.body.body, *rest]
    value = _given(statements)
    if value is None or names_in(value) & {*values, function.name.value, *_local(file, call)}:
        return None
    return Folded(call, function, value, branch)


def _local(file: ParsedFile, call: cst.Call) -> set[str]:
    """The names that the functions and classes around a call bind."""
    around = [n for n in path_to(file.module, call) if isinstance(n, (cst.FunctionDef, cst.ClassDef, cst.Lambda))]
    return {name for scope in around for name, _ in bindings(scope)}


def _taken(chain: cst.If, values: Mapping[str, cst.BaseExpression | None]) -> cst.If | None:
    """The branch of `if a == "x": ... elif ...` that is taken; None where that is not sure, or where it is the else."""
    at: cst.If | cst.Else | None = chain
    while isinstance(at, cst.If):
        holds = _holds(at.test, values)
        if holds is None:
            return None
        if holds:
            return at
        at = at.orelse
    return None


def _holds(test: cst.BaseExpression, values: Mapping[str, cst.BaseExpression | None]) -> bool | None:
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
        return None
    target = test.comparisons[0]
    left, right = _literal(values.get(test.left.value)), _literal(target.comparator)
    if left is None or right is None or not isinstance(target.operator, (cst.Equal, cst.NotEqual)):
        return None
    return (left == right) == isinstance(target.operator, cst.Equal)


def _literal(node: cst.BaseExpression | None) -> str | float | None:
    text = string(node)
    return number(node) if text is None else text


def _smalls(statements: Sequence[cst.CSTNode]) -> list[cst.BaseSmallStatement]:
    """The statements that stand on lines of their own."""
    return [s.body[0] for s in statements if isinstance(s, cst.SimpleStatementLine) and len(s.body) == 1]


def _given(statements: Sequence[cst.CSTNode]) -> cst.BaseExpression | None:
    """What `return value` gives, or `name = value` and `return name`."""
    smalls = _smalls(statements)
    if len(smalls) != len(statements) or not smalls or not isinstance(smalls[-1], cst.Return):
        return None
    value = smalls[-1].value
    if len(smalls) == 1:
        return value
    made = smalls[0]
    if (
        len(smalls) != 2
        or not isinstance(made, cst.Assign)
        or len(made.targets) != 1
        or not isinstance(value, cst.Name)
    ):
        return None
    target = made.targets[0].target
    return made.value if isinstance(target, cst.Name) and target.value == value.value else None


def without_folded(file: ParsedFile, folded: Sequence[Folded], elsewhere: Callable[[str], bool]) -> list[Edit]:
    """The edits that remove what nothing calls when these calls are gone: functions, or one branch of them.

    `elsewhere` says whether a name stands in another file: then its function stays as it is.
    """
    edits: list[Edit] = []
    for function in dict.fromkeys(one.function for one in folded):
        if elsewhere(function.name.value):
            continue
        gone = [one for one in folded if one.function is function]
        mentions = [n for n in name_nodes(file.module) if n.value == function.name.value and n is not function.name]
        left = [n for n in mentions if not any(n is one.call.func for one in gone)]
        if not left:
            edits.append(_removal(file, function))
            continue
        calls = [file.parents[n] for n in left]
        for branch in dict.fromkeys(one.branch for one in gone):
            others = [_branch_of(file, call, n) for call, n in equal_zip(calls, left)]
            if branch is None or any(other is None or other is branch for other in others):
                continue
            if isinstance(branch.orelse, cst.If):
                start, end = file.range(branch)[0], file.range(branch.orelse)[0]
                word = "elif" if file.text.startswith("elif", start) else "if"
                edits.append(Edit(start, end + len("elif"), (Written(word, start),)))
    return edits


def _branch_of(file: ParsedFile, call: cst.CSTNode, name: cst.Name) -> cst.If | None:
    """The branch of the function of a name that a call of it takes; None where that is not known."""
    function = file.functions.get(name.value)
    if function is None or not isinstance(call, cst.Call) or call.func is not name:
        return None
    values = _values(function, call)
    chain = next((s for s in function.body.body if isinstance(s, cst.If)), None)
    return _taken(chain, values) if chain is not None and values is not None else None


def _values(function: cst.FunctionDef, call: cst.Call) -> dict[str, cst.BaseExpression | None] | None:
    """What each parameter gets (None: nothing that is known); None where the arguments are not written out."""
    parameters = parameters_of(function)
    try:
        given = bind(call, [p.name.value for p in parameters], function.name.value, _CODE)
    except Blocked:
        return None
    return {p.name.value: given.get(p.name.value, p.default) for p in parameters}


def _removal(file: ParsedFile, function: cst.FunctionDef) -> Edit:
    start, end = file.range(function)
    end = file.text.find("\n", end) + 1 or len(file.text)
    while file.text.startswith("\n", end):
        end += 1
    return Edit(start, end, ())
