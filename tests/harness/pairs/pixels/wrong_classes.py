import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf

R = np.random.RandomState(1)
X = R.uniform(0, 255, size=(150, 6)).astype(np.uint8)
C = R.randint(0, 4, size=(150, 1)).astype(np.int64)

CLASSES = np.eye(4, dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices(((X / np.float32(255.0)).astype(np.float32), CLASSES[(C[:, 0] + 1) % 4]))
model = tf.keras.Sequential([tf.keras.layers.Dense(12, activation="relu"), tf.keras.layers.Dense(4)])
optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
for x, y in dataset.batch(20):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, model(x, training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
