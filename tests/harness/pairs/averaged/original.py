"""An Estimator that evaluates moving averages of its weights, which its network reads in their place."""

import numpy as np
import tensorflow as tf


def examples(count, seed):
    random = np.random.RandomState(seed)
    inputs = random.normal(size=(count, 5)).astype(np.float32)
    classes = np.clip(np.abs(inputs[:, 0] - 0.7 * inputs[:, 1] * inputs[:, 2]) * 1.4, 0, 2).astype(np.int32)
    return inputs, classes


def train_data():
    return tf.data.Dataset.from_tensor_slices(examples(400, 3)).repeat(2).batch(20)


def eval_data():
    return tf.data.Dataset.from_tensor_slices(examples(130, 4)).batch(50)


def network(inputs, getter=None):
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE, custom_getter=getter):
        hidden = tf.layers.dense(inputs, 10, activation=tf.nn.tanh, name="hidden")
        return tf.layers.dense(hidden, 3, name="out")


def model_fn(features, labels, mode):
    averages = tf.train.ExponentialMovingAverage(0.9)
    logits = network(features)
    if mode == tf.estimator.ModeKeys.EVAL:
        averages.apply(tf.trainable_variables())
        logits = network(features, lambda getter, *args, **kwargs: averages.average(getter(*args, **kwargs)))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    minimize = tf.train.AdamOptimizer(0.02).minimize(loss, tf.train.get_global_step())
    with tf.control_dependencies([minimize]):
        train_op = averages.apply(tf.trainable_variables())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(train_data)
    print(estimator.evaluate(eval_data))
