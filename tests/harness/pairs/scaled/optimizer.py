import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf


def data():
    r = np.random.RandomState(3)
    x = r.normal(size=(256, 6)).astype(np.float32)
    return x, (x @ r.normal(size=(6, 1)) + 0.1 * r.normal(size=(256, 1))).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).repeat(3).batch(32)


class Net(tf.keras.Model):
    def build(self, shape):
        self.w1 = self.add_weight("w1", [6, 8])
        self.w2 = self.add_weight("w2", [8, 1])

    def call(self, x):
        return tf.matmul(tf.tanh(tf.matmul(x, self.w1)), self.w2)


model = Net()
inner = tf.keras.optimizers.SGD(0.05, global_clipnorm=1.0)
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(inner, dynamic=False, initial_scale=128.0)
model.compile(optimizer, loss="mse")
model.fit(input_fn())
