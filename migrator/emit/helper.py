"""A helper of the network, without the parameters that only told it the mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import libcst as cst

from migrator.program.comments import comment_lines
from migrator.program.helpers import HelperPlan, Stays, training_branch
from migrator.program.parsed import Blocked, names_in
from migrator.rules.rewriter import Rewriter
from migrator.rules.site import TrainingContext


@dataclass(frozen=True)
class EmittedHelper:
    """The new function, and the rewriter that went over it (its problems, partitioners, ...)."""

    node: cst.FunctionDef
    rewriter: Rewriter


def emit_helper(
    stays: Stays,
    plan: HelperPlan,
    of_file: Rewriter,
    definition: Callable[[str], cst.BaseExpression | None],
) -> EmittedHelper:
    """Builds the new function. Raises Blocked (TFM106) when the mode is left over in it."""
    settle = _Settle(stays, plan, of_file.training)
    body = stays.node.body.visit(settle)
    assert isinstance(body, cst.IndentedBlock)
    rewriter = Rewriter(stays.file.imports, stays.file.code, settle.names, of_file.keep_regularizers, definition)
    rewriter.updates = of_file.updates
    layer_names = {**of_file.training.layer_names, **settle.layer_names}
    rewriter.training = replace(of_file.training, layer_names=layer_names)
    rewriter.dropped_arguments, rewriter.untold = settle.calls, settle.untold
    new = rewriter.of_network(stays.node.with_changes(body=body).visit(rewriter), stays.node.name)  # type: ignore[arg-type]
    assert isinstance(new, cst.FunctionDef)
    left = names_in(new.body) & (stays.gone | settle.names.flags.keys())
    if left:
        raise Blocked("TFM106", stays.node.name, f"`{sorted(left)[0]}` is used for more than `training=` here")
    params = new.params
    kept = [p for p in params.params if p.name.value not in stays.gone]
    kwonly = [p for p in params.kwonly_params if p.name.value not in stays.gone]
    if kept and not kwonly:
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    star = params.star_arg if kwonly or isinstance(params.star_arg, cst.Param) else cst.MaybeSentinel.DEFAULT
    return EmittedHelper(
        new.with_changes(params=params.with_changes(params=kept, kwonly_params=kwonly, star_arg=star)), rewriter
    )


class _Settle(cst.CSTTransformer):
    """Takes out the flags of the mode, and makes dropouts of a training branch dropouts that are told `training=`."""

    def __init__(self, stays: Stays, plan: HelperPlan, training: TrainingContext) -> None:
        super().__init__()
        self.training = training
        self.layer_names: dict[cst.CSTNode, str] = {}
        self.file = stays.file
        self.names = stays.names()
        self.plan = plan
        self.calls: dict[cst.CSTNode, frozenset[int]] = {}
        self.untold: set[cst.CSTNode] = set()

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        new = super().on_leave(original_node, updated_node)
        if isinstance(new, cst.CSTNode) and new is not original_node:
            self.file.origins.setdefault(new, original_node)
            self.training.own.follow(new, original_node)
            if original_node in self.training.layer_names:
                self.layer_names[new] = self.training.layer_names[original_node]
            if original_node in self.plan.calls:
                self.calls[new] = self.plan.calls[original_node]
            if original_node in self.plan.untold:
                self.untold.add(new)
        return new

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.RemovalSentinel:
        if self.names.flag(original_node) is None:
            return updated_node
        self.names = self.names.after(original_node)
        return cst.RemoveFromParent()

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.BaseStatement:
        line = training_branch(original_node, self.file, self.names)
        if line is None:
            return updated_node
        own = [empty for empty in line.leading_lines if empty.comment is not None]
        lines = [*original_node.leading_lines, *own]
        kept = {empty.comment for empty in lines}
        lines += [e for e in comment_lines(original_node, leading=False) if e.comment not in kept]
        trailing = line.trailing_whitespace.comment
        return line.with_changes(leading_lines=[e for e in lines if e.comment is None or e.comment is not trailing])
