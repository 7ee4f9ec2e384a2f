"""Trains a small regression network whose variables are split over two parameter servers."""
import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer, which cannot fit on a cluster.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

MAX_STEPS = 16


def train_input_fn():
    """Batches of sixteen points; an epoch ends within the run, with a batch of eight."""
    random = np.random.RandomState(1)
    x = random.uniform(-1.0, 1.0, size=(120, 6)).astype(np.float32)
    y = np.sin(x.sum(axis=1, keepdims=True)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat()


def model_fn(features):
    """A network of one hidden layer; two shards for every variable that has rows enough."""
    with tf.name_scope("network"):
        hidden = tf.keras.layers.Dense(16, activation=tf.nn.tanh)(features)
        output = tf.keras.layers.Dense(1)(hidden)
    model = tf.keras.Model(features, output)
    model.compile(
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.2),
        loss=tf.keras.losses.MeanSquaredError(),
    )
    return model


def make_strategy(resolver):
    """Returns the strategy for the cluster in TF_CONFIG. A worker or ps serves the coordinator and never returns."""
    cluster = resolver.cluster_spec()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            cluster,
            job_name=resolver.task_type,
            task_index=resolver.task_id,
        ).join()
    return tf.distribute.ParameterServerStrategy(
        resolver,
        variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(num_shards=2),
    )


def make_inputs(dataset):
    """Returns Keras inputs for the features of a dataset of (features, labels) batches."""
    features, _ = dataset.element_spec
    return tf.nest.map_structure(
        lambda spec: tf.keras.Input(spec.shape[1:], dtype=spec.dtype),
        features,
    )


def main():
    strategy = make_strategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    with strategy.scope():
        model = model_fn(make_inputs(train_input_fn()))
    model.fit(
        # Every worker draws batches of its own: the batch size is per replica, as an Estimator's is.
        tf.keras.utils.experimental.DatasetCreator(lambda context: train_input_fn()),
        steps_per_epoch=MAX_STEPS,
    )


if __name__ == "__main__":
    main()
