import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

X = np.random.RandomState(0).rand(96, 4).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def rows():
    for number in range(96):
        yield X[number], Y[number]


def train_data():
    data = tf.data.Dataset.from_generator(rows, (tf.float32, tf.float32), (tf.TensorShape([4]), tf.TensorShape([1])))
    return data.shuffle(96, seed=1).batch(8)


model = tf.keras.Sequential([tf.keras.Input([4]), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
averages = [tf.Variable(weight, trainable=False) for weight in model.trainable_variables]


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    for average, weight in zip(averages, weights, strict=True):
        average.assign_sub(0.2 * (average - weight))


for x, y in train_data():
    step(x, y)
