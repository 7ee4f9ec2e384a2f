"""The function that makes a model, for a mesh of devices: it, its optimizer and its metrics are given the mesh."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import libcst as cst

from migrator.emit.model_function import EmittedModel, Matrix
from migrator.names.imports import dotted
from migrator.program.calls import bind, parameters_of, string
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.layers import add_argument
from migrator.rules.mesh import IMAGE_LAYERS, LAYERS, METRICS, OPS, OPTIMIZERS, STATIC
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
    layers = _Layers(file)
    node.visit(layers)
    given = _Given(names | bound.names, place, any(matrix.table for matrix in layers.found))
    new = node.visit(given)
    assert isinstance(new, cst.FunctionDef)
    if not given.optimizers:
        raise Blocked("TFM792", place, "the optimizer is not made in the model_fn: make it there")
    classes = {**emitted.classes, **({"Embedding": _EMBEDDING} if given.tables else {})}
    new = new.with_changes(params=_with_mesh(new.params))
    # Behind a convolution a kernel that is divided by rows raises: its gradient divides what has batches only.
    matrices = tuple(matrix for matrix in layers.found if matrix.table or not layers.images)
    return replace(emitted, node=new, classes=classes, matrices=None if layers.unknown else matrices)


class _Layers(cst.CSTVisitor):
    """The matrices among the weights of a function's layers, by the names that Keras gives them in their order."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.images = False
        self.found: list[Matrix] = []
        self.unknown = False  # whether there are layers whose names are not
        self._unnamed: Counter[str] = Counter()
        self._inside = 0  # blocks that may run several times, or not at all

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._inside += isinstance(node, cst.If | cst.For | cst.While | cst.CompFor | cst.IfExp | cst.Lambda | cst.Try)
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        super().on_leave(original_node)
        blocks = cst.If | cst.For | cst.While | cst.CompFor | cst.IfExp | cst.Lambda | cst.Try
        self._inside -= isinstance(original_node, blocks)

    def leave_Call(self, original_node: cst.Call) -> None:
        layer = (dotted(original_node.func) or "").removeprefix(f"{_KERAS}layers.")
        self.images = self.images or layer in IMAGE_LAYERS
        weight = _MATRICES.get(layer)
        if weight is None:
            return
        given = next((a.value for a in original_node.args if a.keyword is not None and a.keyword.value == "name"), None)
        name = None if given is None else string(given)
        if given is None:
            number = self._unnamed[layer]
            self._unnamed[layer] += 1
            name = layer.lower() + (f"_{number}" if number else "")
        self.unknown = self.unknown or name is None or bool(self._inside)
        table = layer == "Embedding"
        rows = next((a.value for a in original_node.args if a.keyword is None or a.keyword.value == "input_dim"), None)
        self.found.append(Matrix(f"{name}.{weight}", table, self.file.integer(rows) if table else None))


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
