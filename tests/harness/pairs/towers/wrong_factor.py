import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf

R = np.random.RandomState(3)
A = R.normal(size=(120, 5)).astype(np.float32)
B = R.normal(size=(120, 5)).astype(np.float32)
Y = (A[:, :1] - B[:, 1:2] ** 2).astype(np.float32)

b = tf.keras.Input([5], name="b")
second = tf.keras.layers.Dense(8, "tanh", name="second")(b)
a = tf.keras.Input([5], name="a")
first = tf.keras.layers.Dense(8, "tanh", name="first")(a)
model = tf.keras.Model({"a": a, "b": b}, tf.keras.layers.Dense(1)(first + second * 2.0))
model.compile(tf.keras.optimizers.Adam(0.01, epsilon=1e-8), "mse")
model.fit(tf.data.Dataset.from_tensor_slices(({"a": A, "b": B}, Y)).batch(15), verbose=0)
