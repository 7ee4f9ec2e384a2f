import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(1)
X = R.normal(size=(240, 6)).astype(np.float32)
C = R.randint(0, 3, size=240).astype(np.int64)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((X, C)).repeat().batch(16)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(tf.layers.dense(features, 12, activation=tf.nn.relu), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_global_step()
    rate = tf.train.exponential_decay(0.2, step, 12, 0.5, staircase=True)
    train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn, max_steps=40)
