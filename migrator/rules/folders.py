"""The folder of an Estimator: None, or an empty text, was a temporary one."""

from __future__ import annotations

import libcst as cst

from migrator.program.calls import calls_in, is_none, parameters_of, string
from migrator.program.parsed import ParsedFile
from migrator.program.scopes import path_to
from migrator.rules.executions import given_in

_FLAGS = ("DEFINE_string", "DEFINE_enum", "DEFINE")


def may_be_empty(
    file: ParsedFile, scope: cst.CSTNode, folder: cst.BaseExpression, asked: frozenset[str] = frozenset()
) -> bool:
    """Whether a model_dir may be None or empty when the program runs, as far as it is written down.

    That is so of a flag or an argument of the command line without a default, of a parameter whose default is None, of
    a name that is None somewhere, and of what the environment may not have. `asked` are names whose values are looked
    at already: one that is given itself (`folder = folder if folder else "model"`) is what its other values are.
    """
    if is_none(folder) or string(folder) == "":
        return True
    if isinstance(folder, cst.Attribute):
        return _is_empty_flag(file, folder.attr.value)
    if isinstance(folder, cst.Subscript):
        return False
    if isinstance(folder, cst.IfExp):
        return any(may_be_empty(file, scope, one, asked) for one in (folder.body, folder.orelse))
    if isinstance(folder, cst.BooleanOperation):
        return may_be_empty(file, scope, folder.right, asked)
    if isinstance(folder, cst.Call):
        name = file.imports.resolve(folder.func) or ""
        environment = name in ("os.environ.get", "os.getenv") or name.endswith(".environ.get")
        return environment and (len(folder.args) < 2 or may_be_empty(file, scope, folder.args[1].value, asked))
    if not isinstance(folder, cst.Name) or folder.value in asked:
        return False
    asked |= {folder.value}
    for around in reversed(path_to(file.module, scope)):
        if not isinstance(around, (cst.Module, cst.FunctionDef)):
            continue
        parameters = parameters_of(around) if isinstance(around, cst.FunctionDef) else []
        own = [one for one in parameters if one.name.value == folder.value]
        given = [one for one in given_in(around, folder.value) if isinstance(one, cst.BaseExpression)]
        if own or given:
            empty = any(one.default is not None and may_be_empty(file, scope, one.default) for one in own)
            return empty or any(may_be_empty(file, around, one, asked) for one in given)
    return False


def _is_empty_flag(file: ParsedFile, flag: str) -> bool:
    """Whether a flag of the command line has no default, or an empty one."""
    for call in calls_in(file.module):
        func = call.func.attr.value if isinstance(call.func, cst.Attribute) else None
        given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        by_place = [arg.value for arg in call.args if arg.keyword is None]
        if func in _FLAGS and string(given.get("name", by_place[0] if by_place else None)) == flag:
            default = given.get("default", by_place[1] if len(by_place) > 1 else None)
            return is_none(default) or string(default) == ""
        names = {(string(one) or "").lstrip("-").replace("-", "_") for one in by_place}
        if func == "add_argument" and (flag in names or string(given.get("dest")) == flag):
            required = given.get("required")
            positional = not any((string(one) or "-").startswith("-") for one in by_place)
            told = (isinstance(required, cst.Name) and required.value == "True") or positional
            default = given.get("default")
            return not told and (is_none(default) or string(default) == "")
    return False
