"""The learning rate of a model_fn: a number, a schedule that Keras has, or lines that compute it from the step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.program.assignments import assignments, branches
from migrator.program.calls import calls_in
from migrator.program.made_optimizers import Helper
from migrator.program.modes import TRAIN
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.train_body import TrainBody
from migrator.rules.canned import TWO
from migrator.rules.optimizers import parameters_of
from migrator.rules.schedules import GLOBAL_STEPS, is_schedule, step_argument


@dataclass(frozen=True)
class Rate:
    """How the rate of the optimizers changes with the global step.

    `stock` are calls that become Keras schedules where they stand, `steps` the mentions of the global step in them,
    `scheduled` the optimizers whose rate is a schedule. Where Keras has no such schedule, `moved` are the statements
    that compute `value` from the step, which they call `step`; `values` are its mentions.
    Statements other than `own` must not read `names`.
    """

    stock: frozenset[cst.CSTNode] = frozenset()
    steps: frozenset[cst.CSTNode] = frozenset()
    scheduled: frozenset[cst.CSTNode] = frozenset()
    moved: tuple[int, ...] = ()
    value: cst.BaseExpression | None = None
    values: frozenset[cst.CSTNode] = frozenset()
    step: str = "step"
    names: frozenset[str] = frozenset()
    own: frozenset[int] = frozenset()


def read_rate(body: TrainBody, made: Sequence[cst.Call], consumed: frozenset[int], steps: frozenset[str]) -> Rate:
    """Reads the rate of the optimizers that `made` makes. Raises Blocked (TFM402)."""
    parts = [part.value for call in made if body.imports.resolve(call.func) == f"tf.{TWO}" for part in call.args]
    own = [call for call in made if body.imports.resolve(call.func) != f"tf.{TWO}"]
    return _Reader(body, consumed, steps).read([*own, *(part for part in parts if isinstance(part, cst.Call))])


def read_rate_of_helper(
    body: TrainBody, call: cst.Call, helper: Helper, consumed: frozenset[int], steps: frozenset[str]
) -> Rate:
    """The rate that is passed to a function which makes the optimizer. Raises Blocked (TFM402)."""
    return _Reader(body, consumed, steps).passed(call, helper)


class _Reader:
    def __init__(self, body: TrainBody, consumed: frozenset[int], steps: frozenset[str]) -> None:
        self.body = body
        self.steps = steps
        self.statements = [
            (index, statement.node)
            for index, statement in enumerate(body.statements)
            if TRAIN in statement.modes and index not in consumed
        ]
        self.derived = self._derived()
        self.stock: set[cst.CSTNode] = set()
        self.gone: set[cst.CSTNode] = set()

    def read(self, made: Sequence[cst.Call]) -> Rate:
        rates: dict[cst.Call, cst.BaseExpression] = {}
        for call in made:
            for parameter, value in self._arguments(call):
                self._no_data(value)
                if parameter == "global_step":
                    self.gone.add(value)
                elif parameter == "learning_rate":
                    rates[call] = value
                elif self._reads_step(value):
                    raise Blocked(
                        "TFM402", value, "another hyperparameter than the learning rate changes with the step"
                    )
        changing = [value for value in rates.values() if self._reads_step(value)]
        if not changing:
            return Rate(steps=frozenset(self.gone))
        scheduled = frozenset(call for call, value in rates.items() if self._reads_step(value))
        if self._in_place(changing):
            return self._stock_rate(changing, scheduled)
        return self._moved(changing, scheduled)

    def passed(self, call: cst.Call, helper: Helper) -> Rate:
        """The rate of optimizers that `helper` makes of the arguments of `call`."""
        changing = []
        for index, arg in enumerate(call.args):
            self._no_data(arg.value)
            if not self._reads_step(arg.value):
                continue
            name = arg.keyword.value if arg.keyword is not None else (helper.parameters[index : index + 1] or [""])[0]
            if arg.star or not self._is_rate_of(helper.node, name):
                raise Blocked(
                    "TFM402", arg.value, f"`{helper.node.name.value}` uses the learning rate for more than an optimizer"
                )
            changing.append(arg.value)
        if not changing:
            return Rate(steps=frozenset(self.gone))
        if not self._in_place(changing):
            name = helper.node.name.value
            message = f"a custom learning rate is passed to `{name}`: create the optimizer in the model_fn"
            raise Blocked("TFM402", changing[0], message)
        return self._stock_rate(changing, frozenset())

    def _is_rate_of(self, helper: cst.FunctionDef, name: str) -> bool:
        """Whether a function only hands its parameter on, as the rate of optimizers."""
        rates = {
            value
            for call in calls_in(helper.body)
            if parameters_of(self.body.imports.resolve(call.func) or "")
            for parameter, value in self._arguments(call)
            if parameter == "learning_rate"
        }
        return all(node in rates for node in name_nodes(helper.body) if node.value == name)

    def _stock_rate(self, changing: Sequence[cst.BaseExpression], scheduled: frozenset[cst.CSTNode]) -> Rate:
        own = self._slice(changing)
        given = {name for _, node in own for name, _ in assignments(node)}
        return Rate(
            frozenset(self.stock),
            frozenset(self.gone),
            scheduled,
            names=frozenset(given & self.derived),
            own=frozenset(index for index, _ in own),
        )

    def _arguments(self, call: cst.Call) -> Iterator[tuple[str, cst.BaseExpression]]:
        parameters = parameters_of(self.body.imports.resolve(call.func) or "")
        for index, arg in enumerate(call.args):
            if arg.keyword is not None:
                yield arg.keyword.value, arg.value
            else:
                yield (parameters[index] if index < len(parameters) else ""), arg.value

    def _no_data(self, value: cst.BaseExpression) -> None:
        names, seen = names_in(value), set[str]()
        while names - seen:
            name = (names - seen).pop()
            seen.add(name)
            if name in self.body.data:
                raise Blocked("TFM402", value, f"the optimizer reads `{name}`, which depends on the data")
            for _, node in self.statements:
                names |= {n for given, v in assignments(node) if given == name for n in names_in(v)}

    # -- what depends on the step ----------------------------------------------------------------------------------

    def _reads_step(self, node: cst.CSTNode) -> bool:
        return bool(names_in(node) & (self.steps | self.derived)) or bool(self._step_calls(node))

    def _step_calls(self, node: cst.CSTNode) -> list[cst.Call]:
        return [call for call in calls_in(node) if self.body.imports.resolve(call.func) in GLOBAL_STEPS]

    def _derived(self) -> set[str]:
        found: set[str] = set()
        self.derived = found
        while True:
            new = {name for _, node in self.statements if self._reads_step(node) for name, _ in assignments(node)}
            if new <= found:
                return found
            found |= new

    # -- schedules that Keras has ----------------------------------------------------------------------------------

    def _in_place(self, rates: Sequence[cst.BaseExpression]) -> bool:
        """Whether every value on the way to the rates is a Keras schedule, or does not change."""
        schedules: set[str] = set()
        for _, node in self._slice(rates):
            given = _plain(node)
            if given is None:
                return False
            for name, value in given:
                if self._is_stock(value, schedules):
                    schedules.add(name)
                elif names_in(value) & (schedules | self.steps) or self._step_calls(value):
                    return False
                elif isinstance(node, cst.SimpleStatementLine):
                    schedules.discard(name)
        return all(
            isinstance(rate, cst.Name)
            or self._is_stock(rate, schedules)
            or not (names_in(rate) & (schedules | self.steps) or self._step_calls(rate))
            for rate in rates
        )

    def _is_stock(self, node: cst.BaseExpression, schedules: set[str]) -> bool:
        name = self.body.imports.resolve(node.func) if isinstance(node, cst.Call) else None
        if not isinstance(node, cst.Call) or name is None or not is_schedule(name):
            return False
        step = step_argument(node, name)
        others = [arg.value for arg in node.args if arg.value is not step]
        plain = not any(names_in(value) & (schedules | self.steps) or self._step_calls(value) for value in others)
        if step is None or not plain or not self._is_step(step):
            return False
        self.stock.add(node)
        self.gone.add(step)
        return True

    def _is_step(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Name):
            return node.value in self.steps
        return isinstance(node, cst.Call) and self.body.imports.resolve(node.func) in GLOBAL_STEPS

    def _slice(self, rates: Sequence[cst.BaseExpression]) -> list[tuple[int, cst.BaseStatement]]:
        """The statements that give a value, changing with the step, which the rates come from."""
        names = {name for rate in rates for name in names_in(rate)} & self.derived
        found: dict[int, cst.BaseStatement] = {}
        while True:
            new = [
                (index, node)
                for index, node in self.statements
                if index not in found and any(name in names for name, _ in assignments(node))
            ]
            if not new:
                return sorted(found.items())
            for index, node in new:
                found[index] = node
                names |= (names_in(node) & self.derived) | {name for name, _ in assignments(node)}

    # -- lines of the program --------------------------------------------------------------------------------------

    def _moved(self, rates: Sequence[cst.BaseExpression], scheduled: frozenset[cst.CSTNode]) -> Rate:
        code = self.body.file.code
        if len({code(rate) for rate in rates}) > 1:
            raise Blocked("TFM402", rates[1], "two optimizers have different learning rates that change with the step")
        moved = self._slice(rates)
        given = {name for _, node in moved for name, _ in assignments(node)}
        read = set(names_in(rates[0])).union(*(names_in(node) for _, node in moved))
        parameters = {p.name.value for p in self.body.function.params.params}
        for name in sorted(given & parameters):
            raise Blocked(
                "TFM402",
                rates[0],
                f"`{name}`, a parameter of the model_fn, is reassigned for the learning rate: use another name",
            )
        for name in sorted(read & (given | self.body.data) & self.body.data):
            raise Blocked("TFM402", rates[0], f"the learning rate reads `{name}`, which depends on the data")
        for index, statement in enumerate(self.body.statements):
            before = set[str]().union(*(names_in(node) for at, node in moved if at < index))
            later = {name for name, _ in assignments(statement.node)} & (read - given) & before
            if later and TRAIN in statement.modes and index not in {i for i, _ in moved}:
                raise Blocked(
                    "TFM402",
                    statement.node,
                    f"`{sorted(later)[0]}`, which the learning rate reads, is reassigned later: use another name",
                )
        steps = sorted(read & self.steps)
        if len(steps) > 1:
            raise Blocked("TFM402", rates[0], f"the global step has two names: {' and '.join(steps)}")
        return Rate(
            steps=frozenset(self.gone),
            scheduled=scheduled,
            moved=tuple(index for index, _ in moved),
            value=rates[0],
            values=frozenset(rates),
            step=steps[0] if steps else "step",
            names=frozenset(given),
        )


def _plain(node: cst.BaseStatement) -> list[tuple[str, cst.BaseExpression]] | None:
    """The assignments of a statement that is one, or chooses between some."""
    if isinstance(node, cst.If):
        return branches(node)
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        small = node.body[0]
        if isinstance(small, cst.Assign) and all(isinstance(t.target, cst.Name) for t in small.targets):
            return assignments(node)
    return None
