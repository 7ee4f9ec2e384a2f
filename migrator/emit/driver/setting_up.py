"""The lines that make the strategy and the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import libcst as cst

from migrator.emit.driver.draft import Draft
from migrator.emit.driver.strategy import strategy_lines
from migrator.emit.layout import call
from migrator.emit.mesh import MESH
from migrator.emit.steps import STEPS
from migrator.program.params_changes import changes_later, changes_own
from migrator.rules.executions import STEPS_OF_EXECUTION
from migrator.targets import many_steps
from migrator.targets.plan import TrainingPlan, primary, restore
from migrator.targets.registry import AUTO, TPU


@dataclass(frozen=True)
class SetUp:
    """Lines that make strategy and model and restore a checkpoint; `in_scope`: the model is made under a strategy."""

    lines: list[str]
    in_scope: bool = False


def set_up(draft: Draft, plan: TrainingPlan, dataset: str) -> SetUp:
    """What makes the model, for the shapes of a dataset."""
    program = draft.program
    lines: list[str] = []
    if draft.folder_line is not None:
        lines.append(draft.folder_line)
    seed = program.config.get("tf_random_seed")
    if seed is not None:
        lines.append(f"tf.random.set_seed({draft.text(seed)})")
    restores = program.train_and_evaluate is None and plan.model_dir is not None
    if program.model.ready:
        return SetUp([*lines, *(restore(plan) if restores else ())])
    inputs = f"{draft.names['make_inputs']}({dataset})"
    arguments = _model_arguments(draft, inputs)
    target = f"{draft.model_name}, {draft.names['predictor']}" if draft.model.has_predictor else draft.model_name
    head = f"{target} = {draft.text(program.model.callee)}"
    made = strategy_lines(draft, plan)
    in_scope = bool(made or plan.made)
    if in_scope:
        scope = f"with {plan.strategy_name}.scope():"
        lines += [*made, scope, draft.indent + call(head, arguments, draft.indent, 1)]
        lines += _on_every_task(draft, plan)
        if plan.local:
            copy = call(draft.text(program.model.callee), arguments, draft.indent, 1).rstrip()
            copy = f"lambda: {copy}{'[0]' if draft.model.has_predictor else ''}"
            made_local = f"{plan.local} = {draft.names['LocalCopy']}"
            lines.append(call(made_local, [draft.model_name, copy], draft.indent, 0))
    else:
        lines.append(call(head, arguments, draft.indent, 0))
    lines += plan.loop.set_up(plan)
    if draft.asked.many_steps:
        servers, workers = draft.asked.on_servers > 1, draft.target.mirrored_workers
        make = partial(many_steps.set_train_function, indent=draft.indent, servers=servers, workers=workers)
        lines.append(f"{draft.helper('set_train_function', make)}({draft.model_name})")
    if restores and not plan.loop.own:
        lines += restore(plan)
    return SetUp(lines, in_scope)


def _on_every_task(draft: Draft, plan: TrainingPlan) -> list[str]:
    """Lines for the tasks of a cluster that a plain `train` runs on: it evaluates there, and has no evaluator."""
    by_hand = draft.program.variable in draft.program.file.clusters
    if draft.program.train_and_evaluate is not None or not draft.target.reads_cluster or by_hand:
        return []
    return [
        f'if {plan.resolver}.task_type == "evaluator":',
        f'{draft.indent}raise ValueError("this program evaluates where it trains, and has no evaluator task")',
    ]


def _model_arguments(draft: Draft, inputs: str) -> list[str]:
    """The arguments of the call that makes the model."""
    model = draft.program.model
    params = _model_params(draft)
    if copies_params(draft):
        params = f"copy.deepcopy({params})"
    if model.template is not None:
        arguments = []
        for keyword, value in model.template:
            text = {"features": inputs, "params": params}[value] if isinstance(value, str) else draft.text(value)
            arguments.append(text if keyword is None else f"{keyword}={text}")
        return arguments + _further(draft)
    arguments = [inputs]
    roles = model.parameters
    if roles.params is not None:
        left = [p.name.value for p in model.function.params.params]
        left = [name for name in left if name not in (roles.labels, roles.mode, roles.config)]
        second = left[left.index(roles.features) + 1 :][:1]
        plain = second == [roles.params] and not model.lambdas
        arguments.append(params if plain else f"params={params}")
    return arguments + [draft.argument(arg) for arg in model.more] + _further(draft)


def _further(draft: Draft) -> list[str]:
    """What the function that makes the model is told of the target."""
    return [f"{MESH}={draft.names['mesh']}"] if draft.target.mesh else _steps_per_execution(draft)


def _steps_per_execution(draft: Draft) -> list[str]:
    """The argument that says how many steps a TPU makes in one go, or `fit` where servers make a difference."""
    if draft.target is AUTO and draft.model.takes_steps:
        jobs = f"{draft.names['resolver']}.cluster_spec().jobs"
        return [f'{STEPS}={draft.asked.on_servers} if "ps" in {jobs} else {STEPS_OF_EXECUTION}']
    tpu = draft.program.tpu
    if tpu is None or draft.target is not TPU or not draft.model.takes_steps or tpu.iterations is None:
        return []
    steps = draft.text(tpu.iterations)
    return [f"{STEPS}={steps}" if tpu.flag is None else f"{STEPS}={steps} if {draft.text(tpu.flag)} else 1"]


def _model_params(draft: Draft) -> str:
    """The params that the model is made with; a TPUEstimator puts the batch size of a core into them."""
    params = "{}" if draft.program.params is None else draft.text(draft.program.params)
    size = draft.program.model_batch
    if size is None:
        return params
    text = draft.text(size)
    if draft.target is TPU:
        text = f"{primary(text)} // {draft.names['strategy']}.num_replicas_in_sync"
    return f'{{"batch_size": {text}}}' if params == "{}" else f"dict({params}, batch_size={text})"


def copies_params(draft: Draft) -> bool:
    """Whether the params must be copied, as an Estimator copies them: they change."""
    params, model = draft.program.params, draft.program.model
    if params is None:
        return False
    if changes_later(draft.project, draft.file, params, draft.program.place.call):
        return True
    if changes_own(draft.project, model.file, model.function, model.parameters.params):
        return isinstance(params, (cst.Name, cst.Attribute, cst.Subscript))
    return False


__all__ = ["SetUp", "copies_params", "set_up"]
