"""Keras layers and models that a model_fn calls by itself, and what these calls say of the training.

In a graph of TensorFlow 1 a Keras layer trains where its call says `training=True`, and nowhere else; a Keras model
tells its layers. So a `training=` that is the test for TRAIN mode goes, and a call without one says `training=False`.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.program.calls import calls_in, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.scopes import returns_in, values_of

_LAYERS = "tf.keras.layers."
_MODELS = ("tf.keras.Sequential", "tf.keras.models.Sequential", "tf.keras.Model", "tf.keras.models.Model")
_INPUTS = ("tf.keras.Input", "tf.keras.layers.Input")
_NOISES = ("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout")
_PHASED = frozenset(f"{_LAYERS}{name}" for name in (*_NOISES, "GaussianDropout", "GaussianNoise"))


def makes_object(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether an expression is a call that makes a Keras layer or model."""
    name = file.imports.tensorflow(node.func) if isinstance(node, cst.Call) else None
    return name is not None and (name in _MODELS or (name.startswith(_LAYERS) and name not in _INPUTS))


def makes_model(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether a node is a call that makes a Keras model, to which layers may be added later."""
    return isinstance(node, cst.Call) and file.imports.tensorflow(node.func) in _MODELS


def returns_object(file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether a function returns a Keras layer or model that it makes."""
    values = [one_value((function.body,), found.value) for found in returns_in(function.body)]
    return bool(values) and all(makes_object(file, value) for value in values)


def one_value(nodes: Sequence[cst.CSTNode], node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What a name stands for that the code of `nodes` gives one value only (None: another); other nodes as they are."""
    if not isinstance(node, cst.Name):
        return node
    values = [value for inside in nodes for value in values_of(inside, node.value)]
    return values[0] if len(values) == 1 else None


def training_of(call: cst.Call) -> int | None:
    """Which argument of the call of a layer or model is its `training=`. Raises Blocked (TFM404)."""
    if len([arg for arg in call.args if arg.keyword is None]) > 1 or any(arg.star for arg in call.args):
        message = "what this Keras layer is called with, beside its input, is not given by name: write `training=`"
        raise Blocked("TFM404", call, message)
    given = [i for i, arg in enumerate(call.args) if arg.keyword is not None and arg.keyword.value == "training"]
    return given[0] if given else None


def has_phase(file: ParsedFile, nodes: Sequence[cst.CSTNode]) -> bool:
    """Whether some code makes Keras layers that do something else in training."""
    return any(file.imports.tensorflow(call.func) in _PHASED for node in nodes for call in calls_in(node))


def is_functional(file: ParsedFile, nodes: Sequence[cst.CSTNode]) -> bool:
    """Whether some code calls layers on Keras inputs: the model that it makes of them is told the phase."""
    return any(file.imports.tensorflow(call.func) in _INPUTS for node in nodes for call in calls_in(node))


def check_regularizers(file: ParsedFile, call: cst.Call) -> None:
    """Refuses a regularizer of a Keras layer, whose term only Keras adds to the loss. Raises Blocked (TFM405)."""
    if not (file.imports.tensorflow(call.func) or "").startswith(_LAYERS):
        return
    for arg in call.args:
        name = arg.keyword.value if arg.keyword is not None else ""
        if name.endswith("_regularizer") and not is_none(arg.value):
            message = (
                f"`{name}=` of a Keras layer: a model_fn had no term of it in its loss, and Keras adds it. Leave "
                "it out, or take `tf.layers`, whose terms `tf.losses.get_regularization_loss()` gives"
            )
            raise Blocked("TFM405", arg, message)
