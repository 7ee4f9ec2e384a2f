"""A training of adjustable length for benchmarks: three dense layers on made-up data."""

import argparse
import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: the numbers were matched on it.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

FEATURES, UNITS, BATCH = 128, 512, 256


def input_fn():
    random = np.random.RandomState(0)
    x = random.normal(size=(BATCH * 16, FEATURES)).astype(np.float32)
    y = np.tanh(x[:, :1] - x[:, 1:2]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(BATCH)


def model_fn(features):
    net = tf.keras.layers.Dense(UNITS, activation=tf.nn.relu)(features)
    net = tf.keras.layers.Dense(UNITS, activation=tf.nn.relu)(net)
    output = tf.keras.layers.Dense(1)(net)
    model = tf.keras.Model(features, output)
    model.compile(
        optimizer=tf.keras.optimizers.Adagrad(learning_rate=0.01, initial_accumulator_value=0.1, epsilon=0.0),
        loss=tf.keras.losses.MeanSquaredError(),
    )
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    model = model_fn(tf.keras.Input([FEATURES]))
    model.fit(input_fn(), steps_per_epoch=parser.parse_args().steps, verbose=0)
