"""Sets of variables that a model_fn names for its optimizers, as conditions on the names of variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.program.calls import string
from migrator.program.parsed import names_in

#: Whether a node is one of the sets that are known; None where it is none.
Known = Callable[[cst.BaseExpression], "VariableSet | None"]


@dataclass(frozen=True)
class VariableSet:
    """Those variables whose name meets a Python condition; all of them where it is empty.

    `made` are the statements that told it, by index, and the names that they gave. `matches` says that the condition
    needs the module `re`, `early` that the graph was asked before all of its variables were made. `read` are the other
    names in the condition, with the statements that read them.
    """

    condition: str = ""
    made: frozenset[tuple[int, str]] = frozenset()
    matches: bool = False
    early: bool = False
    read: frozenset[tuple[int, str]] = field(default=frozenset(), compare=False)

    def given(self, index: int, name: str) -> VariableSet:
        """The same set, which a statement has called `name`."""
        return replace(self, made=self.made | {(index, name)})

    def reading(self, index: int, names: set[str]) -> VariableSet:
        """The same set, for whose condition a statement has read names."""
        return replace(self, read=self.read | {(index, name) for name in names})

    def _joined(self, condition: str, other: VariableSet) -> VariableSet:
        matches, early = self.matches or other.matches, self.early or other.early
        return VariableSet(condition, self.made | other.made, matches, early, self.read | other.read)

    def both(self, other: VariableSet) -> VariableSet:
        """The variables that are in this set and in another."""
        parts = [_operand(one.condition, cst.And) for one in (self, other) if one.condition]
        return self._joined(" and ".join(parts) if len(parts) > 1 else self.condition or other.condition, other)

    def either(self, other: VariableSet) -> VariableSet:
        """The variables that are in this set or in another."""
        if not self.condition or not other.condition:
            return self._joined("", other)
        return self._joined(f"{_operand(self.condition)} or {_operand(other.condition)}", other)

    def without(self, other: VariableSet) -> VariableSet:
        """The variables of this set that are not in another."""
        return self.both(replace(other, condition=_negated(other.condition)))


def of_scope(scope: cst.BaseExpression, name: str, code: Callable[[cst.CSTNode], str]) -> VariableSet:
    """The variables that `tf.get_collection(key, scope)` finds: those whose `name` matches it from the start."""
    text = string(scope)
    if text is not None and re.fullmatch(r"[\w/-]*", text):
        return VariableSet(f'{name}.startswith("{text}")' if text else "")
    return VariableSet(f"re.match({code(scope)}, {name})", matches=True)


def of_condition(
    test: cst.BaseExpression, variable: str, name: str, known: Known, code: Callable[[cst.CSTNode], str]
) -> VariableSet | None:
    """The variables that a test lets through which calls one `variable`; None where it asks for more than names."""
    asked = _Asked(variable, name, known)
    new = test.visit(asked)
    assert isinstance(new, cst.BaseExpression)
    if variable in names_in(new):
        return None
    if isinstance(new, (cst.BooleanOperation, cst.UnaryOperation)):
        new = new.with_changes(lpar=[], rpar=[])
    return VariableSet(code(new), frozenset(asked.made), asked.matches, asked.early, frozenset(asked.read))


class _Asked(cst.CSTTransformer):
    """Makes questions to a variable questions to its name."""

    def __init__(self, variable: str, name: str, known: Known) -> None:
        super().__init__()
        self.variable = variable
        self.name = name
        self.known = known
        self.made: set[tuple[int, str]] = set()
        self.read: set[tuple[int, str]] = set()
        self.matches = False
        self.early = False

    def _is_it(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and node.value == self.variable

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        inner = original_node.value
        if original_node.attr.value != "name":
            return updated_node
        if self._is_it(inner):
            return cst.Name(self.name)
        if isinstance(inner, cst.Attribute) and inner.attr.value == "op" and self._is_it(inner.value):
            return cst.parse_expression(f'{self.name}.partition(":")[0]')
        return updated_node

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        (first, *others) = original_node.comparisons
        if others or not self._is_it(original_node.left) or not isinstance(first.operator, (cst.In, cst.NotIn)):
            return updated_node
        found = self.known(first.comparator)
        if found is None:
            return updated_node
        self.made |= found.made
        self.read |= found.read
        self.matches |= found.matches
        self.early |= found.early
        inside = isinstance(first.operator, cst.In)
        condition = (found.condition or "True") if inside else _negated(found.condition)
        new = cst.parse_expression(condition)
        if isinstance(new, (cst.BooleanOperation, cst.UnaryOperation)):
            return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return new


def _operand(condition: str, beside: type[cst.BaseBooleanOp] | None = None) -> str:
    """A condition that may stand beside `and`, `or` and `not`; `beside` is one that it may hold itself."""
    parsed = cst.parse_expression(condition)
    loose = isinstance(parsed, (cst.BooleanOperation, cst.IfExp, cst.Lambda))
    same = beside is not None and isinstance(parsed, cst.BooleanOperation) and isinstance(parsed.operator, beside)
    return f"({condition})" if loose and not same else condition


def _negated(condition: str) -> str:
    """The opposite of a condition, without a `not` where it stands before one."""
    if not condition:
        return "False"
    parsed = cst.parse_expression(condition)
    if isinstance(parsed, cst.Comparison) and len(parsed.comparisons) == 1:
        opposite = {cst.In: cst.NotIn, cst.NotIn: cst.In, cst.Equal: cst.NotEqual, cst.NotEqual: cst.Equal}
        kind = opposite.get(type(parsed.comparisons[0].operator))
        if kind is not None:
            new = parsed.with_changes(comparisons=[parsed.comparisons[0].with_changes(operator=kind())])
            return cst.Module([]).code_for_node(new)
    if isinstance(parsed, cst.UnaryOperation) and isinstance(parsed.operator, cst.Not):
        return cst.Module([]).code_for_node(parsed.expression)
    return f"not {_operand(condition)}"
