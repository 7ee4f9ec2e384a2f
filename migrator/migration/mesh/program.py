"""Programs of TensorFlow 2 on the replicas of a MirroredStrategy, brought to a mesh of devices (DTensor).

Two shapes are written, in place: a model that is compiled and trained by `fit`, and the loop of the guides, where
`strategy.run` takes a step that applies its gradients. Anything else is refused whole, with the line and what to do.

A mesh is one device to its program. So what every replica computed for its share is computed once for the whole batch,
and a sum over the replicas is that value itself: exact where the loss is divided by the global batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from migrator.emit.file import add_import, insert_classes
from migrator.emit.mesh import own_class
from migrator.findings import Severity
from migrator.migration.mesh import models
from migrator.migration.mesh.building import build_model, finish_model, replace_layers
from migrator.migration.mesh.draft import CODE, Draft, Strategy, above, refuse
from migrator.migration.mesh.edits import each, in_place_of
from migrator.migration.mesh.fits import rewrite_fits
from migrator.migration.mesh.optimizers import give_mesh, rewrite_results
from migrator.migration.mesh.own_loops import own_loops, rewrite_own_loops
from migrator.migration.mesh.steps import rewrite_loops
from migrator.migration.mesh.uses import rewrite_use
from migrator.names.imports import dotted
from migrator.program.calls import classes_in
from migrator.program.modern import STRATEGIES, Change, Check, Edit, ModernFile, is_edit_of
from migrator.program.parsed import Blocked, name_nodes
from migrator.targets import dtensor
from migrator.targets.dtensor import Layouts


def check(layouts: Layouts) -> Check:
    """The check of files for a mesh with such layouts."""

    def of_layouts(file: ModernFile) -> Iterable[Change]:
        return changes(file, layouts)

    return of_layouts


def changes(file: ModernFile, layouts: Layouts) -> Iterable[Change]:
    """What becomes of a file that makes a strategy: all of its changes, or what blocks them."""
    made = [call for call in file.calls if _is_strategy(file, call)]
    if not made:
        return []
    try:
        return _written(_read(file, layouts, made))
    except Blocked as problem:
        place = problem.node if problem.node is not None else made[0]
        return [Change(problem.code, place, problem.message, severity=Severity.MANUAL)]


def _is_strategy(file: ModernFile, call: cst.Call) -> bool:
    name = file.name(call.func) or ""
    return name.startswith("tf.distribute.") and name.rpartition(".")[2] in STRATEGIES


def _read(file: ModernFile, layouts: Layouts, made: Sequence[cst.Call]) -> Draft:
    module = file.parsed.module
    call = made[0]
    if len(made) > 1:
        refuse(made[1], "several strategies in one file are unsupported on a mesh: keep one")
    if not (file.name(call.func) or "").endswith(".MirroredStrategy"):
        refuse(call, "only a MirroredStrategy becomes a mesh: use that")
    if call.args:
        refuse(call, "a mesh uses all GPUs, or all CPUs: remove the arguments of the MirroredStrategy")
    if not any(_imports_tf(statement) for statement in module.body):
        refuse(call, "the mesh needs the name `tf`: `import tensorflow as tf` on its own line")
    own = own_loops(file)
    calls = [one for one in file.calls if above(file, one, cst.ClassDef) not in own]
    attributes = [one for one in file.attributes if above(file, one, cst.ClassDef) not in own]
    classes = [node for node in classes_in(module) if node not in own]
    return Draft(
        file,
        layouts,
        models=models.read(file, calls, attributes, classes, call, dtensor.gathers(layouts.variables)),
        strategy=_strategy(file, call),
        own=own,
        calls=calls,
        attributes=attributes,
        kinds={
            node.name.value: kind
            for node in classes
            if (kind := own_class(node.name.value, models.text_of(file, node))) is not None
        },
        taken=set(file.parsed.names),
    )


def _strategy(file: ModernFile, call: cst.Call) -> Strategy:
    parents = file.parsed.parents
    assign = parents[call]
    line = parents.get(assign)
    if (
        not isinstance(assign, cst.Assign)
        or len(assign.targets) != 1
        or not isinstance(assign.targets[0].target, cst.Name)
        or not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) != 1
    ):
        refuse(call, "the strategy is not created on its own line: `strategy = tf.distribute.MirroredStrategy()`")
    name = assign.targets[0].target
    if file.value_of(name) is not call:
        refuse(call, f"`{name.value}` has several values: give the strategy a name of its own")
    uses = [node for node in name_nodes(file.parsed.module) if node.value == name.value and node is not name]
    return Strategy(call, line, uses, above(file, call, cst.FunctionDef))


def _written(draft: Draft) -> list[Change]:
    replace_layers(draft)
    give_mesh(draft)
    by_keras = rewrite_fits(draft)
    model = rewrite_loops(draft)
    rewrite_own_loops(draft)
    rewrite_results(draft)
    if not by_keras:
        build_model(draft, model)
    finish_model(draft, model)
    for use in draft.strategy.uses:
        if use not in draft.accounted:
            rewrite_use(draft, use)
    _set_up(draft)
    message = "`MirroredStrategy` becomes a mesh of all devices: a step computes the whole batch once"
    found = [Change(CODE, draft.strategy.call, message, severity=Severity.REVIEW, keras_2=True)]
    if draft.models.draws:
        message = "dropout masks differ from those of the replicas"
        found.append(Change("TFM797", draft.strategy.call, message, severity=Severity.REVIEW))
    edits: dict[cst.CSTNode, list[Edit]] = {}
    for node, one in draft.edits:
        edits.setdefault(node, []).append(one)
    for node, several in edits.items():
        found.append(Change(CODE, node, "", edit=each(several), severity=Severity.MIGRATED))
    return found


def _set_up(draft: Draft) -> None:
    """The mesh takes the strategy's line, and the file gets the functions and classes of the mesh."""
    make = draft.new("make_mesh")
    made = dtensor.set_up(draft.layouts.variables, draft.mesh, draft.scope, make, draft.indent)
    if draft.models.draws:
        made = ["tf.keras.backend.experimental.enable_tf_random_generator()  # for dropout on a mesh", *made]
    lines = draft.lines("\n".join(made))
    helpers = {make: dtensor.make_mesh(draft.layouts.dimensions, make, "    "), **draft.helpers}

    def finish(node: cst.CSTNode) -> cst.CSTNode:
        module = insert_classes(is_edit_of(node, cst.Module), helpers)
        for wanted in draft.imports:
            module = add_import(module, wanted)
        return module

    draft.edit(draft.strategy.line, lambda node: in_place_of(is_edit_of(node, cst.SimpleStatementLine), lines))
    draft.edit(draft.module, finish)


def _imports_tf(statement: cst.BaseStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(
        isinstance(small, cst.Import)
        and any(
            dotted(a.name) == "tensorflow" and a.asname is not None and dotted(a.asname.name) == "tf"
            for a in small.names
        )
        for small in statement.body
    )
