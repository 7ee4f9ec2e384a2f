"""Keras models of a program's own under a strategy: whether the model can be made in the scope of the new one."""

from __future__ import annotations

import builtins

import libcst as cst

from migrator.names.bare import says
from migrator.names.bindings import values_given
from migrator.program.calls import calls_in, is_none
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.ready_scopes import OTHERS, Scoped, scoped_model
from migrator.program.region import attributes_of, reach, references
from migrator.program.scopes import bindings, path_to, rebound
from migrator.program.training import TrainingProgram
from migrator.targets.choosing import OwnStrategy, own_strategy
from migrator.targets.plan import Target

_LATE = "but the model is created in its scope: move this before the model"
_EARLY = "but the model is created in its scope: create the strategy before the model, or move this before both"
# What tells of devices, or of the cluster, or which TensorFlow this is.
_DEVICES = (
    *("tf.config.", "tf.distribute.experimental_set_", "tf.enable_", "tf.disable_", "tf.debugging.set_log_device"),
    *("tf.Session", "tf.InteractiveSession", "tf.tpu.", "tf.load_", "tf.keras.backend.set_session", "tf.test."),
)
_RUNS_OTHERS = frozenset(("exec", "eval", "__import__", "compile", "breakpoint", "setattr", "delattr", "globals"))
_STARTS_OTHERS = frozenset(("importlib", "runpy", "ctypes", "code", "pdb", "imp", "pkgutil", "functools", "threading"))
_SETS = ("os.environ", "os.putenv", "os.unsetenv", "os.environb")
_OF_LAYERS = ("add_weight", "add_variable", "add_loss", "add_metric")
# Methods of what a function is given: arrays, tensors, strings, dicts and lists.
_OF_VALUES = frozenset(
    (
        *("get", "items", "keys", "values", "append", "extend", "format", "join", "split", "strip", "lower", "astype"),
        *("reshape", "get_shape", "as_list", "mean", "sum", "std", "batch", "repeat", "map", "shuffle"),
    )
)
_READS = ("get", "items", "keys", "values", "copy")


def into_scope(project: Project, program: TrainingProgram, strategy: Target) -> Scoped:
    """The statements that go into the strategy's scope. Raises Blocked (TFM704, TFM727).

    The strategy comes before them, with all that it reads.
    """
    own = own_strategy(program) if program.config.get("train_distribute") is not None else None
    own = own if own is not None and own.target is strategy else None
    if own is not None and own.choice is not None:
        message = "the strategy is chosen at run time, and the model was created without it: choose one"
        raise Blocked("TFM727", own.call, message)
    scoped = scoped_model(project, program, own.name if own is not None and own.elsewhere else None)
    if not scoped.runs:
        return scoped
    if own is not None:
        _check_own(program, own, scoped.first)
    for setting, place in [
        *((one, program.place.call) for one in program.session.first),
        *((one, line) for line, made in program.session.lines.items() for one in made),
    ]:
        if setting.value is not None:
            _check_unchanged(program, setting.value, scoped.first, place)
    if strategy.reads_cluster:
        _check_cluster(project, program, scoped.first)
    place = program.place.call if own is None else own.line or own.call
    _check_devices(project, program, scoped.first, place)
    return scoped


def _check_own(program: TrainingProgram, own: OwnStrategy, first: cst.BaseStatement) -> None:
    """Refuses a strategy that cannot be made before the model."""
    at = program.file.position
    if own.elsewhere and own.line is not None and at(own.line) > at(first):
        raise Blocked(
            "TFM727", own.call, f"`{own.name}` is created after the model and used outside the RunConfig, {_LATE}"
        )
    _check_unchanged(program, own.call, first, own.line or own.call)


def _check_unchanged(
    program: TrainingProgram, node: cst.BaseExpression, first: cst.BaseStatement, place: cst.CSTNode
) -> None:
    """Refuses what an expression reads and is not the same before the model as it was at its place."""
    at = program.file.position
    since, until = (first, place) if at(first) < at(place) else (place, first)
    changed = rebound(program.file, program.scope, node, since, until)
    if changed is not None:
        raise Blocked("TFM727", changed[1], f"`{changed[0]}` determines the strategy, {_LATE}")


def _check_cluster(project: Project, program: TrainingProgram, first: cst.BaseStatement) -> None:
    """Refuses a TF_CONFIG that is written when the model is made already."""
    at, file = program.file.position, program.file
    path = path_to(program.scope, program.place.call)
    for node in path:
        for statement in node.body if isinstance(node, (cst.Module, cst.IndentedBlock)) else ():
            if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) or any(statement is one for one in path):
                continue
            if not at(first) <= at(statement) < at(program.place.call):
                continue
            called = [file.code(statement)]
            for call in calls_in(statement):
                function = project.function(file, call.func)
                if function is not None:
                    called += [where.code(one) for one, where in reach(project, *function).items()]
            if any(says(text, "TF_CONFIG") for text in called):
                raise Blocked("TFM727", statement, f"TF_CONFIG determines the strategy, {_LATE}")


def _check_devices(project: Project, program: TrainingProgram, first: cst.BaseStatement, place: cst.CSTNode) -> None:
    """Refuses what may decide the devices of the strategy, or its cluster, and comes behind it now."""
    at, file = program.file.position, program.file
    path = path_to(program.scope, program.place.call)
    for node in path:
        if isinstance(node, (cst.If, cst.While)) and at(first) <= at(node):
            _check_steady(project, file, program.scope, node.test, node)
        if isinstance(node, cst.With) and at(first) <= at(node):
            for item in node.items:
                _check_steady(project, file, program.scope, item, node)
        for statement in node.body if isinstance(node, (cst.Module, cst.IndentedBlock)) else ():
            if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) or any(statement is one for one in path):
                continue
            if at(first) <= at(statement) < at(place):
                _check_steady(project, file, program.scope, statement, statement)


