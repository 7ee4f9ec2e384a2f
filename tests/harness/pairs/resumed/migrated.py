import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: the numbers were matched on it.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

X = np.random.RandomState(0).rand(200, 4).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(10)


def model_fn(features):
    model = tf.keras.Model(features, tf.keras.layers.Dense(1)(features["x"]))
    model.compile(
        optimizer=tf.keras.optimizers.Adam(learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-08),
        loss=tf.keras.losses.MeanSquaredError(),
    )
    return model


def make_inputs(dataset):
    """Returns Keras inputs for the features of a dataset of (features, labels) batches."""
    features, _ = dataset.element_spec
    return tf.nest.map_structure(
        lambda spec: tf.keras.Input(spec.shape[1:], dtype=spec.dtype),
        features,
    )


def load_checkpoint(model, checkpoint):
    """Loads weights, slots and step, as an Estimator does; the learning rate stays this program's own."""
    rate = model.optimizer.learning_rate
    given = rate.numpy()
    model.load_weights(checkpoint)
    rate.assign(given)


model_dir = "model"
model = model_fn(make_inputs(input_fn()))
checkpoint = tf.train.latest_checkpoint(model_dir)
if checkpoint and not os.path.basename(checkpoint).startswith("model.ckpt"):  # an Estimator's
    load_checkpoint(model, checkpoint)
steps = 16 - model.optimizer.iterations.numpy()
if steps > 0:
    model.fit(
        input_fn(),
        steps_per_epoch=steps,
        callbacks=[
            tf.keras.callbacks.ModelCheckpoint(
                os.path.join(model_dir, "ckpt"),
                save_weights_only=True,
            ),
            tf.keras.callbacks.ModelCheckpoint(
                os.path.join(model_dir, "ckpt"),
                save_weights_only=True,
                save_freq=6,
            ),
        ],
    )
