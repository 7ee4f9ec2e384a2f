"""The function that makes a model, for a mesh of devices: it, its optimizer and its metrics are given the mesh."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import libcst as cst

from migrator.emit.model_function import EmittedModel, Matrix
from migrator.names.imports import dotted
from migrator.program.calls import bind, parameters_of, string
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.rules.layers import add_argument
from migrator.rules.mesh import IMAGE_LAYERS, LAYERS, METRICS, OPS, OPTIMIZERS, STATIC
from migrator.rules.partitioners import Made, literal
from migrator.rules.site import keyword

MESH = "mesh"
_KERAS = "tf.keras."
_MATRICES = {"Dense": "kernel", "Embedding": "embeddings"}
# Measured on TensorFlow 2.21: a table that is divided by rows cannot be looked up in (ResourceGather), and the sparse
# gradient of a whole one is lost without an error. As a product all is exact, with every layout of the table.
_EMBEDDING = '''\
class Embedding(tf.keras.layers.Embedding):
    """Looks rows up by a matrix product, which a mesh can divide, and whose gradient is dense."""

    def call(self, inputs):
        return tf.matmul(tf.one_hot(inputs, self.input_dim), self.embeddings)
'''


def on_mesh(emitted: EmittedModel, file: ParsedFile, place: cst.CSTNode) -> EmittedModel:
    """The function with a parameter `mesh`, which optimizers and metrics are given.

    `place` is where findings are shown. Raises Blocked (TFM790 to TFM793) for what was not tried on a mesh.
    """
    node = emitted.node
    names = {parameter.name.value for parameter in parameters_of(node)}
    if MESH in names:
        raise Blocked("TFM790", place, "the model_fn has a parameter `mesh` of its own: rename it")
    bound = _Bound()
    node.visit(bound)
    layers = _Layers(file, names | bound.names)
    node.visit(layers)
    given = _Given(names | bound.names, place, any(matrix.table for matrix in layers.found))
    new = node.visit(given)
    assert isinstance(new, cst.FunctionDef)
    if not given.optimizers:
        raise Blocked("TFM792", place, "the optimizer is not made in the model_fn: make it there")
    classes = {**emitted.classes, **({"Embedding": _EMBEDDING} if given.tables else {})}
    new = new.with_changes(params=_with_mesh(new.params))
    # Behind a convolution a kernel that is divided by rows raises: its gradient divides what has batches only.
    found = _split(layers, emitted.made)
    matrices = tuple(matrix for matrix in found if matrix.table or not layers.images)
    return replace(emitted, node=new, classes=classes, matrices=None if layers.unknown else matrices)


def _split(layers: _Layers, made: Sequence[Made] | None) -> list[Matrix]:
    """The matrices of a new function, with what is known of those of the original: which a partitioner had."""
    found = [*layers.found]
    if made is None:
        return found
    for table in (True, False):
        new = [index for index, matrix in enumerate(found) if matrix.table == table]
        old = [one for one in made if one.table == table]
        same = len(new) == len(old) and all(
            (one.name is None or layers.given[index][0] in (None, one.name))
            and (None in (one.size, layers.given[index][1]) or one.size == layers.given[index][1])
            for index, one in zip(new, old, strict=True)
        )
        alike = len({one.split for one in old}) == 1 and len(new) == len(old)
        for index, one in zip(new, old, strict=False):
            found[index] = replace(found[index], split=one.split if same or alike else None)
    return found


_BLOCKS = cst.If | cst.For | cst.While | cst.CompFor | cst.IfExp | cst.Lambda | cst.Try | cst.FunctionDef | cst.ClassDef
_SAME_SIZE = ("tf.tanh", "tf.math.tanh", "tf.sigmoid", "tf.math.sigmoid", "tf.abs", "tf.math.abs")


class _Layers(cst.CSTVisitor):
    """The matrices among the weights of a function's layers, by the names that Keras gives them in their order.

    `local` are names that the function gives values to. `given` are the names and sizes (rows of a table, columns of a
    kernel) that are written out for each.
    """

    def __init__(self, file: ParsedFile, local: Collection[str]) -> None:
        super().__init__()
        self.file = file
        self.local = local
        self.images = False
        self.found: list[Matrix] = []
        self.given: list[tuple[str | None, int | None]] = []
        self.unknown = False  # whether there are layers whose names are not
        self._unnamed: Counter[str] = Counter()
        self._inside = -1  # blocks that may run several times, or not at all
        self._sizes: dict[str, int | None] = {}  # last axes of tensors, by their names
        self._made: dict[cst.CSTNode, int | None] = {}  # and of what calls make: layers, and tensors
        self._kernels: dict[cst.CSTNode, int] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._inside += isinstance(node, _BLOCKS)
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        super().on_leave(original_node)
        self._inside -= isinstance(original_node, _BLOCKS)

    def leave_AugAssign(self, original_node: cst.AugAssign) -> None:
        self._forget(original_node.target)

    def leave_AnnAssign(self, original_node: cst.AnnAssign) -> None:
        self._forget(original_node.target)

    def leave_NamedExpr(self, original_node: cst.NamedExpr) -> None:
        self._forget(original_node.target)

    def leave_For(self, original_node: cst.For) -> None:
        self._forget(original_node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._forget(node.name)

    def leave_Assign(self, original_node: cst.Assign) -> None:
        for one in original_node.targets:
            self._forget(one.target)
        target = original_node.targets[0].target
        if len(original_node.targets) == 1 and isinstance(target, cst.Name) and not self._inside:
            self._sizes[target.value] = self._size(original_node.value)

    def _forget(self, target: cst.BaseExpression) -> None:
        for name in names_in(target):
            self._sizes.pop(name, None)

    def _size(self, node: cst.BaseExpression) -> int | None:
        return self._sizes.get(node.value) if isinstance(node, cst.Name) else self._made.get(node)

    def leave_Call(self, original_node: cst.Call) -> None:
        first = original_node.args[0] if original_node.args else None
        size = None if first is None or first.keyword is not None else self._size(first.value)
        if original_node.func in self._kernels:
            index = self._kernels[original_node.func]
            self.found[index] = replace(self.found[index], rows=size)
        name = dotted(original_node.func) or ""
        if original_node.func in self._made:
            self._made[original_node] = self._made[original_node.func]
        elif name in _SAME_SIZE or name.startswith("tf.nn."):
            self._made[original_node] = size if name in OPS else None
        layer = name.removeprefix(f"{_KERAS}layers.")
        self.images = self.images or layer in IMAGE_LAYERS
        weight = _MATRICES.get(layer)
        if weight is None:
            return
        named = next((a.value for a in original_node.args if a.keyword is not None and a.keyword.value == "name"), None)
        text = None if named is None else string(named)
        self.unknown = self.unknown or (named is not None and text is None) or bool(self._inside)
        if named is None:
            number = self._unnamed[layer]
            self._unnamed[layer] += 1
            text = layer.lower() + (f"_{number}" if number else "")
        table = layer == "Embedding"
        sizes = self._arguments(original_node, ("input_dim", "output_dim") if table else ("units",))
        self._made[original_node] = self._integer(sizes[-1])
        if not table:
            self._kernels[original_node] = len(self.found)
        self.given.append((None if named is None else text, literal(sizes[0])))
        self.found.append(Matrix(f"{text}.{weight}", table, self._integer(sizes[0]) if table else None))

    def _arguments(self, node: cst.Call, names: tuple[str, ...]) -> list[cst.BaseExpression | None]:
        plain = [a.value for a in node.args if a.keyword is None and not a.star]
        named = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
        return [named.get(name, plain[i] if i < len(plain) else None) for i, name in enumerate(names)]

    def _integer(self, node: cst.BaseExpression | None) -> int | None:
        if isinstance(node, cst.Name) and node.value in self.local:
            return None
        return self.file.integer(node)


def _with_mesh(params: cst.Parameters) -> cst.Parameters:
    more = cst.Param(cst.Name(MESH))
    if params.kwonly_params or isinstance(params.star_arg, cst.Param | cst.ParamStar):
        return params.with_changes(kwonly_params=[*params.kwonly_params, more])
    if any(p.default is not None for p in params.params):
        return params.with_changes(star_arg=cst.ParamStar(), kwonly_params=[more])
    return params.with_changes(params=[*params.params, more])


class _Bound(cst.CSTVisitor):
    """The names that a function gives values to."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._add(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._add(node.target)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._add(node.target)

    def visit_Param(self, node: cst.Param) -> None:
        self.names.add(node.name.value)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.names.add(node.name.value)

    def _add(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            self.names.add(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._add(element.value)


class _Given(cst.CSTTransformer):
    """Gives optimizers and metrics the mesh, and looks at every call of a function that makes a model."""

    def __init__(self, local: Collection[str], place: cst.CSTNode, embeds: bool) -> None:
        super().__init__()
        self.local = local
        self.place = place
        self.embeds = embeds  # whether there are tables of embeddings
        self.optimizers = 0
        self.tables = 0

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = dotted(original_node.func)
        if name is None or name.partition(".")[0] in self.local:
            return updated_node
        if name.startswith(f"{_KERAS}optimizers."):
            self._check_optimizer(name, original_node)
            return _with_argument(updated_node)
        if name.startswith(f"{_KERAS}metrics."):
            if name.rpartition(".")[2] not in METRICS:
                raise Blocked("TFM793", self.place, f"`{name}` was not tried on a mesh: leave the metric out")
            return _with_argument(updated_node)
        if name == f"{_KERAS}layers.Embedding":
            known = ("input_dim", "output_dim", "embeddings_initializer", "name")
            try:
                bind(original_node, known, "Embedding", "TFM791")
            except Blocked as problem:
                raise Blocked("TFM791", self.place, problem.message) from None
            self.tables += 1
            return updated_node.with_changes(func=cst.Name("Embedding"))
        if self.embeds and name.endswith("Optimizer"):
            message = (
                f"`{name}` leaves rows of an embedding that a batch does not use as they are, and on a mesh every row "
                "has a gradient: train with GradientDescent, Adam or Adagrad, whose numbers are the same"
            )
            raise Blocked("TFM792", self.place, message)
        if not _is_known(name):
            message = f"`{name}` was not tried on a mesh of devices (DTensor): choose another `--strategy`"
            raise Blocked("TFM791", self.place, message)
        return updated_node

    def _check_optimizer(self, name: str, node: cst.Call) -> None:
        self.optimizers += 1
        known = OPTIMIZERS.get(name.removeprefix(f"{_KERAS}optimizers."))
        if known is None:
            message = f"`{name}` was not compared on a mesh with TensorFlow 1's formula: choose another `--strategy`"
            raise Blocked("TFM792", self.place, message)
        momentum = [a for a in node.args if a.keyword is not None and a.keyword.value == "momentum"]
        if self.embeds and (name.endswith("RMSprop") or momentum):
            message = f"`{name}` treats rows of an embedding that a batch does not use otherwise with dense gradients"
            raise Blocked("TFM792", self.place, f"{message}: train with GradientDescent, Adam or Adagrad")
        for argument in node.args:
            if argument.keyword is None or argument.keyword.value not in known:
                text = "this argument" if argument.keyword is None else f"`{argument.keyword.value}`"
                raise Blocked("TFM792", self.place, f"{text} of `{name}` was not tried on a mesh")


def _is_known(name: str) -> bool:
    if name in OPS or name in STATIC or name.startswith((f"{_KERAS}losses.", f"{_KERAS}regularizers.")):
        return True
    if name.startswith(f"{_KERAS}layers."):
        return name.rpartition(".")[2] in LAYERS | IMAGE_LAYERS
    return name.startswith((f"{_KERAS}initializers.", "np.", "numpy.")) or hasattr(builtins, name)


def _with_argument(node: cst.Call) -> cst.Call:
    return node.with_changes(args=add_argument(list(node.args), keyword(MESH, cst.Name(MESH))))
