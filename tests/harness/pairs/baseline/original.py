"""A Keras model as a baseline, which fit trains, and then an Estimator."""

import numpy as np
import tensorflow as tf


def examples(count, seed):
    random = np.random.RandomState(seed)
    inputs = random.normal(size=(count, 5)).astype(np.float32)
    return inputs, (inputs[:, :1] * 1.3 - np.abs(inputs[:, 1:2])).astype(np.float32)


def train_data():
    return tf.data.Dataset.from_tensor_slices(examples(320, 1)).repeat(2).batch(16)


def eval_data():
    return tf.data.Dataset.from_tensor_slices(examples(100, 2)).batch(20)


def baseline():
    model = tf.keras.Sequential([tf.keras.Input([5]), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model.fit(train_data(), verbose=0)
    print(model.evaluate(eval_data(), verbose=0))


def model_fn(features, labels, mode):
    hidden = tf.compat.v1.layers.dense(features, 9, activation=tf.nn.tanh)
    outputs = tf.compat.v1.layers.dense(hidden, 1)
    loss = tf.compat.v1.losses.mean_squared_error(labels, outputs)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.train.AdamOptimizer(0.02).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    baseline()
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(train_data)
    print(estimator.evaluate(eval_data))
