"""Labels on their way to a Keras loss or metric.

Keras 2 hands labels of one number per example over as a column when the model's output has two axes
(`match_dtype_and_rank` in keras/engine/compile_utils.py), and its losses cast and squeeze labels by themselves. So a
model_fn's `tf.expand_dims(labels, 1)` or `tf.cast(labels, tf.int32)` is not needed any more, and `tf.one_hot(labels)`
must be given the labels without their column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in, is_none, number
from migrator.program.parsed import Blocked
from migrator.rules.rule import Rule
from migrator.walking import of_kinds

RULES = (
    Rule(
        "TFM306",
        "a hand-written loss sees the labels as a column",
        Severity.REVIEW,
        """
Keras makes labels of one number per example a column when the model's output has two axes. A hand-written loss over
labels `[b]` and output `[b, 1]` computed a `[b, b]` table in TensorFlow 1 (rarely what was meant). Where `fit` trains
and the output is a column, or may be one, the loss is computed by a method of the model, which gets the labels as they
are: the table stays. With `--loop custom` it compares example by example; where both had the same shape, nothing
changes. Beside an output of several columns the column of labels is reported. A
`sparse_softmax_cross_entropy_with_logits` of the labels and the output itself is not: it wants one axis less of the
labels, and is given them without the column.
""",
    ),
    Rule(
        "TFM307",
        "one-hot labels become a sparse loss",
        Severity.REVIEW,
        """
