"""The metrics of a model_fn: what its EVAL mode gives as `eval_metric_ops`."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.program.body import Body
from migrator.program.modes import EVAL, ModalStatement
from migrator.program.parsed import Blocked
from migrator.rules.metrics import Metric, read_metric

Entry = tuple[cst.BaseExpression, cst.BaseExpression]


def read_metrics(body: Body) -> tuple[tuple[tuple[cst.BaseExpression, Metric], ...], frozenset[int]]:
    """The metrics with their keys, and the statements that only made them. Raises Blocked (TFM501, TFM502)."""
    node = body.piece("eval_metric_ops", EVAL)
    if node is None:
        return (), frozenset()
    consumed: set[int] = set()
    added: list[Entry] = []
    if isinstance(node, cst.Name):
        added, consumed = _entries_added(node.value, body.statements)
        definitions = body.definitions_of(node.value, EVAL)
        if len(definitions) != 1:
            raise Blocked("TFM501", node, "eval_metric_ops is not assigned exactly once")
        consumed.add(definitions[0].index)
        node = definitions[0].value
    found = []
    for key, value in [*_items(node), *added]:
        if isinstance(value, cst.Name):
            definitions = body.definitions_of(value.value, EVAL)
            if len(definitions) != 1:
                raise Blocked("TFM501", value, "this metric is not assigned exactly once")
            consumed.add(definitions[0].index)
            value = definitions[0].value
        if not isinstance(value, cst.Call):
            raise Blocked("TFM501", value, "this metric is not a call of tf.metrics")
        found.append((key, read_metric(value, body.file.imports)))
    return tuple(found), frozenset(consumed)


def _entries_added(name: str, statements: Sequence[ModalStatement]) -> tuple[list[Entry], set[int]]:
    """`name["key"] = value` statements: the entries and the statements' indices."""
    found: list[Entry] = []
    indices: set[int] = set()
    for index, statement in enumerate(statements):
        if not isinstance(statement.node, cst.SimpleStatementLine) or EVAL not in statement.modes:
            continue
        small = statement.node.body[0]
        target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
        if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) and target.value.value == name:
            element = target.slice[0].slice
            if len(target.slice) != 1 or not isinstance(element, cst.Index):
                raise Blocked("TFM501", target, "this is not a key of eval_metric_ops")
            assert isinstance(small, cst.Assign)
            found.append((element.value, small.value))
            indices.add(index)
    return found, indices


def _items(node: cst.BaseExpression) -> list[Entry]:
    """The entries of a dict display or a dict(...) call."""
    if isinstance(node, cst.Dict):
        items = []
        for element in node.elements:
            if not isinstance(element, cst.DictElement):
                raise Blocked("TFM501", element, "eval_metric_ops is built with **")
            items.append((element.key, element.value))
        return items
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        if all(arg.keyword is not None for arg in node.args):
            return [(cst.SimpleString(f'"{arg.keyword.value}"'), arg.value) for arg in node.args if arg.keyword]
    raise Blocked("TFM501", node, "eval_metric_ops is not a dict that is written out")
