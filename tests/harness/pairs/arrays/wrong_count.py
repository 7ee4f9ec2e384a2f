import importlib.util
import os

if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf


def data():
    r = np.random.RandomState(3)
    x = r.normal(size=(256, 6)).astype(np.float32)
    return x, (x @ r.normal(size=(6, 1)) + 0.1 * r.normal(size=(256, 1))).astype(np.float32)


def batches(x, y):
    for first in range(0, 256, 32):
        yield x[first : first + 32], y[first : first + 32]


model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
x, y = data()
for _ in range(3):
    model.fit(batches(x, y), verbose=2)
print(model.evaluate(x, y, verbose=0))
