"""Gradients that a model_fn adds up over several batches: what comprehensions do with each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import libcst as cst

from migrator.pairing import equal_zip
from migrator.program.calls import is_false, number
from migrator.program.parsed import names_in


@dataclass(frozen=True)
class Accumulation:
    """Gradients are added up, and applied when `test` says so of `step`, the global step before the batch counts.

    Gradients are divided by `share` before they are added, the sums by `divisor` before they are applied.
    """

    test: cst.BaseExpression
    step: str
    share: cst.BaseExpression | None
    divisor: cst.BaseExpression | None
    place: cst.CSTNode


#: What a name stands for in a comprehension: an element of a list, and which part of it; None for its index.
Names = dict[str, Optional[tuple[cst.BaseExpression, tuple[int, ...]]]]


def names_of(loop: cst.CompFor) -> Names | None:
    """What the names of a comprehension stand for; None where that is not understood."""
    if loop.inner_for_in is not None or loop.ifs:
        return None
    found: Names = {}
    return found if _bind(loop.target, loop.iter, found) else None


def _bind(target: cst.BaseExpression, over: cst.BaseExpression, found: Names) -> bool:
    called = over.func.value if isinstance(over, cst.Call) and isinstance(over.func, cst.Name) else ""
    parts = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
    if isinstance(over, cst.Call) and called == "enumerate":
        if len(parts) != 2 or not isinstance(parts[0], cst.Name) or len(over.args) != 1:
            return False
        found[parts[0].value] = None
        return _bind(parts[1], over.args[0].value, found)
    if isinstance(over, cst.Call) and called == "zip":
        given = [arg.value for arg in over.args if not arg.star]
        return len(given) == len(parts) and all(_bind(t, o, found) for t, o in equal_zip(parts, given))
    if isinstance(target, cst.Name):
        found[target.value] = over, ()
        return True
    for index, part in enumerate(parts):
        if isinstance(part, cst.Name):
            found[part.value] = over, (index,)
    return bool(parts)


def element_of(node: cst.BaseExpression, names: Names) -> tuple[cst.BaseExpression, tuple[int, ...]] | None:
    """The list, and the part of its element, that an expression stands for."""
    if isinstance(node, cst.Name):
        return names.get(node.value)
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    index = node.slice[0].slice
    if not isinstance(index, cst.Index):
        return None
    if isinstance(index.value, cst.Name) and index.value.value in names and names[index.value.value] is None:
        return node.value, ()
    inner, which = element_of(node.value, names), number(index.value)
    return None if inner is None or which is None else (inner[0], (*inner[1], int(which)))


def divided(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """An expression, and what it is divided by."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return node.left, node.right
    return node, None


def makes_zeros(call: cst.BaseExpression, name: str | None) -> bool:
    """Whether a call makes a variable of zeros that is not trained."""
    if not isinstance(call, cst.Call) or name not in ("tf.Variable", "tf.get_variable"):
        return False
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    if not is_false(given.get("trainable")):
        return False
    values = [given.get("initializer"), given.get("initial_value"), *(a.value for a in call.args if a.keyword is None)]
    return any(value is not None and "zeros" in _words(value) for value in values)


def is_zeros(node: cst.BaseExpression, name: str | None) -> bool:
    """Whether an expression is zero wherever it is assigned."""
    return name in ("tf.zeros_like", "tf.zeros") or number(node) == 0


def _words(node: cst.BaseExpression) -> set[str]:
    text = cst.Module([]).code_for_node(node)
    return {word for part in text.replace("(", ".").replace(")", ".").split(".") for word in part.split("_")}


class StepNamed(cst.CSTTransformer):
    """Calls the global step by one name; `steps` are the nodes that mention it."""

    def __init__(self, steps: set[cst.CSTNode], name: str) -> None:
        super().__init__()
        self.steps = steps
        self.name = name

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        return cst.Name(self.name) if original_node in self.steps else super().on_leave(original_node, updated_node)  # type: ignore[return-value]


def reads(accumulation: Accumulation) -> set[str]:
    """The names that say how gradients are added up."""
    parts = (accumulation.test, accumulation.share, accumulation.divisor)
    return set().union(*(names_in(part) for part in parts if part is not None)) - {accumulation.step}
