"""MNIST as the tutorials of TensorFlow 1 gave it."""

import collections
import gzip
import os

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import random_seed

Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


class ExamplesOfMnist:
    """Images and labels, and batches of them: shuffled anew in every epoch, by NumPy's global generator."""

    def __init__(self, images, labels, fake_data=False, one_hot=False, dtype=tf.float32, reshape=True, seed=None):
        of_graph, of_own = random_seed.get_seed(seed)
        np.random.seed(of_graph if seed is None else of_own)
        dtype = tf.as_dtype(dtype)
        if dtype not in (tf.uint8, tf.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self.one_hot = one_hot
        self.images, self.labels = images, labels
        self.num_examples = 10000 if fake_data else len(images)
        self.epochs_completed = 0
        self._place = 0
        if fake_data:
            return
        if len(images) != len(labels):
            raise AssertionError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
        if reshape:
            self.images = images.reshape(len(images), -1)
        if dtype == tf.float32:
            self.images = np.multiply(self.images.astype(np.float32), 1.0 / 255.0)

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        """The next images and labels; a batch at the end of an epoch is filled up from the next one."""
        if fake_data:
            label = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._place
        if not self.epochs_completed and not start and shuffle:
            self._shuffle()
        if start + batch_size <= self.num_examples:
            self._place = start + batch_size
            return self.images[start : self._place], self.labels[start : self._place]
        self.epochs_completed += 1
        images, labels = self.images[start:], self.labels[start:]
        if shuffle:
            self._shuffle()
        self._place = batch_size - len(images)
        return (
            np.concatenate((images, self.images[: self._place]), axis=0),
            np.concatenate((labels, self.labels[: self._place]), axis=0),
        )

    def _shuffle(self):
        order = np.arange(self.num_examples)
        np.random.shuffle(order)
        self.images, self.labels = self.images[order], self.labels[order]


def read_data_sets(
    train_dir,
    fake_data=False,
    one_hot=False,
    dtype=tf.float32,
    reshape=True,
    validation_size=5000,
    seed=None,
    source_url=None,
):
    """MNIST in three parts. It is read from the four files of `train_dir`; where they are not there, Keras loads it."""
    del source_url
    options = {"dtype": dtype, "seed": seed}
    if fake_data:
        return Datasets(*(ExamplesOfMnist([], [], fake_data=True, one_hot=one_hot, **options) for _ in range(3)))
    (images, labels), (test_images, test_labels) = _load(train_dir)
    if one_hot:
        labels, test_labels = (np.eye(10)[one] for one in (labels, test_labels))
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"Validation size should be between 0 and {len(images)}. Received: {validation_size}.")
    options["reshape"] = reshape
    return Datasets(
        ExamplesOfMnist(images[validation_size:], labels[validation_size:], **options),
        ExamplesOfMnist(images[:validation_size], labels[:validation_size], **options),
        ExamplesOfMnist(test_images, test_labels, **options),
    )


def _load(folder):
    """((images, labels), (images, labels)) to train and to test: images of rank four, of bytes."""
    names = [f"{part}-{what}" for part in ("train", "t10k") for what in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    paths = [os.path.join(folder, f"{name}.gz") for name in names]
    if all(tf.io.gfile.exists(path) for path in paths):
        arrays = [_array(path) for path in paths]
        pairs = [arrays[:2], arrays[2:]]
    else:
        pairs = tf.keras.datasets.mnist.load_data()
    return [(images[..., np.newaxis], labels) for images, labels in pairs]


def _array(path):
    """The bytes of a file in MNIST's own format, in its shape."""
    with tf.io.gfile.GFile(path, "rb") as file, gzip.GzipFile(fileobj=file) as content:
        data = content.read()
    rank = data[3]
    shape = np.frombuffer(data, ">i4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load_mnist(train_dir="MNIST-data"):
    """MNIST in three parts, see `read_data_sets`."""
    return read_data_sets(train_dir)
