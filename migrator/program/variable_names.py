"""The names that TensorFlow 1 gives the variables of a network, and those that Keras gives: scopes, order, numbers.

A loss that chooses variables by their names means those of TensorFlow 1. Where a condition says the same of both names
for every variable, it may stay; where it does not, the layers get the names of TensorFlow 1, if these are known.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import is_none, nodes_in, string
from migrator.program.helpers import Scope, helper_of
from migrator.program.model_variables import is_making
from migrator.program.name_conditions import Unknown, value_of
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.variable_reads import Listed, around, names_read
from migrator.walking import walk

_KERNEL = (("kernel", "kernel"), ("bias", "bias"))
_SEPARABLE = (("depthwise_kernel",) * 2, ("pointwise_kernel",) * 2, ("bias", "bias"))
_NORMALIZED = (("gamma", "gamma"), ("beta", "beta"))
_CONTRIB = (("weights", "kernel"), ("biases", "bias"))
#: Layers: the name that each kind has by default in TensorFlow 1 and in Keras, and its weights in both.
_LAYERS: dict[str, tuple[str, str, tuple[tuple[str, ...], ...]]] = {
    **{name: (name, name, _KERNEL) for name in ("dense", "conv1d", "conv2d", "conv3d")},
    **{name: (name, name, _KERNEL) for name in ("conv2d_transpose", "conv3d_transpose")},
    **{name: (name, name, _SEPARABLE) for name in ("separable_conv1d", "separable_conv2d")},
    "batch_normalization": ("batch_normalization", "batch_normalization", _NORMALIZED),
}
_OF_CONTRIB = {
    "fully_connected": ("fully_connected", "dense", _CONTRIB),
    **dict.fromkeys(("conv2d", "convolution2d", "convolution"), ("Conv", "conv2d", _CONTRIB)),
    "conv2d_transpose": ("Conv2d_transpose", "conv2d_transpose", _CONTRIB),
    "batch_norm": ("BatchNorm", "batch_normalization", _NORMALIZED),
    "layer_norm": ("LayerNorm", "layer_normalization", _NORMALIZED),
    "embed_sequence": ("EmbedSequence", "embedding", (("embeddings",) * 2,)),
}
_COLUMNS = ("input_layer", "dense_features", (("x_embedding/embedding_weights",) * 2,))
WITHOUT_VARIABLES = (
    *("flatten", "dropout", "pooling1d", "pooling2d", "pooling3d", "pool2d", "pool3d", "softmax", "reshape", "lambda"),
    *("concatenate", "add", "multiply", "input", "inputlayer", "activation", "relu", "permute", "zeropadding2d"),
)
# What is asked of tensors, dicts, lists and strings: no layers are made.
_METHODS = frozenset(
    (
        "append",
        "apply_gradients",
        "as_list",
        "compute_gradients",
        "extend",
        "format",
        "minimize",
        "get",
        "get_shape",
        "items",
        "join",
        "keys",
        "lower",
        "pop",
        "set_shape",
    )
) | frozenset(("endswith", "split", "startswith", "update", "upper", "values", "with_rank"))
_NUMBERS = ("", "_1", "_2", "_3", "_7", "_10", "_11", "_23")
#: What the names of weights are made of in both worlds: a condition on these means the same for any layer.
_SAME = ("kernel", "bias", "beta", "gamma", "batch_normalization")


@dataclass(frozen=True)
class NamedLayer:
    """A layer with variables: what its name can be in TensorFlow 1 (scopes and all) and in Keras, and its weights.

    `exact` is its one name in TensorFlow 1 where that is known and can be given to the Keras layer. A layer whose names
    are not known at all has none.
    """

    call: cst.Call
    old: tuple[str, ...]
    new: tuple[str, ...]
    weights: tuple[tuple[str, ...], ...]
    exact: str | None = None


def named_layers(
    project: Project, scope: Scope, nodes: Iterable[cst.CSTNode], known: Mapping[cst.CSTNode, str]
) -> list[NamedLayer]:
    """The layers that some statements make, in order, also through helpers; `known` are names that Keras layers get."""
    graph = _Graph()
    for node in nodes:
        walk(node, _Walker(project, scope, known, graph, ()))
    calls = Counter(layer.call for layer in graph.layers)
    return [
        layer if calls[layer.call] == 1 else NamedLayer(layer.call, layer.old, layer.new, layer.weights)
        for layer in graph.layers
    ]


def names_to_give(
    layers: Sequence[NamedLayer], reads: Sequence[Listed], slashes: bool = True, some_have_none: bool = False
) -> dict[cst.CSTNode, str]:
    """The names that layers must get so that the names of variables mean in Keras what they meant in TensorFlow 1.

    `slashes` says whether these may have some, `some_have_none` that names of layers are left out. Raises Blocked
    (TFM312) where that is not known.
    """
    places = [(code, place) for code in reads for place in names_read(code)]
    for code, place in places:
        if isinstance(place.value, cst.Attribute) and isinstance(code.nodes[0], cst.FunctionDef):
            raise Blocked("TFM312", place, 'a Keras variable has no `op`: use `name.partition(":")[0]`')
    if places and some_have_none:
        message = "variables are chosen by the names of layers, of which some share theirs: choose them by `.shape`"
        raise Blocked("TFM312", places[0][1], message)
    wrong = next((place for code, place in places if not _same(layers, code, place)), None)
    if wrong is None:
        return {}
    given: dict[cst.CSTNode, str] = {layer.call: layer.exact for layer in layers if layer.exact is not None}
    plain = all("/" not in name for name in given.values())
    if len(given) < len(layers) or len(set(given.values())) < len(given) or not (slashes or plain):
        message = "cannot tell which variables these names select in Keras: select them by `.shape`"
        raise Blocked("TFM312", wrong, message)
    return given


def _same(layers: Sequence[NamedLayer], code: Listed, place: cst.Attribute) -> bool:
    """Whether what is computed from the name of a variable is the same for its name in TensorFlow 1 and in Keras."""
    root = next(node for node in code.nodes if _holds(node, place))
    candidates = [place, *around(place, root)]
    for candidate in reversed(candidates):
        try:
            value_of(candidate, code, "net/layer/kernel:0")
        except Unknown:
            continue
        return all(_says_the_same(candidate, code, layer) for layer in layers)
    return False


def _says_the_same(node: cst.BaseExpression, code: Listed, layer: NamedLayer) -> bool:
    if not layer.old:
        return _is_about_weights(node)
    for old, new in layer.weights:
        found = {repr(value_of(node, code, f"{name}/{old}:0")) for name in layer.old}
        found |= {repr(value_of(node, code, f"{name}/{new}:0")) for name in layer.new}
        if len(found) > 1:
            return False
    return True


def _is_about_weights(node: cst.BaseExpression) -> bool:
    """Whether a condition asks for nothing but a kind of weight that has the same name in both worlds."""
    if isinstance(node, cst.BooleanOperation):
        return _is_about_weights(node.left) and _is_about_weights(node.right)
    if isinstance(node, cst.UnaryOperation):
        return _is_about_weights(node.expression)
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return _is_end_of_weights(node)
    (target,) = node.comparisons
    asks = isinstance(target.operator, (cst.In, cst.NotIn)) and isinstance(target.comparator, cst.Attribute)
    return asks and string(node.left) in _SAME


def _is_end_of_weights(node: cst.BaseExpression) -> bool:
    """`v.name.endswith("kernel:0")`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or len(node.args) != 1:
        return False
    text = string(node.args[0].value) or ""
    return node.func.attr.value == "endswith" and text.removeprefix("/").removesuffix(":0") in _SAME


