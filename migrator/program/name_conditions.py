"""What an expression that reads the name of a variable comes to, for a given name: strings, conditions, plain loops.

Nothing of the program is run: a small interpreter knows the expressions that choose variables, and no others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrator.names.bindings import values_given
from migrator.pairing import equal_zip
from migrator.program.variable_reads import Listed

_DEPTH = 5
_LIMIT = 1000  # characters or elements of a value
_TEXT = frozenset(
    ("startswith", "endswith", "split", "rsplit", "partition", "rpartition", "lower", "upper", "strip", "lstrip")
) | frozenset(("rstrip", "replace", "find", "rfind", "index", "count", "isdigit", "removesuffix", "removeprefix"))
_PLAIN: dict[str, Callable[..., Any]] = {
    "len": len,
    "str": str,
    "bool": bool,
    "int": int,
    "any": any,
    "all": all,
    "sum": sum,
    "set": set,
    "list": list,
    "tuple": tuple,
    "sorted": sorted,
    "min": min,
    "max": max,
    "float": float,
}
_PATTERNS = frozenset(("match", "search", "fullmatch", "findall"))
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}


class Unknown(Exception):
    """An expression is not one of those that are understood."""


@dataclass(frozen=True)
class _Variable:
    """A variable, of which only the name is known."""

    name: str


def value_of(node: cst.BaseExpression, code: Listed, name: str) -> Any:
    """What an expression is for a variable of that name, whatever the expression calls it. Raises Unknown."""
    try:
        parsed = ast.parse(cst.Module([]).code_for_node(node).strip(), mode="eval").body
    except SyntaxError as problem:
        raise Unknown(str(problem)) from problem
    held = dict.fromkeys(code.names | code.parameters, _Variable(name))
    value = _Interpreter(code, held).value(parsed, {})
    if isinstance(value, _Variable):
        raise Unknown("a variable")
    return value


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Interpreter:
    def __init__(self, code: Listed, variables: Mapping[str, _Variable], depth: int = 0) -> None:
        self.code = code
        self.file = code.file
        self.variables = variables
        self.depth = depth
        self.constants = 0

    def value(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise Unknown(type(node).__name__)
        try:
            value = method(node, names)
        except (Unknown, _Return):
            raise
        except Exception as problem:  # what the expression itself would raise
            raise Unknown(str(problem)) from problem
        if isinstance(value, (str, list, tuple, set, dict)) and len(value) > _LIMIT:
            raise Unknown("too long")
        return value

    def _constant(self, node: ast.Constant, names: Mapping[str, Any]) -> Any:
        return node.value

    def _name(self, node: ast.Name, names: Mapping[str, Any]) -> Any:
        if node.id in names:
            return names[node.id]
        if node.id in self.variables:
            return self.variables[node.id]
        if self.constants > _DEPTH:
            raise Unknown(node.id)
        local = values_given(self.code.scope, node.id) if self.depth == 0 else []
        constant = local[0] if len(local) == 1 else None if local else self.file.constants.get(node.id)
        if constant is None:
            raise Unknown(node.id)
        self.constants += 1  # of constants that stand for others
        value = self.value(ast.parse(self.file.code(constant).strip(), mode="eval").body, {})
        self.constants -= 1
        return value

    def _attribute(self, node: ast.Attribute, names: Mapping[str, Any]) -> Any:
        if node.attr == "name" and isinstance(node.value, ast.Attribute) and node.value.attr == "op":
            owner = self.value(node.value.value, names)
            if isinstance(owner, _Variable):
                return owner.name.partition(":")[0]
            raise Unknown("op")
        owner = self.value(node.value, names)
        if isinstance(owner, _Variable) and node.attr == "name":
            return owner.name
        raise Unknown(node.attr)

    def _tuple(self, node: ast.Tuple, names: Mapping[str, Any]) -> Any:
        return tuple(self.value(one, names) for one in node.elts)

    def _list(self, node: ast.List, names: Mapping[str, Any]) -> Any:
        return [self.value(one, names) for one in node.elts]

    def _set(self, node: ast.Set, names: Mapping[str, Any]) -> Any:
        return {self.value(one, names) for one in node.elts}

    def _boolop(self, node: ast.BoolOp, names: Mapping[str, Any]) -> Any:
        values = [self._plain(one, names) for one in node.values]  # all of them, so that all are understood
        wanted = isinstance(node.op, ast.Or)
        return next((one for one in values if bool(one) is wanted), values[-1])

    def _unaryop(self, node: ast.UnaryOp, names: Mapping[str, Any]) -> Any:
        if isinstance(node.op, ast.Not):
            return not self._plain(node.operand, names)
        if isinstance(node.op, ast.USub):
            return -self._plain(node.operand, names)
        raise Unknown("operator")

    def _binop(self, node: ast.BinOp, names: Mapping[str, Any]) -> Any:
        if isinstance(node.op, ast.Add):
            return self._plain(node.left, names) + self._plain(node.right, names)
        if isinstance(node.op, ast.Mod):
            return self._plain(node.left, names) % self._plain(node.right, names)
        raise Unknown("operator")

    def _ifexp(self, node: ast.IfExp, names: Mapping[str, Any]) -> Any:
        return self.value(node.body if self._plain(node.test, names) else node.orelse, names)

    def _compare(self, node: ast.Compare, names: Mapping[str, Any]) -> Any:
        left = self._plain(node.left, names)
        for operator, comparator in equal_zip(node.ops, node.comparators):
            right = self._plain(comparator, names)
            if not _COMPARED[type(operator)](left, right):
                return False
            left = right
        return True

    def _subscript(self, node: ast.Subscript, names: Mapping[str, Any]) -> Any:
        return self._plain(node.value, names)[self.value(node.slice, names)]

    def _slice(self, node: ast.Slice, names: Mapping[str, Any]) -> Any:
        return slice(*(None if one is None else self._plain(one, names) for one in (node.lower, node.upper, node.step)))

    def _generatorexp(self, node: ast.GeneratorExp | ast.ListComp, names: Mapping[str, Any]) -> Any:
        (loop,) = node.generators
        if not isinstance(loop.target, ast.Name):
            raise Unknown("target")
        found = []
        for one in self._plain(loop.iter, names):
            inner = {**names, loop.target.id: one}
            tests = [self._plain(test, inner) for test in loop.ifs]
            if all(tests):
                found.append(self.value(node.elt, inner))
        return found

    _listcomp = _generatorexp

    def _call(self, node: ast.Call, names: Mapping[str, Any]) -> Any:
        given = [self.value(one, names) for one in node.args]
        keywords = {str(one.arg): self.value(one.value, names) for one in node.keywords}
        func = node.func
        if isinstance(func, ast.Name):
            if func.id in self.file.functions and func.id not in names:
                return self._function(self.file.functions[func.id], given, keywords)
            if func.id in _PLAIN and not keywords and not any(isinstance(one, _Variable) for one in given):
                return _PLAIN[func.id](*given)
            raise Unknown(func.id)
        if isinstance(func, ast.Attribute) and not keywords:
            if isinstance(func.value, ast.Name) and self.file.imports.names.get(func.value.id) == "re":
                if func.attr in _PATTERNS and all(isinstance(one, str) for one in given) and len(given) == 2:
                    found = getattr(re, func.attr)(*given)
                    return found.group(0) if isinstance(found, re.Match) else found
                raise Unknown(func.attr)
            owner = self._plain(func.value, names)
            if isinstance(owner, str) and func.attr in _TEXT:
                return getattr(owner, func.attr)(*given)
        raise Unknown("call")

    def _plain(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        value = self.value(node, names)
        if isinstance(value, _Variable):
            raise Unknown("a variable")
        return value

    def _function(self, function: cst.FunctionDef, given: list[Any], keywords: dict[str, Any]) -> Any:
        if self.depth > _DEPTH:
            raise Unknown("depth")
        (parsed,) = ast.parse(self.file.code(function).strip()).body
        assert isinstance(parsed, ast.FunctionDef)
        parameters = [one.arg for one in parsed.args.args]
        defaults = parsed.args.defaults
        names = {
            name: self.value(value, {})
            for name, value in equal_zip(parameters[len(parameters) - len(defaults) :], defaults)
        }
        names |= dict(zip(parameters, given)) | keywords
        if parsed.decorator_list or set(names) != set(parameters):
            raise Unknown("arguments")
        try:
            _Interpreter(self.code, {}, self.depth + 1)._block(parsed.body, names)
        except _Return as result:
            return result.value
        return None

    def _block(self, body: list[ast.stmt], names: dict[str, Any]) -> None:
        for statement in body:
            if isinstance(statement, ast.Return):
                raise _Return(None if statement.value is None else self.value(statement.value, names))
            if isinstance(statement, ast.If):
                self._block(statement.body if self._plain(statement.test, names) else statement.orelse, names)
            elif isinstance(statement, ast.For) and isinstance(statement.target, ast.Name) and not statement.orelse:
                for one in self._plain(statement.iter, names):
                    names[statement.target.id] = one
                    self._block(statement.body, names)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                names[statement.targets[0].id] = self.value(statement.value, names)
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                raise Unknown(type(statement).__name__)


__all__ = ["Unknown", "value_of"]
