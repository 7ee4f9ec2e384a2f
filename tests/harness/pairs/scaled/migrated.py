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

    def train_step(self, batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x) - y))
            scaled = loss * 128.0
        gradients = [g / 128.0 for g in tape.gradient(scaled, self.trainable_variables)]
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        self.optimizer.apply_gradients([(gradients[0], self.w1), (gradients[1], self.w2)])
        return {"loss": loss}


model = Net()
model.compile(tf.keras.optimizers.SGD(0.05))
model.fit(input_fn())
