"""Models of TensorFlow 2 programs, looked at for a mesh of devices: their layers, functions and classes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.emit.mesh import GATHERS, SUBSTITUTES, Substitute, check_substitute, is_known, own_class
from migrator.names.imports import dotted
from migrator.pairing import equal_zip
from migrator.program.calls import calls_in, is_true, string
from migrator.program.modern import ModernFile, keyword
from migrator.program.parsed import Blocked
from migrator.rules.mesh import ACTIVATIONS, DRAWING, IMAGE_LAYERS, LAYERS

CODE, KEPT = "TFM791", "TFM799"
_KERAS = "tf.keras."
_INPUTS = ("Input", "InputLayer")
_MODELS = (f"{_KERAS}Model", f"{_KERAS}models.Model")
_LAYER = f"{_KERAS}layers.Layer"
#: What a class of a model or of a layer may define: its steps are those of the program, or of the loop for `fit`.
_METHODS = frozenset(("__init__", "call", "get_config", "from_config"))
_MADE_OUTSIDE = (
    f"{_KERAS}applications.",
    f"{_KERAS}models.load_model",
    f"{_KERAS}models.clone_model",
    "tf.saved_model.",
)
_IN_STEPS = frozenset(
    (
        *("tf.GradientTape", "tf.function", "tf.print", "tf.name_scope", "tf.nn.compute_average_loss"),
        "tf.nn.scale_regularization_loss",
    )
)
# Where each replica adds rows of a table up, Keras' optimizers do to all rows what a dense gradient does: those of
# TensorFlow 1 left the rows alone that a batch does not use.
_EMBEDDING = '''\
class Embedding(tf.keras.layers.Embedding):
    """Looks rows up by a matrix product, which a mesh can divide, and whose gradient is dense."""

    def call(self, inputs):
        return tf.matmul(tf.one_hot(tf.cast(inputs, tf.int64), self.input_dim), self.embeddings)
'''
_NORMALIZATION = '''\
class BatchNormalization(tf.keras.layers.BatchNormalization):
    """Normalizes by operations that a mesh can divide, over the whole batch."""

    def call(self, inputs, training=None):
        mean, variance = self.moving_mean, self.moving_variance
        if training and self.trainable:
            mean, variance = tf.nn.moments(inputs, list(range(len(inputs.shape) - 1)))
            self.moving_mean.assign(self.momentum * self.moving_mean + (1.0 - self.momentum) * mean)
            self.moving_variance.assign(self.momentum * self.moving_variance + (1.0 - self.momentum) * variance)
        return tf.nn.batch_normalization(inputs, mean, variance, self.beta, self.gamma, self.epsilon)
'''
_NORMALIZES = SUBSTITUTES["BatchNormalization"].parameters
#: Classes that a file gets, by what Keras calls the layers.
_SUBSTITUTES = {
    "Embedding": (
        "Embedding",
        Substitute(
            _EMBEDDING,
            ("input_dim", "output_dim", "embeddings_initializer", "embeddings_regularizer", "input_length", "name"),
        ),
    ),
    "BatchNormalization": ("BatchNormalization", Substitute(_NORMALIZATION, (*_NORMALIZES, "synchronized"))),
    "experimental.SyncBatchNormalization": ("BatchNormalization", Substitute(_NORMALIZATION, _NORMALIZES)),
    "AveragePooling2D": ("AveragePooling2D", SUBSTITUTES["AveragePooling2D"]),
}


@dataclass(frozen=True)
class Models:
    """What the models of a file are made of.

    - `replaced`: calls of Keras' layers, and the classes that they become; `classes` are those as source text
    - `draws`: whether layers draw random numbers
    - `embeds`: whether there are tables of embeddings
    - `own`: classes of models, by name
    """

    replaced: dict[cst.Call, str]
    classes: dict[str, str]
    draws: bool
    embeds: bool
    own: Collection[str]


def read(
    file: ModernFile,
    calls: Sequence[cst.Call],
    attributes: Sequence[cst.Attribute],
    classes: Sequence[cst.ClassDef],
    place: cst.Call,
    gathers: bool,
) -> Models:
    """The models that calls of a file make; `gathers`: kernels may be divided over the dimension of the batches.

    Raises Blocked for what was not tried on a mesh.
    """
    substitutes = {**_SUBSTITUTES, **({"Dense": ("Dense", GATHERS)} if gathers else {})}
    replaced: dict[cst.Call, str] = {}
    texts: dict[str, str] = {}
    names = [file.name(call.func) or "" for call in calls]
    for call, name in equal_zip(calls, names):
        if name.startswith(_MADE_OUTSIDE):
            message = f"`{name}` creates a model without the layouts of the mesh: build it from layers here"
            raise Blocked(KEPT, call, message)
        layer = name.removeprefix(f"{_KERAS}layers.")
        if layer == name:
            continue
        if layer in substitutes:
            kind, substitute = substitutes[layer]
            replaced[call], texts[kind] = kind, substitute.text
            _check_substitute(file, layer, call, kind, substitute)
            if layer == "Dense":
                _check(call, layer)
        else:
            _check(call, layer)
    if not any(name.startswith(f"{_KERAS}layers.") for name in names):
        message = "the layers of the model are created in another file, unsupported on a mesh: create them here"
        raise Blocked(KEPT, place, message)
    for attribute in attributes:
        name = file.name(attribute) or ""
        if name.startswith("tf.nn.") and name.count(".") == 2 and not is_known(name) and name not in _IN_STEPS:
            raise Blocked(CODE, attribute, f"`{name}` is untested on a mesh: keep the MirroredStrategy")
    called = {dotted(call.func) for call in calls}
    own = {one.name.value for one in classes if _is_model(file, one) and one.name.value in called}
    draws = any(name.removeprefix(f"{_KERAS}layers.") in DRAWING for name in names)
    return Models(replaced, texts, draws, "Embedding" in texts, own)


def check_step(file: ModernFile, step: cst.FunctionDef) -> None:
    """Raises Blocked (TFM791) for functions of TensorFlow in a step that were not tried on a mesh."""
    for call in calls_in(step.body):
        name = file.name(call.func)
        if name is not None and name not in _IN_STEPS and not is_known(name):
            raise Blocked(CODE, call, f"`{name}` is untested on a mesh: keep the MirroredStrategy")


def text_of(file: ModernFile, node: cst.ClassDef) -> str:
    """A class as source text."""
    return file.parsed.module.code_for_node(node.with_changes(leading_lines=[]))


def _check_substitute(file: ModernFile, layer: str, call: cst.Call, name: str, own: Substitute) -> None:
    """Raises Blocked for forms of a layer that the class in its place does not have."""
    bound = check_substitute(own, name, call, call, file.parsed.names)
    if layer == "BatchNormalization" and not is_true(bound.get("synchronized")):
        message = (
            "each replica normalizes its share of a batch, a mesh the whole batch: check whether "
            "`BatchNormalization(synchronized=True)`, which is the same on both, trains well enough"
        )
        raise Blocked(CODE, call, message)


def _check(call: cst.Call, layer: str) -> None:
    if layer not in LAYERS | IMAGE_LAYERS | DRAWING | set(_INPUTS):
        message = f"`{layer}` is untested or different on a mesh: keep the MirroredStrategy"
        raise Blocked(CODE, call, message)
    given = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    if given & {"dilation_rate", "noise_shape", "groups"}:
        raise Blocked(CODE, call, f"this form of `{layer}` is untested on a mesh: keep the MirroredStrategy")
    activation = keyword(call, "activation")
    for one in (activation, call.args[0] if layer == "Activation" and call.args else None):
        word = None if one is None else string(one.value)
        if word is not None and word not in (*ACTIVATIONS, "linear"):
            message = f"the activation `{word}` is untested on a mesh: keep the MirroredStrategy"
            raise Blocked(CODE, call, message)


def _is_model(file: ModernFile, node: cst.ClassDef) -> bool:
    """Whether a class is that of a model. Raises Blocked for classes of Keras that a mesh does not take."""
    bases = [file.name(base.value) or "" for base in node.bases]
    if not any(base.startswith(_KERAS) for base in bases):
        return False
    if own_class(node.name.value, text_of(file, node)) is not None:
        return False
    name = node.name.value
    if len(bases) != 1 or bases[0] not in (*_MODELS, _LAYER):
        message = (
            f"`{name}` subclasses a Keras class unsupported on a mesh, which supports models "
            "(`tf.keras.Model`) and layers (`tf.keras.layers.Layer`) only: keep the MirroredStrategy"
        )
        raise Blocked(KEPT, node, message)
    for line in node.body.body:
        if isinstance(line, cst.FunctionDef) and line.name.value not in _METHODS:
            message = f"`{name}.{line.name.value}` is untested on a mesh: give the class `__init__` and `call` only"
            raise Blocked(KEPT, line, message)
        if isinstance(line, cst.FunctionDef) and line.name.value == "call":
            check_step(file, line)
            for call in calls_in(line.body):
                if (dotted(call.func) or "").rpartition(".")[2] in ("add_loss", "add_metric", "add_weight"):
                    message = f"`{dotted(call.func)}` is untested on a mesh: leave it out"
                    raise Blocked(KEPT, call, message)
    return bases[0] in _MODELS
