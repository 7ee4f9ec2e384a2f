"""The devices of one machine as a mesh (DTensor): every tensor is one for all devices, divided or whole on each.

`Model.fit` does not train under Keras DTensor, so the steps are written out. A step computes what it would on one
device with the whole batch: nothing is averaged over replicas, because there are none.

Gradients are applied outside of the `tf.function` that computes them. Measured on TensorFlow 2.21: inside of it the
order of assigning a slot and reading it is lost. Of two dense layers on two devices the first step of gradient descent
changed one of four variables; with the gradients laid out as their variables momentum was exact and Adam 8 % off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from migrator.emit.layout import call
from migrator.targets import custom
from migrator.targets.plan import LoopShape, Target, TrainingPlan

BATCH = "batch"
UNSHARDED = "unsharded"
MODEL = "model"
#: In the place of layouts: they are chosen from what a device has room for, see `targets.sizes`.
AUTO = "auto"


class LayoutError(ValueError):
    """A mesh or a layout that cannot be, with one sentence that says why."""


@dataclass(frozen=True)
class Layouts:
    """A mesh, and how variables are divided over it.

    `dimensions` are those of the mesh beside the batch's, which gets all devices that they leave: pairs of name and
    size. `variables` are pairs of a regular expression, matched from the start of `layer.weight`, and of what each axis
    of the variable is divided over: a dimension of the mesh, or `unsharded`. `by_size` says that they are chosen from
    what a device has room for, and from nothing else.
    """

    dimensions: tuple[tuple[str, int], ...] = ()
    variables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    by_size: bool = False


def gathers(variables: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    """Whether kernels may be divided over the dimension of the batches, which their products have to have whole.

    `variables` are as in Layouts. A pattern that speaks of embeddings is not one of kernels.
    """
    return any(BATCH in axes and "embedding" not in pattern for pattern, axes in variables)


def parse(mesh: str, layouts: tuple[str, ...]) -> Layouts:
    """The layouts of a command line: `model=2` and `dense.*kernel=unsharded,model`. Raises LayoutError."""
    dimensions: list[tuple[str, int]] = []
    for text in filter(None, mesh.split(",")):
        found = re.fullmatch(r"([a-z_]\w*)=([1-9]\d*)", text)
        if found is None or found[1] in (BATCH, UNSHARDED) or any(name == found[1] for name, _ in dimensions):
            raise LayoutError(
                f"`{text}` is not a mesh dimension and its size, as in model=2; `{BATCH}` exists "
                "already, and gets the remaining devices"
            )
        dimensions.append((found[1], int(found[2])))
    if AUTO in layouts:
        if len(layouts) > 1:
            raise LayoutError(f"`{AUTO}` chooses all layouts: give no others")
        if not dimensions:
            raise LayoutError(f"`--layout {AUTO}` needs a dimension that shards variables: --mesh {MODEL}=2")
        return Layouts(tuple(dimensions), (), True)
    known = {BATCH, UNSHARDED, *(name for name, _ in dimensions)}
    variables: list[tuple[str, tuple[str, ...]]] = []
    for text in layouts:
        pattern, equal, axes = text.rpartition("=")
        divided = tuple(axes.split(","))
        if not equal or not pattern or not all(divided):
            raise LayoutError(f"`{text}` is not a layout, as in dense.*kernel={UNSHARDED},model")
        try:
            re.compile(pattern)
        except re.error as error:
            raise LayoutError(f"`{pattern}` is not a regular expression: {error}") from None
        strange = [axis for axis in divided if axis not in known]
        if strange:
            raise LayoutError(f"`{text}`: the mesh has no dimension `{strange[0]}`: add it as --mesh {strange[0]}=2")
        used = [axis for axis in divided if axis != UNSHARDED]
        if len(used) != len(set(used)):
            raise LayoutError(f"`{text}`: a mesh dimension can shard only one axis of a variable")
        if pattern in [other for other, _ in variables]:
            raise LayoutError(f"`{pattern}` has two layouts")
        variables.append((pattern, divided))
    return Layouts(tuple(dimensions), tuple(variables))


def _make_mesh(dimensions: tuple[tuple[str, int], ...], name: str, partitioner: str | None, indent: str) -> str:
    return make_mesh(dimensions, name, indent)


def make_mesh(dimensions: tuple[tuple[str, int], ...], name: str, indent: str) -> str:
    """A function beside the program that makes a mesh, as source text."""
    rest = "".join(f" // {size}" for _, size in dimensions)
    pairs = ", ".join([f'("{BATCH}", devices{rest})', *(f'("{one}", {size})' for one, size in dimensions)])
    create = call("return tf.experimental.dtensor.create_mesh", [f"[{pairs}]", "device_type=device_type"], indent, 1)
    lines = [
        f"def {name}():",
        f'{indent}"""Returns a mesh of all GPUs, or of all CPUs where there are none."""',
        f"{indent}device_type = tf.experimental.dtensor.preferred_device_type()",
        f"{indent}devices = tf.experimental.dtensor.num_local_devices(device_type)",
        indent + create,
    ]
    return "\n".join(lines) + "\n"


def _set_up(variables: tuple[tuple[str, tuple[str, ...]], ...], plan: TrainingPlan) -> list[str]:
    return set_up(variables, plan.mesh, plan.strategy_name, plan.make_strategy, plan.indent)


def set_up(
    variables: tuple[tuple[str, tuple[str, ...]], ...], mesh: str, layouts: str, make_mesh: str, indent: str
) -> list[str]:
    """The lines that make a mesh and the layouts of variables, for the names of these and of the function."""
    lines = [f"{mesh} = {make_mesh}()", f"{layouts} = tf.keras.dtensor.experimental.LayoutMap(mesh={mesh})"]
    for pattern, axes in variables:
        quoted = f'r"{pattern}"' if "\\" in pattern else f'"{pattern}"'
        divided = ", ".join(f'"{axis}"' for axis in axes)
        made = call("tf.experimental.dtensor.Layout", [f"[{divided}]", mesh], indent, 0)
        lines.append(f"{layouts}[{quoted}] = {made}")
    return lines


def check_layouts(name: str, indent: str, of_class: bool = False) -> str:
    """A function beside the program that refuses layouts of nothing, as source text.

    A model of a class of its own (`of_class`) has its variables' names from its attributes, others from its layers.
    """
    names = _NAMES_OF_ATTRIBUTES if of_class else _NAMES_OF_LAYERS
    return _CHECK_LAYOUTS.format(name=name, names=names).replace("    ", indent)


_NAMES_OF_LAYERS = """\
    names = [
        layer.name + "." + weight.name.rpartition("/")[2].partition(":")[0]
        for layer in model.layers
        for weight in layer.weights
    ]"""
_NAMES_OF_ATTRIBUTES = """\
    variables = model._flatten(predicate=lambda one: isinstance(one, tf.Variable), with_path=True)
    names = [".".join(map(str, path)) for path, _ in variables if not any(str(part)[0] == "_" for part in path)]"""
_CHECK_LAYOUTS = '''\
def {name}(model, layouts):
    """Raises ValueError where a pattern of the layouts is that of no variable of the model."""
{names}
    for pattern in layouts:
        if not any(re.match(pattern, name) for name in names):
            raise ValueError("no variable has the layout of %r: there are %s" % (pattern, ", ".join(names)))
'''


def make_variables(name: str, indent: str) -> str:
    """A function beside the program that makes the variables of a model of a class of its own, as source text."""
    return _MAKE_VARIABLES.format(name=name).replace("    ", indent)


_MAKE_VARIABLES = '''\
def {name}(model, dataset, mesh):
    """Makes the variables of a model on the mesh, for the features of a dataset."""
    dtensor = tf.experimental.dtensor

    def example(spec):
        layout = dtensor.Layout.replicated(mesh, rank=spec.shape.rank - 1)
        return dtensor.copy_to_mesh(tf.zeros(spec.shape[1:], spec.dtype), layout)

    try:
        model(tf.nest.map_structure(example, dataset.element_spec[0]))
    except (ValueError, tf.errors.InvalidArgumentError):
        # Keras made the variables for batches of what it was given (tf_keras 2.21), and then found that this is none.
        if not model.weights or not all(isinstance(weight, dtensor.DVariable) for weight in model.weights):
            raise
'''


# The slots have to be there before they are restored.
_RESTORE = "\n        model.optimizer.build(model.trainable_variables)" + custom.RESTORE

_PLACED = '''\
    def placed(self, tensor):
        """Returns a tensor with its examples divided over the dimension "batch" of the mesh."""
        dtensor = tf.experimental.dtensor
        parts = self.mesh.dim_size("batch")
        if tensor.shape[0] % parts:  # as a last batch may be: whole on every device
            return dtensor.copy_to_mesh(tensor, dtensor.Layout.replicated(self.mesh, rank=tensor.shape.rank))
        examples = tf.split(tensor, parts)
        layout = dtensor.Layout.batch_sharded(self.mesh, "batch", rank=tensor.shape.rank)
        return dtensor.pack([examples[place["batch"]] for place in self.mesh.local_device_locations()], layout)
'''
_CLASS = '''\
class {name}:
    """Trains and evaluates a model in steps that all devices of a mesh compute together."""

    def __init__(self, model, mesh{model_dir}):
        self.model = model
        self.mesh = mesh{mean_loss}{restore}

{placed}
    def batches(self, dataset):
        """Returns an iterator over the batches of a dataset, placed on the mesh."""
        return (tf.nest.map_structure(self.placed, batch) for batch in dataset)
{rounds}{loss}
    @tf.function
    def gradients(self, batch):
        features, labels = batch
        with tf.GradientTape() as tape:
            loss = {training}
        return loss, tape.gradient(loss, self.model.trainable_variables)

    def train_step(self, batch):
        loss, gradients = self.gradients(batch)
        # Not in a tf.function, which on a mesh may read the optimizer's slots before it assigns them (TensorFlow 2.21).
        self.model.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    @tf.function
    def test_step(self, batch):
        features, labels = batch
        predictions = self.model(features, training=False)
        {testing}{update}
'''
_BATCHES_CLASS = '''\
class {name}:
    """The batches of a dataset, each with its examples divided over the dimension "batch" of a mesh."""

    def __init__(self, dataset, mesh):
        self.dataset = dataset
        self.mesh = mesh

    def __iter__(self):
        return (tf.nest.map_structure(self.placed, batch) for batch in self.dataset)

{placed}'''
_MEAN_LOSS = """
        self.mean_loss = tf.keras.metrics.Mean(name="loss", mesh=mesh)"""
_ROUNDS = '''
    def rounds(self, dataset, replicas):
        """Returns an iterator over what so many replicas of an Estimator drew for a step, placed on the mesh.

        The last batches are left out where there is not one for each of them. All have to be of one size.
        """

        def merged(tensor):
            return tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], 0))

        rounds = dataset.batch(replicas, drop_remainder=True)
        return self.batches(rounds.map(lambda *parts: tf.nest.map_structure(merged, parts)))
'''
_LOSS = '''
    def loss(self, labels, predictions):
        """Returns the mean over the examples, regularization included."""{labels}
        losses = self.model.loss(labels, predictions)
        tf.debugging.assert_rank_at_least(losses, 1, "the loss has to be that of each example")
        return tf.add_n([tf.reduce_mean(losses), *self.model.losses])
'''


def training_loop(name: str, indent: str, shape: LoopShape) -> str:
    """The class beside the program, as source text; see `custom.training_loop`."""
    further = {
        "mean_loss": _MEAN_LOSS,
        "loss": _LOSS.format(labels=custom.labels_of(shape)),
        "training": "self.loss(labels, self.model(features, training=True))",
        "testing": "self.mean_loss.update_state(self.loss(labels, predictions))",
    }
    if shape.of_batch:
        further = {
            "mean_loss": "",
            "loss": "",
            "training": "self.model.compute_loss(features, labels, self.model(features, training=True))",
            "testing": "self.model.compute_loss(features, labels, predictions)",
        }
    further["rounds"] = _ROUNDS if shape.draws else ""
    further["placed"] = _PLACED
    shape = replace(shape, evaluates=True, counts=False, draws=False)
    return custom.filled(_CLASS, _RESTORE, ("train_step", "test_step"), name, indent, shape, **further)


def batches(name: str, indent: str) -> str:
    """A class beside the program that places the batches of a dataset on a mesh, as source text."""
    return _BATCHES_CLASS.format(name=name, placed=_PLACED).replace("    ", indent)


def _loop_of_model(plan: TrainingPlan) -> list[str]:
    checks = [f"{plan.check_layouts}({plan.model}, {plan.strategy_name})"] if plan.check_layouts else []
    arguments = [plan.model, plan.mesh, *([] if plan.model_dir is None else [plan.model_dir])]
    return [*checks, call(f"{plan.loop_name} = {plan.loop_class}", arguments, plan.indent, 0)]


_LOOP = replace(custom.LOOP, word="dtensor", set_up=_loop_of_model, make=training_loop)

TARGET = Target(
    "dtensor",
    loop=_LOOP,
    scope="layouts",
    helper=partial(_make_mesh, ()),
    helper_name="make_mesh",
    set_up=partial(_set_up, ()),
    mesh=True,
    fuses=False,
)


def with_layouts(target: Target, layouts: Layouts) -> Target:
    """The target with another mesh, and with variables that are divided over it."""
    return replace(
        target,
        helper=partial(_make_mesh, layouts.dimensions),
        set_up=partial(_set_up, layouts.variables),
        dimensions=layouts.dimensions,
        layouts=layouts.variables,
        by_size=layouts.by_size,
    )


def partitioned(target: Target, parts: int | None, names: Sequence[str]) -> Target | None:
    """The target with the rows of matrices divided over a dimension of the mesh, as over parameter servers.

    `names` are those of the matrices (`layer.weight`), `parts` into how many a partitioner divided them (None: that is
    not known). A mesh that has a dimension beside the batch's already divides them over that one; without one and
    without `parts` there is no such target.
    """
    if target.dimensions:
        dimensions = target.dimensions
    elif parts is None:
        return None
    else:
        dimensions = ((MODEL, parts),)
    variables = tuple((re.escape(name), (dimensions[0][0], UNSHARDED)) for name in names)
    return with_layouts(target, Layouts(dimensions, variables))


def drawing(target: Target) -> Target:
    """The target for models with layers that draw random numbers, as dropouts do."""
    return replace(target, set_up=partial(_set_up_drawing, target.set_up))


def _set_up_drawing(set_up: Callable[[TrainingPlan], list[str]], plan: TrainingPlan) -> list[str]:
    return ["tf.keras.backend.experimental.enable_tf_random_generator()  # for dropout on a mesh", *set_up(plan)]
