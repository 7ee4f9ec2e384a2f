"""A loop of session.run over fed batches."""

import numpy as np
import tensorflow as tf

data = np.random.RandomState(0).normal(size=(64, 4)).astype(np.float32)
x = tf.placeholder(tf.float32, [None, 4])
y = tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable("w", [4, 8])
b = tf.get_variable("b", [8], initializer=tf.zeros_initializer())
v = tf.get_variable("v", [8, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), v) - y))
step = tf.train.get_or_create_global_step()
train_op = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for start in range(0, 64, 8):
        batch = data[start : start + 8]
        print(session.run([train_op, loss], {x: batch, y: batch.sum(1, keepdims=True)})[1])
