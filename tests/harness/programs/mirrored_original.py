"""A regression with momentum on two workers, as a TF1 Estimator with MultiWorkerMirroredStrategy."""

import numpy as np
import tensorflow as tf


def train_input_fn():
    random = np.random.RandomState(5)
    x = random.uniform(-1.0, 1.0, size=(64, 4)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features, 10, activation=tf.nn.tanh)
    output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step())
    )


strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
config = tf.estimator.RunConfig(model_dir="/tmp/tf_migrate_tests/mirrored", train_distribute=strategy)
estimator = tf.estimator.Estimator(model_fn, config=config)
tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(train_input_fn, max_steps=20),
    tf.estimator.EvalSpec(train_input_fn, steps=1),
)
