"""Which target a program gets: the one that is asked for, else the one that its RunConfig and its driver say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import libcst as cst

from migrator.program.by_hand import Cluster
from migrator.program.calls import bind, is_none
from migrator.program.parsed import Blocked
from migrator.program.training import TrainingProgram
from migrator.rules.generation import Keras
from migrator.targets import between_graph
from migrator.targets.registry import AUTO, ONE_DEVICE, TPU, target_of
from migrator.targets.target import Target

_GRADIENTS = re.compile(r"\.gradients\(")

# What the classes are given, by the words of the targets; of the rest, nothing has a counterpart yet.
_ARGUMENTS = {"mirrored": ("devices",), "central-storage": ("compute_devices", "parameter_device")}


def choose(program: TrainingProgram, asked: Target) -> Target:
    """The target of a program. Raises Blocked (TFM704, TFM762)."""
    cluster = program.file.clusters.get(program.variable)
    if cluster is not None:
        return _of_cluster(program, cluster, asked)
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


def for_own_loop(program: TrainingProgram, target: Target, keras: Keras, mapped: bool) -> Target:
    """The target of a program whose loop is one of its own. Raises Blocked (TFM735, TFM737)."""
    place = program.place.call
    if mapped:
        message = "a loop of the program's own is written for native models only: leave `--loop custom` out"
        raise Blocked("TFM735", place, message)
    if keras.number == 3:
        raise Blocked("TFM735", place, "a loop of the program's own is written for Keras 2: leave `--keras 3` out")
    if program.handed is not None or program.lent:
        message = "the Estimator is handed around, where a loop of its own does not go: leave `--loop custom` out"
        raise Blocked("TFM735", place, message)
    if program.model.ready:
        message = "a Keras model of the program's own has a loss that is averaged: leave `--loop custom` out"
        raise Blocked("TFM735", place, message)
    if target is AUTO:
        return ONE_DEVICE
    if target is not ONE_DEVICE and target.word != "mirrored":
        message = f"under the {target.word} strategy no loop of the program's own is written yet: `--loop fit`"
        raise Blocked("TFM737", place, message)
    distribute = program.config.get("train_distribute")
    if distribute is not None and target is not ONE_DEVICE:
        message = "each replica of this Estimator draws whole batches, for which no loop is written yet: `--loop fit`"
        raise Blocked("TFM737", distribute, message)
    return target


def for_fit(program: TrainingProgram, target: Target, texts: Iterable[str]) -> Target:
    """The target of a program that `fit` trains; `texts` are those of its files. Raises Blocked (TFM704).

    Measured on TensorFlow 1.15.5 and 2.15.1 under a MirroredStrategy of two replicas: an Estimator drops the last round
    of batches where not every replica gets one, divides the regularizers of layers by the replicas, which `fit` does
    not, and does not scale what `tf.gradients` gives. Cuts of the data by an `input_context` are not carried over.
    """
    distribute = program.config.get("train_distribute")
    place = program.place.call if distribute is None else distribute
    if target.word in ("mirrored", "central-storage"):
        message = (
            f"under the {target.word} strategy `fit` does not train as an Estimator does on several devices: train on "
            "one (`--strategy one-device`), or divide its batches with `--strategy mirrored --loop custom`"
        )
        raise Blocked("TFM704", place, message)
    if distribute is None or target is ONE_DEVICE:
        return target
    for text in texts:
        if "input_context" in text:
            message = (
                "an input function takes an `input_context`, which is not carried over: shard its data by TF_CONFIG"
            )
            raise Blocked("TFM704", distribute, message)
        if _GRADIENTS.search(text):
            message = "an Estimator does not scale the gradients of `tf.gradients` by its replicas: use `minimize`"
            raise Blocked("TFM704", distribute, message)
    return target


def _of_cluster(program: TrainingProgram, cluster: Cluster, asked: Target) -> Target:
    """The target of a program that makes its cluster by hand."""
    target = between_graph.target(cluster)
    if asked is not AUTO and asked.word != target.word:
        message = f"this program makes its own cluster, which becomes `{target.word}`: leave `--strategy` out"
        raise Blocked("TFM762", program.place.call, message)
    for use in program.uses:
        if is_none(use.arguments.get("max_steps")):
            message = (
                "how many steps all workers take together is not said: give the session StopAtStepHook(last_step=n)"
            )
            raise Blocked("TFM762", program.place.call, message)
    for _, hooks in program.hooks:
        if hooks.stops or (target.parameter_servers and (hooks.own or hooks.made)):
            message = "hooks that see every step do not work on parameter servers, nor such that end the training"
            raise Blocked("TFM762", program.place.call, message)
    return target


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
