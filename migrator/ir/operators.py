"""Python's operators, built-in functions and methods on what is known; None where the result is not."""

from __future__ import annotations

import builtins
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

BINARY: dict[type[cst.BaseBinaryOp | cst.BaseAugOp], tuple[str, Callable[[Any, Any], Any]]] = {
    cst.Add: ("add", operator.add),
    cst.Subtract: ("sub", operator.sub),
    cst.Multiply: ("mul", operator.mul),
    cst.Divide: ("truediv", operator.truediv),
    cst.FloorDivide: ("floordiv", operator.floordiv),
    cst.Modulo: ("mod", operator.mod),
    cst.Power: ("pow", operator.pow),
    cst.MatrixMultiply: ("matmul", operator.matmul),
    cst.BitAnd: ("and", operator.and_),
    cst.BitOr: ("or", operator.or_),
    cst.BitXor: ("xor", operator.xor),
    cst.LeftShift: ("lshift", operator.lshift),
    cst.RightShift: ("rshift", operator.rshift),
    cst.AddAssign: ("add", operator.add),
    cst.SubtractAssign: ("sub", operator.sub),
    cst.MultiplyAssign: ("mul", operator.mul),
    cst.DivideAssign: ("truediv", operator.truediv),
    cst.FloorDivideAssign: ("floordiv", operator.floordiv),
    cst.ModuloAssign: ("mod", operator.mod),
    cst.PowerAssign: ("pow", operator.pow),
    cst.MatrixMultiplyAssign: ("matmul", operator.matmul),
    cst.BitAndAssign: ("and", operator.and_),
    cst.BitOrAssign: ("or", operator.or_),
    cst.BitXorAssign: ("xor", operator.xor),
    cst.LeftShiftAssign: ("lshift", operator.lshift),
    cst.RightShiftAssign: ("rshift", operator.rshift),
}
COMPARISONS: dict[type[cst.BaseCompOp], tuple[str, Callable[[Any, Any], Any]]] = {
    cst.Equal: ("==", operator.eq),
    cst.NotEqual: ("!=", operator.ne),
    cst.LessThan: ("<", operator.lt),
    cst.LessThanEqual: ("<=", operator.le),
    cst.GreaterThan: (">", operator.gt),
    cst.GreaterThanEqual: (">=", operator.ge),
    cst.In: ("in", lambda a, b: a in b),
    cst.NotIn: ("not in", lambda a, b: a not in b),
    cst.Is: ("is", operator.is_),
    cst.IsNot: ("is not", operator.is_not),
}
#: Built-in functions of constants only that are computed.
_FOLDED = ("abs", "bool", "bytes", "chr", "divmod", "float", "hash", "hex", "int", "len", "max", "min", "ord", "pow")
FOLDED: dict[str, Callable[..., Any]] = {name: getattr(builtins, name) for name in (*_FOLDED, "repr", "round", "str")}
BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_")) | {"__import__"}
_OPERATORS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "contains", "not_"),
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "neg"),
)
#: The methods that change a list, a dict or a set.
CHANGING = frozenset(
    (
        *("append", "extend", "insert", "remove", "reverse", "sort", "pop", "clear"),
        *("popitem", "setdefault", "update"),
        *("add", "discard", "difference_update", "intersection_update", "symmetric_difference_update"),
    )
)
#: Functions of the standard library that compute a value of constants and do nothing else.
LIBRARY: dict[str, Callable[..., Any]] = {
    **{f"re.{one.__name__}": one for one in (re.match, re.search, re.fullmatch, re.findall, re.split, re.sub)},
    **{f"math.{one.__name__}": one for one in (math.ceil, math.exp, math.floor, math.log, math.pow, math.sqrt)},
    **{
        f"operator.{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "contains", "not_")
    },
    **{
        f"operator.{name}": getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "neg")
    },
}
_LARGEST = 1 << 16  # characters, or bits: what a constant may grow to


def folded(
    function: Callable[..., Any], values: Sequence[Any], named: dict[str, Any] | None = None
) -> tuple[Any] | None:
    """The result of a pure function of constants, in a tuple; None where it fails, or would be large."""
    try:
        if any(isinstance(one, int) and abs(one) > _LARGEST for one in values) and function in _GROWING:
            return None
        result = function(*values, **(named or {}))
    except Exception:
        return None
    if isinstance(result, (str, bytes)) and len(result) > _LARGEST:
        return None
    return (result,)


_GROWING = (operator.pow, operator.lshift, operator.mul, builtins.pow)

__all__ = ["BINARY", "BUILTINS", "CHANGING", "COMPARISONS", "FOLDED", "LIBRARY", "folded"]
