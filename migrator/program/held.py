"""Which names of a file may hold the arrays that an expression gives, and whether one of them is written to.

A dataset of TensorFlow 2 gives arrays that are read only, where a session gives others. Names are compared as they are
written, in all functions of the file alike: too many are taken rather than too few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from migrator.program.calls import calls_in, functions_in, last_name, nodes_in, parameters_of
from migrator.program.parsed import ParsedFile

_COLLECTING = ("append", "appendleft", "extend", "add", "insert", "update", "setdefault", "put")
_WRITING = ("sort", "fill", "resize", "partition", "itemset", "setflags", "setfield", "byteswap")
_WRITING_FIRST = ("shuffle", "copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis")
#: Calls whose result is no part of what they are given.
_NEW = (
    *("len", "int", "float", "str", "bool", "print", "sum", "repr", "type", "array", "copy", "deepcopy", "mean", "std"),
    *("astype", "tolist", "max", "min", "item", "decode", "argmax", "argmin", "format", "flatten", "all", "any"),
)
_COMPUTING = (cst.BinaryOperation, cst.Comparison, cst.UnaryOperation, cst.FormattedString)


def may_be_written(file: ParsedFile, made: cst.BaseExpression) -> bool:
    """Whether the file may write to what an expression of it gives, or to a part of that."""
    held: set[str] = set()
    while True:
        more = _more(file, made, held) - held
        if not more:
            return any(_holds(one, made, held) for one in _written(file))
        held |= more


def _more(file: ParsedFile, made: cst.BaseExpression, held: Collection[str]) -> set[str]:
    found: set[str] = set()
    for node in nodes_in(file.module):
        if isinstance(node, cst.Assign) and _holds(node.value, made, held):
            found |= {name for one in node.targets for name in _given(one.target)}
        elif isinstance(node, (cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)):
            value = node.iter if isinstance(node, (cst.For, cst.CompFor)) else node.value
            found |= _given(node.target) if value is not None and _holds(value, made, held) else set()
        elif isinstance(node, cst.Call) and any(_holds(arg.value, made, held) for arg in node.args):
            found |= _of_call(file, node)
        elif isinstance(node, cst.FunctionDef) and any(_holds(one, made, held) for one in _returned(node)):
            found.add(node.name.value)
    return found


def _of_call(file: ParsedFile, call: cst.Call) -> set[str]:
    """The names that get what a call is given: parameters of a function of that name, or what collects it."""
    name = last_name(call.func)
    if isinstance(call.func, cst.Attribute) and name in _COLLECTING:
        return _given(call.func.value)
    functions = [one for one in functions_in(file.module) if one.name.value == name]
    return {param.name.value for one in functions for param in parameters_of(one)}


def _returned(function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    for node in nodes_in(function.body):
        value = node.value if isinstance(node, (cst.Return, cst.Yield)) else None
        if isinstance(value, cst.BaseExpression):
            yield value


def _given(target: cst.CSTNode) -> set[str]:
    """The names and attributes in which a target keeps a value: `a`, `self.a`, `a[0]` and `a, b`."""
    while isinstance(target, cst.Subscript):
        target = target.value
    if isinstance(target, cst.Name):
        return {target.value}
    if isinstance(target, cst.Attribute):
        return {target.attr.value}
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    return {name for one in elements for name in _given(one.value)}


def _holds(node: cst.CSTNode, made: cst.CSTNode, held: Collection[str]) -> bool:
    """Whether the value of an expression may be, or have as a part, what is held."""
    if node is made or (isinstance(node, cst.Name) and node.value in held):
        return True
    if isinstance(node, _COMPUTING) or (isinstance(node, cst.Call) and last_name(node.func) in _NEW):
        return False
    if isinstance(node, cst.Attribute):
        return node.attr.value in held or _holds(node.value, made, held)
    if isinstance(node, cst.Subscript):
        return _holds(node.value, made, held)
    return any(_holds(one, made, held) for one in node.children)


def _written(file: ParsedFile) -> Iterator[cst.CSTNode]:
    """The expressions of a file whose values change in place."""
    for node in nodes_in(file.module):
        if isinstance(node, cst.AugAssign):
            yield node.target
        elif isinstance(node, (cst.AssignTarget, cst.Del)):
            yield from _entries(node.target)
    for call in calls_in(file.module):
        name = last_name(call.func)
        if isinstance(call.func, cst.Attribute) and name in _WRITING:
            yield call.func.value
        if name in _WRITING_FIRST and call.args:
            yield call.args[0].value
        yield from (arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "out")


def _entries(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for one in target.elements:
            yield from _entries(one.value)
    elif isinstance(target, cst.Subscript):
        yield target.value


__all__ = ["may_be_written"]
