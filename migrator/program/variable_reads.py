"""What code does with lists of variables (`tf.trainable_variables()`): whether it reads their order, or their names.

A graph lists variables in the order in which they were made, and gives them names of its own. A Keras model has its own
order, and other names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in, string
from migrator.program.parsed import ParsedFile, Project, names_in
from migrator.program.scopes import parents_below
from migrator.walking import walk

_LISTS = frozenset(("trainable_variables", "global_variables", "all_variables", "model_variables", "get_variables"))
_ORDERED = frozenset(("enumerate", "zip", "reversed", "sorted", "iter", "next"))
_METHODS = frozenset(("pop", "index", "sort", "reverse", "insert"))
_KEEPING = frozenset(("list", "tuple", "set", "filter", "map"))
_WRAPPING = (cst.Arg, cst.Element, cst.ComparisonTarget, cst.SubscriptElement, cst.Index, cst.Slice, cst.CompFor)


def lists_variables(node: cst.CSTNode, imports: ImportMap) -> bool:
    """Whether an expression is a call that gives the variables of a graph."""
    if not isinstance(node, cst.Call):
        return False
    name = imports.resolve(node.func) or ""
    if name == "tf.get_collection" and node.args:
        key = string(node.args[0].value) or imports.resolve(node.args[0].value) or ""
        return key.lower().endswith("variables")
    return name.startswith("tf.") and name.rpartition(".")[2].removeprefix("get_trainable_") in (*_LISTS, "variables")


def measures(node: cst.CSTNode, imports: ImportMap) -> bool:
    """Whether code makes metrics, or gives them to an EstimatorSpec."""
    names = [imports.resolve(call.func) or "" for call in calls_in(node)]
    return any(name.startswith("tf.metrics.") or name.endswith("EstimatorSpec") for name in names)


@dataclass(frozen=True)
class Listed:
    """Code that handles variables: `lists` are names of lists of them, or of lists with something for each of them in
    their order; `names` are all names that hold or are computed from variables. `scope` is the function around it.
    """

    file: ParsedFile
    nodes: tuple[cst.CSTNode, ...]
    lists: frozenset[str]
    names: frozenset[str]
    scope: cst.CSTNode

    @property
    def parameters(self) -> set[str]:
        """The parameters of the functions and lambdas in the code."""
        functions = [n for n in _below(self.nodes, ()) if isinstance(n, (cst.FunctionDef, cst.Lambda))]
        return {param.name.value for function in functions for param in function.params.params}


def handled(
    project: Project,
    file: ParsedFile,
    scope: cst.CSTNode,
    nodes: Sequence[cst.CSTNode],
    skipped: Collection[cst.CSTNode] = (),
) -> list[Listed]:
    """The code that handles variables: these nodes, and the functions of the project that they give variables to.

    The nodes `skipped` are not looked at, wherever they are.
    """
    found: list[Listed] = []
    queue = [Listed(file, tuple(nodes), frozenset(), frozenset(), scope)]
    seen: set[tuple[cst.CSTNode, frozenset[str]]] = set()
    while queue:
        start = queue.pop()
        one, code = _listed(start, skipped), start.nodes
        if not one.names and not any(lists_variables(n, one.file.imports) for n in _below(code, skipped)):
            continue
        found.append(one)
        for call in (n for n in _below(code, skipped) if isinstance(n, cst.Call)):
            for inner in _called_with(project, one, call):
                if (inner.scope, inner.lists) not in seen:
                    seen.add((inner.scope, inner.lists))
                    queue.append(inner)
    return found


def _called_with(project: Project, code: Listed, call: cst.Call) -> Iterator[Listed]:
    """The functions that a call gives variables to, with their parameters that hold some."""
    if not any(is_of_variables(code, arg.value) for arg in call.args):
        return
    function = project.function(code.file, call.func) or _inner(code, call.func)
    if function is not None:
        other, node = function
        parameters = [param.name.value for param in node.params.params]
        given = {
            arg.keyword.value if arg.keyword is not None else parameters[index]: arg.value
            for index, arg in enumerate(call.args)
            if arg.keyword is not None or index < len(parameters)
        }
        lists = frozenset(key for key, value in given.items() if gives_list(code, value))
        names = frozenset(key for key, value in given.items() if is_of_variables(code, value))
        yield Listed(other, (node,), lists, names, node)
    for arg in call.args:  # `filter(decays, variables)`
        passed = project.function(code.file, arg.value) or _inner(code, arg.value)
        if passed is not None:
            names = frozenset(param.name.value for param in passed[1].params.params)
            yield Listed(passed[0], (passed[1],), frozenset(), names, passed[1])


def _inner(code: Listed, node: cst.BaseExpression) -> tuple[ParsedFile, cst.FunctionDef] | None:
    """A function that is made in the code itself."""
    for other in code.nodes:
        if isinstance(other, cst.FunctionDef) and isinstance(node, cst.Name) and other.name.value == node.value:
            return code.file, other
    return None


def is_of_variables(code: Listed, node: cst.CSTNode) -> bool:
    """Whether an expression mentions variables."""
    return bool(names_in(node) & code.names) or any(lists_variables(n, code.file.imports) for n in calls_in(node))


def gives_list(code: Listed, node: cst.BaseExpression) -> bool:
    """Whether an expression has one element for each of some variables, in their order."""
    if isinstance(node, cst.Name):
        return node.value in code.lists
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return gives_list(code, node.for_in.iter) and not any(_names_one(test.test) for test in node.for_in.ifs)
    if isinstance(node, cst.BinaryOperation):
        return gives_list(code, node.left) or gives_list(code, node.right)
    if isinstance(node, cst.IfExp):
        return gives_list(code, node.body) or gives_list(code, node.orelse)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _KEEPING:
        return any(gives_list(code, arg.value) for arg in node.args)
    return lists_variables(node, code.file.imports)


def _names_one(test: cst.BaseExpression) -> bool:
    """`v.name == "..."`, which one variable meets at most."""
    if not isinstance(test, cst.Comparison) or not isinstance(test.comparisons[0].operator, cst.Equal):
        return False
    sides = (test.left, test.comparisons[0].comparator)
    return any(isinstance(side, cst.Attribute) and side.attr.value == "name" for side in sides)


def order_read(code: Listed, skipped: Collection[cst.CSTNode] = ()) -> cst.CSTNode | None:
    """Where the order of variables is read: one is taken by its place, or goes with what another list has there."""
    for node in _below(code.nodes, skipped):
        if isinstance(node, cst.Subscript) and gives_list(code, node.value):
            return node
        if isinstance(node, cst.Call):
            func = node.func
            if isinstance(func, cst.Name) and func.value in _ORDERED:
                if any(gives_list(code, arg.value) for arg in node.args):
                    return node
            if isinstance(func, cst.Attribute) and func.attr.value in _METHODS and gives_list(code, func.value):
                return node
        if isinstance(node, cst.Assign) and gives_list(code, node.value):
            if any(isinstance(target.target, (cst.Tuple, cst.List)) for target in node.targets):
                return node
    return None


def names_read(code: Listed) -> list[cst.Attribute]:
    """Where code reads names of variables, or of what it computes from them."""
    found: list[cst.Attribute] = []
    for node in _below(code.nodes, ()):
        if not isinstance(node, cst.Attribute) or node.attr.value != "name":
            continue
        base = node.value
        if isinstance(base, cst.Attribute) and base.attr.value == "op":
            base = base.value
        if is_of_variables(code, base) or (isinstance(base, cst.Name) and base.value in code.parameters):
            found.append(node)
    return found


def around(node: cst.CSTNode, root: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The expressions around a node, the nearest first, up to the statement that they belong to."""
    parents = parents_below(root)
    outer = parents.get(node)
    while isinstance(outer, (cst.BaseExpression, *_WRAPPING)):
        if isinstance(outer, cst.BaseExpression):
            yield outer
        outer = parents.get(outer)


