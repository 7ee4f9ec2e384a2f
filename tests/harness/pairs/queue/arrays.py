import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

X = np.random.RandomState(0).rand(400, 4).astype("float32")
Y = X.sum(axis=1, keepdims=True)

x = tf.keras.Input([4], name="x")
model = tf.keras.Model({"x": x}, tf.keras.layers.Dense(1)(x))
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit({"x": X[:250]}, Y[:250], batch_size=10)
