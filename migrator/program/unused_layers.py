"""Layers that a network makes and that the outputs of its model do not come from.

A graph has their variables all the same, and an L2 over all variables adds them up; a functional Keras model knows only
the layers between its inputs and its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from migrator.program.body import names_given
from migrator.program.calls import calls_in, nodes_in
from migrator.program.helpers import Scope, helper_of
from migrator.program.model_variables import is_making
from migrator.program.modes import TRAIN, ModalStatement
from migrator.program.outlining import given
from migrator.program.parsed import Project, names_in
from migrator.program.region import reach, symbols
from migrator.program.scopes import returns_in
from migrator.program.variable_names import WITHOUT_VARIABLES

_DEPTH = 6


def unused_layers(
    project: Project,
    scope: Scope,
    statements: Iterable[ModalStatement],
    outputs: Iterable[str],
    output: cst.BaseExpression,
) -> cst.CSTNode | None:
    """The last statement that makes layers in training which none of `outputs` (names) is computed from.

    `output` is what the model computes; it may stand in the middle of a statement, as in `loss = f(y, network(x))`.
    """
    nodes = [statement for statement in statements if TRAIN in statement.modes]
    return _Search(project, scope, 0, output).search(nodes, set(outputs))


class _Search:
    def __init__(self, project: Project, scope: Scope, depth: int, output: cst.BaseExpression | None = None) -> None:
        self.project = project
        self.scope = scope
        self.depth = depth
        self.output = output

    def search(self, statements: Sequence[ModalStatement], needed: set[str]) -> cst.CSTNode | None:
        """Goes back from the names that are needed at the end to what gave them their values."""
        objects = self._objects(statements)
        for statement in reversed(statements):
            node = statement.node
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                continue
            if not given(statement) & needed:
                if self._makes_layers(node, objects):
                    return node
                continue
            if self._lost_in_helpers(node, needed):
                return node
            value = _plain_value(node)
            needed = needed | names_in(node) if value is None else needed - names_given((statement,)) | names_in(value)
        return None

    def _makes_layers(self, node: cst.CSTNode, objects: set[str]) -> bool:
        output = self.output
        used = () if output is None else [n for n in nodes_in(node) if n is output or n.deep_equals(output)]
        calls = set(calls_in(node)) - {call for place in used for call in calls_in(place)}
        if any(isinstance(call.func, cst.Name) and call.func.value in objects for call in calls):
            return True
        file = self.scope.file
        made = {file.imports.resolve(call.func) or "" for call in calls}
        for call in calls:
            found = helper_of(self.project, self.scope, call.func)
            if found is not None:
                made |= symbols(reach(self.project, *found))
        return any(is_making(name) and not name.lower().endswith(WITHOUT_VARIABLES) for name in made)

    def _objects(self, statements: Sequence[ModalStatement]) -> set[str]:
        """The names of layers that are objects."""
        found: set[str] = set()
        for statement in statements:
            made = [self.scope.file.imports.resolve(call.func) or "" for call in calls_in(statement.node)]
            if any(is_making(name) and name.rpartition(".")[2][:1].isupper() for name in made):
                found |= names_given((statement,))
        return found

    def _lost_in_helpers(self, node: cst.CSTNode, needed: set[str]) -> bool:
        """Whether a helper makes layers which what a statement needs of its results does not come from."""
        if self.depth > _DEPTH:
            return False
        small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
        whole = small.value if isinstance(small, cst.Assign) else None
        places = _places(small.targets[0].target, needed) if isinstance(small, cst.Assign) else None
        for call in calls_in(node):
            found = helper_of(self.project, self.scope, call.func)
            if found is None:
                continue
            file, function = found
            body = function.body.body if isinstance(function.body, cst.IndentedBlock) else ()
            roots: set[str] = set()
            dropped: list[cst.BaseExpression] = []
            for result in returns_in(function.body):
                value = result.value
                if call is whole and places is not None and isinstance(value, cst.Tuple):
                    roots |= set().union(*(names_in(e.value) for i, e in enumerate(value.elements) if i in places))
                    dropped += [e.value for i, e in enumerate(value.elements) if i not in places]
                elif value is not None:
                    roots |= names_in(value)
            inner = _Search(self.project, Scope.of(self.project, file, function), self.depth + 1)
            lines = [ModalStatement(one, frozenset((TRAIN,)), ()) for one in body if not _returns(one)]
            if inner.search(lines, roots) is not None or any(inner._makes_layers(one, set()) for one in dropped):
                return True
        return False


def _places(target: cst.BaseExpression, needed: set[str]) -> set[int] | None:
    """The places in `a, b = ...` of the names that are needed; None where all of it may be."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return None
    return {index for index, element in enumerate(target.elements) if names_in(element.value) & needed}


def _returns(node: cst.BaseStatement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Return)


def _plain_value(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a statement gives names that have nothing else afterwards; None for `x += 1`, `x["a"] = 1`, blocks."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    plain = isinstance(small, cst.Assign) and all(isinstance(t.target, (cst.Name, cst.Tuple)) for t in small.targets)
    return small.value if isinstance(small, cst.Assign) and plain else None
