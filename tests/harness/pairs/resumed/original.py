import numpy as np
import tensorflow as tf

X = np.random.RandomState(0).rand(200, 4).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(10)


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.estimator.RunConfig(model_dir="model", save_checkpoints_steps=6)
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn, max_steps=16)
