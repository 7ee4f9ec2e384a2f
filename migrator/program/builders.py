"""Functions of another file that only make an Estimator, as `build_estimator` of `model.py`, for `task.py` to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import libcst as cst

from migrator.names.bindings import dotted, read_bindings
from migrator.program.calls import calls_in
from migrator.program.parsed import ParsedFile, Project, name_nodes, names_in
from migrator.program.reductions import Edits, applied, bound_arguments, is_harmless, returned, substituted

_MADE = "tf.estimator.Estimator"


def with_builders_in_place(files: Sequence[ParsedFile], words: Mapping[Path, frozenset[str]]) -> list[ParsedFile]:
    """The files with such a construction in the place of the only call of its function, in another of the files.

    `words` are those that stand in each text of the project: a function that a third one may know stays.
    """
    made = {file.path: file for file in files}
    for path in [file.path for file in files if "Estimator(" in file.bare]:
        for function in list(made[path].functions.values()):
            changed = _in_place(made, made[path], function, words)
            made.update({file.path: file for file in changed})
    return [made[file.path] for file in files]


def _in_place(
    files: Mapping[Path, ParsedFile], file: ParsedFile, function: cst.FunctionDef, words: Mapping[Path, frozenset[str]]
) -> list[ParsedFile]:
    """The two files that change; none where the function is not only called once, by `module.function(...)`."""
    name, value = function.name.value, returned(function)
    if not isinstance(value, cst.Call) or file.imports.resolve(value.func) != _MADE or function.decorators:
        return []
    if function.asynchronous is not None or "#" in file.code(function.body) or read_bindings(function.body):
        return []
    knowing = [path for path, said in words.items() if name in said and path != file.path]
    if len(knowing) != 1 or knowing[0] not in files or not _is_once(file, name):
        return []
    caller = files[knowing[0]]
    project = Project.of(list(files.values()))
    calls = [call for call in calls_in(caller.module) if project.function(caller, call.func) == (file, function)]
    if len(calls) != 1 or [node.value for node in name_nodes(caller.module)].count(name) > 1 or _says(caller, name):
        return []
    [call] = calls
    module = call.func.value if isinstance(call.func, cst.Attribute) else None
    given = bound_arguments(function, call)
    if module is None or given is None or "#" in caller.code(call) or not all(map(is_harmless, given.values())):
        return []
    names = _names_there(file, caller, names_in(value) - set(given), module)
    if names is None:
        return []
    new = substituted(file, value, {**given, **names})
    built = {**caller.built, caller.position(call): (file.path, file.position(value))}
    edited = applied(caller, Edits(expressions={call: new}))
    made = replace(edited, built=built)
    made.keep_positions({}, edited)
    return [applied(file, Edits(lines={function: []})), made]


def _is_once(file: ParsedFile, name: str) -> bool:
    """Whether a file only defines a name."""
    return sum(one.name == name for one in read_bindings(file.module)) == 1 and _mentions(file, name) == 1


def _mentions(file: ParsedFile, name: str) -> int:
    return file.text.count(name)


def _says(file: ParsedFile, name: str) -> bool:
    """Whether a name stands in a file in another place than where it is called."""
    return _mentions(file, name) != 1


def _names_there(
    file: ParsedFile, caller: ParsedFile, names: set[str], module: cst.BaseExpression
) -> dict[str, cst.BaseExpression] | None:
    """What names of a file are in one that knows it as `module`; None where one has no name there."""
    bound = [one.name for one in read_bindings(caller.module)]
    head = (dotted(module) or "").partition(".")[0]
    if bound.count(head) != 1:
        return None
    found: dict[str, cst.BaseExpression] = {}
    for name in names:
        origin = file.imports.names.get(name)
        if origin is not None:
            same = [one for one, of in caller.imports.names.items() if of == origin and bound.count(one) == 1]
            if not same or name in file.imports.relative:
                return None
            found[name] = cst.Name(same[0])
        elif name in file.names_at_top:
            found[name] = cst.Attribute(module.deep_clone(), cst.Name(name))
        elif name in bound:
            return None
    return found
