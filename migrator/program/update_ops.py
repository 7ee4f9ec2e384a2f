"""The collection `tf.GraphKeys.UPDATE_OPS`: a list that layers add to while the graph is built, not a fact of a file.

Reading it gives the updates of the moving averages that were added before that line, and they run only where something
that runs waits for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.program.assignments import assignments
from migrator.program.calls import calls_in, is_none
from migrator.program.modes import TRAIN, ModalStatement
from migrator.program.parsed import ParsedFile, Project
from migrator.program.region import reach

_ADDING = ("batch_normalization", "BatchNormalization", "batch_norm", "BatchNorm", "weighted_moving_average")


def added_later(
    project: Project | None, file: ParsedFile, statements: Sequence[ModalStatement], at: int
) -> tuple[bool, cst.CSTNode | None]:
    """Whether statements before that of index `at` add updates in training, and the first later one that does."""
    objects: set[str] = set()  # layers that are made by one statement, and add their updates where they are called
    before, later = False, None
    for index, statement in enumerate(statements):
        if TRAIN not in statement.modes:
            continue
        adds = _adds(project, file, statement.node, objects)
        before = before or (adds and index < at)
        if adds and index > at and later is None:
            later = statement.node
    return before, later


def _adds(project: Project | None, file: ParsedFile, node: cst.CSTNode, objects: set[str]) -> bool:
    """Whether a statement adds updates; the names of layers that it only makes are added to `objects`."""
    made = {value: name for name, value in assignments(node) if isinstance(value, cst.Call)}
    adding = False
    for call in calls_in(node):
        name = file.imports.resolve(call.func) or file.code(call.func)
        if name.rpartition(".")[2] == "BatchNormalization" and call in made:
            objects.add(made[call])
        elif file.code(call.func).removesuffix(".apply") in objects or _normalizes(file, call):
            adding = True
    if adding or project is None:
        return adding
    for function, where in reach(project, file, node).items():
        if function is not node and any(_normalizes(where, call) for call in calls_in(function)):
            return True
    return False


def _normalizes(file: ParsedFile, call: cst.Call) -> bool:
    """Whether a call is one of a batch normalization that collects its updates, or is given one to call."""
    name = file.imports.resolve(call.func) or ""
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    if "updates_collections" in given and is_none(given["updates_collections"]):
        return False  # they run where the layer does
    if name.endswith(_ADDING):
        return True
    passed = [file.imports.resolve(arg.value) or "" for arg in call.args]
    return any(one.endswith(_ADDING) for one in passed)
