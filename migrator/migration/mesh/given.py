"""Functions that are given the mesh, or the layouts, because something in them needs it."""

from __future__ import annotations

import libcst as cst

from migrator.migration.mesh.draft import Draft, refuse
from migrator.migration.mesh.edits import with_new_parameter
from migrator.program.modern import is_edit_of
from migrator.program.parsed import name_nodes
from migrator.rules.layers import add_argument
from migrator.rules.site import keyword as argument


def reach(draft: Draft, node: cst.CSTNode, name: str) -> None:
    """Hands the mesh (or the layouts), which a place reads, to the function that the place is in."""
    if draft.strategy.around is None:
        return
    one: cst.CSTNode | None = node
    function: cst.CSTNode | None = None
    while one is not None and one is not draft.strategy.around:
        function = one if isinstance(one, (cst.FunctionDef, cst.ClassDef)) else function
        one = draft.parents.get(one)
    if one is not None:
        return
    if not isinstance(function, cst.FunctionDef):
        what = draft.text(node.func if isinstance(node, cst.Call) else node)
        where = "in a class" if isinstance(function, cst.ClassDef) else "outside the function that creates the strategy"
        refuse(node, f"`{what}` needs the mesh {where}, where there is none: move it to where the strategy is created")
    if (function, name) not in draft.parameters:
        draft.parameters.add((function, name))
        draft.edit(function, lambda old: with_new_parameter(is_edit_of(old, cst.FunctionDef), name))
        _hand(draft, function, name)


def _hand(draft: Draft, function: cst.FunctionDef, name: str) -> None:
    """Gives all calls of a function the mesh."""
    given = argument(name, cst.Name(name))

    def with_it(node: cst.CSTNode) -> cst.CSTNode:
        call = is_edit_of(node, cst.Call)
        return call.with_changes(args=add_argument(list(call.args), given))

    for use in name_nodes(draft.module):
        if use.value != function.name.value or use is function.name:
            continue
        call = draft.parents[use]
        if not isinstance(call, cst.Call) or call.func is not use or any(arg.star for arg in call.args):
            message = f"needs the mesh, but is not called by its name here: call `{use.value}(...)`"
            refuse(use, f"`{use.value}` {message}")
        reach(draft, call, name)
        draft.edit(call, with_it)
