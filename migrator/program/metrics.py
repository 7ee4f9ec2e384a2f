"""The metrics of a model_fn: what its EVAL mode gives as `eval_metric_ops`.

The statements of EVAL run on the evaluator, so it does not matter how the dict comes about: what it holds in the end
are calls of metrics, and the statements that only made those, and the dict, are left out of the network.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import libcst as cst

from migrator.ir.machine import NOTHING, identity, may_be_absent, present
from migrator.ir.store import Entries
from migrator.ir.values import Constant, Either, Operation, Sequence, Table, Value
from migrator.names.bindings import bound_in, names_read
from migrator.pairing import equal_zip
from migrator.program.body import Body, names_given
from migrator.program.calls import calls_in, nodes_in
from migrator.program.derived_metrics import derived_metric, parts_of
from migrator.program.modes import EVAL, ModalStatement
from migrator.program.parsed import Blocked, names_in
from migrator.program.train_body import TrainBody
from migrator.program.trained import Done, Trained
from migrator.rules.metrics import Metric, is_metric, is_metric_symbol, read_metric
from migrator.walking import of_kinds, transformed

#: What may stand beside metrics and is left out with them.
_TOLD = ("print", "tf.summary.", "tf.logging.", "tf.get_logger", "logging.")


@dataclass(frozen=True)
class ReadMetrics:
    """The metrics with their keys, the name of their dict, the statements that only made them, and remarks."""

    metrics: tuple[tuple[cst.BaseExpression, Metric], ...] = ()
    title: str | None = None
    statements: frozenset[int] = frozenset()
    remarks: tuple[Blocked, ...] = ()


def read_metrics(body: Body, gone: Collection[int] = ()) -> ReadMetrics:
    """Reads the metrics of a model_fn; statements that are `gone` may have read them: those of hooks that are left out.

    Raises Blocked (TFM501, TFM502).
    """
    of = TrainBody(body.file, body.node, body.statements, frozenset(), lambda name: -1)
    with Trained(of, mode=EVAL, code="TFM501") as ran:
        return _Reader(body, ran, gone).read()


class _Reader:
    def __init__(self, body: Body, ran: Trained, gone: Collection[int]) -> None:
        self.body = body
        self.ran = ran
        self.left_out = frozenset(gone)
        self.imports = body.file.imports
        self.table: Value | None = None
        self.consumed: set[int] = set()

    def read(self) -> ReadMetrics:
        node = self.body.piece("eval_metric_ops", EVAL)
        self.table = self.ran.machine.settled(self.ran.value(node)) if node is not None else None
        for index, statement in enumerate(self.body.statements):
            self._collect(index, statement)
        found: list[tuple[cst.BaseExpression, Metric]] = []
        for key, metric in self._entries(node) if node is not None else ():
            found.append((key, metric))
        remarks = tuple(self._other_uses())
        return ReadMetrics(tuple(found), self._title(), frozenset(self.consumed), remarks)

    # -- statements

    def _collect(self, index: int, statement: ModalStatement) -> None:
        """Notes a statement that makes metrics, or their dict: it must do nothing else."""
        done = self.ran.done.get(index)
        if done is None:  # of another mode
            node = statement.node
            small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
            if isinstance(small, cst.Assign) and is_metric(small.value, self.imports):
                self.consumed.add(index)
            return
        given = {name for name, value in done.given.items() if self._is_of_metrics(value)}
        made = [one for one in done.effects if is_metric_symbol(one.symbol)]
        if not (given or made or any(one is self.table for one in done.filled)):
            return
        self.consumed.add(index)
        if isinstance(statement.node, cst.SimpleStatementLine):
            return
        read = _arguments(self.ran, made)
        for effect in done.effects:
            if effect not in read and not effect.symbol.startswith(_TOLD):
                raise Blocked(
                    "TFM501",
                    statement.node,
                    f"`{effect.symbol}` is called next to the metrics of this block: move it out",
                )

    def _parts(self, value: Value) -> Iterator[Value]:
        """What a value holds in the end, containers opened."""
        content, entries = self.ran.machine.content_of(value), self.ran.machine.entries_of(value)
        if content is not None:
            for one in content.items:
                yield from self._parts(one)
        elif entries is not None:
            for _, one in entries.items.values():
                yield from self._parts(one)
        elif isinstance(value, Either):
            yield from self._parts(value.then)
            yield from self._parts(value.otherwise)
        elif isinstance(value, Operation) and value.symbol == "getitem" and value.args:
            yield value.args[0]
        elif inner := list(parts_of(value)):
            for one in inner:
                yield from self._parts(one)
        else:
            yield value

    def _is_of_metrics(self, value: Value) -> bool:
        """Whether a value is the dict of the metrics, or consists of results of metrics."""
        if value is self.table and isinstance(value, Table):
            return True
        parts = list(self._parts(value))
        return bool(parts) and all(isinstance(one, Operation) and is_metric_symbol(one.symbol) for one in parts)

    def _title(self) -> str | None:
        """The first name of the dict."""
        if self.table is None:
            return None
        given = [name for index in sorted(self.ran.done) for name in self.ran.names_of(self.table, index)]
        return given[0] if given else None

    # -- entries

    def _entries(self, node: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, Metric]]:
        """Keys, and their metrics."""
        table = self.table
        entries = self.ran.machine.entries_of(table) if table is not None else None
        if table is None or entries is None:
            raise Blocked("TFM501", node, "the entries of eval_metric_ops cannot be resolved: write a dict literal")
        place = self._place(table, node)
        if entries.more:
            raise Blocked("TFM501", place, "some entries of eval_metric_ops are known only at run time")
        keys = self._keys(table, entries)
        for name, (key, value) in entries.items.items():
            only_if = self._condition(value, node) if may_be_absent(value) else None
            made = present(value)
            metric = self._derived(made, node) or self._metric(self._made(made, place), node)
            yield keys.get(name) or self._key(key, node), replace(metric, only_if=only_if)

    def _condition(self, value: Value, node: cst.BaseExpression) -> cst.BaseExpression:
        """The tests of the `if`s that decide whether there is a metric. Raises Blocked (TFM501)."""
        place = self._place(present(value), node)
        if not isinstance(value, Either) or (value.then is NOTHING) is (value.otherwise is NOTHING):
            raise Blocked("TFM501", place, "several conditions control this metric: write one")
        said = value.condition.site.node if value.condition.site is not None else None
        tests = [one.test for one in nodes_in(self.body.node) if isinstance(one, cst.If)]
        tests += [one.expression for one in tests if isinstance(one, cst.UnaryOperation)]
        if not isinstance(said, cst.BaseExpression) or not any(one is said for one in tests):
            raise Blocked("TFM501", place, "a condition controls this metric")
        if calls_in(said) or names_in(said) & self._gone():
            raise Blocked("TFM501", place, "a computed condition controls this metric: test a name or a param")
        found = _grouped(said) if value.otherwise is NOTHING else cst.UnaryOperation(cst.Not(), _grouped(said))
        inner = value.then if value.otherwise is NOTHING else value.otherwise
        if not may_be_absent(inner):
            return said if value.otherwise is NOTHING else found
        return cst.BooleanOperation(found, cst.And(), _grouped(self._condition(inner, node)))

    def _metric(self, operation: Operation, node: cst.BaseExpression | None) -> Metric:
        metric = read_metric(self._call(operation, node), self.imports, self.body.file.code)
        return replace(metric, position=self._position(operation))

    def _derived(self, value: Value, node: cst.BaseExpression) -> Metric | None:
        """The metric of a pair that is computed from the results of others."""
        content = self.ran.machine.content_of(value) if isinstance(value, Sequence) else None
        if content is None or content.more or len(content.items) != 2:
            return None
        first, update = content.items
        if not any(True for _ in parts_of(first)):
            return None
        metrics: dict[Operation, Metric] = {}

        def read(operation: Operation) -> Metric:
            return metrics.setdefault(operation, self._metric(operation, node))

        found = derived_metric(first, update, read, self.body.file.code)
        return None if found is None else replace(found, position=max(one.position for one in metrics.values()))

    def _place(self, value: Value, node: cst.BaseExpression) -> cst.CSTNode:
        """Where a value is made, if that is in the model_fn."""
        made = value.site.node if value.site is not None else None
        return made if made is not None and self._is_inside(made) else node

    def _is_inside(self, node: cst.CSTNode) -> bool:
        return any(node is one for one in nodes_in(self.body.node))

    def _keys(self, table: Value, entries: Entries) -> dict[object, cst.BaseExpression]:
        """The keys of a dict that is written out as they are written."""
        made = table.site.node if table.site is not None else None
        elements = made.elements if isinstance(made, cst.Dict) else ()
        written = [one.key for one in elements if isinstance(one, cst.DictElement)]
        known = [identity(self.ran.value(one)) for one in written if not calls_in(one)]
        if len(known) != len(written) or len(set(known)) != len(known):
            return {}
        return {key: one for key, one in equal_zip(known, written) if key in entries.items}

    def _key(self, key: Value, node: cst.BaseExpression) -> cst.BaseExpression:
        made = self._place(key, node)
        if isinstance(key, Constant) and isinstance(key.value, str):
            is_text = isinstance(made, (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString))
            return (
                made
                if is_text and isinstance(made, cst.BaseExpression)
                else cst.SimpleString(json.dumps(key.value, ensure_ascii=False))
            )
        if made is node or not isinstance(made, cst.BaseExpression) or names_in(made) & self._gone():
            raise Blocked("TFM501", node, "a key of eval_metric_ops is known only at run time: write a literal")
        return made

    def _gone(self) -> set[str]:
        """The names that are left out with the statements of the metrics."""
        return names_given([self.body.statements[index] for index in self.consumed])

    def _made(self, value: Value, place: cst.CSTNode) -> Operation:
        """The call of the metric that an entry stands for."""
        if isinstance(value, Sequence):
            content = self.ran.machine.content_of(value)
            pair = content.items if content is not None and not content.more else ()
            of = [one.args[0] for one in pair if isinstance(one, Operation) and one.symbol == "getitem"]
            which = [one.args[1] for one in pair if isinstance(one, Operation) and one.symbol == "getitem"]
            numbers = [one.value if isinstance(one, Constant) else None for one in which]
            if numbers == [0, 1] and of[0] is of[1] and isinstance(of[0], Operation):
                return self._made(of[0], place)
            raise Blocked(
                "TFM501",
                self._place(value, self.body.node.name) if value.site is not None else place,
                "this metric is a pair, but not the result of one tf.metrics call",
            )
        if not isinstance(value, Operation) or self.ran.machine.settled(value) is not value:
            raise Blocked("TFM501", self._place(value, self.body.node.name), "this metric is not a call of tf.metrics")
        return value

    # -- calls

    def _call(self, operation: Operation, node: cst.BaseExpression | None) -> cst.Call:
        """The call of a metric, which reads nothing that is left out with the statements of the metrics."""
        made = operation.site.node if operation.site is not None else None
        if not isinstance(made, cst.Call) or not self.ran.is_written_there(operation):
            place = self.ran.node(operation) or node or self.body.node.name
            raise Blocked("TFM501", place, "this metric is not a tf.metrics call in the model_fn itself")
        index = self.ran.at[operation]
        before = [self.body.statements[one] for one in self.consumed if one < index]
        block = [one for one in self.body.statements[index : index + 1] if not isinstance(one.node, _LINE)]
        gone = names_given([*before, *block])
        whole = [self.body.statements[index].node] if index < self.ran.end else []
        gone |= {name for one in whole for inner in of_kinds(one, cst.CompFor) for name in names_in(inner.target)}
        args: list[cst.Arg] = []
        places = iter(operation.args)
        for arg in made.args:
            keyword = arg.keyword.value if arg.keyword is not None else None
            value = next(places, None) if keyword is None else operation.kwargs.get(keyword)
            if value is not None and not arg.star and names_in(arg.value) & gone:
                args.append(arg.with_changes(value=self._written(value, gone)))
            else:
                args.append(arg)
        return made if all(a is b for a, b in equal_zip(args, made.args)) else made.with_changes(args=args)

    def _written(self, value: Value, gone: set[str]) -> cst.BaseExpression:
        """An expression for a value that does not read names that are gone."""
        if isinstance(value, Constant):
            return cst.parse_expression(repr(value.value))
        for name in dict.fromkeys(one.name for one in bound_in(self.body.node)):
            if name not in gone and self.ran.value_of(name) is value:
                return cst.Name(name)
        made = value.site.node if value.site is not None else None
        index = self.ran.at.get(value)
        if isinstance(value, Operation) and isinstance(made, cst.BaseExpression):
            there = index in self.consumed and self.ran.is_written_there(value)
            if there and not names_in(made) & gone:
                return made
            # What Python computes of values is the same wherever it stands, if each of these has a name of its own.
            parts = dict(self._operands(made, value)) if there or index is None else {}
            written = {
                part: self._written(one, gone)
                for part, one in parts.items()
                if names_in(part) & gone or (index is None and names_in(part))
            }
            if not isinstance(made, cst.Call):
                written = {part: one if _is_index(made, part) else _apart(one) for part, one in written.items()}
            new = transformed(made, _Instead(written))
            if parts and isinstance(new, cst.BaseExpression) and not names_in(new) & gone:
                return new
        message = "a metric reads a variable of its block: assign it outside"
        raise Blocked("TFM501", self._place(value, self.body.node.name), message)

    def _operands(self, made: cst.BaseExpression, value: Operation) -> Iterator[tuple[cst.BaseExpression, Value]]:
        """What an operation is computed of, each part of its expression with what it stood for there."""
        if isinstance(made, cst.Call):
            if self.imports.resolve(made.func) != value.symbol or any(arg.star for arg in made.args):
                return
            places = iter(value.args)
            for arg in made.args:
                given = next(places, None) if arg.keyword is None else value.kwargs.get(arg.keyword.value)
                if given is not None:
                    yield arg.value, given
        elif isinstance(made, cst.Subscript) and value.symbol == "getitem" and len(value.args) == len(made.slice) + 1:
            yield made.value, value.args[0]
            for element, key in equal_zip(made.slice, value.args[1:]):
                if isinstance(element.slice, cst.Index):
                    yield element.slice.value, key
                elif isinstance(element.slice, cst.Slice) and isinstance(key, Operation) and key.symbol == "slice":
                    bounds = (element.slice.lower, element.slice.upper, element.slice.step)
                    for bound, one in equal_zip(bounds, key.args):
                        if bound is not None:
                            yield bound, one
        elif isinstance(made, cst.BinaryOperation) and len(value.args) == 2:
            yield made.left, value.args[0]
            yield made.right, value.args[1]
        elif isinstance(made, cst.Comparison) and len(made.comparisons) == 1 and len(value.args) == 2:
            yield made.left, value.args[0]
            yield made.comparisons[0].comparator, value.args[1]

    def _position(self, operation: Operation) -> int:
        """The number of statements before a metric."""
        index = self.ran.at[operation]
        if index < self.ran.end:
            return index
        specs = [spec for spec, bound in self.body.specs if EVAL in spec.modes and "eval_metric_ops" in bound]
        return specs[0].position

    def _other_uses(self) -> Iterator[Blocked]:
        """What else is done with the results of metrics: they may be written to summaries or given a name only."""
        before: set[str] = set()  # names that statements of the metrics gave their value
        for index, statement in enumerate(self.body.statements):
            node = statement.node
            given = names_given((statement,))
            if index in self.consumed:
                before |= given
                continue
            own = names_in(node.target) if isinstance(node, cst.For) else set()
            used = sorted((names_read(node) - own) & before)
            if not isinstance(node, _LINE) or names_read(node) & given:
                given = own
            before -= given
            if not used or index in self.left_out:
                continue
            if self.ran.done.get(index) == Done():  # a branch that is never taken
                self.consumed.add(index)
                continue
            small = node.body[0] if isinstance(node, _LINE) and len(node.body) == 1 else None
            call = small.value if isinstance(small, cst.Expr) else None
            name = self.imports.resolve(call.func) or "" if isinstance(call, cst.Call) else ""
            if name.startswith("tf.summary."):
                continue  # left out with the other summaries
            if name != "tf.identity":
                raise Blocked("TFM501", node, f"`{used[0]}` is not used by the evaluation alone")
            self.consumed.add(index)
            yield Blocked("TFM512", node, "the tensor name of this metric is dropped: nothing reads it any more")


_LINE = cst.SimpleStatementLine


class _Instead(cst.CSTTransformer):
    """Puts expressions in the place of others."""

    def __init__(self, written: Mapping[cst.BaseExpression, cst.BaseExpression]) -> None:
        super().__init__()
        self.written = {id(part): new for part, new in written.items()}

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        return self.written.get(id(original_node), updated_node)


def _is_index(made: cst.BaseExpression, part: cst.BaseExpression) -> bool:
    """Whether a part of an expression stands in its brackets."""
    return isinstance(made, cst.Subscript) and made.value is not part


def _apart(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that may be an operand."""
    return node if isinstance(node, (cst.Call, cst.Integer, cst.Float, cst.SimpleString)) else _grouped(node)


def _grouped(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that may stand in another one."""
    if node.lpar or isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _arguments(ran: Trained, made: list[Operation]) -> set[Value]:
    """Operations, and all that they are computed from."""
    found: set[Value] = set()
    queue: list[Value] = list(made)
    while queue:
        one = queue.pop()
        if one in found:
            continue
        found.add(one)
        content = ran.machine.content_of(one)
        if isinstance(one, Operation):
            queue += one.given
        elif content is not None:
            queue += content.items
        elif isinstance(one, Either):
            queue += [one.condition, one.then, one.otherwise]
    return found
