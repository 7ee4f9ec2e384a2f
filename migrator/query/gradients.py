"""Gradients and variables on their way from a loss to an optimizer: what is computed, and what becomes of each.

Whether a list of pairs was gone through by a comprehension, a loop, `zip` or `map` makes no difference: a value is one
gradient, one variable, a pair of both, or any number of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from migrator.ir.machine import NOTHING, Machine
from migrator.ir.values import Constant, Either, Operation, Value, alternatives, is_nothing
from migrator.ir.values import Sequence as Items

_LISTS = ("list", "tuple", "iter", "reversed")
_TRAINED = (
    "tf.trainable_variables",
    "tf.contrib.framework.get_trainable_variables",
    "tf.contrib.slim.get_trainable_variables",
)
_GLOBAL = ("tf.global_variables", "tf.contrib.framework.get_variables", "tf.contrib.slim.get_variables")
_KEYS = {
    "tf.GraphKeys.TRAINABLE_VARIABLES": "trained",
    "trainable_variables": "trained",
    "tf.GraphKeys.GLOBAL_VARIABLES": "global",
    "tf.GraphKeys.VARIABLES": "global",
    "variables": "global",
}


class Kind(Enum):
    """What a value is."""

    GRADIENT = "a gradient"
    VARIABLE = "a variable"
    PAIR = "a gradient and its variable"
    NORM = "a number about gradients"
    INDEX = "the index of a turn"


@dataclass(frozen=True)
class Clip:
    """A call that clips, the argument of a Keras optimizer that does the same, and the value of its limit."""

    operation: Operation
    argument: str
    limit: Value


@dataclass(frozen=True)
class Flow:
    """Gradients, variables or pairs: one of them, or with `many` any number.

    `computed` is the call that computes the gradients (None: there are none), `loss` what it differentiates, `clips`
    what clips them. `listed` are the calls that list the variables, `whole` says whether all that are trained are here.
    """

    kind: Kind
    many: bool
    computed: Operation | None = None
    loss: Value | None = None
    clips: tuple[Clip, ...] = ()
    listed: tuple[Operation, ...] = ()
    whole: bool = True


class Changed(Exception):
    """Gradients are changed so that no Keras optimizer does it: why, and by which call."""

    def __init__(self, message: str, operation: Operation) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation


class Flows:
    """Follows gradients and variables through the values of a program.

    `is_all` says whether `model.trainable_variables` of such a model are all that are trained; `told` is called with
    an operation that stands for several, and the first of them.
    """

    def __init__(
        self,
        machine: Machine,
        is_all: Callable[[Operation], bool],
        told: Callable[[Operation, Operation], None] = lambda new, old: None,
    ) -> None:
        self.machine = machine
        self.is_all = is_all
        self.told = told
        self.cells: dict[Value, list[tuple[Value, Value]]] = {}  # what loops put in the place of elements: index, value
        self._known: dict[Value, Flow | None] = {}
        self._replacing: set[Value] = set()
        self._merged: dict[Either, Value] = {}

    def of(self, value: Value | None) -> Flow | None:
        """What a value is; None where that is nothing of this. Raises Changed."""
        if value is None or isinstance(value, Constant):
            return None
        if isinstance(value, Items):
            return self._items(value)
        if value in self._known:
            return self._known[value]
        if value in self.cells and value not in self._replacing:
            return None  # what is read of it before and after the change is not told apart
        self._known[value] = None  # of what contains itself, nothing is known
        found = self._either(value) if isinstance(value, Either) else None
        if isinstance(value, Operation):
            found = self._operation(value)
        self._known[value] = found
        return found

    def applied(self, value: Value | None) -> Flow | None:
        """What a list of pairs is when it is applied, after all loops that change it in place. Raises Changed."""
        if isinstance(value, Operation) and value in self.cells:
            return self._replaced(value, self.cells[value])
        if isinstance(value, Operation) and value.symbol in _LISTS and len(value.args) == 1:
            return self.applied(value.args[0])
        return self.of(value)

    # -- containers
    def _items(self, value: Items) -> Flow | None:
        content = self.machine.content_of(value)
        if content is None or not content.items:
            return None
        found = [self.of(one) for one in content.items if one is not NOTHING]
        if not content.more:
            if len(found) == 2 and [one.kind if one and not one.many else None for one in found] == [
                Kind.GRADIENT,
                Kind.VARIABLE,
            ]:
                return self._pair(found[0], found[1], False)
            return None
        first = found[0]
        if first is None or first.many or any(one != first for one in found):
            return None
        return replace(first, many=True)

    def _pair(self, gradient: Flow | None, variable: Flow | None, many: bool) -> Flow | None:
        if gradient is None or variable is None or gradient.computed is None:
            return None
        whole = gradient.whole and variable.whole
        listed = tuple(dict.fromkeys((*gradient.listed, *variable.listed)))
        return replace(gradient, kind=Kind.PAIR, many=many, listed=listed, whole=whole)

    def _replaced(self, owner: Operation, cells: Sequence[tuple[Value, Value]]) -> Flow | None:
        """`for i, (g, v) in enumerate(pairs): pairs[i] = ...`."""
        if len(cells) != 1:
            return None
        [(index, value)] = cells
        known, self._known = self._known, {}
        self._replacing.add(owner)
        try:
            counted, each = self.of(index), self.of(value)
        finally:
            self._replacing.discard(owner)
            self._known = known
        is_own = counted is not None and counted.kind is Kind.INDEX and _root(index) is owner
        return replace(each, many=True) if is_own and each is not None and not each.many else None

    # -- conditions
    def merged(self, value: Value) -> Value:
        """The call of a method of either of two objects, where the evaluator made one of each of it."""
        if not isinstance(value, Either):
            return value
        if value not in self._merged:
            a, b = self.merged(value.then), self.merged(value.otherwise)
            self._merged[value] = value
            if isinstance(a, Operation) and isinstance(b, Operation) and _are_one_call(a, b):
                owner = Either(value.site, value.condition, a.args[0], b.args[0])
                one = Operation(a.site, a.symbol, (owner, *a.args[1:]), a.kwargs, a.scopes)
                self._merged[value] = one
                self.told(one, a)
        return self._merged[value]

    def _either(self, value: Either) -> Flow | None:
        """A gradient that may be None, or an element that is left out of a list."""
        one_call = self.merged(value)
        if one_call is not value:
            return self.of(one_call)
        parts = [one for one in alternatives(value) if one is not NOTHING and not is_nothing(one)]
        flows = [self.of(one) for one in parts]
        known = [one for one in flows if one is not None]
        if len(known) != len(parts) or not known:
            return None
        if known[0].kind is Kind.VARIABLE and len(set(known)) == 1:
            return replace(known[0], whole=False) if NOTHING in alternatives(value) else None
        if not self._asks_for_none(value):
            return None
        known.sort(key=lambda one: len(one.clips))
        return known[-1] if len({replace(one, clips=()) for one in known}) == 1 else None

    def _asks_for_none(self, value: Value) -> bool:
        """Whether all conditions of a value only ask whether a gradient is None."""
        if not isinstance(value, Either):
            return True
        condition = value.condition
        if not isinstance(condition, Operation) or condition.symbol != "is" or len(condition.args) != 2:
            return False
        asked, none = condition.args
        flow = self.of(asked)
        if not is_nothing(none) or flow is None or flow.kind is not Kind.GRADIENT or flow.many:
            return False
        # `condition` is "is None": what clips stands in the other way.
        first = self.of(value.then) if value.then is not NOTHING and not is_nothing(value.then) else None
        if first is not None and first.clips != flow.clips:
            return False
        return self._asks_for_none(value.then) and self._asks_for_none(value.otherwise)

    # -- operations
    def _operation(self, value: Operation) -> Flow | None:
        handler = getattr(self, f"_of_{value.symbol.lstrip('.').replace('.', '_')}", None)
        if value.symbol in _TRAINED:
            whole = all(is_nothing(one) for one in value.given)
            return Flow(Kind.VARIABLE, True, listed=(value,), whole=whole)
        if value.symbol in _GLOBAL:
            return self._global(value, next(iter((*value.args, *value.kwargs.values())), None))
        if value.symbol in _LISTS:
            return self._many(value.args[0]) if len(value.args) == 1 else None
        return handler(value) if handler is not None else None

    def _many(self, value: Value) -> Flow | None:
        found = self.of(value)
        return found if found is not None and found.many else None

    def _global(self, value: Operation, scope: Value | None) -> Flow | None:
        return None if is_nothing(scope) else Flow(Kind.VARIABLE, True, listed=(value,), whole=False)

    def _of_tf_get_collection(self, value: Operation) -> Flow | None:
        what = _KEYS.get(named(value.argument(0, "key")))
        scope = value.argument(1, "scope")
        if what == "global":
            return self._global(value, scope)
        return Flow(Kind.VARIABLE, True, listed=(value,), whole=is_nothing(scope)) if what else None

    _of_tf_get_collection_ref = _of_tf_get_collection

    def _of_getattr(self, value: Operation) -> Flow | None:
        if named(value.args[1]) != "trainable_variables" or not self.is_all(value):
            return None
        return Flow(Kind.VARIABLE, True)

    def _of_compute_gradients(self, value: Operation) -> Flow | None:
        variables = value.argument(2, "var_list")
        listed = self.of(variables)
        whole = is_nothing(variables) or (listed is not None and listed.whole)
        loss = value.argument(1, "loss")
        return Flow(Kind.PAIR, True, value, loss, listed=listed.listed if listed else (), whole=whole)

    def _of_tf_gradients(self, value: Operation) -> Flow | None:
        variables = self.of(value.argument(1, "xs"))
        if variables is None or variables.kind is not Kind.VARIABLE or not is_nothing(value.argument(2, "grad_ys")):
            return None
        loss = value.argument(0, "ys")
        return Flow(Kind.GRADIENT, True, value, loss, listed=variables.listed, whole=variables.whole)

    def _of_element(self, value: Operation) -> Flow | None:
        inside = value.args[0]
        if isinstance(inside, Operation) and inside.symbol in ("zip", "enumerate"):
            flow = self.of(inside)
            return replace(flow, many=False) if flow is not None and flow.many else None
        flow = self.of(inside)
        return replace(flow, many=False) if flow is not None and flow.many else None

    def _of_loop(self, value: Operation) -> Flow | None:
        return self.of(value.args[-1])

    def _of_zip(self, value: Operation) -> Flow | None:
        columns = _unzipped(value)
        if columns is not None:  # `zip(*zip(*pairs))`
            pairs = _unzipped(columns) if isinstance(columns, Operation) and columns.symbol == "zip" else None
            return self._many(pairs) if pairs is not None else None
        if len(value.args) != 2 or value.kwargs:
            return None
        first, second = (self.applied(one) for one in value.args)  # it reads them when it is gone through
        if first is None or second is None or not first.many or not second.many:
            return None
        if (first.kind, second.kind) != (Kind.GRADIENT, Kind.VARIABLE):
            return None
        return self._pair(first, second, True)

    def _of_getitem(self, value: Operation) -> Flow | None:
        inside, key = value.args[0], value.args[1]
        index = key.value if isinstance(key, Constant) else None
        if not isinstance(index, int) or index not in (0, 1):
            return None
        if isinstance(inside, Operation):
            columns = _unzipped(inside) if inside.symbol == "zip" else None
            if columns is not None:
                pairs = self._many(columns)
                return self._part(pairs, index) if pairs is not None and pairs.kind is Kind.PAIR else None
            if inside.symbol == "tf.clip_by_global_norm":
                return self._by_global_norm(inside) if index == 0 else Flow(Kind.NORM, False)
            if inside.symbol == "element" and isinstance(inside.args[0], Operation):
                listed = inside.args[0]
                if listed.symbol == "enumerate":
                    if index == 0:
                        return Flow(Kind.INDEX, False) if self.of(listed.args[0]) is not None else None
                    return self.of(self.machine.operation(value.site, "element", listed.args[0]))
                if listed.symbol == "zip" and index < len(listed.args):
                    return self.of(self.machine.operation(value.site, "element", listed.args[index]))
        pair = self.of(inside)
        if pair is None or pair.kind is not Kind.PAIR or pair.many:
            return None
        return self._part(pair, index)

    def _part(self, pair: Flow, index: int) -> Flow:
        if index == 0:
            return replace(pair, kind=Kind.GRADIENT)
        return Flow(Kind.VARIABLE, pair.many, listed=pair.listed, whole=pair.whole)

    def _of_add(self, value: Operation) -> Flow | None:
        """Lists of variables that are put together, or taken from each other: some of all."""
        parts = [self.of(one) for one in value.args]
        if any(one is None or one.kind is not Kind.VARIABLE or not one.many for one in parts):
            return None
        listed = tuple(dict.fromkeys(each for one in parts if one is not None for each in one.listed))
        return Flow(Kind.VARIABLE, True, listed=listed, whole=False)

    _of_sub = _of_add

    def _of_set(self, value: Operation) -> Flow | None:
        found = self._many(value.args[0]) if len(value.args) == 1 else None
        return found if found is not None and found.kind is Kind.VARIABLE else None

    # -- clipping
    def _by_global_norm(self, value: Operation) -> Flow | None:
        found, limit, norm = self.of(value.argument(0, "t_list")), value.argument(1, "clip_norm"), value.argument(2)
        norm = value.kwargs.get("use_norm", norm)
        if found is None or found.kind is not Kind.GRADIENT or not found.many or limit is None:
            return None
        known = self.of(norm)
        if not is_nothing(norm) and (known is None or known.kind is not Kind.NORM):
            return None
        return self._clipped(found, Clip(value, "global_clipnorm", limit))

    def _of_tf_global_norm(self, value: Operation) -> Flow | None:
        found = self.of(value.argument(0, "t_list"))
        return Flow(Kind.NORM, False) if found is not None and found.kind is Kind.GRADIENT else None

    _of_tf_linalg_global_norm = _of_tf_global_norm

    def _of_tf_clip_by_norm(self, value: Operation) -> Flow | None:
        found, limit = self._one(value.argument(0, "t")), value.argument(1, "clip_norm")
        if found is None or limit is None or not is_nothing(value.argument(2, "axes")):
            return None
        return self._clipped(found, Clip(value, "clipnorm", limit))

    def _of_tf_clip_by_value(self, value: Operation) -> Flow | None:
        found = self._one(value.argument(0, "t"))
        low, high = value.argument(1, "clip_value_min"), value.argument(2, "clip_value_max")
        if found is None or low is None or high is None:
            return None
        if not _opposite(low, high):
            raise Changed("the clipping bounds are not opposite numbers, and Keras has only one", value)
        return self._clipped(found, Clip(value, "clipvalue", high))

    def _one(self, value: Value | None) -> Flow | None:
        found = self.of(value)
        return found if found is not None and found.kind is Kind.GRADIENT and not found.many else None

    def _clipped(self, flow: Flow, clip: Clip) -> Flow:
        if flow.clips:
            raise Changed("the gradients are clipped twice", clip.operation)
        return replace(flow, clips=(clip,))


def _are_one_call(a: Operation, b: Operation) -> bool:
    """Whether two operations are the same call of a method, with the same arguments, of two objects."""
    if a.site is None or b.site is None or a.site.node is not b.site.node or a.site.frame is not b.site.frame:
        return False
    alike = a.symbol == b.symbol and len(a.args) == len(b.args) > 0 and a.kwargs.keys() == b.kwargs.keys()
    return (
        a.symbol.startswith(".")
        and alike
        and all(x is y for x, y in zip(a.args[1:], b.args[1:]))
        and all(one is b.kwargs[name] for name, one in a.kwargs.items())
    )


def _unzipped(value: Operation) -> Value | None:
    """The rows that `zip(*rows)` makes columns of."""
    return value.kwargs["*"] if set(value.kwargs) == {"*"} and not value.args else None


def named(value: Value | None) -> str:
    """The text that a constant is, or the name of a symbol."""
    found = getattr(value, "value", getattr(value, "name", ""))
    return found if isinstance(found, str) else ""


def _root(index: Value) -> Value | None:
    """The list over whose indices `enumerate` goes."""
    counted = index.args[0] if isinstance(index, Operation) and index.symbol == "getitem" else None
    over = counted.args[0] if isinstance(counted, Operation) and counted.symbol == "element" else None
    return over.args[0] if isinstance(over, Operation) and over.symbol == "enumerate" else None


def _opposite(low: Value, high: Value) -> bool:
    """Whether one number is the other with a minus before it."""
    if isinstance(low, Constant) and isinstance(high, Constant):
        numbers = [one.value for one in (low, high) if isinstance(one.value, (int, float))]
        return len(numbers) == 2 and numbers[0] == -numbers[1]
    return isinstance(low, Operation) and low.symbol == "neg" and low.args[0] is high


__all__ = ["Changed", "Clip", "Flow", "Flows", "Kind", "named"]
