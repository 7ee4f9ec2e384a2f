"""Keras layers that a model_fn makes, in the mapped form: every call of it must find those of the first."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.program.calls import calls_in, classes_in, is_false, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.walking import walk

#: Layers that do the same in training and outside of it, and the names that Keras gives them. Others ask for the phase,
#: which an Estimator's graph and a Keras model tell them in different ways.
LAYERS = {
    "tf.keras.layers.Conv1D": "conv1d",
    "tf.keras.layers.Conv2D": "conv2d",
    "tf.keras.layers.Dense": "dense",
    "tf.keras.layers.Embedding": "embedding",
    "tf.keras.layers.LayerNormalization": "layer_normalization",
}
_NORMALIZATION = "tf.keras.layers.LayerNormalization"
_REGULARIZERS = ("_regularizer",)

_MADE = '''\
def {name}(scope_name, make):
    """A Keras layer of TensorFlow 1 code in a Keras model: made by the first call, found again by the next ones."""
    with tf.compat.v1.variable_scope(None, default_name=scope_name) as scope:
        own_name = scope.name.rpartition("/")[2]
    if not tf.executing_eagerly():
        # A scope that is entered again counts anew, but TensorFlow 1 made a new layer then, too.
        scope = tf.compat.v1.get_variable_scope()
        made = tf.compat.v1.get_collection_ref((threading.get_ident(), scope.name, scope_name))
        made.append(scope_name)
        own_name = scope_name if len(made) == 1 else f"{{scope_name}}_{{len(made) - 1}}"
    return tf.compat.v1.keras.utils.get_or_create_layer(own_name, make)
'''
# Keras tells no collection of its weights; the train_op asks one.
_COLLECTED = '''\
def {name}(scope_name, make):
    """A Keras layer of TensorFlow 1 code in a Keras model: made by the first call, found again by the next ones.

    Its weights come into the collection of trainable variables, as in a graph.
    """
    with tf.compat.v1.variable_scope(None, default_name=scope_name) as scope:
        own_name = scope.name.rpartition("/")[2]
    if not tf.executing_eagerly():
        # A scope that is entered again counts anew, but TensorFlow 1 made a new layer then, too.
        scope = tf.compat.v1.get_variable_scope()
        made = tf.compat.v1.get_collection_ref((threading.get_ident(), scope.name, scope_name))
        made.append(scope_name)
        own_name = scope_name if len(made) == 1 else f"{{scope_name}}_{{len(made) - 1}}"
    layer = tf.compat.v1.keras.utils.get_or_create_layer(own_name, make)

    def call(inputs):
        outputs = layer(inputs)
        known = tf.compat.v1.get_collection_ref(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
        known.extend(weight for weight in layer.trainable_weights if not any(weight is other for other in known))
        return outputs

    return call
'''


# What compat.v1.executing_eagerly_outside_functions asks, which TensorFlow 1.15 has not got.
_IN_BOTH = """\
    with tf.init_scope():
        eagerly = tf.executing_eagerly()
    if not eagerly:
        return make()  # in the graph of a program that stays TensorFlow 1
"""
#: What only a Keras model comes to in a function for both worlds.
ONLY_IN_MODELS = "tf.compat.v1.keras.utils.get_or_create_layer"


def layer_function(name: str, indent: str, collects: bool, in_both: bool) -> str:
    """The function that makes Keras layers, as source text; `collects` where the train_op stays TensorFlow 1 code.

    `in_both`: the graph of a program that stays TensorFlow 1 gets the layers from it, too, each a new one.
    """
    text = (_COLLECTED if collects else _MADE).format(name=name)
    if in_both:
        begin = text.index("    with tf.compat.v1.variable_scope")
        text = text[:begin] + _IN_BOTH + text[begin:]
    return text.replace("    ", indent)


def check_layer(name: str, call: cst.Call, collects: bool, file: ParsedFile) -> None:
    """Raises Blocked (TFM151) for a layer whose numbers, or whose use, would not be those of the graph."""
    for arg in call.args:
        key = arg.keyword.value if arg.keyword is not None else ""
        if key.endswith(_REGULARIZERS) and not is_none(arg.value):
            raise Blocked("TFM151", arg.value, f"`{key}` of a Keras layer: the loss of the model_fn never had its term")
        if arg.star:
            raise Blocked("TFM151", call, f"the arguments of `{name}` are not written out")
    if collects and not _is_only_called(call, file):
        raise Blocked("TFM151", call, f"`{name}` beside a train_op of the program's own: only call it")


def _is_only_called(call: cst.Call, file: ParsedFile) -> bool:
    """Whether all that is done with a layer is to call it with its inputs."""
    around = file.parents.get(call)
    if isinstance(around, cst.Call) and around.func is call:
        return _has_inputs(around)
    if not isinstance(around, cst.Assign) or len(around.targets) != 1:
        return False
    target = around.targets[0].target
    function: cst.CSTNode | None = around
    while function is not None and not isinstance(function, cst.FunctionDef):
        function = file.parents.get(function)
    if not isinstance(target, cst.Name) or function is None:
        return False
    calls = {id(one.func): one for one in calls_in(function)}
    mentions = _Named(target.value)
    walk(function, mentions)
    others = [name for name in mentions.found if name is not target]
    return all(id(name) in calls and _has_inputs(calls[id(name)]) for name in others)


def _has_inputs(call: cst.Call) -> bool:
    return len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star


class _Named(cst.CSTVisitor):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.Name] = []

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name:
            self.found.append(node)


def bases_without_weights(file: ParsedFile, nodes: Sequence[cst.CSTNode]) -> set[cst.CSTNode]:
    """The bases of classes inside some functions that only lend their computation: none of their layers has weights."""
    found: set[cst.CSTNode] = set()
    for node in nodes:
        for one in classes_in(node):
            base = one.bases[0].value if len(one.bases) == 1 else None
            if base is None or file.imports.tensorflow(base) != _NORMALIZATION:
                continue
            made = [call for call in calls_in(node) if _is_name(call.func, one.name.value)]
            if made and all(_is_plain(call) for call in made):
                found.add(base)
    return found


def _is_plain(call: cst.Call) -> bool:
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    return all(key in given and is_false(given[key]) for key in ("center", "scale"))


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


__all__ = ["LAYERS", "ONLY_IN_MODELS", "bases_without_weights", "check_layer", "layer_function"]