def _object(call: cst.Call) -> cst.BaseExpression:
    """What a call is of: `Layer(...)` of `Layer(...)(x)` and of `Layer(...).apply(x)`."""
    func = call.func
    return func.value if isinstance(func, cst.Attribute) and func.attr.value == "apply" else func


def _holds(root: cst.CSTNode, node: cst.CSTNode) -> bool:
    return any(one is node for one in nodes_in(root))


@dataclass
class _Graph:
    """What was made so far: layers, how often each scope was opened, and the scopes whose numbers are not known."""

    layers: list[NamedLayer] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)
    unsure: set[str] = field(default_factory=set)

    def unique(self, path: str, base: str, sure: bool) -> str | None:
        """The scope that a layer without a name opens below a path; None where its number is not known."""
        first = f"{path}/{base}" if path else base
        if not sure:
            self.unsure.add(first)
        if first in self.unsure:
            return None
        name, number = first, 0
        while self.opened[name]:
            number += 1
            name = f"{first}_{number}"
        self.opened[name] += 1
        return name

    def close(self, path: str) -> None:
        """The end of a scope: entered anew, it counts anew."""
        for name in [one for one in self.opened if one.startswith(f"{path}/")]:
            del self.opened[name]


class _Walker(cst.CSTVisitor):
    """Follows code in the order in which it runs: what is inside of a call comes before the call."""

    def __init__(
        self,
        project: Project,
        scope: Scope,
        known: Mapping[cst.CSTNode, str],
        graph: _Graph,
        inside: tuple[cst.FunctionDef, ...],
        path: str | None = "",
        given: Mapping[str, str] | None = None,
        unsure: int = 0,
    ) -> None:
        super().__init__()
        self.project = project
        self.scope = scope
        self.known = known
        self.graph = graph
        self.inside = inside
        self.path = path
        self.given = given or {}
        self.unsure = unsure  # how many loops and conditions are around
        self.outer: list[str | None] = []
        self.called: set[cst.CSTNode] = set()  # objects that are called where they are made

    @property
    def imports(self) -> ImportMap:
        return self.scope.file.imports

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False  # it is followed where it is called

    def visit_Lambda(self, node: cst.Lambda) -> None:
        self.unsure += 1

    def leave_Lambda(self, original_node: cst.Lambda) -> None:
        self.unsure -= 1

    def visit_For(self, node: cst.For) -> None:
        self.unsure += 1

    def leave_For(self, original_node: cst.For) -> None:
        self.unsure -= 1

    def visit_While(self, node: cst.While) -> None:
        self.unsure += 1

    def leave_While(self, original_node: cst.While) -> None:
        self.unsure -= 1

    def visit_If(self, node: cst.If) -> None:
        self.unsure += 1

    def leave_If(self, original_node: cst.If) -> None:
        self.unsure -= 1

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self.unsure += 1

    def leave_IfExp(self, original_node: cst.IfExp) -> None:
        self.unsure -= 1

    def visit_Try(self, node: cst.Try) -> None:
        self.unsure += 1

    def leave_Try(self, original_node: cst.Try) -> None:
        self.unsure -= 1

    def visit_ListComp(self, node: cst.ListComp) -> None:
        self.unsure += 1

    def leave_ListComp(self, original_node: cst.ListComp) -> None:
        self.unsure -= 1

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> None:
        self.unsure += 1

    def leave_GeneratorExp(self, original_node: cst.GeneratorExp) -> None:
        self.unsure -= 1

    def visit_With(self, node: cst.With) -> None:
        self.outer.append(self.path)
        for item in node.items:
            if isinstance(item.item, cst.Call) and self.imports.resolve(item.item.func) == "tf.variable_scope":
                self.path = self._entered(item.item)

    def leave_With(self, original_node: cst.With) -> None:
        outer = self.outer.pop()
        if self.path is not None and self.path != outer:
            self.graph.close(self.path)
        self.path = outer

    def visit_Call(self, node: cst.Call) -> None:
        self.called.add(_object(node))

    def _entered(self, call: cst.Call) -> str | None:
        """The path of a scope that is entered; None where it is not known."""
        places = ("name_or_scope", "default_name")
        bound: dict[str, cst.BaseExpression] = {}
        for index, arg in enumerate(call.args):
            if arg.keyword is not None:
                bound[arg.keyword.value] = arg.value
            elif index < len(places):
                bound[places[index]] = arg.value
        name, default = bound.get("name_or_scope"), bound.get("default_name")
        if self.path is None or name is None or "reuse" in bound:
            return None
        if is_none(name):
            base = self._string(default) if default is not None else None
            return self.graph.unique(self.path, base, not self.unsure) if base else None
        text = self._string(name)
        if text is None:
            return None
        path = f"{self.path}/{text}" if self.path else text
        self.graph.opened[path] += 1
        return path

    def leave_Call(self, original_node: cst.Call) -> None:
        node = original_node
        found = helper_of(self.project, self.scope, node.func)
        if found is not None:
            file, function = found
            if function not in self.inside:
                self._follow(node, file, function)
            return
        name = self.imports.resolve(node.func) or ""
        kind = self._kind(name)
        if kind is not None:
            self._layer(node, name, *kind)
        elif isinstance(made := _object(node), cst.Call) and (inner := self._kind(self._class(made))) is not None:
            self._layer(made, self._class(made), *inner)
        elif self._may_make(node, name):
            self.graph.layers.append(NamedLayer(node, (), (), ()))

    def _may_make(self, node: cst.Call, name: str) -> bool:
        """Whether a call may make layers whose names are not known."""
        if name:
            return is_making(name) and not name.lower().endswith(WITHOUT_VARIABLES) and not self._is_called(node)
        if isinstance(node.func, cst.Attribute):
            return node.func.attr.value not in _METHODS
        return isinstance(node.func, cst.Name) and not hasattr(builtins, node.func.value)

    def _is_called(self, node: cst.Call) -> bool:
        return node in self.called and self._kind(self._class(node)) is not None

    def _class(self, call: cst.Call) -> str:
        """`tf.layers.Dense(...)` as the function of that name."""
        name = self.imports.resolve(call.func) or ""
        module, _, last = name.rpartition(".")
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in last).removeprefix("_")
        snake = snake.replace("1_d", "1d").replace("2_d", "2d").replace("3_d", "3d")
        return f"{module}.{snake}" if module == "tf.layers" and last[:1].isupper() else ""

    def _kind(self, name: str) -> tuple[str, str, tuple[tuple[str, ...], ...]] | None:
        module, _, last = name.rpartition(".")
        if module == "tf.layers":
            return _LAYERS.get(last)
        if name == "tf.feature_column.input_layer":
            return _COLUMNS
        if module in ("tf.contrib.layers", "tf.contrib.slim"):
            return _OF_CONTRIB.get(last)
        return None

    def _layer(self, node: cst.Call, symbol: str, old: str, new: str, weights: tuple[tuple[str, ...], ...]) -> None:
        given = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        named = given.get("name", given.get("scope"))
        contrib = not symbol.startswith("tf.layers.")
        told = any(key in given for key in ("reuse", "_reuse", "normalizer_fn", "weights_normalizer_fn"))
        if self.path is None or told or any(arg.star for arg in node.args):
            self.graph.layers.append(NamedLayer(node, (), (), ()))
            return
        text = None
        if named is not None and not is_none(named):
            text = self._string(named)
            if text is None:
                if self.path:  # some name, which Keras has without the scope
                    self.graph.layers.append(NamedLayer(node, (), (), ()))
                elif not contrib:
                    self.graph.layers.append(NamedLayer(node, ("?",), ("?",), weights))
                return
            full = f"{self.path}/{text}" if self.path else text
            self.graph.opened[full] += 1
            exact = full if not self.unsure and isinstance(named, cst.SimpleString) else None
            keras = (self.known.get(node, text),)
            self.graph.layers.append(NamedLayer(node, (full,), keras, weights, None if contrib else exact))
            return
        name = self.graph.unique(self.path, old, not self.unsure)
        first = f"{self.path}/{old}" if self.path else old
        candidates = (name,) if name is not None else tuple(f"{first}{number}" for number in _NUMBERS)
        numbered = tuple(f"{new}{number}" for number in _NUMBERS)
        self.graph.layers.append(NamedLayer(node, candidates, numbered, weights, None if contrib else name))

    def _follow(self, node: cst.Call, file: ParsedFile, function: cst.FunctionDef) -> None:
        inner = Scope.of(self.project, file, function)
        around = (*self.inside, function)
        strings = self._strings(node, function)
        graph, unsure = self.graph, self.unsure
        walker = _Walker(self.project, inner, self.known, graph, around, self.path, strings, unsure)
        walk(function.body, walker)

    def _string(self, node: cst.BaseExpression) -> str | None:
        if isinstance(node, cst.Name):
            constant = self.scope.file.constants.get(node.value)
            return self.given.get(node.value) or (string(constant) if constant is not None else None)
        return string(node)

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
