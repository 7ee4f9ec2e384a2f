import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf

R = np.random.RandomState(1)
X = R.normal(size=(180, 6)).astype(np.float32)
C = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fold(number, training):
    chosen = (np.arange(len(X)) % 3 != number) == training
    return tf.data.Dataset.from_tensor_slices((X[chosen], C[chosen])).batch(12)


def train(number):
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(3)])
    model.build([None, 6])
    optimizer = tf.keras.optimizers.Adam(0.01, epsilon=1e-8)
    optimizer.build(model.trainable_variables)

    @tf.function
    def train_steps(data):
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    train_steps(fold(number, True))
    return model


for number, model in enumerate([train(number) for number in range(2)]):
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    for x, y in fold(number, False):
        accuracy.update_state(y, model(x, training=False))
    print("fold", number, "accuracy", accuracy.result().numpy())
