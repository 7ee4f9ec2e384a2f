"""The collection `tf.GraphKeys.UPDATE_OPS`: a list that layers add to while the graph is built, not a fact of a file.

Reading it gives the updates of the moving averages that were added before that line, and they run only where something
that runs waits for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.names.bindings import names_changed
from migrator.names.imports import dotted
from migrator.program.assignments import assignments
from migrator.program.calls import calls_in, is_none, parameters_of, string
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


def only_under(project: Project | None, file: ParsedFile, function: cst.FunctionDef, test: cst.BaseExpression) -> bool:
    """Whether all updates of a model_fn come from layers under `if test:`, a test of one of its parameters (or a part
    of it: `params.norm`, `params["norm"]`) that is the same wherever it stands: functions get it under its name.
    """
    root = test
    while isinstance(root, cst.Attribute) or (isinstance(root, cst.Subscript) and _is_entry(root)):
        root = root.value
    if not isinstance(root, cst.Name):
        return False
    name, text = root.value, file.code(test)
    region = {function: file, **(reach(project, file, function) if project is not None else {})}
    for node, where in region.items():
        found = [call for call in calls_in(node) if _normalizes(where, call)]
        if found and not all(_is_under(where, node, call, text) for call in found):
            return False
        if not found:
            continue
        if not isinstance(node, cst.FunctionDef) or not _keeps(node, name):
            return False
        if node is not function and not all(_passes_on(caller, node, name) for caller in region):
            return False
    return True


def _is_entry(node: cst.Subscript) -> bool:
    """Whether a key is written out."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return isinstance(index, cst.Index) and string(index.value) is not None


def _is_under(file: ParsedFile, function: cst.CSTNode, call: cst.Call, text: str) -> bool:
    """Whether a call stands in the body of an `if` of a test, in the function itself."""
    inner: cst.CSTNode = call
    above = file.parents.get(inner)
    while above is not None and inner is not function:
        if isinstance(above, cst.If) and inner is above.body and file.code(above.test) == text:
            return True
        if isinstance(above, (cst.FunctionDef, cst.Lambda)) and above is not function:
            return False
        inner, above = above, file.parents.get(above)
    return False


def _keeps(function: cst.FunctionDef, name: str) -> bool:
    """Whether a name is a parameter of a function, which changes neither it nor a part of it."""
    return name in {one.name.value for one in parameters_of(function)} and name not in names_changed([function.body])


def _passes_on(caller: cst.CSTNode, function: cst.FunctionDef, name: str) -> bool:
    """Whether every call of a function gives it a name of the caller's under that name."""
    names = [one.name.value for one in parameters_of(function)]
    for call in calls_in(caller):
        last = (dotted(call.func) or "").rpartition(".")[2]
        if last != function.name.value:
            continue
        given = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == name]
        positional = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        if not given and names.index(name) < len(positional):
            given = [positional[names.index(name)]]
        if len(given) != 1 or not isinstance(given[0], cst.Name) or given[0].value != name:
            return False
        if not isinstance(caller, cst.FunctionDef) or not _keeps(caller, name):
            return False
    return True


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
