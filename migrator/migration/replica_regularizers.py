"""Regularizers in the loss of a replica: whose share of them it is, where the replicas' losses are added up.

`compute_average_loss(...) + tf.add_n(model.losses)` counts them once on each replica, and once on a mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.program.calls import calls_in, parameters_of
from migrator.program.modern import ModernFile
from migrator.program.parsed import names_in
from migrator.program.scopes import returns_in
from migrator.walking import of_kinds, walk

_AVERAGE, _SCALED = "tf.nn.compute_average_loss", "tf.nn.scale_regularization_loss"
_REPLICAS = "num_replicas_in_sync"


def unscaled_regularizer(file: ModernFile, functions: Sequence[cst.FunctionDef]) -> cst.CSTNode | None:
    """Where functions of a step take up regularizers which nothing is seen to divide by the number of replicas."""
    terms = _Terms(file, functions)
    found = [node for function in functions for node in terms.sources(function.body)]
    if not found:
        return None
    calls = [(function, call) for function in functions for call in calls_in(function.body)]
    for function, call in calls:
        name = file.name(call.func)
        averaged = name == _AVERAGE and call.args and terms.holds(function, call.args[0].value)
        if averaged or name == _SCALED:
            return None
    return None if any(terms.divides(function) for function in functions) else found[0]


@dataclass
class _Terms:
    """Which names of which functions have regularizers in their values, and which functions return some."""

    file: ModernFile
    functions: Sequence[cst.FunctionDef]
    names: dict[cst.FunctionDef, set[str]] = field(default_factory=dict)
    giving: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.names = {function: set() for function in self.functions}
        before = -1
        while before != self._known():
            before = self._known()
            for function in self.functions:
                self._follow(function)

    def _known(self) -> int:
        return len(self.giving) + sum(len(names) for names in self.names.values())

    def sources(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Where an expression or a block reads the losses of a model, or makes terms of its own."""
        finder = _Sources(self.file)
        walk(node, finder)
        return finder.found

    def holds(self, function: cst.FunctionDef, value: cst.BaseExpression) -> bool:
        """Whether a value in a function has regularizers in it."""
        return bool(self.sources(value) or names_in(value) & (self.names[function] | self.giving))

    def _follow(self, function: cst.FunctionDef) -> None:
        for target, value in _given(function):
            if self.holds(function, value):
                self.names[function] |= names_in(target)
        for call in calls_in(function.body):
            for other in self.functions:
                if isinstance(call.func, cst.Name) and call.func.value == other.name.value:
                    self._hand_over(function, call, other)
        if any(one.value is not None and self.holds(function, one.value) for one in returns_in(function.body)):
            self.giving.add(function.name.value)

    def _hand_over(self, function: cst.FunctionDef, call: cst.Call, other: cst.FunctionDef) -> None:
        parameters = [one.name.value for one in parameters_of(other)]
        for index, arg in enumerate(call.args):
            if self.holds(function, arg.value):
                one = arg.keyword.value if arg.keyword is not None else None
                names = parameters[index : index + 1] if one is None and not arg.star else parameters
                self.names[other] |= {name for name in names if one is None or name == one}

    def divides(self, function: cst.FunctionDef) -> bool:
        """Whether a function divides something with regularizers in it by the number of replicas."""
        for operation in of_kinds(function.body, cst.BinaryOperation):
            if not isinstance(operation.operator, (cst.Divide, cst.Multiply)):
                continue
            left, right = operation.left, operation.right
            if isinstance(operation.operator, cst.Divide):
                pairs = [(left, right)] if self._counts(right) else []
            else:
                pairs = [(a, b) for a, b in ((left, right), (right, left)) if self._is_share(b)]
            if any(self.holds(function, value) for value, _ in pairs):
                return True
        return False

    def _counts(self, node: cst.BaseExpression) -> bool:
        return _REPLICAS in self.file.parsed.code(node)

    def _is_share(self, node: cst.BaseExpression) -> bool:
        return (
            isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide) and self._counts(node.right)
        )


class _Sources(cst.CSTVisitor):
    """`model.losses`, and terms that are written out: not `tf.keras.losses.X`."""

    def __init__(self, file: ModernFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[cst.CSTNode] = []

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        inner = node.value
        if isinstance(inner, cst.Attribute) and inner.attr.value == "losses":
            return False
        if node.attr.value == "losses" and self.file.name(node) is None:
            self.found.append(node)
        return True

    def visit_Call(self, node: cst.Call) -> None:
        if self.file.name(node.func) == "tf.nn.l2_loss":
            self.found.append(node)


def _given(function: cst.FunctionDef) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What assignments in a function give to what."""
    found: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
    for node in of_kinds(function.body, cst.Assign, cst.AugAssign):
        targets = [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]
        found += [(target, node.value) for target in targets]
    return found
