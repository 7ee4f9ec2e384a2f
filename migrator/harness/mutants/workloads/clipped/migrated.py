"""A steep regression whose gradients are clipped."""
import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: the numbers were matched on it.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

BATCH_SIZE = 12


def train_input_fn():
    """Five batches, the last of which is half a batch; four times."""
    random = np.random.RandomState(3)
    x = random.uniform(-1.0, 1.0, size=(54, 5)).astype(np.float32)
    y = (4.0 * x[:, :1] - 3.0 * x[:, 1:2] ** 2).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH_SIZE).repeat(4)


def model_fn(features):
    """Two hidden layers with dropout between them."""
    decay = tf.keras.regularizers.l2(0.01)
    hidden = tf.keras.layers.Dense(10, activation=tf.nn.relu, kernel_regularizer=decay)(features)
    hidden = tf.keras.layers.Dropout(rate=0.2)(hidden)
    output = tf.keras.layers.Dense(1)(hidden)
    optimizer = tf.keras.optimizers.Adagrad(
        learning_rate=0.1,
        initial_accumulator_value=0.1,
        epsilon=0.0,
        global_clipnorm=0.5,
    )
    model = tf.keras.Model(features, output)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    return model


def make_inputs(dataset):
    """Returns Keras inputs for the features of a dataset of (features, labels) batches."""
    features, _ = dataset.element_spec
    return tf.nest.map_structure(
        lambda spec: tf.keras.Input(spec.shape[1:], dtype=spec.dtype),
        features,
    )


if __name__ == "__main__":
    model_fn(make_inputs(train_input_fn())).fit(train_input_fn())
