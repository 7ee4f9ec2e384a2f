"""A regression with momentum on a cluster of two workers, in Keras with MultiWorkerMirroredStrategy."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


def train_input_fn(context):
    random = np.random.RandomState(5)
    x = random.uniform(-1.0, 1.0, size=(64, 4)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


with strategy.scope():
    inputs = tf.keras.Input((4,))
    hidden = tf.keras.layers.Dense(10, activation=tf.nn.tanh)(inputs)
    output = tf.keras.layers.Dense(1)(hidden)
    model = tf.keras.Model(inputs, output)
    model.compile(
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.05, momentum=0.9),
        loss=tf.keras.losses.MeanSquaredError(),
    )
model.fit(tf.keras.utils.experimental.DatasetCreator(train_input_fn), steps_per_epoch=20, verbose=0)
