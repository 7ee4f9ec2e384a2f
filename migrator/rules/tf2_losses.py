"""The reduction of Keras losses that Keras 3 does not know."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import string
from migrator.program.modern import Change, ModernFile, is_edit_of
from migrator.rules.rule import Example, Rule

RULES = (
    Rule(
        "TFM744",
        "the AUTO reduction of Keras losses",
        Severity.MIGRATED,
        """
`reduction=tf.keras.losses.Reduction.AUTO` (`"auto"`) is the sum over the examples divided by their number, which is
what `SUM_OVER_BATCH_SIZE` is on Keras 2 and on Keras 3; in a custom loop under a strategy Keras 2 refuses both. Keras 3
raises ValueError for `"auto"` ("Invalid value for argument `reduction`"). A file that compares with `AUTO` gets Keras
2.
""",
        (
            Example(
                "tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.AUTO)",
                "tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.SUM_OVER_BATCH_SIZE)",
            ),
            Example(
                'tf.keras.losses.Huber(reduction="auto")', 'tf.keras.losses.Huber(reduction="sum_over_batch_size")'
            ),
        ),
    ),
)

_AUTO = ("tf.keras.losses.Reduction.AUTO", "tf.losses.Reduction.AUTO")
_LOSSES = ("tf.keras.losses.", "tf.losses.")
_MESSAGE = "the reduction AUTO is now SUM_OVER_BATCH_SIZE"


def check_reductions(file: ModernFile) -> Iterable[Change]:
    """`AUTO`, as a name and as a text."""
    for node in file.attributes:
        if file.name(node) not in _AUTO:
            continue
        around = file.parsed.parents.get(node)
        if isinstance(around, (cst.Comparison, cst.ComparisonTarget, cst.Element)):
            yield Change("TFM712", node, "Keras 3 losses have no AUTO reduction", keras_2=True)
        else:
            yield Change("TFM744", node.attr, _MESSAGE, lambda _: cst.Name("SUM_OVER_BATCH_SIZE"))
    for call in file.calls:
        for arg in call.args:
            if arg.keyword is None or arg.keyword.value != "reduction" or string(arg.value) != "auto":
                continue
            if (file.name(call.func) or "").startswith(_LOSSES) or _of_base(call):
                yield Change("TFM744", arg.value, _MESSAGE, _text)


def _of_base(call: cst.Call) -> bool:
    """`super().__init__(...)`, whose `reduction` is that of a loss."""
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__"


def _text(node: cst.CSTNode) -> cst.CSTNode:
    old = is_edit_of(node, cst.SimpleString)
    return old.with_changes(value=f"{old.prefix}{old.quote}sum_over_batch_size{old.quote}")


CHECKS = (check_reductions,)
