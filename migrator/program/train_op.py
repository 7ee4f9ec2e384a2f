"""How a model_fn makes its train_op: the optimizer, and what happens to gradients before it applies them.

The TRAIN statements are followed in order, with what each name stands for: the optimizer, gradients, pairs of them and
variables, the global step, an operation that applies gradients. What is not one of these is left to the other readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Union

import libcst as cst

from migrator.names.bindings import value_given
from migrator.names.imports import ImportMap, dotted, missing_file
from migrator.pairing import equal_zip
from migrator.program.assignments import assignments, branches, changes_in_place, targets
from migrator.program.calls import bind, calls_in, is_false, is_none, is_true, number, string
from migrator.program.known import made_by
from migrator.program.model_variables import is_all_of_it, makes_variables
from migrator.program.modes import TRAIN, ModalStatement
from migrator.program.parsed import Blocked, names_in
from migrator.program.rates import Rate, read_rate, read_rate_of_helper
from migrator.program.scopes import bindings, path_to
from migrator.program.train_body import TrainBody
from migrator.program.update_ops import added_later, only_under
from migrator.rules.optimizers import is_optimizer
from migrator.rules.schedules import GLOBAL_STEPS
from migrator.walking import walk

_SHARDED = ("tf.contrib.tpu.CrossShardOptimizer", "tf.tpu.CrossShardOptimizer")
_NAMES_OF_OPTIMIZERS = {
    # The optimizers that optimize_loss knows by name (tf.contrib.layers.OPTIMIZER_CLS_NAMES).
    "Adagrad": "tf.train.AdagradOptimizer({})",
    "Adam": "tf.train.AdamOptimizer({})",
    "Ftrl": "tf.train.FtrlOptimizer({})",
    "Momentum": "tf.train.MomentumOptimizer({}, momentum=0.9)",
    "RMSProp": "tf.train.RMSPropOptimizer({})",
    "SGD": "tf.train.GradientDescentOptimizer({})",
}


@dataclass(frozen=True)
class Clipping:
    """Gradients are clipped: the Keras argument that does the same, and its value."""

    argument: str
    value: cst.BaseExpression


class Order(Enum):
    """When a step updates moving averages of the weights: TensorFlow 1 leaves it open without control dependencies."""

    BEFORE = "before the weights"
    AFTER = "after the weights"
    OPEN = "in no order"


@dataclass(frozen=True)
class Averages:
    """Every step moves averages of all trained weights: `tf.train.ExponentialMovingAverage(decay).apply()`.

    `call` made them. `counted` says that their decay is smaller in the first steps, which `num_updates` counts.
    """

    call: cst.Call
    decay: cst.BaseExpression
    counted: bool
    order: Order


@dataclass(frozen=True)
class TrainOp:
    """What `compile` needs to know, and the statements that said it.

    `optimizer` is the expression that makes the optimizer, or the name that statement `index` gives it; `made` are
    the calls that make it. `updates` says that batch normalization updates its moving averages, `updates_keras` that
    this is of a Keras model, whose updates are in no collection. `consumed` are the indices of statements that only
    made the train_op, and `names` the names that only they gave. `harmless` are control dependencies that may go.
    `place` is where to report an optimizer that is put together from several arguments, `helper` the function of the
    file that makes it, where one does. `variables` are names of all trained variables, which a loss may read too.
    `saved` are the objects of a `tf.train.Checkpoint`, each with its name there and what it is ("step", "optimizer",
    or "" for a part of the network). `averages` are those of the weights that are kept, and `averaging` the names of
    what keeps them. `outside` says that the optimizer is made by code around the model_fn, at `place`.
    """

    optimizer: cst.BaseExpression
    index: int | None
    made: tuple[cst.Call, ...]
    clipping: Clipping | None
    updates: bool
    rate: Rate
    consumed: frozenset[int]
    names: frozenset[str]
    harmless: frozenset[cst.CSTNode]
    place: cst.CSTNode | None = None
    helper: cst.FunctionDef | None = None
    variables: frozenset[str] = frozenset()
    saved: tuple[tuple[str, str, cst.BaseExpression], ...] = ()
    averages: Averages | None = None
    averaging: frozenset[str] = frozenset()
    outside: bool = False
    updates_keras: bool = False


_COUNTED_APART = "`num_updates` is counted apart from the weights: give `global_step` to the optimizer"
_BY_CONDITION = "a condition says when gradients are applied, as where they are added up: the bridge keeps it"

# -- what a name can stand for ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Optimizer:
    node: cst.BaseExpression
    index: int | None
    made: tuple[cst.Call, ...]
    clipping: Clipping | None = None
    place: cst.CSTNode | None = None
    helper: cst.FunctionDef | None = None
    call: cst.Call | None = None
    kept: bool = False  # in an attribute of the object whose method this is
    counts: bool = False  # its own iterations are the global step


@dataclass(frozen=True)
class _Gradients:
    """Gradients of the loss, alone or in pairs with their variables."""

    loss: cst.BaseExpression
    at: int
    clipping: Clipping | None = None
    updates: bool = False
    pairs: bool = False
    of_all: bool = True  # trained variables


@dataclass(frozen=True)
class _Variables:
    """Trained variables: all of them, or some; `early` are those that there were where they were asked for."""

    node: cst.BaseExpression
    all: bool = True
    early: bool = False


@dataclass(frozen=True)
class _Step:
    node: cst.BaseExpression


@dataclass(frozen=True)
class _Norm:
    """A number about gradients."""


@dataclass(frozen=True)
class _Operation:
    """Something that runs: it applies gradients, counts steps, updates moving averages, or nothing of these.

    `counting` are the expressions that count the global step.
    """

    applied: tuple[tuple[_Optimizer, _Gradients], ...] = ()
    counting: frozenset[cst.CSTNode] = frozenset()
    updates: bool = False
    averages: Averages | None = None
    keras: bool = False  # its updates are those of a Keras model


@dataclass(frozen=True)
class _Averaging:
    """`tf.train.ExponentialMovingAverage(...)`: what its `apply` does."""

    averages: Averages


@dataclass(frozen=True)
class _Several:
    items: tuple[_Value | None, ...]


@dataclass(frozen=True)
class _Checkpoint:
    """`tf.train.Checkpoint(step=..., net=...)`: what each of its objects is, and the expression for it."""

    objects: tuple[tuple[str, _Value | None, cst.BaseExpression], ...]

    def of(self, name: str) -> _Value | None:
        return next((value for key, value, _ in self.objects if key == name), None)


_Value = Union[
    _Optimizer,
    _Gradients,
    _Variables,
    _Step,
    _Norm,
    _Operation,
    _Averaging,
    _Several,
    _Checkpoint,
]


def read_train_op(node: cst.BaseExpression | None, loss: cst.BaseExpression, body: TrainBody) -> TrainOp:
    """Reads the train_op of the TRAIN mode, which minimizes `loss`. Raises Blocked (TFM401, TFM402, TFM403, TFM413)."""
    if node is None:
        raise Blocked("TFM403", body.function.name, "no EstimatorSpec of the TRAIN mode has a train_op")
    return _Reader(body).read(node, loss)


@dataclass
class _Reader:
    body: TrainBody
    names: dict[str, _Value] = field(default_factory=dict)
    consumed: dict[int, set[str]] = field(default_factory=dict)
    at: int = 0
    problems: dict[str, Blocked] = field(default_factory=dict)
    harmless: set[cst.CSTNode] = field(default_factory=set)
    read_at: dict[cst.CSTNode, int] = field(default_factory=dict)  # the statements that read what is written elsewhere
    after: tuple[cst.BaseExpression, ...] = ()
    waiting: dict[int, cst.CSTNode] = field(default_factory=dict)  # statements that wait for updates, and for which
    around: dict[cst.BaseExpression, _Value | None] = field(default_factory=dict)  # what control dependencies name

    def read(self, node: cst.BaseExpression, loss: cst.BaseExpression) -> TrainOp:
        for index, statement in enumerate(self.body.statements):
            if TRAIN in statement.modes:
                self.at = index
                self._statement(statement)
        self.at = len(self.body.statements)
        if isinstance(node, cst.Name) and node.value in self.problems:
            raise self.problems[node.value]
        value = self._value(node)
        if isinstance(value, _Several):
            value = self._joined(value.items, node)
        if not isinstance(value, _Operation) or not value.applied:
            made = self._made_by(node)
            for name in sorted(names_in(made) & self.problems.keys()):
                raise self.problems[name]
            if self._is_conditional(made):
                raise Blocked("TFM417", made, _BY_CONDITION)
            message = "this train_op does not apply gradients with an optimizer"
            raise Blocked("TFM403", made, message + self._not_given(made))
        for _, gradients in value.applied:
            self._check(gradients, loss)
        self._check_counting(value, node)
        if len(value.applied) > 1 or not value.applied[0][1].of_all:
            message = "variables are trained by their names, which Keras changes: the bridge keeps them"
            raise Blocked("TFM415", self._made_by(node), message)
        [(optimizer, gradients)] = value.applied
        clipping = self._clipping_of(optimizer, gradients)
        if value.averages is not None:
            self._check_averages(value.averages, optimizer)
        rate = self._rate(optimizer)
        self._check_kept(value, optimizer, gradients, clipping, rate)
        only = {name for names in self.consumed.values() for name in names}
        return TrainOp(
            optimizer=optimizer.node,
            index=optimizer.index,
            made=tuple(dict.fromkeys(optimizer.made)),
            clipping=clipping,
            updates=self._updates(value, loss),
            rate=rate,
            consumed=frozenset(self.consumed),
            names=frozenset(only),
            harmless=frozenset(self.harmless),
            place=optimizer.place,
            outside=optimizer.kept,
            updates_keras=value.keras,
            helper=optimizer.helper,
            variables=frozenset(n for n, v in self.names.items() if isinstance(v, _Variables) and v.all),
            saved=tuple(
                (key, {_Step: "step", _Optimizer: "optimizer"}.get(type(value), ""), node)
                for checkpoint in self.names.values()
                if isinstance(checkpoint, _Checkpoint)
                for key, value, node in checkpoint.objects
            ),
            averages=value.averages,
            averaging=frozenset(
                name
                for name, known in self.names.items()
                if isinstance(known, _Averaging) or (isinstance(known, _Operation) and known.averages is not None)
            ),
        )

    def _updates(self, value: _Operation, loss: cst.BaseExpression) -> bool:
        """Whether a step runs the updates of moving averages: the train_op waits for them, or the loss does.

        Raises Blocked (TFM403) where only something else waits for them: a summary runs them now and then.
        """
        if value.updates or any(gradients.updates for _, gradients in value.applied):
            return True
        waiting = {index: place for index, place in self.waiting.items() if index not in self.consumed}
        needed = names_in(loss)
        for index in range(len(self.body.statements) - 1, -1, -1):
            statement = self.body.statements[index]
            given = {name for name, _ in assignments(statement.node)} & needed
            if TRAIN not in statement.modes or not given:
                continue
            needed |= names_in(statement.node)
            if index in waiting:
                return True
        if waiting:
            place = waiting[min(waiting)]
            raise Blocked("TFM403", place, "neither loss nor train_op waits for these updates: let `minimize` do")
        return False

    def _clipping_of(self, optimizer: _Optimizer, gradients: _Gradients) -> Clipping | None:
        """How the gradients are clipped that an optimizer applies."""
        clipping = [c for c in (optimizer.clipping, gradients.clipping) if c is not None]
        if len(clipping) > 1:
            raise Blocked("TFM403", clipping[1].value, "the gradients are clipped twice")
        if clipping and optimizer.helper is not None and optimizer.index is None:
            raise Blocked("TFM403", clipping[0].value, "give the optimizer a name before its gradients are clipped")
        if clipping and optimizer.kept:
            message = "the optimizer is made elsewhere: make it in the model_fn, which clips its gradients"
            raise Blocked("TFM403", clipping[0].value, message)
        return clipping[0] if clipping else None

    def _check_averages(self, averages: Averages, optimizer: _Optimizer) -> None:
        """The optimizer keeps the averages: it must be made here, after all that says how."""
        if optimizer.helper is not None or optimizer.kept or not optimizer.made:
            message = "make the optimizer in the model_fn, which keeps moving averages of the weights"
            raise Blocked("TFM413", averages.call, message)
        if optimizer.index is None:
            return
        later = self.body.statements[optimizer.index :]
        given = {name for statement in later for name, _ in assignments(statement.node)}
        for name in sorted(names_in(averages.decay) & given):
            raise Blocked("TFM413", averages.decay, f"give `{name}` its value before the optimizer is made")

    def _check_kept(
        self, value: _Operation, optimizer: _Optimizer, gradients: _Gradients, clipping: Clipping | None, rate: Rate
    ) -> None:
        """What is written elsewhere than it stood must not read names that get another value in between."""
        node, index = optimizer.node, optimizer.index
        self._check_names(names_in(node), self.read_at.get(node, gradients.at) if index is None else index)
        if clipping is not None and index is None:
            self._check_names(names_in(clipping.value), self.read_at[clipping.value])
        elif clipping is not None and index is not None:
            for name, place in self._given_after(index):
                if name in names_in(clipping.value):
                    message = f"give `{name}` its value before the optimizer is made, which clips"
                    raise Blocked("TFM403", place, message)
        if rate.value is not None and rate.scheduled & set(optimizer.made):
            self._check_names(names_in(rate.value), self.read_at[optimizer.made[0]], "TFM402")
        if value.averages is not None:
            self._check_names(names_in(value.averages.decay), self.read_at[value.averages.decay], "TFM413")

    def _check_names(self, names: set[str], at: int, code: str = "TFM403") -> None:
        """Raises Blocked where names get another value after the statement of index `at` read them."""
        for name, place in self._given_after(at):
            if name in names:
                message = f"`{name}` gets another value than the one that the training reads: give this another name"
                raise Blocked(code, place, message)

    def _given_after(self, at: int) -> list[tuple[str, cst.BaseExpression]]:
        """The names that get values in the statements after that of index `at`, where these stay."""
        later = [
            statement.node
            for index, statement in enumerate(self.body.statements)
            if index > at and TRAIN in statement.modes and index not in self.consumed
        ]
        return [one for node in later for one in (*assignments(node), *changes_in_place(node))]

    def _check_counting(self, value: _Operation, node: cst.BaseExpression) -> None:
        if not value.counting:
            raise Blocked(
                "TFM403", self._made_by(node), "the global step is not counted: the Estimator would never stop"
            )
        if len(value.counting) > 1:
            message = "a batch counts as several steps: give `global_step` to one of the optimizers only"
            raise Blocked("TFM415", self._made_by(node), message)

    def _rate(self, optimizer: _Optimizer) -> Rate:
        consumed, steps = frozenset(self.consumed), frozenset(self._steps())
        if optimizer.helper is not None and optimizer.call is not None:
            return read_rate_of_helper(self.body, optimizer.call, optimizer.helper, consumed, steps)
        return read_rate(self.body, list(optimizer.made), consumed, steps)

    def _check(self, gradients: _Gradients, loss: cst.BaseExpression) -> None:
        code = self.body.file.code
        if code(gradients.loss) != code(loss):
            raise Blocked("TFM403", gradients.loss, "what is minimized is not the loss of the EstimatorSpec")
        if isinstance(loss, cst.Name) and self.body.loss_index(loss.value) > gradients.at:
            raise Blocked(
                "TFM403", gradients.loss, "the loss changes after it is minimized: EstimatorSpec reports another one"
            )

    def _made_by(self, node: cst.BaseExpression) -> cst.CSTNode:
        """The last statement that gave a name its value, for reports."""
        if isinstance(node, cst.Name):
            for statement in reversed(self.body.statements):
                if TRAIN in statement.modes and any(n == node.value for n, _ in assignments(statement.node)):
                    return next(v for n, v in assignments(statement.node) if n == node.value)
        return node

    def _is_conditional(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and self._resolve(node) == "tf.cond"

    def _not_given(self, node: cst.CSTNode) -> str:
        """What to give tf-migrate as well, where a function of a file that was not given makes a train_op."""
        if self.body.project is None or not isinstance(node, cst.Call):
            return ""
        parts = (self.body.imports.resolve(node.func) or "").split(".")
        modules = [".".join(parts[:length]) for length in range(1, len(parts))]
        if any(self.body.project.sibling(self.body.file, module) for module in modules):
            return ""
        told = missing_file(self.body.imports, node.func)
        return told and f"; what `{dotted(node.func)}(...)` makes is not known{told}"

    def _steps(self) -> set[str]:
        return {name for name, value in self.names.items() if isinstance(value, _Step)}

    # -- statements ------------------------------------------------------------------------------------------------

    def _statement(self, statement: ModalStatement) -> None:
        node = statement.node
        self.after = statement.after
        self.harmless |= {first for first in statement.after if self._only_updates(first)}
        for first in statement.after:
            operation = self._awaited_by(first)
            made = [value for _, value in assignments(node)]
            waits = not made or not all(_makes_nothing(value) for value in made)
            if operation is not None and operation.updates and waits:
                self.waiting[self.at] = first
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
            self._small(node.body[0], statement)
            return
        if isinstance(node, cst.If) and (self._choice(node) or self._updates_by_condition(node)):
            return
        if isinstance(node, cst.For) and self._loop(node):
            return
        self._lose(changes_in_place(node))
        for name, value in assignments(node):
            self._forget(
                name, Blocked("TFM403", value, f"`{name}` is given a value inside a block that is not understood")
            )

    def _forget(self, name: str, problem: Blocked | None = None) -> None:
        self.names.pop(name, None)
        self.problems.pop(name, None)
        if problem is not None:
            self.problems[name] = problem

    def _lose(self, changes: Sequence[tuple[str, cst.BaseExpression]]) -> None:
        """Forgets names that are changed by what is not read, and other names of the same values."""
        for changed, place in changes:
            known = self.names.get(changed)
            for name in [changed, *(n for n, v in self.names.items() if v is known and n != changed)]:
                if name in self.names or name not in self.problems:
                    message = f"`{changed}` is changed where that is not followed"
                    self._forget(name, Blocked("TFM403", place, message))

    def _small(self, small: cst.BaseSmallStatement, statement: ModalStatement) -> None:
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and self._grows(small.value, statement):
            return
        self._lose(changes_in_place(small))
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            target = small.targets[0].target
            value = self._ordered(self._value(small.value), statement, small.value)
            if isinstance(target, cst.Name):
                self._give(target.value, value, small.value)
                return
            if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, _Several):
                names = [e.value.value if isinstance(e.value, cst.Name) else None for e in target.elements]
                if None not in names and len(names) == len(value.items):
                    for name, item in equal_zip(names, value.items):
                        self._give(str(name), item, small.value)
                    return
            if self._counts_iterations(target, value):
                return
            for name in targets(target):
                self._forget(name)
        elif isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
            if small.target.value in self.names:
                message = f"`{small.target.value}` is changed in place"
                self._forget(small.target.value, Blocked("TFM403", small, message))
        elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and self._mentions(small.value):
            self.consumed.setdefault(self.at, set())
        else:
            self._lose(assignments(small))

    def _grows(self, call: cst.Call, statement: ModalStatement) -> bool:
        """`train_ops.append(optimizer.minimize(...))`."""
        func = call.func
        if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name) or len(call.args) != 1:
            return False
        into, known = func.value.value, self._value(func.value)
        if func.attr.value not in ("append", "extend") or not (isinstance(known, _Several) or into in self._lists):
            return False
        value = self._ordered(self._value(call.args[0].value), statement, call.args[0].value)
        new = value.items if isinstance(value, _Several) and func.attr.value == "extend" else (value,)
        if not all(isinstance(one, _Operation) for one in new):
            if isinstance(known, _Several):
                self._forget(into, Blocked("TFM403", call, f"what is added to `{into}` is not understood"))
            return False
        if isinstance(known, _Several):
            new = (*known.items, *new)
            self._lose([(into, call)])
        else:
            self.consumed.setdefault(self._lists[into], set()).add(into)
        self._forget(into)
        self.names[into] = _Several(new)
        self.consumed.setdefault(self.at, set()).add(into)
        return True

    def _counts_iterations(self, target: cst.BaseExpression, value: _Value | None) -> bool:
        """`optimizer.iterations = tf.train.get_global_step()`: an optimizer of Keras counts the global step itself."""
        if not isinstance(target, cst.Attribute) or target.attr.value != "iterations":
            return False
        optimizer = self._value(target.value)
        if not isinstance(value, _Step) or not isinstance(optimizer, _Optimizer):
            return False
        assert isinstance(target.value, cst.Name)
        self.names[target.value.value] = replace(optimizer, counts=True)
        self.consumed.setdefault(self.at, set())
        return True

    def _give(self, name: str, value: _Value | None, node: cst.BaseExpression) -> None:
        self._forget(name, Blocked("TFM417", node, _BY_CONDITION) if self._is_conditional(node) else None)
        if value is None:
            return
        if isinstance(value, _Optimizer) and value.index is None:
            # Its statement stays: it makes the Keras optimizer.
            self.names[name] = replace(value, index=self.at, node=cst.Name(name))
            return
        if isinstance(value, _Variables) and not value.all:
            self.names[name] = value  # others may read it, too
            return
        self.names[name] = value
        if isinstance(value, _Optimizer):
            wrapped = isinstance(node, cst.Call) and not is_optimizer(self._resolve(node))
            if not wrapped and isinstance(value.node, cst.Name) and value.node.value != name:
                raise Blocked("TFM401", node, "the optimizer has two names")
        self.consumed.setdefault(self.at, set()).add(name)

    def _ordered(self, value: _Value | None, statement: ModalStatement, node: cst.BaseExpression) -> _Value | None:
        """A value that is made under control dependencies: what they run, runs with it."""
        if _makes_nothing(node):
            return value  # no operation is made here that would wait
        by_condition = Blocked("TFM417", node, _BY_CONDITION) if self._is_conditional(node) else None
        for node in statement.after:
            operation = self._awaited_by(node)
            if operation is None:
                changed = self.problems.get(node.value) if isinstance(node, cst.Name) else None
                changed = changed or by_condition
                raise changed or Blocked("TFM403", node, "these control dependencies are not carried over")
            if operation.applied and self._differentiates_here(value):
                message = "these gradients are computed after another optimizer changed variables: compute them first"
                raise Blocked("TFM415", node, message)
            if isinstance(value, _Gradients) and operation.averages is not None:
                raise Blocked("TFM413", node, "moving averages of the weights that gradients wait for")
            if isinstance(value, _Gradients):
                value = replace(value, updates=value.updates or operation.updates)
            elif isinstance(value, _Operation):
                value = self._joined((value, operation), node)
        return value

    def _differentiates_here(self, value: _Value | None) -> bool:
        """Whether the statement that is being read computes gradients."""
        if isinstance(value, _Operation):
            return any(gradients.at == self.at for _, gradients in value.applied)
        return isinstance(value, _Gradients) and value.at == self.at

    def _awaited_by(self, node: cst.BaseExpression) -> _Operation | None:
        value = self._outside(node)
        operation = self._joined(value.items, node) if isinstance(value, _Several) else value
        return operation if isinstance(operation, _Operation) else None

    def _only_updates(self, node: cst.BaseExpression) -> bool:
        operation = self._awaited_by(node)
        if operation is None or operation.averages is not None:
            return False
        return not operation.applied and not operation.counting

    def _awaited(self) -> _Operation:
        """What the control dependencies around this statement run before it."""
        values = [self._outside(node) for node in self.after]
        return self._joined(values, self.after[0]) or _Operation() if values else _Operation()

    def _outside(self, node: cst.BaseExpression) -> _Value | None:
        """The value of what control dependencies name, which does not wait for them itself."""
        if node not in self.around:  # they are looked at where the block begins
            inside, self.after = self.after, ()
            self.around[node] = self._value(node)
            self.after = inside
        return self.around[node]

    def _choice(self, node: cst.If) -> bool:
        """`if ...: optimizer = A(...) else: optimizer = B(...)`, and wrappers for TPUs."""
        found = branches(node)
        if found is None:
            return False
        given = {name for name, _ in found}
        values = [(name, value, self._value(value)) for name, value in found]
        optimizers = [(name, value) for name, _, value in values if isinstance(value, _Optimizer)]
        names = {name for name, _ in optimizers}
        if len(names) != 1 or not all(isinstance(v, _Optimizer) for n, _, v in values if n in names):
            return False
        (name,) = names
        wraps = [value for _, value in optimizers]
        if all(value.index is not None for value in wraps):
            # Only wrapped, once more or not: what is left of it says nothing.
            self.consumed.setdefault(self.at, set())
            return given == names and len({value.index for value in wraps}) == 1
        if any(value.index is not None or value.clipping is not None for value in wraps):
            return False
        earlier = self.names.get(name)
        if earlier is not None:
            return False
        for other in given - names:
            self._forget(other)
        made = tuple(call for value in wraps for call in value.made)
        self.names[name] = _Optimizer(cst.Name(name), self.at, made)
        return True

    def _updates_by_condition(self, node: cst.If) -> bool:
        """`if params.use_batch_norm:` a step that waits for updates, `else:` the same step without any, where that
        condition is what makes the layers which have updates."""
        if not isinstance(node.orelse, cst.Else) or self.after:
            return False
        waiting, plain = _one_step(self.body.imports, node.body), _one_step(self.body.imports, node.orelse.body)
        if waiting is None or plain is None or plain[2] is not None:
            return False
        name, value, first = waiting
        if first is None:
            return False
        if name != plain[0] or self.body.file.code(value) != self.body.file.code(plain[1]):
            return False
        updates, step = self._awaited_by(first), self._value(value)
        if updates is None or not updates.updates or not self._only_updates(first):
            return False
        if not isinstance(step, _Operation) or not step.applied:
            return False
        file, function = self.body.file.home(self.body.function)
        if not isinstance(function, cst.FunctionDef) or not only_under(self.body.project, file, function, node.test):
            return False
        self._forget(name)
        self.names[name] = replace(step, updates=True)
        self.consumed.setdefault(self.at, set()).add(name)
        return True

    def _loop(self, node: cst.For) -> bool:
        """Loops that clip: `for i, (g, v) in enumerate(pairs): pairs[i] = (clip(g), v)`, or with `append`."""
        loop = _read_loop(node)
        if loop is None:
            return False
        pairs = self._value(loop.over)
        if not isinstance(pairs, _Gradients):
            return False
        value = self._each(loop.element, loop.target, pairs)
        if value is None:
            return False
        into = loop.into
        if loop.index is None and into not in self._lists:
            return False
        if loop.index is not None and not (isinstance(loop.over, cst.Name) and loop.over.value == into):
            return False
        self.names[into] = value
        self.consumed.setdefault(self.at, set()).add(into)
        if loop.index is None:
            self.consumed.setdefault(self._lists.pop(into), set()).add(into)
        return True

    @property
    def _lists(self) -> dict[str, int]:
        """Names of lists that are empty still, and the statements that made them."""
        found: dict[str, int] = {}
        for index, statement in enumerate(self.body.statements[: self.at]):
            for name, _ in changes_in_place(statement.node) if TRAIN in statement.modes else ():
                found.pop(name, None)
            for name, value in assignments(statement.node):
                found.pop(name, None)
                if isinstance(value, cst.List) and not value.elements:
                    found[name] = index
            found |= dict.fromkeys(_empty_lists(statement.node), index)
        return found

    def _mentions(self, call: cst.Call) -> bool:
        """A statement that only makes the global step."""
        return isinstance(self._value(call), _Step)

    # -- expressions -----------------------------------------------------------------------------------------------

    def _resolve(self, node: cst.BaseExpression) -> str | None:
        return self.body.imports.resolve(node.func if isinstance(node, cst.Call) else node)

    def _value(self, node: cst.BaseExpression) -> _Value | None:
        if isinstance(node, cst.Name):
            return self.names.get(node.value) or self._around(node)
        if isinstance(node, (cst.List, cst.Tuple)):
            return self._list(node)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
            left, right = self._value(node.left), self._value(node.right)
            if isinstance(left, _Variables) and isinstance(right, _Variables):
                return _Variables(node, False)
            if isinstance(node.operator, cst.Subtract):
                return None
            sides = [v for side in (left, right) for v in (side.items if isinstance(side, _Several) else (side,))]
            return _Several(tuple(sides)) if all(isinstance(v, _Operation) for v in sides) else None
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return self._comprehension(node)
        if isinstance(node, cst.Subscript):
            value, index = self._value(node.value), _index(node)
            if isinstance(value, _Several) and index is not None and index < len(value.items):
                return value.items[index]
            return None
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.IfExp):
            return self._either(node)
        return None

    def _either(self, node: cst.IfExp) -> _Value | None:
        """`A(...) if ... else B(...)`, of which each makes an optimizer."""
        both = [self._value(node.body), self._value(node.orelse)]
        made = [value for value in both if isinstance(value, _Optimizer) and value.index is None]
        self.read_at.setdefault(node, self.at)
        if len(made) != len(both) or any(value.clipping is not None or value.kept for value in made):
            return None
        return _Optimizer(node, None, tuple(call for value in made for call in value.made))

    def _around(self, node: cst.Name) -> _Value | None:
        """An optimizer that a function around the model_fn gives a name, once."""
        file, function = self.body.file.home(self.body.function)
        around = path_to(file.module, function) if function is not None else []
        for scope in reversed([n for n in around if isinstance(n, (cst.FunctionDef, cst.Lambda))]):
            bound = [by for name, by in bindings(scope) if name == node.value]
            if not bound:
                continue
            made = value_given(scope, bound[0]) if len(bound) == 1 and scope is not function else None
            if isinstance(made, cst.Call) and is_optimizer(self._resolve(made)):
                return _Optimizer(node, None, (), place=made, kept=True)
            return None
        return None

    def _attribute(self, node: cst.Attribute) -> _Value | None:
        """`self.optimizer` of the class around the model_fn, an object of a checkpoint, or the variables of a model."""
        known = self._value(node.value)
        if isinstance(known, _Checkpoint):
            return known.of(node.attr.value)
        updates = self._updates_of_model(node)
        if updates is not None:
            return updates
        if node.attr.value == "trainable_variables" and isinstance(node.value, cst.Name):
            return _Variables(node) if is_all_of_it(self.body.file, self.body.function, node.value.value) else None
        file, function = self.body.file.home(self.body.function)
        around = path_to(file.module, function) if function is not None else []
        owner = next((n for n in reversed(around) if isinstance(n, cst.ClassDef)), None)
        if owner is None or not isinstance(node.value, cst.Name) or self._resolve(node) is not None:
            return None
        method = next(n for n in around[around.index(owner) + 1 :] if isinstance(n, cst.FunctionDef))
        if [p.name.value for p in method.params.params][:1] != [node.value.value]:
            return None
        given = _Stored(node.attr.value)
        walk(owner, given)
        if len(given.found) != 1 or not isinstance(given.found[0][1], cst.Call):
            return None
        maker, value = given.found[0]
        if not isinstance(value, cst.Call) or maker != "__init__" or not is_optimizer(self._resolve(value)):
            return None
        return _Optimizer(node, None, (), place=value, kept=True)

    def _list(self, node: cst.List | cst.Tuple) -> _Value | None:
        items: list[_Value | None] = []
        for element in node.elements:
            value = self._value(element.value)
            if isinstance(element, cst.StarredElement) and isinstance(value, _Several):
                items += value.items
            else:
                items.append(value)
        return _Several(tuple(items)) if items and any(item is not None for item in items) else None

    def _call(self, node: cst.Call) -> _Value | None:
        name = self._resolve(node)
        if is_optimizer(name) or name in _SHARDED:
            return self._optimizer(node, str(name))
        if name in GLOBAL_STEPS:
            return _Step(node)
        if isinstance(node.func, cst.Name) and node.func.value in ("list", "tuple", "zip", "set"):
            return self._builtin(node, node.func.value)
        if name is not None and name in _FUNCTIONS:
            return _FUNCTIONS[name](self, node, name)
        if isinstance(node.func, cst.Name) and node.func.value in self.body.file.functions:
            helper = self.body.file.functions[node.func.value]
            made = made_by(self.body.file, helper)
            self.read_at.setdefault(node, self.at)
            only = bool(made) and all(is_optimizer(one) for one in made)
            return _Optimizer(node, None, (), helper=helper, call=node) if only else None
        if isinstance(node.func, cst.Attribute):
            updates = self._updates_of_model(node.func, node.args)
            if updates is not None:
                return updates
            subject = self._value(node.func.value)
            if isinstance(subject, _Optimizer):
                return self._method(node, node.func.attr.value, subject)
            if isinstance(subject, _Step) and node.func.attr.value in ("assign_add", "assign"):
                return self._counted(node, subject, node.func.attr.value, node.args)
            if isinstance(subject, _Averaging) and node.func.attr.value == "apply":
                return self._averaged(node, subject.averages)
        return None

    def _updates_of_model(self, node: cst.Attribute, args: Sequence[cst.Arg] = ()) -> _Operation | None:
        """`model.updates`, `model.get_updates_for(inputs)`: the moving averages of a Keras model that is all of the
        network. Those that no input decides (`get_updates_for(None)`) are none of a batch normalization's.
        """
        if node.attr.value not in ("updates", "get_updates_for") or not isinstance(node.value, cst.Name):
            return None
        model = node.value.value
        if not is_all_of_it(self.body.file, self.body.function, model):
            return None
        if node.attr.value == "updates":
            return _Operation(updates=True, keras=True)
        (inputs,) = [arg.value for arg in args] if len(args) == 1 and not args[0].star else [None]
        if inputs is None or is_none(inputs):
            return _Operation() if inputs is not None else None
        calls = [
            call
            for statement in self.body.statements[: self.at]
            for call in calls_in(statement.node)
            if isinstance(call.func, cst.Name) and call.func.value == model
        ]
        code = self.body.file.code
        if len(calls) != 1 or not calls[0].args or code(calls[0].args[0].value) != code(inputs):
            return None
        return _Operation(updates=True, keras=True)

    def _optimizer(self, node: cst.Call, name: str) -> _Value | None:
        if name in _SHARDED:
            inner = node.args[0].value if node.args else None
            value = self._value(inner) if inner is not None else None
            if not isinstance(value, _Optimizer) or len(node.args) != 1:
                raise Blocked("TFM401", node, "this CrossShardOptimizer is not understood")
            return value
        self.read_at.setdefault(node, self.at)
        return _Optimizer(node, None, (node,))

    def _builtin(self, node: cst.Call, name: str) -> _Value | None:
        values = [self._value(arg.value) for arg in node.args]
        if len(values) == 1 and node.args[0].star == "*" and name == "zip":
            (pairs,) = values
            if isinstance(pairs, _Gradients) and pairs.pairs:
                return _Several((replace(pairs, pairs=False), _Variables(node, pairs.of_all)))
            return None
        if (
            name == "zip"
            and len(values) == 2
            and isinstance(values[0], _Gradients)
            and isinstance(values[1], _Variables)
        ):
            return replace(values[0], pairs=True, of_all=values[0].of_all and values[1].all)
        if name == "set" and len(values) == 1 and isinstance(values[0], _Variables):
            return values[0]
        return values[0] if name in ("list", "tuple") and len(values) == 1 and not node.args[0].star else None

    def _method(self, node: cst.Call, method: str, optimizer: _Optimizer) -> _Value | None:
        if method == "compute_gradients":
            bound = bind(
                node,
                (
                    "loss",
                    "var_list",
                    "gate_gradients",
                    "aggregation_method",
                    "colocate_gradients_with_ops",
                    "grad_loss",
                ),
                "compute_gradients",
                "TFM403",
            )
            return replace(self._differentiated(node, bound), pairs=True)
        # What is written out for a canned Estimator gives the step to optimizers of Keras, too.
        steps = any(isinstance(self._value(arg.value), _Step) for arg in node.args)
        if method in ("minimize", "get_updates") and self._is_of_keras(optimizer) and not steps:
            second = "params" if method == "get_updates" else "var_list"
            bound = bind(node, ("loss", second, "grad_loss", "name"), method, "TFM403")
            bound |= {"var_list": bound.pop(second)} if second in bound else {}
            operation = self._applied(optimizer, self._differentiated(node, bound), _counting(node, optimizer.counts))
            return _Several((operation,)) if method == "get_updates" else operation
        if method == "minimize":
            bound = bind(
                node,
                (
                    "loss",
                    "global_step",
                    "var_list",
                    "gate_gradients",
                    "aggregation_method",
                    "colocate_gradients_with_ops",
                    "name",
                    "grad_loss",
                ),
                "minimize",
                "TFM403",
            )
            counts = self._is_step(bound.get("global_step"), node)
            return self._applied(optimizer, self._differentiated(node, bound), _counting(node, counts))
        if method == "apply_gradients":
            bound = bind(node, ("grads_and_vars", "global_step", "name"), "apply_gradients", "TFM403")
            pairs = self._value(bound["grads_and_vars"]) if "grads_and_vars" in bound else None
            if not isinstance(pairs, _Gradients) or not pairs.pairs:
                place = bound.get("grads_and_vars", node)
                name = place.value if isinstance(place, cst.Name) else ""
                raise self.problems.get(name) or Blocked(
                    "TFM403", place, "these gradients are changed in a way that is not understood"
                )
            counts = optimizer.counts or self._is_step(bound.get("global_step"), node)
            return self._applied(optimizer, pairs, _counting(node, counts))
        return None

    def _applied(
        self, optimizer: _Optimizer, gradients: _Gradients, counting: frozenset[cst.CSTNode], updates: bool = False
    ) -> _Operation:
        """An update of the weights, and the averages that were moved before it."""
        known = self._awaited().averages
        averages = replace(known, order=Order.BEFORE) if known is not None else None
        return _Operation(((optimizer, gradients),), counting, updates, averages)

    def _averaged(self, node: cst.Call, averages: Averages) -> _Operation:
        bound = bind(node, ("var_list",), "ExponentialMovingAverage.apply", "TFM413")
        given = bound.get("var_list")
        if not is_none(given) and not (given is not None and self._are_all(given)):
            raise Blocked("TFM413", given or node, "moving averages of something else than all trained variables")
        if self._is_early():
            raise Blocked("TFM413", node, "moving averages of the variables that were made before")
        first = self._awaited()
        if averages.counted and first.counting and not first.applied:
            raise Blocked("TFM413", node, _COUNTED_APART)
        if first.applied and (first.counting or not averages.counted):
            averages = replace(averages, order=Order.AFTER)
        return _Operation(averages=averages)

    def _is_of_keras(self, optimizer: _Optimizer) -> bool:
        made = [self._resolve(call) or "" for call in optimizer.made]
        return bool(made) and all(name.startswith(("tf.keras.", "tf.optimizers.")) for name in made)

    def _differentiated(self, node: cst.Call, bound: dict[str, cst.BaseExpression]) -> _Gradients:
        if "loss" not in bound:
            raise Blocked("TFM403", node, "no loss is given")
        if not is_none(bound.get("grad_loss")):
            raise Blocked("TFM403", bound["grad_loss"], "`grad_loss` is not carried over yet")
        return _Gradients(bound["loss"], self.at, of_all=self._trained(bound.get("var_list")))

    def _are_all(self, node: cst.BaseExpression) -> bool:
        value = self._value(node)
        return isinstance(value, _Variables) and value.all

    def _trained(self, node: cst.BaseExpression | None) -> bool:
        """Whether an optimizer is told to train all variables; it may be told some, too."""
        if node is None or is_none(node):
            return True
        value = self._value(node)
        if isinstance(value, _Variables):
            return self._whole(node, value)
        name = node.value if isinstance(node, cst.Name) else ""
        message = "which variables these are is not understood: ask for them by a scope or by their names"
        raise self.problems.get(name) or Blocked("TFM415", node, message)

    def _whole(self, node: cst.BaseExpression, variables: _Variables) -> bool:
        """Whether variables are all that are trained. Raises Blocked (TFM415) where there were not all of them yet."""
        if variables.early:
            message = "these are the variables that were made before: ask for them by a scope, behind the whole network"
            raise Blocked("TFM415", node, message)
        return variables.all

    def _is_step(self, node: cst.BaseExpression | None, call: cst.Call) -> bool:
        if is_none(node):
            return False
        assert node is not None
        if not isinstance(self._value(node), _Step):
            raise Blocked("TFM403", node, "this is not the global step: TensorFlow 1 would count another variable")
        return True

    def _counted(self, node: cst.Call, step: _Step, how: str, args: Sequence[cst.Arg]) -> _Value | None:
        """`step.assign_add(1)`, `tf.assign(step, step + 1)`."""
        value = args[0].value if args else None
        if isinstance(value, cst.Name):
            value = self._next_step(value)
        moved = self._awaited().averages
        if moved is not None and moved.counted and self._awaited().applied:
            raise Blocked("TFM413", moved.call, _COUNTED_APART)
        if how == "assign_add" and number(value) == 1:
            return _Operation(counting=frozenset((node,)))
        if how == "assign" and isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            if isinstance(self._value(value.left), _Step) and number(value.right) == 1:
                return _Operation(counting=frozenset((node,)))
        raise Blocked("TFM403", node, "the global step is set to something other than the next step")

    def _next_step(self, name: cst.Name) -> cst.BaseExpression:
        """What a name for the next step stands for; its statement goes with the counting."""
        for index in range(self.at - 1, -1, -1):
            for given, value in assignments(self.body.statements[index].node):
                if given == name.value:
                    self.consumed.setdefault(index, set()).add(given)
                    self.read_at.setdefault(value, index)
                    return value
        return name

    def _joined(self, values: Sequence[_Value | None], node: cst.BaseExpression) -> _Operation | None:
        """Several operations that run together."""
        found = _Operation()
        for value in values:
            if isinstance(value, _Several):
                value = self._joined(value.items, node)
            if isinstance(value, (_Norm, _Step)):
                value = _Operation()
            if not isinstance(value, _Operation):
                return None
            averages = [one for one in (value.averages, found.averages) if one is not None]
            if len({one.call for one in averages}) > 1:
                raise Blocked("TFM413", averages[0].call, "several moving averages of the weights")
            found = _Operation(
                tuple(dict.fromkeys((*found.applied, *value.applied))),
                found.counting | value.counting,
                found.updates or value.updates,
                next((one for one in averages if one.order is not Order.OPEN), averages[0] if averages else None),
                found.keras or value.keras,
            )
        return found

    # -- functions of TensorFlow -----------------------------------------------------------------------------------

    def _group(self, node: cst.Call, name: str) -> _Value | None:
        values: list[_Value | None] = []
        for arg in node.args:
            if arg.keyword is None:
                value = self._value(arg.value)
                values += value.items if isinstance(value, _Several) else [value]
        return self._joined(values, node)

    def _collection(self, node: cst.Call, name: str) -> _Value | None:
        key = node.args[0].value if node.args else None
        what = self._resolve(key) if key is not None else None
        what = what or (string(key) if key is not None else None)
        if what in ("tf.GraphKeys.UPDATE_OPS", "update_ops"):
            if len(node.args) > 1:
                raise Blocked("TFM403", node, "only some of the update operations are run")
            return _Operation(updates=self._updates_so_far(node, live=name.endswith("_ref")))
        scope = next((arg.value for arg in node.args[1:]), None)
        if what in ("tf.GraphKeys.TRAINABLE_VARIABLES", "trainable_variables"):
            return _Variables(node, is_none(scope), self._is_early())
        if what in ("tf.GraphKeys.GLOBAL_VARIABLES", "tf.GraphKeys.VARIABLES", "variables"):
            return self._global(node, scope)
        return None

    def _updates_so_far(self, node: cst.Call, live: bool = False) -> bool:
        """Whether there are updates in the collection where it is read; a `live` one is the collection itself.

        Raises Blocked (TFM403) where layers add more of them later, which do not run with those.
        """
        before, later = added_later(self.body.project, self.body.file, self.body.statements, self.at)
        if later is None or live:
            return True
        if not before:
            return False
        message = "the moving averages of layers below this line are not updated: read UPDATE_OPS behind all layers"
        raise Blocked("TFM403", node, message)

    def _trainable(self, node: cst.Call, name: str) -> _Value | None:
        return _Variables(node, all(is_none(arg.value) for arg in node.args), self._is_early())

    def _all_global(self, node: cst.Call, name: str) -> _Value | None:
        return self._global(node, next((arg.value for arg in node.args), None))

    def _is_early(self) -> bool:
        """Whether variables are made behind the statement that is being read."""
        later = [s.node for s in self.body.statements[self.at + 1 :] if TRAIN in s.modes]
        return any(makes_variables(self.body.file, node) for node in later)

    def _global(self, node: cst.Call, scope: cst.BaseExpression | None) -> _Value | None:
        """Variables of a scope, trained or not; all variables are more than those that are trained."""
        return None if is_none(scope) else _Variables(node, False, self._is_early())

    def _gradients(self, node: cst.Call, name: str) -> _Value | None:
        parameters = (
            "ys",
            "xs",
            "grad_ys",
            "name",
            "colocate_gradients_with_ops",
            "gate_gradients",
            "aggregation_method",
        )
        bound = bind(node, parameters, "tf.gradients", "TFM403")
        if (
            not is_none(bound.get("grad_ys"))
            or "ys" not in bound
            or not isinstance(variables := self._value(bound["xs"]), _Variables)
        ):
            return None
        return _Gradients(bound["ys"], self.at, of_all=self._whole(bound["xs"], variables))

    def _averaging(self, node: cst.Call, name: str) -> _Value | None:
        bound = bind(node, ("decay", "num_updates", "zero_debias", "name"), name, "TFM413")
        decay, updates, debias = bound.get("decay"), bound.get("num_updates"), bound.get("zero_debias")
        if decay is None or not self._is_number(decay) or self._reads_tensorflow(decay):
            raise Blocked("TFM413", decay or node, "the decay of the moving averages is not a plain number")
        if debias is not None and not is_false(debias):
            raise Blocked("TFM413", debias, "`zero_debias` is not carried over")
        if updates is not None and not is_none(updates) and not isinstance(self._value(updates), _Step):
            raise Blocked("TFM413", updates, "`num_updates` is not the global step")
        self.read_at.setdefault(decay, self.at)
        return _Averaging(Averages(node, decay, counted=not is_none(updates), order=Order.OPEN))

    def _reads_tensorflow(self, node: cst.BaseExpression) -> bool:
        return any((self.body.imports.names.get(name) or "").startswith("tensorflow") for name in names_in(node))

    def _checkpoint(self, node: cst.Call, name: str) -> _Value | None:
        given = [(arg.keyword, arg.value) for arg in node.args]
        return _Checkpoint(tuple((key.value, self._value(value), value) for key, value in given if key is not None))

    def _global_norm_clip(self, node: cst.Call, name: str) -> _Value | None:
        bound = bind(node, ("t_list", "clip_norm", "use_norm", "name"), name, "TFM403")
        gradients = self._value(bound["t_list"]) if "t_list" in bound else None
        if not isinstance(gradients, _Gradients) or gradients.pairs or "clip_norm" not in bound:
            return None
        if not is_none(bound.get("use_norm")) and not isinstance(self._value(bound["use_norm"]), _Norm):
            return None
        return _Several((self._clipped(gradients, "global_clipnorm", bound["clip_norm"]), _Norm()))

    def _clipped(self, gradients: _Gradients, argument: str, value: cst.BaseExpression) -> _Gradients:
        if gradients.clipping is not None:
            raise Blocked("TFM403", value, "the gradients are clipped twice")
        if not self._is_number(value):
            raise Blocked("TFM403", value, "the bound of the clipping is computed from the data")
        self.read_at.setdefault(value, self.at)
        return replace(gradients, clipping=Clipping(argument, value))

    def _is_number(self, node: cst.BaseExpression) -> bool:
        names = names_in(node)
        return not names & (self.body.data | self.names.keys())

    def _norm(self, node: cst.Call, name: str) -> _Value | None:
        value = self._value(node.args[0].value) if node.args else None
        return _Norm() if isinstance(value, _Gradients) else None

    def _nothing(self, node: cst.Call, name: str) -> _Value | None:
        return _Operation()

    def _same(self, node: cst.Call, name: str) -> _Value | None:
        value = self._value(node.args[0].value) if node.args else None
        return value if isinstance(value, _Operation) else None

    def _assigned(self, node: cst.Call, name: str) -> _Value | None:
        step = self._value(node.args[0].value) if node.args else None
        if not isinstance(step, _Step):
            return None
        return self._counted(node, step, name.rpartition(".")[2], node.args[1:])

    def _clipping_optimizer(self, node: cst.Call, name: str) -> _Value | None:
        bound = bind(node, ("optimizer", "clip_norm"), name, "TFM403")
        inner = self._value(bound["optimizer"]) if "optimizer" in bound else None
        if not isinstance(inner, _Optimizer) or "clip_norm" not in bound or inner.clipping is not None:
            raise Blocked("TFM401", node, "the optimizer whose gradients are clipped is not understood")
        self.read_at.setdefault(bound["clip_norm"], self.at)
        return replace(inner, clipping=Clipping("global_clipnorm", bound["clip_norm"]))

    def _create_train_op(self, node: cst.Call, name: str) -> _Value | None:
        parameters = (
            "total_loss",
            "optimizer",
            "global_step",
            "update_ops",
            "variables_to_train",
            "transform_grads_fn" if "training" in name else "clip_gradient_norm",
            "summarize_gradients",
            "gate_gradients",
            "aggregation_method",
            "colocate_gradients_with_ops",
            "check_numerics",
            "gradient_multipliers",
        )
        bound = bind(node, parameters, name, "TFM403")
        for key in ("update_ops", "transform_grads_fn", "gradient_multipliers"):
            if not is_none(bound.get(key)):
                raise Blocked("TFM403", bound[key], f"`{key}` of create_train_op is not carried over yet")
        optimizer = self._value(bound["optimizer"]) if "optimizer" in bound else None
        if not isinstance(optimizer, _Optimizer) or "total_loss" not in bound:
            raise Blocked("TFM401", node, "the optimizer of create_train_op is not understood")
        if "global_step" in bound:
            self._is_step(bound["global_step"], node)
        of_all = self._trained(bound.get("variables_to_train"))
        updates = self._updates_so_far(node)
        gradients = _Gradients(bound["total_loss"], self.at, updates=updates, of_all=of_all)
        norm = bound.get("clip_gradient_norm")
        if norm is not None and number(norm) != 0.0 and not is_none(norm):
            gradients = self._clipped(gradients, "clipnorm", norm)
        counting = _counting(node, not is_none(bound.get("global_step", node)))
        return self._applied(optimizer, gradients, counting, updates)

    def _optimize_loss(self, node: cst.Call, name: str) -> _Value | None:
        parameters = (
            "loss",
            "global_step",
            "learning_rate",
            "optimizer",
            "gradient_noise_scale",
            "gradient_multipliers",
            "clip_gradients",
            "learning_rate_decay_fn",
            "update_ops",
            "variables",
            "name",
            "summaries",
            "colocate_gradients_with_ops",
            "increment_global_step",
        )
        bound = bind(node, parameters, name, "TFM403")
        for key in ("gradient_noise_scale", "gradient_multipliers", "update_ops"):
            if not is_none(bound.get(key)):
                raise Blocked("TFM403", bound[key], f"`{key}` of optimize_loss is not carried over yet")
        if not is_none(bound.get("increment_global_step")) and not is_true(bound["increment_global_step"]):
            raise Blocked("TFM403", node, "the global step is not counted: the Estimator would never stop")
        if not is_none(bound.get("global_step")):
            self._is_step(bound["global_step"], node)
        updates = self._updates_so_far(node)
        gradients = _Gradients(bound["loss"], self.at, updates=updates, of_all=self._trained(bound.get("variables")))
        norm = bound.get("clip_gradients")
        if norm is not None and not is_none(norm):
            gradients = self._clipped(gradients, "global_clipnorm", norm)
        optimizer = self._optimizer_of_loss(node, bound)
        return self._applied(optimizer, gradients, frozenset((node,)), updates)

    def _optimizer_of_loss(self, node: cst.Call, bound: dict[str, cst.BaseExpression]) -> _Optimizer:
        """The optimizer that optimize_loss makes, or is given."""
        given = bound.get("optimizer")
        if given is None:
            raise Blocked("TFM401", node, "optimize_loss is called without an optimizer")
        value = self._value(given)
        if isinstance(value, _Optimizer):
            if not is_none(bound.get("learning_rate_decay_fn")):
                raise Blocked("TFM402", node, "the decay does nothing: the optimizer has a rate of its own")
            return value
        rate = bound.get("learning_rate")
        if rate is None or is_none(rate):
            raise Blocked("TFM401", node, "optimize_loss is called without a learning rate")
        decay = bound.get("learning_rate_decay_fn")
        if decay is not None and not is_none(decay):
            rate = self._decayed(rate, decay)
        text = "{}"
        if isinstance(given, cst.Lambda) and len(given.params.params) == 1:
            return self._from_lambda(given, rate)
        known = string(given)
        if known in _NAMES_OF_OPTIMIZERS:
            text = _NAMES_OF_OPTIMIZERS[str(known)]
        elif is_optimizer(self._resolve(given)):
            text = f"{self._resolve(given)}({{}})"
        else:
            raise Blocked("TFM401", given, "the optimizer of optimize_loss is not understood")
        call = cst.parse_expression(text.format("rate"))
        assert isinstance(call, cst.Call)
        arguments = [cst.Arg(rate, keyword=cst.Name("learning_rate"), equal=_EQUAL), *call.args[1:]]
        func = self._here(call.func, given)
        made = call.with_changes(func=func, args=arguments)
        self.read_at[made] = self.at
        return _Optimizer(made, None, (made,), place=given)

    def _here(self, function: cst.BaseExpression, given: cst.BaseExpression) -> cst.BaseExpression:
        """A TensorFlow name in the spelling of this file."""
        if self._resolve(given) is not None:
            return given
        for name, origin in self.body.imports.names.items():
            if origin in ("tensorflow", "tensorflow.compat.v1", "tf"):
                return cst.parse_expression(self.body.file.code(function).replace("tf.", f"{name}.", 1))
        raise Blocked("TFM401", given, "TensorFlow has no name in this file")

    def _from_lambda(self, given: cst.Lambda, rate: cst.BaseExpression) -> _Optimizer:
        body = given.body
        parameter = given.params.params[0].name.value
        if not isinstance(body, cst.Call) or not is_optimizer(self._resolve(body)):
            raise Blocked("TFM401", given, "the optimizer of optimize_loss is not understood")
        args = [
            arg.with_changes(value=rate) if isinstance(arg.value, cst.Name) and arg.value.value == parameter else arg
            for arg in body.args
        ]
        if any(parameter in names_in(a.value) for a, b in equal_zip(args, body.args) if a is b):
            raise Blocked("TFM402", given, "the rate is changed inside the lambda")
        made = body.with_changes(args=args)
        self.read_at[made] = self.at
        return _Optimizer(made, None, (made,), place=given)

    def _decayed(self, rate: cst.BaseExpression, decay: cst.BaseExpression) -> cst.BaseExpression:
        """The rate that `lambda rate, step: tf.train.exponential_decay(rate, step, ...)` gives."""
        if not isinstance(decay, cst.Lambda) or len(decay.params.params) != 2:
            raise Blocked("TFM402", decay, "this learning_rate_decay_fn is not understood: write it as a lambda")
        first, second = (param.name.value for param in decay.params.params)
        step = self._here(cst.parse_expression("tf.train.get_global_step()"), decay)
        new = decay.body.visit(_Substitution({first: rate, second: step}))
        assert isinstance(new, cst.BaseExpression)
        return new

    # -- gradient by gradient --------------------------------------------------------------------------------------

    def _comprehension(self, node: cst.ListComp | cst.GeneratorExp) -> _Value | None:
        loop = node.for_in
        if loop.inner_for_in is not None:
            return None
        over = self._value(loop.iter)
        if isinstance(over, _Variables) and isinstance(node.elt, cst.Name) and isinstance(loop.target, cst.Name):
            whole = over.all and not loop.ifs
            return replace(over, all=whole) if node.elt.value == loop.target.value else None
        if any(not _tests_for_none(test.test) for test in loop.ifs):
            return None
        if not isinstance(over, _Gradients):
            return None
        return self._each(node.elt, loop.target, over)

    def _each(
        self, element: cst.BaseExpression, target: cst.BaseAssignTargetExpression, over: _Gradients
    ) -> _Value | None:
        """What a loop over gradients makes of each of them."""
        if over.pairs:
            names = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else []
            if len(names) != 2 or not all(isinstance(name, cst.Name) for name in names):
                return None
            gradient, variable = (name.value for name in names if isinstance(name, cst.Name))
            if isinstance(element, cst.Name) and element.value == variable:
                return _Variables(element, over.of_all)
            if isinstance(element, cst.Tuple) and len(element.elements) == 2:
                first, second = (e.value for e in element.elements)
                if not isinstance(second, cst.Name) or second.value != variable:
                    return None
                return self._one(first, gradient, over)
            found = self._one(element, gradient, over)
            return replace(found, pairs=False) if found is not None else None
        return self._one(element, target.value, over) if isinstance(target, cst.Name) else None

    def _one(self, node: cst.BaseExpression, gradient: str, over: _Gradients) -> _Gradients | None:
        """What becomes of one gradient: itself, or clipped."""
        if isinstance(node, cst.Name):
            return over if node.value == gradient else None
        if isinstance(node, cst.IfExp):
            # `None if g is None else clip(g)`, either way round.
            negative = _tests_for_none(node.test)
            kept, none = (node.body, node.orelse) if negative else (node.orelse, node.body)
            sure = negative or _is_none_test(node.test)
            empty = is_none(none) or (isinstance(none, cst.Name) and none.value == gradient)
            return self._one(kept, gradient, over) if sure and empty else None
        if not isinstance(node, cst.Call):
            return None
        name = self._resolve(node)
        if name == "tf.clip_by_norm":
            bound = bind(node, ("t", "clip_norm", "axes", "name"), name, "TFM403")
            if self._is_gradient(bound.get("t"), gradient) and "clip_norm" in bound and is_none(bound.get("axes")):
                return self._clipped(over, "clipnorm", bound["clip_norm"])
        if name == "tf.clip_by_value":
            bound = bind(node, ("t", "clip_value_min", "clip_value_max", "name"), name, "TFM403")
            low, high = bound.get("clip_value_min"), bound.get("clip_value_max")
            if self._is_gradient(bound.get("t"), gradient) and low is not None and high is not None:
                if _negated(low, high, self.body.file.code):
                    return self._clipped(over, "clipvalue", high)
                raise Blocked("TFM403", node, "the bounds of the clipping are not opposite: Keras has only one")
        return None

    def _is_gradient(self, node: cst.BaseExpression | None, gradient: str) -> bool:
        return isinstance(node, cst.Name) and node.value == gradient


class _Stored(cst.CSTVisitor):
    """What the methods of a class give to `self.name`: the method, and the value (None where it is no assignment)."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[tuple[str, cst.BaseExpression | None]] = []
        self._methods: list[str] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._methods.append(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._methods.pop()

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, (cst.Tuple, cst.List)):
                inner = [e.value for e in target.target.elements]
                self.found += [("", None) for one in inner if self._is_it(one)]
            elif self._is_it(target.target):
                self.found.append((self._methods[0] if len(self._methods) == 1 else "", node.value))

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if self._is_it(node.target):
            self.found.append(("", None))

    def _is_it(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Attribute) and node.attr.value == self.name and isinstance(node.value, cst.Name)


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_FUNCTIONS: dict[str, Callable[[_Reader, cst.Call, str], _Value | None]] = {
    "tf.group": _Reader._group,
    "tf.tuple": _Reader._group,
    "tf.no_op": _Reader._nothing,
    "tf.identity": _Reader._same,
    "tf.get_collection": _Reader._collection,
    "tf.get_collection_ref": _Reader._collection,
    "tf.trainable_variables": _Reader._trainable,
    "tf.contrib.framework.get_trainable_variables": _Reader._trainable,
    "tf.contrib.slim.get_trainable_variables": _Reader._trainable,
    "tf.global_variables": _Reader._all_global,
    "tf.contrib.framework.get_variables": _Reader._all_global,
    "tf.contrib.slim.get_variables": _Reader._all_global,
    "tf.gradients": _Reader._gradients,
    "tf.clip_by_global_norm": _Reader._global_norm_clip,
    "tf.global_norm": _Reader._norm,
    "tf.linalg.global_norm": _Reader._norm,
    "tf.assign": _Reader._assigned,
    "tf.assign_add": _Reader._assigned,
    "tf.contrib.estimator.clip_gradients_by_norm": _Reader._clipping_optimizer,
    "tf.contrib.training.create_train_op": _Reader._create_train_op,
    "tf.contrib.slim.learning.create_train_op": _Reader._create_train_op,
    "tf.contrib.layers.optimize_loss": _Reader._optimize_loss,
    "tf.train.Checkpoint": _Reader._checkpoint,
    "tf.train.ExponentialMovingAverage": _Reader._averaging,
}


