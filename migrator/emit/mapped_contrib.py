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

# Measured against tf.contrib.crf of TensorFlow 1.15.5 (lengths from 0, ties, int32 and int64 tags, one step): the
# likelihoods and what is decoded are the same bits, gradients the same up to 1.2e-7.
_CRF_LOG_LIKELIHOOD = '''\
def {name}(inputs, tag_indices, sequence_lengths, transition_params=None):
    """The log-likelihood of each sequence of tags under a linear-chain CRF, and the transitions between tags."""
    if transition_params is None:
        transition_params = tf.compat.v1.get_variable("transitions", [inputs.shape[2], inputs.shape[2]])
    num_tags = tf.shape(inputs, out_type=tag_indices.dtype)[2]
    inside = tf.sequence_mask(sequence_lengths, tf.shape(inputs)[1])
    unary = tf.gather(inputs, tag_indices, axis=2, batch_dims=2)
    pairs = tag_indices[:, :-1] * num_tags + tag_indices[:, 1:]
    binary = tf.gather(tf.reshape(transition_params, [-1]), pairs)
    mask = tf.cast(inside, tf.float32)
    score = tf.reduce_sum(unary * mask, 1) + tf.reduce_sum(binary * mask[:, 1:], 1)

    def forward(alphas, step):
        potentials, inside = step
        new = potentials + tf.reduce_logsumexp(alphas[:, :, None] + transition_params, 1)
        return tf.compat.v1.where(inside, new, alphas)

    steps = tf.transpose(inputs, [1, 0, 2])[1:], tf.transpose(inside)[1:]
    log_norm = tf.reduce_logsumexp(tf.foldl(forward, steps, inputs[:, 0]), 1)
    return score - tf.compat.v1.where(sequence_lengths > 0, log_norm, tf.zeros_like(log_norm)), transition_params
'''
_CRF_DECODE = '''\
def {name}(potentials, transition_params, sequence_length):
    """The likeliest sequence of tags of each example under a linear-chain CRF (zeros behind its end), and its score."""
    length = tf.shape(potentials)[1]
    inside = tf.sequence_mask(tf.maximum(sequence_length, 1), length)
    follows = tf.transpose(inside & (tf.range(length) > 0))
    same = tf.zeros_like(potentials[:, 0], tf.int32) + tf.range(tf.shape(potentials)[2])

    def forward(before, step):
        potentials, follows = step
        paths = before[0][:, :, None] + transition_params
        scores = tf.compat.v1.where(follows, potentials + tf.reduce_max(paths, 1), before[0])
        return scores, tf.compat.v1.where(follows, tf.argmax(paths, 1, output_type=tf.int32), same)

    def backward(tags, came_from):
        return tf.gather(came_from, tags, batch_dims=1)

    scores, came_from = tf.scan(forward, (tf.transpose(potentials, [1, 0, 2]), follows), (potentials[:, 0], same))
    last = tf.argmax(scores[-1], 1, output_type=tf.int32)
    tags = tf.concat([tf.scan(backward, came_from, last, reverse=True)[1:], last[None]], 0)
    return tf.transpose(tags) * tf.cast(inside, tf.int32), tf.reduce_max(scores[-1], 1)
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
_CRF_PARAMETERS = ("inputs", "tag_indices", "sequence_lengths", "transition_params")
_CRF_DECODE_PARAMETERS = ("potentials", "transition_params", "sequence_length")
WRITTEN = {
    "tf.contrib.crf.crf_log_likelihood": Written("crf_log_likelihood", _CRF_PARAMETERS, (), _CRF_LOG_LIKELIHOOD),
    "tf.contrib.crf.crf_decode": Written("crf_decode", _CRF_DECODE_PARAMETERS, (), _CRF_DECODE),
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
