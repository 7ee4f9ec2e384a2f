"""Data with noise of NumPy's, Python's and TensorFlow's generators, none of which has a seed; great inputs that a batch
normalisation makes small.
"""

import random

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(4)
X = R.uniform(-1, 1, size=(120, 4)).astype(np.float32)
Y = (X[:, :1] - 0.5 * X[:, 1:2]).astype(np.float32)


def rows():
    for place in range(len(X)):
        yield X[place] + np.random.normal(scale=0.05, size=4).astype(np.float32) * (random.randint(0, 1) == 1), Y[place]


def input_fn():
    data = tf.data.Dataset.from_generator(rows, (tf.float32, tf.float32), ([4], [1]))
    return data.map(lambda x, y: (x + tf.random.normal([4], stddev=0.05), y), num_parallel_calls=4).batch(16)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.dense(features * 1000.0, 8)
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=training))
    prediction = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, prediction)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"distance": tf.metrics.mean_absolute_error(labels, prediction)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
estimator.evaluate(eval_input_fn)
