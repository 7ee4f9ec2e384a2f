"""Functions inside of a function: those that set its names and are called once stand in the place of the call.

`def set_net(): nonlocal net; net = dense(features)`, then `set_net()`, is `net = dense(features)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from migrator.names.bindings import Form, bound_in, read_bindings
from migrator.names.free import free
from migrator.program.calls import calls_in, functions_in, is_docstring, nodes_in
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.scopes import path_to, returns_in
from migrator.walking import of_kinds

_HIDING = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)
_LOOP = (cst.For, cst.While)
_ASKS = {"locals", "vars", "super", "eval", "exec"}


@dataclass(frozen=True)
class Nested:
    """The function, the line that calls it, what stands there instead, and names that are others then."""

    function: cst.FunctionDef
    line: cst.SimpleStatementLine
    lines: tuple[cst.BaseStatement, ...]
    names: Mapping[cst.CSTNode, cst.BaseExpression]


def nested_once(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Iterator[Nested]:
    """Such functions, each of another function of the file."""
    for scope in functions_in(file.module):
        if not is_concerned(scope) or not isinstance(scope.body, cst.IndentedBlock):
            continue
        for function in functions_in(scope.body):
            found = _read(file, scope, function)
            if found is not None:
                yield found
                break


def _read(file: ParsedFile, scope: cst.FunctionDef, function: cst.FunctionDef) -> Nested | None:
    around = path_to(scope, function)[1:-1]
    if any(isinstance(one, _HIDING) for one in around) or not _is_plain(function):
        return None
    name = function.name.value
    mentions = [node for node in name_nodes(scope) if node.value == name and node is not function.name]
    call = file.parents.get(mentions[0]) if len(mentions) == 1 else None
    if not isinstance(call, cst.Call) or call.func is not mentions[0] or call.args:
        return None
    path = path_to(scope, call)
    line = next((one for one in path if isinstance(one, cst.SimpleStatementLine)), None)
    if line is None or len(line.body) != 1 or any(isinstance(one, _HIDING) for one in path[1:]):
        return None
    if file.may_have_comment(call) or not file.position(function) < file.position(call):
        return None
    body = [one for one in function.body.body if not is_docstring(one) and not _declares(one)]
    returned = returns_in(function.body)
    last = body.pop() if returned and body else None
    small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
    if len(returned) > 1 or (returned and small is not returned[0]):
        return None
    result = returned[0].value if returned else None
    what = line.body[0]
    ending: list[cst.BaseSmallStatement]
    if isinstance(what, cst.Expr) and what.value is call:
        ending = [] if result is None or not calls_in(result) else [cst.Expr(result)]
    elif isinstance(what, (cst.Assign, cst.Return)) and what.value is call and result is not None:
        ending = [what.with_changes(value=result)]
    else:
        return None
    lines = [*body, *(cst.SimpleStatementLine([one]) for one in ending)]
    if not lines or not all(isinstance(one, cst.BaseStatement) for one in lines):
        return None
    own = {one.name for one in bound_in(function)}
    inside = set(nodes_in(function))
    taken = {node.value for node in name_nodes(scope) if node not in inside}
    renamed = {one: free(one, taken | names_in(function)) for one in sorted(own & taken)}
    if any(one.name in renamed and one.scope is not function for one in read_bindings(function)):
        return None  # a function inside has the name for something else
    names = {node: cst.Name(renamed[node.value]) for node in name_nodes(function.body) if node.value in renamed}
    first = lines[0]
    above = [*line.leading_lines, *getattr(first, "leading_lines", ())]
    lines[0] = first.with_changes(leading_lines=above)
    return Nested(function, line, tuple(lines), names)  # type: ignore[arg-type]


def names_apart(
    file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]
) -> dict[cst.CSTNode, cst.BaseExpression]:
    """Names of their own for functions inside of a function that have one name after the other, in one block."""
    found: dict[cst.CSTNode, cst.BaseExpression] = {}
    for scope in functions_in(file.module):
        if not is_concerned(scope):
            continue
        taken = names_in(scope) | file.names_at_top
        again: dict[str, list[cst.FunctionDef]] = {}
        for one in functions_in(scope.body):
            again.setdefault(one.name.value, []).append(one)
        for name, same in again.items():
            lives = _lives(file, scope, same) if len(same) > 1 else []
            for nodes in lives[1:]:
                new = free(name, taken)
                taken.add(new)
                found.update({node: cst.Name(new) for node in nodes})
    return found


def _lives(file: ParsedFile, scope: cst.FunctionDef, same: list[cst.FunctionDef]) -> list[list[cst.Name]]:
    """The mentions of each of several functions of one name, its own first; none where one may mean two of them."""
    name = same[0].name.value
    block = file.parents.get(same[0])
    in_one_block = all(file.parents.get(one) is block for one in same)
    if not in_one_block or not isinstance(block, cst.IndentedBlock) or isinstance(file.parents.get(block), _LOOP):
        return []
    if sum(one.name == name for one in read_bindings(scope)) != len(same):
        return []
    lines = list(block.body)
    inside = [[node for node in name_nodes(line) if node.value == name] for line in lines]
    if sum(map(len, inside)) != sum(node.value == name for node in name_nodes(scope)):
        return []
    starts = [lines.index(one) for one in same]
    late = [node for one in of_kinds(block, *_HIDING) for node in name_nodes(one)]
    defined = {one.name for one in same}
    if any(node.value == name and node not in defined for node in late) or any(inside[: starts[0]]):
        return []
    ends = [*starts[1:], len(lines)]
    return [[node for at in range(start, end) for node in inside[at]] for start, end in zip(starts, ends)]


def _is_plain(function: cst.FunctionDef) -> bool:
    """Whether a function without parameters, which is no generator, sets names of the one around."""
    params = function.params
    takes = params.params or params.posonly_params or params.kwonly_params or params.star_kwarg
    if takes or isinstance(params.star_arg, cst.Param) or function.decorators or function.asynchronous is not None:
        return False
    if not isinstance(function.body, cst.IndentedBlock) or names_in(function) & _ASKS:
        return False
    if of_kinds(function.body, cst.Yield, cst.Await):
        return False
    forms = [one for one in read_bindings(function.body) if one.form in (Form.SCOPED, Form.DELETED)]
    return bool(forms) and all(one.form is Form.SCOPED and not one.is_global for one in forms)


def _declares(line: cst.CSTNode) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and all(isinstance(one, cst.Nonlocal) for one in line.body)


__all__ = ["Nested", "names_apart", "nested_once"]
