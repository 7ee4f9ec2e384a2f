"""What a program does with the Estimators of tf.contrib.learn, and what their columns of numbers are."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.ir.machine import Machine, present
from migrator.ir.program import Program
from migrator.ir.values import Constant, Operation, Symbol, Value, alternatives

_FAMILY = "tf.contrib.learn."
_KINDS = ("Classifier", "Regressor", "Estimator")
_INFERRED = "infer_real_valued_columns_from_input"


@dataclass(frozen=True)
class LearnUse:
    """A call of a method: its name, and the symbols of the Estimators whose it may be; none where it is of others.

    `unclear` says that it may be a method of something that is not known.
    """

    call: cst.Call
    method: str
    symbols: frozenset[str]
    unclear: bool


def uses_of_learn(program: Program) -> dict[cst.CSTNode, LearnUse]:
    """The calls of methods of a program by their nodes, with the Estimators of tf.contrib.learn that have them."""
    found: dict[cst.CSTNode, LearnUse] = {}
    for effect in program.effects:
        operation = effect.operation
        node = operation.site.node if operation.site is not None else None
        if not operation.symbol.startswith(".") or not operation.args or not isinstance(node, cst.Call):
            continue
        owners = alternatives(operation.args[0])
        symbols = frozenset(one.symbol for one in owners if isinstance(one, Operation) and is_learn(one.symbol))
        unclear = not all(_is_known(one) for one in owners)
        known = found.get(node)
        if known is not None:
            symbols, unclear = symbols | known.symbols, unclear or known.unclear
        found[node] = LearnUse(node, operation.symbol[1:], symbols, unclear)
    return found


def is_learn(symbol: str) -> bool:
    """Whether a symbol makes an Estimator of tf.contrib.learn."""
    return symbol.startswith(_FAMILY) and symbol.endswith(_KINDS)


def _is_known(value: Value) -> bool:
    """Whether a value is what a library made, or one of the program's own."""
    if isinstance(value, Operation):
        return "." in value.symbol.lstrip(".") or is_learn(value.symbol)
    return isinstance(value, (Constant, Symbol))


def size_of_array(machine: Machine, columns: Value) -> int | None:
    """How many numbers the one column of an array without names has; 0 where the array itself says it.

    None where the columns are others, or several.
    """
    if isinstance(columns, Operation):
        return 0 if columns.symbol.startswith(_FAMILY) and columns.symbol.endswith(_INFERRED) else None
    content = machine.content_of(columns)
    if content is None or content.more or len(content.items) != 1:
        return None
    column = present(content.items[0])
    if not isinstance(column, Operation) or not column.symbol.endswith(".layers.real_valued_column"):
        return None
    name, size = column.argument(0, "column_name"), column.argument(1, "dimension")
    if not isinstance(name, Constant) or name.value != "" or len(column.args) > 2 or set(column.kwargs) - _PLAIN:
        return None
    if size is None:
        return 1
    return size.value if isinstance(size, Constant) and isinstance(size.value, int) else None


_PLAIN = {"column_name", "dimension", "dtype"}


def count_of(machine: Machine, columns: Value) -> int | None:
    """How many columns there are; None where that is not known."""
    content = machine.content_of(columns)
    return len(content.items) if content is not None and not content.more else None


__all__ = ["LearnUse", "count_of", "is_learn", "size_of_array", "uses_of_learn"]
