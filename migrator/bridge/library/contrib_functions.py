"""Functions of tf.contrib that TensorFlow 2.21 has no more, or only without a public name."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.ops import lookup_ops, summary_ops_v2

# What tf.contrib.summary was: TensorFlow 2 still has these functions, without a public name.
create_file_writer = summary_ops_v2.create_file_writer
create_summary_file_writer = summary_ops_v2.create_summary_file_writer
always_record_summaries = summary_ops_v2.always_record_summaries
never_record_summaries = summary_ops_v2.never_record_summaries
record_summaries_every_n_global_steps = summary_ops_v2.record_summaries_every_n_global_steps
should_record_summaries = summary_ops_v2.should_record_summaries
all_summary_ops = summary_ops_v2.all_v2_summary_ops
summary_writer_initializer_op = summary_ops_v2.summary_writer_initializer_op
summary_scalar = summary_ops_v2.scalar
summary_histogram = summary_ops_v2.histogram
summary_image = summary_ops_v2.image
summary_audio = summary_ops_v2.audio
summary_generic = summary_ops_v2.generic
summary_flush = summary_ops_v2.flush
summary_initialize = summary_ops_v2.initialize

index_table_from_file = lookup_ops.index_table_from_file
index_to_string_table_from_file = lookup_ops.index_to_string_table_from_file


def index_table_from_tensor(
    mapping, num_oov_buckets=0, default_value=-1, hasher_spec=lookup_ops.FastHashSpec, dtype=tf.string, name=None
):
    """A table from the elements of a tensor to their places in it."""
    return lookup_ops.index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, dtype, name)


def index_to_string_table_from_tensor(mapping, default_value="UNK", name=None):
    """A table from places to the strings of a tensor."""
    return lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)


def hash_table(initializer, default_value, shared_name=None, name=None):
    """The table that tf.contrib.lookup.HashTable made."""
    return tf1.lookup.StaticHashTable(initializer, default_value, name=name)


def mirrored_strategy(
    devices=None,
    num_gpus=None,
    num_gpus_per_worker=None,
    cross_device_ops=None,
    auto_shard_dataset=False,
    cross_tower_ops=None,
):
    """The strategy that tf.contrib.distribute.MirroredStrategy made: of the first GPUs, or of some devices."""
    del auto_shard_dataset  # of several workers, which TensorFlow 2 has another strategy for
    gpus = num_gpus if num_gpus is not None else num_gpus_per_worker
    if devices is None and gpus is not None:
        devices = [f"/device:GPU:{number}" for number in range(gpus)] or ["/device:CPU:0"]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops or cross_tower_ops)


def batch_and_drop_remainder(batch_size):
    """For `dataset.apply`: batches of just this size."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def layer_norm(
    inputs,
    center=True,
    scale=True,
    activation_fn=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    begin_norm_axis=1,
    begin_params_axis=-1,
    scope=None,
):
    """Normalizes each example over the axes from `begin_norm_axis` on."""

    def parameter(name, initializer):
        collections = [tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.MODEL_VARIABLES]
        if isinstance(variables_collections, dict):
            collections += variables_collections.get(name, [])
        else:
            collections += variables_collections or []
        shape = inputs.shape[begin_params_axis:]
        return tf1.get_variable(
            name, shape, inputs.dtype.base_dtype, initializer, trainable=trainable, collections=collections
        )

    with tf1.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as found:
        inputs = tf.convert_to_tensor(inputs)
        beta = parameter("beta", tf1.zeros_initializer()) if center else None
        gamma = parameter("gamma", tf1.ones_initializer()) if scale else None
        rank = inputs.shape.ndims
        axes = list(range(begin_norm_axis if begin_norm_axis >= 0 else rank + begin_norm_axis, rank))
        mean, variance = tf1.nn.moments(inputs, axes, keep_dims=True)
        epsilon = 1e-3 if inputs.dtype == tf.float16 else 1e-12
        outputs = tf1.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.shape)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        for collection in [outputs_collections] if isinstance(outputs_collections, str) else outputs_collections or []:
            tf1.add_to_collection(collection, outputs)
        del found
        return outputs


def xavier_initializer(uniform=True, seed=None, dtype=tf.float32):
    """Weights that keep the scale of gradients the same in all layers."""

    def initialize(shape, dtype=dtype, partition_info=None):
        sizes = [int(size) for size in (shape if partition_info is None else partition_info.full_shape)]
        field = float(np.prod(sizes[:-2])) if len(sizes) > 2 else 1.0
        mean = (sizes[-2 if len(sizes) > 1 else -1] + sizes[-1]) * field / 2.0
        if uniform:
            limit = np.sqrt(3.0 / mean)
            return tf1.random_uniform(shape, -limit, limit, dtype, seed=seed)
        # Cutting the normal distribution off makes it narrower, hence 1.3.
        return tf1.truncated_normal(shape, 0.0, np.sqrt(1.3 / mean), dtype, seed=seed)

    return initialize


def l1_regularizer(scale, scope=None):
    """A function of weights: `scale` times the sum of their absolute values."""

    def l1(weights, name=None):
        with tf1.name_scope(scope, "l1_regularizer", [weights]) as name:
            factor = tf.convert_to_tensor(scale, weights.dtype.base_dtype, name="scale")
            return tf.multiply(factor, tf.reduce_sum(tf.abs(weights)), name=name)

    return l1 if scale else lambda _: None


def l2_regularizer(scale, scope=None):
    """A function of weights: `scale` times half the sum of their squares."""

    def l2(weights):
        with tf1.name_scope(scope, "l2_regularizer", [weights]) as name:
            factor = tf.convert_to_tensor(scale, weights.dtype.base_dtype, name="scale")
            return tf.multiply(factor, tf.nn.l2_loss(weights), name=name)

    return l2 if scale else lambda _: None


def streaming_accuracy(
    predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
):
    """The metric of tf.contrib.metrics, whose predictions come first."""
    return tf1.metrics.accuracy(labels, predictions, weights, metrics_collections, updates_collections, name)


def streaming_precision(
    predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
):
    """The metric of tf.contrib.metrics, whose predictions come first."""
    return tf1.metrics.precision(labels, predictions, weights, metrics_collections, updates_collections, name)


def streaming_recall(predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None):
    """The metric of tf.contrib.metrics, whose predictions come first."""
    return tf1.metrics.recall(labels, predictions, weights, metrics_collections, updates_collections, name)


def streaming_auc(
    predictions,
    labels,
    weights=None,
    num_thresholds=200,
    metrics_collections=None,
    updates_collections=None,
    curve="ROC",
    name=None,
):
    """The metric of tf.contrib.metrics, whose predictions come first."""
    return tf1.metrics.auc(
        labels, predictions, weights, num_thresholds, metrics_collections, updates_collections, curve, name
    )
