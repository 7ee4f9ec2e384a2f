"""Loops of the program's own: the step that `strategy.run` took computes the whole batch."""

from __future__ import annotations

import libcst as cst

from migrator.migration.mesh import models
from migrator.migration.mesh.building import deferred_model
from migrator.migration.mesh.draft import Draft, refuse
from migrator.migration.mesh.edits import (
    decorator_place,
    extended,
    method,
    put_in_place,
    second_argument,
    with_function,
    with_gradients,
    with_text,
    without_function,
)
from migrator.migration.mesh.gradients import Gradients, check_features, check_scaling, gradients_of, value_in
from migrator.names.free import free
from migrator.program.calls import calls_in, is_docstring
from migrator.program.modern import RUN, is_edit_of, keyword
from migrator.program.parsed import names_in
from migrator.program.scopes import returns_in

_OUTSIDE = (
    "# Not in a tf.function, which on a mesh may read the optimizer's slots before it assigns them (TensorFlow 2.21)."
)


def rewrite_loops(draft: Draft) -> str | None:
    """Loops of the program's own, by `strategy.run`; the model that they train, as source text."""
    runs = [
        call
        for call in draft.calls
        if method(call) in RUN and isinstance(call.func, cst.Attribute) and call.func.value in draft.strategy.uses
    ]
    model: str | None = None
    by_name = {function.name.value: function for function in draft.file.functions}
    for run in runs:
        target = run.args[0].value if run.args else None
        step = by_name.get(target.value) if isinstance(target, cst.Name) else None
        around = draft.above(run, cst.FunctionDef)
        if step is None or around is None or draft.above(step, cst.FunctionDef) is around:
            message = (
                "on a mesh, `strategy.run` must call a function of this file from its own tf.function: put "
                "the step and its tf.function next to each other"
            )
            refuse(run, message)
        model = _rewrite_step(draft, run, step, around) or model
    return model


def _rewrite_step(draft: Draft, run: cst.Call, step: cst.FunctionDef, around: cst.FunctionDef) -> str | None:
    """The step of one `strategy.run` takes the whole batch; the model that it trains, if it trains any."""
    models.check_step(draft.file, step)
    applies = [call for call in calls_in(step.body) if method(call) == "apply_gradients"]
    place = decorator_place(draft.file, around)
    if place is None:
        message = f"`{around.name.value}` is not a tf.function: decorate it with `@tf.function`, without arguments"
        refuse(around, message)
    given = _arguments_of(draft, run)
    if not applies:
        _rewrite_test(draft, run, step, around, given)
        return None
    if len(applies) > 1:
        refuse(applies[1], "several optimizers in one step are unsupported on a mesh: keep the MirroredStrategy")
    found = gradients_of(draft, step, applies[0])
    model = found.variables.rpartition(".")[0]
    if draft.models.own or deferred_model(draft) is not None:
        check_features(draft, step, model)
    check_scaling(draft, step, found)
    returned = _returned_by(draft, step)
    loss, gradients = free("loss", names_in(around.params)), free("gradients", names_in(around.params))
    reduced = _body_of(draft, run, around, returned is not None)
    result = gradients if returned is None else f"{loss}, {gradients}"
    lines = [
        f"{result} = {step.name.value}({given})",
        _OUTSIDE,
        f"{draft.text(found.optimizer)}.apply_gradients(zip({gradients}, {found.variables}))",
        *([f"return tf.constant({loss}.numpy())"] if reduced else []),
    ]
    body = draft.lines("\n".join(lines))
    draft.edit(around, lambda node: without_function(is_edit_of(node, cst.FunctionDef), place, body))
    draft.edit(step, with_function)
    _rewrite_apply(draft, found)
    if returned is None:
        give = draft.lines(f"return {found.name}")
        draft.edit(step, lambda node: extended(is_edit_of(node, cst.FunctionDef), give))
    else:
        draft.edit(returned, lambda node: with_gradients(is_edit_of(node, cst.Return), found.name))
    return model


