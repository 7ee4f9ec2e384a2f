"""What a program does with the results of an evaluation: asks for some of them by name, or looks at all of them."""

from __future__ import annotations

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import string
from migrator.program.parsed import name_nodes
from migrator.program.scopes import path_to

#: Calls that only show what they are given, as does whatever writes logs.
_SHOWING = frozenset(("print", "str", "repr", "format", "pprint", "bool", "type"))
_LOGGING = frozenset(("debug", "info", "warning", "warn", "error", "critical", "exception", "log", "format"))
_DEPTH = 4


def looks_at_all(scope: cst.CSTNode, node: cst.CSTNode, imports: ImportMap, depth: int = _DEPTH) -> bool:
    """Whether the dictionary that an expression in a scope gives may be gone through: looped over, returned, handed on.

    Not so where entries are asked for by name, and where it is shown as a whole.
    """
    path = path_to(scope, node)
    if len(path) < 2 or depth == 0:
        return True
    at = len(path) - 2
    while isinstance(path[at], (cst.NamedExpr, cst.Await)) and at and path[at].value is path[at + 1]:  # type: ignore[attr-defined]
        if isinstance(path[at], cst.NamedExpr) and _by_name(scope, path[at].target, imports, depth):  # type: ignore[attr-defined]
            return True
        at -= 1
    node, around = path[at + 1], path[at]
    if isinstance(around, (cst.Expr, cst.Del)):
        return False
    if isinstance(around, cst.Subscript) and around.value is node:
        index = around.slice[0].slice
        return len(around.slice) != 1 or not isinstance(index, cst.Index) or not _is_key(index.value, imports)
    if isinstance(around, cst.Attribute):
        call = path[at - 1] if at else None
        asked = isinstance(call, cst.Call) and call.func is around and around.attr.value == "get" and call.args
        return not (asked and isinstance(call, cst.Call) and _is_key(call.args[0].value, imports))
    if isinstance(around, cst.ComparisonTarget) and isinstance(around.operator, (cst.In, cst.NotIn)):
        comparison = path[at - 1] if at else None
        return not (isinstance(comparison, cst.Comparison) and _is_key(comparison.left, imports))
    if isinstance(around, cst.FormattedStringExpression):
        return False
    if isinstance(around, cst.BinaryOperation) and isinstance(around.operator, cst.Modulo) and around.right is node:
        return False  # a text with places to fill in, or it would be an error
    if isinstance(around, cst.Arg):
        call = path[at - 1] if at else None
        return around.star != "" or not (isinstance(call, cst.Call) and _shows(call, imports))
    if isinstance(around, cst.Element) and at > 1 and isinstance(path[at - 1], cst.Tuple):
        filled = path[at - 2]
        return not (isinstance(filled, cst.BinaryOperation) and isinstance(filled.operator, cst.Modulo))
    if isinstance(around, (cst.Assign, cst.AnnAssign)) and around.value is node:
        targets = [t.target for t in around.targets] if isinstance(around, cst.Assign) else [around.target]
        return any(_by_name(scope, target, imports, depth) for target in targets)
    return True


def _by_name(scope: cst.CSTNode, target: cst.BaseExpression, imports: ImportMap, depth: int) -> bool:
    """Whether what a name is given may be gone through."""
    if not isinstance(target, cst.Name):
        return True
    read = [one for one in name_nodes(scope) if one.value == target.value and not _is_bound(scope, one)]
    return any(looks_at_all(scope, one, imports, depth - 1) for one in read)


def _is_bound(scope: cst.CSTNode, name: cst.Name) -> bool:
    around = path_to(scope, name)[-2:-1]
    return bool(around) and isinstance(around[0], (cst.AssignTarget, cst.AnnAssign, cst.NamedExpr))


def _is_key(node: cst.BaseExpression, imports: ImportMap) -> bool:
    """Whether an expression is the name of one entry, as it is written down."""
    return string(node) is not None or ".MetricKeys." in (imports.resolve(node) or "")


def _shows(call: cst.Call, imports: ImportMap) -> bool:
    name = imports.resolve(call.func) or ""
    last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    if not isinstance(last, cst.Name):
        return False
    if isinstance(call.func, cst.Name):
        return last.value in _SHOWING
    return last.value in _LOGGING or (last.value in _SHOWING and name.startswith("pprint"))
