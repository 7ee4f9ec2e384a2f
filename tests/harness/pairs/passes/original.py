import numpy as np
import tensorflow as tf

X = np.random.RandomState(0).rand(96, 4).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def rows():
    for number in range(96):
        yield X[number], Y[number]


def input_fn():
    data = tf.data.Dataset.from_generator(rows, (tf.float32, tf.float32), (tf.TensorShape([4]), tf.TensorShape([1])))
    return data.shuffle(96, seed=1).batch(8).map(lambda x, y: ({"x": x}, y))


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    with tf.control_dependencies([step]):
        train_op = tf.train.ExponentialMovingAverage(0.9).apply(tf.trainable_variables())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn)
