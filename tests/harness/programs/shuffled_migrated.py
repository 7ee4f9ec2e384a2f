"""A classifier with Adam, dropout and an unseeded shuffle, in Keras."""

import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf


def train_input_fn():
    random = np.random.RandomState(3)
    x = random.uniform(-1.0, 1.0, size=(96, 8)).astype(np.float32)
    y = (x.sum(axis=1) > 0).astype(np.int64) + (x[:, 0] > 0.5)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
    return data.shuffle(96).repeat().batch(12)


features = {"x": tf.keras.Input((8,), name="x")}
hidden = tf.keras.layers.Dense(24, activation=tf.nn.relu)(features["x"])
hidden = tf.keras.layers.Dropout(0.3)(hidden)
logits = tf.keras.layers.Dense(3)(hidden)
model = tf.keras.Model(features, logits)
model.compile(
    optimizer=tf.keras.optimizers.Adam(learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-8),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
model.fit(train_input_fn(), steps_per_epoch=60, verbose=0)
