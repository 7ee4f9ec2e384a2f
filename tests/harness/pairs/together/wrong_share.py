import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

R = np.random.RandomState(1)
X = R.normal(size=(144, 6)).astype(np.float32)
C = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)
layers = tf.keras.layers
model = tf.keras.Sequential([tf.keras.Input([6]), layers.Dense(8, "tanh"), layers.Dense(3)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(0.01, epsilon=1e-8)


def gradients(features, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(features, training=True))
    return tape.gradient(loss, model.trainable_variables)


def apply(collected):
    means = [tf.add_n(list(some)) / len(collected) for some in zip(*collected, strict=True)]
    optimizer.apply_gradients(zip(means, model.trainable_variables, strict=True))


data = tf.data.Dataset.from_tensor_slices((X, C))
for features, labels in data.batch(12):
    parts = zip(tf.split(features, 3), tf.split(labels, 3), strict=True)
    apply([gradients(*part) for part in list(parts)[1:]])