A softmax cross entropy of `tf.one_hot(labels, n)` becomes the sparse cross entropy of the labels, which is the same
number. Labels out of range differ: `tf.one_hot` gives a row of zeros (a loss of 0 for that example), the sparse loss an
error.
""",
    ),
)

_INTEGERS = ("tf.int32", "tf.int64", "tf.uint8")
_FLOATS = ("tf.float32",)
_RANK = (
    "tf.one_hot",
    "tf.expand_dims",
    "tf.squeeze",
    "tf.argmax",
    "tf.gather",
    "tf.stack",
    "tf.concat",
    "tf.tile",
    "tf.transpose",
    "tf.where",  # that of TensorFlow 1 chooses rows by a vector
    "newaxis",
)


@dataclass(frozen=True)
class Output:
    """What is asked of the output that labels are compared with: whether it is a column, so that a second axis that
    the labels are given is their last, and whether it has one row for each example, so that a reshape of the labels
    that leaves one entry for each does nothing.
    """

    is_column: Callable[[], bool]
    keeps_examples: Callable[[], bool]


def plain(
    node: cst.BaseExpression,
    keras: str,
    arguments: tuple[str, ...],
    imports: ImportMap,
    output: Output,
) -> tuple[str, cst.BaseExpression]:
    """The labels without what the Keras loss or metric `keras` does by itself, and the loss for what is left.

    A categorical cross entropy of one-hot labels becomes a sparse one of the labels.
    """
    sparse = keras == "SparseCategoricalCrossentropy"
    while True:
        if isinstance(node, cst.Subscript) and _is_new_last_axis(node, output.is_column):
            node = node.value
            continue
        if not isinstance(node, cst.Call) or not node.args:
            break
        name = imports.resolve(node.func)
        first = node.args[0].value
        rest = [arg.value for arg in node.args[1:]]
        if sparse and name in ("tf.argmax", "tf.math.argmax") and _is_one_hot(first, imports):
            assert isinstance(first, cst.Call)
            node = first.args[0].value
        elif (
            (name == "tf.expand_dims" and len(rest) == 1 and _is_last(number(rest[0]), output.is_column))
            or (
                name == "tf.reshape"
                and len(rest) == 1
                and _shape(rest[0]) in (("-1,1", "-1") if sparse else ("-1,1",))
                and output.keeps_examples()
            )
            or (sparse and name in ("tf.squeeze", "tf.to_int32", "tf.to_int64"))
            or (name == "tf.cast" and len(rest) == 1 and imports.resolve(rest[0]) in (_INTEGERS if sparse else _FLOATS))
            or (name == "tf.to_float" and not sparse)
        ):
            node = first
        elif (
            name == "tf.one_hot"
            and keras == "CategoricalCrossentropy"
            and len(rest) == 1
            and arguments == ("from_logits=True",)
        ):
            node, keras, sparse = first, "SparseCategoricalCrossentropy", True
        else:
            break
    return keras, node


def _is_one_hot(node: cst.BaseExpression, imports: ImportMap) -> bool:
    return isinstance(node, cst.Call) and imports.resolve(node.func) == "tf.one_hot" and bool(node.args)


def _is_new_axis(index: cst.BaseSlice) -> bool:
    """`None` or `tf.newaxis` in brackets."""
    if not isinstance(index, cst.Index):
        return False
    value = index.value
    return is_none(value) or (isinstance(value, cst.Attribute) and value.attr.value == "newaxis")


def _is_last(axis: float | None, columns: Callable[[], bool]) -> bool:
    """Whether a new axis of the labels is their last."""
    return axis == -1.0 or (axis == 1.0 and columns())


def _is_new_last_axis(node: cst.Subscript, columns: Callable[[], bool]) -> bool:
    """`x[..., tf.newaxis]`, or `x[:, None]` of labels that are compared with a column."""
    if len(node.slice) != 2 or not _is_new_axis(node.slice[1].slice):
        return False
    first = node.slice[0].slice
    if isinstance(first, cst.Slice):
        return first.lower is first.upper is first.step is None and columns()
    return isinstance(first, cst.Index) and isinstance(first.value, cst.Ellipsis)


def _shape(node: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(node).strip("[]() ").replace(" ", "")


def changes_rank(node: cst.BaseExpression, imports: ImportMap) -> bool:
    """Whether an expression holds an operation that changes the number of axes."""
    return any(name in _RANK for name in _operations(node, imports))


def needs_flat_labels(node: cst.BaseExpression, label: str, imports: ImportMap) -> bool:
    """Whether a loss takes one-hot rows of the labels, which must not be a column then.

    Raises Blocked (TFM301) for any other change of the number of axes.
    """
    changing = [name for name in _operations(node, imports) if name in _RANK]
    if any(name != "tf.one_hot" for name in changing):
        raise Blocked("TFM301", node, "the loss reshapes the labels in a way that Keras would not see")
    return bool(changing)


def reads_classes(node: cst.BaseExpression, label: str, output: str, imports: ImportMap) -> bool:
    """Whether a loss takes the sparse cross entropy of the labels and the output, each with the axes it came with.

    TensorFlow 1 refuses labels there that have not one axis less than the output: others are a column of Keras'.
    """
    for call in calls_in(node):
        if imports.resolve(call.func) != "tf.nn.sparse_softmax_cross_entropy_with_logits":
            continue
        given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        subjects = (given.get("labels"), label), (given.get("logits"), output)
        if all(value is not None and _keeps_axes(value, name, imports) for value, name in subjects):
            return True
    return False


def _keeps_axes(node: cst.BaseExpression, name: str, imports: ImportMap) -> bool:
    """Whether an expression surely has the axes of the tensor `name`."""
    if isinstance(node, cst.BinaryOperation):
        if number(node.right) is not None:
            return _keeps_axes(node.left, name, imports)
        return number(node.left) is not None and _keeps_axes(node.right, name, imports)
    if isinstance(node, cst.Call) and node.args:
        casts = ("tf.cast", "tf.to_int32", "tf.to_int64", "tf.to_float", "tf.identity", "tf.stop_gradient")
        return imports.resolve(node.func) in casts and _keeps_axes(node.args[0].value, name, imports)
    return isinstance(node, cst.Name) and node.value == name


def _operations(node: cst.CSTNode, imports: ImportMap) -> list[str]:
    """What is called below a node, and `newaxis` for each axis that an index makes."""
    found: list[str] = []
    for one in of_kinds(node, cst.Call, cst.Subscript):
        if isinstance(one, cst.Call):
            found.append(imports.resolve(one.func) or "")
        else:
            found += ["newaxis" for element in one.slice if _is_new_axis(element.slice)]
    return found
