"""Programs whose model_fns build towers, one on every GPU."""

from __future__ import annotations

#: Branches in the towers, a function that makes them share their variables, features in a dict.
BRANCHES = """\
import numpy as np
import tensorflow.compat.v1 as tf

rng = np.random.RandomState(0)
X = rng.normal(size=(96, 4)).astype(np.float32)
Y = (np.abs(X[:, 0]) * 2).astype(np.int32)
NUM_GPUS = 2


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(16)


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = []
        for g, _ in grad_and_vars:
            expanded_g = tf.expand_dims(g, 0)
            grads.append(expanded_g)
        grad = tf.concat(axis=0, values=grads)
        grad = tf.reduce_mean(grad, 0)
        v = grad_and_vars[0][1]
        grad_and_var = (grad, v)
        average_grads.append(grad_and_var)
    return average_grads


def network(x):
    regularizer = tf.keras.regularizers.l2(0.05)
    hidden = tf.layers.dense(x, 8, activation=tf.nn.relu, kernel_regularizer=regularizer, name="hidden")
    return tf.layers.dense(hidden, 6, name="logits")


def model_fn(features, labels, mode):
    optimizer = tf.train.AdamOptimizer(0.01)
    x_parts = tf.split(features["x"], NUM_GPUS)
    if mode != tf.estimator.ModeKeys.PREDICT:
        labels_parts = tf.split(labels, NUM_GPUS)
    tower_grads, losses, all_logits = [], [], []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(NUM_GPUS):
            with tf.device("/gpu:%d" % i):
                with tf.name_scope("tower_%d" % i):
                    logits = network(x_parts[i])
                    all_logits.append(logits)
                    if mode != tf.estimator.ModeKeys.PREDICT:
                        loss = tf.losses.sparse_softmax_cross_entropy(labels_parts[i], logits)
                        loss += tf.losses.get_regularization_loss()
                        losses.append(loss)
                        if mode == tf.estimator.ModeKeys.TRAIN:
                            grads = optimizer.compute_gradients(loss)
                            tower_grads.append(grads)
                    tf.get_variable_scope().reuse_variables()
    logits = tf.concat(all_logits, 0)
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"classes": classes})
    total_loss = tf.add_n(losses) / NUM_GPUS
    if mode == tf.estimator.ModeKeys.TRAIN:
        grads = average_gradients(tower_grads)
        train_op = optimizer.apply_gradients(grads, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=total_loss, train_op=train_op)
    metrics = {"accuracy": tf.metrics.accuracy(labels, classes)}
    return tf.estimator.EstimatorSpec(mode, loss=total_loss, eval_metric_ops=metrics)


config = tf.estimator.RunConfig(session_config=tf.ConfigProto(allow_soft_placement=True))
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn, steps=6)
print(estimator.evaluate(input_fn, steps=3))
print(next(estimator.predict(input_fn)))
"""

#: Everything in a row; the number of towers is a parameter.
PLAIN = """\
import numpy as np
import tensorflow.compat.v1 as tf

rng = np.random.RandomState(0)
X = rng.normal(size=(96, 4)).astype(np.float32)
Y = np.abs(X[:, :1]).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(16)


def mean_of(tower_gradients):
    return [(tf.reduce_mean(tf.stack([g for g, _ in p]), 0), p[0][1]) for p in zip(*tower_gradients)]


def model_fn(features, labels, mode, params):
    num_gpus = params["num_gpus"]
    label_parts = tf.split(labels, num_gpus)
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
    tower_gradients = []
    tower_losses = []
    tower_outputs = []
    for i in range(num_gpus):
        with tf.device("/gpu:%d" % i), tf.variable_scope("net", reuse=i > 0):
            hidden = tf.layers.dense(tf.split(features, num_gpus)[i], 8, activation=tf.nn.relu)
            output = tf.layers.dense(hidden, 1)
            loss = tf.losses.mean_squared_error(label_parts[i], output)
            tower_gradients.append(optimizer.compute_gradients(loss))
            tower_losses.append(loss)
            tower_outputs.append(output)
    loss = tf.reduce_mean(tower_losses)
    output = tf.concat(tower_outputs, axis=0)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"error": tf.metrics.mean_absolute_error(labels, output)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    gradients, variables = zip(*mean_of(tower_gradients))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.estimator.RunConfig(session_config=tf.ConfigProto(allow_soft_placement=True))
estimator = tf.estimator.Estimator(model_fn, params={"num_gpus": 2}, config=config)
estimator.train(input_fn, steps=6)
print(estimator.evaluate(lambda: input_fn().take(3)))
"""
