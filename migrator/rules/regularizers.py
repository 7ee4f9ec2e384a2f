"""Regularizers: they count only where the loss collects them."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import number
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, expression

RULES = (
    Rule(
        "TFM206",
        "regularizers that never reached the loss",
        Severity.REVIEW,
        """
TensorFlow 1 collects the terms of `kernel_regularizer=` and leaves it to the model_fn to add them
(`tf.losses.get_regularization_loss()` or `get_total_loss()`). Keras always adds them. Where the model_fn never did,
the argument is left out, so that the loss stays what it was: keeping it moved the weights by 16 % in 60 steps
(measured).
""",
    ),
    Rule(
        "TFM207",
        "regularizers become Keras regularizers",
        Severity.MIGRATED,
        """
`tf.contrib.layers.l2_regularizer(s)` is s·Σw²/2, Keras' `L2(s)` is s·Σw²: the factor is halved. With the factor kept
the loss is 9 % off after 60 steps (measured). `tf.keras.regularizers.l2(s)` means the same in both.
""",
        (
            Example("tf.contrib.layers.l2_regularizer(0.01)", "tf.keras.regularizers.L2(0.005)"),
            Example("tf.contrib.layers.l2_regularizer(scale=params.l2)", "tf.keras.regularizers.L2(params.l2 / 2)"),
            Example("tf.contrib.layers.l1_regularizer(0.01)", "tf.keras.regularizers.L1(0.01)"),
            Example("tf.contrib.layers.l1_l2_regularizer(0.1, 0.2)", "tf.keras.regularizers.L1L2(l1=0.1, l2=0.1)"),
        ),
    ),
)


def _l2(site: Site) -> cst.BaseExpression:
    scale = site.arguments(("scale", "scope"), "TFM207")["scale"]
    value = number(scale)
    text = repr(value / 2) if value is not None else f"{site.code(scale)} / 2"
    return expression(f"tf.keras.regularizers.L2({text})")


def _l1(site: Site) -> cst.BaseExpression:
    scale = site.arguments(("scale", "scope"), "TFM207")["scale"]
    return expression(f"tf.keras.regularizers.L1({site.code(scale)})")


def _l1_l2(site: Site) -> cst.BaseExpression:
    bound = site.arguments(("scale_l1", "scale_l2", "scope"), "TFM207")
    first = site.code(bound["scale_l1"]) if "scale_l1" in bound else "1.0"
    second = bound.get("scale_l2", cst.Float("1.0"))
    value = number(second)
    half = repr(value / 2) if value is not None else f"{site.code(second)} / 2"
    return expression(f"tf.keras.regularizers.L1L2(l1={first}, l2={half})")


CALLS: dict[str, CallRule] = {
    f"tf.contrib.{module}.{name}": rule
    for module in ("layers", "slim")
    for name, rule in (("l2_regularizer", _l2), ("l1_regularizer", _l1), ("l1_l2_regularizer", _l1_l2))
}
