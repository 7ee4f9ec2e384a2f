"""The function that makes a model, for a mesh of devices: it, its optimizer and its metrics are given the mesh."""

from __future__ import annotations

import builtins
from collections.abc import Collection

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import parameters_of
from migrator.program.parsed import Blocked
from migrator.rules.layers import add_argument
from migrator.rules.mesh import LAYERS, METRICS, OPS, OPTIMIZERS, STATIC
from migrator.rules.site import keyword

MESH = "mesh"
_KERAS = "tf.keras."


def on_mesh(node: cst.FunctionDef, place: cst.CSTNode) -> cst.FunctionDef:
    """The function with a parameter `mesh`, which optimizers and metrics are given.

    `place` is where findings are shown. Raises Blocked (TFM790 to TFM793) for what was not tried on a mesh.
    """
    names = {parameter.name.value for parameter in parameters_of(node)}
    if MESH in names:
        raise Blocked("TFM790", place, "the model_fn has a parameter `mesh` of its own: rename it")
    bound = _Bound()
    node.visit(bound)
    given = _Given(names | bound.names, place)
    new = node.visit(given)
    assert isinstance(new, cst.FunctionDef)
    if not given.optimizers:
        raise Blocked("TFM792", place, "the optimizer is not made in the model_fn: make it there")
    return new.with_changes(params=_with_mesh(new.params))


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

    def __init__(self, local: Collection[str], place: cst.CSTNode) -> None:
        super().__init__()
        self.local = local
        self.place = place
        self.optimizers = 0

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
        for argument in node.args:
            if argument.keyword is None or argument.keyword.value not in known:
                text = "this argument" if argument.keyword is None else f"`{argument.keyword.value}`"
                raise Blocked("TFM792", self.place, f"{text} of `{name}` was not tried on a mesh")


def _is_known(name: str) -> bool:
    if name in OPS or name in STATIC or name.startswith((f"{_KERAS}losses.", f"{_KERAS}regularizers.")):
        return True
    if name.startswith(f"{_KERAS}layers."):
        return name.rpartition(".")[2] in LAYERS
    return name.startswith((f"{_KERAS}initializers.", "np.", "numpy.")) or hasattr(builtins, name)


def _with_argument(node: cst.Call) -> cst.Call:
    return node.with_changes(args=add_argument(list(node.args), keyword(MESH, cst.Name(MESH))))
