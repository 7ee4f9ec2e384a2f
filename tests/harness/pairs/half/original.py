import numpy as np
import tensorflow as tf


def data():
    r = np.random.RandomState(5)
    x = r.normal(size=(320, 10)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).repeat(2).batch(32, drop_remainder=True)


def fp32_storage(getter, name, shape=None, dtype=None, trainable=True, **kwargs):
    storage = tf.float32 if trainable else dtype
    variable = getter(name, shape, dtype=storage, trainable=trainable, **kwargs)
    return tf.cast(variable, dtype) if variable.dtype != dtype else variable


def model_fn(features, labels, mode):
    with tf.variable_scope("net", custom_getter=fp32_storage, dtype=tf.bfloat16):
        net = tf.cast(features, tf.bfloat16)
        net = tf.layers.dense(net, 16, tf.nn.relu, name="hidden")
        net = tf.layers.dense(net, 8, tf.nn.relu, name="second")
        logits = tf.layers.dense(net, 3, name="logits")
    logits = tf.cast(logits, tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1))}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn)
    print(estimator.evaluate(input_fn))
