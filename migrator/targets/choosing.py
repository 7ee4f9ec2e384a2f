"""Which target a program gets: the one that is asked for, else the one that its RunConfig and its driver say."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.program.calls import bind, is_none
from migrator.program.parsed import Blocked
from migrator.program.training import TrainingProgram
from migrator.targets.registry import AUTO, ONE_DEVICE, TPU, target_of
from migrator.targets.target import Target

# What the classes are given, by the words of the targets; of the rest, nothing has a counterpart yet.
_ARGUMENTS = {"mirrored": ("devices",), "central-storage": ("compute_devices", "parameter_device")}


def choose(program: TrainingProgram, asked: Target) -> Target:
    """The target of a program. Raises Blocked (TFM704)."""
    wanted = (TPU if program.tpu is not None else _of_run_config(program) or AUTO) if asked is AUTO else asked
    if program.uses and wanted.reads_cluster and wanted is not AUTO:
        use = program.uses[0]
        message = f"only train_and_evaluate runs on a cluster so far, not a plain `{use.method}`"
        raise Blocked("TFM704", use.place.call, message)
    if program.handed is not None and wanted not in (AUTO, ONE_DEVICE):
        message = "an Estimator that is handed around trains on one device only: make and train it in one function"
        raise Blocked("TFM704", program.place.call, message)
    if any(hooks.stops for phase, hooks in program.hooks if phase == "train"):
        if wanted.reads_cluster and wanted is not AUTO:
            message = "a hook ends the training: on a cluster every worker would have to stop after the same step"
            raise Blocked("TFM704", program.place.call, message)
        return ONE_DEVICE if wanted is AUTO else wanted
    if program.model.ready:
        if wanted not in (AUTO, ONE_DEVICE):
            raise Blocked("TFM704", program.place.call, "a model that is there already is trained on one device only")
        return ONE_DEVICE
    if wanted is not AUTO:
        return wanted
    return AUTO if program.train_and_evaluate is not None else ONE_DEVICE


def strategy_arguments(program: TrainingProgram, target: Target) -> Mapping[str, cst.BaseExpression]:
    """What the program's own strategy is given, where that is one of the target. Raises Blocked (TFM704)."""
    distribute = program.config.get("train_distribute")
    if not isinstance(distribute, cst.Call) or _of_run_config(program) is not target or not distribute.args:
        return {}
    known = _ARGUMENTS.get(target.word)
    if known is None:
        raise Blocked("TFM704", distribute, "the arguments of this strategy are not carried over: leave them out")
    given = bind(distribute, known, target.classes[0], "TFM704")
    return {name: value for name, value in given.items() if not is_none(value)}


def _of_run_config(program: TrainingProgram) -> Target | None:
    """The target that `train_distribute` asks for."""
    distribute = program.config.get("train_distribute")
    if distribute is None:
        return None
    name = program.file.imports.resolve(distribute.func) if isinstance(distribute, cst.Call) else None
    target = None if name is None else target_of(name)
    if target is None:
        message = "this train_distribute is not a strategy that is made in the RunConfig: make it there"
        raise Blocked("TFM704", distribute, message)
    return target
