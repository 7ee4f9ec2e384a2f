"""The strategy of a driver: the program's own, what is asked for clusters, and the lines that make it."""

from __future__ import annotations

import re
from dataclasses import replace

import libcst as cst

from migrator.emit.driver.draft import Draft
from migrator.names.bare import bare
from migrator.program.parsed import Blocked
from migrator.program.region import Region, reach
from migrator.program.tpu import TpuUse
from migrator.program.training import path_to, rebound
from migrator.rules.executions import know_their_sizes
from migrator.targets import setup, tf_config
from migrator.targets.choosing import OwnStrategy, arguments_of, own_strategy, replicas_of
from migrator.targets.chosen import in_place
from migrator.targets.clusters import ONE_EVALUATOR
from migrator.targets.plan import Target, TrainingPlan
from migrator.targets.registry import ONE_DEVICE

_AVERAGES = re.compile(r"batch_?norm|moving_?(mean|average|variance)|on_read", re.IGNORECASE)
_MODELS = re.compile(r"\bapplications\b|\bload_model|\bmodel_from_|\bfrom_config|\bclone_model")  # with what not


def strategy_lines(draft: Draft, plan: TrainingPlan) -> list[str]:
    """Lines that make the strategy; those of one that stays where the program made it are put there."""
    own = draft.own
    made = draft.target.set_up(plan) if own is None or own.choice is None else _chosen(draft, own, plan)
    if own is not None and own.line is not None and made and plan.made:
        draft.changed[own.call] = cst.parse_expression(made[-1].partition(" = ")[2])
        made = []
    return made


def _chosen(draft: Draft, own: OwnStrategy, plan: TrainingPlan) -> list[str]:
    """The line that makes a strategy which is chosen in the RunConfig; none where lines of the program do."""
    choice = own.choice
    assert choice is not None

    def text(made: cst.Call, target: Target) -> str:
        one = OwnStrategy(target, made)
        devices = arguments_of(draft.program, one, draft.text, draft.remarks)
        lines = target.set_up(replace(plan, devices=devices))
        return lines[-1].partition(" = ")[2] if lines else "tf.distribute.get_strategy()"

    if choice.nones:
        message = "a strategy of None becomes TensorFlow's default one: one device, whatever TF_CONFIG says"
        draft.say("TFM726", choice.nones[0], message)
    new = in_place(choice, text)
    draft.changed.update(new)
    if choice.value is None:
        return []
    draft.rewriter.replaced.update(new)
    return [f"{plan.strategy_name} = {draft.text(choice.value)}"]


def left_out(draft: Draft) -> OwnStrategy | None:
    """The program's own strategy, where one device is asked for instead. Raises Blocked (TFM704)."""
    wanted = draft.program.config.get("train_distribute") is not None and draft.target is ONE_DEVICE
    own = own_strategy(draft.program) if wanted else None
    if own is None:
        return None
    if own.choice is not None:
        message = "the strategy is chosen at run time, which is unsupported on one device: remove the choice"
        raise Blocked("TFM704", own.call, message)
    if own.elsewhere:
        message = f"`{own.name}` is used outside the RunConfig, and one device has no strategy: remove the other uses"
        raise Blocked("TFM704", own.call, message)
    message = "the strategy is dropped: a step takes one batch on one device, where each replica took one"
    draft.say("TFM406", own.call, message)
    return own


def with_strategy(draft: Draft, plan: TrainingPlan) -> TrainingPlan:
    """The plan with what the program's own strategy says, where that is the one of the target."""
    if draft.target.per_replica and not draft.loop.own:
        if draft.evaluates_apart and draft.keras.number == 3:
            message = "evaluating whole batches per replica is untested on Keras 3: leave `--keras 3` out"
            raise Blocked("TFM872", draft.program.config["eval_distribute"], message)
        creates = draft.keras.number == 2  # Keras 3 has no DatasetCreator
        sized = know_their_sizes(draft.project, draft.program)
        per_replica = draft.helper("per_replica", lambda name: setup.per_replica(name, draft.indent, creates, sized))
        plan = replace(plan, per_replica=per_replica)
        if has_averages(draft):
            kind = "ReplicaAverages" if creates else "replica_averages"
            make = setup.replica_averages if creates else setup.replica_averages_on_keras3
            draft.helper(kind, lambda name: make(name, draft.indent))
            plan = replace(plan, averages=draft.names[kind])
    own = draft.own
    if draft.target.mesh and draft.draws:
        own = own_strategy(draft.program)
        assert own is not None
        return replace(plan, replicas=replicas_of(draft.program, own, draft.text, draft.names["mesh"]))
    if own is None:
        return plan
    apart = draft.evaluates_apart
    if apart and draft.loop.own:
        message = "`eval_distribute` is unsupported in a custom loop: leave it out"
        raise Blocked("TFM704", draft.program.config["eval_distribute"], message)
    if own.choice is not None:
        _check_settings(draft, own)
        return replace(
            plan, strategy_name=own.name or plan.strategy_name, made=own.name is not None, evaluates_apart=apart
        )
    plan = replace(plan, devices=arguments_of(draft.program, own, draft.text, draft.remarks), evaluates_apart=apart)
    if own.name is not None:
        if own.elsewhere and draft.target.reads_cluster:
            message = f"`{own.name}` is used outside the RunConfig, before the new strategy exists"
            raise Blocked("TFM704", own.call, message)
        if own.elsewhere and any([draft.program.session.first, *draft.program.session.lines.values()]):
            message = "the strategy is created before the session settings: create it in the RunConfig"
            raise Blocked("TFM704", own.call, message)
        plan = replace(plan, strategy_name=own.name, made=own.elsewhere)
    return plan


