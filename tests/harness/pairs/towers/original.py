import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(3)
A = R.normal(size=(120, 5)).astype(np.float32)
B = R.normal(size=(120, 5)).astype(np.float32)
Y = (A[:, :1] - B[:, 1:2] ** 2).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"a": A, "b": B}, Y)).batch(15)


def model_fn(features, labels, mode):
    with tf.variable_scope("first"):
        first = tf.layers.dense(features["a"], 8, activation=tf.nn.tanh)
    with tf.variable_scope("second"):
        second = tf.layers.dense(features["b"], 8, activation=tf.nn.tanh)
    prediction = tf.layers.dense(first * 2.0 + second, 1)
    loss = tf.losses.mean_squared_error(labels, prediction)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn)
