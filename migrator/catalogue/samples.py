"""A call of every TensorFlow 1 symbol that no example of a rule page shows."""

from __future__ import annotations

_IN_TRAINING = "training=mode == tf.estimator.ModeKeys.TRAIN"

#: Symbols that are others by another name: what the first begins with, and the second.
ALIASES = {
    "tf.contrib.slim.": "tf.contrib.layers.",
    "tf.contrib.layers.convolution1d": "tf.contrib.layers.conv1d",
    "tf.contrib.layers.convolution2d": "tf.contrib.layers.conv2d",
    "tf.contrib.layers.convolution3d": "tf.contrib.layers.conv3d",
    "tf.contrib.layers.convolution2d_transpose": "tf.contrib.layers.conv2d_transpose",
    "tf.contrib.layers.convolution3d_transpose": "tf.contrib.layers.conv3d_transpose",
    "tf.contrib.layers.xavier_initializer_conv2d": "tf.contrib.layers.xavier_initializer",
    "tf.contrib.framework.arg_scope": "tf.contrib.slim.arg_scope",
    "tf.contrib.learn.io.numpy_input_fn": "tf.estimator.inputs.numpy_input_fn",
    "tf.contrib.learn.io.pandas_input_fn": "tf.estimator.inputs.pandas_input_fn",
    "tf.data.experimental.": "tf.contrib.data.",
    "tf.initializers.zeros": "tf.zeros_initializer",
    "tf.initializers.ones": "tf.ones_initializer",
    "tf.initializers.constant": "tf.constant_initializer",
    "tf.initializers.random_uniform": "tf.random_uniform_initializer",
    "tf.initializers.random_normal": "tf.random_normal_initializer",
    "tf.initializers.truncated_normal": "tf.truncated_normal_initializer",
    "tf.initializers.variance_scaling": "tf.variance_scaling_initializer",
    "tf.initializers.glorot_uniform": "tf.glorot_uniform_initializer",
    "tf.initializers.glorot_normal": "tf.glorot_normal_initializer",
    "tf.keras.initializers.glorot_uniform": "tf.glorot_uniform_initializer",
    "tf.keras.initializers.glorot_normal": "tf.glorot_normal_initializer",
    **{
        f"tf.keras.initializers.{name}": f"tf.initializers.{name}"
        for name in ("he_normal", "he_uniform", "lecun_normal", "lecun_uniform")
    },
    "tf.initializers.orthogonal": "tf.orthogonal_initializer",
    "tf.io.tf_record_iterator": "tf.python_io.tf_record_iterator",
    "tf.train.piecewise_constant_decay": "tf.train.piecewise_constant",
    "tf.examples.tutorials.mnist.input_data.read_data_sets": "tf.contrib.learn.datasets.mnist.read_data_sets",
    "tf.keras.optimizers.legacy.": "tf.keras.optimizers.",
}

