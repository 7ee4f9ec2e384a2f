import importlib.util
import os

if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf


def data():
    r = np.random.RandomState(5)
    x = r.normal(size=(320, 10)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).repeat(2).batch(32, drop_remainder=True)


tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(16, "relu", name="hidden"),
        tf.keras.layers.Dense(8, "relu", name="second"),
        tf.keras.layers.Dense(3, name="logits"),
        tf.keras.layers.Activation("linear", dtype="float32"),
    ]
)


def loss(y, logits):
    y = tf.one_hot(tf.cast(tf.reshape(y, [-1]), tf.int32), 3)
    return tf.keras.losses.categorical_crossentropy(y, logits, from_logits=True, label_smoothing=0.02)


model.compile(tf.keras.optimizers.Adam(0.01, epsilon=1e-8), loss, metrics=["accuracy"])
model.fit(input_fn())
print(model.evaluate(input_fn(), return_dict=True))
