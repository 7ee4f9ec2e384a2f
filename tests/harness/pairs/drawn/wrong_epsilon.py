import os
import random

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf

R = np.random.RandomState(4)
X = R.uniform(-1, 1, size=(120, 4)).astype(np.float32)
Y = (X[:, :1] - 0.5 * X[:, 1:2]).astype(np.float32)
EPSILON = 1e-5


def rows():
    for place in range(len(X)):
        yield X[place] + np.random.normal(scale=0.05, size=4).astype(np.float32) * (random.randint(0, 1) == 1), Y[place]


def input_fn():
    data = tf.data.Dataset.from_generator(rows, (tf.float32, tf.float32), ([4], [1]))
    return data.map(lambda x, y: (x + tf.random.normal([4], stddev=0.05), y), num_parallel_calls=4).batch(16)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


inputs = tf.keras.Input([4])
net = tf.keras.layers.Dense(8)(inputs * 1000.0)
net = tf.nn.relu(tf.keras.layers.BatchNormalization(epsilon=EPSILON)(net))
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(net))
distance = tf.keras.metrics.MeanAbsoluteError(name="distance")
model.compile(tf.keras.optimizers.SGD(0.05), tf.keras.losses.MeanSquaredError(), metrics=[distance])
model.fit(input_fn(), verbose=2)
model.evaluate(eval_input_fn(), verbose=2)