def _check_settings(draft: Draft, own: OwnStrategy) -> None:
    """The settings of the session come before the first strategy is made. Raises Blocked (TFM704)."""
    first = own.choice.first if own.choice is not None else None
    if first is None:
        return
    program, message = draft.program, "a strategy is created before the session settings: move the settings up"
    late = [
        line
        for line, made in program.session.lines.items()
        if made and draft.file.position(line) > draft.file.position(first)
    ]
    if late:
        raise Blocked("TFM704", late[0], message)
    read = [one.value for one in program.session.first if one.value is not None]
    if not program.session.first:
        return
    if not path_to(program.scope, first):
        raise Blocked("TFM704", own.call, message)
    for value in read:
        changed = rebound(draft.file, program.scope, value, first, program.place.call)
        if changed is not None:
            raise Blocked("TFM704", changed[1], message)


def has_averages(draft: Draft) -> bool:
    """Whether the model may have moving averages, which each replica keeps by itdraft."""
    if draft.model.scoped is not None and draft.model.scoped.unknown:
        return True
    model = draft.program.model
    scoped = draft.model.scoped
    region: Region = reach(draft.project, model.file, model.function) if scoped is None else scoped.region
    texts = [bare(file.code(node)) for node, file in region.items()]
    return any(_AVERAGES.search(text) or (scoped is not None and _MODELS.search(text)) for text in texts)


def on_cluster(draft: Draft, plan: TrainingPlan) -> TrainingPlan:
    """The plan with what is asked for clusters: who evaluates there, and servers in one process.

    Raises Blocked (TFM753).
    """
    program, asked, both = draft.program, draft.asked.clusters, draft.program.train_and_evaluate
    by_hand = program.variable in program.file.clusters
    if asked.in_process and (by_hand or not draft.target.parameter_servers):
        message = "no servers start in this process: the program has no parameter servers from TF_CONFIG"
        draft.say("TFM754", program.place.call, message)
    if not draft.target.reads_cluster:
        return plan
    coordinates = asked.coordinates and both is not None
    if coordinates:
        if by_hand:
            message = "the cluster is defined by hand, where the coordinator cannot evaluate: leave the option out"
            raise Blocked("TFM753", program.place.call, message)
        if draft.loop.own and draft.target.mirrored_workers:
            message = "a custom loop on mirrored workers does not evaluate on a cluster: leave `--loop` out"
            raise Blocked("TFM753", program.place.call, message)
        if program.model.ready:
            message = "the program's own Keras model cannot be built twice: leave the evaluation out"
            raise Blocked("TFM753", program.place.call, message)
        assert both is not None
        if both.exporters:
            message = "exporters need an evaluator task: with a coordinator, export after the training"
            raise Blocked("TFM753", both.exporters[0].call, message)
        message = "on a cluster the coordinator evaluates after each period, while the workers wait"
        draft.say("TFM753", both.place.call, message)
    plan = replace(plan, clusters=asked if coordinates else ONE_EVALUATOR)
    if asked.in_process and draft.target.parameter_servers and not by_hand:
        draft.helper("create_in_process_cluster", lambda name: tf_config.start_servers(name, draft.indent))
        draft.needs |= {"os", "socket"}
        message = (
            f"without TF_CONFIG, {asked.workers} worker(s) and {asked.ps} parameter server(s) start in this process"
        )
        draft.say("TFM754", program.place.call, message)
        name = draft.names["create_in_process_cluster"]
        plan = replace(plan, start_servers=name, clusters=replace(asked, coordinates=coordinates))
    evaluates = coordinates or (both is None and not by_hand and program.does("evaluate"))
    if evaluates and not draft.loop.own:
        draft.helper("LocalCopy", lambda name: setup.local_copy(name, draft.indent))
        plan = replace(plan, local=draft.free("local"))
    if coordinates and not draft.loop.own:
        draft.helper("CoordinatorEvaluation", lambda name: setup.coordinator_evaluation(name, draft.indent))
        draft.needs.add("concurrent.futures")
        plan = replace(plan, coordinator=draft.names["CoordinatorEvaluation"])
    return plan


def resolver(draft: Draft, tpu: TpuUse | None) -> tuple[str, ...] | None:
    """The arguments of the TPU's resolver; None where the program makes it itdraft."""
    if tpu is None:
        return ()
    return None if tpu.made else tuple(draft.argument(arg) for arg in tpu.resolver)


__all__ = ["has_averages", "left_out", "on_cluster", "resolver", "strategy_lines", "with_strategy"]
