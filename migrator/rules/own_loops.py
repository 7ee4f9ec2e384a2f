"""Training loops of the new program's own, which `--loop custom` asks for."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import values_given
from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in, is_false, is_none, is_true
from migrator.rules.rule import Rule
from migrator.walking import walk

RULES = (
    Rule(
        "TFM735",
        "a program that a custom loop does not support",
        Severity.MANUAL,
        """
`--loop custom` writes the steps of the training out: a `GradientTape`, the loss of each example averaged over those of
all replicas, `strategy.run` in a `tf.function`. That is done for native models whose loss is that of labels
and one output, whose metrics read nothing else, and whose hooks are left out. Leave `--loop custom` out: `Model.fit`
trains the same.
""",
    ),
    Rule(
        "TFM736",
        "replicas split the batches",
        Severity.REVIEW,
        """
An Estimator without a `train_distribute` trained on one device. With `--loop custom` the replicas of `--strategy
mirrored` and the workers of `--strategy multi-worker-mirrored` divide each batch of its input function between them, so
that a step computes what it did on one device: measured with 2 and 4 replicas, losses agree to 2e-6. Every worker reads
all of the data and takes its part of each batch, so the input function has to give all of them the same. Make the
batches as many times larger as there are replicas to use these fully, and see to the learning rate.
""",
    ),
    Rule(
        "TFM737",
        "a strategy without a custom loop",
        Severity.MANUAL,
        """
Custom loops are written for one device, replicas of one machine, mirrored workers, parameter servers and TPUs. A
program that makes its parameter servers by hand trains by `Model.fit`: leave `--loop custom` out. One whose steps may
be None when it runs has to be given a number. A program that reads or writes TF_CONFIG needs the strategy of its loop
(`--strategy`).
""",
    ),
    Rule(
        "TFM742",
        "data that may end before the steps of a loop on parameter servers",
        Severity.MANUAL,
        """
With `--strategy parameter-server --loop custom` the coordinator schedules `max_steps` steps, each on a worker that is
free, which draws the next batch of its own data. An Estimator's worker whose data ended left, and the others went on;
a scheduled step that finds no batch fails. Nothing in this program repeats its data without an end (`.repeat()`,
`num_epochs=None`, and no `take` behind it): do so in the input function of the training, or leave `max_steps` out: then
each worker passes over the data once, in all as many steps as an Estimator's. `--loop fit`, the default, ends its
training with a warning there.
""",
    ),
    Rule(
        "TFM740",
        "replicas of a loop that read whole batches",
        Severity.REVIEW,
        """
Under the strategy of its RunConfig an Estimator fed one batch of the input function to every replica, and its loss was
the mean of the replicas' losses. The loop of `--loop custom` does the same by `distribute_datasets_from_function`:
measured, two workers train bit for bit like the Estimator's over 16 steps. On the replicas of one machine an evaluation
divides each batch between them, where the Estimator's ran on one device: the means over the examples are the same.
""",
    ),
    Rule(
        "TFM738",
        "batch normalization over all replicas",
        Severity.REVIEW,
        """
Where replicas divide the batches of one device, a batch normalization has to take the mean and the variance of the
whole batch, not of each replica's part: `synchronized=True` adds them up over the replicas. Measured on TensorFlow 2.21
with two replicas and batches of 8 (the last one of 5), seven steps: losses as on one device to 1e-7 (5e-6 where the
mean of the inputs is ten times their deviation), without it 32 % off. The moving variance of images is that of n
values, where one device keeps n / (n - 1) times that: 2.5e-4 for 8 images of 6 by 6, less for larger ones.
""",
    ),
    Rule(
        "TFM739",
        "a computation over all examples, which replicas split",
        Severity.MANUAL,
        """
Where replicas divide the batches of one device (`--strategy mirrored --loop custom`), each sees a part of the examples.
What a network or a loss computes over all of them (a mean, a maximum or a norm along the first axis or along all, the
number of examples, a shape with the batch size in it) would become that of the part: measured with two replicas, a
network that divides by `tf.reduce_max(tf.abs(x))` has losses 4 to 8 % off from the first step on. Train on one device
(`--strategy one-device`), or compute along the other axes. A `tf.layers.batch_normalization` is supported (TFM738).
""",
    ),
    Rule(
        "TFM741",
        "batches that differ between workers, which split them",
        Severity.MANUAL,
        """
