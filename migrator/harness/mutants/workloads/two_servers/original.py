"""Trains a small regression network whose variables are split over two parameter servers."""
import numpy as np
import tensorflow as tf

MAX_STEPS = 16


def train_input_fn():
    """Batches of sixteen points; an epoch ends within the run, with a batch of eight."""
    random = np.random.RandomState(1)
    x = random.uniform(-1.0, 1.0, size=(120, 6)).astype(np.float32)
    y = np.sin(x.sum(axis=1, keepdims=True)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat()


def model_fn(features, labels, mode):
    """A network of one hidden layer; two shards for every variable that has rows enough."""
    with tf.variable_scope("network", partitioner=tf.fixed_size_partitioner(2)):
        hidden = tf.layers.dense(features, 16, activation=tf.nn.tanh)
        output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    train_op = tf.train.GradientDescentOptimizer(0.2).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    train_spec = tf.estimator.TrainSpec(train_input_fn, max_steps=MAX_STEPS)
    eval_spec = tf.estimator.EvalSpec(train_input_fn, steps=1)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


if __name__ == "__main__":
    main()
