"""The metrics of a model_fn: what its EVAL mode gives as `eval_metric_ops`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from migrator.program.body import Body
from migrator.program.modes import EVAL, ModalStatement
from migrator.program.parsed import Blocked, names_in
from migrator.rules.metrics import Metric, is_metric, read_metric

Entry = tuple[cst.BaseExpression, cst.BaseExpression]


@dataclass(frozen=True)
class ReadMetrics:
    """The metrics with their keys, the name of their dict, the statements that only made them, and remarks."""

    metrics: tuple[tuple[cst.BaseExpression, Metric], ...] = ()
    title: str | None = None
    statements: frozenset[int] = frozenset()
    remarks: tuple[Blocked, ...] = ()


def read_metrics(body: Body) -> ReadMetrics:
    """Reads the metrics of a model_fn. Raises Blocked (TFM501, TFM502)."""
    return _Reader(body).read()


class _Reader:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.imports = body.file.imports
        self.title: str | None = None
        self.consumed: set[int] = set()
        # (value, update) pairs taken apart: name -> statement, call, which of the two
        self.parts: dict[str, tuple[int, cst.Call, int]] = {}
        self.calls: dict[str, int] = {}
        for index, statement in enumerate(body.statements):
            self._collect(index, statement)

    def read(self) -> ReadMetrics:
        found: list[tuple[cst.BaseExpression, Metric]] = []
        node = self.body.piece("eval_metric_ops", EVAL)
        if node is not None:
            for key, value, position in self._entries(node):
                call, position = self._call(value, position)
                metric = read_metric(call, self.imports, self.body.file.code)
                found.append((key, replace(metric, position=position)))
        remarks = tuple(self._other_uses())
        return ReadMetrics(tuple(found), self.title, frozenset(self.consumed), remarks)

    def _collect(self, index: int, statement: ModalStatement) -> None:
        """Notes what a statement calls the result of a metric."""
        node = statement.node
        if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
            return
        small = node.body[0]
        if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not is_metric(small.value, self.imports):
            return
        target = small.targets[0].target
        assert isinstance(small.value, cst.Call)
        if isinstance(target, cst.Name):
            self.calls[target.value] = index
        elif isinstance(target, (cst.Tuple, cst.List)):
            for part, element in enumerate(target.elements):
                if isinstance(element.value, cst.Name):
                    self.parts[element.value.value] = (index, small.value, part)

    def _entries(self, node: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression, int]]:
        """Keys, metrics, and the number of statements before each."""
        specs = [spec for spec, bound in self.body.specs if EVAL in spec.modes and "eval_metric_ops" in bound]
        position = specs[0].position
        added: list[tuple[cst.BaseExpression, cst.BaseExpression, int]] = []
        if isinstance(node, cst.Name):
            self.title = node.value
            added = self._entries_added(node.value)
            definitions = self.body.definitions_of(node.value, EVAL)
            if len(definitions) != 1:
                raise Blocked("TFM501", node, "eval_metric_ops is not assigned exactly once")
            position = definitions[0].index
            self.consumed.add(position)
            node = definitions[0].value
        return [*((key, value, position) for key, value in _items(node)), *added]

    def _call(self, node: cst.BaseExpression, position: int) -> tuple[cst.Call, int]:
        """The call of the metric that an entry stands for, and the number of statements before it."""
        if isinstance(node, cst.Name):
            definitions = self.body.definitions_of(node.value, EVAL)
            if len(definitions) != 1:
                raise Blocked("TFM501", node, "this metric is not assigned exactly once")
            self.consumed.add(definitions[0].index)
            return self._call(definitions[0].value, definitions[0].index)
        if isinstance(node, cst.Tuple) and len(node.elements) == 2:
            return self._pair(node)
        if not isinstance(node, cst.Call):
            raise Blocked("TFM501", node, "this metric is not a call of tf.metrics")
        return node, position

    def _pair(self, node: cst.Tuple) -> tuple[cst.Call, int]:
        """`(value, update)`, both of one metric."""
        value, update = (element.value for element in node.elements)
        if isinstance(value, cst.Name) and isinstance(update, cst.Name):
            first, second = self.parts.get(value.value), self.parts.get(update.value)
            if first is not None and second is not None and (first[0], first[2], second[2]) == (second[0], 0, 1):
                self.consumed.add(first[0])
                return first[1], first[0]
        elif isinstance(value, cst.Subscript) and isinstance(update, cst.Subscript):
            code = self.body.file.code
            if code(value) == f"{code(value.value)}[0]" and code(update) == f"{code(value.value)}[1]":
                return self._call(value.value, len(self.body.statements))
        raise Blocked("TFM501", node, "this metric is a pair that is not the result of one call of tf.metrics")

    def _other_uses(self) -> Iterator[Blocked]:
        """Consumes every statement that makes a metric; its result may be written to summaries or given a name only."""
        makers = {**self.calls, **{name: part[0] for name, part in self.parts.items()}}
        self.consumed |= set(makers.values())
        for index, statement in enumerate(self.body.statements):
            used = names_in(statement.node) & set(makers)
            if not used or index in self.consumed:
                continue
            node = statement.node
            small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
            call = small.value if isinstance(small, cst.Expr) else None
            name = self.imports.resolve(call.func) or "" if isinstance(call, cst.Call) else ""
            if name.startswith("tf.summary."):
                continue  # left out with the other summaries
            if name != "tf.identity":
                raise Blocked("TFM501", node, f"`{sorted(used)[0]}` is used for more than evaluation")
            self.consumed.add(index)
            yield Blocked("TFM512", node, "the name of this metric's tensor is left out: nothing reads it any more")

    def _entries_added(self, name: str) -> list[tuple[cst.BaseExpression, cst.BaseExpression, int]]:
        """`name["key"] = value` statements."""
        found = []
        for index, statement in enumerate(self.body.statements):
            if not isinstance(statement.node, cst.SimpleStatementLine) or EVAL not in statement.modes:
                continue
            small = statement.node.body[0]
            target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
            if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) and target.value.value == name:
                element = target.slice[0].slice
                if len(target.slice) != 1 or not isinstance(element, cst.Index):
                    raise Blocked("TFM501", target, "this is not a key of eval_metric_ops")
                assert isinstance(small, cst.Assign)
                found.append((element.value, small.value, index))
                self.consumed.add(index)
        return found


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
