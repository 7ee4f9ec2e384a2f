"""What axes the output of an evaluated model_fn has, as far as the labels beside it depend on them.

Labels that a model_fn gives a second axis, `labels[:, None]` or `tf.expand_dims(labels, 1)`, are compared with the
output entry by entry. That axis is the last one of the labels where the output is a column, a tensor whose last axis
has one entry. In front of a longer one, as in labels `[b, t]` and an output `[b, 1, t]`, it is none that Keras adds or
takes away: the mean squared error was 0.269 in TensorFlow 1.15.5, and 0.430 over labels without that axis.

Neither are labels `[b, t]` that become `[b * t, 1]` beside an output that is reshaped in the same way.

Labels of one number for each example are a column in Keras, beside an output of two axes. A loss written by hand may
get them so where labels and output meet as they come: `out[:, 0] - labels` would be a table of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from migrator.ir.evaluate import Evaluator
from migrator.ir.machine import present
from migrator.ir.values import Constant, Either, Operation, Value
from migrator.ir.values import Sequence as Items
from migrator.query.shapes import SAME

#: Layers and operations whose result ends in an axis of a given size: where the size is given.
_SIZED = {
    "tf.layers.dense": 1,
    "tf.contrib.layers.fully_connected": 1,
    "tf.contrib.layers.linear": 1,
}
#: Layers that are made first and called later.
_LAYERS = ("tf.layers.Dense", "tf.keras.layers.Dense")
_SIZES = ("units", "num_outputs")
#: What a tensor that is given alone is called.
_TENSOR = ("x", "input", "inputs", "features", "logits", "tensor", "value")
#: Operations of two tensors, entry by entry.
_PAIRS = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "div", "div_no_nan", "truediv", "maximum", "minimum", "pow"),
        *("squared_difference", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal"),
        *("logical_and", "logical_or", "logical_not", "log1p", "expm1", "round", "rsqrt", "to_float", "to_int32"),
        *("to_int64", "to_double"),
    )
)
_OPERATORS = frozenset(
    ("add", "sub", "mul", "truediv", "pow", "neg", "mod", "==", "!=", "<", "<=", ">", ">=", "and", "or", "not")
)
_RESHAPES = frozenset(("tf.reshape", "tf.manip.reshape", "tf.keras.backend.reshape"))


def last_axis(value: Value) -> int | None:
    """How many entries the last axis of a tensor has; None where that is not known."""
    if isinstance(value, Either):
        sizes = {last_axis(value.then), last_axis(value.otherwise)}
        return sizes.pop() if len(sizes) == 1 else None
    if not isinstance(value, Operation):
        return None
    if _is_of_one(value):
        first = value.argument(0, *_TENSOR)
        return None if first is None else last_axis(first)
    if _is_of_entries(value):
        sizes = {last_axis(one) for one in value.given if not isinstance(one, Constant)}
        return sizes.pop() if len(sizes) == 1 else None
    size = None
    if value.symbol in _SIZED:
        size = value.argument(_SIZED[value.symbol], *_SIZES)
    elif value.symbol == "call" and isinstance(value.args[0], Operation) and value.args[0].symbol in _LAYERS:
        size = value.args[0].argument(0, *_SIZES)
    return size.value if isinstance(size, Constant) and isinstance(size.value, int) else None


def joins_axes(machine: Evaluator, value: Value) -> bool:
    """Whether a tensor may have other examples than the features: something on the way to it is reshaped so that the
    first axis is what is left.
    """
    return any(_leaves_the_first(machine, one) for one in _before(machine, value))


def same_of_columns(
    machine: Evaluator, value: Value, labels: Value, output: Callable[[Value], bool], may_be_column: bool
) -> bool:
    """Whether a loss is the same where labels of one number for each example are a column.

    It is where labels and output have the axes that they came with wherever a tensor is computed of both, and the
    output is no column itself: TensorFlow 1 compared each of such labels with the outputs for all examples. It is, too,
    where the labels have the axes of a reshape. `output` tells the output's values, also where it is no name.
    """
    sides = _Sides(machine, labels, output)
    return "labels" not in sides.of(value) or (not may_be_column and sides.meet(value))


class _Sides:
    """Which of labels and output values are computed of."""

    def __init__(self, machine: Evaluator, labels: Value, output: Callable[[Value], bool]) -> None:
        self.machine = machine
        self.labels = labels
        self.output = output
        self._of: dict[int, frozenset[str]] = {}

    def meet(self, value: Value) -> bool:
        sides = self.of(value)
        if not sides or value is self.labels or self.output(value):
            return True
        return (len(sides) == 2 or _is_of_entries(value)) and all(self.meet(one) for one in _parts(self.machine, value))

    def of(self, value: Value) -> frozenset[str]:
        if id(value) not in self._of:
            self._of[id(value)] = frozenset()  # of a value that is computed of itself
            if value is self.labels:
                found = frozenset(("labels",))
            elif self.output(value):
                found = frozenset(("output",))
            else:
                found = frozenset().union(*(self.of(one) for one in _parts(self.machine, value)))
                if found == {"labels"} and _is_reshaped(self.machine, value):
                    found = frozenset()
            self._of[id(value)] = found
        return self._of[id(value)]


def _is_of_one(value: Operation) -> bool:
    """Whether an operation keeps the axes of the one tensor that it is given."""
    return value.symbol.startswith("tf.") and value.symbol.rpartition(".")[2] in SAME


def _is_of_entries(value: Value) -> bool:
    """Whether an operation keeps the axes of what it is given."""
    if isinstance(value, Either):
        return True
    if not isinstance(value, Operation):
        return False
    pairs = value.symbol.startswith("tf.") and value.symbol.rpartition(".")[2] in _PAIRS
    return value.symbol in _OPERATORS or pairs or _is_of_one(value)


def _parts(machine: Evaluator, value: Value) -> list[Value]:
    """What a value is computed of, or may be."""
    if isinstance(value, Either):
        return [value.then, value.otherwise]
    if isinstance(value, Items):
        content = machine.content_of(value)
        return [present(item) for item in content.items] if content is not None else []
    return list(value.given) if isinstance(value, Operation) else []


def _before(machine: Evaluator, value: Value) -> Iterator[Operation]:
    """The operations that a value is computed by."""
    queue, seen = [value], set[int]()
    while queue:
        one = queue.pop()
        if id(one) not in seen:
            seen.add(id(one))
            queue += _parts(machine, one)
            if isinstance(one, Operation):
                yield one


def _target(machine: Evaluator, value: Value) -> list[Value] | None:
    """The shape that a reshape is told, axis by axis; None where it is not known, or the value is no reshape."""
    target = value.argument(1, "shape") if _reshapes(value) and isinstance(value, Operation) else None
    content = machine.content_of(target) if target is not None else None
    return [present(one) for one in content.items] if content is not None else None


def _reshapes(value: Value) -> bool:
    return isinstance(value, Operation) and value.symbol in _RESHAPES


def _is_reshaped(machine: Evaluator, value: Value) -> bool:
    """Whether a tensor gets axes that do not depend on those that it had."""
    target = _target(machine, value)
    return target is not None and all(isinstance(one, Constant) for one in target)


def _leaves_the_first(machine: Evaluator, one: Operation) -> bool:
    target = _target(machine, one)
    if not target:
        return _reshapes(one)
    return isinstance(target[0], Constant) and target[0].value in (-1, None)


__all__ = ["joins_axes", "last_axis", "same_of_columns"]
