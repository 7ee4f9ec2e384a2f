"""What a network asks of its tensors that the symbolic tensors of Keras, with which it is built, do not answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import calls_in
from migrator.walking import all_in

# Operations that take no symbolic tensors: they run a function of the program themselves, or are made in graphs only.
# Measured with Keras 2 and TensorFlow 2.21.
_OPERATIONS = (
    *("tf.map_fn", "tf.vectorized_map", "tf.function", "tf.custom_gradient", "tf.recompute_grad"),
    "tf.grad_pass_through",
)
_OF_GRAPHS = ("op", "graph")
_TENSOR = "tf.Tensor"


def in_network(
    new: cst.CSTNode, helpers: Collection[str], values_of: Callable[[str], Sequence[cst.BaseExpression | None]]
) -> str | None:
    """What of new code that builds a network takes no symbolic tensors, by its name; None where all of it does.

    `helpers` are functions of the file that call operations by their names, `values_of` what the file gives a name.
    """
    called: list[cst.BaseExpression | None] = [call.func for call in calls_in(new)]
    called += [node.decorator for node in all_in(new) if isinstance(node, cst.Decorator)]
    for function in list(called):
        given = values_of(function.value) if isinstance(function, cst.Name) else ()
        called += [one.func for one in given if isinstance(one, cst.Call)]
    names = [dotted(function) or "" for function in called]
    return next((one for one in names if one in helpers or one in _OPERATIONS or one.startswith("tf.raw_ops.")), None)


def asked_of_tensors(new: cst.CSTNode) -> str | None:
    """What new code that builds a network asks of a tensor and only one of a graph answers, as it is said.

    `x.op.name`, `x.graph.as_default()`, `x.consumers()`; and whether it is a `tf.Tensor`, which a symbolic one is not.
    """
    for node in all_in(new):
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Attribute):
            if node.value.attr.value in _OF_GRAPHS and _may_be_tensor(node.value.value):
                return f".{node.value.attr.value}"
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "consumers":
            return ".consumers()"
        if isinstance(node, cst.Call) and dotted(node.func) == "isinstance" and len(node.args) == 2:
            if any(isinstance(one, cst.Attribute) and dotted(one) == _TENSOR for one in all_in(node.args[1].value)):
                return f"isinstance(..., {_TENSOR})"
    return None


def _may_be_tensor(node: cst.BaseExpression) -> bool:
    """Whether an expression may be a tensor: a module, and the object that the code belongs to, are none."""
    return (dotted(node) or "").partition(".")[0] not in ("tf", "self", "cls", "np")
