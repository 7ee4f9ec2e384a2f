"""The function that makes a model, for a mesh of devices: it, its optimizer and its metrics are given the mesh."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.emit.model_function import EmittedModel, Matrix
from migrator.names.bindings import Form, read_bindings
from migrator.names.imports import dotted
from migrator.pairing import equal_zip
from migrator.program.calls import bind, number, parameters_of, string
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.rules.layers import add_argument
from migrator.rules.mesh import (
    CLASSES,
    CLIPPING,
    DRAWING,
    FOR_MESHES,
    FUNCTIONS,
    IMAGE_LAYERS,
    LAYERS,
    METRIC_FUNCTIONS,
    METRICS,
    OF_STEPS,
    OF_TABLES,
    OPS,
    OPTIMIZERS,
    SCHEDULES,
    STATIC,
)
from migrator.rules.partitioners import Made, literal
from migrator.rules.site import keyword
from migrator.walking import walk

MESH = "mesh"
_KERAS = "tf.keras."
_SCHEDULE = f"{_KERAS}optimizers.schedules.LearningRateSchedule"
_MATRICES = {"Dense": "kernel", "Embedding": "embeddings"}


@dataclass(frozen=True)
class Substitute:
    """A layer that a file gets in place of Keras' own: its class, and the arguments of Keras' that it takes."""

    text: str
    parameters: tuple[str, ...]


_NORMALIZES = ("momentum", "epsilon", "center", "scale", "name")
_INITIALIZERS = tuple(f"{name}_initializer" for name in ("beta", "gamma", "moving_mean", "moving_variance"))
SUBSTITUTES = {
    # Measured on TensorFlow 2.21: a table that is divided by rows cannot be looked up in (ResourceGather), and the
    # sparse gradient of a whole one is lost without an error. As a product all is exact, with every layout of it.
    "Embedding": Substitute(
        '''\
class Embedding(tf.keras.layers.Embedding):
    """Looks rows up by a matrix product, which a mesh can divide, and whose gradient is dense."""

    def call(self, inputs):
        return tf.matmul(tf.one_hot(inputs, self.input_dim), self.embeddings)
''',
        ("input_dim", "output_dim", "embeddings_initializer", "name"),
    ),
    # That of images is fused elsewhere, which has no layouts; its moving variance is that of n - 1 values.
    "BatchNormalization": Substitute(
        '''\
class BatchNormalization(tf.keras.layers.BatchNormalization):
    """Normalizes by operations that a mesh can divide, over the whole batch, as one device does."""

    def call(self, inputs, training=None):
        mean, variance = self.moving_mean, self.moving_variance
        if training:
            mean, variance = tf.nn.moments(inputs, list(range(len(inputs.shape) - 1)))
            kept = variance
            if len(inputs.shape) == 4:  # images
                count = tf.cast(tf.size(inputs) // inputs.shape[-1], inputs.dtype)
                kept = variance * count / tf.maximum(count - 1.0, 1.0)
            self.moving_mean.assign(self.momentum * self.moving_mean + (1.0 - self.momentum) * mean)
            self.moving_variance.assign(self.momentum * self.moving_variance + (1.0 - self.momentum) * kept)
        return tf.nn.batch_normalization(inputs, mean, variance, self.beta, self.gamma, self.epsilon)
''',
        (*_NORMALIZES, *_INITIALIZERS),
    ),
    "AveragePooling2D": Substitute(
        '''\
class AveragePooling2D(tf.keras.layers.AveragePooling2D):
    """Means of blocks that do not overlap, by operations whose gradients a mesh can divide."""

    def call(self, inputs):
        (rows, columns), (_, height, width, channels) = self.pool_size, inputs.shape
        inputs = inputs[:, : height // rows * rows, : width // columns * columns]
        blocks = tf.reshape(inputs, [-1, height // rows, rows, width // columns, columns, channels])
        return tf.reduce_mean(blocks, axis=[2, 4])
''',
        ("pool_size", "strides", "padding", "name"),
    ),
}


# Measured on TensorFlow 2.21: of two dense layers whose rows are divided over the batches' own dimension the gradient
# of a bias raises (BiasAddGrad). With whole kernels four steps are those of one device (1e-6); slots stay divided.
GATHERS = Substitute(
    '''\
class Dense(tf.keras.layers.Dense):
    """Multiplies by its whole kernel, for kernels that are divided over the dimension of the batches."""

    def whole(self, variable):
        if not hasattr(variable, "layout"):  # while the model is made
            return variable
        layout = tf.experimental.dtensor.Layout.replicated(variable.layout.mesh, rank=variable.shape.rank)
        return tf.experimental.dtensor.relayout(variable, layout)

    def call(self, inputs):
        outputs = tf.tensordot(inputs, self.whole(self.kernel), 1)
        if self.use_bias:
            outputs += self.whole(self.bias)
        return outputs if self.activation is None else self.activation(outputs)
''',
    (
        *("units", "activation", "use_bias", "kernel_initializer", "bias_initializer", "kernel_regularizer"),
        *("bias_regularizer", "activity_regularizer", "kernel_constraint", "bias_constraint", "name", "input_shape"),
    ),
)

# What fused normalizations of images take at least.
_LEAST_EPSILON = 1.001e-5


def called(functions: Iterable[cst.FunctionDef]) -> frozenset[str]:
    """The names of functions that a network is made in."""
    return frozenset(function.name.value for function in functions)


def helper_on_mesh(
    node: cst.FunctionDef,
    classes: Mapping[str, str],
    names: Collection[str],
    place: cst.CSTNode,
    functions: Collection[str],
    gathers: bool,
) -> tuple[cst.FunctionDef, dict[str, str], bool]:
    """A function that makes layers, the classes that its file needs, and whether its layers draw random numbers.

    `classes` are those that it has, `names` those of the file, `functions` others that make layers; `gathers`: kernels
    may be divided over the dimension of the batches. Raises Blocked at `place` (TFM791 to TFM793).
    """
    given = _Given(_local(node, classes), place, False, {}, _classes(node), functions, names, gathers)
    new = node.visit(given)
    assert isinstance(new, cst.FunctionDef)
    what = "Embedding" in given.needs and "an embedding"
    what = what or (given.optimizers > 0 and "an optimizer") or (given.metrics > 0 and "a metric")
    if what:
        message = f"`{node.name.value}` creates {what}: on a mesh, create it in the model_fn itself"
        raise Blocked("TFM791", place, message)
    return new, {**classes, **given.needs}, given.draws


def _bound(node: cst.FunctionDef) -> set[str]:
    """The names that a function, or one in it, gives values to that are no classes."""
    return {binding.name for binding in read_bindings(node) if binding.form is not Form.CLASS}


def _classes(node: cst.FunctionDef) -> dict[str, str]:
    """The classes in a function, each with the class that it is made of."""
    found = [one.node for one in read_bindings(node) if one.form is Form.CLASS]
    classes = [one for one in found if isinstance(one, cst.ClassDef)]
    return {one.name.value: (dotted(one.bases[0].value) or "") if len(one.bases) == 1 else "" for one in classes}


def _local(node: cst.FunctionDef, classes: Mapping[str, str]) -> set[str]:
    """The names that a function gives values to, and those of functions that are known to work on a mesh."""
    tried = {name for name, text in classes.items() if any(_named(one, name) == text for one in FUNCTIONS)}
    return {parameter.name.value for parameter in parameters_of(node)} | _bound(node) | tried


def on_mesh(
    emitted: EmittedModel,
    file: ParsedFile,
    place: cst.CSTNode,
    helpers: Mapping[str, str],
    functions: Collection[str],
    gathers: bool,
) -> EmittedModel:
    """The function with a parameter `mesh`, which optimizers and metrics are given.

    `place` is where findings are shown, `helpers` are the classes that the file gets for optimizers and their rates,
    `functions` those that make layers, `gathers` as in `helper_on_mesh`.
    Raises Blocked (TFM790 to TFM793) for what is untested on a mesh on a mesh.
    """
    node = emitted.node
    names = {parameter.name.value for parameter in parameters_of(node)}
    if MESH in names:
        raise Blocked("TFM790", place, "the model_fn has a parameter `mesh` of its own: rename it")
    layers = _Layers(file, names | _bound(node))
    walk(node, layers)
    embeds = any(matrix.table for matrix in layers.found)
    local = _local(node, emitted.classes)
    given = _Given(local, place, embeds, helpers, _classes(node), functions, file.names, gathers)
    new = node.visit(given)
    assert isinstance(new, cst.FunctionDef)
    if not given.optimizers:
        raise Blocked("TFM792", place, "the optimizer is not created in the model_fn: create it there")
    classes = {**emitted.classes, **given.needs}
    new = new.with_changes(params=with_parameter(new.params, MESH))
    # Behind a convolution a kernel that is divided by rows raises: its gradient divides what has batches only.
    found = _split(layers, emitted.made)
    matrices = tuple(matrix for matrix in found if matrix.table or not layers.images)
    known = None if layers.unknown or given.hidden else matrices
    return replace(emitted, node=new, classes=classes, matrices=known, draws=given.draws)


def _split(layers: _Layers, made: Sequence[Made] | None) -> list[Matrix]:
    """The matrices of a new function, with what is known of those of the original: which a partitioner had."""
    found = [*layers.found]
    if made is None:
        return found
    for table in (True, False):
        new = [index for index, matrix in enumerate(found) if matrix.table == table]
        old = [one for one in made if one.table == table]
        same = len(new) == len(old) and all(
            (one.name is None or layers.given[index][0] in (None, one.name))
            and (None in (one.size, layers.given[index][1]) or one.size == layers.given[index][1])
            for index, one in equal_zip(new, old)
        )
        alike = len({one.split for one in old}) == 1 and len(new) == len(old)
        for index, one in zip(new, old):
            found[index] = replace(found[index], split=one.split if same or alike else None)
    return found


_BLOCKS = (cst.If, cst.For, cst.While, cst.CompFor, cst.IfExp, cst.Lambda, cst.Try, cst.FunctionDef, cst.ClassDef)
_SAME_SIZE = ("tf.tanh", "tf.math.tanh", "tf.sigmoid", "tf.math.sigmoid", "tf.abs", "tf.math.abs")


class _Layers(cst.CSTVisitor):
    """The matrices among the weights of a function's layers, by the names that Keras gives them in their order.

    `local` are names that the function gives values to. `given` are the names and sizes (rows of a table, columns of a
    kernel) that are written out for each.
    """

    def __init__(self, file: ParsedFile, local: Collection[str]) -> None:
        super().__init__()
        self.file = file
        self.local = local
        self.images = False
        self.found: list[Matrix] = []
        self.given: list[tuple[str | None, int | None]] = []
        self.unknown = False  # whether there are layers whose names are not
        self._unnamed: Counter[str] = Counter()
        self._inside = -1  # blocks that may run several times, or not at all
        self._sizes: dict[str, int | None] = {}  # last axes of tensors, by their names
        self._made: dict[cst.CSTNode, int | None] = {}  # and of what calls make: layers, and tensors
        self._kernels: dict[cst.CSTNode, int] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._inside += isinstance(node, _BLOCKS)
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        super().on_leave(original_node)
        self._inside -= isinstance(original_node, _BLOCKS)

    def leave_AugAssign(self, original_node: cst.AugAssign) -> None:
        self._forget(original_node.target)

    def leave_AnnAssign(self, original_node: cst.AnnAssign) -> None:
        self._forget(original_node.target)

    def leave_NamedExpr(self, original_node: cst.NamedExpr) -> None:
        self._forget(original_node.target)

    def leave_For(self, original_node: cst.For) -> None:
        self._forget(original_node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._forget(node.name)

    def leave_Assign(self, original_node: cst.Assign) -> None:
        for one in original_node.targets:
            self._forget(one.target)
        target = original_node.targets[0].target
        if len(original_node.targets) == 1 and isinstance(target, cst.Name) and not self._inside:
            self._sizes[target.value] = self._size(original_node.value)

    def _forget(self, target: cst.BaseExpression) -> None:
        for name in names_in(target):
            self._sizes.pop(name, None)

    def _size(self, node: cst.BaseExpression) -> int | None:
        return self._sizes.get(node.value) if isinstance(node, cst.Name) else self._made.get(node)

    def leave_Call(self, original_node: cst.Call) -> None:
        first = original_node.args[0] if original_node.args else None
        size = None if first is None or first.keyword is not None else self._size(first.value)
        if original_node.func in self._kernels:
            index = self._kernels[original_node.func]
            self.found[index] = replace(self.found[index], rows=size)
        name = dotted(original_node.func) or ""
        if original_node.func in self._made:
            self._made[original_node] = self._made[original_node.func]
        elif name in _SAME_SIZE or name.startswith("tf.nn."):
            self._made[original_node] = size if name in OPS else None
        layer = name.removeprefix(f"{_KERAS}layers.")
        self.images = self.images or layer in IMAGE_LAYERS
        weight = _MATRICES.get(layer)
        if weight is None:
            return
        named = next((a.value for a in original_node.args if a.keyword is not None and a.keyword.value == "name"), None)
        text = None if named is None else string(named)
        self.unknown = self.unknown or (named is not None and text is None) or bool(self._inside)
        if named is None:
            number = self._unnamed[layer]
            self._unnamed[layer] += 1
            text = layer.lower() + (f"_{number}" if number else "")
        table = layer == "Embedding"
        sizes = self._arguments(original_node, ("input_dim", "output_dim") if table else ("units",))
        self._made[original_node] = self._integer(sizes[-1])
        if not table:
            self._kernels[original_node] = len(self.found)
        self.given.append((None if named is None else text, literal(sizes[0])))
        rows = self._integer(sizes[0]) if table else None
        self.found.append(Matrix(f"{text}.{weight}", table, rows, columns=self._integer(sizes[-1])))

    def _arguments(self, node: cst.Call, names: tuple[str, ...]) -> list[cst.BaseExpression | None]:
        plain = [a.value for a in node.args if a.keyword is None and not a.star]
        named = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
        return [named.get(name, plain[i] if i < len(plain) else None) for i, name in enumerate(names)]

    def _integer(self, node: cst.BaseExpression | None) -> int | None:
        if isinstance(node, cst.Name) and node.value in self.local:
            return None
        return self.file.integer(node)


def with_parameter(params: cst.Parameters, name: str) -> cst.Parameters:
    """The parameters of a function, and one more of such a name."""
    more = cst.Param(cst.Name(name))
    if params.kwonly_params or isinstance(params.star_arg, (cst.Param, cst.ParamStar)):
        return params.with_changes(kwonly_params=[*params.kwonly_params, more])
    if any(p.default is not None for p in params.params):
        return params.with_changes(star_arg=cst.ParamStar(), kwonly_params=[more])
    return params.with_changes(params=[*params.params, more])


class _Given(cst.CSTTransformer):
    """Gives optimizers and metrics the mesh, and looks at every call of a function that makes a model."""

    def __init__(
        self,
        local: Collection[str],
        place: cst.CSTNode,
        embeds: bool,
        helpers: Mapping[str, str],
        classes: Mapping[str, str],
        functions: Collection[str],
        taken: Collection[str],
        gathers: bool,
    ) -> None:
        super().__init__()
        self.layers = {**SUBSTITUTES, **({"Dense": GATHERS} if gathers else {})}
        self.local = local
        self.place = place
        self.embeds = embeds  # whether there are tables of embeddings
        self.helpers = helpers
        self.classes = classes
        self.functions = functions
        self.taken = taken  # names of the file
        self.optimizers = 0
        self.metrics = 0
        self.draws = False  # whether layers draw random numbers
        self.hidden = False  # whether layers are made in other functions
        self.needs: dict[str, str] = {}  # classes of layers
        self._schedules = 0  # classes of rates around a node

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._schedules += self.classes[node.name.value] == _SCHEDULE

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self._schedules -= self.classes[original_node.name.value] == _SCHEDULE
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = dotted(original_node.func)
        if name is None or name.partition(".")[0] in self.local:
            return updated_node
        if self.classes.get(name) in (_SCHEDULE, f"{_KERAS}Model"):
            return updated_node
        if name in self.helpers:
            return self._of_helper(name, original_node, updated_node)
        if name.startswith(f"{_KERAS}optimizers.schedules."):
            if name.rpartition(".")[2] not in SCHEDULES:
                raise Blocked("TFM792", self.place, f"`{name}` is untested on a mesh")
            return updated_node
        if name.startswith(f"{_KERAS}optimizers."):
            self._check_optimizer(name, name.removeprefix(f"{_KERAS}optimizers."), original_node)
            return _with_argument(updated_node)
        if self._schedules:
            if name not in OF_STEPS and not _is_plain(name):
                message = f"`{name}`, which computes the learning rate, is untested on a mesh"
                raise Blocked("TFM792", self.place, message)
            return updated_node
        metric = self.classes.get(name, name)
        if metric.startswith(f"{_KERAS}metrics."):
            if metric.rpartition(".")[2] in METRIC_FUNCTIONS:
                return updated_node
            if metric.rpartition(".")[2] not in METRICS:
                raise Blocked("TFM793", self.place, f"`{metric}` is untested on a mesh: leave the metric out")
            self.metrics += 1
            return _with_argument(updated_node)
        layer = name.removeprefix(f"{_KERAS}layers.")
        if layer != name and layer in self.layers:
            self._check_layer(layer, original_node)
            return updated_node.with_changes(func=cst.Name(layer))
        self._check_form(name, layer, original_node)
        self.draws = self.draws or (layer != name and layer in DRAWING)
        if not name.startswith("tf.") and name.rpartition(".")[2] in self.functions:
            self.hidden = True
            return updated_node
        if not name.startswith("tf.") and all(isinstance(one.value, _LITERALS) for one in original_node.args):
            return updated_node  # of numbers and texts: no tensor has to do with it
        if not is_known(name):
            message = f"`{name}` is untested on a mesh of devices (DTensor): choose another `--strategy`"
            raise Blocked("TFM791", self.place, message)
        return updated_node

    def _check_form(self, name: str, layer: str, node: cst.Call) -> None:
        """Refuses forms of functions and layers that have none on a mesh, though others have."""
        given = {argument.keyword.value for argument in node.args if argument.keyword is not None}
        what = None
        if "Conv" in layer and "dilation_rate" in given:
            what = "a dilated convolution"
        elif layer in DRAWING and "noise_shape" in given:
            what = "dropout with a `noise_shape`"
        elif name == "tf.where" and len(node.args) < 3:
            what = "`tf.where` with one argument"
        if what is not None:
            raise Blocked("TFM791", self.place, f"{what} is untested on a mesh: choose another `--strategy`")

    def _check_layer(self, layer: str, node: cst.Call) -> None:
        """Looks at a layer that the file gets a class for."""
        own = self.layers[layer]
        bound = check_substitute(own, layer, node, self.place, self.taken)
        epsilon = number(bound.get("epsilon"))
        if "epsilon" in bound and (epsilon is None or epsilon < _LEAST_EPSILON):
            message = "the `epsilon` of this batch normalization is too small for images, or unknown: set at least 1e-4"
            raise Blocked("TFM791", self.place, message)
        self.needs[layer] = own.text

    def _of_helper(self, name: str, node: cst.Call, updated: cst.Call) -> cst.Call:
        """A call of a class that the file gets for an optimizer, or for its rate."""
        text = self.helpers[name]
        known = next((known for tried, known in CLASSES.items() if _named(tried, name) == text), None)
        if known in SCHEDULES:
            return updated
        if self.embeds:
            message = (
                f"`{name}` updates only the rows of an embedding that are in the batch, but on a mesh "
                "gradients are dense: use GradientDescent, Adam or Adagrad, which give the same numbers"
            )
            raise Blocked("TFM792", self.place, message)
        if known is None:
            why = "uses operations that do not exist on a mesh" if "tf.raw_ops." in text else "is untested on a mesh"
            raise Blocked("TFM792", self.place, f"`{name}` {why} (DTensor): choose another `--strategy`")
        self._check_optimizer(name, known, node)
        return _with_argument(updated)

    def _check_optimizer(self, name: str, kind: str, node: cst.Call) -> None:
        self.optimizers += 1
        known = OPTIMIZERS.get(kind)
        if known is None:
            message = f"`{name}` is untested on a mesh against TensorFlow 1's formula: choose another `--strategy`"
            raise Blocked("TFM792", self.place, message)
        given = {argument.keyword.value for argument in node.args if argument.keyword is not None}
        if self.embeds and (kind not in OF_TABLES or "momentum" in given):
            message = f"with dense gradients `{name}` also changes rows of an embedding that are not in the batch"
            raise Blocked("TFM792", self.place, f"{message}: use GradientDescent, Adam or Adagrad")
        if self.embeds and given & CLIPPING:
            message = (
                "TensorFlow 1 clips the gradient of an embedding before summing duplicate rows, a mesh clips "
                "after it: remove the clipping, or choose another `--strategy`"
            )
            raise Blocked("TFM792", self.place, message)
        for argument in node.args:
            if argument.keyword is None or argument.keyword.value not in known | CLIPPING:
                text = "this argument" if argument.keyword is None else f"`{argument.keyword.value}`"
                raise Blocked("TFM792", self.place, f"{text} of `{name}` is untested on a mesh")


def check_substitute(
    own: Substitute, layer: str, node: cst.Call, place: cst.CSTNode, taken: Collection[str]
) -> dict[str, cst.BaseExpression]:
    """The arguments of a layer that a file gets a class for; `taken` are the names of the file.

    Raises Blocked (TFM791) at `place` for forms that the class does not have.
    """
    try:
        bound = bind(node, own.parameters, layer, "TFM791")
    except Blocked as problem:
        raise Blocked("TFM791", place, problem.message) from None
    if layer == "BatchNormalization" and any(argument.keyword is None for argument in node.args):
        raise Blocked("TFM791", place, "batch normalization with an explicit axis is unsupported on a mesh")
    if layer in taken:
        raise Blocked("TFM791", place, f"the program has its own `{layer}` beside that of Keras: rename it")
    size, strides = bound.get("pool_size"), bound.get("strides")
    if layer == "AveragePooling2D" and (
        (strides is not None and not (size is not None and strides.deep_equals(size)))
        or string(bound.get("padding", cst.SimpleString("'valid'"))) != "valid"
    ):
        message = "`AveragePooling2D` with overlapping or padded blocks is unsupported on a mesh"
        raise Blocked("TFM791", place, f"{message}: use `MaxPooling2D`, or another `--strategy`")
    return bound


def _named(text: str, name: str) -> str:
    return text.replace("{name}", name)


def own_class(name: str, text: str) -> str | None:
    """What a class of a file is on a mesh where the codemod wrote it: the optimizer or the schedule of Keras that it
    stands for, or "" for others that were tried there.
    """
    fused = {old: CLASSES[new] for old, new in FOR_MESHES.items()}
    kinds = {
        **CLASSES,
        **fused,
        **dict.fromkeys((*FUNCTIONS, GATHERS.text, *(one.text for one in SUBSTITUTES.values())), ""),
    }
    return next((kind for tried, kind in kinds.items() if _named(tried, name).strip() == text.strip()), None)


def for_mesh(name: str, text: str) -> str | None:
    """The text of a class that the codemod wrote for one device or its replicas as a mesh needs it; None where it is
    the same.
    """
    return next(
        (_named(new, name) for old, new in FOR_MESHES.items() if _named(old, name).strip() == text.strip()), None
    )


_LITERALS = (cst.BaseNumber, cst.SimpleString)


def is_known(name: str) -> bool:
    """Whether a function or layer was seen to be the same on a mesh, by its TensorFlow name."""
    if name in OPS or name in STATIC or name.startswith((f"{_KERAS}losses.", f"{_KERAS}regularizers.")):
        return True
    if name.startswith(f"{_KERAS}layers."):
        return name.rpartition(".")[2] in LAYERS | IMAGE_LAYERS | DRAWING
    return name.startswith(f"{_KERAS}initializers.") or _is_plain(name)


def _is_plain(name: str) -> bool:
    """Whether a function knows nothing of tensors."""
    return name.startswith(("np.", "numpy.", "math.")) or hasattr(builtins, name)


def _with_argument(node: cst.Call) -> cst.Call:
    return node.with_changes(args=add_argument(list(node.args), keyword(MESH, cst.Name(MESH))))
