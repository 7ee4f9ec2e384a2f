"""Which names a statement gives a value to, and which."""

from __future__ import annotations

import re

import libcst as cst

from migrator.walking import walk

_CHANGING = re.compile("add|append|clear|discard|extend|insert|pop|popitem|remove|reverse|setdefault|sort|update")


def branches(node: cst.If) -> list[tuple[str, cst.BaseExpression]] | None:
    """The plain assignments in the branches of an if statement; None where there is anything else."""
    found: list[tuple[str, cst.BaseExpression]] = []
    queue: list[cst.If | cst.Else | None] = [node]
    while queue:
        branch = queue.pop()
        if branch is None:
            continue
        if isinstance(branch, cst.If):
            queue.append(branch.orelse)
        block = branch.body.body if isinstance(branch.body, cst.IndentedBlock) else ()
        for statement in block:
            if isinstance(statement, cst.If):
                queue.append(statement)
                continue
            if not isinstance(statement, cst.SimpleStatementLine):
                return None
            for small in statement.body:
                if isinstance(small, (cst.Raise, cst.Pass)):
                    continue
                if isinstance(small, cst.Expr) and _is_log(small.value):
                    continue
                given = list(assignments(cst.SimpleStatementLine([small])))
                if not given:
                    return None
                found += given
    return found


def _is_log(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.SimpleString):
        return True
    text = cst.Module([]).code_for_node(node.func) if isinstance(node, cst.Call) else ""
    return text == "print" or ".logging." in text or text.startswith(("logging.", "logger."))


def assignments(node: cst.CSTNode) -> list[tuple[str, cst.BaseExpression]]:
    """Names that a statement gives a value to, wherever in it, and the values."""
    collector = _Assignments()
    walk(node, collector)
    return collector.found


class _Assignments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, cst.BaseExpression]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self.found += [(name, node.value) for name in targets(target.target)]

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self.found += [(name, node.value) for name in targets(node.target)]

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self.found += [(name, node.value) for name in targets(node.target)]

    def visit_For(self, node: cst.For) -> None:
        self.found += [(name, node.iter) for name in targets(node.target)]

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if node.asname is not None:
            self.found += [(name, node.item) for name in targets(node.asname.name)]


def changes_in_place(node: cst.CSTNode) -> list[tuple[str, cst.BaseExpression]]:
    """Names whose values a statement changes without an assignment, as `x.append(...)` and `del x`, and where.

    What functions inside change counts, too: they may be called.
    """
    collector = _Changes()
    walk(node, collector)
    return collector.found


class _Changes(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, cst.BaseExpression]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        params = node.params
        own = {name for name, _ in assignments(node.body)}
        own |= {p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params)}
        self.found += [(name, place) for name, place in changes_in_place(node.body) if name not in own]
        return False

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and _CHANGING.fullmatch(node.func.attr.value):
            self.found += [(name, node) for name in targets(node.func.value)]

    def visit_Del(self, node: cst.Del) -> None:
        self.found += [(name, node.target) for name in targets(node.target)]

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.found += [(name, node.value) for name in targets(node.target)]


def targets(node: cst.BaseExpression) -> list[str]:
    """The names that an assignment to `node` changes."""
    if isinstance(node, cst.Name):
        return [node.value]
    if isinstance(node, (cst.Tuple, cst.List)):
        return [name for element in node.elements for name in targets(element.value)]
    if isinstance(node, cst.Subscript):
        return targets(node.value)
    return []
