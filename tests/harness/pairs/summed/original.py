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
    variables = tf.trainable_variables()
    sums = [tf.Variable(tf.zeros_like(one.initialized_value()), trainable=False) for one in variables]
    optimizer = tf.train.AdamOptimizer(0.01)
    adding = [total.assign_add(g / 3.0) for total, g in zip(sums, tf.gradients(loss, variables), strict=True)]
    with tf.control_dependencies(adding):
        count = step.assign_add(1)

    def apply():
        pairs = [(total.read_value(), one) for total, one in zip(sums, variables, strict=True)]
        update = optimizer.apply_gradients(pairs)
        with tf.control_dependencies([update]):
            return tf.group(*[total.assign(tf.zeros_like(total)) for total in sums])

    with tf.control_dependencies([count]):
        train_op = tf.cond(tf.equal(count % 3, 0), apply, tf.no_op)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(lambda: tf.data.Dataset.from_tensor_slices((X, C)).batch(12))
