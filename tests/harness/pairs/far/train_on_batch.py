import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf

R = np.random.RandomState(4)
X = R.uniform(-1, 1, size=(160, 4)).astype(np.float32)
Y = (X[:, :1] - 0.5 * X[:, 1:2]).astype(np.float32)

model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation=tf.nn.relu6), tf.keras.layers.Dense(1)])
rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([500000], [0.1, 0.01])
model.compile(tf.keras.optimizers.SGD(rate), tf.keras.losses.Huber(delta=5.0))
for n in range(0, 160, 16):
    model.train_on_batch(X[n : n + 16], Y[n : n + 16])
losses = [model.test_on_batch(X[n : n + 16], Y[n : n + 16]) for n in range(0, 160, 16)]
print(sum(losses) / len(losses))
