"""Functions of tf.contrib that the mapped form writes into the user's file: no TensorFlow 2 has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.program.calls import bind, is_none
from migrator.program.parsed import Blocked

# The same operations and variables as in TensorFlow 1.15.5, whose epsilon for float16 is another.
_LAYER_NORM = '''\
def {name}(
    inputs,
    center=True,
    scale=True,
    activation_fn=None,
    reuse=None,
    trainable=True,
    begin_norm_axis=1,
    begin_params_axis=-1,
    scope=None,
):
    """Layer normalization with the variables and the numbers of `tf.contrib.layers.layer_norm`."""
    beta, gamma = None, None
    with tf.compat.v1.variable_scope(scope, default_name="LayerNorm", reuse=reuse):
        shape = inputs.shape[begin_params_axis:]
        if center:
            zeros = tf.compat.v1.zeros_initializer()
            beta = tf.compat.v1.get_variable("beta", shape, inputs.dtype, zeros, trainable=trainable)
        if scale:
            ones = tf.compat.v1.ones_initializer()
            gamma = tf.compat.v1.get_variable("gamma", shape, inputs.dtype, ones, trainable=trainable)
        axes = list(range(inputs.shape.ndims))[begin_norm_axis:]
        mean, variance = tf.nn.moments(inputs, axes, keepdims=True)
        epsilon = 1e-3 if inputs.dtype == tf.float16 else 1e-12
        outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
    outputs.set_shape(inputs.shape)
    return outputs if activation_fn is None else activation_fn(outputs)
'''


@dataclass(frozen=True)
class Written:
    """A function that is written out: its parameters in TensorFlow 1, those that must not be given, and the text."""

    title: str
    parameters: Sequence[str]
    refused: Sequence[str]
    text: str


_LAYER_NORM_PARAMETERS = (
    *("inputs", "center", "scale", "activation_fn", "reuse", "variables_collections", "outputs_collections"),
    *("trainable", "begin_norm_axis", "begin_params_axis", "scope"),
)
_COLLECTIONS = ("variables_collections", "outputs_collections")
_LAYER_NORM_WRITTEN = Written("contrib_layer_norm", _LAYER_NORM_PARAMETERS, _COLLECTIONS, _LAYER_NORM)
WRITTEN = {
    "tf.contrib.layers.layer_norm": _LAYER_NORM_WRITTEN,
    "tf.contrib.layers.python.layers.layer_norm": _LAYER_NORM_WRITTEN,
}


def write_out(
    name: str, call: cst.Call, taken: Sequence[str] | frozenset[str], classes: dict[str, str], indent: str
) -> cst.Call | None:
    """A call of such a function as one of the file's own, whose text goes to `classes`; None for another function.

    Raises Blocked (TFM151) for arguments that it does not have.
    """
    written = WRITTEN.get(name)
    if written is None:
        return None
    bound = bind(call, written.parameters, name, "TFM151")
    for key in written.refused:
        if not is_none(bound.get(key)):
            raise Blocked(
                "TFM151", call, f"`{key}` of `{name}` in a model_fn that stays as it is: it has no collections"
            )
    first = written.parameters.index(written.refused[0]) if written.refused else len(written.parameters)
    if any(arg.keyword is None for arg in call.args[first:]):
        raise Blocked("TFM151", call, f"give the later arguments of `{name}` by their names")
    title = written.title
    while title in taken:
        title += "_of_contrib"
    classes[title] = written.text.format(name=title).replace("    ", indent)
    kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value not in written.refused]
    if kept and len(kept) < len(call.args):
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(func=cst.Name(title), args=kept)
