"""Stochastic dual coordinate ascent for linear models of tf.contrib.learn."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.feature_column import feature_column as columns_v1


class SDCAOptimizer:
    """Trains a linear model of tf.contrib.learn on the dual of its problem; it knows each example by its id.

    What it knows of them begins anew with every training: checkpoints have the weights, not the examples.

    Args:
        example_id_column: the feature that has the ids of the examples, strings.
        num_loss_partitions: how many workers train together.
        num_table_shards: has no effect: the state of the examples is in one table.
        symmetric_l1_regularization: the weight of the absolute values.
        symmetric_l2_regularization: the weight of the squares, at least 1.
        adaptive: whether examples are drawn by their importance.
        partitioner: must be None.
    """

    def __init__(
        self,
        example_id_column,
        num_loss_partitions=1,
        num_table_shards=None,
        symmetric_l1_regularization=0.0,
        symmetric_l2_regularization=1.0,
        adaptive=True,
        partitioner=None,
    ):
        if partitioner is not None:
            raise ValueError("a partitioner of an SDCAOptimizer is not carried over")
        self.example_id_column = example_id_column
        self.num_loss_partitions = num_loss_partitions
        self.num_table_shards = num_table_shards
        self.symmetric_l1_regularization = symmetric_l1_regularization
        self.symmetric_l2_regularization = symmetric_l2_regularization
        self.adaptive = adaptive
        self.partitioner = partitioner

    def get_train_step(self, columns_to_variables, weight_column_name, loss_type, features, labels, step):
        """The operation of a step: updates the examples' state and the weights, and counts the step."""
        inputs = columns_v1._LazyBuilder(features)
        sparse, dense = [], []  # of each column: its variable, the variable before shrinking, and its values
        for column in sorted(columns_to_variables, key=lambda one: one.key):
            (variable,) = columns_to_variables[column]
            name = variable.name.partition(":")[0] + "_unshrinked/SDCAOptimizer"
            raw = tf1.Variable(tf.zeros(variable.shape), name=name, trainable=False)
            if isinstance(column, columns_v1._CategoricalColumn):
                sparse.append((variable, raw, _sums_of_ids(*column._get_sparse_tensors(inputs))))
            else:
                dense.append((variable, raw, column._get_dense_tensor(inputs)))
        labels = tf.cast(tf.reshape(labels, [-1]), tf.float32)
        weights = tf.ones_like(labels)
        if weight_column_name:
            weights = tf.cast(tf.reshape(features[weight_column_name], [-1]), tf.float32)
        table = tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.float32, [0.0] * 4, empty_key=[0, 0], deleted_key=[1, 1], name="sdca_examples"
        )
        ids = tf.raw_ops.SdcaFprint(input=tf.reshape(features[self.example_id_column], [-1]))
        used = [tf.cast(tf.unique(tf.cast(values[1], tf.int32))[0], tf.int64) for _, _, values in sparse]
        l1, l2 = self.symmetric_l1_regularization, max(self.symmetric_l2_regularization, 1.0)
        state, of_sparse, of_dense = tf.raw_ops.SdcaOptimizerV2(
            sparse_example_indices=[values[0] for _, _, values in sparse],
            sparse_feature_indices=[values[1] for _, _, values in sparse],
            sparse_feature_values=[values[2] for _, _, values in sparse],
            dense_features=[values for _, _, values in dense],
            example_weights=weights,
            example_labels=labels,
            sparse_indices=used,
            sparse_weights=[tf.gather(raw, places) for (_, raw, _), places in zip(sparse, used, strict=True)],
            dense_weights=[tf.convert_to_tensor(raw) for _, raw, _ in dense],
            example_state_data=table.lookup(ids),
            loss_type=loss_type,
            l1=l1,
            l2=l2,
            num_loss_partitions=self.num_loss_partitions,
            num_inner_iterations=1,
            adaptive=self.adaptive,
        )
        with tf.control_dependencies([state]):
            updates = [table.insert(ids, state)]
            for (_, raw, _), places, change in zip(sparse, used, of_sparse, strict=True):
                updates.append(tf1.scatter_add(raw, places, change))
            updates += [raw.assign_add(change) for (_, raw, _), change in zip(dense, of_dense, strict=True)]
        with tf.control_dependencies([one for one in updates if one is not None]):
            shrunk = []
            for variable, raw, _ in [*sparse, *dense]:
                value = raw.read_value()
                shrunk.append(variable.assign(tf.sign(value) * tf.maximum(tf.abs(value) - l1 / l2, 0.0)))
        with tf.control_dependencies(shrunk):
            return tf1.assign_add(step, 1).op


def _sums_of_ids(ids, weights):
    """How much of each id there is in each example: the examples, the ids and the sums."""
    values = tf.ones_like(ids.values, tf.float32) if weights is None else weights.values
    known = ids.values >= 0
    examples, flat, values = (
        tf.boolean_mask(one, known) for one in (ids.indices[:, 0], tf.cast(ids.values, tf.int64), values)
    )
    length = tf.reduce_max(flat) + 1
    together, places = tf.unique(length * examples + flat)
    return together // length, together % length, tf.math.unsorted_segment_sum(values, places, tf.size(together))
