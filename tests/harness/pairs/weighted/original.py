import numpy as np
import tensorflow as tf

random = np.random.RandomState(4)
X = random.normal(size=(96, 3)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)
W = (random.rand(96) < 0.7).astype(np.float32) * random.uniform(0.5, 2.0, 96).astype(np.float32)


def input_fn():
    data = tf.data.Dataset.from_tensor_slices(({"x": X, "w": W}, Y))
    return data.shuffle(96, seed=5).repeat(2).batch(8)


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features["x"], 1)
    # The sum over the number of weights that are not zero.
    loss = tf.losses.mean_squared_error(labels, outputs, weights=features["w"][:, None])
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn)
