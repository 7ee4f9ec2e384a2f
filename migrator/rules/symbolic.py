"""What a network asks of its tensors that the symbolic tensors of Keras, with which it is built, do not answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import cast

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import calls_in
from migrator.walking import all_in, transformed

# Operations that take no symbolic tensors: they run a function of the program themselves, or are made in graphs only.
# Measured with Keras 2 and TensorFlow 2.21.
#: The operation for symbolic tensors: of values that TensorFlow 1 takes, it computes the same.
SELECT = '''\
def {name}(condition, x, y):
    """Chooses as TensorFlow 1's tf.where: a condition of one axis chooses whole rows."""
    if len(condition.shape) == 1:
        condition = tf.reshape(condition, [-1] + [1] * (len(x.shape) - 1))
    return tf.where(condition, x, y)
'''
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


def selects(new: cst.CSTNode) -> bool:
    """Whether new code has TensorFlow 1's `tf.where` by the name of its operation."""
    return any(_is_select(call) for call in calls_in(new))


def selecting_by(new: cst.CSTNode, name: str) -> cst.CSTNode:
    """The code with a function of the file in its place, see `SELECT`."""
    return cast("cst.CSTNode", transformed(new, _Selecting(name)))


def _is_select(call: cst.Call) -> bool:
    keys = [arg.keyword.value if arg.keyword is not None else None for arg in call.args]
    return dotted(call.func) == "tf.raw_ops.Select" and keys == ["condition", "x", "y"]


class _Selecting(cst.CSTTransformer):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if not _is_select(original_node):
            return updated_node
        args = [arg.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT) for arg in updated_node.args]
        return updated_node.with_changes(func=cst.Name(self.name), args=args)


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
