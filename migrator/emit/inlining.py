"""Expressions of a model_fn with its local names replaced by what they stand for."""

from __future__ import annotations

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import string
from migrator.program.model_function import ModelFunction, entry


class Inliner(cst.CSTTransformer):
    """Replaces names by what they stand for, and `predictions["k"]` by the entry of the dict."""

    def __init__(self, function: ModelFunction, stop: set[str], static: object, code: object) -> None:
        super().__init__()
        self.function = function
        self.stop = stop
        self.static = static
        self.code = code
        self.output: tuple[str, str] | None = None

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.Arg, cst.Attribute)):
            return True
        return super().on_visit(node)

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        if self.output is not None and isinstance(original_node, cst.BaseExpression):
            if self.code(original_node) == self.output[0]:  # type: ignore[operator]
                return cst.Name(self.output[1])
        return super().on_leave(original_node, updated_node)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return dotted(node) is None

    def visit_Arg_keyword(self, node: cst.Arg) -> None:
        return None

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        element = original_node.slice[0].slice if len(original_node.slice) == 1 else None
        if (
            isinstance(original_node.value, cst.Name)
            and isinstance(element, cst.Index)
            and string(element.value) is not None
        ):
            value = self.function.define(original_node.value.value)
            found = entry(value, element.value) if value is not None else None
            if found is not None:
                return self._substitute(original_node.value.value, found)
        return updated_node

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        name = original_node.value
        if name in self.stop or self.static(name):  # type: ignore[operator]
            return updated_node
        value = self.function.define(name)
        if value is None:
            return updated_node
        return self._substitute(name, value)

    def _substitute(self, name: str, value: cst.BaseExpression) -> cst.BaseExpression:
        inner = Inliner(self.function, self.stop | {name}, self.static, self.code)
        inner.output = self.output
        new = value.visit(inner)
        assert isinstance(new, cst.BaseExpression)
        if (
            isinstance(new, (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.UnaryOperation, cst.IfExp))
            and not new.lpar
        ):
            new = new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return new
