"""Scopes of a file: where a node stands, what binds a name there, and what changes a name between two places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import libcst as cst

from migrator.ir.operators import CHANGING
from migrator.names import bindings as bindings_of
from migrator.names.bindings import Form, bound_in, changes_in, read_bindings
from migrator.program.parsed import NameCollector, ParsedFile, names_in
from migrator.walking import of_kinds, own_of_kinds, parents_in, walk


# A tree never changes, so what was found out about one node holds for ever; the caches are for speed only.
@lru_cache(maxsize=512)
def parents_below(scope: cst.CSTNode) -> Mapping[cst.CSTNode, cst.CSTNode]:
    """The node around each node below one."""
    found: dict[cst.CSTNode, cst.CSTNode] = {}
    for node, above in parents_in(scope):
        found.setdefault(node, above)
    return found


def path_to(scope: cst.CSTNode, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes from `scope` down to `node`, both included; empty when it is not in there."""
    parents = parents_below(scope)
    path = [node]
    while path[-1] is not scope:
        above = parents.get(path[-1])
        if above is None:
            return []
        path.append(above)
    return path[::-1]


Binding = tuple[str, cst.CSTNode]
_DEFINED = (Form.FUNCTION, Form.CLASS, Form.PARAMETER)


def bindings(scope: cst.CSTNode) -> list[Binding]:
    """What gives or changes the value of a name in a scope, functions inside left out: (name, node).

    `x[...] = ...`, `x.y = ...` and the statement `x.method(...)` count for `x`.
    """
    return list(_bindings(scope))


@lru_cache(maxsize=4096)
def _bindings(scope: cst.CSTNode) -> tuple[Binding, ...]:
    found = changes_in(scope)
    return tuple((b.name, b.target if b.target is not None and b.form not in _DEFINED else b.node) for b in found)


def free_names(function: cst.FunctionDef | cst.Lambda) -> set[str]:
    """Names that a function reads from outside."""
    own = {name for name, node in bindings(function) if isinstance(node, (cst.Name, cst.Param, cst.FunctionDef))}
    if isinstance(function, cst.Lambda):
        return names_in(function.body) - {p.name.value for p in function.params.params}
    return names_in(function) - own


def names_behind(file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression) -> set[str]:
    """Names that an expression reads when it is evaluated and called, those of functions of this file included."""
    functions: dict[str, cst.FunctionDef | cst.Lambda] = dict(file.functions)
    for name, bound in bindings(scope):
        if isinstance(bound, cst.FunctionDef):
            functions[name] = bound
    for name, value in assigned_lambdas(scope).items():
        functions[name] = value
    found: set[str] = set()
    queue = names_in(node)
    while queue:
        name = queue.pop()
        if name in found:
            continue
        found.add(name)
        if name in functions:
            queue |= free_names(functions[name]) - found
    return found


def assigned_lambdas(scope: cst.CSTNode) -> dict[str, cst.Lambda]:
    """Lambdas that are given to a name in a scope."""
    return {b.name: b.value for b in read_bindings(scope) if isinstance(b.value, cst.Lambda)}


class _Early(NameCollector):
    """Names that an expression reads at once: not those in the bodies of lambdas."""

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False


def rebound(
    file: ParsedFile, scope: cst.CSTNode, expression: cst.BaseExpression, since: cst.CSTNode, until: cst.CSTNode
) -> Binding | None:
    """What changes a name that `expression` reads, between two places of a scope; None when nothing does."""
    early = _Early()
    walk(expression, early)
    names = {node.value for node in early.found} - file.imports.names.keys()
    outer = path_to(scope, since)
    loops = [n for n in path_to(scope, until) if isinstance(n, (cst.For, cst.While)) and not _among(n, outer)]
    for name, node in bindings(scope):
        if name in names:
            between = file.position(since) < file.position(node) < file.position(until)
            if between and not _among(node, outer):
                return name, node
            if any(path_to(loop, node) for loop in loops):
                return name, node
    for call in own_of_kinds(scope, cst.Call) if names else ():
        between = file.position(since) < file.position(call) < file.position(until)
        if (between or any(path_to(loop, call) for loop in loops)) and not path_to(call, until):
            changed = sorted(_changed_by(file, call) & names)
            if changed:
                return changed[0], call
    return None


