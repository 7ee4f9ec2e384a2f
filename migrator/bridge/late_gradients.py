"""Gradients that are computed after an optimizer of the same step changed variables.

Variables of TensorFlow 1 are references: where `tf.control_dependencies` lets gradients wait for an update, they read
the weights after it, though the loss was computed before. Variables of TensorFlow 2 are resources: the gradients read
the weights that the loss was computed with.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from migrator.names.references import own_nodes

_UPDATES = ("minimize", "apply_gradients")
_DIFFERENTIATES = ("minimize", "compute_gradients")
_OF_LOSSES = (
    *("tf.gradients", "tf.contrib.layers.optimize_loss", "tf.contrib.training.create_train_op"),
    "tf.contrib.slim.learning.create_train_op",
)
#: With these, the variables of the original are resources, too.
RESOURCES = (
    *("tf.enable_resource_variables", "tf.enable_v2_behavior", "tf.enable_eager_execution"),
    "tf.contrib.eager.enable_eager_execution",
)
_WAITS = "tf.control_dependencies"


def late_gradients(tree: ast.Module, meanings: Mapping[ast.expr, str]) -> list[ast.Call]:
    """The calls that compute gradients of a loss from before an update that they wait for.

    `meanings` are canonical names of what is TensorFlow's. Updates are followed through names that are assigned in the
    same function, not through other functions.
    """
    found: list[ast.Call] = []
    if _WAITS not in meanings.values():
        return found
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for block in (tree, *functions):
        nodes = list(own_nodes(block))
        assigned = _assigned(nodes)
        for node in nodes:
            if not isinstance(node, ast.With):
                continue
            awaited = [item.context_expr for item in node.items if _waits(item.context_expr, meanings)]
            if not any(_updates(one, meanings, assigned, frozenset()) for one in awaited):
                continue
            below = [one for statement in node.body for one in (statement, *own_nodes(statement))]
            inside = _assigned(below)
            for call in below:
                if isinstance(call, ast.Call) and _differentiates(call, meanings):
                    loss = _loss(call)
                    if not any(isinstance(part, ast.Call) for part in ast.walk(loss)) and not _reads(loss, inside):
                        found.append(call)
    return sorted(set(found), key=lambda call: (call.lineno, call.col_offset))


def _waits(node: ast.expr, meanings: Mapping[ast.expr, str]) -> bool:
    return isinstance(node, ast.Call) and meanings.get(node.func) == _WAITS


def _differentiates(call: ast.Call, meanings: Mapping[ast.expr, str]) -> bool:
    if call.func in meanings:
        return meanings[call.func] in _OF_LOSSES and bool(call.args or call.keywords)
    return (
        isinstance(call.func, ast.Attribute) and call.func.attr in _DIFFERENTIATES and bool(call.args or call.keywords)
    )


def _loss(call: ast.Call) -> ast.expr:
    return call.args[0] if call.args else call.keywords[0].value


def _updates(
    node: ast.expr, meanings: Mapping[ast.expr, str], assigned: Mapping[str, list[ast.expr]], read: frozenset[str]
) -> bool:
    """Whether what is awaited runs an update of weights. `read` are the names that were followed."""
    for part in (node, *own_nodes(node)):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func not in meanings:
            if part.func.attr in _UPDATES:
                return True
        if isinstance(part, ast.Name) and part.id not in read:
            more = read | {part.id}
            if any(_updates(value, meanings, assigned, more) for value in assigned.get(part.id, ())):
                return True
    return False


def _reads(node: ast.expr, names: Mapping[str, list[ast.expr]]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _assigned(nodes: list[ast.AST]) -> dict[str, list[ast.expr]]:
    """The values that names are given, and what is appended to them."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        found.setdefault(part.id, []).append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            if isinstance(node.func.value, ast.Name):
                found.setdefault(node.func.value.id, []).extend(node.args)
    return found
