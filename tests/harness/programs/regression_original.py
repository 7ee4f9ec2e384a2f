"""A small regression with regularised layers, a partial last batch and Adagrad, as a TF1 Estimator."""

import numpy as np
import tensorflow as tf

BATCH_SIZE = 16


def train_input_fn():
    random = np.random.RandomState(1)
    x = random.uniform(-1.0, 1.0, size=(72, 6)).astype(np.float32)
    y = np.sin(x.sum(axis=1, keepdims=True)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH_SIZE).repeat()


def model_fn(features, labels, mode):
    regularizer = tf.keras.regularizers.l2(0.01)
    hidden = tf.layers.dense(features, 12, activation=tf.nn.tanh, kernel_regularizer=regularizer)
    output = tf.layers.dense(hidden, 1, kernel_regularizer=regularizer)
    loss = tf.losses.mean_squared_error(labels, output) + tf.losses.get_regularization_loss()
    optimizer = tf.train.AdagradOptimizer(0.05)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step())
    )


tf.estimator.Estimator(model_fn, model_dir="/tmp/tf_migrate_tests/regression").train(train_input_fn, max_steps=25)
