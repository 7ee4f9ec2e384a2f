"""Calls as data: arguments bound to the parameter names of the TensorFlow 1 signature."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import libcst as cst

from migrator.program.parsed import Blocked
from migrator.walking import all_in, of_kinds


def bind(call: cst.Call, parameters: Sequence[str], what: str, code: str) -> dict[str, cst.BaseExpression]:
    """Binds the arguments of `call` to `parameters` in order.

    Raises Blocked(code) for star arguments, unknown keywords and too many positional arguments.
    """
    bound: dict[str, cst.BaseExpression] = {}
    for index, arg in enumerate(call.args):
        if arg.star:
            raise Blocked(code, arg, f"`{what}` is called with * or ** arguments: write them out")
        if arg.keyword is not None:
            name = arg.keyword.value
            if name not in parameters:
                raise Blocked(code, arg, f"`{what}` is called with `{name}`, an argument unknown to tf-migrate")
        elif index < len(parameters):
            name = parameters[index]
        else:
            raise Blocked(code, arg, f"`{what}` is called with more positional arguments than it has parameters")
        bound[name] = arg.value
    return bound


def is_identifier(name: str) -> bool:
    """Whether a text can be a name in Python."""
    return name.isidentifier() and not keyword.iskeyword(name)


def attribute_asked(call: cst.Call) -> cst.Attribute | None:
    """`x.name` where a call is `getattr(x, "name")`, if Python's own `getattr` is meant; else None."""
    if not isinstance(call.func, cst.Name) or call.func.value != "getattr" or len(call.args) != 2:
        return None
    if any(arg.keyword or arg.star for arg in call.args):
        return None
    of, name = (arg.value for arg in call.args)
    said = name.evaluated_value if isinstance(name, cst.SimpleString) else None
    if not isinstance(said, str) or not is_identifier(said) or said.startswith("__"):
        return None
    return cst.Attribute(of, cst.Name(said))


def in_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that goes over lines, fit to stand by itself."""
    if getattr(value, "lpar", ()) or "\n" not in cst.Module([]).code_for_node(value):
        return value
    if isinstance(value, (cst.Call, cst.Dict, cst.List, cst.Set, cst.Subscript)):
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def keyword_argument(name: str, value: cst.BaseExpression) -> cst.Arg:
    """`name=value`."""
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(name), equal=equal)


def with_arguments(call: cst.Call, args: Sequence[cst.Arg]) -> cst.Call:
    """A call with other arguments, set one behind the other; the positional ones first."""
    ordered = [arg for arg in args if arg.keyword is None and arg.star != "**"]
    ordered += [arg for arg in args if arg.keyword is not None or arg.star == "**"]
    between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    written = [
        arg.with_changes(comma=between if index + 1 < len(ordered) else cst.MaybeSentinel.DEFAULT)
        for index, arg in enumerate(ordered)
    ]
    return call.with_changes(args=written, whitespace_before_args=cst.SimpleWhitespace(""))


def is_none(node: cst.BaseExpression | None) -> bool:
    """Whether an argument is missing or None."""
    return node is None or (isinstance(node, cst.Name) and node.value == "None")


def is_true(node: cst.BaseExpression | None) -> bool:
    """Whether an argument is the literal True."""
    return isinstance(node, cst.Name) and node.value == "True"


def is_false(node: cst.BaseExpression | None) -> bool:
    """Whether an argument is the literal False."""
    return isinstance(node, cst.Name) and node.value == "False"


def number(node: cst.BaseExpression | None) -> float | None:
    """The value of a numeric literal (with an optional minus sign), else None."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = number(node.expression)
        return None if value is None else -value
    if isinstance(node, (cst.Integer, cst.Float)):
        return float(node.evaluated_value)
    return None


def string(node: cst.BaseExpression | None) -> str | None:
    """The value of a string literal, else None."""
    if isinstance(node, cst.SimpleString):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


class Entry(NamedTuple):
    """An entry of a dict that is written out: its key, its value, and the part of the dict that it is.

    The key of `dict(a=b)` is the text that it stands for.
    """

    key: cst.BaseExpression
    value: cst.BaseExpression
    node: cst.DictElement | cst.Arg


def written_entries(node: cst.BaseExpression | None, is_builtin: bool = True) -> list[Entry] | None:
    """The entries of `{"a": b}`, or of `dict(a=b)` where `dict` is Python's own; None for anything else.

    What `*` or `**` adds is not written out.
    """
    if isinstance(node, cst.Dict):
        elements = [one for one in node.elements if isinstance(one, cst.DictElement)]
        return [Entry(one.key, one.value, one) for one in elements] if len(elements) == len(node.elements) else None
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or node.func.value != "dict":
        return None
    named = [(one.keyword.value, one) for one in node.args if one.keyword is not None]
    if len(named) < len(node.args) or not is_builtin:
        return None
    return [Entry(cst.SimpleString(f'"{name}"'), one.value, one) for name, one in named]


def parameters_of(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """The parameters of a function that have names of their own: all but `*args` and `**kwargs`."""
    params = function.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether a statement is a line that holds nothing but a string."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def last_name(node: cst.BaseExpression) -> str:
    """The name, or that of the attribute, that an expression ends in: `f` of `f`, `a.f` and `g().f`; else ""."""
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""


def calls_in(node: cst.CSTNode) -> list[cst.Call]:
    """Every call below a node, outer ones first."""
    return of_kinds(node, cst.Call)


@lru_cache(maxsize=512)
def attributes_in(node: cst.CSTNode) -> list[cst.Attribute]:
    """Every attribute below a node, outer ones first; those of modules in imports as well."""
    return of_kinds(node, cst.Attribute)


def is_name(node: cst.CSTNode, name: str | None) -> bool:
    """Whether a node is a name of this text."""
    return isinstance(node, cst.Name) and node.value == name


def nodes_in(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """A node and every node below it."""
    return tuple(all_in(node))


def classes_in(node: cst.CSTNode) -> list[cst.ClassDef]:
    """Every class below a node, outer ones first."""
    return of_kinds(node, cst.ClassDef)


def functions_in(node: cst.CSTNode) -> list[cst.FunctionDef]:
    """Every function below a node, outer ones first."""
    return of_kinds(node, cst.FunctionDef)
