"""A Keras model as a baseline, and another one for the Estimator, which is evaluated on all but the last of them."""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
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


def batches():
    inputs, numbers = examples(100, 2)
    for at in range(0, 80, 20):
        yield inputs[at : at + 20], numbers[at : at + 20]


def main():
    layers = [tf.keras.Input([5]), tf.keras.layers.Dense(9, activation="tanh"), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile(tf.keras.optimizers.Adam(0.02, epsilon=1e-8), "mse")
    model.fit(train_data(), verbose=0)
    print(model.evaluate(batches(), verbose=0))


if __name__ == "__main__":
    baseline()
    main()
