"""Predicts ratings from the embeddings of a reader and a book."""
import numpy as np
import tensorflow as tf

READERS = 20
BOOKS = 15
STEPS = 24


def ratings(count, seed):
    """Pairs of a reader and a book, and how much the one likes the other. Two readers never rate."""
    random = np.random.RandomState(seed)
    readers = random.randint(0, READERS - 2, size=count).astype(np.int64)
    books = random.randint(0, BOOKS, size=count).astype(np.int64)
    stars = (np.cos(readers) + np.sin(books) + 0.1 * random.normal(size=count)).astype(np.float32)
    return {"reader": readers, "book": books}, stars[:, np.newaxis]


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(ratings(60, 1)).shuffle(60, seed=7).batch(8).repeat()


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(ratings(24, 2)).batch(8)


def model_fn(features, labels, mode):
    """Two embeddings, side by side, and two dense layers."""
    initializer = tf.random_normal_initializer(stddev=0.5)
    readers = tf.get_variable("readers", [READERS, 4], initializer=initializer)
    books = tf.get_variable("books", [BOOKS, 4], initializer=initializer)
    reader = tf.nn.embedding_lookup(readers, features["reader"])
    book = tf.nn.embedding_lookup(books, features["book"])
    hidden = tf.layers.dense(tf.concat([reader, book], axis=1), 8, activation=tf.nn.tanh)
    output = tf.layers.dense(hidden, 1)

    loss = tf.losses.mean_squared_error(labels, output)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"mae": tf.metrics.mean_absolute_error(labels, output)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.MomentumOptimizer(learning_rate=0.05, momentum=0.9)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(train_input_fn, steps=STEPS)
    print("mean error: %.3f" % estimator.evaluate(eval_input_fn)["mae"])


if __name__ == "__main__":
    main()
