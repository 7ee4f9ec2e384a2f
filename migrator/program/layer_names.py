"""Names of the layers of a model: Keras wants one for each in all the model, TensorFlow 1 in each variable scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import libcst as cst

from migrator.program.calls import string
from migrator.program.helpers import Scope, helper_of
from migrator.program.parsed import Blocked, Project
from migrator.walking import walk

_LAYERS = ("tf.layers.", "tf.contrib.layers.", "tf.contrib.slim.")
_SCOPES = ("tf.variable_scope", "tf.name_scope")
_COMPUTED = "?"


def name_layers(
    project: Project, scope: Scope, nodes: Iterable[cst.CSTNode], known: Mapping[cst.CSTNode, str]
) -> dict[cst.CSTNode, str]:
    """Names for the layers of some code, and of its helpers, that share theirs with layers in other variable scopes.

    `known` are those of other models, which stay as they are. By call; the scopes come first: "encoder_hidden". Raises
    Blocked (TFM202) at the call that gives a name for the second time in a scope, and (TFM705) where a scope with
    `reuse=tf.AUTO_REUSE` is entered twice, whose layers were the same.
    """
    seen = _Seen()
    for node in nodes:
        walk(node, _Walker(project, scope, seen, (), 0, None, ()))
    found = {layer.call: known[layer.call] for layer in seen.layers if layer.call in known}
    shared = Counter(found.get(layer.call, layer.name) for layer in seen.layers)
    for layer in seen.layers:
        if shared[layer.name] > 1 and layer.scopes and _COMPUTED not in layer.scopes:
            found.setdefault(layer.call, "_".join((*layer.scopes, layer.name)).replace("/", "_"))
    given: set[str] = set()
    for layer in seen.layers:
        name = found.get(layer.call, layer.name)
        if layer.in_loop or name in given:
            message = f"two layers get the name `{layer.name}`: Keras needs a name of its own for each"
            raise Blocked("TFM202", layer.place, message)
        given.add(name)
    return {call: name for call, name in found.items() if call not in known}


@dataclass(frozen=True)
class _Named:
    """A layer that is given a name: by which call, in which scopes, and the place in the model_fn that leads to it."""

    call: cst.Call
    name: str
    scopes: tuple[str, ...]
    in_loop: bool
    place: cst.CSTNode


@dataclass
class _Seen:
    layers: list[_Named] = field(default_factory=list)
    shared: set[tuple[str, ...]] = field(default_factory=set)


class _Walker(cst.CSTVisitor):
    def __init__(
        self,
        project: Project,
        scope: Scope,
        seen: _Seen,
        inside: tuple[cst.FunctionDef, ...],
        loops: int,
        place: cst.CSTNode | None,
        scopes: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.project = project
        self.scope = scope
        self.seen = seen
        self.inside = inside
        self.loops = loops
        self.place = place
        self.scopes = scopes
        self.outer: list[tuple[str, ...]] = []

    def visit_For(self, node: cst.For) -> None:
        self.loops += 1

    def leave_For(self, original_node: cst.For) -> None:
        self.loops -= 1

    def visit_ListComp(self, node: cst.ListComp) -> None:
        self.loops += 1

    def leave_ListComp(self, original_node: cst.ListComp) -> None:
        self.loops -= 1

    def visit_With(self, node: cst.With) -> None:
        self.outer.append(self.scopes)
        for item in node.items:
            call = item.item
            if not isinstance(call, cst.Call) or self.scope.file.imports.resolve(call.func) not in _SCOPES:
                continue
            self.scopes += (string(call.args[0].value) or _COMPUTED if call.args else _COMPUTED,)
            if any(self.scope.file.imports.resolve(arg.value) == "tf.AUTO_REUSE" for arg in call.args):
                if self.loops or _COMPUTED in self.scopes or self.scopes in self.seen.shared:
                    message = "the variable scope shares its variables: in Keras, make a layer once and call it twice"
                    raise Blocked("TFM705", self.place or node, message)
                self.seen.shared.add(self.scopes)

    def leave_With(self, original_node: cst.With) -> None:
        self.scopes = self.outer.pop()

    def visit_Call(self, node: cst.Call) -> None:
        place = self.place or node
        found = helper_of(self.project, self.scope, node.func)
        if found is not None:
            file, function = found
            if function not in self.inside:
                inner = Scope.of(self.project, file, function)
                around = (*self.inside, function)
                walker = _Walker(self.project, inner, self.seen, around, self.loops, place, self.scopes)
                walk(function.body, walker)
            return
        if not (self.scope.file.imports.resolve(node.func) or "").startswith(_LAYERS):
            return
        for arg in node.args:
            named = arg.keyword is not None and arg.keyword.value in ("name", "scope")
            name = string(arg.value) if named else None
            if name is not None:
                self.seen.layers.append(_Named(node, name, self.scopes, self.loops > 0, place))
