"""What shapes tensors, arrays and data sets of an evaluated Keras program have, as far as its lines say.

A shape is a tuple of numbers; None stands for an axis of any length, as that of the batches is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Optional

from migrator.ir.evaluate import Evaluator
from migrator.ir.machine import Arguments, TooMuch, present
from migrator.ir.program import called
from migrator.ir.values import Class, Constant, Either, Function, Method, Object, Operation, Parent, Symbol, Value
from migrator.ir.values import Sequence as Items
from migrator.pairing import equal_zip

Shape = tuple[Optional[int], ...]  # Python 3.9 has no `int | None` that runs
Path = tuple[object, ...]
LAYERS = "tf.keras.layers."
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg")
#: Functions and methods whose result has the shape of their first argument.
SAME = frozenset(
    (
        *("abs", "cast", "clip_by_value", "constant", "convert_to_tensor", "cos", "elu", "ensure_shape", "exp", "gelu"),
        *("identity", "leaky_relu", "log", "log_softmax", "negative", "relu", "relu6", "selu", "sigmoid", "sign"),
        *("sin", "softmax", "softplus", "sqrt", "square", "stop_gradient", "swish", "tanh", "l2_normalize", "dropout"),
        *("zeros_like", "ones_like", "copy_to_mesh"),
    )
)
_SAME_LAYERS = frozenset(
    ("Activation", "BatchNormalization", "Dropout", "LayerNormalization", "LeakyReLU", "ReLU", "Softmax")
)
_OF_ARRAYS = ("astype", "copy")
_OF_SETS = ("cache", "concatenate", "filter", "prefetch", "repeat", "shard", "shuffle", "skip", "take", "with_options")
#: What draws arrays, and where their sizes are given.
_DRAWN = {"rand": None, "randn": None, "randint": 2, "normal": 2, "uniform": 2, "random": 0, "random_sample": 0}
_DRAWN |= {"standard_normal": 0, "integers": 2, "choice": 1}
_FILLED = ("empty", "full", "ones", "zeros")


class Shapes:
    """The shapes in one evaluated program; `machine` knows what its containers hold."""

    def __init__(self, machine: Evaluator) -> None:
        self.machine = machine
        self.made: dict[Value, Operation] = {}  # how objects of layers of the program's own classes were made
        for effect in machine.effects:
            one = effect.operation
            owner = one.args[0] if one.symbol == ".__init__" and one.args else None
            owner = owner.owner if isinstance(owner, Parent) else owner
            if isinstance(owner, Object) and isinstance(owner.of, Class):
                own = Operation(one.site, base_of(owner.of), one.args[1:], one.kwargs)
                self.made.setdefault(owner, own)

    def of(self, value: Value | None, path: Path = ()) -> Shape | None:
        """The shape of a tensor or an array, or of that which a structure holds at a path of keys."""
        if value is None:
            return None
        if isinstance(value, Either):
            first, second = self.of(value.then, path), self.of(value.otherwise, path)
            return first if first == second else None
        if isinstance(value, Items) or self.machine.entries_of(value) is not None:
            return self._inside(value, path)
        if isinstance(value, Constant):
            return () if isinstance(value.value, (int, float)) and not path else None
        return self._of_operation(value, path) if isinstance(value, Operation) else None

    def dimensions(self, value: Value | None) -> Shape | None:
        """The numbers that a shape is written as: a tuple of them, one, or the shape of something."""
        if value is None:
            return None
        content = self.machine.content_of(value)
        if content is not None:
            return None if content.more else tuple(number(present(one)) for one in content.items)
        if isinstance(value, Constant):
            return (value.value,) if isinstance(value.value, int) else None
        if not isinstance(value, Operation) or not value.args:
            return None
        if value.symbol == "getattr" and constant(value.args[1]) == "shape":
            return self.of(value.args[0])
        if value.symbol == "getitem" and (cut := _cut(value.args[1])) is not None:
            whole = self.dimensions(value.args[0])
            return None if whole is None else whole[cut]
        return None

    def _inside(self, value: Value, path: Path) -> Shape | None:
        """What a list or a dict has at a path; a list of numbers is an array."""
        content, entries = self.machine.content_of(value), self.machine.entries_of(value)
        if path and entries is not None:
            found = [one for key, one in entries.items.values() if constant(key) == path[0]]
            return self.of(present(found[-1]), path[1:]) if found else None
        if content is None:
            return None
        items = [present(one) for one in content.items]
        if path and isinstance(path[0], int) and path[0] < len(items):
            return self.of(items[path[0]], path[1:])
        if path or content.more or not items:
            return None
        inner = {self.of(one) for one in items}
        first = inner.pop()
        return None if inner or first is None else (len(items), *first)

    def _of_operation(self, value: Operation, path: Path) -> Shape | None:
        name, args = value.symbol, value.args
        last = name.rpartition(".")[2]
        if name == "getitem":
            key = constant(args[1])
            return None if key is None else self.of(args[0], (key, *path))
        if name == "getattr" and constant(args[1]) == "element_spec":
            return self._element(args[0], path)
        if name == "tf.nest.map_structure" and len(args) == 2:
            return self._result(args[0], self._at(args[1], path))
        if path:
            return None
        if name in ("tf.keras.Input", f"{LAYERS}Input", f"{LAYERS}InputLayer"):
            return self.input(value)
        if name == "call" and args:
            return self.layer(args[0], args[1:])
        if name in _ARITHMETIC:
            return self._broadcast([self.of(one) for one in args])
        if name.startswith("."):
            return self._method(last, value)
        if name.startswith(("numpy.", "tf.random.")):
            return self._array(last, value)
        return self._function(last, value) if name.startswith("tf.") else None

    def input(self, value: Operation) -> Shape | None:
        """What a Keras input is, its batch included; also of a first layer that says what its input is."""
        whole = value.argument(None, "batch_shape", "batch_input_shape")
        if whole is not None:
            return self.dimensions(whole)
        width = number(value.argument(None, "input_dim"))
        if width is not None:
            return (None, width)
        places = 0 if value.symbol.rpartition(".")[2] in ("Input", "InputLayer") else None
        given = self.dimensions(value.argument(places, "shape", "input_shape"))
        return None if given is None else (None, *given)

    def construction(self, layer: Value) -> Operation | None:
        """The call that made a layer or the like, under the name of the class of a library that it is made of."""
        return layer if isinstance(layer, Operation) else self.made.get(layer)

    def layer(self, layer: Value, given: Sequence[Value]) -> Shape | None:
        """What a layer gives for its inputs."""
        inputs = given[0] if given else None
        content = self.machine.content_of(inputs) if inputs is not None else None
        if content is None:
            return self.through(layer, [self.of(inputs)])
        return self.through(layer, [self.of(present(one)) for one in content.items])

    def through(self, layer: Value, inputs: Sequence[Shape | None]) -> Shape | None:
        """What a layer gives for inputs of such shapes."""
        made = self.construction(layer)
        kind = made.symbol if made is not None else ""
        first = inputs[0] if inputs else None
        if made is None or not kind.startswith(LAYERS):
            return None
        kind = kind.removeprefix(LAYERS)
        if kind == "Dense":
            return None if first is None else (*first[:-1], number(argument(made, 0, "units")))
        if kind == "Embedding":
            return None if first is None else (*first, number(argument(made, 1, "output_dim")))
        if kind in _SAME_LAYERS:
            return first
        if kind == "Flatten":
            return None if first is None else (first[0], _product(first[1:]))
        if kind == "Reshape":
            target = self.dimensions(argument(made, 0, "target_shape"))
            return None if target is None or -1 in target else ((first or (None,))[0], *target)
        if kind.startswith("Global") and first is not None:
            return (first[0], first[-1])
        if kind.startswith(("Conv2D", "MaxPooling2D", "AveragePooling2D", "ZeroPadding2D")):
            return None if first is None or len(first) != 4 else self._of_image(kind, made, first)
        if kind in ("Add", "Multiply", "Average", "Maximum", "Subtract"):
            return self._broadcast(inputs)
        if kind == "Concatenate" and number(argument(made, 0, "axis")) in (None, -1):
            return _joined(inputs, -1)
        return None

    def _of_image(self, kind: str, made: Operation, given: Shape) -> Shape | None:
        """What a convolution or a pooling gives for images of shape [None, rows, columns, channels]."""
        convolves = kind == "Conv2D"
        if kind.startswith("Conv") and not convolves:
            return None
        names = ("kernel_size", "strides") if convolves else ("pool_size", "strides")
        sizes = self._pair(made.argument(1 if convolves else 0, names[0]), (2, 2))
        strides = self._pair(made.argument(2 if convolves else 1, names[1]), (1, 1) if convolves else sizes)
        padding = constant(made.argument(3 if convolves else 2, "padding"))
        plain = made.argument(None, "data_format", "dilation_rate") is None
        if kind == "ZeroPadding2D" or sizes is None or strides is None or not plain:
            return None
        same = padding in ("same", "SAME")
        if not same and padding not in (None, "valid", "VALID"):
            return None
        extents: list[int | None] = []
        for size, window, step in equal_zip(given[1:3], sizes, strides):
            known = None if size is None or window is None else size if same else size - window + 1
            extents.append(None if known is None or not step else -(-known // step))
        channels = number(made.argument(0, "filters")) if convolves else given[3]
        return (given[0], *extents, channels)

    def _pair(self, value: Value | None, otherwise: Shape | None) -> Shape | None:
        """Two numbers, or one for both."""
        found = self.dimensions(value)
        found = otherwise if value is None or (constant(value) is None and not found) else found
        return None if found is None else found * 2 if len(found) == 1 else found

    def _function(self, last: str, value: Operation) -> Shape | None:
        first = value.args[0] if value.args else None
        if last in SAME:
            return self.of(first)
        if last == "reshape":
            return self._reshaped(self.of(first), self.dimensions(value.argument(1, "shape")))
        if last == "expand_dims" and (shape := self.of(first)) is not None:
            axis = number(value.argument(1, "axis"))
            if axis is None:
                return None
            axis += len(shape) + 1 if axis < 0 else 0
            return (*shape[:axis], 1, *shape[axis:])
        if last.startswith("reduce_") and (shape := self.of(first)) is not None:
            given = value.argument(1, "axis")
            axes = self.dimensions(given)
            if given is None or axes is None or None in axes or value.argument(2, "keepdims") is not None:
                return () if given is None else None
            gone = {axis % len(shape) for axis in axes if axis is not None}
            return tuple(size for i, size in enumerate(shape) if i not in gone)
        if last == "concat":
            content = self.machine.content_of(first) if first is not None else None
            axis = number(value.argument(1, "axis"))
            if content is None or axis is None:
                return None
            return _joined([self.of(present(one)) for one in content.items], axis)
        if last == "one_hot":
            shape, depth = self.of(first), number(value.argument(1, "depth"))
            return None if shape is None else (*shape, depth)
        if last in _FILLED:
            return self.dimensions(first)
        elementwise = last in ("add", "multiply", "subtract")
        return self._broadcast([self.of(one) for one in value.args]) if elementwise else None

    def _method(self, last: str, value: Operation) -> Shape | None:
        if last in _OF_ARRAYS:
            return self.of(value.args[0])
        if last == "reshape":
            dims = value.args[1:]
            wanted = self.dimensions(dims[0]) if len(dims) == 1 else tuple(number(one) for one in dims)
            return self._reshaped(self.of(value.args[0]), wanted)
        return self._array(last, Operation(value.site, value.symbol, value.args[1:], value.kwargs))

    def _array(self, last: str, value: Operation) -> Shape | None:
        """What numpy makes, or a generator of random numbers."""
        if last in _FILLED:
            return self.dimensions(value.argument(0, "shape"))
        if last == "arange" and len(value.args) == 1:
            return (number(value.args[0]),)
        if last in ("array", "asarray"):
            return self.of(value.args[0] if value.args else None)
        if last in ("rand", "randn"):
            return tuple(number(one) for one in value.args)
        if last not in _DRAWN:
            return None
        if value.symbol.startswith("tf.random."):
            return self.dimensions(value.argument(0, "shape"))
        return self.dimensions(value.argument(_DRAWN[last], "size"))

    # -- data sets
    def _element(self, value: Value, path: Path) -> Shape | None:
        """The shape of what a data set gives, at a path of its structure."""
        if not isinstance(value, Operation):
            return None
        name, args = value.symbol, value.args
        if name.endswith("Dataset.from_tensor_slices"):
            whole = self.of(args[0] if args else value.argument(None, "tensors"), path)
            return whole[1:] if whole else None
        if name.endswith("Dataset.from_tensors") and args:
            return self.of(args[0], path)
        if name in (".batch", ".padded_batch"):
            inner = self._element(args[0], path)
            return None if inner is None else (None, *inner)
        if name.startswith(".") and name[1:] in _OF_SETS:
            return self._element(args[0], path)
        if name == ".map" and len(args) > 1:
            spec = self.machine.operation(None, "getattr", args[0], Constant(None, "element_spec"))
            count = _parameters(args[1])
            parts = [self._at(spec, (i,)) for i in range(count)] if count > 1 else [spec]
            return self._result(args[1], *parts, path=path)
        return None

    def _at(self, value: Value, path: Path) -> Value:
        for key in path:
            value = self.machine.operation(None, "getitem", value, Constant(None, key))
        return value

    def _result(self, function: Value, *given: Value, path: Path = ()) -> Shape | None:
        """The shape of what a function of the program gives, which is called apart from the program."""
        if not isinstance(function, (Function, Method)):
            return None
        try:
            return self.of(called(self.machine, "data", function, Arguments(given)).result, path)
        except (TooMuch, RecursionError):
            return None

    # -- arithmetic
    def _broadcast(self, shapes: Sequence[Shape | None]) -> Shape | None:
        known = [one for one in shapes if one is not None]
        if len(known) < len(shapes) or not known:
            return None
        longest = max(known, key=len)
        if all(one == longest or one == () or all(size == 1 for size in one) for one in known):
            return longest
        tails = {one[1:] for one in known if len(one) == len(longest)}
        return longest if len(tails) == 1 else None

    def _reshaped(self, shape: Shape | None, wanted: Shape | None) -> Shape | None:
        if wanted is None:
            return None
        if wanted.count(-1) != 1:
            return wanted
        rest = prod(one for one in wanted if one is not None and one > 0)
        whole = None if shape is None or None in wanted else _product(shape)
        size = None if whole is None or not rest else whole // rest
        if size is None and shape is not None and shape[0] is None and wanted[0] != -1 and None in wanted[:1]:
            inner = _product(shape[1:])
            size = None if inner is None or not rest else inner // rest
        return tuple(size if one == -1 else one for one in wanted)


def base_of(owner: Class) -> str:
    """The class of a library that a class of the program is made of; "" where there is none."""
    for one in owner.bases:
        name = one.name if isinstance(one, Symbol) else base_of(one) if isinstance(one, Class) else ""
        if name:
            return name
    return ""


def constant(value: Value | None) -> object:
    """What a constant is; None for anything else."""
    return value.value if isinstance(value, Constant) else None


def number(value: Value | None) -> int | None:
    """The whole number that a value is."""
    found = constant(value)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def argument(made: Operation, place: int, name: str) -> Value | None:
    """What a layer was given, by place or by name."""
    return made.argument(place, name)


def _cut(value: Value) -> slice | None:
    if not isinstance(value, Operation) or value.symbol != "slice":
        return None
    bounds = [constant(one) for one in value.args]
    whole = all(isinstance(one, Constant) for one in value.args)
    return slice(*bounds) if whole else None


def _product(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else prod(one for one in sizes if one is not None)


def _joined(shapes: Sequence[Shape | None], axis: int) -> Shape | None:
    known = [one for one in shapes if one is not None]
    if len(known) < len(shapes) or not known or any(len(one) != len(known[0]) for one in known):
        return None
    axis %= len(known[0])
    sizes = [one[axis] for one in known]
    size = None if None in sizes else sum(one for one in sizes if one is not None)
    return (*known[0][:axis], size, *known[0][axis + 1 :])


def _parameters(function: Value) -> int:
    """How many parameters a function has that nothing is given for."""
    inner = function.function if isinstance(function, Method) else function
    if not isinstance(inner, Function):
        return 0
    params = [one for one in inner.node.params.params if one.default is None]
    return len(params) - isinstance(function, Method)


__all__ = ["LAYERS", "Shape", "Shapes", "argument", "base_of", "constant", "number"]
