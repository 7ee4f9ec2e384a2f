"""What axes the output of an evaluated model_fn has, as far as the labels beside it depend on them.

Labels that a model_fn gives a second axis, `labels[:, None]` or `tf.expand_dims(labels, 1)`, are compared with the
output entry by entry. That axis is the last one of the labels where the output is a column, a tensor whose last axis
has one entry. In front of a longer one, as in labels `[b, t]` and an output `[b, 1, t]`, it is none that Keras adds or
takes away: the mean squared error was 0.269 in TensorFlow 1.15.5, and 0.430 over labels without that axis.

Neither are labels `[b, t]` that become `[b * t, 1]` beside an output that is reshaped in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrator.ir.evaluate import Evaluator
from migrator.ir.machine import present
from migrator.ir.values import Constant, Either, Operation, Value
from migrator.ir.values import Sequence as Items

#: Layers and operations whose result ends in an axis of a given size: where the size is given.
_SIZED = {
    "tf.layers.dense": 1,
    "tf.contrib.layers.fully_connected": 1,
    "tf.contrib.layers.linear": 1,
}
#: Layers that are made first and called later.
_LAYERS = ("tf.layers.Dense", "tf.keras.layers.Dense")
_SIZES = ("units", "num_outputs")
#: Operations of every entry by itself.
_EACH = frozenset(
    (
        *("tf.identity", "tf.sigmoid", "tf.nn.sigmoid", "tf.math.sigmoid", "tf.nn.relu", "tf.tanh", "tf.nn.tanh"),
        *("tf.exp", "tf.math.exp", "tf.nn.softplus", "tf.abs", "tf.math.abs", "tf.cast", "tf.to_float"),
    )
)
_ARITHMETIC = frozenset(("add", "sub", "mul", "truediv", "neg"))
_RESHAPES = frozenset(("tf.reshape", "tf.manip.reshape", "tf.keras.backend.reshape"))


def is_column(value: Value) -> bool:
    """Whether a tensor surely ends in an axis of one entry."""
    if isinstance(value, Either):
        return is_column(value.then) and is_column(value.otherwise)
    if not isinstance(value, Operation) or not value.args:
        return False
    if value.symbol in _EACH:
        return is_column(value.args[0])
    if value.symbol in _ARITHMETIC:
        sides = [one for one in value.args if not isinstance(one, Constant)]
        return bool(sides) and all(is_column(one) for one in sides)
    size = None
    if value.symbol in _SIZED:
        size = value.argument(_SIZED[value.symbol], *_SIZES)
    elif value.symbol == "call" and isinstance(value.args[0], Operation) and value.args[0].symbol in _LAYERS:
        size = value.args[0].argument(0, *_SIZES)
    return isinstance(size, Constant) and size.value == 1


def joins_axes(machine: Evaluator, value: Value) -> bool:
    """Whether a tensor may have other examples than the features: something on the way to it is reshaped so that the
    first axis is what is left.
    """
    return any(_leaves_the_first(machine, one) for one in _before(machine, value))


def _before(machine: Evaluator, value: Value) -> Iterator[Operation]:
    """The operations that a value is computed by."""
    queue, seen = [value], set[int]()
    while queue:
        one = queue.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Either):
            queue += [one.then, one.otherwise]
        elif isinstance(one, Items):
            content = machine.content_of(one)
            queue += [present(item) for item in content.items] if content is not None else []
        elif isinstance(one, Operation):
            yield one
            queue += one.given


def _leaves_the_first(machine: Evaluator, one: Operation) -> bool:
    if one.symbol not in _RESHAPES:
        return False
    target = one.argument(1, "shape")
    content = machine.content_of(target) if target is not None else None
    if content is None or not content.items:
        return True
    first = present(content.items[0])
    return isinstance(first, Constant) and first.value in (-1, None)


__all__ = ["is_column", "joins_axes"]
