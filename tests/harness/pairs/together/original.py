import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(1)
X = R.normal(size=(144, 6)).astype(np.float32)
C = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(tf.layers.dense(features, 8, activation=tf.nn.tanh), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(lambda: tf.data.Dataset.from_tensor_slices((X, C)).batch(12))
