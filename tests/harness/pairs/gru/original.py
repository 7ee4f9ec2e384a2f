import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(2)
X = R.uniform(-1, 1, size=(96, 5, 3)).astype(np.float32)
Y = X[:, -1, :1] * X[:, 0, 1:2]


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(12)


def model_fn(features, labels, mode):
    cells = [tf.nn.rnn_cell.GRUCell(6, bias_initializer=tf.zeros_initializer()), tf.nn.rnn_cell.BasicLSTMCell(4)]
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), features["x"], dtype=tf.float32)
    prediction = tf.layers.dense(outputs[:, -1], 1)
    loss = tf.losses.mean_squared_error(labels, prediction)
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn)
