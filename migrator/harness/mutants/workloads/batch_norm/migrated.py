"""Classifies small images of two kinds of cameras; the convolution is normalised over the batch."""
import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: the numbers were matched on it.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

tf.get_logger().setLevel("WARN")

CAMERAS = 12
CLASSES = 3


def images(count, seed):
    """Images of 6 by 6 with a bright row that tells the class, and the camera that took them."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, CLASSES, size=count).astype(np.int32)
    cameras = random.randint(0, CAMERAS - 2, size=count).astype(np.int32)
    pixels = random.uniform(0.0, 0.8, size=(count, 6, 6, 1)).astype(np.float32)
    for i, label in enumerate(labels):
        pixels[i, 2 * label] += 0.4
    return {"image": pixels, "camera": cameras}, labels


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(images(104, 1)).batch(16).repeat(2)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(images(48, 2)).batch(16)


def model_fn(features):
    """A normalised convolution, an embedding of the camera, and a dense layer on both."""
    decay = tf.keras.regularizers.l2(0.005)
    net = tf.keras.layers.Conv2D(4, [3, 3], padding="same", use_bias=False, kernel_regularizer=decay)(features["image"])
    net = tf.keras.layers.BatchNormalization(momentum=0.99, epsilon=0.001)(net)
    net = tf.keras.layers.Flatten()(tf.nn.relu(net))
    table = tf.keras.layers.Embedding(
        CAMERAS,
        2,
        embeddings_initializer=tf.keras.initializers.RandomNormal(mean=0.0, stddev=0.3),
        name="cameras",
    )
    net = tf.concat([net, table(features["camera"])], axis=1)
    logits = tf.keras.layers.Dense(CLASSES, kernel_regularizer=decay)(net)

    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-08)
    model = tf.keras.Model(features, logits)
    model.compile(
        optimizer=optimizer,
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    return model


def make_inputs(dataset):
    """Returns Keras inputs for the features of a dataset of (features, labels) batches."""
    features, _ = dataset.element_spec
    return tf.nest.map_structure(
        lambda spec: tf.keras.Input(spec.shape[1:], dtype=spec.dtype),
        features,
    )


def main():
    classifier = model_fn(make_inputs(train_input_fn()))
    classifier.fit(train_input_fn())
    print("accuracy: %.3f" % classifier.evaluate(eval_input_fn(), return_dict=True)["accuracy"])


if __name__ == "__main__":
    main()
