"""What is said of a driver: where the new program does something otherwise than the Estimator did."""

from __future__ import annotations

from migrator.emit.driver.draft import Draft
from migrator.program.parsed import Blocked
from migrator.program.ready_scopes import is_mean
from migrator.rules.batches import LOSS_OF_EXAMPLES, whole_batches
from migrator.rules.executions import ends_early
from migrator.rules.tpu_operations import told_on_tpu
from migrator.targets.choosing import uses_local_gpus
from migrator.targets.plan import TrainingPlan
from migrator.targets.registry import TPU

_ON_TPU = "the new program trains on the TPU that it asks for: test it there before you rely on it"


def tell(draft: Draft, plan: TrainingPlan) -> None:
    """Adds the remarks. Raises Blocked (TFM721) for an evaluation that would have another loss."""
    program, place, both = draft.program, draft.program.place.call, draft.program.train_and_evaluate
    if both is not None and any(hooks.stops for phase, hooks in program.hooks if phase == "train"):
        message = "a hook stops the training: the new program runs on one device, whatever TF_CONFIG says"
        draft.say("TFM166", both.place.call, message)
    if draft.target is TPU:
        _of_tpu(draft)
    _of_loss(draft)
    if plan.model_dir is not None:
        where = "`tf-migrate checkpoint` converts them"
        message = f"Estimator checkpoints in the `model_dir` are not loaded: {where}"
        if plan.loop.own:
            message = (
                "Estimator checkpoints in the `model_dir` are not loaded, and cannot be converted for a custom loop"
            )
        draft.say("TFM850", place, message)
    if draft.target.per_replica and not plan.loop.own:
        _of_replicas(draft, plan)
    own = draft.own
    if draft.model.scoped is not None and own is not None and (plan.evaluates_apart or draft.target.mirrored_workers):
        message = "the Estimator logged its loss divided by the number of replicas; the new program logs it undivided"
        draft.say("TFM729", place, message)
    if plan.averages:
        message = "moving averages become the mean over the replicas; an Estimator's first replica counted a batch more"
        draft.say("TFM722", place, message)
    if own is not None and draft.target.word == "multi-worker-mirrored" and uses_local_gpus(program, own):
        message = (
            "without TF_CONFIG the new program trains on one device, where the strategy took all GPUs of the "
            "machine: use `--strategy mirrored` for one machine, or a TF_CONFIG with one worker"
        )
        draft.say("TFM759", own.call, message)
    if both is not None and draft.target.reads_cluster:
        if plan.model_dir is None and not plan.clusters.coordinates:
            draft.say("TFM112", place, "without a model_dir the evaluator task finds no checkpoints and exits")
        for use in program.all_uses:
            message = f"on a cluster every task runs this `{use.method}` after train_and_evaluate, which is untested"
            draft.say("TFM704", use.place.call, message)


def _of_tpu(draft: Draft) -> None:
    """What is said of a program for TPUs."""
    draft.remarks += told_on_tpu(draft.project, draft.program)
    tpu = draft.program.tpu
    if tpu is None:
        return
    draft.say("TFM440", tpu.place, _ON_TPU)
    draft.remarks += tpu.remarks
    if not any("CrossShardOptimizer" in file.bare for file in draft.project.files):
        message = "no CrossShardOptimizer: each core trained on its own gradients, which are now summed"
        draft.say("TFM444", tpu.place, message)
    if tpu.iterations is not None and not draft.model.takes_steps and not draft.loop.own:
        message = "steps_per_execution is 1: the function that builds the model has no parameter for it"
        draft.say("TFM445", tpu.iterations, message)


def _of_loss(draft: Draft) -> None:
    """Says where the loss of an evaluation is that of examples, and a last batch may have fewer than the others."""
    program = draft.program
    if draft.loop.own or draft.model.loss_of_batch:
        return
    both = program.train_and_evaluate
    evaluations = [(both.place.call, both.evaluate)] if both is not None else []
    evaluations += [(use.place.call, use.arguments) for use in program.all_uses if use.method == "evaluate"]
    for place, arguments in evaluations:
        if not whole_batches(draft.project, program, arguments.get("input_fn"), "eval"):
            draft.say("TFM303", place, LOSS_OF_EXAMPLES)
            return


def _of_replicas(draft: Draft, plan: TrainingPlan) -> None:
    """What is said where `fit` trains several replicas."""
    program, place = draft.program, draft.program.place.call
    evaluates = program.train_and_evaluate is not None or any(use.method == "evaluate" for use in program.all_uses)
    if evaluates and not plan.evaluates_apart:
        of_batch = draft.model.scoped is not None and not is_mean(program, draft.model.scoped)
        if draft.model.loss_of_batch or of_batch:
            message = "evaluation would split batches whose loss may be a sum: set `eval_distribute`, too"
            raise Blocked("TFM721", place, message)
        message = "evaluation splits each batch among the replicas, where the Estimator evaluated on one device"
        draft.say("TFM709", place, message)
    if draft.own is None:
        draft.say("TFM724", place, "a step takes a whole batch per replica, where the Estimator took one batch")
    if not plan.counted and ends_early(draft.project, program):
        message = "if the data ends before the requested steps, the optimizer counts one step too many"
        draft.say("TFM723", place, message)


__all__ = ["tell"]
