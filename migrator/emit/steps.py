"""How many steps `fit` makes in one go: a parameter of the function that makes the model, given on to `compile`."""

from __future__ import annotations

import libcst as cst

from migrator.rules.site import TrainingContext

STEPS = "steps_per_execution"


def with_steps(params: cst.Parameters) -> cst.Parameters:
    """The parameters of a function, and one more: one step by one where nothing is given."""
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    more = cst.Param(cst.Name(STEPS), default=cst.Integer("1"), equal=equal)
    if isinstance(params.star_arg, (cst.Param, cst.ParamStar)) or params.kwonly_params:
        return params.with_changes(kwonly_params=[*params.kwonly_params, more])
    return params.with_changes(params=[*params.params, more])


def given_steps(training: TrainingContext) -> list[str]:
    """The argument of `compile` that says how many steps are one execution, none where each is one."""
    if training.steps_per_execution:
        return [f"{STEPS}={STEPS}"]
    return [f"{STEPS}={training.of_execution}"] if training.of_execution > 1 else []
