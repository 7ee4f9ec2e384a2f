import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

random = np.random.RandomState(4)
X = random.normal(size=(96, 3)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)
W = (random.rand(96) < 0.7).astype(np.float32) * random.uniform(0.5, 2.0, 96).astype(np.float32)


def of_nonzero(x, y, w):
    return x, y, w * tf.cast(tf.shape(w)[0], tf.float32) / tf.reduce_sum(w)


model = tf.keras.Sequential([tf.keras.Input([3]), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.05), "mse")
# `fit` begins the data twice, and reads the second order of the shuffle.
model.fit(tf.data.Dataset.from_tensor_slices((X, Y, W)).shuffle(96, seed=5).repeat(2).batch(8).map(of_nonzero))
