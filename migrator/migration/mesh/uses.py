"""Uses of the strategy that no training takes care of: its scope, the number of replicas, data that it divides."""

from __future__ import annotations

import libcst as cst

from migrator.migration.mesh.draft import Draft, refuse
from migrator.migration.mesh.edits import placed, with_node, with_text
from migrator.names.imports import dotted
from migrator.program.modern import is_edit_of
from migrator.targets import dtensor


def rewrite_use(draft: Draft, use: cst.Name) -> None:
    """What one use of the strategy becomes. Raises Blocked for what a mesh has no counterpart of."""
    attribute = draft.parents[use]
    if _is_handed(draft, use, attribute):
        draft.edit(use, with_node(cst.Name(draft.scope)))
        return
    if not isinstance(attribute, cst.Attribute) or attribute.value is not use:
        message = "the strategy is passed around, which is unsupported on a mesh: use it where it is created"
        refuse(attribute, message)
    what = attribute.attr.value
    call = draft.parents[attribute]
    if what == "scope" and isinstance(draft.parents.get(call), cst.WithItem):
        draft.edit(use, lambda node: cst.Name(draft.scope))
    elif what == "num_replicas_in_sync":
        _rewrite_count(draft, attribute)
    elif what == "experimental_distribute_dataset" and isinstance(call, cst.Call) and len(call.args) == 1:
        kind = draft.helper("MeshBatches", lambda name: dtensor.batches(name, "    "))
        draft.edit(call, lambda node: placed(is_edit_of(node, cst.Call), kind, draft.mesh))
    else:
        message = f"`{draft.text(attribute)}` is unsupported on a mesh: keep the MirroredStrategy"
        refuse(attribute, message)


def _is_handed(draft: Draft, use: cst.Name, above: cst.CSTNode) -> bool:
    """Whether the strategy is the parameter of a function of the same name, or is given to one."""
    if isinstance(above, cst.Param):
        parameters = draft.parents[above]
        function = draft.parents.get(parameters)
        if above.default is None and isinstance(function, cst.FunctionDef):
            draft.parameters.add((function, draft.scope))
            return True
    call = draft.parents.get(above)
    if not isinstance(above, cst.Arg) or not isinstance(call, cst.Call) or above.star:
        return False
    given = [function for function in draft.file.functions if function.name.value == dotted(call.func)]
    if len(given) != 1 or not isinstance(draft.parents[given[0]], cst.Module):
        return False
    if above.keyword is not None:
        return False
    place = call.args.index(above)
    names = [parameter.name.value for parameter in given[0].params.params]
    return names[place : place + 1] == [use.value]


def _rewrite_count(draft: Draft, attribute: cst.Attribute) -> None:
    """In a step there is one replica, the mesh: a product with their number, or a quotient, is the value itself."""
    if not draft.file.runs_on_replicas(attribute):
        draft.edit(attribute, with_text(f"{draft.mesh}.size"))
        return
    whole = draft.parents[attribute]
    scales = isinstance(whole, cst.BinaryOperation) and isinstance(whole.operator, (cst.Divide, cst.Multiply))
    if not scales or not isinstance(whole, cst.BinaryOperation) or whole.right is not attribute:
        message = "a step reads the number of replicas, but a mesh computes the whole batch: leave it out"
        refuse(attribute, message)
    draft.edit(whole, lambda node: is_edit_of(node, cst.BinaryOperation).left)