def _listed(code: Listed, skipped: Collection[cst.CSTNode]) -> Listed:
    """The same code, with all names that come from those that it begins with, and from calls."""
    nodes = code.nodes
    while True:
        held, names = set(code.lists), set(code.names)
        for node in _below(nodes, skipped):
            targets: list[cst.CSTNode] = []
            value: cst.BaseExpression | None = None
            if isinstance(node, cst.Assign):
                targets, value = [target.target for target in node.targets], node.value
            elif isinstance(node, (cst.AnnAssign, cst.NamedExpr, cst.AugAssign)):
                targets, value = [node.target], node.value
            elif isinstance(node, (cst.For, cst.CompFor)):
                targets, value = [node.target], node.iter
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
                if node.func.attr.value in ("append", "extend", "add"):
                    targets, value = [node.func.value], node.args[0].value
            if value is None or not is_of_variables(code, value):
                continue
            for target in targets:
                names |= names_in(target)
                listing = isinstance(node, cst.Call) or gives_list(code, value)
                if listing and not isinstance(node, (cst.For, cst.CompFor)) and isinstance(target, cst.Name):
                    held.add(target.value)
        if held == code.lists and names == code.names:
            return code
        code = replace(code, lists=frozenset(held), names=frozenset(names))


def _below(nodes: Sequence[cst.CSTNode], skipped: Collection[cst.CSTNode]) -> list[cst.CSTNode]:
    finder = _All(skipped)
    for node in nodes:
        walk(node, finder)
    return finder.found


class _All(cst.CSTVisitor):
    def __init__(self, skipped: Collection[cst.CSTNode]) -> None:
        super().__init__()
        self.skipped = skipped
        self.found: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.skipped:
            return False
        self.found.append(node)
        return True
