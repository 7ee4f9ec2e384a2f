import numpy as np
import tensorflow as tf


def data():
    r = np.random.RandomState(3)
    x = r.normal(size=(256, 6)).astype(np.float32)
    return x, (x @ r.normal(size=(6, 1)) + 0.1 * r.normal(size=(256, 1))).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).repeat(3).batch(32)


def model_fn(features, labels, mode):
    w1 = tf.get_variable("w1", [6, 8])
    w2 = tf.get_variable("w2", [8, 1])
    out = tf.matmul(tf.tanh(tf.matmul(features, w1)), w2)
    loss = tf.reduce_mean(tf.square(out - labels))
    variables = [w1, w2]
    gradients = [g / 128.0 for g in tf.gradients(loss * 128.0, variables)]
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = tf.train.GradientDescentOptimizer(0.05).apply_gradients(
        [(gradients[0], w1), (gradients[1], w2)], global_step=tf.train.get_global_step()
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    tf.estimator.Estimator(model_fn).train(input_fn)
