"""The weights of the Keras model of an evaluated program: their names, shapes and bytes, and what trains them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrator.ir.evaluate import Evaluator
from migrator.ir.machine import Arguments, TooMuch, present
from migrator.ir.program import called
from migrator.ir.values import Class, Constant, Function, Method, Object, Operation, Site, Value
from migrator.query.shapes import LAYERS, Shape, Shapes, argument, base_of, constant, number

_MODELS = ("tf.keras.Model", "tf.keras.models.Model")
_SEQUENTIAL = ("tf.keras.Sequential", "tf.keras.models.Sequential")
_OPTIMIZERS = ("tf.keras.optimizers.", "tf.optimizers.")
#: Layers that have no weights.
_PLAIN = re.compile(
    r"Input(Layer)?|Flatten|Reshape|Permute|Activation|Dropout|Add|Multiply|Subtract|Average|Maximum|Concatenate|"
    r"LeakyReLU|ReLU|Softmax|Lambda|\w+Pooling[123]D|UpSampling[123]D|ZeroPadding[123]D"
)
_BYTES = {"float16": 2, "bfloat16": 2, "half": 2, "float32": 4, "float64": 8, "double": 8}


class Unclear(Exception):
    """The weights are not known: what is in the way, and where in the evaluated program."""

    def __init__(self, message: str, site: Site | None, name: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.site = site
        self.name = name


@dataclass(frozen=True)
class Weight:
    """A weight: `layer.weight` as layouts name it, its shape, the bytes of one number, and the layer that has it.

    `trained` says whether gradients change it, `kind` what layer has it, `behind_images` whether a convolution comes
    before that, and `site` where the layer is made.
    """

    name: str
    shape: tuple[int, ...]
    width: int
    kind: str
    trained: bool
    site: Site | None
    behind_images: bool = False

    @property
    def bytes(self) -> int:
        """How many bytes the whole weight takes."""
        size = self.width
        for one in self.shape:
            size *= one
        return size


@dataclass(frozen=True)
class Training:
    """The weights of a model, and the optimizer that trains them: its class, and the constants that it is given."""

    weights: tuple[Weight, ...]
    optimizer: str
    given: Mapping[str, object]


def training(machine: Evaluator) -> Training:
    """The weights of the one model of a program, in the order of its layers. Raises Unclear."""
    return _Reader(machine).read()


class _Reader:
    def __init__(self, machine: Evaluator) -> None:
        self.machine = machine
        self.shapes = Shapes(machine)
        self.effects = [effect for effect in machine.effects if _happens(effect.operation.site)]
        self.counts: Counter[str] = Counter()
        self.images = False
        self.default = 4

    def read(self) -> Training:
        if not any(self.layer(effect.operation)[0] for effect in self.effects):
            self.effects = list(self.machine.effects)  # of a main function that something else calls
        operations = [effect.operation for effect in self.effects]
        for one in operations:
            if one.symbol.endswith(".set_floatx") and one.args:
                self.default = _BYTES.get(str(constant(one.args[0])), 4)
        model = self.own_model()
        if model is not None:
            return Training(tuple(self.of_object(*model)), *self.optimizer(operations))
        inputs = self.inputs(operations)
        weights: list[Weight] = []
        seen: set[Value] = set()
        for effect in self.effects:
            layer, made = self.layer(effect.operation)
            if layer is None or made is None or layer in seen:
                continue
            seen.add(layer)
            kind = made.symbol.removeprefix(LAYERS)
            self.images = self.images or kind.startswith("Conv")
            name = self.name(layer, made, kind)
            if _PLAIN.fullmatch(kind):
                continue
            if effect.repeated or effect.conditions:
                message = f"`{kind}` is created in a loop or under a condition that cannot be resolved"
                raise Unclear(message, made.site, name)
            weights += self.weights(name, kind, made, inputs.get(layer))
        if not weights:
            raise Unclear("no layer of the model is known", None)
        return Training(tuple(weights), *self.optimizer(operations))

    # -- layers
    def layer(self, operation: Operation) -> tuple[Value | None, Operation | None]:
        """The layer that a call makes, and how."""
        if operation.symbol.startswith(LAYERS) and operation.symbol.count(".") == 3:
            return operation, operation
        if operation.symbol == ".__init__" and operation.args:
            owner = operation.args[0]
            made = self.shapes.made.get(owner)
            if made is not None and made.symbol.startswith(LAYERS):
                return owner, made
        return None, None

    def name(self, layer: Value, made: Operation, kind: str) -> str:
        """What Keras calls a layer."""
        given = made.argument(None, "name")
        if given is not None:
            text = constant(given)
            if not isinstance(text, str):
                raise Unclear(f"the name of a `{kind}` is known only at run time", made.site)
            return text
        if isinstance(layer, Object) and isinstance(layer.of, Class):
            kind = layer.of.name
        snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", kind)).lower()
        count = self.counts[snake]
        self.counts[snake] += 1
        return f"{snake}_{count}" if count else snake

    def inputs(self, operations: Sequence[Operation]) -> dict[Value, Shape | None]:
        """The shapes that layers are given first."""
        found: dict[Value, Shape | None] = {}
        for one in operations:
            if one.symbol == "call" and one.args:
                found.setdefault(one.args[0], self.given(one))
            elif one.symbol in _SEQUENTIAL:
                shape: Shape | None = None
                for layer in self.stack(one, operations):
                    made = self.shapes.construction(layer)
                    if made is None:
                        continue
                    kind = made.symbol.removeprefix(LAYERS)
                    if kind in ("Input", "InputLayer") or (shape is None and self.shapes.input(made) is not None):
                        shape = self.shapes.input(made)
                        if kind in ("Input", "InputLayer"):
                            continue
                    if shape is None and kind == "Embedding":
                        shape = (None, None)
                    if shape is None:
                        shape = self.fed(one, operations)
                    found[layer] = shape
                    shape = self.shapes.through(layer, [shape])
        return found

    def given(self, call: Operation) -> Shape | None:
        """What a layer is called with."""
        inputs = call.args[1] if len(call.args) > 1 else None
        return self.shapes.of(inputs)

    def stack(self, model: Operation, operations: Sequence[Operation]) -> Iterator[Value]:
        """The layers of a Sequential model."""
        content = self.machine.content_of(model.args[0]) if model.args else None
        if model.args and (content is None or content.more):
            raise Unclear("the layers of a Sequential model are not literals", model.site)
        yield from [present(one) for one in content.items] if content is not None else ()
        yield from (
            one.args[1] for one in operations if one.symbol == ".add" and len(one.args) == 2 and one.args[0] is model
        )

    def fed(self, model: Value, operations: Sequence[Operation]) -> Shape | None:
        """The shape of what a model is fitted to, or called with."""
        for one in operations:
            if one.symbol in (".fit", ".evaluate") and len(one.args) > 1 and one.args[0] is model:
                spec = self.machine.operation(None, "getattr", one.args[1], Constant(None, "element_spec"))
                return self.shapes.of(self.machine.operation(None, "getitem", spec, Constant(None, 0)))
            if one.symbol == "call" and len(one.args) > 1 and one.args[0] is model:
                return self.given(one)
            if one.symbol == ".build" and len(one.args) > 1 and one.args[0] is model:
                return self.shapes.dimensions(one.args[1])
        return None

    # -- weights
    def weights(self, name: str, kind: str, made: Operation, given: Shape | None) -> list[Weight]:
        width = self.default
        dtype = made.argument(None, "dtype")
        if dtype is not None:
            word = constant(dtype) or getattr(dtype, "name", "").rpartition(".")[2]
            if word not in _BYTES:
                raise Unclear(f"the type of the weights of `{name}` is not known", made.site, name)
            width = _BYTES[str(word)]

        def weight(what: str, shape: Sequence[int | None], trained: bool = True) -> Weight:
            whole = f"{name}.{what}"
            if None in shape:
                axis = "rows" if shape[0] is None and len(shape) > 1 else "columns"
                raise Unclear(f"the {axis} of `{whole}` are not literals", made.site, whole)
            sizes = tuple(one for one in shape if one is not None)
            return Weight(whole, sizes, width, kind, trained, made.site, self.images)

        trains = constant(made.argument(None, "trainable")) is not False
        last = given[-1] if given else None
        if kind == "Dense":
            units = number(argument(made, 0, "units"))
            found = [weight("kernel", (last, units), trains)]
            biased = constant(argument(made, 2, "use_bias")) is not False
            return found + ([weight("bias", (units,), trains)] if biased else [])
        if kind == "Embedding":
            sizes = [number(argument(made, 0, "input_dim")), number(argument(made, 1, "output_dim"))]
            return [weight("embeddings", sizes, trains)]
        if kind in ("BatchNormalization", "experimental.SyncBatchNormalization"):
            of_scale = [one for one, key in (("gamma", "scale"), ("beta", "center")) if self.has(made, key)]
            return [
                *(weight(one, (last,), trains) for one in of_scale),
                *(weight(one, (last,), False) for one in ("moving_mean", "moving_variance")),
            ]
        if kind in ("Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose"):
            axes = 3 if kind == "Conv3D" else 1 if kind == "Conv1D" else 2
            size = self.shapes.dimensions(argument(made, 1, "kernel_size"))
            window: Shape = (None,) * axes if size is None else size * axes if len(size) == 1 else size
            filters = number(argument(made, 0, "filters"))
            ends = (filters, last) if kind == "Conv2DTranspose" else (last, filters)
            found = [weight("kernel", (*window, *ends), trains)]
            return found + ([weight("bias", (filters,), trains)] if self.has(made, "use_bias") else [])
        raise Unclear(f"the weights of a `{kind}` are not counted", made.site, name)

    def has(self, made: Operation, name: str) -> bool:
        return constant(made.argument(None, name)) is not False

    # -- models of classes of the program
    def own_model(self) -> tuple[Object, Operation] | None:
        """The object of a class of the program that is called as a model, and the first such call."""
        calls = [one.operation for one in self.effects if one.operation.symbol == "call" and one.operation.args]
        for one in calls:
            owner = one.args[0]
            if isinstance(owner, Object) and isinstance(owner.of, Class) and base_of(owner.of) in _MODELS:
                return owner, one
        return None

    def of_object(self, owner: Object, call: Operation) -> list[Weight]:
        """The weights of such a model, by its attributes."""
        function = self.machine.attribute(owner, "call", call.site or self.machine.nowhere)
        given = call.args[1] if len(call.args) > 1 else None
        if isinstance(given, Operation) and given.symbol == "tf.nest.map_structure" and len(given.args) == 2:
            given = given.args[1]  # an example in the place of a batch
        shapes: dict[Value, Shape | None] = {}
        if isinstance(function, Method) and isinstance(function.function, Function) and given is not None:
            training = {"training": Constant(None, True)} if "training" in _names(function.function) else {}
            try:
                graph = called(self.machine, "train", function, Arguments((given,), training))
            except (TooMuch, RecursionError):
                raise Unclear("`call` of the model takes too many steps to evaluate", call.site) from None
            for effect in graph.effects:
                one = effect.operation
                if one.symbol == "call" and one.args:
                    shapes.setdefault(one.args[0], self.given(one))
        found: list[Weight] = []
        for path, layer in self.attributes(owner, ()):
            made = self.shapes.construction(layer)
            if made is None or not made.symbol.startswith(LAYERS):
                continue
            kind = made.symbol.removeprefix(LAYERS)
            self.images = self.images or kind.startswith("Conv")
            if not _PLAIN.fullmatch(kind):
                found += self.weights(".".join(path), kind, made, shapes.get(layer))
        if not found:
            raise Unclear("no layer of the model is known", call.site)
        return found

    def attributes(self, owner: Value, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Value]]:
        """What an object holds by attributes, lists of it and objects in it."""
        for name, one in self.machine.store.held(owner).items():
            content = self.machine.content_of(one)
            if content is not None:
                if content.more:
                    raise Unclear(f"`{'.'.join((*path, name))}` may hold any number of layers", one.site)
                for index, item in enumerate(content.items):
                    yield from self.inside((*path, name, str(index)), present(item))
            else:
                yield from self.inside((*path, name), one)

    def inside(self, path: tuple[str, ...], value: Value) -> Iterator[tuple[tuple[str, ...], Value]]:
        if (
            isinstance(value, Object)
            and isinstance(value.of, Class)
            and base_of(value.of) in (f"{LAYERS}Layer", *_MODELS)
        ):
            yield from self.attributes(value, path)
        else:
            yield path, value

    # -- what trains them
    def optimizer(self, operations: Sequence[Operation]) -> tuple[str, Mapping[str, object]]:
        """The class of the optimizer, and the constants that it is given."""
        found: list[Operation] = []
        for one in operations:
            if one.symbol.startswith(_OPTIMIZERS) and ".schedules." not in one.symbol:
                found.append(one)
            elif one.symbol == ".__init__" and one.args:
                made = self.shapes.made.get(one.args[0])
                if made is not None and made.symbol.startswith(_OPTIMIZERS) and ".schedules." not in made.symbol:
                    found.append(made)
            elif one.symbol == ".compile":
                word = constant(one.argument(1, "optimizer"))
                if isinstance(word, str):
                    found.append(Operation(one.site, f"{_OPTIMIZERS[0]}{word}"))
        if len({one.symbol for one in found}) > 1:
            raise Unclear("the model has one of several optimizers", found[1].site)
        if not found:
            return "", {}
        given = {name: constant(one) for name, one in found[0].kwargs.items() if name != "*"}
        return found[0].symbol.rpartition(".")[2], given


def _happens(site: Site | None) -> bool:
    """Whether something is made by what the script does, not in a function that nobody is known to call."""
    frame = site.frame if site is not None else None
    while frame is not None:
        if frame.caller is None:
            return False
        frame = frame.caller.frame
    return True


def _names(function: Function) -> set[str]:
    params = function.node.params
    return {one.name.value for one in (*params.params, *params.kwonly_params)}


__all__ = ["Training", "Unclear", "Weight", "training"]
