"""Whether two layers of a model would get one name: Keras refuses that when it runs, TensorFlow 1 had scopes for it."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from migrator.program.calls import string
from migrator.program.helpers import Scope, helper_of
from migrator.program.parsed import Blocked, Project
from migrator.walking import walk

_LAYERS = ("tf.layers.", "tf.contrib.layers.", "tf.contrib.slim.")


def check_layer_names(project: Project, scope: Scope, nodes: Iterable[cst.CSTNode]) -> None:
    """Follows the helpers of some code. Raises Blocked (TFM202) at the call that gives a name for the second time."""
    seen: set[str] = set()
    for node in nodes:
        walk(node, _Walker(project, scope, seen, (), 0, None))


class _Walker(cst.CSTVisitor):
    def __init__(
        self,
        project: Project,
        scope: Scope,
        seen: set[str],
        inside: tuple[cst.FunctionDef, ...],
        loops: int,
        place: cst.CSTNode | None,
    ) -> None:
        super().__init__()
        self.project = project
        self.scope = scope
        self.seen = seen
        self.inside = inside
        self.loops = loops
        self.place = place

    def visit_For(self, node: cst.For) -> None:
        self.loops += 1

    def leave_For(self, original_node: cst.For) -> None:
        self.loops -= 1

    def visit_ListComp(self, node: cst.ListComp) -> None:
        self.loops += 1

    def leave_ListComp(self, original_node: cst.ListComp) -> None:
        self.loops -= 1

    def visit_Call(self, node: cst.Call) -> None:
        place = self.place or node
        found = helper_of(self.project, self.scope, node.func)
        if found is not None:
            file, function = found
            if function not in self.inside:
                inner = Scope.of(self.project, file, function)
                around = (*self.inside, function)
                walk(function.body, _Walker(self.project, inner, self.seen, around, self.loops, place))
            return
        if not (self.scope.file.imports.resolve(node.func) or "").startswith(_LAYERS):
            return
        for arg in node.args:
            named = arg.keyword is not None and arg.keyword.value in ("name", "scope")
            name = string(arg.value) if named else None
            if name is None:
                continue
            if self.loops or name in self.seen:
                message = f"two layers get the name `{name}`: Keras needs a name of its own for each"
                raise Blocked("TFM202", place, message)
            self.seen.add(name)
