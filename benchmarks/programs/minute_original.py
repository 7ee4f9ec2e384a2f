"""A training of adjustable length for benchmarks: three dense layers on made-up data."""

import argparse

import numpy as np
import tensorflow as tf

FEATURES, UNITS, BATCH = 128, 512, 256


def input_fn():
    random = np.random.RandomState(0)
    x = random.normal(size=(BATCH * 16, FEATURES)).astype(np.float32)
    y = np.tanh(x[:, :1] - x[:, 1:2]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(BATCH)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, UNITS, activation=tf.nn.relu)
    net = tf.layers.dense(net, UNITS, activation=tf.nn.relu)
    output = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    train_op = tf.train.AdagradOptimizer(learning_rate=0.01).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, max_steps=parser.parse_args().steps)
