"""Optimizers and metrics are given the mesh, and what metrics have counted leaves it."""

from __future__ import annotations

import libcst as cst

from migrator.emit.mesh import for_mesh
from migrator.migration.mesh import models
from migrator.migration.mesh.draft import KERAS, Draft, refuse
from migrator.migration.mesh.edits import method, with_node, with_text
from migrator.migration.mesh.given import reach
from migrator.names.imports import dotted
from migrator.program.calls import classes_in
from migrator.program.modern import is_edit_of
from migrator.rules.layers import add_argument
from migrator.rules.mesh import AS_LEGACY, CLIPPING, METRICS, OPTIMIZERS, SCHEDULES
from migrator.rules.site import keyword as argument


def give_mesh(draft: Draft) -> None:
    """Optimizers and metrics are given the mesh."""
    mesh = argument("mesh", cst.Name(draft.mesh))
    for node in classes_in(draft.module):
        text = for_mesh(node.name.value, models.text_of(draft.file, node))
        if node not in draft.own and text is not None:
            made = cst.ensure_type(cst.parse_statement(text, draft.module.config_for_parsing), cst.ClassDef)
            draft.edit(node, with_node(made.with_changes(leading_lines=node.leading_lines)))

    def with_mesh(node: cst.CSTNode) -> cst.CSTNode:
        call = is_edit_of(node, cst.Call)
        func = dotted(call.func) or ""
        if ".legacy." in func:
            call = call.with_changes(func=cst.parse_expression(func.replace(".legacy.", ".")))
        return call.with_changes(args=add_argument(list(call.args), mesh))

    for call in draft.calls:
        name = draft.file.name(call.func) or ""
        kind = name.rpartition(".")[2]
        if name.startswith((f"{KERAS}optimizers.schedules.", "tf.optimizers.schedules.")):
            if kind not in SCHEDULES:
                refuse(call, f"`{kind}` is untested on a mesh: use another Keras schedule", "TFM792")
        elif name.startswith((f"{KERAS}optimizers.", "tf.optimizers.", "tf.train.", "tf.compat.v1.train.")):
            if name.startswith("tf.train."):
                continue  # saving one is the same on a mesh
            _check_optimizer(draft, call, name, kind)
            reach(draft, call, draft.mesh)
            draft.edit(call, with_mesh)
        elif name.startswith((f"{KERAS}metrics.", "tf.metrics.")) and kind[:1].isupper():
            if kind not in METRICS:
                refuse(call, f"`{kind}` is untested on a mesh: leave the metric out", "TFM793")
            reach(draft, call, draft.mesh)
            draft.edit(call, with_mesh)
        elif draft.kinds.get(dotted(call.func) or "", "") in OPTIMIZERS:
            if draft.models.embeds:
                message = "also changes rows of an embedding that are not in the batch, with dense gradients"
                refuse(call, f"`{dotted(call.func)}` {message}: keep the MirroredStrategy", "TFM792")
            reach(draft, call, draft.mesh)
            draft.edit(call, with_mesh)
        elif method(call) in ("restore", "restore_or_initialize", "load_weights"):
            refuse(
                call,
                "restoring weights from a checkpoint is unsupported on a mesh: restore them by hand, after "
                "`optimizer.build`",
            )


def _check_optimizer(draft: Draft, call: cst.Call, name: str, kind: str) -> None:
    known = OPTIMIZERS.get(kind)
    if kind in AS_LEGACY and ".legacy." in (dotted(call.func) or ""):
        name = name.replace(".legacy.", ".")
    if known is None or name.count(".") > 3 or name.startswith("tf.compat."):
        message = f"`{name}` is untested on a mesh: use one of {', '.join(sorted(OPTIMIZERS))} of tf.keras.optimizers"
        refuse(call, message, "TFM792")
    for place, arg in enumerate(call.args):
        word = arg.keyword.value if arg.keyword is not None else None
        if arg.star or (word is None and place > 0):
            refuse(call, f"`{kind}` has arguments without a name: write them as keywords", "TFM792")
        if draft.models.embeds and word in CLIPPING:
            message = f"`{word}` clips dense gradients of an embedding differently: leave it out"
            refuse(call, message, "TFM792")
        if word is not None and word not in known | CLIPPING | {"name"}:
            refuse(call, f"`{word}` of `{kind}` is untested on a mesh: leave it out", "TFM792")


def rewrite_results(draft: Draft) -> None:
    """What a metric has counted leaves the mesh: text is not formatted of a tensor there (TensorFlow 2.21)."""
    for call in draft.calls:
        if method(call) != "result" or call.args or draft.file.runs_on_replicas(call):
            continue
        kind = draft.file.made_by(call.func.value) or ""  # type: ignore[attr-defined]
        above = draft.parents[call]
        if not kind.startswith((f"{KERAS}metrics.", "tf.metrics.")) or isinstance(above, cst.Attribute):
            continue
        text = "tf.constant({}.numpy())" if isinstance(above, cst.Assign) else "{}.numpy()"
        draft.edit(call, with_text(text.format(draft.text(call))))