def _rewrite_apply(draft: Draft, found: Gradients) -> None:
    if isinstance(found.given, cst.Name):
        draft.edit(found.line, lambda node: cst.RemoveFromParent())  # type: ignore[arg-type,return-value]
        return
    new = draft.lines(f"{found.name} = {draft.text(found.given)}")
    draft.edit(found.line, lambda node: put_in_place(node, found.line, new))


def _rewrite_test(draft: Draft, run: cst.Call, step: cst.FunctionDef, around: cst.FunctionDef, given: str) -> None:
    """A step that only measures: it is called as it is."""
    if any(method(call) in ("gradient", "minimize") for call in calls_in(step.body)):
        message = "gradients are not applied in the step that computes them: apply them there"
        refuse(step, message)
    for use in draft.strategy.uses:
        reduce = draft.parents.get(draft.parents[use])
        if (
            isinstance(reduce, cst.Call)
            and method(reduce) == "reduce"
            and draft.above(reduce, cst.FunctionDef) is around
        ):
            draft.edit(reduce, second_argument(_check_sum(draft, reduce)))
            draft.accounted.add(use)
    for use in [use for use in draft.strategy.uses if run.func.value is use]:  # type: ignore[attr-defined]
        draft.accounted.add(use)
    draft.edit(run, with_text(f"{step.name.value}({given})"))


def _arguments_of(draft: Draft, run: cst.Call) -> str:
    """The arguments that a step is given, as source text."""
    rest = run.args[1:]
    if len(rest) != 1 or (rest[0].keyword is not None and rest[0].keyword.value != "args"):
        refuse(run, "the step is given more than `args=(...)`, unsupported on a mesh: leave the other arguments out")
    value = rest[0].value
    if not isinstance(value, (cst.Tuple, cst.List)):
        refuse(run, "the arguments of the step are not literal: give `args=(batch,)`")
    return ", ".join(draft.text(element.value) for element in value.elements)


def _returned_by(draft: Draft, step: cst.FunctionDef) -> cst.Return | None:
    found = returns_in(step.body)
    if not found:
        return None
    last = step.body.body[-1]
    if len(found) > 1 or draft.parents[found[0]] is not last or draft.parents[last] is not step.body:
        refuse(step, "the step has several returns: let it end with one `return loss`")
    value = found[0].value
    if value is None or isinstance(value, (cst.Tuple, cst.Dict, cst.List)):
        refuse(found[0], "the step returns several values: return the loss, and keep the others in metrics")
    return found[0]


def _body_of(draft: Draft, run: cst.Call, around: cst.FunctionDef, returns: bool) -> bool:
    """Whether a tf.function returns the sum of what its step returns. Raises Blocked for other bodies."""
    body = [line for line in around.body.body if not is_docstring(line)]
    reduces = [call for call in calls_in(around.body) if method(call) == "reduce"]
    draft.accounted |= {use for use in draft.strategy.uses if draft.above(use, cst.FunctionDef) is around}
    if not reduces:
        plain = len(body) == 1 and isinstance(draft.parents[run], cst.Expr)
        if not plain:
            message = 'the result of the step must be summed in its tf.function: `return strategy.reduce("SUM", ...)`'
            refuse(run, message)
        return False
    [reduce, *others] = reduces
    value = _check_sum(draft, reduce)
    given = value_in(draft, around, value) if isinstance(value, cst.Name) else value
    shaped = (
        not others
        and returns
        and given is run
        and len(body) == (2 if isinstance(value, cst.Name) else 1)
        and isinstance(draft.parents[reduce], cst.Return)
    )
    if not shaped:
        message = "this tf.function does more than run its step and return the sum: move the rest to the loop"
        refuse(around, message)
    return True


def _check_sum(draft: Draft, reduce: cst.Call) -> cst.BaseExpression:
    """What is summed up over the replicas."""
    axis = keyword(reduce, "axis")
    text = draft.text(reduce.args[0].value) if reduce.args else ""
    whole = axis is not None and draft.text(axis.value) == "None"
    if len(reduce.args) != 3 or not whole or text.rpartition(".")[2].strip("\"'").upper() != "SUM":
        message = (
            'the replicas\' values are not summed: a mesh needs `strategy.reduce("SUM", value, axis=None)` of '
            "a loss divided by the global batch"
        )
        refuse(reduce, message)
    return reduce.args[1].value
