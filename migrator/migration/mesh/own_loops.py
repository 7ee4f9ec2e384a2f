"""Loops that `--loop custom` wrote: their class of steps becomes one of a mesh."""

from __future__ import annotations

import libcst as cst

from migrator.emit.layout import statements
from migrator.migration.mesh.building import checked
from migrator.migration.mesh.draft import Draft, refuse
from migrator.migration.mesh.edits import put_before, with_node, with_text
from migrator.migration.mesh.given import reach
from migrator.migration.mesh.loop_shapes import METHODS, shape_of
from migrator.names.imports import dotted
from migrator.program.assignments import assignments
from migrator.program.calls import classes_in
from migrator.program.modern import ModernFile
from migrator.program.parsed import name_nodes
from migrator.targets import dtensor
from migrator.targets.plan import LoopShape


def own_loops(file: ModernFile) -> dict[cst.CSTNode | None, LoopShape]:
    """The classes of steps of the file, and what they do."""
    module = file.parsed.module
    found: dict[cst.CSTNode | None, LoopShape] = {}
    for node in classes_in(module):
        text = module.code_for_node(node.with_changes(leading_lines=[]))
        shape = None if node.bases else shape_of(text, node.name.value, module.default_indent)
        if shape is not None:
            found[node] = shape
    return found


def rewrite_own_loops(draft: Draft) -> None:
    """A class of steps that `--loop custom` wrote becomes that of a mesh, which is made with it."""
    for node, shape in draft.own.items():
        assert isinstance(node, cst.ClassDef)
        name = node.name.value
        [new] = statements(dtensor.training_loop(name, "    ", shape), draft.module)
        draft.edit(node, with_node(new.with_changes(leading_lines=node.leading_lines)))
        for use in name_nodes(draft.module):
            if use.value == name and use is not node.name:
                _rewrite_own_loop(draft, use)


def _rewrite_own_loop(draft: Draft, use: cst.Name) -> None:
    call = draft.parents[use]
    if not isinstance(call, cst.Call) or call.func is not use or not call.args:
        refuse(use, f"`{use.value}` is used without being called: create the loop by `loop = {use.value}(model)`")
    line = draft.line_of(call)
    model, *rest = call.args
    kept = [arg for arg in rest if arg.keyword is None or arg.keyword.value != "steps_per_call"]
    given = ", ".join([draft.text(model.value), draft.mesh, *(draft.text(arg.value) for arg in kept)])
    reach(draft, call, draft.mesh)
    draft.edit(call, with_text(f"{use.value}({given})"))
    checks = checked(draft, call, draft.text(model.value))
    if checks:
        draft.edit(line, lambda node: put_before(node, checks))
    loops = {name for name, value in assignments(line) if value is call}
    for attribute in draft.attributes:
        word = attribute.attr.value
        if dotted(attribute.value) not in loops or word in METHODS:
            continue
        draw = draft.parents[attribute]
        drawn = draw.args[0].value if isinstance(draw, cst.Call) and len(draw.args) == 1 else None
        if word != "own_batches" or not isinstance(drawn, cst.Lambda):
            refuse(attribute, f"`{draft.text(attribute)}` does not exist on a mesh: leave it out")
        reach(draft, attribute, draft.mesh)
        text = f"{draft.text(attribute.value)}.rounds({draft.text(drawn.body)}, {draft.mesh}.size)"
        draft.edit(draw, with_text(text))
