"""Training by `Model.fit` on a cluster in TF_CONFIG: parameter servers or mirrored workers, with an evaluator task."""

from __future__ import annotations

from migrator.emit.layout import call
from migrator.targets.plan import (
    TrainingPlan,
    answering,
    callbacks_argument,
    evaluation,
    in_periods,
    of_tensorflow1,
    primary,
    restore,
    steps_of_data,
)

#: What an evaluator task says where the coordinator evaluates.
OF_COORDINATOR = 'print("The coordinator evaluates, and nothing is left for an evaluator.")'
_DEPTH = 1  # training stands in the else of the evaluator's branch


def train_and_evaluate(plan: TrainingPlan) -> str:
    """The statements that replace train_and_evaluate, as source text at depth 0."""
    lines = [f'if {plan.resolver}.task_type == "evaluator":']
    lines += [plan.indent + line for line in _evaluator(plan)]
    lines.append("else:")
    if plan.model_dir is not None:
        lines += [plan.indent + line for line in restore(plan)]
    lines += [plan.indent + line for line in _train(plan)]
    lines += [plan.indent + line for line in _evaluate_locally(plan)]
    if plan.result and plan.period is None:
        lines.insert(0, f"{plan.result} = None")
    elif plan.result:
        found = f"{plan.last_evaluation}({plan.model})"
        lines.append(f"{plan.result} = None if {plan.resolver}.cluster_spec().jobs else {found}")
    return "\n".join(lines) + "\n"


def _train(plan: TrainingPlan) -> list[str]:
    if plan.period is not None:
        return in_periods(plan, _DEPTH, _validation(plan))
    repeat, lines = "", []
    if plan.max_steps is None:
        # fit on a cluster must know its steps, and a worker that is quicker than others needs more than one pass.
        repeat = ".repeat()"
        lines += steps_of_data(plan)
    elif plan.resumes:
        lines.append(f"{plan.steps} = {primary(plan.max_steps)} - {plan.model}.optimizer.iterations.numpy()")
    guarded = plan.max_steps is not None and plan.resumes
    inner = _DEPTH + 1 if guarded else _DEPTH
    steps = plan.max_steps if plan.max_steps is not None and not guarded else plan.steps
    arguments = [_dataset(plan, repeat, inner), f"steps_per_epoch={steps}"]
    arguments += callbacks_argument(plan, "ckpt", inner)
    train = call(f"{plan.model}.fit", arguments, plan.indent, inner)
    return [*lines, f"if {plan.steps} > 0:", plan.indent + train] if guarded else [*lines, train]


def _dataset(plan: TrainingPlan, repeat: str, depth: int) -> str:
    return plan.target.feed(plan, f"{primary(plan.train_dataset)}{repeat}" if repeat else plan.train_dataset, depth)


def _validation(plan: TrainingPlan) -> list[str]:
    if plan.start_servers:  # there is a cluster always
        return []
    data = f"validation_data=None if {plan.resolver}.cluster_spec().jobs else {plan.eval_dataset}"
    return [data, *([] if plan.eval_steps is None else [f"validation_steps={plan.eval_steps}"])]


def _evaluate_locally(plan: TrainingPlan) -> list[str]:
    """Without a cluster the one process evaluates; in a cluster the evaluator does."""
    if plan.period is not None or plan.start_servers:
        return []
    return [
        f"if not {plan.resolver}.cluster_spec().jobs:",
        plan.indent + answering(plan, _DEPTH + 1),
    ]


def _evaluator(plan: TrainingPlan) -> list[str]:
    """Evaluates every new checkpoint until the last one."""
    indent = plan.indent
    if plan.clusters.coordinates:
        return [OF_COORDINATOR]
    if plan.model_dir is None:
        return ['print("This program has no model_dir, and so no checkpoints to evaluate.")']
    lines = [
        f"for {plan.checkpoint} in tf.train.checkpoints_iterator({plan.model_dir}):",
        f"{indent}if {of_tensorflow1(plan)}:",
        f"{indent * 2}continue  # an Estimator's",
        f"{indent}{plan.model}.load_weights({plan.checkpoint}).expect_partial()",
        indent + evaluation(plan, _DEPTH + 1),
    ]
    if plan.max_steps is not None:
        lines += [
            f"{indent}if {plan.model}.optimizer.iterations.numpy() >= {primary(plan.max_steps)}:",
            f"{indent * 2}break",
        ]
    return lines
