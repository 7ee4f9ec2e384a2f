"""Classes of a project by the names that mean them."""

from __future__ import annotations

import libcst as cst

from migrator.program.parsed import ParsedFile, Project
from migrator.walking import own_of_kinds


def find_class(
    project: Project, file: ParsedFile, scope: cst.CSTNode, func: cst.BaseExpression
) -> tuple[ParsedFile, cst.ClassDef] | None:
    """The class that a name (or `module.name`) means: of the scope, of the file, or of a file beside it."""
    if isinstance(func, cst.Name):
        for place in (scope, file.module):
            # At the top of a module classes of functions are not seen.
            inner = (cst.ClassDef, cst.FunctionDef) if place is file.module else (cst.ClassDef,)
            named = own_of_kinds(place, cst.ClassDef, inner=inner)
            found = [one for one in named if one.name.value == func.value]
            if len(found) == 1:
                return file, found[0]
            if found:
                return None
    origin = file.imports.resolve(func)
    if origin is None or "." not in origin:
        return None
    module, _, name = origin.rpartition(".")
    if isinstance(func, cst.Name) and func.value in file.imports.relative:
        module = file.imports.relative[func.value][1].rpartition(".")[0]
    other = project.sibling(file, module) if module else None
    if other is None:
        return None
    found = [s for s in other.module.body if isinstance(s, cst.ClassDef) and s.name.value == name]
    return (other, found[0]) if len(found) == 1 else None


def methods_named(project: Project, name: str) -> list[tuple[ParsedFile, cst.FunctionDef]]:
    """The methods of a name, of whatever class at the top of a file."""
    return [
        (file, method)
        for file in project.files
        for owner in file.module.body
        if isinstance(owner, cst.ClassDef)
        for method in owner.body.body
        if isinstance(method, cst.FunctionDef) and method.name.value == name
    ]