Where workers divide the batches of one device (`--strategy multi-worker-mirrored --loop custom`), every worker calls
the input function for itself and takes its part of each batch. Where it shuffles or draws without a seed, the parts are
those of different batches: some examples of an epoch come twice, others never. Give `shuffle`, `list_files` and
`tf.random` operations a `seed`, the same in all workers, NumPy and `random` a call of their `seed` function; or the
whole program one by `RunConfig(tf_random_seed=...)` or by a `tf.set_random_seed(...)` before the Estimator is made,
which become a `tf.random.set_seed` that every worker calls (two workers on TensorFlow 2.21 then drew the same batches,
one by one). What comes in the order in which threads are done
(`sloppy=True`, `deterministic=False`) no seed makes the same: leave that out.
""",
    ),
)

# Calls that compute along axes: the position of these, and what is meant where they are not given.
_REDUCTIONS = "mean sum max min prod any all logsumexp std variance euclidean_norm"
_ALONG: dict[str, tuple[int, int | None]] = {
    **{f"tf.{space}reduce_{kind}": (1, None) for space in ("", "math.") for kind in _REDUCTIONS.split()},
    **dict.fromkeys(("tf.norm", "tf.linalg.norm"), (2, None)),
    **dict.fromkeys(("tf.nn.l2_normalize", "tf.math.l2_normalize", "tf.linalg.l2_normalize"), (1, None)),
    "tf.nn.moments": (1, None),
    **{f"tf.{space}{kind}": (1, 0) for space in ("", "math.") for kind in ("cumsum", "argmax", "argmin")},
    **dict.fromkeys(("tf.nn.softmax", "tf.nn.log_softmax", "tf.sort", "tf.argsort"), (1, -1)),
}
_AXES = ("axis", "axes", "reduction_indices", "dim", "dimension")
_ALWAYS = ("tf.unique", "tf.random_shuffle", "tf.random.shuffle")
# What is told the number of examples only to make a tensor of as many.
_MAKES_TENSORS = ("tf.reshape", "tf.zeros", "tf.ones", "tf.fill", "tf.tile", "tf.broadcast_to")

# Calls that draw: where a seed is among the arguments by position (None: nowhere).
_SHUFFLES: dict[str, int | None] = {"shuffle": 1, "shuffle_and_repeat": 2, "list_files": 2, "rejection_resample": 3}
_DRAWS: dict[str, int | None] = {
    **dict.fromkeys(("tf.data.experimental.sample_from_datasets", "tf.contrib.data.sample_from_datasets"), 2),
    **{f"tf.{space}.shuffle_and_repeat": 2 for space in ("data.experimental", "contrib.data")},
    **{f"tf.{space}.rejection_resample": 3 for space in ("data.experimental", "contrib.data")},
    "tf.data.experimental.RandomDataset": 0,
    **dict.fromkeys(("tf.truncated_normal", "tf.multinomial", "tf.nn.dropout"), None),
    "tf.image.sample_distorted_bounding_box": None,
}
# These shuffle unless they are told not to. Queues, which do so too, are refused as such.
_ARRAYS = tuple(
    f"tf.{space}.{kind}_input_fn"
    for space in ("estimator.inputs", "contrib.learn.io", "contrib.learn.python.learn.learn_io")
    for kind in ("numpy", "pandas")
)
_PLAIN = ("seed", "RandomState", "default_rng", "Random", "Generator", "SeedSequence", "get_state", "set_state")
_SETS_SEEDS = ("tf.set_random_seed", "tf.random.set_random_seed", "tf.random.set_seed")


def sets_seed(node: cst.CSTNode, imports: ImportMap) -> bool:
    """Whether a statement sets TensorFlow's seed of a program."""
    return any(imports.tensorflow(call.func) in _SETS_SEEDS for call in calls_in(node))


def seeded_modules(node: cst.CSTNode, imports: ImportMap) -> set[str]:
    """Which of `random` and `numpy.random` a file gives a seed."""
    found = [imports.resolve(call.func) or "" for call in calls_in(node) if call.args]
    return {name.rpartition(".")[0] for name in found if name in ("random.seed", "numpy.random.seed")}


def differs(node: cst.CSTNode, imports: ImportMap, seeded: Collection[str]) -> cst.Call | None:
    """The first call of an input function that gives every worker something else, as far as can be seen.

    `seeded` are the modules that the program gives a seed: `tf`, `random`, `numpy.random`.
    """
    return next((call for call in calls_in(node) if _differs(node, call, imports, seeded)), None)


