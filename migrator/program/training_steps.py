"""What runs with an operation of a model_fn: gradients that are applied, steps that are counted, updates, averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import libcst as cst

from migrator.ir.values import Constant, Either, Operation, Unknown, Value, is_nothing
from migrator.ir.values import Sequence as Items
from migrator.program.assignments import assignments, changes_in_place
from migrator.program.calls import bind, calls_in, is_false, is_none, is_true, number
from migrator.program.made_optimizers import Clipping, MadeOptimizer, Optimizers, named_symbol
from migrator.program.model_variables import is_all_of_it, makes_variables
from migrator.program.modes import TRAIN
from migrator.program.optimize_loss import optimizer_of_loss
from migrator.program.parsed import Blocked, names_in
from migrator.program.update_ops import added_later, only_under
from migrator.query.gradients import Changed, Flow, Flows, Kind, named

_COUNTED_APART = "`num_updates` is not updated together with the weights: pass `global_step` to the optimizer"
BY_CONDITION = (
    "a condition decides when gradients are applied, as in gradient accumulation: use the bridge, which keeps it"
)
NOT_UNDERSTOOD = "these gradients are changed in an unsupported way"
_MINIMIZE = (
    *("loss", "global_step", "var_list", "gate_gradients", "aggregation_method", "colocate_gradients_with_ops"),
    *("name", "grad_loss"),
)
_COMPUTE = ("loss", "var_list", "gate_gradients", "aggregation_method", "colocate_gradients_with_ops", "grad_loss")
_CREATE = (
    *("total_loss", "optimizer", "global_step", "update_ops", "variables_to_train", "clip_gradient_norm"),
    *("summarize_gradients", "gate_gradients", "aggregation_method", "colocate_gradients_with_ops"),
    *("check_numerics", "gradient_multipliers"),
)
_OPTIMIZE_LOSS = (
    *("loss", "global_step", "learning_rate", "optimizer", "gradient_noise_scale", "gradient_multipliers"),
    *("clip_gradients", "learning_rate_decay_fn", "update_ops", "variables", "name", "summaries"),
    *("colocate_gradients_with_ops", "increment_global_step"),
)
AVERAGE = "tf.train.ExponentialMovingAverage"


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
class Applied:
    """Gradients that an optimizer applies, `at` which statement they are computed, and the calls on their way."""

    optimizer: MadeOptimizer
    loss: cst.BaseExpression
    differentiated: Value | None
    at: int
    clipping: Clipping | None
    whole: bool
    ways: tuple[Operation, ...]
    updates: bool = False


@dataclass(frozen=True)
class Runs:
    """What runs with an operation: it applies gradients, counts steps, updates moving averages, or nothing of these."""

    applied: tuple[Applied, ...] = ()
    counting: frozenset[Operation] = frozenset()
    updates: bool = False
    averages: Averages | None = None
    keras: bool = False  # its updates are those of a Keras model
    ways: tuple[Operation, ...] = ()


@dataclass
class Steps(Optimizers):
    """Follows the operations of a model_fn. `consumed` are the statements that only make the training."""

    consumed: dict[int, set[str]] = field(default_factory=dict)
    _runs: dict[Value, Runs | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.flows = Flows(self.trained.machine, self._is_of_whole_model, self._stands_for)
        self.flows.cells = self.trained.cells

    def _stands_for(self, new: Operation, old: Operation) -> None:
        if old in self.trained.at:
            self.trained.at[new] = self.trained.at[old]

    def runs(self, value: Value | None) -> Runs | None:
        """What runs with a value that a step waits for; None where that is not known."""
        if value is None:
            return None
        if isinstance(value, Items):
            content = self.trained.machine.content_of(value)
            if content is None or content.more or not content.items:
                return None
            return self._joined([self._beside(one) for one in content.items])
        value = self.flows.merged(value)
        if isinstance(value, Either):
            return self._by_condition(value)
        if not isinstance(value, Operation):
            return None
        if value not in self._runs:
            self._runs[value] = None
            own = self._own(value)
            self._runs[value] = own if own is None else self._with_awaited(value, own)
        return self._runs[value]

    def _beside(self, value: Value | None) -> Runs | None:
        """The same for one of several: numbers about gradients and the global step do nothing."""
        if value is None:
            return None
        flow = self._flow(value)
        if self._is_step(value) or (flow is not None and flow.kind is Kind.NORM):
            return Runs()
        return self.runs(value)

    def _own(self, value: Operation) -> Runs | None:
        symbol = value.symbol
        if symbol in ("tf.group", "tf.tuple"):
            return self._joined([self._beside(one) for one in (*value.args, *_starred(value))])
        if symbol == "tf.no_op":
            return Runs()
        if symbol == "tf.identity":
            return self.runs(value.argument(0, "input"))
        if symbol in ("list", "tuple") and len(value.args) == 1:
            return self.runs(value.args[0])
        if symbol in ("tf.get_collection", "tf.get_collection_ref"):
            return self._collection(value)
        if symbol in ("tf.assign", "tf.assign_add", ".assign", ".assign_add"):
            return self._counted(value) if self._is_step(value.argument(0, "ref")) else None
        if symbol == "add":
            return self._joined([self.runs(one) for one in value.args])
        if symbol == ".apply" and named_symbol(value.args[0]) == AVERAGE:
            return self._averaged(value)
        if symbol in ("getattr", ".get_updates_for"):
            return self._updates_of_model(value)
        if symbol == "getitem" and named_symbol(value.args[0]) == ".get_updates":
            return self.runs(value.args[0])
        if symbol in (".minimize", ".apply_gradients", ".get_updates"):
            return self._step(value)
        if symbol in ("tf.contrib.training.create_train_op", "tf.contrib.slim.learning.create_train_op"):
            return self._create_train_op(value)
        if symbol == "tf.contrib.layers.optimize_loss":
            return self._optimize_loss(value)
        return None

    def _joined(self, values: Iterable[Runs | None]) -> Runs | None:
        """Several operations that run together."""
        found = Runs()
        for value in values:
            if value is None:
                return None
            averages = [one for one in (value.averages, found.averages) if one is not None]
            if len({one.call for one in averages}) > 1:
                raise Blocked("TFM413", averages[0].call, "several moving averages of the weights: keep one")
            found = Runs(
                tuple(dict.fromkeys((*found.applied, *value.applied))),
                found.counting | value.counting,
                found.updates or value.updates,
                next((one for one in averages if one.order is not Order.OPEN), averages[0] if averages else None),
                found.keras or value.keras,
                tuple(dict.fromkeys((*found.ways, *value.ways))),
            )
        return found

    def _awaited(self, waiting: Operation) -> Runs | None:
        """What control dependencies run first; None where that is not known."""
        return self._beside(waiting.args[-1]) if waiting.args else Runs()

    def _first(self, value: Operation) -> list[tuple[Operation, Runs | None]]:
        """The control dependencies around an operation, and what each of them runs."""
        scopes = [
            one for one in value.scopes if isinstance(one, Operation) and one.symbol.endswith("control_dependencies")
        ]
        return [(one, self._awaited(one)) for one in scopes]

    def _with_awaited(self, value: Operation, own: Runs) -> Runs:
        """What runs with an operation, and what it waits for. Raises Blocked where that is not known."""
        found = own
        for waiting, runs in self._first(value):
            node = self.trained.awaited.get(waiting) or self._place(value)
            if runs is None:
                for problem in self._changed_elsewhere(node) if isinstance(node, cst.Name) else ():
                    raise problem
                for name in sorted(names_in(node)):
                    if named_symbol(self._last(name, self.trained.end)) == "tf.cond":
                        raise Blocked("TFM417", self._made_by(cst.Name(name)), BY_CONDITION)
                raise Blocked("TFM403", node, "these control dependencies are unsupported")
            if runs.applied and any(value in one.ways for one in own.applied):
                message = "these gradients are computed after another optimizer changed variables: compute them before"
                raise Blocked("TFM415", node, message)
            joined = self._joined([found, runs])
            assert joined is not None
            found = joined
        return found

    def _all_awaited(self, value: Operation) -> Runs:
        return self._joined([runs or Runs() for _, runs in self._first(value)]) or Runs()

    def _by_condition(self, value: Either) -> Runs | None:
        """`if params.use_batch_norm:` a step that waits for updates, `else:` the same step without any, where that
        condition is what makes the layers which have updates."""
        both = [self.runs(one) for one in (value.then, value.otherwise)]
        waiting, plain = both
        if waiting is None or plain is None or not waiting.updates or plain.updates:
            return None
        if [len(one.applied) for one in (waiting, plain)] != [1, 1]:
            return None
        first, second = waiting.applied[0], plain.applied[0]
        code = self.body.file.code
        same = first.optimizer.operations == second.optimizer.operations and first.whole == second.whole
        same = same and first.clipping is second.clipping is None and code(first.loss) == code(second.loss)
        if not same or first.differentiated is not second.differentiated:
            return None
        index = self.trained.at.get(first.ways[0])
        node = self.body.statements[index].node if index is not None and index < self.trained.end else None
        file, function = self.body.file.home(self.body.function)
        if not isinstance(node, cst.If) or not isinstance(function, cst.FunctionDef):
            return None
        return waiting if only_under(self.body.project, file, function, node.test) else None

    def _step(self, value: Operation) -> Runs | None:
        """`minimize`, `apply_gradients`, and `get_updates` of a Keras optimizer."""
        node = self.trained.node(value)
        optimizer = self._optimizer(value.args[0], node)
        if optimizer is None or not isinstance(node, cst.Call) or not self.trained.is_written_there(value):
            return None
        method = value.symbol
        counts = self._counts_itself(optimizer)
        if method == ".apply_gradients":
            bound = bind(node, ("grads_and_vars", "global_step", "name"), "apply_gradients", "TFM403")
            counts = counts or self._is_given_step(value.argument(2, "global_step"), bound.get("global_step"))
            applied = self._applied(value, optimizer, bound.get("grads_and_vars", node), bound)
            return self._with_averages(value, applied, counts)
        keras = self._is_of_keras(optimizer) and not any(
            self._is_step(one) for one in (*value.args[1:], *value.kwargs.values())
        )
        if keras:
            second = "params" if method == ".get_updates" else "var_list"
            bound = bind(node, ("loss", second, "grad_loss", "name"), method[1:], "TFM403")
            variables, name = value.argument(2, second), second
        elif method == ".minimize":
            bound = bind(node, _MINIMIZE, "minimize", "TFM403")
            counts = self._is_given_step(value.argument(2, "global_step"), bound.get("global_step"))
            variables, name = value.argument(3, "var_list"), "var_list"
        else:
            return None
        if "loss" not in bound:
            raise Blocked("TFM403", node, "no loss is passed")
        if not is_none(bound.get("grad_loss")):
            raise Blocked("TFM403", bound["grad_loss"], "`grad_loss` is unsupported")
        whole = self._trained(variables, bound.get(name))
        loss = value.argument(1, "loss")
        applied = Applied(optimizer, bound["loss"], loss, self.trained.at[value], None, whole, (value,))
        return self._with_averages(value, applied, counts)

    def _with_averages(self, value: Operation, applied: Applied, counts: bool, updates: bool = False) -> Runs:
        """An update of the weights, and the averages that were moved before it."""
        known = self._all_awaited(value).averages
        averages = replace(known, order=Order.BEFORE) if known is not None else None
        counting = frozenset((value,)) if counts else frozenset[Operation]()
        return Runs((applied,), counting, updates or applied.updates, averages, ways=applied.ways)

    def _applied(
        self, value: Operation, optimizer: MadeOptimizer, place: cst.CSTNode, bound: dict[str, cst.BaseExpression]
    ) -> Applied:
        """The gradients that `apply_gradients` is given. Raises Blocked."""
        flow = self._flow(value.args[1] if len(value.args) > 1 else value.kwargs.get("grads_and_vars", value))
        if flow is None or flow.kind is not Kind.PAIR or not flow.many or flow.computed is None:
            for problem in self._changed_elsewhere(place) if isinstance(place, cst.BaseExpression) else ():
                raise problem
            raise Blocked("TFM403", place, NOT_UNDERSTOOD)
        computed = flow.computed
        node = self.trained.node(computed)
        by_optimizer = computed.symbol == ".compute_gradients"
        if not isinstance(node, cst.Call) or not self.trained.is_written_there(computed):
            raise Blocked("TFM403", place, NOT_UNDERSTOOD)
        if by_optimizer and self._operations(computed.args[0]) is None:
            raise Blocked("TFM403", place, NOT_UNDERSTOOD)
        given = (
            bind(node, _COMPUTE, "compute_gradients", "TFM403")
            if by_optimizer
            else bind(node, ("ys", "xs"), "tf.gradients", "TFM403")
            if len(node.args) <= 2
            else {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
            | dict(zip(("ys", "xs"), (arg.value for arg in node.args if arg.keyword is None)))
        )
        loss = given.get("loss" if by_optimizer else "ys")
        if loss is None:
            raise Blocked("TFM403", node, "no loss is passed")
        if by_optimizer and not is_none(given.get("grad_loss")):
            raise Blocked("TFM403", given["grad_loss"], "`grad_loss` is unsupported")
        whole = flow.whole
        if by_optimizer:
            whole = self._trained(computed.argument(2, "var_list"), given.get("var_list")) and whole
        self._check_early(flow.listed, given.get("xs", node))
        clipping = None
        for clip in flow.clips:
            clipping = self._clipping(clip.operation, clip.argument, place)
        made = (computed, *(clip.operation for clip in flow.clips))
        if any(runs is None for one in made for _, runs in self._first(one)):
            raise Blocked("TFM403", node, "these control dependencies are unsupported")
        first = self._joined([self._all_awaited(one) for one in made])
        assert first is not None
        if first.applied:
            message = "these gradients are computed after another optimizer changed variables: compute them before"
            raise Blocked("TFM415", node, message)
        if first.averages is not None:
            raise Blocked("TFM413", node, "these gradients depend on the moving averages of the weights")
        ways = (value, *made, *flow.listed)
        at = self.trained.at.get(computed, self.trained.end)
        return Applied(optimizer, loss, flow.loss, at, clipping, whole, ways, first.updates)

    def _clipping(self, operation: Operation, argument: str, place: cst.CSTNode) -> Clipping:
        node = operation.site.node if operation.site is not None else None
        if not isinstance(node, cst.Call) or not self.trained.is_written_there(operation):
            raise Blocked("TFM403", place, NOT_UNDERSTOOD)
        names = {
            "global_clipnorm": ("t_list", "clip_norm", "use_norm", "name"),
            "clipnorm": ("t", "clip_norm", "axes", "name"),
            "clipvalue": ("t", "clip_value_min", "clip_value_max", "name"),
        }[argument]
        bound = bind(node, names, operation.symbol, "TFM403")
        value = bound["clip_value_max" if argument == "clipvalue" else "clip_norm"]
        return self._limit(argument, value, self.trained.at.get(operation, self.trained.end))

    def _limit(self, argument: str, value: cst.BaseExpression, at: int) -> Clipping:
        if not self._is_number(value):
            raise Blocked("TFM403", value, "the clipping bound depends on the data")
        self.read_at.setdefault(value, at)
        return Clipping(argument, value)

    def _is_number(self, node: cst.BaseExpression) -> bool:
        names = names_in(node)
        return not names & (self.body.data | {name for name in names if self._is_training(name)})

    def _is_training(self, name: str) -> bool:
        """Whether a name stands for something of the training, in the end."""
        value = self._last(name, self.trained.end)
        return not isinstance(value, Unknown) and (self._operations(value) is not None or self._is_known(value, -1))

    def _trained(self, value: Value | None, node: cst.BaseExpression | None) -> bool:
        """Whether an optimizer is told to train all variables; it may be told some, too."""
        if value is None or is_nothing(value):
            return True
        flow = self._flow(value)
        if flow is None or flow.kind is not Kind.VARIABLE or not flow.many:
            place = node if node is not None else self.body.function.name
            for problem in self._changed_elsewhere(node) if node is not None else ():
                raise problem
            message = "cannot tell which variables these are: select them by scope or by name"
            raise Blocked("TFM415", place, message)
        self._check_early(flow.listed, node)
        return flow.whole

    def _check_early(self, listed: Sequence[Operation], node: cst.CSTNode | None) -> None:
        """Raises Blocked (TFM415) where there were not all variables yet when they were listed."""
        if any(self._is_early(one) for one in listed):
            message = (
                "only variables created before this line are listed: select them by scope, after the whole network"
            )
            raise Blocked("TFM415", node or self.body.function.name, message)

    def _is_early(self, operation: Operation) -> bool:
        """Whether variables are made behind the statement that an operation belongs to."""
        at = self.trained.at.get(operation, self.trained.end)
        later = [s.node for s in self.body.statements[at + 1 :] if TRAIN in s.modes]
        return any(makes_variables(self.body.file, node) for node in later)

    def _are_all(self, value: Value) -> bool:
        flow = self._flow(value)
        return flow is not None and flow.kind is Kind.VARIABLE and flow.many and flow.whole

    def _is_given_step(self, value: Value | None, node: cst.BaseExpression | None) -> bool:
        if is_nothing(value):
            return False
        if not self._is_step(value):
            place = node if node is not None else self.body.function.name
            raise Blocked("TFM403", place, "this is not the global step: TensorFlow 1 would increment another variable")
        return True

    def _is_next_step(self, value: Value) -> bool:
        """Whether a value is `step + 1`, and only counts."""
        counted = [
            one for one in self.trained.at if isinstance(one, Operation) and one.symbol in ("tf.assign", ".assign")
        ]
        return _adds_one(value, self._is_step) and any(value is arg for one in counted for arg in one.args)

    def _counted(self, value: Operation) -> Runs:
        """`step.assign_add(1)`, `tf.assign(step, step + 1)`."""
        node = self._place(value)
        moved = self._all_awaited(value)
        if moved.averages is not None and moved.averages.counted and moved.applied:
            raise Blocked("TFM413", moved.averages.call, _COUNTED_APART)
        given = value.argument(1, "value", "delta")
        one = isinstance(given, Constant) and given.value == 1
        if one if value.symbol.endswith("assign_add") else _adds_one(given, self._is_step):
            return Runs(counting=frozenset((value,)), ways=(value,))
        raise Blocked("TFM403", node, "the global step is set to something other than step + 1")

    def _counts(self, owner: Value, name: str, value: Value) -> bool:
        """`optimizer.iterations = tf.train.get_global_step()`: an optimizer of Keras counts the global step itself."""
        operations = self._operations(owner)
        return name == "iterations" and self._is_step(value) and operations is not None

    def _counts_itself(self, optimizer: MadeOptimizer) -> bool:
        """Whether the iterations of a Keras optimizer are the global step."""
        return any(
            self._counts(owner, name, value) and self._operations(owner) == optimizer.operations
            for done in self.trained.done.values()
            for owner, name, value in done.attributes
        )

    def _collection(self, value: Operation) -> Runs | None:
        if named(value.argument(0, "key")) not in ("tf.GraphKeys.UPDATE_OPS", "update_ops"):
            return None
        if len(value.args) + len(value.kwargs) > 1:
            raise Blocked("TFM403", self._place(value), "only some of the update operations run: run all of UPDATE_OPS")
        return Runs(updates=self._updates_so_far(value, live=value.symbol.endswith("_ref")), ways=(value,))

    def _updates_so_far(self, value: Operation, live: bool = False) -> bool:
        """Whether there are updates in the collection where it is read; a `live` one is the collection itself.

        Raises Blocked (TFM403) where layers add more of them later, which do not run with those.
        """
        at = self.trained.at.get(value, self.trained.end)
        before, later = added_later(self.body.project, self.body.file, self.body.statements, at)
        if later is None or live:
            return True
        if not before:
            return False
        message = "the moving averages of layers below this line are not updated: read UPDATE_OPS after all layers"
        raise Blocked("TFM403", self._place(value), message)

    def _is_of_whole_model(self, value: Operation) -> bool:
        """Whether an operation is an attribute of a Keras model that makes all variables which are trained."""
        node = value.site.node if value.site is not None else None
        name = node.value if isinstance(node, cst.Attribute) else None
        return isinstance(name, cst.Name) and is_all_of_it(self.body.file, self.body.function, name.value)

    def _updates_of_model(self, value: Operation) -> Runs | None:
        """`model.updates`, `model.get_updates_for(inputs)`: the moving averages of a Keras model that is all of the
        network. Those that no input decides (`get_updates_for(None)`) are none of a batch normalization's.
        """
        node = value.site.node if value.site is not None else None
        func = node.func if isinstance(node, cst.Call) else node
        if not isinstance(func, cst.Attribute) or func.attr.value not in ("updates", "get_updates_for"):
            return None
        if not isinstance(func.value, cst.Name):
            return None
        model = func.value.value
        if not is_all_of_it(self.body.file, self.body.function, model):
            return None
        if func.attr.value == "updates":
            return Runs(updates=True, keras=True)
        args = node.args if isinstance(node, cst.Call) else ()
        (inputs,) = [arg.value for arg in args] if len(args) == 1 and not args[0].star else [None]
        if inputs is None or is_none(inputs):
            return Runs() if inputs is not None else None
        calls = [
            call
            for statement in self.body.statements[: self.trained.at.get(value, self.trained.end)]
            for call in calls_in(statement.node)
            if isinstance(call.func, cst.Name) and call.func.value == model
        ]
        code = self.body.file.code
        if len(calls) != 1 or not calls[0].args or code(calls[0].args[0].value) != code(inputs):
            return None
        return Runs(updates=True, keras=True)

    def _averaging(self, value: Value | None) -> Averages | None:
        """`tf.train.ExponentialMovingAverage(...)`. Raises Blocked (TFM413)."""
        node = self.trained.node(value) if isinstance(value, Operation) and value.symbol == AVERAGE else None
        if not isinstance(node, cst.Call) or not isinstance(value, Operation):
            return None
        bound = bind(node, ("decay", "num_updates", "zero_debias", "name"), AVERAGE, "TFM413")
        decay, updates, debias = bound.get("decay"), bound.get("num_updates"), bound.get("zero_debias")
        if decay is None or not self._is_number(decay) or self._reads_tensorflow(decay):
            raise Blocked(
                "TFM413", decay or node, "the decay of the moving averages is not a literal number: write one"
            )
        if debias is not None and not is_false(debias):
            raise Blocked("TFM413", debias, "`zero_debias` is unsupported")
        if updates is not None and not is_none(updates) and not self._is_step(value.argument(1, "num_updates")):
            raise Blocked("TFM413", updates, "`num_updates` is not the global step")
        self.read_at.setdefault(decay, self.trained.at.get(value, self.trained.end))
        return Averages(node, decay, counted=not is_none(updates), order=Order.OPEN)

    def _reads_tensorflow(self, node: cst.BaseExpression) -> bool:
        return any((self.body.imports.names.get(name) or "").startswith("tensorflow") for name in names_in(node))

    def _averaged(self, value: Operation) -> Runs | None:
        averages, node = self._averaging(value.args[0]), self._place(value)
        if averages is None:
            return None
        given = value.argument(1, "var_list")
        flow = self._flow(given) if given is not None else None
        if not is_nothing(given):
            if flow is None or flow.kind is not Kind.VARIABLE or not flow.many or not flow.whole:
                bound = bind(node, ("var_list",), "apply", "TFM413") if isinstance(node, cst.Call) else {}
                place = bound.get("var_list", node)
                raise Blocked("TFM413", place, "these moving averages are not of all trained variables")
        if self._is_early(value):
            raise Blocked(
                "TFM413",
                node,
                ("these moving averages are only of variables created before: create them after the whole network"),
            )
        first = self._all_awaited(value)
        if averages.counted and first.counting and not first.applied:
            raise Blocked("TFM413", node, _COUNTED_APART)
        if first.applied and (first.counting or not averages.counted):
            averages = replace(averages, order=Order.AFTER)
        return Runs(averages=averages, ways=(value,))

    def _averages(self, value: Value) -> bool:
        if named_symbol(value) == AVERAGE:
            return True
        runs = self.runs(value) if isinstance(value, (Operation, Items)) else None
        return runs is not None and runs.averages is not None

    def _create_train_op(self, value: Operation) -> Runs | None:
        node = self.trained.node(value)
        if not isinstance(node, cst.Call) or not self.trained.is_written_there(value):
            return None
        name = value.symbol
        parameters = tuple(
            "transform_grads_fn" if "training" in name and p == "clip_gradient_norm" else p for p in _CREATE
        )
        bound = bind(node, parameters, name, "TFM403")
        for key in ("update_ops", "transform_grads_fn", "gradient_multipliers"):
            if not is_none(bound.get(key)):
                raise Blocked("TFM403", bound[key], f"`{key}` of create_train_op is unsupported")
        given = value.argument(1, "optimizer")
        optimizer = self._optimizer(given, bound.get("optimizer")) if given is not None else None
        if optimizer is None or "total_loss" not in bound:
            raise Blocked("TFM401", node, "the optimizer of create_train_op cannot be resolved")
        step = value.argument(2, "global_step")
        counts = step is None or self._is_given_step(step, bound.get("global_step"))
        whole = self._trained(value.argument(4, "variables_to_train"), bound.get("variables_to_train"))
        updates = self._updates_so_far(value)
        norm = bound.get("clip_gradient_norm")
        at = self.trained.at[value]
        clipping = None
        if norm is not None and number(norm) != 0.0 and not is_none(norm):
            clipping = self._limit("clipnorm", norm, at)
        loss = value.argument(0, "total_loss")
        applied = Applied(optimizer, bound["total_loss"], loss, at, clipping, whole, (value,), updates)
        return self._with_averages(value, applied, counts, updates)

    def _optimize_loss(self, value: Operation) -> Runs | None:
        node = self.trained.node(value)
        if not isinstance(node, cst.Call) or not self.trained.is_written_there(value):
            return None
        bound = bind(node, _OPTIMIZE_LOSS, value.symbol, "TFM403")
        for key in ("gradient_noise_scale", "gradient_multipliers", "update_ops"):
            if not is_none(bound.get(key)):
                raise Blocked("TFM403", bound[key], f"`{key}` of optimize_loss is unsupported")
        if not is_none(bound.get("increment_global_step")) and not is_true(bound["increment_global_step"]):
            raise Blocked(
                "TFM403",
                node,
                "the global step is not incremented, so the Estimator would never stop: pass `global_step`",
            )
        self._is_given_step(value.argument(1, "global_step"), bound.get("global_step"))
        updates = self._updates_so_far(value)
        whole = self._trained(value.argument(9, "variables"), bound.get("variables"))
        norm, at = bound.get("clip_gradients"), self.trained.at[value]
        clipping = self._limit("global_clipnorm", norm, at) if norm is not None and not is_none(norm) else None
        given = value.argument(3, "optimizer")
        optimizer = None
        if given is not None and self._operations(given) is not None:
            optimizer = self._optimizer(given, bound.get("optimizer"))
        if optimizer is None:
            made = optimizer_of_loss(self.body, node, bound)
            self.read_at[made] = at
            optimizer = MadeOptimizer((), made, None, at, (made,), place=bound["optimizer"])
        elif not is_none(bound.get("learning_rate_decay_fn")):
            raise Blocked("TFM402", node, "the decay has no effect: the optimizer sets its own learning rate")
        applied = Applied(optimizer, bound["loss"], value.argument(0, "loss"), at, clipping, whole, (value,), updates)
        return self._with_averages(value, applied, True, updates)

    def _flow(self, value: Value) -> Flow | None:
        try:
            return self.flows.applied(value)
        except Changed as problem:
            raise Blocked("TFM403", self._place(problem.operation), problem.message) from None

    def _is_known(self, value: Value, index: int) -> bool:
        """Whether a value belongs to the training alone; an optimizer does where another statement makes it."""
        operations = self._operations(value)
        if operations is not None:
            return all(self.trained.at.get(one) != index for one in operations) and bool(operations)
        flow = self._flow(value)
        if flow is not None:
            return flow.kind is not Kind.VARIABLE or flow.whole
        if self._is_step(value) or self._averages(value) or named_symbol(value) in ("tf.train.Checkpoint", AVERAGE):
            return not (named_symbol(value) == AVERAGE and self._averaging(value) is None)
        return self.runs(value) is not None or self._is_next_step(value)

    def _last(self, name: str, index: int) -> Value:
        for earlier in range(index, -1, -1):
            if earlier in self.trained.done and name in self.trained.done[earlier].given:
                return self.trained.done[earlier].given[name]
        return Unknown(None, "it is never assigned")

    def _changed_elsewhere(self, node: cst.BaseExpression) -> list[Blocked]:
        """Why the value of a name is not known: a block gives it one, or changes it."""
        made = self._made_by(node)
        names = {*names_in(node), *names_in(made)}
        found = []
        for index, statement in reversed(list(enumerate(self.body.statements))):
            if TRAIN not in statement.modes or index in self.consumed:
                continue
            for name, place in changes_in_place(statement.node):
                if name in names:
                    found.append(
                        Blocked("TFM403", place, f"`{name}` is changed elsewhere, where it cannot be resolved")
                    )
            if isinstance(statement.node, cst.SimpleStatementLine):
                continue
            for name, value in assignments(statement.node):
                if name in names:
                    message = f"`{name}` is assigned in a block that cannot be resolved"
                    found.append(Blocked("TFM403", value, message))
        return found

    def _made_by(self, node: cst.BaseExpression) -> cst.CSTNode:
        """The last statement that gave a name its value, for reports."""
        if isinstance(node, cst.Name):
            for statement in reversed(self.body.statements):
                if TRAIN in statement.modes and any(n == node.value for n, _ in assignments(statement.node)):
                    return next(v for n, v in assignments(statement.node) if n == node.value)
        return node


def _starred(value: Operation) -> tuple[Value, ...]:
    return (value.kwargs["*"],) if "*" in value.kwargs else ()


def _adds_one(value: Value | None, is_step: Callable[[Value | None], bool]) -> bool:
    """Whether a value is the step, and one."""
    if not isinstance(value, Operation) or value.symbol != "add" or len(value.args) != 2:
        return False
    one = value.args[1]
    return is_step(value.args[0]) and isinstance(one, Constant) and one.value == 1


__all__ = ["AVERAGE", "BY_CONDITION", "NOT_UNDERSTOOD", "Applied", "Averages", "Order", "Runs", "Steps"]
