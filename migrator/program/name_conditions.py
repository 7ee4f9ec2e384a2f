"""What an expression that reads the name of a variable comes to, for a given name. Nothing of the program is run."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import libcst as cst

from migrator.ir.evaluate import Evaluator
from migrator.ir.files import Parsed, Together
from migrator.ir.machine import TooMuch, may_be_absent
from migrator.ir.values import Constant, Operation, Scope, Sequence, Value
from migrator.ir.values import Unknown as NotKnown
from migrator.names.bindings import names_read, read_bindings, values_given
from migrator.program.variable_reads import Listed

_LIMIT = 1000  # characters or elements of a value


class Unknown(Exception):
    """An expression is not one of those that are understood."""


def value_of(node: cst.BaseExpression, code: Listed, name: str) -> Any:
    """What an expression is for a variable of that name, whatever the expression calls it. Raises Unknown."""
    evaluator, module = _loaded(code.file.path, code.file.module)
    mark = evaluator.store.mark()
    try:
        scope = Scope("variable", frozenset(), module, code.file.path, "function")
        held = code.names | code.parameters
        variable = _variable(evaluator, name)
        for one in held:
            evaluator.store.set((scope, one), variable)
        _give_locals(evaluator, scope, node, code, set(held))
        return _python(evaluator, evaluator.value(node, scope))
    except (TooMuch, RecursionError) as problem:
        raise Unknown("too much") from problem
    finally:
        evaluator.work = 0
        evaluator.store.undo(mark)


@lru_cache(maxsize=16)
def _loaded(path: Path, module: cst.Module) -> tuple[Evaluator, Scope]:
    """An evaluator with a file's module; the names that functions bind in it are not known."""
    file = Parsed(path, module)
    evaluator = Evaluator(Together.of([file]))
    scope = evaluator.load(file).scope
    for binding in read_bindings(module):
        if binding.is_global and binding.within is not None:
            evaluator.store.set((scope, binding.name), NotKnown(None, "a function binds it"))
    return evaluator, scope


def _variable(evaluator: Evaluator, name: str) -> Value:
    """A variable, of which only the name is known."""
    variable, operation = Operation(None, "variable"), Operation(None, "operation")
    evaluator.store.set((variable, "name"), Constant(None, name))
    evaluator.store.set((variable, "op"), operation)
    evaluator.store.set((operation, "name"), Constant(None, name.partition(":")[0]))
    return variable


def _give_locals(evaluator: Evaluator, scope: Scope, node: cst.BaseExpression, code: Listed, known: set[str]) -> None:
    """Gives the names around an expression their values, where they have one."""
    if isinstance(code.scope, cst.Module):
        return
    for name in sorted(names_read(node) - known):
        values = values_given(code.scope, name)
        known.add(name)
        if len(values) == 1:
            _give_locals(evaluator, scope, values[0], code, known)
            evaluator.store.set((scope, name), evaluator.value(values[0], scope))
        elif values:
            evaluator.store.set((scope, name), NotKnown(None, "it has several values"))


def _python(evaluator: Evaluator, value: Value) -> Any:
    """A known value as Python has it. Raises Unknown."""
    found: Any
    if isinstance(value, Constant):
        found = value.value.group(0) if isinstance(value.value, re.Match) else value.value
    else:
        content, entries = evaluator.content_of(value), evaluator.entries_of(value)
        if content is not None and not content.more and isinstance(value, Sequence):
            if any(may_be_absent(one) for one in content.items):
                raise Unknown("it depends")
            kind = {"list": list, "tuple": tuple, "set": set}[value.kind]
            found = kind(_python(evaluator, one) for one in content.items)
        elif entries is not None and not entries.more:
            found = {_python(evaluator, k): _python(evaluator, v) for k, v in entries.items.values()}
        else:
            raise Unknown(type(value).__name__)
    if isinstance(found, (str, list, tuple, set, dict)) and len(found) > _LIMIT:
        raise Unknown("too long")
    return found


__all__ = ["Unknown", "value_of"]
