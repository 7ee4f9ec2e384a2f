"""Names that get a value in a way that the readers of programs do not follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import Binding, Form, bound_in, dotted
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import path_to
from migrator.rules.rule import Rule
from migrator.walking import walk

CODE = "TFM128"
RULES = (
    Rule(
        CODE,
        "a name that gets its value in a way that is not followed",
        Severity.MANUAL,
        """
What a name stands for decides what a program trains, so a native model is only written where every value of a name is
understood. Assignments of all kinds are, and an assignment expression (`:=`) that can be written as a line of its own.
An assignment expression in a comprehension, a loop's condition or an `elif`, a capture of a `match` statement, and a
name that is also bound by an `except`, `import`, `def`, `class` or `type` statement are not, unless the name is used in
that statement alone. Give the value to the name in a line `name = value`, or use another name there.
""",
    ),
)

#: Values that no reader takes apart: they may only be used where they are given.
_APART = (Form.WALRUS, Form.CAPTURED)
#: Ways to bind a name that mean something else than a value of the program's.
_OTHER = (Form.EXCEPTION, Form.FUNCTION, Form.IMPORTED, Form.CLASS, Form.TYPE)


def check_names(scope: cst.CSTNode, names: Collection[str] | None = None) -> None:
    """Refuses a function or module, those inside it included, where it binds a name in a way that is not followed.

    With `names`, only those of them that belong to the scope itself. Raises Blocked (TFM128).
    """
    for one in _functions(scope) if names is None else (scope,):
        found: dict[str, list[Binding]] = {}
        for binding in bound_in(one):
            found.setdefault(binding.name, []).append(binding)
        for name, bindings in found.items():
            if names is None or name in names:
                _check(one, name, bindings)


def check_mode(function: cst.FunctionDef | cst.Lambda, mode: str | None) -> None:
    """Refuses a model_fn that gives its mode another value. Raises Blocked (TFM128)."""
    for binding in bound_in(function):
        if binding.name == mode and binding.form is not Form.PARAMETER:
            raise Blocked(CODE, binding.node, f"`{mode}` gets another value than the Estimator gave: use another name")


def names_behind(scope: cst.CSTNode, nodes: Collection[cst.CSTNode]) -> set[str]:
    """The names that some code in a scope reads, and those that the statements read which bind them."""
    bindings = bound_in(scope)
    found: set[str] = set()
    queue = {name for node in nodes for name in names_in(node)}
    while queue:
        found |= queue
        queue = {n for b in bindings if b.name in queue for n in names_in(_statement(scope, b.node, False))} - found
    return found


def _check(scope: cst.CSTNode, name: str, bindings: list[Binding]) -> None:
    for binding in bindings:
        if binding.form in _APART:
            inside = _statement(scope, binding.node, binding.form is Form.CAPTURED)
            own = set(name_nodes(inside)) | {b.place for b in bindings if path_to(inside, b.node)}
            elsewhere = [b for b in bindings if not path_to(inside, b.node)]
            if elsewhere or any(node not in own for node in name_nodes(scope) if node.value == name):
                message = f"`{name}` gets a value by {binding.form.value}: write `{name} = ...` in a line of its own"
                raise Blocked(CODE, binding.node, message)
        elif binding.form in _OTHER and len({b.form for b in bindings}) > 1:
            if _is_module(name, bindings):
                continue
            message = f"`{name}` is bound by {binding.form.value}, but has other values as well: use another name here"
            raise Blocked(CODE, binding.node, message)


def _is_module(name: str, bindings: list[Binding]) -> bool:
    """Whether a name is imported and given a part of itself, `tf = tf.compat.v1`, which the import map follows."""
    values = [dotted(b.value) for b in bindings if b.form is not Form.IMPORTED]
    return all(value is not None and value.partition(".")[0] == name for value in values)


def _statement(scope: cst.CSTNode, node: cst.CSTNode, match: bool) -> cst.CSTNode:
    """The innermost statement around a node, or the innermost `match` statement."""
    kinds = (cst.Match,) if match else (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)
    path = path_to(scope, node)
    return next((one for one in reversed(path) if isinstance(one, kinds) and one is not scope), node)


def _functions(scope: cst.CSTNode) -> Iterator[cst.CSTNode]:
    finder = _Functions()
    walk(scope, finder)
    if scope not in finder.found:
        yield scope
    yield from finder.found


class _Functions(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.CSTNode] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.found.append(node)

    def visit_Lambda(self, node: cst.Lambda) -> None:
        self.found.append(node)
