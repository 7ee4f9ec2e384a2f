"""A small regression with regularised layers, a partial last batch and Adagrad, in Keras."""

import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

BATCH_SIZE = 16


def train_input_fn():
    random = np.random.RandomState(1)
    x = random.uniform(-1.0, 1.0, size=(72, 6)).astype(np.float32)
    y = np.sin(x.sum(axis=1, keepdims=True)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH_SIZE).repeat()


inputs = tf.keras.Input((6,))
hidden = tf.keras.layers.Dense(12, activation=tf.nn.tanh, kernel_regularizer=tf.keras.regularizers.L2(0.01))(inputs)
output = tf.keras.layers.Dense(1, kernel_regularizer=tf.keras.regularizers.L2(0.01))(hidden)
model = tf.keras.Model(inputs, output)
model.compile(
    optimizer=tf.keras.optimizers.Adagrad(learning_rate=0.05, initial_accumulator_value=0.1, epsilon=0.0),
    loss=tf.keras.losses.MeanSquaredError(),
)
model.fit(train_input_fn(), steps_per_epoch=25, verbose=0)
