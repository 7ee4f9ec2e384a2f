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


class RMSProp(tf.keras.optimizers.legacy.RMSprop):
    def _create_slots(self, var_list):
        for v in var_list:
            self.add_slot(v, "rms", "ones")

    def _resource_apply_dense(self, grad, var, apply_state=None):
        rms = self.get_slot(var, "rms")
        rms.assign(0.9 * rms + 0.1 * grad * grad)
        return var.assign_sub(0.01 * grad / tf.sqrt(rms + 1e-3))


model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(1)])
optimizer = RMSProp(0.01, rho=0.9, epsilon=1e-3)
features, labels = data()
model.build([None, 6])


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for step in range(24):
    rows = slice(step % 8 * 32, step % 8 * 32 + 32)
    value = train(features[rows], labels[rows])
    if step % 5 == 0:
        print(step, value.numpy())
