"""The optimizer of a model_fn: its clipping, and a schedule class for a rate that Keras has no schedule for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from migrator.emit.names import free
from migrator.program.parsed import Blocked
from migrator.program.train_op import Order, TrainOp
from migrator.rules.rewriter import Rewriter
from migrator.rules.site import TrainingContext
from migrator.rules.weight_averages import averaging_class


def prepare(
    rewriter: Rewriter, context: TrainingContext, train: TrainOp, code: Callable[[cst.CSTNode], str]
) -> str | None:
    """Tells the rewriter what the calls of optimizers and schedules become; returns the name of the schedule class.

    There is one where the rate is computed by lines of the program.
    """
    arguments: tuple[str, ...] = ()
    if train.clipping is not None and train.helper is not None and context.per_replica:
        message = "replicas would clip before summing: create the optimizer in the model_fn, which clips its gradients"
        raise Blocked("TFM403", train.clipping.value, message)
    if train.clipping is not None:
        arguments = (f"{train.clipping.argument}={code(train.clipping.value)}",)
    name = None
    if train.rate.value is not None:
        name = free("LearningRate", context.taken)
        context.taken.add(name)
    rewriter.training = replace(
        context,
        steps=train.rate.steps,
        schedules=train.rate.stock,
        scheduled=train.rate.scheduled,
        arguments=dict.fromkeys(train.made, arguments),
        averaging=_averaging(context, train, code),
        rates=dict.fromkeys(train.rate.scheduled, f"{name}()") if name is not None else {},
        skipped=train.rate.values,
    )
    return name


def _averaging(
    context: TrainingContext, train: TrainOp, code: Callable[[cst.CSTNode], str]
) -> dict[cst.CSTNode, tuple[str, str]]:
    """What the optimizer must do to keep moving averages of the weights."""
    averages = train.averages
    if averages is None:
        return {}
    if averages.order is Order.OPEN:
        message = "TensorFlow 1 may update these averages before or after the weights: here it is after"
        context.remark("TFM412", averages.call, message)
    text = averaging_class(averages.counted, averages.order is Order.BEFORE)
    return dict.fromkeys(train.made, (text, f"ema_momentum={code(averages.decay)}"))


def clips_later(train: TrainOp, code: Callable[[cst.CSTNode], str]) -> str:
    """The statement that tells the optimizer of a helper function to clip; empty where none is needed."""
    if train.helper is None or train.clipping is None:
        return ""
    return f"{code(train.optimizer)}.{train.clipping.argument} = {code(train.clipping.value)}\n"


def schedule_class(
    name: str,
    train: TrainOp,
    statements: list[cst.BaseStatement],
    rewriter: Rewriter,
    code: Callable[[cst.CSTNode], str],
    indent: str,
) -> list[str]:
    """The lines of a schedule class that computes the rate by `statements`, as the model_fn did."""
    assert train.rate.value is not None
    lines = [
        f"class {name}(tf.keras.optimizers.schedules.LearningRateSchedule):",
        f"{indent}def __call__(self, {train.rate.step}):",
    ]
    outside = rewriter.training
    rewriter.training = replace(outside, step=train.rate.step, skipped=frozenset())
    for statement in statements:
        new = statement.visit(rewriter)
        assert isinstance(new, cst.BaseStatement)
        text = code(new).strip("\n")
        lines += [f"{indent * 2}{line}" if line else "" for line in text.splitlines()]
    value = train.rate.value.visit(rewriter)
    assert isinstance(value, cst.BaseExpression)
    lines += [f"{indent * 2}return {code(value)}", ""]
    rewriter.training = outside
    return lines
