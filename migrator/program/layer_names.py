"""Names of the layers of a model: Keras wants one for each in all the model, TensorFlow 1 in each variable scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import libcst as cst

from migrator.program.calls import is_false, is_none, string
from migrator.program.helpers import Scope, helper_of
from migrator.program.parsed import Blocked, Project, names_in
from migrator.walking import walk

_LAYERS = ("tf.layers.", "tf.contrib.layers.", "tf.contrib.slim.")
_SCOPES = ("tf.variable_scope", "tf.name_scope")
_COMPUTED = "?"


def name_layers(
    project: Project, scope: Scope, nodes: Iterable[cst.CSTNode], known: Mapping[cst.CSTNode, str]
) -> dict[cst.CSTNode, str]:
    """Names for the layers of some code, and of its helpers, that share theirs with layers in other variable scopes.

    `known` are those of other models, which stay as they are. By call; the scopes come first: "encoder_hidden". ""
    stands for none, where a function that is called again computes the same names (`"layer_%d" % i`), or has its layers
    in a scope whose name is computed (`with tf.variable_scope(name)`), which made them others. Raises Blocked (TFM202)
    at the call that gives a name for the second time in a scope, and (TFM705) where a scope with `reuse=tf.AUTO_REUSE`
    is entered twice, whose layers were the same.
    """
    every: list[_Named] = []
    for node in nodes:
        walk(node, _Walker(project, scope, every, (), 0, None, (), {}))
    seen = [layer for layer in every if layer.made_of is None]
    computed = Counter((layer.call, layer.made_of) for layer in every if layer.made_of is not None)
    found = {layer.call: known[layer.call] for layer in every if layer.call in known}
    again = {call for (call, _), times in computed.items() if times > 1 and call not in known}
    for layer in every:
        if layer.call in again and layer.reuses:
            message = "this name is computed again in another call: Keras needs a name of its own for each layer"
            raise Blocked("TFM202", layer.place, message)
    found |= dict.fromkeys(again, "")
    shared = Counter(found.get(layer.call, layer.name) for layer in seen)
    for layer in seen:
        if shared[layer.name] > 1 and layer.written and layer.scopes and _COMPUTED not in layer.scopes:
            found.setdefault(layer.call, "_".join((*layer.scopes, layer.name)).replace("/", "_"))
    given: set[str] = set()
    for layer in seen:
        name = found.get(layer.call, layer.name)
        if (layer.in_loop or name in given) and not layer.reuses and (not name or _COMPUTED in layer.scopes):
            found[layer.call] = ""
            continue
        if layer.in_loop or name in given:
            message = f"two layers are named `{layer.name}`, and Keras needs unique names: rename one"
            raise Blocked("TFM202", layer.place, message)
        given.add(name)
    return {call: name for call, name in found.items() if call not in known}


@dataclass(frozen=True)
class _Named:
    """A layer that is given a name: by which call, in which scopes, and the place in the model_fn that leads to it.

    The name is `written` in the call, or given to the function around it. One that is computed is `made_of` what the
    parameters that it reads are given, where that is known (None: it is not computed). `reuses` says that the call may
    take the variables of another layer.
    """

    call: cst.Call
    name: str
    written: bool
    scopes: tuple[str, ...]
    in_loop: bool
    place: cst.CSTNode
    made_of: tuple[tuple[str, str | None], ...] | None = None
    reuses: bool = False


class _Walker(cst.CSTVisitor):
    def __init__(
        self,
        project: Project,
        scope: Scope,
        seen: list[_Named],
        inside: tuple[cst.FunctionDef, ...],
        loops: int,
        place: cst.CSTNode | None,
        scopes: tuple[str, ...],
        given: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.project = project
        self.scope = scope
        self.seen = seen
        self.inside = inside
        self.loops = loops
        self.place = place
        self.scopes = scopes
        self.given = given
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
                given = self._strings(node, function)
                walker = _Walker(self.project, inner, self.seen, around, self.loops, place, self.scopes, given)
                walk(function.body, walker)
            return
        if not (self.scope.file.imports.resolve(node.func) or "").startswith(_LAYERS):
            return
        shared = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "reuse"]
        reuses = any(not (is_none(value) or is_false(value)) for value in shared)
        for arg in node.args:
            named = arg.keyword is not None and arg.keyword.value in ("name", "scope")
            name = self._string(arg.value) if named else None
            if named and name is None and not is_none(arg.value) and not isinstance(arg.value, cst.Name):
                read = tuple((one, self.given.get(one)) for one in sorted(names_in(arg.value)))
                self.seen.append(_Named(node, "", True, self.scopes, self.loops > 0, place, read, reuses))
            if name is not None:
                written = not isinstance(arg.value, cst.Name)
                self.seen.append(_Named(node, name, written, self.scopes, self.loops > 0, place, reuses=reuses))

    def _string(self, node: cst.BaseExpression) -> str | None:
        return self.given.get(node.value) if isinstance(node, cst.Name) else string(node)

    def _strings(self, call: cst.Call, function: cst.FunctionDef) -> dict[str, str]:
        """The strings that the parameters of a function have in a call."""
        parameters = function.params.params
        names = [p.name.value for p in parameters if p.name.value != "self"]
        values = {p.name.value: p.default for p in parameters if p.default is not None}
        for index, arg in enumerate(call.args):
            if arg.keyword is not None or index < len(names):
                values[arg.keyword.value if arg.keyword is not None else names[index]] = arg.value
        found = {name: self._string(value) for name, value in values.items()}
        return {name: value for name, value in found.items() if value is not None}
