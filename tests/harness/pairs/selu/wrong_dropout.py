import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf


def data():
    rng = np.random.RandomState(5)
    x = rng.normal(size=(320, 6)).astype(np.float32)
    y = np.sin(x[:, :1]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat(2).batch(16)


model = tf.keras.Sequential(
    [
        tf.keras.Input([6]),
        tf.keras.layers.Dense(12, "selu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(1),
    ]
)
model.compile(tf.keras.optimizers.SGD(0.05), "mse")
model.fit(data())
print(model.evaluate(data(), steps=5))
