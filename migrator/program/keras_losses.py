"""Loss objects of Keras that a model_fn calls, as the functions that they call.

`tf.keras.losses.MeanSquaredError()(labels, logits)` of TensorFlow 1.15.5 is the mean of the function over what it is
given: labels of [b] and outputs of [b, 1] are compared as a table of [b, b]. The classes of TensorFlow 2 make columns
of both first, and refuse to be called under a strategy; the functions do neither (measured in 1.15.5 and 2.21).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import bind, is_none, string
from migrator.program.parsed import Blocked

_MODULE = "tf.keras.losses."
_END = ("reduction", "name")
# class -> (function, parameters of the class)
_FUNCTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "MeanSquaredError": ("mean_squared_error", _END),
    "MeanAbsoluteError": ("mean_absolute_error", _END),
    "MeanAbsolutePercentageError": ("mean_absolute_percentage_error", _END),
    "MeanSquaredLogarithmicError": ("mean_squared_logarithmic_error", _END),
    "BinaryCrossentropy": ("binary_crossentropy", ("from_logits", "label_smoothing", *_END)),
    "Hinge": ("hinge", _END),
    "SquaredHinge": ("squared_hinge", _END),
    "Poisson": ("poisson", _END),
}
# A sum is not among them: TensorFlow 1 notes that replicas add up what such an object gives.
_REDUCTIONS = {"AUTO": "reduce_mean", "SUM_OVER_BATCH_SIZE": "reduce_mean", "NONE": None}


def as_function(
    call: cst.Call, value_of: Callable[[cst.Name], cst.BaseExpression | None], imports: ImportMap
) -> cst.BaseExpression | None:
    """What the call of a loss object of Keras computes, by functions; None where it is another call, or not known.

    `value_of` gives what a name stands for.
    """
    made = value_of(call.func) if isinstance(call.func, cst.Name) else call.func
    symbol = imports.tensorflow(made.func) if isinstance(made, cst.Call) else None
    known = _FUNCTIONS.get((symbol or "").removeprefix(_MODULE))
    head = _root(made.func) if isinstance(made, cst.Call) else None
    if not isinstance(made, cst.Call) or symbol is None or not symbol.startswith(_MODULE) or known is None:
        return None
    # In TensorFlow 2 the object would make columns of labels and outputs.
    if imports.resolve(head) != "tf" or head is None or imports.may_be_two(made.func) or imports.is_compat(made.func):
        return None
    function, parameters = known
    try:
        given = bind(made, parameters, symbol, "TFM301")
        compared = bind(call, ("y_true", "y_pred", "sample_weight"), symbol, "TFM301")
    except Blocked:
        return None
    labels, outputs = compared.get("y_true"), compared.get("y_pred")
    reduction = given.pop("reduction", None)
    word = "AUTO"
    if reduction is not None and not is_none(reduction):
        word = (string(reduction) or (imports.resolve(reduction) or "").rpartition(".")[2]).upper()
    weighted = not is_none(compared.get("sample_weight")) and "sample_weight" in compared
    if labels is None or outputs is None or weighted or word not in _REDUCTIONS:
        return None
    given.pop("name", None)
    further = [cst.Arg(value, cst.Name(key), equal=_EQUAL) for key, value in given.items()]
    module = f"{head.value}.keras.losses"
    new = cst.Call(cst.parse_expression(f"{module}.{function}"), [cst.Arg(labels), cst.Arg(outputs), *further])
    reduce = _REDUCTIONS[word]
    return new if reduce is None else cst.Call(cst.parse_expression(f"{head.value}.{reduce}"), [cst.Arg(new)])


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _root(node: cst.BaseExpression) -> cst.Name | None:
    """The first name of a dotted one."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return node if isinstance(node, cst.Name) else None


__all__ = ["as_function"]