_DEPTH = 5


def _changed_by(file: ParsedFile, call: cst.Call, depth: int = 0) -> set[str]:
    """The names around a call that it changes, or whose objects it changes: it calls a function of the file that does.

    What a method does to its object is none of this.
    """
    function = file.functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
    if function is None or depth == _DEPTH:
        return set()
    hidden = {one.name for one in bound_in(function)}
    changes = changes_in(function)
    parts = {one.name for one in changes if one.form is Form.PART or _acts(one)}
    for inner in own_of_kinds(function, cst.Call):
        parts |= _changed_by(file, inner, depth + 1)
    found = parts.union(one.name for one in changes if one.form is not Form.CALLED) - hidden
    parameters = [one.name.value for one in (*function.params.posonly_params, *function.params.params)]
    for index, arg in enumerate(call.args):
        given = arg.keyword.value if arg.keyword is not None else parameters[index] if index < len(parameters) else None
        if given in parts and isinstance(arg.value, cst.Name) and not arg.star:
            found.add(arg.value.value)
    return found


def _acts(binding: bindings_of.Binding) -> bool:
    """Whether a method is called that changes a list, a dict or a set."""
    method = binding.target
    return binding.form is Form.CALLED and isinstance(method, cst.Attribute) and method.attr.value in CHANGING


def _among(node: cst.CSTNode, nodes: Sequence[cst.CSTNode]) -> bool:
    return any(node is other for other in nodes)


class _NameMentions(cst.CSTVisitor):
    def __init__(self, scope: cst.CSTNode, name: str) -> None:
        super().__init__()
        self.scope = scope
        self.name = name
        self.found: list[cst.CSTNode] = []
        self.bound = {node for bound, node in bindings(scope) if bound == name}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        own = node is not self.scope and any(bound == self.name and n is not node for bound, n in bindings(node))
        parts = [node.params, *node.decorators] if own else [node.params, node.body, *node.decorators]
        for part in parts:
            walk(part, self)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        if node.default is not None:
            walk(node.default, self)
        return False

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name and node not in self.bound:
            self.found.append(node)


def with_values(node: cst.BaseExpression, values: dict[str, cst.BaseExpression]) -> cst.BaseExpression:
    """An expression with names replaced by what they stand for."""
    new = node.visit(_Replaced(values))
    assert isinstance(new, cst.BaseExpression)
    return new


class _Replaced(cst.CSTTransformer):
    """Puts values in place of names; names of attributes and keywords stay."""

    def __init__(self, values: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.values = values

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self.values.get(original_node.value)
        if value is None:
            return updated_node
        loose = isinstance(value, (cst.BinaryOperation, cst.Comparison, cst.IfExp, cst.BooleanOperation))
        if loose and not value.lpar:
            value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return value.deep_clone()

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


def mentions_of(scope: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    """Where a scope, functions inside included, reads one of its names."""
    visitor = _NameMentions(scope, name)
    walk(scope, visitor)
    return visitor.found


def attributes_called(scope: cst.CSTNode, names: Sequence[str]) -> list[cst.CSTNode]:
    """The attributes of some names, of whatever object, in a scope."""
    return [one for one in of_kinds(scope, cst.Attribute) if one.attr.value in names] if names else []


def returns_in(node: cst.CSTNode) -> list[cst.Return]:
    """The return statements of a block or a statement, those of functions left out: a function has none itself."""
    return own_of_kinds(node, cst.Return, enter=False)


def always_returns(node: cst.CSTNode) -> bool:
    """Whether a block ends in a return or raise in every branch of its last `if`."""
    body = getattr(node, "body", ())
    if isinstance(body, cst.IndentedBlock):
        body = body.body
    last = body[-1] if body else None
    if isinstance(last, (cst.SimpleStatementLine, cst.Return, cst.Raise)):
        return isinstance(last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last, (cst.Return, cst.Raise))
    if isinstance(last, cst.If):
        return always_returns(last.body) and last.orelse is not None and _else_returns(last.orelse)
    if isinstance(last, cst.With):
        return always_returns(last.body)
    return False


def _else_returns(node: cst.If | cst.Else) -> bool:
    if isinstance(node, cst.If):
        return always_returns(node.body) and node.orelse is not None and _else_returns(node.orelse)
    return always_returns(node.body)
