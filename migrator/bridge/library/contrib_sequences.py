"""The input layer of sequences that tf.contrib.feature_column had."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.feature_column import feature_column as columns_of_tensorflow_1
from tensorflow.python.feature_column import feature_column_v2 as columns_of_tensorflow_2


def sequence_input_layer(features, feature_columns, weight_collections=None, trainable=True):
    """The values of sequence columns side by side, [batch, time, values], and how long each sequence is."""
    columns = list(feature_columns) if isinstance(feature_columns, (list, tuple, set)) else [feature_columns]
    for column in columns:
        if not hasattr(column, "get_sequence_dense_tensor"):
            raise ValueError(f"All feature_columns must be sequence dense columns; {column} is none.")
    collections = [tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.MODEL_VARIABLES, *(weight_collections or [])]
    with tf1.variable_scope(None, "sequence_input_layer", list(features.values())):
        builder = columns_of_tensorflow_1._LazyBuilder(features)
        cache = columns_of_tensorflow_2.FeatureTransformationCache(features)
        made, lengths = [], []
        for column in sorted(columns, key=lambda one: one.name):
            is_of_both = hasattr(column, "_get_sequence_dense_tensor")  # else it has no variables
            with tf1.variable_scope(None, column._var_scope_name if is_of_both else column.name):
                if is_of_both:
                    kept = list(dict.fromkeys(collections))
                    dense, length = column._get_sequence_dense_tensor(builder, kept, trainable)
                else:
                    dense, length = column.get_sequence_dense_tensor(cache, None)
                made.append(tf.reshape(dense, [tf.shape(dense)[0], -1, column.variable_shape.num_elements()]))
                lengths.append(length)
        message = "The columns have sequences of different lengths."
        with tf.control_dependencies([tf1.assert_equal(lengths[0], one, message=message) for one in lengths[1:]]):
            return tf.concat(made, -1), tf.identity(lengths[0])
