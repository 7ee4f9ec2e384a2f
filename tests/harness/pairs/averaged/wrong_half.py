"""A loop that copies averages of half of the weights into its model before it evaluates."""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf


def examples(count, seed):
    random = np.random.RandomState(seed)
    inputs = random.normal(size=(count, 5)).astype(np.float32)
    classes = np.clip(np.abs(inputs[:, 0] - 0.7 * inputs[:, 1] * inputs[:, 2]) * 1.4, 0, 2).astype(np.int32)
    return inputs, classes


def train_data():
    return tf.data.Dataset.from_tensor_slices(examples(400, 3)).repeat(2).batch(20)


def eval_data():
    return tf.data.Dataset.from_tensor_slices(examples(130, 4)).batch(50)


loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train(model):
    """Trains the model; the averages of its weights."""
    optimizer = tf.keras.optimizers.Adam(0.02, epsilon=1e-8)
    averages = [tf.Variable(weight, trainable=False) for weight in model.trainable_variables]

    @tf.function
    def step(inputs, classes):
        with tf.GradientTape() as tape:
            loss = loss_of(classes, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        for average, weight in zip(averages, model.trainable_variables, strict=True):
            average.assign_sub(0.1 * (average - weight))

    for inputs, classes in train_data():
        step(inputs, classes)
    return averages


def evaluate(model):
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    mean = tf.keras.metrics.Mean(name="loss")
    for inputs, classes in eval_data():
        logits = model(inputs, training=False)
        accuracy.update_state(classes, logits)
        mean.update_state(loss_of(classes, logits))
    print("accuracy", accuracy.result().numpy(), "loss", mean.result().numpy())


if __name__ == "__main__":
    layers = [tf.keras.Input([5]), tf.keras.layers.Dense(10, activation="tanh"), tf.keras.layers.Dense(3)]
    network = tf.keras.Sequential(layers)
    for average, weight in zip(train(network)[:2], network.trainable_variables, strict=False):
        weight.assign(average)
    evaluate(network)
