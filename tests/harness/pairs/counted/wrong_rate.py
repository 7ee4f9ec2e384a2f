import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf

R = np.random.RandomState(1)
X = R.normal(size=(240, 6)).astype(np.float32)
C = R.randint(0, 3, size=240).astype(np.int64)

model = tf.keras.Sequential([tf.keras.layers.Dense(12, activation="relu"), tf.keras.layers.Dense(3)])
optimizer = tf.keras.optimizers.SGD(0.2)
for step, (x, y) in enumerate(tf.data.Dataset.from_tensor_slices((X, C)).repeat().batch(16)):
    if step >= 40:
        break
    optimizer.learning_rate = 0.2 * 0.5 ** ((step + 1) // 12)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True)))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
