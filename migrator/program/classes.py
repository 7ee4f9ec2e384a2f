"""Classes of a project by the names that mean them."""

from __future__ import annotations

import libcst as cst

from migrator.program.parsed import ParsedFile, Project
from migrator.walking import walk


def find_class(
    project: Project, file: ParsedFile, scope: cst.CSTNode, func: cst.BaseExpression
) -> tuple[ParsedFile, cst.ClassDef] | None:
    """The class that a name (or `module.name`) means: of the scope, of the file, or of a file beside it."""
    if isinstance(func, cst.Name):
        for place in (scope, file.module):
            finder = _Classes(func.value, top=place is file.module)
            walk(place, finder)
            if len(finder.found) == 1:
                return file, finder.found[0]
            if finder.found:
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


class _Classes(cst.CSTVisitor):
    """The classes of a name in a scope; at the `top` of a module those in functions are not seen."""

    def __init__(self, name: str, top: bool) -> None:
        super().__init__()
        self.name = name
        self.top = top
        self.found: list[cst.ClassDef] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        if node.name.value == self.name:
            self.found.append(node)
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return not self.top


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
