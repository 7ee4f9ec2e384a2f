"""Every place where a module binds a name: assignments, parameters, imports, loop targets and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from migrator.walking import walk


@dataclass(frozen=True)
class Binding:
    """A name and the node that binds it.

    `origin` is the dotted name that an import gives it; `is_global` says that the name is one of the module, and
    `is_plain` that it is bound by `name = value` directly in the module's body.
    """

    name: str
    node: cst.CSTNode
    origin: str | None
    level: int
    is_global: bool
    is_plain: bool


def dotted(node: cst.BaseExpression | None) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def read_bindings(module: cst.CSTNode) -> list[Binding]:
    """All bindings of a module (or another node) in the order of its text, those inside functions included."""
    return list(_read(module))


@lru_cache(maxsize=1024)
def _read(module: cst.CSTNode) -> tuple[Binding, ...]:
    lines = module.body if isinstance(module, cst.Module) else ()
    top = {small for line in lines if isinstance(line, cst.SimpleStatementLine) for small in line.body}
    binder = _Binder(top)
    walk(module, binder)
    return tuple(binder.found)


class _Binder(cst.CSTVisitor):
    def __init__(self, top: set[cst.BaseSmallStatement]) -> None:
        super().__init__()
        self.top = top
        self.depth = 0
        self.found: list[Binding] = []

    def _add(self, name: str, node: cst.CSTNode, origin: str | None = None, level: int = 0) -> None:
        self.found.append(Binding(name, node, origin, level, self.depth == 0, False))

    def _target(self, target: cst.BaseExpression, node: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self._add(target.value, node)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._target(element.value, node)
        elif isinstance(target, cst.StarredElement):
            self._target(target.value, node)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, cst.Name) and node in self.top:
                self.found.append(Binding(target.target.value, node, None, 0, True, True))
            else:
                self._target(target.target, node)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._target(node.target, node)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._target(node.target, node)

    def visit_For(self, node: cst.For) -> None:
        self._target(node.target, node)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._target(node.target, node)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._target(node.target, node)

    def visit_Del(self, node: cst.Del) -> None:
        self._target(node.target, node)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._target(node.name, node)

    def visit_Param(self, node: cst.Param) -> None:
        self._add(node.name.value, node)

    def visit_NameItem(self, node: cst.NameItem) -> None:
        self.found.append(Binding(node.name.value, node, None, 0, True, False))

    def visit_MatchAs(self, node: cst.MatchAs) -> None:
        if node.name is not None:
            self._add(node.name.value, node)

    def visit_MatchStar(self, node: cst.MatchStar) -> None:
        if node.name is not None:
            self._add(node.name.value, node)

    def visit_MatchMapping(self, node: cst.MatchMapping) -> None:
        if node.rest is not None:
            self._add(node.rest.value, node)

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            origin = dotted(alias.name) or ""
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self._add(alias.asname.name.value, node, origin)
            else:
                head = origin.partition(".")[0]
                self._add(head, node, head)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        aliases: Sequence[cst.ImportAlias] = () if isinstance(node.names, cst.ImportStar) else node.names
        origin = dotted(node.module) or ""
        for alias in aliases:
            name = alias.name.value if isinstance(alias.name, cst.Name) else ""
            local = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
            self._add(local, node, f"{origin}.{name}" if origin else name, len(node.relative))
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._add(node.name.value, node)
        self.depth += 1

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._add(node.name.value, node)
        self.depth += 1

    def _enter(self, node: cst.CSTNode) -> None:
        self.depth += 1

    def _exit(self, original_node: cst.CSTNode) -> None:
        self.depth -= 1

    visit_Lambda = visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = _enter
    leave_FunctionDef = leave_ClassDef = _exit
    leave_Lambda = leave_GeneratorExp = leave_ListComp = leave_SetComp = leave_DictComp = _exit
