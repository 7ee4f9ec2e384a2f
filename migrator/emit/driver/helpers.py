"""The functions and classes beside the program that its driver calls."""

from __future__ import annotations

from functools import partial

from migrator.emit.driver.draft import Draft
from migrator.emit.driver.steps import is_counted, may_end
from migrator.emit.driver.strategy import has_averages
from migrator.program.calls import is_false, is_none
from migrator.program.parsed import Blocked
from migrator.program.training import TrainingProgram, Use
from migrator.rules.batches import check_batches, reads_batch, static_batches
from migrator.rules.datasets import runs_python
from migrator.rules.executions import know_their_sizes
from migrator.targets import dtensor, setup
from migrator.targets.choosing import divides_batches, draws_batches
from migrator.targets.plan import LoopShape
from migrator.targets.registry import TPU


def write_helpers(draft: Draft) -> None:
    """Puts them into the draft. Raises Blocked for predictions, batches and loops that they are not written for."""
    make_strategy, partitioner, indent = draft.target.helper, draft.asked.partitioner, draft.indent
    if make_strategy is not None:
        draft.helper(draft.target.helper_name, lambda name: make_strategy(name, partitioner, indent))
    if not draft.program.model.ready:
        _make_inputs(draft)
    if (draft.model.has_predictor or draft.program.model.ready) and draft.program.does("predict"):
        _predict(draft)
    if draft.program.servings:
        signatures, named = draft.model.signatures, draft.program.model.ready
        draft.helper("export_model", lambda name: setup.export_model(name, signatures, indent, named))
    if draft.loop.make is not None:
        _loop(draft)


def _make_inputs(draft: Draft) -> None:
    """The function that makes the inputs of the model from a dataset."""
    project, program, target = draft.project, draft.program, draft.target
    labelled = program.train_and_evaluate is not None or any(
        use.method in ("train", "evaluate") for use in program.all_uses
    )
    labelled = labelled and program.model.reads_labels
    whole = not (draft.datasets.divided or target is TPU or target.mesh)  # each replica is given batches of the dataset
    static = whole and reads_batch(project, program) and static_batches(project, program)
    if not static:
        check_batches(project, program)
    named = draft.keras.named_inputs
    draft.helper("make_inputs", lambda name: setup.make_inputs(name, draft.indent, labelled, named, static=static))


def _predict(draft: Draft) -> None:
    """The functions that predict: by examples, by whole batches, or both."""
    program, ready = draft.program, draft.program.model.ready
    uses = [use for use in program.all_uses if use.method == "predict"]
    of_dicts = draft.model.predictions_are_dicts
    asked = [use.arguments["predict_keys"] for use in uses if asks_for_keys(use)]
    if asked and draft.target.mesh:
        raise Blocked("TFM110", asked[0], "`predict_keys` is unsupported on a mesh")
    if asked and not (of_dicts or ready):
        raise Blocked("TFM110", asked[0], "`predict_keys` needs a model_fn whose predictions are a dict")
    for wanted in _predictions(program):
        whole = wanted == "predict_batches"
        if draft.target.mesh:
            if whole:
                use = next(use for use in uses if name_of_prediction(use) == wanted)
                node = use.arguments["yield_single_examples"]
                raise Blocked("TFM110", node, "predicting whole batches is unsupported on a mesh")
            draft.helper(wanted, lambda name: setup.predict_on_mesh(name, of_dicts, draft.indent))
            continue
        make = partial(
            setup.predict,
            of_dicts=of_dicts or ready,
            indent=draft.indent,
            callbacks=any("callbacks" in use.arguments for use in uses),
            stops=any(phase == "predict" and hooks.stops for phase, hooks in program.hooks),
            batches=whole,
            named=ready,
            keys=bool(asked),
            on_demand=runs_python(draft.project.files),
        )
        draft.helper(wanted, make)


def _loop(draft: Draft) -> None:
    """The class of a loop of the program's own."""
    project, program, target, model = draft.project, draft.program, draft.target, draft.model
    place, make_loop = program.place.call, draft.loop.make
    assert make_loop is not None
    draws = draws_batches(program, target)
    if divides_batches(program, target):
        message = "each batch is split among the replicas: a step is the same as on one device"
        draft.say("TFM736", place, message)
    if draws and target.mesh:
        draft.say("TFM798", place, "a step combines the batches of all replicas of the RunConfig's strategy")
    elif draws:
        draft.say("TFM740", place, "each replica takes whole batches, as under the RunConfig's strategy")
    if target.mesh:
        draft.say("TFM794", place, "each step runs on all devices, each with its share of the batch")
    if target.in_step and draft.keras.number == 3 and has_averages(draft):
        message = "moving averages of replicas are untested in a custom loop on Keras 3: leave `--keras 3` out"
        raise Blocked("TFM872", place, message)
    shape = LoopShape(
        of_class=model.loss_of_class,
        saves=program.model_dir is not None,
        measures=model.measures,
        evaluates=program.train_and_evaluate is not None or program.does("evaluate"),
        divides=target.in_step and not draws,
        draws=draws or target.parameter_servers,
        sized=draws and target.per_replica and know_their_sizes(project, program),
        averages=draws and target.replicas and has_averages(draft),
        on_workers=target.mirrored_workers,
        on_servers=target.parameter_servers,
        counts=is_counted(draft) and not target.parameter_servers,
        on_keras3=draft.keras.number == 3,
        of_batch=model.loss_of_batch,
        measures_itself=model.measures_itself,
        may_end=may_end(draft),
        rates=model.rates,
        shares_penalties=model.shares_penalties,
    )
    if model.shares_penalties and model.loss_of_batch:
        message = "regularizers are unsupported with a loss of whole batches: add the penalties to the loss"
        raise Blocked("TFM707", place, message)
    draft.helper("TrainingLoop", lambda name: make_loop(name, draft.indent, shape))
    draft.draws = shape.draws
    draft.iterates = target.mesh or not (shape.counts or shape.on_servers)
    if target.layouts:
        draft.helper("check_layouts", lambda name: dtensor.check_layouts(name, draft.indent))
        draft.needs.add("re")
    draft.names["loop"] = draft.free("loop")


def name_of_prediction(use: Use) -> str:
    """The function that a prediction becomes a call of: it answers by examples, or by whole batches."""
    return "predict_batches" if is_false(use.arguments.get("yield_single_examples")) else "predict"


def asks_for_keys(use: Use) -> bool:
    """Whether a prediction is asked for some of its keys only."""
    return use.method == "predict" and not is_none(use.arguments.get("predict_keys"))


def _predictions(program: TrainingProgram) -> list[str]:
    """The functions that a program needs for its predictions."""
    return sorted({name_of_prediction(use) for use in program.all_uses if use.method == "predict"})


__all__ = ["asks_for_keys", "name_of_prediction", "write_helpers"]
