"""Annotations that name what TensorFlow 2 lacks: `optimizer: tf.train.Optimizer`, `-> tf.estimator.EstimatorSpec`.

They say nothing of what a program does, but are evaluated when it runs: they go where the program is carried over.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from migrator.names.annotated import AssignTarget
from migrator.names.symbols import home
from migrator.program.parsed import ParsedFile, Tracked
from migrator.walking import of_kinds


def without_old_annotations(file: ParsedFile) -> ParsedFile:
    """The file without the annotations that only TensorFlow 1 can evaluate."""
    old = {
        node
        for node in of_kinds(file.module, cst.Annotation)
        if any(home(symbol) is None for symbol in file.imports.symbols_in(node.annotation))
    }
    if not old:
        return file
    writer = _Without(old)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    new = replace(file, module=module)
    new.keep_positions(writer.made, file)
    return new


class _Without(Tracked):
    def __init__(self, old: set[cst.CSTNode]) -> None:
        super().__init__()
        self.old = old

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        if not isinstance(original_node, AssignTarget) or original_node.annotation not in self.old:
            return updated_node
        target, before, after = (
            updated_node.target,
            updated_node.whitespace_before_equal,
            updated_node.whitespace_after_equal,
        )
        return cst.AssignTarget(target, before, after)

    def leave_AnnAssign(
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.BaseSmallStatement | cst.RemovalSentinel:
        if original_node.annotation not in self.old:
            return updated_node
        if original_node.value is None:
            return cst.Pass(semicolon=updated_node.semicolon)
        return cst.Assign(
            [cst.AssignTarget(updated_node.target)], updated_node.value or cst.Name("None"), updated_node.semicolon
        )

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        if original_node.annotation not in self.old:
            return updated_node
        bare = cst.SimpleWhitespace("")
        equal = cst.MaybeSentinel.DEFAULT if original_node.default is None else cst.AssignEqual(bare, bare)
        return updated_node.with_changes(annotation=None, equal=equal)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if original_node.returns not in self.old:
            return updated_node
        return updated_node.with_changes(returns=None)


__all__ = ["without_old_annotations"]
