import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(1)
X = R.uniform(0, 255, size=(150, 6)).astype(np.uint8)
C = R.randint(0, 4, size=(150, 1)).astype(np.int64)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"pixels": X}, C)).batch(20)


def model_fn(features, labels, mode):
    net = tf.layers.dense(tf.cast(features["pixels"], tf.float32) / 255.0, 12, activation=tf.nn.relu)
    logits = tf.layers.dense(net, 4)
    loss = tf.losses.sparse_softmax_cross_entropy(tf.squeeze(labels, 1), logits)
    train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn)
