"""One device, no TF_CONFIG: fit on the user's own dataset."""

from __future__ import annotations

from migrator.emit.layout import call
from migrator.targets.plan import TrainingPlan, callbacks_argument, evaluation, primary, restore


def train_and_evaluate(plan: TrainingPlan) -> str:
    """The statements that replace train_and_evaluate, as source text at depth 0."""
    lines = restore(plan) if plan.model_dir is not None else []
    if plan.period is not None:
        lines.append(call(f"{plan.model}.fit", _periods(plan), plan.indent, 0))
        return "\n".join(lines) + "\n"
    lines += fit(plan, plan.train_dataset, plan.max_steps, absolute=True)
    lines.append(evaluation(plan, 0))
    return "\n".join(lines) + "\n"


def _periods(plan: TrainingPlan, depth: int = 0) -> list[str]:
    arguments = [plan.train_dataset, f"steps_per_epoch={plan.period}", f"epochs={plan.epochs}"]
    if plan.resumes:
        arguments.append(f"initial_epoch={plan.model}.optimizer.iterations.numpy() // {plan.period}")
    arguments += callbacks_argument(plan, "ckpt-{epoch}", depth, plan.eval_callbacks)
    arguments.append(f"validation_data={plan.eval_dataset}")
    return arguments


def fit(plan: TrainingPlan, dataset: str, steps: str | None, absolute: bool) -> list[str]:
    """Lines that train on `steps` batches (None: all). Absolute steps count those of before."""
    guarded = steps is not None and absolute and plan.resumes
    depth = 1 if guarded else 0
    limit = plan.steps if guarded else steps
    arguments = [dataset if limit is None else f"{primary(dataset)}.take({limit})"]
    arguments += callbacks_argument(plan, "ckpt", depth)
    train = call(f"{plan.model}.fit", arguments, plan.indent, depth)
    if not guarded:
        return [train]
    assert steps is not None
    return [
        f"{plan.steps} = {primary(steps)} - {plan.model}.optimizer.iterations.numpy()",
        f"if {plan.steps} > 0:",
        plan.indent + train,
    ]
