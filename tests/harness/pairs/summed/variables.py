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
sums = [tf.Variable(tf.zeros_like(one), trainable=False) for one in model.trainable_variables]
for number, (features, labels) in enumerate(data.batch(12), 1):
    for total, gradient in zip(sums, gradients(features, labels), strict=True):
        total.assign_add(gradient / 3.0)
    if number % 3 == 0:
        optimizer.apply_gradients(zip(sums, model.trainable_variables, strict=True))
        for total in sums:
            total.assign(tf.zeros_like(total))