def _check_steady(
    project: Project, file: ParsedFile, scope: cst.CSTNode, node: cst.CSTNode, place: cst.CSTNode
) -> None:
    for one, where in reach(project, file, node).items():
        local = scope if where is file else where.module
        found = _unsteady(project, where, (one, local, where.module), one)
        if found is not None:
            raise Blocked("TFM727", place, f"`{found}` may determine the devices of the strategy, {_EARLY}")


def _unsteady(project: Project, file: ParsedFile, scopes: tuple[cst.CSTNode, ...], node: cst.CSTNode) -> str | None:
    """What of a node may change the devices or the environment, as text; None where nothing does."""
    for reference in references(node):
        if file.imports.resolve(reference) in _SETS and not _is_read(node, reference):
            return file.code(reference)
    for call in calls_in(node):
        if isinstance(node, cst.ClassDef) and _is_own(node, call.func):
            continue
        if not _is_steady(project, file, scopes, call.func, 4):
            return f"{file.code(call.func)}()".strip()
    return None


def _is_own(node: cst.ClassDef, called: cst.BaseExpression) -> bool:
    """Whether a class calls a method of its own, or what calls have made in it, which are looked at."""
    if not isinstance(called, cst.Attribute) or not isinstance(called.value, cst.Name) or called.value.value != "self":
        return False
    methods = [s.name.value for s in node.body.body if isinstance(s, cst.FunctionDef)]
    if called.attr.value in methods or called.attr.value in _OF_LAYERS:
        return True
    given = [value for value in attributes_of(node) if value[0].attr.value == called.attr.value]
    return bool(given) and all(isinstance(value, cst.Call) for _, value in given)


def _is_read(node: cst.CSTNode, reference: cst.BaseExpression) -> bool:
    """Whether the environment is read only."""
    above = path_to(node, reference)[:-1]
    if above and isinstance(above[-1], cst.Attribute):
        return above[-1].attr.value in _READS
    if above and isinstance(above[-1], cst.Subscript):
        written = (cst.AssignTarget, cst.Del, cst.AugAssign)
        return not any(isinstance(one, written) for one in above[-2:-1])
    return bool(above) and isinstance(above[-1], cst.ComparisonTarget)


def _is_steady(
    project: Project, file: ParsedFile, scopes: tuple[cst.CSTNode, ...], called: cst.BaseExpression, deep: int
) -> bool:
    """Whether a call is of something known, which leaves devices and environment as they are.

    The bodies of the project's own functions and classes are looked at by themselves.
    """
    if project.function(file, called) is not None:
        return True
    name = file.imports.tensorflow(called)
    if name is not None:
        return not name.startswith(_DEVICES)
    resolved = file.imports.resolve(called)
    if resolved is not None:
        root = resolved.partition(".")[0]
        if project.sibling(file, resolved.rpartition(".")[0]) is not None:
            return resolved.rpartition(".")[2][:1].isupper()  # a class of the project
        return root in OTHERS and root not in _STARTS_OTHERS and resolved not in _SETS
    part: cst.BaseExpression = called
    while isinstance(part, (cst.Attribute, cst.Subscript, cst.Call)):
        if isinstance(part, cst.Call):
            return True  # the call inside is looked at by itself
        part = part.value
    if isinstance(part, (cst.BaseString, cst.BaseNumber, cst.List, cst.Tuple, cst.Dict, cst.BinaryOperation)):
        return True
    if not isinstance(part, cst.Name):
        return False
    if isinstance(called, cst.Attribute) and called.attr.value in _OF_VALUES:
        return True
    for scope in scopes:
        bound = [one for known, one in bindings(scope) if known == part.value and one is not scope]
        plain = [one for one in bound if not isinstance(one, (cst.Attribute, cst.Subscript))]
        if plain:
            return bool(deep) and all(_is_steady_value(project, file, scopes, one, deep - 1) for one in plain)
    builtin = isinstance(called, cst.Name) and hasattr(builtins, part.value)
    return builtin and part.value not in _RUNS_OTHERS


def _is_steady_value(
    project: Project, file: ParsedFile, scopes: tuple[cst.CSTNode, ...], bound: cst.CSTNode, deep: int
) -> bool:
    """Whether what a name is given is made by known calls, and is no function that was not looked at."""
    if isinstance(bound, (cst.FunctionDef, cst.ClassDef)):
        return True
    if not isinstance(bound, cst.Name):
        return False
    values = [value for scope in scopes for value in values_given(scope, bound.value)]
    return bool(values) and all(
        _is_object(project, file, scopes, value, deep)
        and all(_is_steady(project, file, scopes, call.func, deep) for call in calls_in(value))
        for value in values
    )


def _is_object(
    project: Project, file: ParsedFile, scopes: tuple[cst.CSTNode, ...], value: cst.BaseExpression, deep: int
) -> bool:
    """Whether a value is made by a call here, is written out, or is another name of such a value."""
    if isinstance(value, cst.IfExp):
        return all(_is_object(project, file, scopes, one, deep) for one in (value.body, value.orelse))
    if isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)):
        return is_none(value) or _is_steady(project, file, scopes, value, deep)
    known = (cst.Call, cst.BaseString, cst.BaseNumber, cst.List, cst.Tuple, cst.Dict, cst.BinaryOperation)
    return isinstance(value, known)
