import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(4)
X = R.uniform(-1, 1, size=(160, 4)).astype(np.float32)
Y = (X[:, :1] - 0.5 * X[:, 1:2]).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 8, activation=tf.nn.relu6)
    prediction = tf.layers.dense(net, 1)
    loss = tf.losses.huber_loss(labels, prediction, delta=5.0)
    step = tf.train.get_global_step()
    rate = tf.train.piecewise_constant(step, [500000], [0.1, 0.01])
    train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn).evaluate(input_fn)
