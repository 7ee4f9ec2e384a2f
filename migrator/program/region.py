"""What a model_fn reaches: the functions and classes of the project that it mentions, directly or not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

import libcst as cst

from migrator.names.bindings import all_given
from migrator.program.parsed import ParsedFile, Project
from migrator.program.scopes import bindings, path_to
from migrator.walking import walk

Region = Mapping[cst.CSTNode, ParsedFile]


def reach(
    project: Project, file: ParsedFile, node: cst.CSTNode, without: Collection[cst.CSTNode] = ()
) -> dict[cst.CSTNode, ParsedFile]:
    """A function, and the functions and classes of the project that it mentions, directly or not.

    What only the nodes `without` mention is left out.
    """
    key = (file.path, node, frozenset(without))
    known = project.reached.get(key)
    if known is None or known[0] is not file:
        known = project.reached[key] = file, _reach(project, file, node, key[2])
    return dict(known[1])


def _reach(
    project: Project, file: ParsedFile, node: cst.CSTNode, without: frozenset[cst.CSTNode]
) -> dict[cst.CSTNode, ParsedFile]:
    found: dict[cst.CSTNode, ParsedFile] = {}
    queue: list[tuple[ParsedFile, cst.CSTNode]] = [(file, node)]
    around, kept = _around(file, node), _kept(file, node)
    while queue:
        where, current = queue.pop()
        if current in found:
            continue
        found[current] = where
        for reference in references(current, without):
            if where is file and (around or kept):
                spelled = file.code(reference)
                queue += [(file, function) for function in around.get(spelled, ())]
                queue += [one for value in kept.get(spelled, ()) for one in _functions_of(project, file, value)]
            if isinstance(reference, cst.Name) and reference.value in where.constants:
                queue += _functions_of(project, where, where.constants[reference.value])
            function = project.function(where, reference)
            if function is not None:
                queue.append(function)
                continue
            defined = class_of(project, where, reference)
            if defined is not None:
                queue.append(defined)
    return found


def _around(file: ParsedFile, node: cst.CSTNode) -> dict[str, list[cst.CSTNode]]:
    """Functions of the functions around a model_fn, by their names, and methods of its class, as `self.method`."""
    found: dict[str, list[cst.CSTNode]] = {}
    outer = [n for n in path_to(file.module, node) if isinstance(n, (cst.FunctionDef, cst.ClassDef)) and n is not node]
    for scope in outer:
        if isinstance(scope, cst.FunctionDef):
            for name, bound in bindings(scope):
                if isinstance(bound, cst.FunctionDef) and bound not in outer:
                    found.setdefault(name, []).append(bound)
            continue
        for statement in scope.body.body:
            if isinstance(statement, cst.FunctionDef) and statement not in outer:
                for owner in ("self", "cls", scope.name.value):
                    found.setdefault(f"{owner}.{statement.name.value}", []).append(statement)
    return found


def _kept(file: ParsedFile, node: cst.CSTNode) -> dict[str, list[cst.BaseExpression]]:
    """What methods of the class around a model_fn keep in attributes of `self`, by `self.name`."""
    found: dict[str, list[cst.BaseExpression]] = {}
    for scope in path_to(file.module, node):
        if isinstance(scope, cst.ClassDef):
            for target, value in attributes_of(scope):
                found.setdefault(file.code(target), []).append(value)
    return found


def _functions_of(
    project: Project, file: ParsedFile, value: cst.BaseExpression
) -> list[tuple[ParsedFile, cst.FunctionDef]]:
    """The functions that a name, or a dict, list or tuple of names, is or holds."""
    if isinstance(value, (cst.Dict, cst.List, cst.Tuple)):
        elements = [element.value for element in value.elements]
    else:
        found = project.function(file, value) if isinstance(value, (cst.Name, cst.Attribute)) else None
        return [] if found is None else [found]
    return [one for element in elements for one in _functions_of(project, file, element)]


def attributes_of(node: cst.CSTNode) -> list[tuple[cst.Attribute, cst.BaseExpression]]:
    """What attributes are given below a node: `self.name = value`."""
    return [(target, value) for target, value in all_given(node) if isinstance(target, cst.Attribute)]


def class_of(project: Project, file: ParsedFile, node: cst.BaseExpression) -> tuple[ParsedFile, cst.ClassDef] | None:
    """The top-level class that a name or `module.name` refers to, here or in a sibling module."""
    if isinstance(node, cst.Name) and node.value in file.classes:
        return file, file.classes[node.value]
    origin = file.imports.resolve(node)
    module, _, name = (origin or "").rpartition(".")
    other = project.sibling(file, module) if module else None
    if other is None or other is file or name not in other.classes:
        return None
    return other, other.classes[name]


class References(cst.CSTVisitor):
    """Names and dotted names that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.BaseExpression] = []

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self.found.append(node)
        walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node)


class _ReferencesOutside(References):
    """Names and dotted names that are read, those in the nodes `without` left out."""

    def __init__(self, without: Collection[cst.CSTNode]) -> None:
        super().__init__()
        self.without = without

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.without and super().on_visit(node)


@lru_cache(maxsize=4096)
def references(node: cst.CSTNode, without: frozenset[cst.CSTNode] = frozenset()) -> tuple[cst.BaseExpression, ...]:
    """Names and dotted names that are read below a node, those in the nodes `without` left out."""
    mentions = _ReferencesOutside(without) if without else References()
    walk(node, mentions)
    return tuple(mentions.found)


def symbols(region: Region) -> set[str]:
    """The TensorFlow symbols that the nodes of a region mention."""
    found: set[str] = set()
    for node, file in region.items():
        found |= {name for one in references(node) if (name := file.imports.tensorflow(one)) is not None}
    return found
