"""What tf.contrib had for words: tables of them, bags of their embeddings, and sparsemax over them."""

from __future__ import annotations

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.ops import lookup_ops

from .contrib_functions import index_table_from_tensor, index_to_string_table_from_tensor
from .contrib_others import safe_embedding_lookup_sparse


def string_to_index(tensor, mapping, default_value=-1, name=None):
    """The places of strings in `mapping`; tf.tables_initializer() fills the table."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor, mapping, default_value="UNK", name=None):
    """The strings at places of `mapping`; tf.tables_initializer() fills the table."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


def string_to_index_table_from_tensor(
    mapping, num_oov_buckets=0, default_value=-1, hasher_spec=lookup_ops.FastHashSpec, name=None
):
    """A table from strings to their places in a tensor."""
    with tf1.name_scope(name, "string_to_index") as scope:
        mapping = tf.convert_to_tensor(mapping)
    if mapping.dtype.base_dtype != tf.string:
        raise ValueError("string_to_index_table_from_tensor requires string.")
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=scope)


def string_to_index_table_from_file(
    vocabulary_file=None,
    num_oov_buckets=0,
    vocab_size=None,
    default_value=-1,
    hasher_spec=lookup_ops.FastHashSpec,
    name=None,
):
    """A table from strings to the numbers of their lines in a file."""
    return lookup_ops.index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name
    )


def bow_encoder(
    ids,
    vocab_size,
    embed_dim,
    sparse_lookup=True,
    initializer=None,
    regularizer=None,
    trainable=True,
    scope=None,
    reuse=None,
):
    """The mean embedding of each text, ids of [batch, words]; `sparse_lookup` leaves the words 0 out."""
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension")
    with tf1.variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = tf1.get_variable(
            "embeddings",
            [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=[tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.MODEL_VARIABLES],
        )
        if sparse_lookup:
            words = ids if isinstance(ids, tf.SparseTensor) else tf.sparse.from_dense(ids)
            return safe_embedding_lookup_sparse([embeddings], words, combiner="mean", default_id=0)
        if isinstance(ids, tf.SparseTensor):
            raise TypeError(f"ids are expected to be dense Tensor, got: {ids}")
        return tf.reduce_mean(tf1.nn.embedding_lookup(embeddings, ids), axis=1)


def embedding_lookup_unique(params, ids, partition_strategy="mod", name=None):
    """The embeddings of ids of any shape, each looked up once."""
    with tf1.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = tf.convert_to_tensor(ids)
        once, places = tf.unique(tf.reshape(ids, [-1]))
        found = tf1.nn.embedding_lookup(params, once, partition_strategy)
        made = tf.reshape(tf.gather(found, places), tf.concat([tf.shape(ids), tf.shape(found)[1:]], 0))
        made.set_shape(ids.shape.concatenate(found.shape[1:]))
        return made


def sparsemax(logits, name=None):
    """The point of the simplex that is nearest to each row of logits, [batch, classes]: many are 0."""
    with tf1.name_scope(name, "sparsemax", [logits]):
        logits = tf.convert_to_tensor(logits)
        rows, classes = tf.shape(logits)[0], tf.shape(logits)[1]
        ordered, _ = tf.nn.top_k(logits, k=classes)
        sums = tf.cumsum(ordered, axis=1)
        counts = tf.range(1, tf.cast(classes, logits.dtype) + 1, dtype=logits.dtype)
        support = tf.reduce_sum(tf.cast(1 + counts * ordered > sums, tf.int32), axis=1)
        # A row without support (infinite logits) gives NaN below, as softmax does.
        at = tf.stack([tf.range(rows), tf.maximum(support, 1) - 1], axis=1)
        threshold = (tf.gather_nd(sums, at) - 1) / tf.cast(support, logits.dtype)
        found = tf.maximum(tf.cast(0, logits.dtype), logits - threshold[:, tf.newaxis])
        is_invalid = tf.logical_or(tf.equal(support, 0), tf.math.is_nan(sums[:, -1]))
        return tf.where(is_invalid[:, tf.newaxis], tf.cast(float("nan"), logits.dtype) * tf.ones_like(found), found)


def sparsemax_loss(logits, sparsemax, labels, name=None):
    """The loss of each row of logits, [batch, classes], whose gradient is sparsemax minus labels."""
    with tf1.name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        logits, found, labels = (tf.convert_to_tensor(one) for one in (logits, sparsemax, labels))
        # Not multiplied by 0 where a logit is infinite, which would be NaN.
        has_support = tf.logical_or(found > 0, tf.math.is_nan(found))
        reached = tf.where(has_support, found * (logits - 0.5 * found), tf.zeros_like(found))
        is_free = tf.logical_and(tf.equal(labels, 0), tf.math.is_inf(logits))
        wanted = tf.where(is_free, tf.zeros_like(logits), labels * (0.5 * labels - logits))
        return tf.reduce_sum(reached + wanted, axis=1)
