"""The strategy of a program, and what it asks of the program."""

from __future__ import annotations

import libcst as cst

from migrator.migration import ready
from migrator.migration.state import GroupState
from migrator.program.parsed import Blocked
from migrator.program.ready_scopes import check_optimizers
from migrator.program.training import TrainingProgram
from migrator.rules.generation import KERAS_2
from migrator.targets.choosing import choose, draws_batches, for_mesh, for_own_loop, own_strategy
from migrator.targets.clusters import ONE_EVALUATOR
from migrator.targets.plan import Target
from migrator.targets.registry import AUTO, ONE_DEVICE


def share_strategies(state: GroupState) -> None:
    """Finds the lines that make a strategy for several Estimators of a file."""
    made: dict[cst.SimpleStatementLine, set[cst.Call]] = {}
    for program in state.group.programs:
        try:
            own = own_strategy(program)
        except Blocked:
            continue  # its driver says so
        if own is not None and own.line is not None:
            made.setdefault(own.line, set()).add(program.place.call)
            if len(made[own.line]) > 1:
                state.names[program.file.path].shared.add(own.line)


def strategy_of(state: GroupState, program: TrainingProgram) -> Target:
    """The strategy of a program. Raises Blocked (TFM704, TFM872)."""
    if program.model.ready and state.keras.number == 3:
        message = "the program's own Keras model is untested on Keras 3: leave `--keras 3` out"
        raise Blocked("TFM870", program.place.call, message)
    strategy = choose(program, state.asked)
    if program.flowing is not None and (
        strategy not in (ONE_DEVICE, AUTO) or state.loop.own or state.keras is not KERAS_2
    ):
        message = (
            "an Estimator passed between functions is supported only on one device or by TF_CONFIG, with "
            "`fit` and Keras 2"
        )
        raise Blocked("TFM704", program.place.call, message)
    if program.flowing is not None and strategy is AUTO and state.clusters != ONE_EVALUATOR:
        message = "an Estimator passed between functions needs an evaluator task: leave the option out"
        raise Blocked("TFM704", program.place.call, message)
    if program.model.ready and not strategy.alone and not strategy.mesh and not state.loop.own:
        strategy = _of_ready_model(state, program, strategy)
    if strategy.mesh:
        strategy = for_mesh(program, strategy, state.keras)
    elif state.loop.own:
        strategy = for_own_loop(program, strategy, state.keras)
        if state.asked is AUTO and any("TF_CONFIG" in file.bare for file in state.group.files.values()):
            message = "the program reads or writes TF_CONFIG: choose the `--strategy` of its loop"
            raise Blocked("TFM737", program.place.call, message)
        if state.training[program.file.path].divided and draws_batches(program, strategy):
            message = "another program in these files has no strategy, so its replicas split batches: migrate it alone"
            raise Blocked("TFM737", program.place.call, message)
    if state.keras.fits_on_clusters or strategy.fits_on_keras3 or (state.loop.own and strategy.loops_on_keras3):
        return strategy
    if strategy is not AUTO:
        message = f"this program is untested on Keras 3 under the {strategy.word} strategy: leave `--keras 3` out"
        raise Blocked("TFM872", program.place.call, message)
    if any("TF_CONFIG" in file.bare for file in state.group.files.values()):
        message = "the program reads or writes TF_CONFIG, but Keras 3 cannot fit on a cluster: leave `--keras 3` out"
        raise Blocked("TFM872", program.place.call, message)
    message = "the new program trains in its own process, whatever TF_CONFIG says"
    remark = Blocked("TFM873", program.place.call, message)
    if remark not in state.remarks[program.file.path]:
        state.remarks[program.file.path].append(remark)
    return ONE_DEVICE


def _of_ready_model(state: GroupState, program: TrainingProgram, strategy: Target) -> Target:
    """The strategy of a Keras model of the program's own, which has to be made in its scope."""
    try:
        state.scoped[program.place.call] = scoped = ready.into_scope(state.project, program, strategy)
    except Blocked as problem:
        if strategy is not AUTO or any("TF_CONFIG" in file.bare for file in state.group.files.values()):
            raise
        message = f"the new program trains in its own process, whatever TF_CONFIG says: {problem.message}"
        remark = Blocked("TFM728", program.place.call, message)
        if remark.message not in [one.message for one in state.remarks[program.file.path]]:
            state.remarks[program.file.path].append(remark)
        return ONE_DEVICE
    if strategy.in_step and strategy is not AUTO:
        check_optimizers(program, scoped)
    return strategy
