import numpy as np
import tensorflow as tf

rng = np.random.RandomState(16)
CENTER = rng.randint(0, 60, size=1280).astype(np.int64)
CONTEXT = ((CENTER + rng.randint(1, 4, size=1280)) % 60).astype(np.int64)[:, None]


def model_fn(features, labels, mode):
    table = tf.get_variable("table", [60, 12], initializer=tf.random_uniform_initializer(-1.0, 1.0))
    w = tf.get_variable("nce_w", [60, 12], initializer=tf.truncated_normal_initializer(stddev=12**-0.5))
    b = tf.get_variable("nce_b", [60], initializer=tf.zeros_initializer())
    embed = tf.nn.embedding_lookup(table, features["center"])
    loss = tf.reduce_mean(tf.nn.nce_loss(w, b, labels=labels, inputs=embed, num_sampled=8, num_classes=60))
    op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=op)


tf.estimator.Estimator(model_fn).train(
    lambda: tf.data.Dataset.from_tensor_slices(({"center": CENTER}, CONTEXT)).batch(32)
)
