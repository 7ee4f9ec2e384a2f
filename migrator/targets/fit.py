"""Training by `Model.fit`, in one process or by the tasks of a cluster."""

from __future__ import annotations

from dataclasses import replace

from migrator.emit.layout import call
from migrator.targets import fit_on_cluster
from migrator.targets.plan import (
    Loop,
    TrainingPlan,
    answering,
    callbacks_argument,
    evaluated,
    evaluation,
    in_periods,
    primary,
    restore,
    steps_of_data,
)


def train_and_evaluate(plan: TrainingPlan) -> str:
    """The statements that replace train_and_evaluate, as source text at depth 0."""
    if plan.target.reads_cluster:
        return fit_on_cluster.train_and_evaluate(plan)
    lines = restore(plan) if plan.model_dir is not None else []
    if plan.period is not None:
        lines += in_periods(plan, 0, evaluated(plan, 0, validation=True))
        lines += [f"{plan.result} = {plan.last_evaluation}({plan.model})"] if plan.result else []
        return "\n".join(lines) + "\n"
    lines += train(plan, plan.train_dataset, plan.max_steps, absolute=True)
    lines.append(answering(plan, 0))
    return "\n".join(lines) + "\n"


def train(plan: TrainingPlan, dataset: str, steps: str | None, absolute: bool) -> list[str]:
    """Lines that train on `steps` batches (None: all). Absolute steps count those of before."""
    guarded = steps is not None and absolute and plan.resumes
    depth = 1 if guarded else 0
    limit = plan.steps if guarded else steps
    counted: list[str] = []
    if plan.target.creates:
        if limit is None and plan.target.reads_cluster:
            limit, counted = plan.steps, steps_of_data(replace(plan, train_dataset=dataset))
            dataset = f"{primary(dataset)}.repeat()"
        elif limit is None:
            # An iterator that finds its end by itself lets the optimizer count one step too many (measured on 2.21).
            limit = plan.steps
            counted = [f"{limit} = sum(1 for _ in {dataset}) // {plan.strategy_name}.num_replicas_in_sync"]
        arguments = [plan.target.feed(plan, dataset, depth), f"steps_per_epoch={limit}"]
    elif plan.target.counts or (plan.told_steps and plan.keras.cuts_executions):
        arguments = [plan.target.feed(plan, dataset, depth)]
        arguments += [] if limit is None else [f"steps_per_epoch={limit}"]
    else:
        arguments = [dataset if limit is None else f"{primary(dataset)}.take({limit})"]
    arguments += callbacks_argument(plan, "ckpt", depth)
    fit = call(f"{plan.model}.fit", arguments, plan.indent, depth)
    if not guarded:
        return [*counted, fit]
    assert steps is not None
    return [
        f"{plan.steps} = {primary(steps)} - {plan.model}.optimizer.iterations.numpy()",
        f"if {plan.steps} > 0:",
        plan.indent + fit,
    ]


LOOP = Loop("fit", train_and_evaluate=train_and_evaluate, train=train, evaluate=evaluation)