def _differs(node: cst.CSTNode, call: cst.Call, imports: ImportMap, seeded: Collection[str]) -> bool:
    name = imports.resolve(call.func) or ""
    last = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    keywords = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
    if is_true(keywords.get("sloppy")) or is_false(keywords.get("deterministic")):
        return True
    module, _, function = name.rpartition(".")
    if module in ("random", "numpy.random"):
        unseeded = not call.args if function in _PLAIN[1:6] else function not in _PLAIN
        return unseeded and module not in seeded
    if "tf" in seeded or (name and not name.startswith("tf.")):
        return False
    shuffles = last == "list_files" or name in _ARRAYS
    draws = module == "tf.random" or name.startswith(("tf.random_", "tf.image.random_"))
    if draws and (function.startswith("stateless_") or name in _SETS_SEEDS):
        return False
    if not shuffles and not draws and name not in _DRAWS and (name or last not in _SHUFFLES):
        return False
    if not name and isinstance(call.func, cst.Attribute) and _is_generator(node, call.func.value, imports):
        return False
    by_position = [a.value for a in call.args if a.keyword is None]
    if shuffles:
        place = 4 if name in _ARRAYS else 1
        told = keywords.get("shuffle", by_position[place] if len(by_position) > place else None)
        if is_false(told):
            return False
    at = _DRAWS.get(name, _SHUFFLES.get(last))
    seed = keywords.get("seed", by_position[at] if at is not None and len(by_position) > at else None)
    return seed is None or is_none(seed)


def _is_generator(node: cst.CSTNode, owner: cst.BaseExpression, imports: ImportMap) -> bool:
    """Whether a method is one of a generator of NumPy's or Python's, which is looked at where it is made."""
    values = values_given(node, owner.value) if isinstance(owner, cst.Name) else [owner]
    names = [imports.resolve(value.func) or "" for value in values if isinstance(value, cst.Call)]
    return any(name.startswith(("random.", "numpy.random.")) for name in names)


def over_examples(node: cst.CSTNode, imports: ImportMap) -> cst.BaseExpression | None:
    """The first expression of a function that computes over all examples of a batch, as far as can be seen."""
    finder = _OverExamples(imports)
    walk(node, finder)
    return finder.found


class _OverExamples(cst.CSTVisitor):
    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found: cst.BaseExpression | None = None
        self._making: list[str] = []

    def visit_Call(self, node: cst.Call) -> None:
        name = self.imports.tensorflow(node.func) or ""
        self._making.append(name)
        along = name in _ALONG and _is_over_examples(node, *_ALONG[name])
        if self.found is None and (along or name in _ALWAYS or self._multiplies(name, node) or self._sizes(name, node)):
            self.found = node

    def leave_Call(self, original_node: cst.Call) -> None:
        self._making.pop()

    def visit_Subscript(self, node: cst.Subscript) -> None:
        """`tf.shape(x)[0]`, but where it makes a tensor."""
        of_shape = isinstance(node.value, cst.Call) and self.imports.tensorflow(node.value.func) == "tf.shape"
        first = len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index)
        if not of_shape or not first or any(name in _MAKES_TENSORS for name in self._making):
            return
        index = node.slice[0].slice
        assert isinstance(index, cst.Index)
        if self.found is None and isinstance(index.value, cst.Integer) and index.value.value == "0":
            self.found = node

    def _multiplies(self, name: str, node: cst.Call) -> bool:
        """Whether every example meets every other: `tf.matmul(a, b, transpose_b=True)`."""
        if name not in ("tf.matmul", "tf.linalg.matmul"):
            return False
        return any(a.keyword is not None and a.keyword.value == "transpose_b" and is_true(a.value) for a in node.args)

    def _sizes(self, name: str, node: cst.Call) -> bool:
        """Whether a tensor gets a shape with the number of examples in it."""
        if name != "tf.reshape" or len(node.args) < 2:
            return False
        shape = node.args[1].value
        if not isinstance(shape, (cst.List, cst.Tuple)) or not shape.elements:
            return False
        first = shape.elements[0].value
        return isinstance(first, (cst.Integer, cst.Name, cst.Attribute))


def _is_over_examples(node: cst.Call, position: int, default: int | None) -> bool:
    given = [a.value for a in node.args if a.keyword is not None and a.keyword.value in _AXES]
    by_position = [a for a in node.args if a.keyword is None]
    if not given and len(by_position) > position:
        given = [by_position[position].value]
    if not given:
        return default is None or default == 0
    axes = given[0].elements if isinstance(given[0], (cst.List, cst.Tuple)) else [cst.Element(given[0])]
    return is_none(given[0]) or not all(_is_another_axis(axis.value) for axis in axes)


def _is_another_axis(node: cst.BaseExpression) -> bool:
    """Whether an axis is surely not the first: a number from 1 on, or one counted from the end."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return isinstance(node.expression, cst.Integer)
    return isinstance(node, cst.Integer) and int(node.value) > 0
