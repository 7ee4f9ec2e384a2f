import numpy as np
import tensorflow as tf

RATE = 0.2
ALPHA = -1.7580993408473766  # what selu gives far below zero


def alpha_dropout(x, rate):
    kept = tf.cast(tf.random_uniform(tf.shape(x)) >= rate, tf.float32)
    scale = ((1 - rate) * (1 + rate * ALPHA**2)) ** -0.5
    return scale * (x * kept + ALPHA * (1 - kept)) - scale * ALPHA * rate


def _input_fn():
    rng = np.random.RandomState(5)
    x = rng.normal(size=(320, 6)).astype(np.float32)
    y = np.sin(x[:, :1]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat(2).batch(16)


def _model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 12, tf.nn.selu)
    if mode == tf.estimator.ModeKeys.TRAIN:
        net = alpha_dropout(net, RATE)
    out = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(_model_fn)
    estimator.train(_input_fn)
    print(estimator.evaluate(_input_fn, steps=5))


if __name__ == "__main__":
    main()
