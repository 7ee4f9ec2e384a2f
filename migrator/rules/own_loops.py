"""Training loops of the new program's own, which `--loop custom` asks for."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import is_none, is_true
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM735",
        "a program that a loop of its own is not written for",
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
        "replicas divide the batches",
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
        "a strategy without a loop of its own",
        Severity.MANUAL,
        """
Loops of the program's own are written for one device, replicas of one machine, mirrored workers and TPUs. Programs on
parameter servers train by `Model.fit`: leave `--loop custom` out. A program that reads or writes TF_CONFIG has to be
told the strategy of its loop (`--strategy`).
""",
    ),
    Rule(
        "TFM740",
        "replicas of a loop that draw whole batches",
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
        "a computation over all examples, which replicas divide",
        Severity.MANUAL,
        """
Where replicas divide the batches of one device (`--strategy mirrored --loop custom`), each sees a part of the examples.
What a network or a loss computes over all of them (a mean, a maximum or a norm along the first axis or along all, the
number of examples, a shape with the batch size in it) would become that of the part: measured with two replicas, a
network that divides by `tf.reduce_max(tf.abs(x))` has losses 4 to 8 % off from the first step on. Train on one device
(`--strategy one-device`), or compute along the other axes. A `tf.layers.batch_normalization` is carried over (TFM738).
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


def over_examples(node: cst.CSTNode, imports: ImportMap) -> cst.BaseExpression | None:
    """The first expression of a function that computes over all examples of a batch, as far as can be seen."""
    finder = _OverExamples(imports)
    node.visit(finder)
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
        if not isinstance(shape, cst.List | cst.Tuple) or not shape.elements:
            return False
        first = shape.elements[0].value
        return isinstance(first, cst.Integer | cst.Name | cst.Attribute)


def _is_over_examples(node: cst.Call, position: int, default: int | None) -> bool:
    given = [a.value for a in node.args if a.keyword is not None and a.keyword.value in _AXES]
    by_position = [a for a in node.args if a.keyword is None]
    if not given and len(by_position) > position:
        given = [by_position[position].value]
    if not given:
        return default is None or default == 0
    axes = given[0].elements if isinstance(given[0], cst.List | cst.Tuple) else [cst.Element(given[0])]
    return is_none(given[0]) or not all(_is_another_axis(axis.value) for axis in axes)


def _is_another_axis(node: cst.BaseExpression) -> bool:
    """Whether an axis is surely not the first: a number from 1 on, or one counted from the end."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return isinstance(node.expression, cst.Integer)
    return isinstance(node, cst.Integer) and int(node.value) > 0
