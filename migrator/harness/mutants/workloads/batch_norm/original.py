"""Classifies small images of two kinds of cameras; the convolution is normalised over the batch."""
import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)

CAMERAS = 12
CLASSES = 3


def images(count, seed):
    """Images of 6 by 6 with a bright row that tells the class, and the camera that took them."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, CLASSES, size=count).astype(np.int32)
    cameras = random.randint(0, CAMERAS - 2, size=count).astype(np.int32)
    pixels = random.uniform(0.0, 0.8, size=(count, 6, 6, 1)).astype(np.float32)
    for i, label in enumerate(labels):
        pixels[i, 2 * label] += 0.4
    return {"image": pixels, "camera": cameras}, labels


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(images(104, 1)).batch(16).repeat(2)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(images(48, 2)).batch(16)


def model_fn(features, labels, mode):
    """A normalised convolution, an embedding of the camera, and a dense layer on both."""
    training = mode == tf.estimator.ModeKeys.TRAIN
    decay = tf.keras.regularizers.l2(0.005)
    net = tf.layers.conv2d(features["image"], 4, [3, 3], padding="same", use_bias=False, kernel_regularizer=decay)
    net = tf.layers.batch_normalization(net, training=training)
    net = tf.layers.flatten(tf.nn.relu(net))
    table = tf.get_variable("cameras", [CAMERAS, 2], initializer=tf.random_normal_initializer(stddev=0.3))
    net = tf.concat([net, tf.nn.embedding_lookup(table, features["camera"])], axis=1)
    logits = tf.layers.dense(net, CLASSES, kernel_regularizer=decay)

    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits) + tf.losses.get_regularization_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    optimizer = tf.train.AdamOptimizer(learning_rate=0.01)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    classifier = tf.estimator.Estimator(model_fn)
    classifier.train(train_input_fn)
    print("accuracy: %.3f" % classifier.evaluate(eval_input_fn)["accuracy"])


if __name__ == "__main__":
    main()
