import numpy as np
import tensorflow as tf


def data():
    r = np.random.RandomState(3)
    x = r.normal(size=(256, 6)).astype(np.float32)
    return x, (x @ r.normal(size=(6, 1)) + 0.1 * r.normal(size=(256, 1))).astype(np.float32)


x = tf.placeholder(tf.float32, [None, 6])
y = tf.placeholder(tf.float32, [None, 1])
net = tf.layers.dense(x, 8, activation=tf.nn.tanh)
out = tf.layers.dense(net, 1)
loss = tf.reduce_mean(tf.square(out - y))
optimizer = tf.train.RMSPropOptimizer(0.01, decay=0.9, epsilon=1e-3)
variables = tf.trainable_variables()
gradients = tf.gradients(loss, variables)
train = optimizer.apply_gradients(zip(gradients, variables, strict=True))
features, labels = data()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(24):
        rows = slice(step % 8 * 32, step % 8 * 32 + 32)
        _, value = session.run([train, loss], {x: features[rows], y: labels[rows]})
        if step % 5 == 0:
            print(step, value)