class _Substitution(cst.CSTTransformer):
    def __init__(self, values: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.values = values

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        return True

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.values.get(original_node.value, updated_node)


@dataclass(frozen=True)
class _Loop:
    """A loop that makes a list of each gradient: `into.append(element)`, or `into[index] = element`."""

    target: cst.BaseAssignTargetExpression
    over: cst.BaseExpression
    element: cst.BaseExpression
    into: str
    index: str | None


def _read_loop(node: cst.For) -> _Loop | None:
    target, over, index = node.target, node.iter, None
    if isinstance(over, cst.Call) and isinstance(over.func, cst.Name) and over.func.value == "enumerate":
        if not isinstance(target, cst.Tuple) or len(target.elements) != 2 or len(over.args) != 1:
            return None
        first, second = (e.value for e in target.elements)
        if not isinstance(first, cst.Name) or not isinstance(second, (cst.Tuple, cst.Name)):
            return None
        target, over, index = second, over.args[0].value, first.value
    body = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    while len(body) == 1 and isinstance(body[0], cst.If) and _tests_for_none(body[0].test) and body[0].orelse is None:
        body = body[0].body.body if isinstance(body[0].body, cst.IndentedBlock) else ()
    if len(body) != 1 or not isinstance(body[0], cst.SimpleStatementLine) or len(body[0].body) != 1 or node.orelse:
        return None
    small = body[0].body[0]
    if index is not None and isinstance(small, cst.Assign) and len(small.targets) == 1:
        place = small.targets[0].target
        if isinstance(place, cst.Subscript) and isinstance(place.value, cst.Name) and len(place.slice) == 1:
            element = place.slice[0].slice
            if isinstance(element, cst.Index) and isinstance(element.value, cst.Name) and element.value.value == index:
                return _Loop(target, over, small.value, place.value.value, index)
    if index is None and isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        func, args = small.value.func, small.value.args
        if isinstance(func, cst.Attribute) and func.attr.value == "append" and isinstance(func.value, cst.Name):
            return _Loop(target, over, args[0].value, func.value.value, None) if len(args) == 1 else None
    return None


def _one_step(
    imports: ImportMap, block: cst.BaseSuite
) -> tuple[str, cst.BaseExpression, cst.BaseExpression | None] | None:
    """The name and value of the one assignment that a block consists of, and what control dependencies around it name
    (None: there are none)."""
    after: cst.BaseExpression | None = None
    while True:
        line = block.body[0] if isinstance(block, cst.IndentedBlock) and len(block.body) == 1 else None
        if not isinstance(line, cst.With) or after is not None or len(line.items) != 1:
            break
        item = line.items[0].item
        if not isinstance(item, cst.Call) or imports.resolve(item.func) != "tf.control_dependencies":
            return None
        if len(item.args) != 1 or line.items[0].asname is not None:
            return None
        after, block = item.args[0].value, line.body
    given = assignments(line) if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else []
    return (*given[0], after) if len(given) == 1 else None


def _makes_nothing(node: cst.BaseExpression) -> bool:
    """Whether an expression only names what there is: no operation of a graph is made."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_makes_nothing(element.value) for element in node.elements)
    return isinstance(node, (cst.Name, cst.Attribute, cst.BaseString, cst.BaseNumber))


def _counting(node: cst.CSTNode, counts: bool) -> frozenset[cst.CSTNode]:
    return frozenset((node,)) if counts else frozenset()


def _empty_lists(node: cst.CSTNode) -> list[str]:
    """The names of `a, b = [], []`."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    if not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Tuple) or len(small.targets) != 1:
        return []
    target, values = small.targets[0].target, [element.value for element in small.value.elements]
    names = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else []
    if len(names) != len(values) or not all(isinstance(v, cst.List) and not v.elements for v in values):
        return []
    return [name.value for name in names if isinstance(name, cst.Name)]


def _index(node: cst.Subscript) -> int | None:
    element = node.slice[0].slice if len(node.slice) == 1 else None
    value = number(element.value) if isinstance(element, cst.Index) else None
    return int(value) if value is not None and value >= 0 else None


def _tests_for_none(node: cst.BaseExpression) -> bool:
    """`x is not None`."""
    return isinstance(node, cst.Comparison) and _compares(node, cst.IsNot)


def _is_none_test(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Comparison) and _compares(node, cst.Is)


def _compares(node: cst.Comparison, operator: type[cst.BaseCompOp]) -> bool:
    return (
        len(node.comparisons) == 1
        and isinstance(node.comparisons[0].operator, operator)
        and is_none(node.comparisons[0].comparator)
        and isinstance(node.left, cst.Name)
    )


def _negated(low: cst.BaseExpression, high: cst.BaseExpression, code: Callable[[cst.CSTNode], str]) -> bool:
    """Whether `low` is written as minus `high`."""
    a, b = number(low), number(high)
    if a is not None and b is not None:
        return a == -b
    return (
        isinstance(low, cst.UnaryOperation)
        and isinstance(low.operator, cst.Minus)
        and (code(low.expression) == code(high))
    )
