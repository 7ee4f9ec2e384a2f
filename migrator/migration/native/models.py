"""model_fns, read and written as functions that make Keras models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import libcst as cst

from migrator.emit.mesh import called, on_mesh
from migrator.emit.model_function import emit_model_function, other_problems, ready_model
from migrator.migration import hooks
from migrator.migration.everything import FollowedModel
from migrator.migration.native.checks import (
    check_examples,
    check_moving_averages,
    check_names,
    check_programs_on_replicas,
    check_rounds,
    check_towers,
    check_unused,
)
from migrator.migration.native.executions import steps_of_fit, takes_steps
from migrator.migration.native.strategies import strategy_of
from migrator.migration.state import GroupState
from migrator.program.exports import signature_names
from migrator.program.helpers import Scope
from migrator.program.inlining import Inlined, inline_helpers
from migrator.program.keras_phase import plan_model
from migrator.program.layer_names import name_layers
from migrator.program.loss import GeneralLoss
from migrator.program.model_function import ModelFunction, read_model_function
from migrator.program.modes import EVAL, TRAIN
from migrator.program.outputs import predicts_dicts
from migrator.program.own_weights import own_weights, touches_weights
from migrator.program.parsed import Blocked
from migrator.program.refusals import Refusals
from migrator.program.region import reach
from migrator.program.training import TrainingProgram
from migrator.program.variable_names import named_layers, names_to_give
from migrator.program.variable_order import check_order
from migrator.program.variable_reads import handled, measures, order_read
from migrator.rules.site import TrainingContext
from migrator.targets import dtensor
from migrator.targets.choosing import divides_batches, draws_batches


def write_models(state: GroupState) -> None:
    """Reads all model_fns, and writes the functions that make the models in their places."""
    for program in state.group.programs:
        state.guarded(program.model_file, partial(_write_model, state, program))


def _write_model(state: GroupState, program: TrainingProgram) -> None:
    if program.model_fn in state.models:
        return
    if program.model.ready:
        state.models[program.model_fn] = ready_model(program.model_fn), False
        return
    file = program.model_file
    sharing = [p for p in state.group.programs if p.model_fn is program.model_fn]
    wants = any(p.does("predict") or p.servings for p in sharing)
    state.changes[file.path].statements[program.model_fn] = []  # not to be walked into, whatever happens below
    try:
        function = _read_model(state, program)
        if function is None:
            state.problems[file.path] += _other_problems(state, program)
            return
        state.regularized[program.model_fn] = function.regularized
        state.updating[program.model_fn] = function.train.updates
        scope = Scope.of(state.project, file, program.model_fn)
        calls = [*(s.node for s in function.statements), *(spec.call for spec in function.body.specs)]
        plan_model(state.plan, state.project, scope, function.body.names, calls, function.inlined)
        state.layer_names.update(name_layers(state.project, scope, calls, state.layer_names))
        _plan_weights(state, program, function)
        read_all = _name_variables(state, program, function, scope, calls)
        replicas = any(strategy_of(state, p).in_step and not state.loop.own for p in sharing)
        check_programs_on_replicas(state, sharing)
        emitted = emit_model_function(function, wants, _training(state, program), replicas, state.plan)
        if read_all or function.regularized:
            check_unused(state, program, function, scope, emitted, read_all)
        if state.training[file.path].divided:
            check_examples(state, program, emitted)
    except Blocked:
        state.problems[file.path] += _other_problems(state, program)
        raise
    if any(strategy_of(state, p).mesh for p in sharing):
        functions = called(state.plan.visited)
        gathers = any(dtensor.gathers(strategy_of(state, p).layouts) for p in sharing)
        emitted = on_mesh(emitted, file, program.model_fn.name, state.training[file.path].helpers, functions, gathers)
        if any(draws_batches(p, strategy_of(state, p)) for p in sharing):
            check_rounds(state, program, emitted)
    for made in function.inlined:
        if made in file.module.body:
            state.inlined.setdefault(made, (file, []))[1].append(program.model_fn)
    hooks.remove_hooks_of_specs(state, file, program, function.hooks)
    if any(p.servings for p in sharing):
        signatures = signature_names(file, function.export_outputs, function.predictions, function.define)
        state.signatures[program.model_fn] = signatures
        state.remarks[file.path] += signatures.remarks
    state.changes[file.path].statements[program.model_fn] = [emitted.node]
    state.problems[file.path] += emitted.problems
    state.remarks[file.path] += emitted.remarks
    state.changes[file.path].needs |= emitted.needs
    state.changes[file.path].classes.update(emitted.classes)
    state.models[program.model_fn] = emitted, predicts_dicts(function, state.project)


def _plan_weights(state: GroupState, program: TrainingProgram, function: ModelFunction | None = None) -> None:
    """Finds the weights that a network makes by itself; without what was read of it for the sake of its report."""
    sharing = [p for p in state.group.programs if p.model_fn is program.model_fn]
    if state.keras.number != 2 or any(strategy_of(state, p).mesh for p in sharing):
        return  # not tried there
    if function is None:
        state.own_weights.update(state.everything.own_weights(program))
        return
    given, made = program.model.parameters, function.statements
    found = own_weights(state.project, program.model_file, function.node, made, given.features, given.labels)
    state.own_weights.update(found)


def _other_problems(state: GroupState, program: TrainingProgram) -> list[Blocked]:
    """The lines of a refused model_fn that are in the way too; what other functions make is known behind it."""
    _plan_weights(state, program)
    return _problems_of_lines(state, program)


def _problems_of_lines(state: GroupState, program: TrainingProgram) -> list[Blocked]:
    return other_problems(program.model_file, program.model_fn, program.model.parameters, state.own_weights)


def _read_model(state: GroupState, program: TrainingProgram) -> ModelFunction | None:
    """A model_fn as plain data; None where it is refused, which is among the problems of its file."""
    file = program.model_file
    refusals = Refusals()
    refusals.of(lambda: check_names(state, program), None)
    refusals.of(lambda: check_towers(state, program), None)
    function = None
    if not refusals:  # where names cannot be followed, nothing is known of what is computed with them
        known = state.everything.followed.get(program.model_fn)
        parameters = program.model.parameters
        if known is None or known.file is not file or known.parameters != parameters:
            read, function = _follow_model(state, program, refusals)
            known = FollowedModel(file, parameters, read, function, tuple(refusals.found))
            state.everything.followed[program.model_fn] = known
        for problem in known.found:
            refusals.add(problem)
        function = known.function
        if function is not None and function.train.updates_keras:
            for reached in reach(state.project, file, program.model_fn).values():
                if reached.path in state.rewriters:
                    state.rewriters[reached.path].moves_averages = True
        if known.read is not None:
            state.read[program.model_fn] = known.read
    state.refuse(file, refusals)
    return None if refusals else function


def write_lambdas(state: GroupState, program: TrainingProgram) -> None:
    """Lambdas that a model_fn is made of. Raises Blocked (TFM104) where one is in a file that does not change."""
    for node, (file, new) in program.model.lambdas.items():
        if file.path not in state.rewriters:
            message = f"the model_fn is created by a lambda in {file.path.name}, which does not change with this file"
            raise Blocked("TFM104", program.place.call, message)
        rewritten = new.visit(state.rewriters[file.path])
        assert isinstance(rewritten, cst.BaseExpression)
        state.changes[file.path].expressions[node] = rewritten


def _follow_model(
    state: GroupState, program: TrainingProgram, refusals: Refusals
) -> tuple[Inlined | None, ModelFunction | None]:
    """A model_fn with its helpers in the places of their calls, and that as plain data, as far as both go."""
    file, parameters = program.model_file, program.model.parameters
    read = refusals.of(lambda: inline_helpers(state.project, program.model), None)
    if read is None:
        return None, None
    function = read_model_function(state.project, file, read.node, parameters, refusals)
    if function is not None:
        for mode in (TRAIN, EVAL):
            # The variables of a Keras model are all of them, whenever they are asked for.
            nodes = [s.node for s in function.statements if mode in s.modes]
            refusals.of(partial(check_order, state.project, file, nodes), None)
        moved = function.train.updates_keras
        refusals.of(lambda: check_moving_averages(state, program, moved), None)
    return read, function


def survey_model(state: GroupState, program: TrainingProgram) -> None:
    """Finds what stands in the way in the lines of a model_fn, whether it can be read or not."""
    if program.model_fn not in state.read:
        _read_model(state, program)
        if touches_weights(program.model_file, program.model_fn):  # nobody looks at other functions here
            _plan_weights(state, program)
        state.problems[program.model_file.path] += _problems_of_lines(state, program)


def _name_variables(
    state: GroupState, program: TrainingProgram, function: ModelFunction, scope: Scope, calls: Sequence[cst.CSTNode]
) -> bool:
    """Gives layers the names that a loss or a metric means by the names of variables, and tells whether one reads
    variables at all. Raises Blocked (TFM312)."""
    if not isinstance(function.loss, GeneralLoss):
        return False
    file = function.file
    nodes: list[cst.CSTNode] = [function.statements[i].node for i in function.loss.statements]
    nodes += [*function.loss.nodes, *(node for node in calls if measures(node, file.imports))]
    reads = handled(state.project, file, function.node, list(dict.fromkeys(nodes)))
    for code in reads:
        place = order_read(code)
        if place is not None:
            message = "a Keras model orders its variables differently: select them by name or shape"
            raise Blocked("TFM312", place if code.file is file else program.model_fn.name, message)
    layers = named_layers(state.project, scope, calls, state.layer_names)
    given = names_to_give(layers, reads, state.keras.number == 2, "" in state.layer_names.values())
    for call, name in given.items():
        if state.layer_names.get(call, name) != name:
            message = f"two model_fns need different names for this layer (`{name}` is one): split it in two functions"
            raise Blocked("TFM312", program.model_fn.name, message)
    state.layer_names.update(given)
    return bool(reads)


def _training(state: GroupState, program: TrainingProgram) -> TrainingContext:
    """What is known of the training of a program: on mirrored workers gradients are clipped before their sum."""
    strategy = strategy_of(state, program)
    sharing = [p for p in state.group.programs if p.model_fn is program.model_fn]
    known = state.training[program.model_file.path]
    return replace(
        known,
        steps_per_execution=any(takes_steps(state, p) for p in sharing),
        of_execution=min(steps_of_fit(state, p) for p in sharing),
        per_replica=strategy.in_step
        and not strategy.parameter_servers
        and not state.keras.clips_per_replica
        and not (state.loop.own and divides_batches(program, strategy)),
        resumes=any(p.model_dir is not None or p.flowing is not None for p in sharing),
        of_examples=state.loop.own,
        on_mesh=strategy.mesh,
        fused=known.fused and strategy.fuses,
    )