SAMPLES = (
    # layers
    "tf.layers.conv3d(net, 8, 3)",
    "tf.layers.conv3d_transpose(net, 8, 3)",
    "tf.layers.separable_conv1d(net, 8, 3)",
    "tf.layers.max_pooling1d(net, 2, 2)",
    "tf.layers.max_pooling3d(net, 2, 2)",
    "tf.layers.average_pooling1d(net, 2, 2)",
    "tf.layers.average_pooling2d(net, 2, 2)",
    "tf.layers.average_pooling3d(net, 2, 2)",
    f"tf.layers.batch_normalization(net, {_IN_TRAINING})",
    "tf.layers.Conv1D(8, 3)(net)",
    "tf.layers.Conv2D(8, 3)(net)",
    "tf.layers.Conv3D(8, 3)(net)",
    "tf.layers.Conv2DTranspose(8, 3)(net)",
    "tf.layers.Conv3DTranspose(8, 3)(net)",
    "tf.layers.SeparableConv1D(8, 3)(net)",
    "tf.layers.SeparableConv2D(8, 3)(net)",
    "tf.layers.MaxPooling1D(2, 2)(net)",
    "tf.layers.MaxPooling2D(2, 2)(net)",
    "tf.layers.MaxPooling3D(2, 2)(net)",
    "tf.layers.AveragePooling1D(2, 2)(net)",
    "tf.layers.AveragePooling2D(2, 2)(net)",
    "tf.layers.AveragePooling3D(2, 2)(net)",
    "tf.layers.Flatten()(net)",
    f"tf.layers.BatchNormalization()(net, {_IN_TRAINING})",
    "tf.contrib.layers.conv1d(net, 8, 3)",
    "tf.contrib.layers.conv3d(net, 8, 3)",
    "tf.contrib.layers.conv2d_transpose(net, 8, 3)",
    "tf.contrib.layers.conv3d_transpose(net, 8, 3)",
    "tf.contrib.layers.max_pool3d(net, 2)",
    "tf.contrib.layers.avg_pool2d(net, 2)",
    "tf.contrib.layers.avg_pool3d(net, 2)",
    "tf.contrib.layers.linear(net, 4)",
    "tf.contrib.layers.relu(net, 4)",
    "tf.contrib.layers.relu6(net, 4)",
    "tf.contrib.layers.batch_norm(net, is_training=mode == tf.estimator.ModeKeys.TRAIN)",
    "tf.feature_column.linear_model(features, columns)",
    # initializers
    "tf.ones_initializer()",
    "tf.random_uniform_initializer(-0.1, 0.1)",
    "tf.random_normal_initializer(stddev=0.1)",
    "tf.variance_scaling_initializer()",
    "tf.glorot_normal_initializer()",
    "tf.orthogonal_initializer(gain=2.0)",
    "tf.initializers.he_normal()",
    "tf.initializers.he_uniform()",
    "tf.initializers.lecun_normal()",
    "tf.initializers.lecun_uniform()",
    "tf.initializers.identity(2.0)",
    # data
    "d.apply(tf.contrib.data.map_and_batch_with_legacy_function(parse, batch_size=n))",
    # losses
    "tf.losses.absolute_difference(labels, predictions)",
    "tf.losses.huber_loss(labels, predictions)",
    "tf.losses.log_loss(labels, predictions)",
    "tf.losses.hinge_loss(labels, logits)",
    "tf.losses.cosine_distance(labels, predictions, axis=1)",
    "tf.losses.compute_weighted_loss(losses, weights)",
    "tf.nn.weighted_cross_entropy_with_logits(labels, logits, 2.0)",
    # optimizers
    "tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01)",
    "tf.train.AdagradDAOptimizer(0.1, tf.train.get_global_step())",
    "tf.train.SyncReplicasOptimizer(optimizer, 2)",
    "tf.contrib.tpu.CrossShardOptimizer(optimizer)",
    "tf.contrib.opt.LazyAdamOptimizer(0.01)",
    "tf.contrib.opt.NadamOptimizer(0.01)",
    "tf.contrib.opt.AdaMaxOptimizer(0.01)",
    "tf.contrib.opt.MomentumWOptimizer(0.1, 0.01, 0.9)",
    "tf.contrib.opt.LARSOptimizer(0.1)",
    "tf.contrib.opt.MovingAverageOptimizer(optimizer)",
    "tf.keras.optimizers.Adadelta(0.1)",
    "tf.keras.optimizers.Adagrad(0.1)",
    "tf.keras.optimizers.Adamax(0.1)",
    "tf.keras.optimizers.Ftrl(0.1)",
    "tf.keras.optimizers.Nadam(0.1)",
    "tf.keras.optimizers.RMSprop(0.1)",
    "tf.train.noisy_linear_cosine_decay(0.1, tf.train.get_global_step(), 100)",
    # data, files and messages
    'tf.contrib.learn.datasets.mnist.load_mnist("data")',
    'tf.contrib.learn.datasets.base.load_csv_with_header("data.csv", "int64", "float32")',
    'tf.contrib.learn.datasets.base.load_csv_without_header("data.csv", "int64", "float32")',
    "tf.TextLineReader()",
    "tf.WholeFileReader()",
    "tf.FixedLengthRecordReader(8)",
    *(
        f"tf.train.{name}(tensors)"
        for name in (
            *("slice_input_producer", "input_producer", "range_input_producer", "limit_epochs", "batch", "batch_join"),
            *("shuffle_batch_join", "maybe_batch", "maybe_shuffle_batch"),
        )
    ),
    *(
        f"tf.contrib.learn.{name}(pattern, 8, reader)"
        for name in ("read_batch_examples", "read_batch_record_features", "io.read_batch_features")
    ),
    'tf.contrib.lookup.index_table_from_tensor(["a", "b"])',
    'tf.contrib.lookup.index_to_string_table_from_file("words.txt")',
    'tf.contrib.lookup.index_to_string_table_from_tensor(["a", "b"])',
    'tf.contrib.lookup.index_table_from_file("words.txt")',
    'tf.logging.debug("done")',
    'tf.logging.info("done")',
    'tf.logging.warning("done")',
    'tf.logging.error("done")',
    'tf.logging.fatal("done")',
    'tf.logging.vlog(1, "done")',
    # metrics
    *(
        f"tf.metrics.{name}(labels, predictions)"
        for name in (
            *("accuracy", "auc", "false_negatives", "false_positives", "true_negatives", "true_positives"),
            *("precision", "recall", "mean_absolute_error", "mean_squared_error", "root_mean_squared_error"),
        )
    ),
    *(
        f"tf.metrics.{name}_at_thresholds(labels, predictions, [0.5])"
        for name in (
            *("false_negatives", "false_positives", "true_negatives", "true_positives", "precision", "recall"),
        )
    ),
    "tf.metrics.mean(values)",
    "tf.metrics.mean_tensor(values)",
    "tf.metrics.percentage_below(values, 0.5)",
    "tf.metrics.mean_cosine_distance(labels, predictions, 1)",
    "tf.metrics.mean_iou(labels, predictions, 4)",
    "tf.metrics.mean_per_class_accuracy(labels, predictions, 4)",
    "tf.metrics.mean_relative_error(labels, predictions, labels)",
    "tf.metrics.precision_at_k(labels, predictions, 2)",
    "tf.metrics.sparse_precision_at_k(labels, predictions, 2)",
    "tf.metrics.recall_at_k(labels, predictions, 2)",
    "tf.metrics.sensitivity_at_specificity(labels, predictions, 0.5)",
    "tf.metrics.specificity_at_sensitivity(labels, predictions, 0.5)",
)
