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


model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
x, y = data()
model.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=2)
print(model.evaluate(x, y, verbose=0))
