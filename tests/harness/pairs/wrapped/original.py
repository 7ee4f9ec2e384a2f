import numpy as np
import tensorflow as tf

BATCH = 16


def _input_fn():
    rng = np.random.RandomState(5)
    words = rng.normal(size=(320, 6, 5)).astype(np.float32)
    labels = (words[:, 0, 0] > 0).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"words": words}, labels)).repeat(2).batch(BATCH, drop_remainder=True)


def _model_fn(features, labels, mode):
    cell = tf.nn.rnn_cell.LSTMCell(8)
    if mode == tf.estimator.ModeKeys.TRAIN:
        cell = tf.nn.rnn_cell.DropoutWrapper(cell, input_keep_prob=0.7, output_keep_prob=0.8)
    net, _ = tf.nn.dynamic_rnn(cell, features["words"], dtype=tf.float32)
    logits = tf.layers.dense(net[:, -1], 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_global_step()
    rate = tf.train.piecewise_constant(step, [500], [0.01, 0.001])
    train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def main():
    estimator = tf.estimator.Estimator(_model_fn)
    estimator.train(_input_fn)
    print(estimator.evaluate(_input_fn, steps=5))


if __name__ == "__main__":
    main()
