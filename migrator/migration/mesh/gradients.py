"""What a step of a loop does with its gradients, and whether a sum over the replicas is that of the batch."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.migration.mesh.draft import KERAS, Draft, refuse
from migrator.migration.mesh.edits import method
from migrator.migration.replica_regularizers import unscaled_regularizer
from migrator.names.free import free
from migrator.names.imports import dotted
from migrator.program.assignments import assignments
from migrator.program.calls import calls_in


@dataclass(frozen=True)
class Gradients:
    """How a step applies its gradients: the statement, the optimizer, and what is zipped, as source text."""

    line: cst.SimpleStatementLine
    optimizer: cst.BaseExpression
    given: cst.BaseExpression
    name: str
    variables: str


def gradients_of(draft: Draft, step: cst.FunctionDef, call: cst.Call) -> Gradients:
    """How a step applies its gradients. Raises Blocked for what is not that of the guides."""
    line = draft.above(call, cst.SimpleStatementLine)
    zipped = call.args[0].value if len(call.args) == 1 else None
    shaped = (
        line is not None
        and draft.parents[line] is step.body
        and isinstance(line.body[0], cst.Expr)
        and line.body[0].value is call
        and isinstance(zipped, cst.Call)
        and dotted(zipped.func) == "zip"
        and len(zipped.args) == 2
    )
    if not shaped or line is None or not isinstance(zipped, cst.Call) or not isinstance(call.func, cst.Attribute):
        message = "`optimizer.apply_gradients(zip(gradients, model.trainable_variables))` on a line of its own"
        refuse(call, f"on a mesh gradients are applied after the step that computes them: write {message}")
    given, variables = (arg.value for arg in zipped.args)
    source = value_in(draft, step, given) if isinstance(given, cst.Name) else given
    if not isinstance(source, cst.Call) or method(source) != "gradient":
        message = "gradients are modified before they are applied: let the optimizer clip them (global_clipnorm)"
        refuse(call, message)
    known = value_in(draft, step, variables) if isinstance(variables, cst.Name) else variables
    local = {parameter.name.value for parameter in step.params.params}
    local |= {one for one, _ in assignments(step.body)}
    for one in (known, call.func.value):
        root = (dotted(one) or "").partition(".")[0] if one is not None else ""
        if not root or root in local:
            message = f"`{draft.text(call)}` uses names local to the step: create model and optimizer outside of it"
            refuse(call, message)
    assert known is not None
    name = given.value if isinstance(given, cst.Name) else free("gradients", local)
    body = list(step.body.body)
    model = (dotted(known) or "").rpartition(".")[0]
    for later in body[body.index(line) + 1 :]:
        if any(dotted(one.func) == model for one in calls_in(later)):
            refuse(later, "the model is called after its weights are updated: call it before")
    return Gradients(line, call.func.value, given, name, draft.text(known))


def value_in(draft: Draft, step: cst.FunctionDef, name: cst.Name) -> cst.BaseExpression | None:
    """What a name is given in a function, if once."""
    values = [value for one, value in assignments(step.body) if one == name.value]
    return values[0] if len(values) == 1 else None


def check_features(draft: Draft, step: cst.FunctionDef, model: str) -> None:
    """Refuses steps whose model does not take the first part of a batch, of which its variables are made."""
    names = [parameter.name.value for parameter in step.params.params]
    if len(names) == 1:
        parts = [one for one, value in assignments(step.body) if dotted(value) == names[0]]
        names = parts if len(parts) > 1 else names
    for call in calls_in(step.body):
        if dotted(call.func) == model and (not call.args or dotted(call.args[0].value) != names[0]):
            message = (
                f"on a mesh `{model}` gets its variables from the shapes of its data: pass it the first "
                "part of a batch unchanged, `features, labels = inputs`"
            )
            refuse(call, message)


def check_scaling(draft: Draft, step: cst.FunctionDef, found: Gradients) -> None:
    """Refuses losses whose sum over the replicas is not that of the whole batch."""
    by_name = {function.name.value: function for function in draft.file.functions}
    reached = [step]
    for one in reached:  # and what they call
        called = (by_name.get(dotted(call.func) or "") for call in calls_in(one.body))
        reached += [function for function in dict.fromkeys(called) if function and function not in reached]
    names = [draft.file.name(call.func) for function in reached for call in calls_in(function.body)]
    counted = any(
        "num_replicas_in_sync" in draft.text(division.right) and draft.above(division, cst.FunctionDef) in reached
        for division in draft.file.divisions
    )
    scaled = "tf.nn.compute_average_loss" in names or "tf.reduce_sum" in names or counted
    mean = {"tf.reduce_mean", "tf.math.reduce_mean"} & set(names)
    if not scaled or (mean and not counted):
        message = (
            "the loss is not divided by the global batch: replicas sum their gradients, and a mesh has only "
            "one. Use `tf.nn.compute_average_loss(losses, global_batch_size=...)` of the per-example losses"
        )
        refuse(step, message)
    unscaled = unscaled_regularizer(draft.file, reached)
    if unscaled is not None:
        message = (
            "regularization terms count once per replica, but once on a mesh: use "
            "`tf.nn.scale_regularization_loss(tf.add_n(model.losses))`, which counts them once on both"
        )
        refuse(unscaled, message)
    tape = next((call for call in calls_in(step.body) if method(call) == "gradient"), None)
    loss = dotted(tape.args[0].value) if tape is not None and tape.args else None
    for call in calls_in(step.body):
        metric = (
            call.func.value if method(call) == "update_state" and isinstance(call.func, cst.Attribute) else call.func
        )
        kind = draft.file.made_by(metric) or ""
        if kind.startswith((f"{KERAS}metrics.", "tf.metrics.")) and call.args and dotted(call.args[0].value) == loss:
            message = (
                "this mean is over the replicas' shares of the loss, and a mesh has no shares: give the "
                "metric `loss * strategy.num_replicas_in_sync`, which is the loss on both"
            )
            refuse(call, message)
