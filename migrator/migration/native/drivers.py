"""The lines that drive Estimators, as those of Keras programs."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator.emit.driver.draft import Asked, DrivenModel
from migrator.emit.driver.driver import EmittedDriver, emit_driver
from migrator.emit.flowing import check_model, emit_flowing
from migrator.migration import partitioning, servers, workers
from migrator.migration.native.executions import executes_apart, many_on_clusters, steps_of_servers, takes_steps
from migrator.migration.native.strategies import strategy_of
from migrator.migration.state import GroupState
from migrator.program.calls import calls_in
from migrator.program.exports import Signatures
from migrator.program.parsed import Blocked
from migrator.program.region import reach
from migrator.program.scopes import path_to
from migrator.program.training import TrainingProgram
from migrator.rules import rebinding
from migrator.rules.executions import (
    STEPS_OF_EXECUTION,
)
from migrator.rules.optimizers import is_optimizer
from migrator.targets import dtensor
from migrator.targets.choosing import divides_batches, own_strategy
from migrator.targets.chosen import check_files
from migrator.targets.plan import Target
from migrator.targets.registry import AUTO
from migrator.targets.setup import RATE, RATE_ON_KERAS3, RATES_OF_PARTS


def place_helpers(state: GroupState) -> None:
    """Says where the functions go that drivers need."""
    for program in state.group.programs:
        changes = state.changes[program.file.path]
        if changes.helpers_before is None:
            gone = state.rewriters[program.file.path].is_gone
            scoped = state.scoped.get(program.place.call)
            first = scoped.first if scoped is not None and scoped.runs else program.place.call
            changes.helpers_before = _top_level(program.file.module, first, gone)


def write_driver(state: GroupState, program: TrainingProgram) -> None:
    """The lines that drive an Estimator become those of a Keras program. Raises Blocked."""
    emitted, _ = state.models[program.model_fn]
    file = program.file
    strategy = strategy_of(state, program)
    _check_strategy(state, program, strategy)
    _check_choice(state, program)
    if any(p.place is program.place for p in state.drivers):
        return  # the same lines drive another model_fn too
    if program.flowing is not None:
        _write_flowing(state, program, strategy)
        state.strategies.append(strategy)
        return
    state.drivers.append(program)
    if strategy.mesh:
        strategy = partitioning.on_mesh(state, program, emitted, strategy)
        if emitted.draws or state.draws:
            strategy = dtensor.drawing(strategy)
            message = "dropout layers draw from one generator per device, each for its part of a tensor"
            state.remarks[file.path].append(Blocked("TFM797", program.place.call, message))
    both = program.train_and_evaluate
    calls = [program.place, *(use.place for use in program.uses), *([] if both is None else [both.place])]
    read = [*(place.call for place in calls), *program.removed]
    rebinding.check_names(program.scope, rebinding.names_behind(program.scope, read))
    asked = _asked(state, program, strategy, partitioning.partitioner_of(state, program, emitted, strategy))
    own = own_strategy(program) if program.config.get("train_distribute") is not None else None
    if own is not None and own.choice is not None:
        check_files(own.choice, program, state.everything.mentioning(own.choice.names))
    names = state.names[file.path]
    driver = emit_driver(
        state.project, program, state.rewriters[file.path], names, _driven_model(state, program), asked
    )
    if driver.in_scope and emitted.outside is not None and not calls_in(program.model.callee):
        message = (
            "this optimizer is created before the strategy, which must create its variables: create it in the model_fn"
        )
        raise Blocked("TFM403", emitted.outside, message)
    _put(state, program, driver)
    _tell_files(state, strategy)
    state.remarks[file.path] += [*driver.remarks, *_remarks(state, program, strategy)]
    state.strategies.append(strategy)


def _check_strategy(state: GroupState, program: TrainingProgram, strategy: Target) -> None:
    if state.loop.own and strategy.mirrored_workers and divides_batches(program, strategy):
        workers.check_batches(state, program)
    if state.loop.own and strategy.parameter_servers:
        servers.check_data(state, program)
    if strategy.parameter_servers:
        servers.check_tasks(state, program, strategy)


def _check_choice(state: GroupState, program: TrainingProgram) -> None:
    """Refuses an Estimator of several model_fns that the same lines cannot drive. Raises Blocked (TFM105)."""
    emitted, of_dicts = state.models[program.model_fn]
    served = state.signatures.get(program.model_fn)
    shape = (emitted.has_predictor, of_dicts, program.model.parameters.params is None, served)
    if state.driven.setdefault(program.place.call, shape) != shape:
        message = "the alternative model_fns of this Estimator take or predict different things"
        raise Blocked("TFM105", program.place.call, message)


def _driven_model(state: GroupState, program: TrainingProgram) -> DrivenModel:
    emitted, of_dicts = state.models[program.model_fn]
    return DrivenModel(
        has_predictor=emitted.has_predictor,
        predictions_are_dicts=of_dicts,
        signatures=state.signatures.get(program.model_fn, Signatures()).names,
        stop=emitted.hooks.stop,
        takes_steps=takes_steps(state, program),
        loss_of_class=emitted.loss_of_class,
        loss_of_batch=emitted.loss_of_batch,
        measures=emitted.measures,
        measures_itself=emitted.measures_itself,
        scoped=state.scoped.get(program.place.call),
        rates=_rates(state, program),
        shares_penalties=program.model_fn in state.sharing_penalties,
    )


def _asked(state: GroupState, program: TrainingProgram, strategy: Target, partitioner: str | None) -> Asked:
    return Asked(
        target=strategy,
        partitioner=partitioner,
        keras=state.keras,
        loop=state.loop,
        on_servers=steps_of_servers(state, program) if executes_apart(state, program) or strategy is not AUTO else 0,
        many_steps=many_on_clusters(state, program),
        clusters=state.clusters,
    )


def _put(state: GroupState, program: TrainingProgram, driver: EmittedDriver) -> None:
    """Notes what becomes of the lines of a driver. Raises Blocked (TFM103)."""
    file, changes = program.file, state.changes[program.file.path]
    state.rewriters[file.path].before.update(driver.before)
    changes.within.update({one: within for within in driver.within for one in within.statements})
    changes.statements.update(driver.statements)
    whole = [node for node in program.removed if isinstance(node, (cst.ClassDef, cst.FunctionDef))]
    changes.moved.update(whole)  # comments and all
    for node, new in driver.expressions.items():
        if node in changes.expressions and file.code(changes.expressions[node]) != file.code(new):
            message = "this line would become different code for several Estimators passed to its function"
            raise Blocked("TFM103", node, message)
    changes.expressions.update(driver.expressions)
    changes.helpers += [one for one in driver.helpers if one not in changes.helpers]
    changes.needs |= driver.needs


def _tell_files(state: GroupState, strategy: Target) -> None:
    """All files know the Keras of the group, as whichever module is imported first must choose, and its clusters."""
    for changes in state.changes.values():
        changes.keras = state.keras
        changes.on_cluster |= strategy.reads_cluster


def _remarks(state: GroupState, program: TrainingProgram, strategy: Target) -> list[Blocked]:
    """What a user has to know of executions of several steps, and of parameter servers."""
    emitted, _ = state.models[program.model_fn]
    found = []
    steps = emitted.of_execution
    if executes_apart(state, program):
        fewer = steps_of_servers(state, program)
        message = f"without parameter servers `fit` runs {STEPS_OF_EXECUTION} steps per execution, which callbacks see"
        if fewer > 1:
            message += f"; with them {fewer}"
        found.append(Blocked("TFM725", program.place.call, message))
    if steps > 1:
        message = f"`fit` runs {steps} steps per execution: callbacks that you add see every {steps}th step"
        found.append(Blocked("TFM725", program.place.call, message))
    if strategy.parameter_servers:
        message = "on parameter servers the chief only coordinates: add one worker to keep the throughput"
        if strategy.word == "parameter-server" and program.variable not in program.file.clusters:
            message += "; TF_CONFIG must name a chief (the new program raises an error otherwise)"
        found.append(Blocked("TFM706", program.place.call, message))
    return found


def _write_flowing(
    state: GroupState,
    program: TrainingProgram,
    strategy: Target,
) -> None:
    """The object in the place of an Estimator that goes from one function to another."""
    choice = [one for one in state.group.programs if one.place is program.place]
    if any(one.model_fn not in state.models for one in choice) or len({_rates(state, one) for one in choice}) > 1:
        message = "the alternative model_fns of this Estimator differ in their optimizers"
        raise Blocked("TFM105", program.place.call, message)
    for one in choice:
        check_model(state.project, one, state.models[one.model_fn][0])
    staying = {one.place.call for one in state.group.programs if one.flowing is not None}
    if program.flowing is not None and not staying.issuperset(program.flowing.config_for):
        message = "another Estimator, which becomes different code, shares this RunConfig: give each its own"
        raise Blocked("TFM103", program.place.call, message)
    emitted, of_dicts = state.models[program.model_fn]
    rebinding.check_names(program.scope, rebinding.names_behind(program.scope, [program.place.call]))
    names, rates = state.names[program.file.path], _rates(state, program)
    beside = [one.flowing for one in state.group.programs if one.file is program.file and one.flowing is not None]
    partitioner = partitioning.partitioner_of(state, program, emitted, strategy)
    make, indent = strategy.helper, program.file.module.default_indent
    driver = emit_flowing(
        state.project,
        program,
        state.rewriters,
        emitted,
        of_dicts,
        names,
        rates,
        beside,
        None if make is None else lambda name: make(name, partitioner, indent),
        state.signatures.get(program.model_fn, Signatures()).names,
    )
    state.drivers.append(program)
    for path, new in driver.expressions.items():
        for node, expression in new.items():
            known = state.changes[path].expressions.setdefault(node, expression)
            if program.file.code(known) != program.file.code(expression):
                message = "this line would become different code for its several Estimators"
                raise Blocked("TFM103", program.place.call, message)
    changes = state.changes[program.file.path]
    changes.statements.update({line: [] for line in program.removed})
    for where, line in () if program.flowing is None else program.flowing.removed:
        state.changes[where.path].statements[line] = []
    changes.helpers += [one for one in driver.helpers if one not in changes.helpers]
    changes.needs |= driver.needs
    _tell_files(state, strategy)
    for where, remark in driver.remarks:
        state.remarks[where.path].append(remark)


def _rates(state: GroupState, program: TrainingProgram) -> str:
    """Whose learning rates a checkpoint leaves as they are, see setup.rates_kept; "" where it restores them.

    Rates of tf.train optimizers are part of a program. Those of Keras optimizers were variables, which an Estimator
    saved and restored (TensorFlow 1.15.5).
    """
    nodes = reach(state.project, program.model_file, program.model_fn)
    nodes |= {program.scope: program.file} if program.model.ready else {}
    names = {file.imports.tensorflow(call.func) or "" for node, file in nodes.items() for call in calls_in(node)}
    trains = any(name.startswith("tf.train.") and is_optimizer(name) for name in names)
    if any(is_optimizer(name) and not name.startswith("tf.train.") for name in names) or (
        program.model.ready and not trains
    ):
        return ""
    if state.keras.number == 3:
        return RATE_ON_KERAS3
    parts = any(".parts = [" in text for text in state.training[program.model_file.path].helpers.values())
    return RATES_OF_PARTS if parts else RATE


def _top_level(
    module: cst.Module, node: cst.CSTNode, is_gone: Callable[[cst.CSTNode], bool] = lambda statement: False
) -> cst.CSTNode | None:
    """Where helper functions go: before the top-level code that holds a node, after the functions above it.

    A statement that is removed cannot be the place.
    """
    path = path_to(module, node)
    if len(path) < 2:
        return None
    first = index = next(i for i, statement in enumerate(module.body) if statement is path[1])
    while first > 0 and isinstance(module.body[first - 1], cst.SimpleStatementLine):
        first -= 1
    behind_function = first > 0 and isinstance(module.body[first - 1], (cst.FunctionDef, cst.ClassDef))
    start = first if behind_function else index
    return next((s for s in module.body[start:] if not is_gone(s)), None)
