"""What a value of the evaluator is when its conditions are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrator.ir.machine import NOTHING, Machine
from migrator.ir.values import Constant, Either, Object, Operation, Sequence, Table, Value


class NotKnown(Exception):
    """The evaluator does not know the value."""


_LEFT_OUT = object()


def concrete(machine: Machine, value: Value, flags: Mapping[str, object]) -> Any:
    """The Python value, where parameters have the values of `flags`. Raises NotKnown."""
    if isinstance(value, Constant):
        return value.value
    if value is NOTHING:
        return _LEFT_OUT
    if isinstance(value, Either):
        return concrete(machine, value.then if concrete(machine, value.condition, flags) else value.otherwise, flags)
    if isinstance(value, Operation):
        return _operation(machine, value, flags)
    content, entries = machine.content_of(value), machine.entries_of(value)
    if content is not None and isinstance(value, Sequence):
        if content.more:
            raise NotKnown
        items = [concrete(machine, one, flags) for one in content.items]
        return {"list": list, "tuple": tuple, "set": set}[value.kind](one for one in items if one is not _LEFT_OUT)
    if entries is not None and isinstance(value, Table):
        if entries.more:
            raise NotKnown
        pairs = [(concrete(machine, k, flags), concrete(machine, v, flags)) for k, v in entries.items.values()]
        return {k: v for k, v in pairs if v is not _LEFT_OUT}
    if isinstance(value, Object):
        raise NotKnown
    raise NotKnown


def _operation(machine: Machine, value: Operation, flags: Mapping[str, object]) -> Any:
    if value.symbol == "parameter" and isinstance(value.args[1], Constant):
        return flags[str(value.args[1].value)]
    given = [concrete(machine, one, flags) for one in value.args]
    if value.symbol == "not":
        return not given[0]
    if value.symbol in ("and", "or"):
        found = given[0]
        for one in given[1:]:
            found = (found and one) if value.symbol == "and" else (found or one)
        return found
    binary = {"==": lambda a, b: a == b, "is": lambda a, b: a is b, "add": lambda a, b: a + b}
    if value.symbol in binary and len(given) == 2:
        try:
            return binary[value.symbol](*given)
        except TypeError as error:
            raise NotKnown from error
    raise NotKnown
