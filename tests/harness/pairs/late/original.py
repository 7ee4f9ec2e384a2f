import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
R = np.random.RandomState(1)
X = R.normal(size=(180, 6)).astype(np.float32)
C = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)


def fold(number, training):
    chosen = (np.arange(len(X)) % 3 != number) == training
    return tf.data.Dataset.from_tensor_slices((X[chosen], C[chosen])).batch(12)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(tf.layers.dense(features, 8, activation=tf.nn.relu), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimators = [tf.estimator.Estimator(model_fn) for number in range(2)]
for number, estimator in enumerate(estimators):
    estimator.train(lambda number=number: fold(number, True))
for number, estimator in enumerate(estimators):
    print(estimator.evaluate(lambda number=number: fold(number, False)))
