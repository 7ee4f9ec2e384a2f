"""Serving functions of the exports of a group."""

from __future__ import annotations

import libcst as cst

from migrator.migration.everything import mentions_of_functions
from migrator.migration.state import GroupState
from migrator.program.exports import Form, Serving, Signatures, joined, read_serving, serving_maker, servings_of
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.shared import SERVING
from migrator.program.training import TrainingProgram


def write_servings(state: GroupState, program: TrainingProgram) -> None:
    """Serving functions become functions of the predictor."""
    if program.model_fn not in state.models:
        return
    given = [one for serving in program.servings for one in servings_of(state.project, *serving)]
    for where, scope, node in given:
        only_here = _check_maker(state, where, node)
        signatures = state.signatures.get(program.model_fn, Signatures())
        serving = read_serving(
            state.project,
            where,
            scope,
            node,
            not state.models[program.model_fn][1]
            and not program.model.ready,  # which answers by the names of its outputs
            lambda file: (state.rewriters[file.path], state.changes[file.path].expressions),
            signatures,
        )
        state.changes[serving.file.path].statements[serving.node] = [_shared(state, program, where, node, serving)]
        if only_here is not None:
            state.serving_files[serving.file.path] = SERVING
            if only_here:
                never_there = {*SERVING, *state.only_exported.get(serving.file.path, ())}
                state.only_exported[serving.file.path] = never_there


def _shared(
    state: GroupState, program: TrainingProgram, where: ParsedFile, node: cst.BaseExpression, serving: Serving
) -> cst.FunctionDef:
    """The serving function for all of its Estimators so far. Raises Blocked (TFM142) where they are not told apart."""
    keys = state.signatures.get(program.model_fn, Signatures()).keys
    forms = state.served.setdefault(serving.node, [])
    known = next((form for form in forms if form.function.deep_equals(serving.new)), None)
    if known is None:
        forms.append(Form(serving.new, [keys]))
    else:
        known.keys.append(keys)
    made = joined(forms)
    if made is not None:
        return made
    if where is program.file:
        message = "Estimators of different signatures share this serving function: give each its own"
        raise Blocked("TFM142", node, message)
    place = f"{where.path.name}:{where.position(node)[0]}"
    message = f"Estimators of different signatures share the serving function at {place}: give each its own"
    raise Blocked("TFM142", program.place.call, message)


def _check_maker(state: GroupState, file: ParsedFile, node: cst.BaseExpression) -> bool | None:
    """Whether a function that makes a serving function serves nothing but the exports of these programs.

    None where no function makes it.
    """
    made = serving_maker(state.project, file, node) if isinstance(node, cst.Call) else None
    if made is None:
        return None
    given = {one.func for p in state.group.programs for _, _, one in p.servings if isinstance(one, cst.Call)}
    mentions = mentions_of_functions(state.project, state.everything, {made[1]})
    for where, mention in mentions:
        if mention not in given | state.everything.serving:
            message = f"`{made[1].name.value}` is also used at {where.path}:{where.position(mention)[0]}"
            raise Blocked("TFM142", node, f"{message}: give the export a serving function of its own")
    return all(mention in given for _, mention in mentions)
