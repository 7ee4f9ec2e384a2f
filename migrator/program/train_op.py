"""How a model_fn makes its train_op: the optimizer, and what happens to gradients before it applies them.

The TRAIN statements run on the evaluator (`program.trained`), and the train_op is followed back through its values: to
what applies gradients, what counts the global step, what updates moving averages (`program.training_steps`), and from
there to the loss (`query.gradients`). What makes nothing else is left out of the new model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst

from migrator.ir.values import Either, Operation, Value
from migrator.names.imports import dotted, missing_file
from migrator.program.assignments import assignments, changes_in_place
from migrator.program.calls import calls_in, nodes_in
from migrator.program.made_optimizers import WRAPPERS, Clipping, MadeOptimizer, named_symbol
from migrator.program.modes import TRAIN
from migrator.program.parsed import Blocked, names_in
from migrator.program.rates import Rate, read_rate, read_rate_of_helper
from migrator.program.telling import leaves_something
from migrator.program.train_body import TrainBody
from migrator.program.trained import Done, Trained, others_named
from migrator.program.training_steps import BY_CONDITION, NOT_UNDERSTOOD, Applied, Averages, Order, Runs, Steps
from migrator.query.gradients import Kind
from migrator.walking import of_kinds


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
    what keeps them. `outside` says that the optimizer is made by code around the model_fn, at `place`. `minimized` is
    what is minimized where the EstimatorSpec reports another loss.
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
    minimized: cst.BaseExpression | None = None


def read_train_op(node: cst.BaseExpression | None, loss: cst.BaseExpression, body: TrainBody) -> TrainOp:
    """Reads the train_op of the TRAIN mode, which minimizes `loss`. Raises Blocked (TFM401, TFM402, TFM403, TFM413)."""
    if node is None:
        raise Blocked("TFM403", body.function.name, "no EstimatorSpec of TRAIN mode has a train_op")
    with Trained(body, others_named(body)) as trained:
        return _Reader(body, trained).read(node, loss)


@dataclass
class _Reader(Steps):
    training: dict[str, Value] = field(default_factory=dict)  # names that only the training gives, and their values
    looked: set[str] = field(default_factory=set)  # those of them that are computed of gradients

    def read(self, node: cst.BaseExpression, loss: cst.BaseExpression) -> TrainOp:
        final, minimized = self.trained.value(node), self.trained.value(loss)
        self._consume()
        harmless = self._harmless()
        value = self._found(final, node)
        assert value is not None
        others = [self._other_loss(one, loss, minimized) for one in value.applied]
        self._check_counting(value, node)
        if len(value.applied) > 1 or not value.applied[0].whole:
            message = "variables are selected by name, and Keras changes the names: use the bridge, which keeps them"
            raise Blocked("TFM415", self._made_by(node), message)
        [applied] = value.applied
        optimizer = applied.optimizer
        clipping = self._clipping_of(applied)
        if value.averages is not None:
            self._check_averages(value.averages, optimizer)
        self._check_ways(value, optimizer)
        rate = self._rate(optimizer)
        self._check_kept(value, applied, clipping, rate)
        return TrainOp(
            optimizer=optimizer.node,
            index=optimizer.index,
            made=tuple(dict.fromkeys(optimizer.made)),
            clipping=clipping,
            updates=self._updates(value, loss, minimized),
            rate=rate,
            consumed=frozenset(self.consumed),
            names=frozenset(name for names in self.consumed.values() for name in names),
            harmless=harmless,
            place=optimizer.place,
            outside=optimizer.kept,
            updates_keras=value.keras,
            helper=optimizer.helper.node if optimizer.helper is not None else None,
            variables=frozenset(name for name, one in self.training.items() if self._are_all(one)),
            saved=tuple(self._saved()),
            averages=value.averages,
            averaging=frozenset(name for name, one in self.training.items() if self._averages(one)),
            minimized=others[0],
        )

    def _found(self, final: Value, node: cst.BaseExpression) -> Runs:
        """What runs with the train_op. Raises Blocked where that applies no gradients."""
        value = self.runs(final)
        if value is not None and value.applied:
            return value
        made = self._made_by(node)
        for problem in self._changed_elsewhere(node):
            raise problem
        if self._is_conditional(made) or any(self._is_conditional(one) for one in self._mentioned(made)):
            raise Blocked("TFM417", made, BY_CONDITION)
        raise Blocked(
            "TFM403", made, "this train_op does not apply gradients with an optimizer" + self._not_given(made)
        )

    def _mentioned(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """What the names in an expression were given last."""
        return [self._made_by(cst.Name(name)) for name in sorted(names_in(node))]

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
        return told and f"; cannot tell what `{dotted(node.func)}(...)` returns{told}"

    def _consume(self) -> None:
        """Finds the statements that only make the training."""
        for index, done in sorted(self.trained.done.items()):
            node = self.body.statements[index].node
            small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
            names = set(done.given)
            known = [self._is_known(value, index) for value in done.given.values()]
            if isinstance(node, cst.SimpleStatementLine) and small is None:
                continue
            if isinstance(small, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
                counts = [self._counts(*one) for one in done.attributes]
                whole = bool(known) if not done.attributes else all(counts)
                changed = all(self._is_known(one, index) for one in done.changed) if not names else True
                is_own = whole or (bool(done.changed) and changed and not done.attributes)
                gone = (all(known) and is_own) or self._looks(small, done, index)
            elif isinstance(small, cst.Expr):
                before = [one for one in done.changed if self._was_before(one, index)]
                steps = bool(done.effects) and all(self._is_step(one) for one in done.effects)
                gone = steps or (bool(before) and all(self._is_known(one, index) for one in before))
                names = {name for one in before for name in self._names_before(one, index)}
            elif isinstance(node, (cst.If, cst.For)):
                asked = nodes_in(node.test if isinstance(node, cst.If) else node.iter)
                made = [one for one in done.effects if one.site is None or not any(one.site.node is n for n in asked)]
                own = all(self._is_own(one) for one in made) and not done.attributes
                before = [one for one in done.changed if self._was_before(one, index)]
                gone = own and all(self._is_known(one, index) for one in before)
                gone = gone and bool(done.given or before) and not self._says_more(node)
                names = {name for one in before for name in self._names_before(one, index)}
                if isinstance(node, cst.For):  # what it gives names in a turn goes with it, and nobody else may read it
                    names |= {name for name, _ in assignments(node.body)}
                    gone = gone and any(self._is_known(done.given.get(n, self._last(n, index)), index) for n in names)
                else:
                    names |= set(done.given)
                    gone = gone and all(known)
            else:
                gone = False
            if gone:
                self.consumed[index] = names
                self.training |= {name: done.given.get(name, self._last(name, index)) for name in names}
            else:
                for name in done.given:
                    self.training.pop(name, None)

    def _looks(self, small: cst.BaseSmallStatement, done: Done, index: int) -> bool:
        """Whether a line computes something of gradients; that nothing but summaries reads it is looked at later."""
        names = isinstance(small, cst.Assign) and all(isinstance(one.target, cst.Name) for one in small.targets)
        if not isinstance(small, cst.Assign) or not names or done.attributes or done.filled:
            return False
        if any(self._was_before(one, index) for one in done.changed):
            return False
        read = names_in(small.value) & self.training.keys()
        if not read or not all(name in self.looked or self._is_of_gradients(self.training[name]) for name in read):
            return False
        if not all(one.symbol.startswith("tf.") and not leaves_something(one.symbol) for one in done.effects):
            return False
        self.looked |= set(done.given)
        return True

    def _is_of_gradients(self, value: Value) -> bool:
        flow = self._flow(value)
        return flow is not None and flow.kind is not Kind.VARIABLE

    def _says_more(self, node: cst.CSTNode) -> bool:
        """Whether a block raises, asserts or deletes."""
        return bool(of_kinds(node, cst.Raise, cst.Assert, cst.Del))

    def _names_before(self, value: Value, index: int) -> list[str]:
        """The names that a value has before a statement."""
        return [
            name
            for name in {n for i, done in self.trained.done.items() if i < index for n in done.given}
            if self._last(name, index - 1) is value
        ]

    def _was_before(self, value: Value, index: int) -> bool:
        return bool(self._names_before(value, index))

    def _is_own(self, operation: Operation) -> bool:
        """Whether a call belongs to the training alone."""
        clips = operation.symbol in ("tf.clip_by_global_norm", "tf.clip_by_norm", "tf.clip_by_value", "zip")
        wraps = operation.symbol in WRAPPERS
        if operation.symbol.endswith("control_dependencies"):
            return self._awaited(operation) is not None
        return clips or wraps or self._is_known(operation, -1)

    def _harmless(self) -> frozenset[cst.CSTNode]:
        """Control dependencies that only update moving averages."""
        found = set[cst.CSTNode]()
        self._waits: dict[int, cst.CSTNode] = {}
        for index, statement in enumerate(self.body.statements):
            if TRAIN not in statement.modes:
                continue
            for node in statement.after:
                runs = self._awaited(self.trained.waiting(node))
                if runs is None:
                    continue
                if runs.averages is None and not runs.applied and not runs.counting:
                    found.add(node)
                made = [value for _, value in assignments(statement.node)]
                if runs.updates and (not made or not all(_makes_nothing(value) for value in made)):
                    self._waits[index] = node
        return frozenset(found)

    def _saved(self) -> Iterable[tuple[str, str, cst.BaseExpression]]:
        """The objects of checkpoints that names stand for."""
        for value in self.training.values():
            node = self.trained.node(value) if isinstance(value, Operation) else None
            if named_symbol(value) != "tf.train.Checkpoint" or not isinstance(node, cst.Call):
                continue
            assert isinstance(value, Operation)
            for arg in node.args:
                if arg.keyword is not None:
                    one = value.kwargs.get(arg.keyword.value)
                    what = "step" if self._is_step(one) else "optimizer" if self._operations(one) else ""
                    yield arg.keyword.value, what, arg.value

    def _updates(self, value: Runs, loss: cst.BaseExpression, minimized: Value) -> bool:
        """Whether a step runs the updates of moving averages: the train_op waits for them, or the loss does.

        Raises Blocked (TFM403) where only something else waits for them: a summary runs them now and then.
        """
        if value.updates or any(one.updates for one in value.applied) or self._waits_for_updates(minimized, set()):
            return True
        waiting = {index: place for index, place in self._waits.items() if index not in self.consumed}
        if waiting:
            place = waiting[min(waiting)]
            raise Blocked(
                "TFM403",
                place,
                "neither the loss nor the train_op depends on these updates: make `minimize` depend on them",
            )
        return False

    def _waits_for_updates(self, value: Value, seen: set[Value]) -> bool:
        """Whether a tensor, or one that it is computed from, waits for the updates."""
        if value in seen:
            return False
        seen.add(value)
        if any(value is one for index in self._waits for one in self.trained.done[index].given.values()):
            return True  # an operator, which is an operation that waits as well
        if isinstance(value, Operation):
            if any(runs is not None and runs.updates for _, runs in self._first(value)):
                return True
            parts: Iterable[Value] = (*value.args, *value.kwargs.values())
        elif isinstance(value, Either):
            parts = (value.then, value.otherwise)
        else:
            content = self.trained.machine.content_of(value)
            parts = content.items if content is not None else ()
        return any(self._waits_for_updates(one, seen) for one in parts)

    def _clipping_of(self, applied: Applied) -> Clipping | None:
        """How the gradients are clipped that an optimizer applies."""
        optimizer = applied.optimizer
        clipping = [c for c in (optimizer.clipping, applied.clipping) if c is not None]
        if len(clipping) > 1:
            raise Blocked("TFM403", clipping[1].value, "the gradients are clipped twice")
        if clipping and optimizer.helper is not None and optimizer.index is None:
            raise Blocked(
                "TFM403", clipping[0].value, "assign the optimizer to a name before its gradients are clipped"
            )
        if clipping and optimizer.kept:
            message = (
                "the optimizer is created elsewhere, and its gradients are clipped here: create it in the model_fn"
            )
            raise Blocked("TFM403", clipping[0].value, message)
        return clipping[0] if clipping else None

    def _check_ways(self, value: Runs, optimizer: MadeOptimizer) -> None:
        """What a step is made of must go with it. Raises Blocked where a block makes other things as well."""
        for operation in value.ways:
            index = self.trained.at.get(operation, self.trained.end)
            if index >= self.trained.end or index in self.consumed or index == optimizer.index:
                continue
            statement = self.body.statements[index]
            if operation.symbol in ("tf.get_collection", "tf.get_collection_ref") or self._only_lists(operation):
                continue
            given = assignments(statement.node)
            name, place = given[-1] if given else ("", statement.node)
            message = f"`{name}` is assigned in a block that cannot be resolved: assign it outside"
            raise Blocked("TFM403", place, message if given else NOT_UNDERSTOOD)

    def _only_lists(self, operation: Operation) -> bool:
        """Whether an operation only lists variables, which others may read, too."""
        flow = self._flow(operation)
        return flow is not None and flow.kind is Kind.VARIABLE

    def _check_averages(self, averages: Averages, optimizer: MadeOptimizer) -> None:
        """The optimizer keeps the averages: it must be made here, after all that says how."""
        if optimizer.helper is not None or optimizer.kept or not optimizer.made:
            message = "the optimizer of these moving averages is created elsewhere: create it in the model_fn"
            raise Blocked("TFM413", averages.call, message)
        if optimizer.index is None:
            return
        later = self.body.statements[optimizer.index :]
        given = {name for statement in later for name, _ in assignments(statement.node)}
        for name in sorted(names_in(averages.decay) & given):
            raise Blocked("TFM413", averages.decay, f"assign `{name}` before the optimizer is created")

    def _check_kept(self, value: Runs, applied: Applied, clipping: Clipping | None, rate: Rate) -> None:
        """What is written elsewhere than it stood must not read names that get another value in between."""
        optimizer = applied.optimizer
        node, index = optimizer.node, optimizer.index
        self._check_names(names_in(node), (applied.at if optimizer.kept else optimizer.at) if index is None else index)
        if clipping is not None and index is None:
            self._check_names(names_in(clipping.value), self.read_at[clipping.value])
        elif clipping is not None and index is not None:
            for name, place in self._given_after(index):
                if name in names_in(clipping.value):
                    message = f"assign `{name}` before the optimizer is created, which clips"
                    raise Blocked("TFM403", place, message)
        if rate.value is not None and rate.scheduled & set(optimizer.made):
            self._check_names(names_in(rate.value), self.read_at[optimizer.made[0]], "TFM402")
        if value.averages is not None:
            self._check_names(names_in(value.averages.decay), self.read_at[value.averages.decay], "TFM413")

    def _check_names(self, names: set[str], at: int, code: str = "TFM403") -> None:
        """Raises Blocked where names get another value after the statement of index `at` read them."""
        for name, place in self._given_after(at):
            if name in names:
                message = f"`{name}` is reassigned after the training reads it: use another name"
                raise Blocked(code, place, message)

    def _given_after(self, at: int) -> list[tuple[str, cst.BaseExpression]]:
        """The names that get values in the statements after that of index `at`, where these stay."""
        later = [
            statement.node
            for index, statement in enumerate(self.body.statements)
            if index > at and TRAIN in statement.modes and index not in self.consumed
        ]
        return [one for node in later for one in (*assignments(node), *changes_in_place(node))]

    def _check_counting(self, value: Runs, node: cst.BaseExpression) -> None:
        if not value.counting:
            message = (
                "the global step is not incremented, so the Estimator would never stop: pass "
                "`global_step` to `minimize`"
            )
            raise Blocked("TFM403", self._made_by(node), message)
        if len(value.counting) > 1:
            message = "one batch increments the global step more than once: pass `global_step` to one optimizer only"
            raise Blocked("TFM415", self._made_by(node), message)

    def _rate(self, optimizer: MadeOptimizer) -> Rate:
        consumed = frozenset(self.consumed)
        steps = frozenset(name for name, value in self.training.items() if self._is_step(value))
        if optimizer.helper is not None and optimizer.call is not None:
            return read_rate_of_helper(self.body, optimizer.call, optimizer.helper, consumed, steps)
        return read_rate(self.body, list(optimizer.made), consumed, steps)

    def _other_loss(self, applied: Applied, loss: cst.BaseExpression, reported: Value) -> cst.BaseExpression | None:
        """What is minimized, where that is another loss than the EstimatorSpec reports; None where it is the same.

        It has to be there when the model is made: names that keep their values. Raises Blocked (TFM403).
        """
        if applied.differentiated is reported:
            return None
        code = self.body.file.code
        names = names_in(applied.loss)
        if code(applied.loss) != code(loss):
            kept = not any(name in names for name, _ in self._given_after(applied.at))
            if (
                kept
                and names
                and not calls_in(applied.loss)
                and self.trained.value(applied.loss) is applied.differentiated
            ):
                return applied.loss
            raise Blocked("TFM403", applied.loss, "the minimized loss is not the loss of the EstimatorSpec")
        if isinstance(loss, cst.Name):
            message = (
                "the loss changes after it is minimized, and the EstimatorSpec reports another one: "
                "minimize the reported loss"
            )
            raise Blocked("TFM403", applied.loss, message)
        return None


def _is_list(reader: _Reader, value: Value) -> bool:
    flow = reader._flow(value)
    return flow is None or flow.many


def _makes_nothing(node: cst.BaseExpression) -> bool:
    """Whether an expression only names what there is: no operation of a graph is made."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_makes_nothing(element.value) for element in node.elements)
    return isinstance(node, (cst.Name, cst.Attribute, cst.BaseString, cst.BaseNumber))


__all__ = ["Averages", "Clipping", "Order", "TrainOp", "read_train_op"]
