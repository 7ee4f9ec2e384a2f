"""Keras layers and models that a model_fn calls by itself, and what these calls say of the training.

In a graph of TensorFlow 1 a Keras layer trains where its call says `training=True`, and nowhere else; a Keras model
tells its layers. So a `training=` that is the test for TRAIN mode goes, and a call without one says `training=False`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from migrator.names.bindings import values_given
from migrator.program.calls import calls_in, functions_in, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.scopes import returns_in
from migrator.walking import of_kinds, walk

_LAYERS = "tf.keras.layers."
SEQUENTIALS = ("tf.keras.Sequential", "tf.keras.models.Sequential")
FUNCTIONALS = ("tf.keras.Model", "tf.keras.models.Model")
_MODELS = (*SEQUENTIALS, *FUNCTIONALS)
INPUTS = ("tf.keras.Input", "tf.keras.layers.Input")
_NOISES = ("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout")
PHASED = frozenset(f"{_LAYERS}{name}" for name in (*_NOISES, "GaussianDropout", "GaussianNoise"))


def makes_object(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether an expression is a call that makes a Keras layer or model."""
    name = file.imports.tensorflow(node.func) if isinstance(node, cst.Call) else None
    return name is not None and (name in _MODELS or (name.startswith(_LAYERS) and name not in INPUTS))


def makes_sequential(file: ParsedFile, node: cst.CSTNode | None) -> bool:
    """Whether a node is a call that makes a Sequential, to which layers may be added later."""
    return isinstance(node, cst.Call) and file.imports.tensorflow(node.func) in SEQUENTIALS


def returns_object(file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether a function returns a Keras layer or model that it makes."""
    values = [one_value((function.body,), found.value) for found in returns_in(function.body)]
    return bool(values) and all(makes_object(file, value) for value in values)


def one_value(nodes: Sequence[cst.CSTNode], node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What a name stands for that the code of `nodes` gives one value only (None: another); other nodes as they are."""
    if not isinstance(node, cst.Name):
        return node
    values = [value for inside in nodes for value in values_given(inside, node.value)]
    return values[0] if len(values) == 1 else None


def training_of(call: cst.Call) -> int | None:
    """Which argument of the call of a layer or model is its `training=`. Raises Blocked (TFM404)."""
    if len([arg for arg in call.args if arg.keyword is None]) > 1 or any(arg.star for arg in call.args):
        message = "this Keras layer is called with another positional argument than its input: write `training=`"
        raise Blocked("TFM404", call, message)
    given = [i for i, arg in enumerate(call.args) if arg.keyword is not None and arg.keyword.value == "training"]
    return given[0] if given else None


class _Symbols(cst.CSTVisitor):
    def __init__(self, file: ParsedFile, apart: Collection[cst.CSTNode]) -> None:
        super().__init__()
        self.file = file
        self.apart = apart
        self.found: list[tuple[cst.BaseExpression, str]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.apart and super().on_visit(node)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = self.file.imports.tensorflow(node)
        if name is not None:
            self.found.append((node, name))
        else:
            walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        name = self.file.imports.tensorflow(node)
        if name is not None:
            self.found.append((node, name))


def mentions(
    file: ParsedFile, node: cst.CSTNode, names: Collection[str], apart: Collection[cst.CSTNode] = ()
) -> list[cst.BaseExpression]:
    """Where some code, but what stands `apart` in it, means one of some symbols of TensorFlow."""
    finder = _Symbols(file, frozenset(apart))
    walk(node, finder)
    return [found for found, name in finder.found if name in names]


def has_phase(file: ParsedFile, nodes: Sequence[cst.CSTNode]) -> bool:
    """Whether some code makes Keras layers that do something else in training."""
    return any(mentions(file, node, PHASED) for node in nodes)


def check_terms(file: ParsedFile, node: cst.CSTNode) -> None:
    """Refuses all in some code by which a Keras layer has terms that only Keras adds. Raises Blocked (TFM405)."""
    for call in calls_in(node):
        check_regularizers(file, call)
    targets = [one.target for one in of_kinds(node, cst.AssignTarget)]
    changes = [one for one in targets if isinstance(one, cst.Attribute) and one.attr.value.endswith("_regularizer")]
    called = [call.func for call in calls_in(node)]
    changes += [one for one in called if isinstance(one, cst.Attribute) and one.attr.value == "add_loss"]
    for found in changes:
        defined = any(function.name.value == found.attr.value for function in functions_in(file.module))
        own = isinstance(found.value, cst.Name) and found.value.value == "self" and found.attr.value != "add_loss"
        if file.imports.tensorflow(found) is None and not own and not defined:
            raise _term(found, f"`{found.attr.value}` of a Keras layer")


def _term(node: cst.CSTNode, what: str) -> Blocked:
    message = (
        f"{what} is not added to the loss by a model_fn, but Keras adds it: remove it, or use "
        "`tf.layers`, whose terms `tf.losses.get_regularization_loss()` returns"
    )
    return Blocked("TFM405", node, message)


# Where the regularizers begin in the arguments of a layer that are given by place.
_REGULARIZERS_AT = {f"{_LAYERS}Dense": 5, f"{_LAYERS}Embedding": 3}


def check_regularizers(file: ParsedFile, call: cst.Call) -> None:
    """Refuses a regularizer of a Keras layer, whose term only Keras adds to the loss. Raises Blocked (TFM405)."""
    name = file.imports.tensorflow(call.func) or ""
    given = [file.imports.tensorflow(arg.value) or "" for arg in call.args]
    if f"{_LAYERS}ActivityRegularization" in (name, *given):
        raise _term(call, "`ActivityRegularization`")
    if not any(one.startswith(_LAYERS) for one in (name, *given)):
        return
    for index, arg in enumerate(call.args):
        keyword = arg.keyword.value if arg.keyword is not None else ""
        if arg.star == "**" or (arg.star and name.startswith(_LAYERS)):
            message = (
                "the arguments of this Keras layer cannot be resolved (`*`, `**`), and may be a regularizer: write them"
            )
            raise Blocked("TFM405", arg, f"{message} out")
        if keyword.endswith("_regularizer") and not is_none(arg.value):
            raise _term(arg, f"`{keyword}=` of a Keras layer")
        if not keyword and index >= _REGULARIZERS_AT.get(name, 99) and not is_none(arg.value):
            raise Blocked("TFM405", arg, "an argument of a Keras layer that may be a regularizer: pass it by keyword")
