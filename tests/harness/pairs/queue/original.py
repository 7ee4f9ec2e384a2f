import numpy as np
import tensorflow as tf

X = np.random.RandomState(0).rand(400, 4).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


input_fn = tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=10, num_epochs=4, shuffle=True)
tf.estimator.Estimator(model_fn).train(input_fn, max_steps=25)
