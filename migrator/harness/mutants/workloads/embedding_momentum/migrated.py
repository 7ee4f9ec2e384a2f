"""Predicts ratings from the embeddings of a reader and a book."""
import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: the numbers were matched on it.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
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


class Momentum(tf.keras.optimizers.SGD):
    """Momentum as in TensorFlow 1: a row of an embedding that is not in the batch stays, momentum and all."""

    def update_step(self, gradient, variable):
        slot = self.momentums[self._index_dict[self._var_key(variable)]]
        rate = tf.cast(self.learning_rate, variable.dtype)
        momentum = tf.cast(self.momentum, variable.dtype)
        if isinstance(gradient, tf.IndexedSlices):
            tf.raw_ops.ResourceSparseApplyMomentum(
                var=variable.handle,
                accum=slot.handle,
                lr=rate,
                grad=gradient.values,
                indices=gradient.indices,
                momentum=momentum,
                use_nesterov=self.nesterov,
            )
        else:
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle,
                accum=slot.handle,
                lr=rate,
                grad=gradient,
                momentum=momentum,
                use_nesterov=self.nesterov,
            )


def model_fn(features):
    """Two embeddings, side by side, and two dense layers."""
    initializer = tf.keras.initializers.RandomNormal(mean=0.0, stddev=0.5)
    reader = tf.keras.layers.Embedding(READERS, 4, embeddings_initializer=initializer, name="readers")(features["reader"])
    book = tf.keras.layers.Embedding(BOOKS, 4, embeddings_initializer=initializer, name="books")(features["book"])
    hidden = tf.keras.layers.Dense(8, activation=tf.nn.tanh)(tf.concat([reader, book], axis=1))
    output = tf.keras.layers.Dense(1)(hidden)

    model = tf.keras.Model(features, output)
    model.compile(
        optimizer=Momentum(learning_rate=0.05, momentum=0.9),
        loss=tf.keras.losses.MeanSquaredError(),
        metrics=[tf.keras.metrics.MeanAbsoluteError(name="mae")],
    )
    return model


def make_inputs(dataset):
    """Returns Keras inputs for the features of a dataset of (features, labels) batches."""
    features, _ = dataset.element_spec
    return tf.nest.map_structure(
        lambda spec: tf.keras.Input(spec.shape[1:], dtype=spec.dtype),
        features,
    )


def main():
    model = model_fn(make_inputs(train_input_fn()))
    model.fit(train_input_fn(), steps_per_epoch=STEPS)
    print("mean error: %.3f" % model.evaluate(eval_input_fn(), return_dict=True)["mae"])


if __name__ == "__main__":
    main()
