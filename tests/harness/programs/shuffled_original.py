"""A classifier with Adam, dropout and an unseeded shuffle, as a TF1 Estimator."""

import numpy as np
import tensorflow as tf


def train_input_fn():
    random = np.random.RandomState(3)
    x = random.uniform(-1.0, 1.0, size=(96, 8)).astype(np.float32)
    y = (x.sum(axis=1) > 0).astype(np.int64) + (x[:, 0] > 0.5)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
    return data.shuffle(96).repeat().batch(12)


def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features["x"], 24, activation=tf.nn.relu)
    hidden = tf.layers.dropout(hidden, 0.3, training=mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(hidden, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.AdamOptimizer(0.01)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step())
    )


tf.estimator.Estimator(model_fn, model_dir="/tmp/tf_migrate_tests/shuffled").train(train_input_fn, max_steps=60)
