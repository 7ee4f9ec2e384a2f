"""The plan of a training: its data, steps, checkpoints and evaluations, as the new driver has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import libcst as cst

from migrator.emit.driver.draft import Draft
from migrator.emit.driver.steps import (
    batches,
    counted,
    is_endless,
    limits,
    may_end,
    never_end,
    reads_steps,
    steps_per_call,
    trains_again,
)
from migrator.emit.driver.strategy import on_cluster, resolver, with_strategy
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked
from migrator.program.training import TrainAndEvaluate
from migrator.rules.executions import ends_early, trains_to_an_unknown_end
from migrator.rules.folders import may_be_empty
from migrator.rules.repeatable import Effect
from migrator.targets import setup
from migrator.targets.plan import TrainingPlan, primary
from migrator.targets.registry import TPU

_MANY_STEPS = 10_000  # fewer are made in the 600 seconds after which an Estimator saves, or not much later


def _folder(draft: Draft) -> str | None:
    """The text of the model_dir, or the name that a line of the driver gives it."""
    program = draft.program
    folder = None if program.model_dir is None else draft.of_config(program.model_dir)
    model_dir = draft.text(folder) if folder is not None else None
    empty = folder is not None and may_be_empty(draft.file, program.scope, folder)
    if empty:  # an Estimator took a temporary folder then
        model_dir = f"{primary(str(model_dir))} or tempfile.mkdtemp()"
        draft.needs.add("tempfile")
    if model_dir is not None and (empty or not isinstance(folder, (cst.Name, cst.Attribute))):
        name = draft.free("model_dir")
        draft.folder_line = f"{name} = {model_dir}"
        return name
    return model_dir


def make_plan(draft: Draft) -> TrainingPlan:
    """The plan of all trainings and evaluations. Raises Blocked for what they ask for and the new driver has not."""
    plan = on_cluster(draft, with_strategy(draft, _begun(draft)))
    plan = _with_steps_kept(draft, plan)
    both = draft.program.train_and_evaluate
    if both is None:
        return _with_saves(draft, plan)
    plan = _with_period(draft, _of_both(draft, plan, both), both)
    if both.answers:
        plan = _with_result(draft, plan, both)
    _check_shared_hooks(draft, plan, both)
    return plan


def _begun(draft: Draft) -> TrainingPlan:
    """The plan without anything that a training or an evaluation asks for."""
    tpu = draft.program.tpu if draft.target is TPU else None
    return TrainingPlan(
        target=draft.target,
        loop=draft.loop,
        model=draft.model_name,
        resolver=draft.names["resolver"],
        strategy_name=draft.names["strategy"],
        checkpoint=draft.names["checkpoint"] + ("s" if draft.keras.checkpoints_by_manager else ""),
        steps=draft.names["steps"],
        indent=draft.indent,
        train_dataset="",
        eval_dataset="",
        max_steps=None,
        period=None,
        epochs=None,
        model_dir=_folder(draft),
        again=trains_again(draft),
        keras=draft.keras,
        make_strategy=draft.names.get(draft.target.helper_name, ""),
        mesh=draft.names.get("mesh", ""),
        check_layouts=draft.names.get("check_layouts", ""),
        tpu_flag=None if tpu is None or tpu.flag is None else draft.text(tpu.flag),
        tpu_resolver=resolver(draft, tpu),
        loop_name=draft.names.get("loop", ""),
        loop_class=draft.names.get("TrainingLoop", ""),
        draws=draft.draws,
        steps_per_call=steps_per_call(draft, tpu),
    )


def _with_steps_kept(draft: Draft, plan: TrainingPlan) -> TrainingPlan:
    """The plan with what goes on from a checkpoint, and what keeps the number of steps."""
    program = draft.program
    trains = program.train_and_evaluate is not None or program.does("train")
    if plan.model_dir is not None and trains and draft.model.rates and not draft.loop.own:
        rates = draft.model.rates
        load = draft.helper("load_checkpoint", lambda name: setup.load_checkpoint(name, draft.indent, rates))
        plan = replace(plan, load=load)
    plan = replace(plan, trains=trains)
    _tell_saves(draft, plan.model_dir)
    to_data = not (draft.target.creates or draft.target.counts or draft.target.mesh or draft.loop.own)
    counts_on = to_data and (plan.again or plan.model_dir is not None or reads_steps(draft))
    told = draft.target.creates and not draft.loop.own
    if (counts_on and trains_to_an_unknown_end(draft.project, program)) or (
        told and draft.keras.number == 2 and ends_early(draft.project, program)
    ):
        callback = draft.helper("CountedSteps", lambda name: setup.counted_steps(name, draft.indent))
        plan = replace(plan, counted=callback)
    return plan


def _of_both(draft: Draft, plan: TrainingPlan, both: TrainAndEvaluate) -> TrainingPlan:
    """The plan with the data and the steps of a train_and_evaluate."""
    max_steps = limits(draft, both.train, both.place.call).get("max_steps")
    eval_dataset = draft.data.dataset(both.evaluate.get("input_fn"), both.place.call, "eval")
    given_steps = both.evaluate.get("steps")
    eval_steps = None
    if not plan.evaluates_apart:
        endless = never_end(draft, both.evaluate, "eval")
        eval_dataset, eval_steps = counted(draft, eval_dataset, given_steps, "100", endless)
    elif given_steps is None or not is_none(given_steps):
        eval_steps = "100" if given_steps is None else batches(draft, given_steps)
    return replace(
        plan,
        batches=draft.free("batches") if draft.loop.own else "",
        train_dataset=draft.data.dataset(both.train.get("input_fn"), both.place.call, "train"),
        eval_dataset=eval_dataset,
        eval_steps=eval_steps,
        max_steps=None if is_none(max_steps) else batches(draft, max_steps),  # type: ignore[arg-type]
        endless=is_endless(draft, max_steps),
        told_steps=never_end(draft, both.train, "train"),
        callbacks=callbacks(draft, both.train),
        eval_callbacks=callbacks(draft, both.evaluate),
    )


def _check_shared_hooks(draft: Draft, plan: TrainingPlan, both: TrainAndEvaluate) -> None:
    """Refuses one class of hooks for trainings and for the evaluations between them. Raises Blocked (TFM162)."""
    hooks = draft.program.hooks
    watching = {p: {one.node for q, found in hooks if q == p for one in found.own} for p in ("train", "test")}
    shared = watching["train"] & watching["test"]
    if shared and plan.period is not None:
        name = next(iter(shared)).name.value
        message = f"`{name}` is a hook of both training and evaluation: create one for each"
        raise Blocked("TFM162", both.place.call, message)


def _with_result(draft: Draft, plan: TrainingPlan, both: TrainAndEvaluate) -> TrainingPlan:
    """The plan of a train_and_evaluate whose line does something with the result."""
    statement = both.place.statement
    assert statement is not None
    if draft.loop.own:
        message = "the result of train_and_evaluate is used, which only `fit` returns: leave `--loop` out"
        raise Blocked("TFM103", both.place.call, message)
    if any(use.place.statement is statement for use in draft.program.all_uses):
        message = "this line uses the Estimator for more than train_and_evaluate: split the line"
        raise Blocked("TFM103", both.place.call, message)
    if plan.period is not None:
        last_evaluation = draft.helper("last_evaluation", lambda name: setup.last_evaluation(name, draft.indent))
        plan = replace(plan, last_evaluation=last_evaluation)
    return replace(plan, result=named(both) or draft.free("results"))


def _tell_saves(draft: Draft, model_dir: str | None) -> None:
    """Says where an Estimator would have saved a checkpoint every 600 seconds, if the training may be long."""
    program = draft.program
    both = program.train_and_evaluate
    told = "save_checkpoints_secs" in program.file.bare  # TFM107 says where they come
    if model_dir is None or told or "save_checkpoints_steps" in program.config or trains_again(draft):
        return
    trainings = [(both.place.call, both.train)] if both is not None else []
    trainings += [(use.place.call, use.arguments) for use in program.uses if use.method == "train"]
    for call_, arguments in trainings:
        limits = [arguments[name] for name in ("steps", "max_steps") if not is_none(arguments.get(name))]
        count = draft.file.integer(limits[0]) if limits else 0
        if count is None or count >= _MANY_STEPS:
            evaluated = " and evaluated" if both is not None else ""
            message = f"the Estimator saved a checkpoint{evaluated} every 600 seconds, the new program only at the end"
            draft.say("TFM109", call_, f"{message}: set `save_checkpoints_steps`")


def _with_saves(draft: Draft, plan: TrainingPlan) -> TrainingPlan:
    """The plan of trainings by `train` with the period of their checkpoints; 0 is none."""
    every = draft.program.config.get("save_checkpoints_steps")
    if every is None or plan.model_dir is None:
        return plan
    if draft.loop.own:
        message = "checkpoints are saved at the end of each training only: an interrupted one loses its progress"
        draft.say("TFM109", every, message)
        return plan
    if draft.target.parameter_servers:
        message = "checkpoints are saved at the end of each training only: the coordinator does not see single steps"
        draft.say("TFM109", every, message)
        return plan
    count = draft.file.integer(every)
    if count == 0:
        return plan
    if plan.averages and draft.keras.number == 3:
        message = "moving averages of replicas are saved once per epoch on Keras 3: leave save_checkpoints_steps out"
        raise Blocked("TFM872", every, message)
    return replace(plan, saves_every=batches(draft, every), saves_surely=count is not None)


def _with_period(draft: Draft, plan: TrainingPlan, both: TrainAndEvaluate) -> TrainingPlan:
    """Sets the period of checkpoints and evaluations where it divides the training."""
    every = draft.program.config.get("save_checkpoints_steps")
    reads = any(hooks.reads_evaluations for _, hooks in draft.program.hooks)
    if reads and (is_none(every) or plan.max_steps is None):
        message = "a hook reads evaluation results: set `max_steps`, and `save_checkpoints_steps` in the RunConfig"
        raise Blocked("TFM164", both.place.call, message)
    if every is None:
        return plan
    steps = both.train.get("max_steps")
    period, total = draft.file.integer(every), draft.file.integer(steps)
    if reads and (period is None or total is None or total % period):
        assert plan.max_steps is not None
        text = batches(draft, every)
        epochs = f"-(-{primary(plan.max_steps)} // {primary(text)})"
        left = plan.max_steps
        if plan.resumes:
            left = f"{primary(left)} - {plan.model}.optimizer.iterations.numpy()"
        limited = f"{primary(plan.train_dataset)}.take({left})"
        return replace(plan, train_dataset=limited, period=primary(text), epochs=epochs, uneven=True)
    if period is None or total is None or total % period:
        message = "checkpoints and evaluation run at the end only: save_checkpoints_steps does not divide max_steps"
        draft.say("TFM109", every, message)
        return plan
    if draft.data.effect(both.evaluate.get("input_fn")) is Effect.DRAWS:
        message = "`fit` calls this input function once, not for each evaluation: draw random numbers outside of it"
        raise Blocked("TFM618", both.evaluate["input_fn"], message)
    text = draft.text(every)
    if may_end(draft):
        plan = replace(plan, may_end=draft.loop.own)
        if not draft.loop.own:
            message = (
                "if the data ends before `max_steps`, the Estimator stopped; `fit` restarts the data or "
                "counts a step more"
            )
            draft.say("TFM617", both.place.call, message)
    total_text = plan.max_steps or str(total)
    return replace(plan, period=text, epochs=f"{total_text} // {text}")


def callbacks(draft: Draft, arguments: Mapping[str, cst.BaseExpression]) -> tuple[str, ...]:
    """The elements of the list of callbacks that a call's hooks have become."""
    node = arguments.get("callbacks")
    if node is None:
        return ()
    if draft.target.mesh:
        raise Blocked("TFM790", node, "hooks become callbacks, which are unsupported on a mesh: leave them out")
    if draft.loop.own:
        raise Blocked("TFM735", node, "hooks become callbacks, which only `fit` calls: leave `--loop custom` out")
    new = node.visit(draft.rewriter)
    if isinstance(new, (cst.List, cst.Tuple)):
        return tuple(draft.file.code(e.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for e in new.elements)
    assert isinstance(new, cst.BaseExpression)
    text = draft.file.code(new)
    return (f"*{text}" if isinstance(new, (cst.Name, cst.Call, cst.Attribute)) else f"*({text})",)


def named(both: TrainAndEvaluate) -> str | None:
    """The name that is all that a line does with the result of train_and_evaluate."""
    small = both.place.statement.body[0] if both.place.statement is not None else None
    if isinstance(small, cst.Assign) and small.value is both.place.call and len(small.targets) == 1:
        target = small.targets[0].target
        return target.value if isinstance(target, cst.Name) else None
    return None


__all__ = ["callbacks", "make_plan", "named"]
