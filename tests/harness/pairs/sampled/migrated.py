import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(16)
CENTER = rng.randint(0, 60, size=1280).astype(np.int64)
CONTEXT = ((CENTER + rng.randint(1, 4, size=1280)) % 60).astype(np.int64)[:, None]


table = tf.Variable(tf.random.uniform([60, 12], -1.0, 1.0))
w = tf.Variable(tf.random.truncated_normal([60, 12], stddev=12**-0.5))
b = tf.Variable(tf.zeros([60]))
optimizer = tf.keras.optimizers.SGD(0.5)


@tf.function
def step(center, context):
    with tf.GradientTape() as tape:
        embed = tf.nn.embedding_lookup(table, center)
        loss = tf.reduce_mean(tf.nn.nce_loss(w, b, context, embed, 8, 60))
    optimizer.apply_gradients(zip(tape.gradient(loss, [table, w, b]), [table, w, b], strict=True))
    return loss


for center, context in tf.data.Dataset.from_tensor_slices((CENTER, CONTEXT)).batch(32):
    step(center, context)
