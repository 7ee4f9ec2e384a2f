"""A steep regression whose gradients are clipped."""
import numpy as np
import tensorflow as tf

BATCH_SIZE = 12


def train_input_fn():
    """Five batches, the last of which is half a batch; four times."""
    random = np.random.RandomState(3)
    x = random.uniform(-1.0, 1.0, size=(54, 5)).astype(np.float32)
    y = (4.0 * x[:, :1] - 3.0 * x[:, 1:2] ** 2).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH_SIZE).repeat(4)


def model_fn(features, labels, mode):
    """Two hidden layers with dropout between them."""
    decay = tf.keras.regularizers.l2(0.01)
    hidden = tf.layers.dense(features, 10, activation=tf.nn.relu, kernel_regularizer=decay)
    hidden = tf.layers.dropout(hidden, rate=0.2, training=mode == tf.estimator.ModeKeys.TRAIN)
    output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, output) + tf.losses.get_regularization_loss()
    optimizer = tf.train.AdagradOptimizer(learning_rate=0.1)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    tf.estimator.Estimator(model_fn).train(train_input_fn)
