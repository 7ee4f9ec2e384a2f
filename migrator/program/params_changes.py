"""Whether the params of an Estimator change after it was made, which copied them: its model_fn never saw that."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.program.calls import calls_in
from migrator.program.parsed import ParsedFile, Project, names_in
from migrator.program.scopes import path_to
from migrator.walking import of_kinds, walk

_DEPTH = 5
_METHODS = frozenset(
    ("update", "pop", "popitem", "setdefault", "clear", "append", "extend", "insert", "remove", "sort", "add")
) | frozenset(("parse", "parse_json", "set_hparam", "add_hparam", "del_hparam", "override_from_dict", "reverse"))


def changes_later(project: Project, file: ParsedFile, params: cst.BaseExpression, call: cst.Call) -> bool:
    """Whether the object that an Estimator's `call` is given as its params may be changed after that call."""
    if not isinstance(params, (cst.Name, cst.Attribute, cst.Subscript)):
        return False  # it is made there
    objects = _other_names(file, file.code(params))
    around = path_to(file.module, call)
    for node in _changes(project, file, file.module, objects):
        if call not in path_to(file.module, node) and not _runs_before(file, node, call, around):
            return True
    return False


def changes_own(project: Project, file: ParsedFile, function: cst.FunctionDef, parameter: str | None) -> bool:
    """Whether a function changes the object that one of its parameters is."""
    if parameter is None:
        return False
    return next(_changes(project, file, function, {parameter}), None) is not None


def changed_anew(
    project: Project, file: ParsedFile, function: cst.FunctionDef, parameter: str, depth: int = 0
) -> cst.CSTNode | None:
    """Where a function changes the object of a parameter into something that depends on how often it was called."""
    finder = _Changed(file, {parameter})
    walk(function, finder)
    for node in finder.found:
        assigned = file.parents.get(file.parents.get(node, node))
        if not isinstance(assigned, cst.Assign) or parameter in names_in(assigned.value):
            return node
    for call, other, inner, name in _given_on(project, file, function, {parameter}) if depth < _DEPTH else ():
        if changed_anew(project, other, inner, name, depth + 1) is not None:
            return call
    return None


def _other_names(file: ParsedFile, text: str) -> set[str]:
    """The names and expressions of a file that are the same object, as far as plain assignments tell."""
    found = {text}
    given = [
        (file.code(target.target), file.code(one.value))
        for one in of_kinds(file.module, cst.Assign)
        if isinstance(one.value, (cst.Name, cst.Attribute, cst.Subscript))
        for target in one.targets
    ]
    while True:
        more = {b for a, b in given if a in found} | {a for a, b in given if b in found}
        if more <= found:
            return found
        found |= more


def _changes(
    project: Project, file: ParsedFile, root: cst.CSTNode, objects: set[str], depth: int = 0
) -> Iterator[cst.CSTNode]:
    """Where some objects, or what is in them, are changed; also by functions that are given one."""
    finder = _Changed(file, objects)
    walk(root, finder)
    yield from finder.found
    for call, other, function, name in _given_on(project, file, root, objects) if depth < _DEPTH else ():
        if next(_changes(project, other, function, {name}, depth + 1), None) is not None:
            yield call


def _given_on(
    project: Project, file: ParsedFile, root: cst.CSTNode, objects: set[str]
) -> Iterator[tuple[cst.Call, ParsedFile, cst.FunctionDef, str]]:
    """The calls that give one of some objects to a function of the project, and what it is called there."""
    for call in calls_in(root):
        function = project.function(file, call.func)
        names = [] if function is None else [param.name.value for param in function[1].params.params]
        for index, arg in enumerate(call.args):
            name = arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else None
            if function is not None and name is not None and file.code(arg.value) in objects:
                yield call, *function, name


class _Changed(cst.CSTVisitor):
    def __init__(self, file: ParsedFile, objects: set[str]) -> None:
        super().__init__()
        self.file = file
        self.objects = objects
        self.found: list[cst.CSTNode] = []

    def _is_of(self, node: cst.BaseExpression) -> bool:
        while True:
            if self.file.code(node) in self.objects:
                return True
            if not isinstance(node, (cst.Attribute, cst.Subscript)):
                return False
            node = node.value

    def _set(self, target: cst.BaseExpression) -> None:
        if isinstance(target, (cst.Attribute, cst.Subscript)) and self._is_of(target.value):
            self.found.append(target)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._set(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._set(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._set(node.target)

    def visit_Del(self, node: cst.Del) -> None:
        self._set(node.target)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS and self._is_of(node.func.value):
            self.found.append(node)
        if isinstance(node.func, cst.Name) and node.func.value == "setattr" and node.args:
            if self._is_of(node.args[0].value):
                self.found.append(node)


def _runs_before(file: ParsedFile, node: cst.CSTNode, call: cst.Call, around: list[cst.CSTNode]) -> bool:
    """Whether a node only runs before a call: above it in the same function, without a loop around both."""
    path = path_to(file.module, node)
    inside = [[n for n in one if isinstance(n, (cst.FunctionDef, cst.Lambda))] for one in (path, around)]
    if inside[0] != inside[1]:
        return False
    shared = [a for a, b in zip(path, around) if a is b]
    if any(isinstance(n, (cst.For, cst.While)) for n in shared):
        return False
    first, second = path[len(shared)], around[len(shared)]
    children = list(shared[-1].children)
    return children.index(first) < children.index(second)


__all__ = ["changed_anew", "changes_later", "changes_own"]
