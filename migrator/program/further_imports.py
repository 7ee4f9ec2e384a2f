"""Imports that a file needs once statements of another file stand in it."""

from __future__ import annotations

import libcst as cst

from migrator.names.bindings import Binding, read_bindings
from migrator.names.imports import dotted
from migrator.program.parsed import ParsedFile, Project, names_in


def import_of(project: Project, file: ParsedFile, other: ParsedFile, name: str) -> str | None:
    """The line by which `file` gets what `other` calls `name`, where that is safe; None where it is not.

    It is not where `file` uses the name otherwise, where `other` does not give it once and for all at its top level,
    or where the import could close a circle of files.
    """
    if name in names_in(file.module) | {binding.name for binding in read_bindings(file.module)}:
        return None
    bound = [binding for binding in read_bindings(other.module) if binding.name == name and binding.is_global]
    if len(bound) != 1:
        return None
    if bound[0].origin is None:
        return _from_there(file, other, bound[0])
    return _as_there(project, file, other, bound[0])


def origin_of(line: str) -> str:
    """What the name that an import line binds stands for: `a.b` for `from a import b`."""
    return next(binding.origin or "" for binding in read_bindings(cst.parse_module(line)))


def _from_there(file: ParsedFile, other: ParsedFile, binding: Binding) -> str | None:
    """`from other import name`, spelled as `file` spells it for another name of `other`."""
    if not (binding.is_plain or isinstance(binding.node, (cst.FunctionDef, cst.ClassDef))):
        return None
    for known in read_bindings(file.module):
        node = known.node
        if not isinstance(node, cst.ImportFrom) or not known.is_global or isinstance(node.names, cst.ImportStar):
            continue
        if any(dotted(alias.name) in other.names_at_top for alias in node.names) and _is_of(file, node, other):
            return file.code(node.with_changes(names=[cst.ImportAlias(cst.Name(binding.name))], lpar=None, rpar=None))
    return None


def _is_of(file: ParsedFile, node: cst.ImportFrom, other: ParsedFile) -> bool:
    """Whether `from module import ...` means a file: the end of its path is the module's name."""
    parts = (dotted(node.module) or "").split(".")
    path = other.path.parent if other.path.stem == "__init__" else other.path.with_suffix("")
    if node.relative and len(node.relative) == 1 and other.path.parent != file.path.parent:
        return False
    return parts != [""] and list(path.parts[-len(parts) :]) == parts


def _as_there(project: Project, file: ParsedFile, other: ParsedFile, binding: Binding) -> str | None:
    """The import of `other` that binds a name, alone."""
    node = binding.node
    if not isinstance(node, (cst.Import, cst.ImportFrom)) or isinstance(node.names, cst.ImportStar):
        return None
    lines = [line.body for line in other.module.body if isinstance(line, cst.SimpleStatementLine)]
    if not any(node is small for line in lines for small in line):
        return None  # only on some condition
    if binding.level and file.path.parent != other.path.parent:
        return None
    alone = next((alias for alias in node.names if _name_of(alias) == binding.name), None)
    if alone is None or _closes_circle(project, file, other, node, alone):
        return None
    names = [alone.with_changes(comma=cst.MaybeSentinel.DEFAULT)]
    if isinstance(node, cst.ImportFrom):
        node = node.with_changes(lpar=None, rpar=None)
    return other.code(node.with_changes(names=names))


def _name_of(alias: cst.ImportAlias) -> str:
    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
        return alias.asname.name.value
    return (dotted(alias.name) or "").partition(".")[0]


def _closes_circle(
    project: Project, file: ParsedFile, other: ParsedFile, node: cst.Import | cst.ImportFrom, alias: cst.ImportAlias
) -> bool:
    """Whether what is imported is a file that imports `file`, by way of others too."""
    name = dotted(alias.name) or ""
    module = dotted(node.module) or "" if isinstance(node, cst.ImportFrom) else name
    modules = [module, f"{module}.{name}"] if isinstance(node, cst.ImportFrom) else [module]
    todo = [found for one in modules if one and (found := project.sibling(other, one)) is not None]
    seen: list[ParsedFile] = []
    while todo:
        one = todo.pop()
        if one is file:
            return True
        if any(one is known for known in seen):
            continue
        seen.append(one)
        origins = {*one.imports.names.values(), *(o.rpartition(".")[0] for o in one.imports.names.values())}
        todo += [found for o in origins if o and (found := project.sibling(one, o)) is not None]
    return False


__all__ = ["import_of", "origin_of"]
