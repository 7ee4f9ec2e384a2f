"""The data of mirrored workers that divide the batches of one device: all of them have to make the same."""

from __future__ import annotations

import libcst as cst

from migrator.migration.state import GroupState
from migrator.names.bindings import values_given
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.region import reach
from migrator.program.training import TrainingProgram
from migrator.rules.own_loops import differs, seeded_modules, sets_seed


def check_batches(state: GroupState, program: TrainingProgram) -> None:
    """Refuses batches that each worker draws for itself. Raises Blocked (TFM741) for those of other programs' files."""
    seeded = {m for file in state.group.files.values() for m in seeded_modules(file.module, file.imports)}
    if _has_seed(program):
        seeded.add("tf")
    fed = [arguments.get("input_fn") for arguments in program.trainings]
    for node in (node for node in fed if node is not None):
        for one, file in feeding(state, program, node).items():
            found = differs(one, file.imports, seeded)
            if found is not None:
                message = (
                    f"`{file.code(found)}` differs between workers, but they split each batch: set the "
                    "same seed in all workers, here or as the RunConfig's `tf_random_seed`"
                )
                if file.path not in state.group.files:
                    raise Blocked("TFM741", node, message)
                state.problems[file.path].append(Blocked("TFM741", found, message))


def _has_seed(program: TrainingProgram) -> bool:
    """Whether every worker sets the same seed before it asks for data."""
    if not is_none(program.config.get("tf_random_seed")):
        return True
    scope, module = program.scope, program.file.module
    body = [*module.body, *(scope.body.body if isinstance(scope, cst.FunctionDef) else ())]
    plain = [line for line in body if isinstance(line, cst.SimpleStatementLine)]
    made = program.file.position(program.place.call)
    return any(sets_seed(line, program.file.imports) for line in plain if program.file.position(line) < made)


def feeding(state: GroupState, program: TrainingProgram, node: cst.BaseExpression) -> dict[cst.CSTNode, ParsedFile]:
    """An input function and what it reaches, also by way of names that are given values."""
    found: dict[cst.CSTNode, ParsedFile] = {}
    queue: list[tuple[ParsedFile, cst.CSTNode]] = [(program.file, node)]
    while queue:
        where, current = queue.pop()
        if current in found:
            continue
        for one, file in reach(state.project, where, current).items():
            found[one] = file
            for name in names_in(one):
                values = [file.constants[name]] if name in file.constants else []
                if file is program.file and isinstance(program.scope, cst.FunctionDef):
                    values += values_given(program.scope, name)
                queue += [(file, value) for value in values]
    return found
