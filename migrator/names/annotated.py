"""Annotated assignments as the plain ones that they are.

`x: T = value` gives `x` a value as `x = value` does, and whoever reads a program wants to know no more than that. Here
it is parsed as an assignment whose target has an annotation, with which it is written out: a reader that knows plain
assignments knows annotated ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrator.walking import Transformer, of_kinds


@dataclass(frozen=True)
class AssignTarget(cst.AssignTarget):
    """The target of an annotated assignment, under the name by which libcst calls the visitors of targets."""

    annotation: cst.Annotation | None = None

    def _visit_and_replace_children(self, visitor: Any) -> AssignTarget:
        plain = super()._visit_and_replace_children(visitor)
        annotation = self.annotation
        visitor.on_visit_attribute(self, "annotation")
        if annotation is not None:
            new = annotation.visit(visitor)
            annotation = new if isinstance(new, cst.Annotation) else None
        visitor.on_leave_attribute(self, "annotation")
        return AssignTarget(plain.target, plain.whitespace_before_equal, plain.whitespace_after_equal, annotation)

    def _codegen_impl(self, state: Any) -> None:
        with state.record_syntactic_position(self):
            self.target._codegen(state)
            if self.annotation is not None:
                self.annotation._codegen(state, default_indicator=":")
        self.whitespace_before_equal._codegen(state)
        state.add_token("=")
        self.whitespace_after_equal._codegen(state)


class _Plain(Transformer):
    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.BaseSmallStatement:
        node = updated_node
        if node.value is None or not isinstance(node.equal, cst.AssignEqual):
            return node
        before, after = node.equal.whitespace_before, node.equal.whitespace_after
        if not isinstance(before, cst.SimpleWhitespace) or not isinstance(after, cst.SimpleWhitespace):
            return node
        return cst.Assign([AssignTarget(node.target, before, after, node.annotation)], node.value, node.semicolon)


def parse_module(text: str) -> cst.Module:
    """A file's tree, its annotated assignments as plain ones. Raises libcst.ParserSyntaxError."""
    return in_plain_words(cst.parse_module(text))


def in_plain_words(module: cst.Module) -> cst.Module:
    """A tree with its annotated assignments as plain ones."""
    if not of_kinds(module, cst.AnnAssign):
        return module
    new = module.visit(_Plain())
    assert isinstance(new, cst.Module)
    return new


__all__ = ["AssignTarget", "in_plain_words", "parse_module"]
